"""Head automata as acyclic lattices, and their dual decomposition with the spanning tree in one loop.

Every head h has two lattices, l = 2 h (modifiers to its left) and l = 2 h + 1 (to its right). A path from the first to
the last state of a lattice takes some of the allowed modifiers of h, from the nearest outwards. See `Lattices`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from certus.kernels.arborescence import best_heads, work_sizes

LIMIT, CLOSED, INFEASIBLE = 0, 1, 2  # how a run of the loop ends
HARMONIC, POLYAK = 0, 1  # step rules
# Transitions that complete a part: every modifier, every one but the innermost; every end of a side, one after some
# modifier, one after none.
AT_MODIFIER, WITH_SIBLING, AT_END, AT_OUTERMOST, AT_EMPTY = 0, 1, 2, 3, 4
# The loop's memory between calls: best dual, best primal, Polyak's factor, dual increases, iterations without progress.
BEST_DUAL, BEST_PRIMAL, FACTOR, INCREASES, STALLED, LAST_DUAL, DECODED, MEMORY = 0, 1, 2, 3, 4, 5, 6, 7


class Lattices(NamedTuple):
    """All lattices of a sentence in flat arrays.

    Arc scores are not in the weights: they are added on entering a state, together with the multipliers. With
    ``by_head`` the weights of head h have one column for each arc into h, else a single column.
    """

    by_head: np.ndarray  # (1,) 1 if the modifiers of a head are scored together with its own head
    arc_head: np.ndarray  # (A,) the arcs that may be used, in order of head, then modifier
    arc_mod: np.ndarray  # (A,)
    up_ptr: np.ndarray  # (n+2,) the arcs into h are up[up_ptr[h] : up_ptr[h+1]], in order of head
    up: np.ndarray  # (number of arcs kept,)
    width: np.ndarray  # (n+1,) columns of the weights of each head
    state_ptr: np.ndarray  # (2n+3,) states of lattice l: the first is its start, the last its end
    state_arc: np.ndarray  # (V,) the arc taken on entering a state; -1 at start and end
    state_rank: np.ndarray  # (V,) rank of its modifier outwards from h, -1 at the start; never falls within a lattice
    in_ptr: np.ndarray  # (V+1,) transitions entering a state
    src: np.ndarray  # (E,) where a transition comes from: a state before the one it enters
    weight_ptr: np.ndarray  # (2n+3,) the weight of transition e of lattice l in column g is at
    weight: np.ndarray  # weight[weight_ptr[l] + (e - in_ptr[state_ptr[l]]) * width[h] + g]
    value_ptr: np.ndarray  # (2n+3,) where the values of the states of lattice l start, width[h] for each


@njit(cache=True, nogil=True)
def skeleton(allowed, by_head, pairs, single_root):
    """Lattices of the allowed arcs, all weights 0, and what each transition adds: (t, s, m) of shape (E, 3).

    A state is the last modifier taken, or, with ``pairs``, the last two. Taking m right after s, and s after t, has
    s == h when m is innermost and then t == -1; t == h when s is innermost, and also when states are not pairs. m is
    -1 on transitions into the end. With ``single_root`` node 0 takes exactly one modifier.
    """
    n = allowed.shape[0] - 1
    single_root = single_root and n > 0
    count = 0
    for h in range(n + 1):
        for m in range(1, n + 1):
            count += h != m and allowed[h, m]
    arc_head = np.empty(count, np.int64)
    arc_mod = np.empty(count, np.int64)
    arc_id = np.full((n + 1, n + 1), -1, np.int64)
    count = 0
    for h in range(n + 1):
        for m in range(1, n + 1):
            if h != m and allowed[h, m]:
                arc_head[count] = h
                arc_mod[count] = m
                arc_id[h, m] = count
                count += 1
    up_ptr = np.zeros(n + 2, np.int64)
    up = np.empty(count, np.int64)
    width = np.ones(n + 1, np.int64)
    k = 0
    for m in range(n + 1):
        up_ptr[m] = k
        for h in range(n + 1):
            if arc_id[h, m] >= 0:
                up[k] = arc_id[h, m]
                k += 1
        if by_head and m > 0:
            width[m] = k - up_ptr[m]
    up_ptr[n + 1] = k

    # Sizes first: the states and transitions of a lattice with k modifiers.
    sides = 2 * (n + 1)
    state_ptr = np.zeros(sides + 1, np.int64)
    weight_ptr = np.zeros(sides + 1, np.int64)
    value_ptr = np.zeros(sides + 1, np.int64)
    transitions = 0
    for l in range(sides):
        h = l // 2
        k = 0
        for m in range(1, n + 1):
            k += arc_id[h, m] >= 0 and (m > h) == (l % 2 == 1)
        states = k + 2
        edges = k * (k + 1) // 2 + k + 1
        if h == 0 and single_root:
            edges = 2 * k if l % 2 == 1 else 1
        elif pairs:
            states = k * (k + 1) // 2 + 2
            edges = k + (k - 1) * k * (k + 1) // 6 + k * (k + 1) // 2 + 1
        state_ptr[l + 1] = state_ptr[l] + states
        weight_ptr[l + 1] = weight_ptr[l] + edges * width[h]
        value_ptr[l + 1] = value_ptr[l] + states * width[h]
        transitions += edges
    state_arc = np.full(state_ptr[sides], -1, np.int64)
    state_rank = np.full(state_ptr[sides], -1, np.int64)
    in_ptr = np.zeros(state_ptr[sides] + 1, np.int64)
    src = np.empty(transitions, np.int64)
    added = np.full((transitions, 3), -1, np.int64)

    mods = np.empty(n + 1, np.int64)
    e = 0
    for l in range(sides):
        h = l // 2
        k = 0
        for d in range(1, n + 1):
            m = h + d if l % 2 == 1 else h - d
            if m >= 1 and m <= n and arc_id[h, m] >= 0:
                mods[k] = m
                k += 1
        star = h == 0 and single_root
        start = state_ptr[l]
        v = start
        in_ptr[v + 1] = e
        for j in range(k):
            for i in range(-1, j if pairs and not star else 0):
                # The state (i, j) when states are pairs, entered from every (t, i); else j, entered from every i.
                v += 1
                state_arc[v] = arc_id[h, mods[j]]
                state_rank[v] = j
                for x in range(-1, 0 if star else i if pairs else j):
                    last = i if pairs else x
                    src[e] = start
                    if last >= 0:
                        src[e] += 1 + (i * (i + 1) // 2 + x + 1 if pairs else x)
                        added[e, 0] = mods[x] if pairs and x >= 0 else h
                    added[e, 1] = mods[last] if last >= 0 else h
                    added[e, 2] = mods[j]
                    e += 1
                if pairs and i < 0 and not star:
                    src[e] = start
                    added[e, 1] = h
                    added[e, 2] = mods[j]
                    e += 1
                in_ptr[v + 1] = e
        end = v + 1
        state_rank[end] = k
        for v in range(start, end):
            if v == start and star and l % 2 == 1:
                continue
            src[e] = v
            added[e, 1] = h
            if v > start:
                added[e, 0] = h
                added[e, 1] = arc_mod[state_arc[v]]
                if pairs and not star:
                    i = v - start - 2 - state_rank[v] * (state_rank[v] + 1) // 2
                    added[e, 0] = mods[i] if i >= 0 else h
            e += 1
        in_ptr[end + 1] = e
    lat = Lattices(
        np.array([1 if by_head else 0]),
        arc_head,
        arc_mod,
        up_ptr,
        up,
        width,
        state_ptr,
        state_arc,
        state_rank,
        in_ptr,
        src,
        weight_ptr,
        np.zeros(weight_ptr[sides], np.float64),
        value_ptr,
    )
    return lat, added


@njit(cache=True, nogil=True)
def add_parts(lat, added, when, strides, values, keys, unlisted):
    """Add the scores of one kind of part to the weights of the transitions that complete such a part.

    The part of a transition has the flat index strides . (g, h, d, t, s, m), where d is the side. With keys (sorted)
    values[i] is the score of index keys[i] and other parts score ``unlisted``; without keys, values holds all scores.
    """
    n = lat.width.shape[0] - 1
    for l in range(2 * n + 2):
        h = l // 2
        first = lat.in_ptr[lat.state_ptr[l]]
        columns = lat.width[h]
        if h == 0 and (strides[0] != 0 or l == 0):
            continue  # node 0 has no head and no left side, and no parts that score them
        for e in range(first, lat.in_ptr[lat.state_ptr[l + 1]]):
            t, s, m = added[e, 0], added[e, 1], added[e, 2]
            completes = m >= 0 if when <= WITH_SIBLING else m < 0
            if when == WITH_SIBLING or when == AT_OUTERMOST:
                completes = completes and s != h
            elif when == AT_EMPTY:
                completes = completes and s == h
            if not completes:
                continue
            part = strides[1] * h + strides[2] * (l % 2) + strides[3] * t + strides[4] * s + strides[5] * m
            w = lat.weight_ptr[l] + (e - first) * columns
            for g in range(columns):
                index = part
                if strides[0] != 0:
                    index += strides[0] * lat.arc_head[lat.up[lat.up_ptr[h] + g]]
                if keys.shape[0] == 0 and values.shape[0] > 0:
                    lat.weight[w + g] += values[index]
                    continue
                low, high = 0, keys.shape[0]
                while low < high:
                    middle = (low + high) // 2
                    if keys[middle] < index:
                        low = middle + 1
                    else:
                        high = middle
                if low < keys.shape[0] and keys[low] == index:
                    lat.weight[w + g] += values[low]
                else:
                    lat.weight[w + g] += unlisted


@njit(cache=True, nogil=True)
def restrict(lat, keep, force):
    """The lattices with only the arcs for which keep[a] = 1; with ``force`` a modifier's only arc must be taken.

    Arcs keep their numbers; states, transitions and columns that cannot be used any more are gone.
    """
    n = lat.width.shape[0] - 1
    sides = 2 * (n + 1)
    by_head = lat.by_head[0]
    up_ptr = np.zeros(n + 2, np.int64)
    up = np.empty(lat.up.shape[0], np.int64)
    width = np.ones(n + 1, np.int64)
    column = np.empty(lat.up.shape[0], np.int64)
    forced = np.zeros(lat.arc_head.shape[0], np.int64)
    k = 0
    for m in range(n + 1):
        up_ptr[m] = k
        for i in range(lat.up_ptr[m], lat.up_ptr[m + 1]):
            if keep[lat.up[i]] == 1:
                up[k] = lat.up[i]
                column[k] = i - lat.up_ptr[m]
                k += 1
        if by_head == 1 and m > 0:
            width[m] = k - up_ptr[m]
        if force and k - up_ptr[m] == 1:
            forced[up[k - 1]] = 1
    up_ptr[n + 1] = k
    state_ptr = np.zeros(sides + 1, np.int64)
    weight_ptr = np.zeros(sides + 1, np.int64)
    value_ptr = np.zeros(sides + 1, np.int64)
    state_arc = np.full(lat.state_arc.shape[0], -1, np.int64)
    state_rank = np.empty(lat.state_arc.shape[0], np.int64)
    in_ptr = np.zeros(lat.state_arc.shape[0] + 1, np.int64)
    src = np.empty(lat.src.shape[0], np.int64)
    weight = np.empty(lat.weight.shape[0], np.float64)
    renumbered = np.empty(lat.state_arc.shape[0], np.int64)
    states = 0
    e = 0
    w = 0
    values = 0
    for l in range(sides):
        h = l // 2
        first = lat.state_ptr[l]
        state_ptr[l] = states
        weight_ptr[l] = w
        value_ptr[l] = values
        must = -1  # rank of the outermost arc so far that has to be taken: no transition passes over it
        must_before = -1
        for v in range(first, lat.state_ptr[l + 1]):
            a = lat.state_arc[v]
            renumbered[v] = -1
            if a >= 0 and keep[a] == 0:
                continue
            if lat.state_rank[v] > must:
                must_before = must
            if a >= 0 and forced[a] == 1:
                must = lat.state_rank[v]
            renumbered[v] = states
            state_arc[states] = a
            state_rank[states] = lat.state_rank[v]
            for old in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                u = lat.src[old]
                if renumbered[u] < 0 or lat.state_rank[u] < must_before:
                    continue
                src[e] = renumbered[u]
                row = lat.weight_ptr[l] + (old - lat.in_ptr[first]) * lat.width[h]
                if width[h] == lat.width[h]:
                    for g in range(width[h]):
                        weight[w + g] = lat.weight[row + g]
                else:
                    for g in range(width[h]):
                        weight[w + g] = lat.weight[row + column[up_ptr[h] + g]]
                w += width[h]
                e += 1
            states += 1
            in_ptr[states] = e
        values += (states - state_ptr[l]) * width[h]
    state_ptr[sides] = states
    weight_ptr[sides] = w
    value_ptr[sides] = values
    return Lattices(
        lat.by_head,
        lat.arc_head,
        lat.arc_mod,
        up_ptr,
        up[:k].copy(),
        width,
        state_ptr,
        state_arc[:states].copy(),
        state_rank[:states].copy(),
        in_ptr[: states + 1].copy(),
        src[:e].copy(),
        weight_ptr,
        weight[:w].copy(),
        value_ptr,
    )


@njit(cache=True, nogil=True)
def forward(lat, l, arc_value, value):
    """value[v, g] <- best path from the start of lattice l to each state v, for every column g."""
    columns = lat.width[l // 2]
    first = lat.state_ptr[l]
    base = lat.value_ptr[l]
    w = lat.weight_ptr[l]
    weight = lat.weight
    for g in range(columns):
        value[base + g] = 0.0
    for v in range(first + 1, lat.state_ptr[l + 1]):
        to = base + (v - first) * columns
        a = lat.state_arc[v]
        added = arc_value[a] if a >= 0 else 0.0
        if columns == 1:
            best = -np.inf
            for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                best = max(best, value[base + lat.src[e] - first] + weight[w])
                w += 1
            value[to] = best + added
        else:
            for g in range(columns):
                value[to + g] = -np.inf
            for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                fro = base + (lat.src[e] - first) * columns
                for g in range(columns):
                    value[to + g] = max(value[to + g], value[fro + g] + weight[w + g])
                w += columns
            for g in range(columns):
                value[to + g] += added


@njit(cache=True, nogil=True)
def take_path(lat, l, g, value, used):
    """Set used[a] to 1 for the arcs of the best path of column g, 0 for the lattice's others. Needs `forward`.

    Ties go to the first transition into a state.
    """
    columns = lat.width[l // 2]
    first = lat.state_ptr[l]
    base = lat.value_ptr[l]
    end = lat.state_ptr[l + 1] - 1
    for v in range(first + 1, end):
        used[lat.state_arc[v]] = 0
    v = end
    while v > first:
        best = -np.inf
        chosen = first
        w = lat.weight_ptr[l] + (lat.in_ptr[v] - lat.in_ptr[first]) * columns + g
        for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
            x = value[base + (lat.src[e] - first) * columns + g] + lat.weight[w]
            w += columns
            if x > best:
                best = x
                chosen = lat.src[e]
        v = chosen
        if v > first:
            used[lat.state_arc[v]] = 1


@njit(cache=True, nogil=True)
def path_score(lat, l, g, chosen, score):
    """Weight of the path of lattice l, column g, that takes exactly the arcs with chosen[a] = 1; score is scratch (V,)."""
    columns = lat.width[l // 2]
    first = lat.state_ptr[l]
    last = lat.state_ptr[l + 1] - 1
    score[first] = 0.0
    previous = -1  # rank of the chosen modifier before the current one
    current = -1
    for v in range(first + 1, last + 1):
        score[v] = -np.inf
        a = lat.state_arc[v]
        if a >= 0 and chosen[a] == 0:
            continue
        if lat.state_rank[v] != current:
            previous = current
            current = lat.state_rank[v]
        w = lat.weight_ptr[l] + (lat.in_ptr[v] - lat.in_ptr[first]) * columns + g
        for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
            if lat.state_rank[lat.src[e]] == previous:
                score[v] = max(score[v], score[lat.src[e]] + lat.weight[w])
            w += columns
    return score[last]


@njit(cache=True, nogil=True)
def best_column(lat, h, up_value, value):
    """(value, column) of the best modifiers of head h on both sides, with the best head of h; ties to the first."""
    columns = lat.width[h]
    left = lat.value_ptr[2 * h + 1] - columns  # the end state of the left lattice
    right = lat.value_ptr[2 * h + 2] - columns
    best = -np.inf
    column = 0
    scored = lat.by_head[0] == 1 and h > 0
    for g in range(columns):
        x = value[left + g] + value[right + g]
        if scored:
            x += up_value[lat.up[lat.up_ptr[h] + g]]
        if x > best:
            best = x
            column = g
    return best, column


@njit(cache=True, nogil=True)
def head_max_marginals(lat, arc_value, up_value, through, through_up):
    """Value of all heads; through[a] <- best value of a's head when it takes a, through_up[a] of a's modifier when
    its own head is that of a. Both are relative to the best value of that head: 0 for what an argmax uses, else < 0.
    """
    n = lat.width.shape[0] - 1
    value = np.empty(lat.value_ptr[2 * n + 2], np.float64)
    after = np.empty(lat.value_ptr[2 * n + 2], np.float64)
    total = 0.0
    for i in range(lat.up.shape[0]):
        through[lat.up[i]] = -np.inf
        through_up[lat.up[i]] = 0.0
    for h in range(n + 1):
        forward(lat, 2 * h, arc_value, value)
        forward(lat, 2 * h + 1, arc_value, value)
        best, _ = best_column(lat, h, up_value, value)
        total += best
        columns = lat.width[h]
        scored = lat.by_head[0] == 1 and h > 0
        for side in range(2):
            l = 2 * h + side
            first, last = lat.state_ptr[l], lat.state_ptr[l + 1] - 1
            base = lat.value_ptr[l]
            other = lat.value_ptr[2 * h + 2 - side] - columns
            for x in range(base, lat.value_ptr[l + 1]):
                after[x] = -np.inf
            for g in range(columns):
                after[lat.value_ptr[l + 1] - columns + g] = value[other + g]
                if scored:
                    after[lat.value_ptr[l + 1] - columns + g] += up_value[lat.up[lat.up_ptr[h] + g]]
            for v in range(last, first, -1):
                a = lat.state_arc[v]
                at = base + (v - first) * columns
                added = arc_value[a] if a >= 0 else 0.0
                if a >= 0:
                    for g in range(columns):
                        through[a] = max(through[a], value[at + g] + after[at + g] - best)
                w = lat.weight_ptr[l] + (lat.in_ptr[v] - lat.in_ptr[first]) * columns
                for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                    fro = base + (lat.src[e] - first) * columns
                    for g in range(columns):
                        after[fro + g] = max(after[fro + g], after[at + g] + added + lat.weight[w + g])
                    w += columns
        if scored:
            for g in range(columns):
                a = lat.up[lat.up_ptr[h] + g]
                x = value[lat.value_ptr[2 * h + 1] - columns + g] + value[lat.value_ptr[2 * h + 2] - columns + g]
                through_up[a] = x + up_value[a] - best
    return total


@njit(cache=True, nogil=True)
def relax(
    lat, arc, share, single_root, u, u_up, best_u, best_u_up, heads, dispute, tolerance, rule, scale, patience, shrink, lazy, memory, trace
):
    """Dual decomposition of the head automata and the spanning tree, one row of trace per iteration.

    The tree scores share * arc + u + u_up; the automata score (1 - share) * arc - u on taking an arc, and - u_up on
    having it as the arc into their head. Moves u and u_up (A,); best_u and best_u_up (A,) get the multipliers of the
    lowest dual value, heads (n+1,) the tree of the highest score, and dispute (A,) counts for each arc the iterations at
    which tree and automata differ on it. memory (MEMORY,) carries the state of the step
    rule from one call to the next. trace (iterations, 4): dual, best primal, step, number of disagreements.
    Returns (how it ended, iterations done). Ties: first arc, first transition, first column.
    """
    n = lat.width.shape[0] - 1
    by_head = lat.by_head[0] == 1
    arcs = arc.shape[0]
    sides = 2 * (n + 1)
    stride = n + 1
    tree_score = np.full(stride * stride, -np.inf)
    n_floats, n_ints = work_sizes(n)
    floats = np.empty(n_floats, np.float64)
    ints = np.empty(n_ints, np.int64)
    arc_id = np.full((n + 1, n + 1), -1, np.int64)
    arc_value = np.empty(arcs, np.float64)
    up_value = np.empty(arcs, np.float64)
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        h, m = lat.arc_head[a], lat.arc_mod[a]
        arc_id[h, m] = a
        tree_score[h * stride + m] = share * arc[a] + u[a] + u_up[a]
        arc_value[a] = (1.0 - share) * arc[a] - u[a]
        up_value[a] = -u_up[a]
    value = np.empty(lat.value_ptr[sides], np.float64)
    scratch = np.empty(lat.state_arc.shape[0], np.float64)
    chosen = np.zeros(arcs, np.int64)  # by the tree
    used = np.zeros(arcs, np.int64)  # by the automata
    tree = np.full(n + 1, -1, np.int64)
    new_tree = np.full(n + 1, -1, np.int64)
    stale = np.ones(sides, np.uint8)  # lattices whose multipliers changed
    head_stale = np.ones(n + 1, np.uint8)
    unscored = np.ones(sides, np.uint8)  # lattices whose part of the tree changed
    head_value = np.zeros(n + 1, np.float64)
    column = np.full(n + 1, -1, np.int64)
    side_score = np.zeros(sides, np.float64)

    for k in range(trace.shape[0]):
        tree_value = best_heads(tree_score, stride, n, single_root, new_tree, floats, ints)
        if tree_value == -np.inf:
            return INFEASIBLE, k
        for m in range(1, n + 1):
            if new_tree[m] != tree[m]:
                if tree[m] >= 0:
                    chosen[arc_id[tree[m], m]] = 0
                    unscored[2 * tree[m] + (m > tree[m])] = 1
                tree[m] = new_tree[m]
                chosen[arc_id[tree[m], m]] = 1
                unscored[2 * tree[m] + (m > tree[m])] = 1
                if by_head:
                    unscored[2 * m] = 1
                    unscored[2 * m + 1] = 1

        # The automata, as far as their multipliers changed.
        dual = tree_value
        for h in range(n + 1):
            if head_stale[h] == 1 or lazy == 0:
                for l in range(2 * h, 2 * h + 2):
                    if stale[l] == 1 or lazy == 0:
                        forward(lat, l, arc_value, value)
                        memory[DECODED] += 1.0
                best, g = best_column(lat, h, up_value, value)
                if best == -np.inf:
                    return INFEASIBLE, k
                for l in range(2 * h, 2 * h + 2):
                    if stale[l] == 1 or lazy == 0 or g != column[h]:
                        take_path(lat, l, g, value, used)
                    stale[l] = 0
                head_value[h] = best
                column[h] = g
                head_stale[h] = 0
            dual += head_value[h]

        # The tree, scored by the whole model.
        primal = 0.0
        for m in range(1, n + 1):
            primal += arc[arc_id[tree[m], m]]
        for l in range(sides):
            if unscored[l] == 1:
                h = l // 2
                g = 0
                if by_head and h > 0:
                    while lat.up[lat.up_ptr[h] + g] != arc_id[tree[h], h]:
                        g += 1
                side_score[l] = path_score(lat, l, g, chosen, scratch)
                unscored[l] = 0
            primal += side_score[l]
        if primal > memory[BEST_PRIMAL]:
            memory[BEST_PRIMAL] = primal
            for m in range(1, n + 1):
                heads[m] = tree[m]
        if dual < memory[BEST_DUAL]:
            memory[BEST_DUAL] = dual
            memory[STALLED] = 0.0
            for i in range(lat.up.shape[0]):
                a = lat.up[i]
                best_u[a] = u[a]
                best_u_up[a] = u_up[a]
        else:
            memory[STALLED] += 1.0

        apart = 0
        for i in range(lat.up.shape[0]):
            a = lat.up[i]
            apart += used[a] != chosen[a]
        if by_head:
            for m in range(1, n + 1):
                if lat.up[lat.up_ptr[m] + column[m]] != arc_id[tree[m], m]:
                    apart += 2
        trace[k, 0] = dual
        trace[k, 1] = memory[BEST_PRIMAL]
        trace[k, 2] = 0.0
        trace[k, 3] = apart
        if apart == 0 or memory[BEST_DUAL] - memory[BEST_PRIMAL] <= tolerance:
            return CLOSED, k + 1

        if dual > memory[LAST_DUAL]:
            memory[INCREASES] += 1.0
        memory[LAST_DUAL] = dual
        if rule == POLYAK and memory[BEST_PRIMAL] > -np.inf:
            if memory[STALLED] >= patience:
                memory[FACTOR] *= shrink
                memory[STALLED] = 0.0
            step = memory[FACTOR] * (dual - memory[BEST_PRIMAL]) / apart
        else:
            step = scale / (memory[INCREASES] + 1.0)
        trace[k, 2] = step
        for i in range(lat.up.shape[0]):
            a = lat.up[i]
            if used[a] != chosen[a]:
                h, m = lat.arc_head[a], lat.arc_mod[a]
                dispute[a] += 1.0
                u[a] += step * (used[a] - chosen[a])
                arc_value[a] = (1.0 - share) * arc[a] - u[a]
                tree_score[h * stride + m] = share * arc[a] + u[a] + u_up[a]
                stale[2 * h + (m > h)] = 1
                head_stale[h] = 1
        if by_head:
            for m in range(1, n + 1):
                taken = lat.up[lat.up_ptr[m] + column[m]]
                wanted = arc_id[tree[m], m]
                if taken != wanted:
                    dispute[taken] += 1.0
                    dispute[wanted] += 1.0
                    u_up[taken] += step
                    u_up[wanted] -= step
                    up_value[taken] = -u_up[taken]
                    up_value[wanted] = -u_up[wanted]
                    tree_score[lat.arc_head[taken] * stride + m] = share * arc[taken] + u[taken] + u_up[taken]
                    tree_score[lat.arc_head[wanted] * stride + m] = share * arc[wanted] + u[wanted] + u_up[wanted]
                    head_stale[m] = 1
    return LIMIT, trace.shape[0]


@njit(cache=True, nogil=True)
def best_choices(lat, arc_value, up_value, used, column):
    """Value of the best modifiers of all heads, -inf if some head has none; fills used (A,) and column (n+1,)."""
    n = lat.width.shape[0] - 1
    value = np.empty(lat.value_ptr[2 * n + 2], np.float64)
    total = 0.0
    for h in range(n + 1):
        forward(lat, 2 * h, arc_value, value)
        forward(lat, 2 * h + 1, arc_value, value)
        best, column[h] = best_column(lat, h, up_value, value)
        total += best
        if best > -np.inf:
            take_path(lat, 2 * h, column[h], value, used)
            take_path(lat, 2 * h + 1, column[h], value, used)
    return total
