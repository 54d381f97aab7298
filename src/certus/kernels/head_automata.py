"""Head automata over the lattices of ``head_lattices``, and their dual decomposition with the tree in one loop.

Arc scores are not in the weights of the lattices: they are added on entering a state, together with the multipliers.
``arc_value[a]`` is what taking arc a adds, ``up_value[a]`` what having it as the arc into one's own head adds.
"""

import numpy as np

from certus.kernels.arborescence import best_heads, work_sizes
from certus.kernels.compiling import njit
from certus.kernels.head_lattices import add_parts, skeleton

U = np.uint64
EPSILON = np.finfo(np.float64).eps

LIMIT, CLOSED, INFEASIBLE = 0, 1, 2  # how a run of the loop ends
HARMONIC, POLYAK = 0, 1  # step rules
# The loop's memory between calls: least dual, best primal, Polyak's factor, increases of the dual, iterations without
# progress, last dual, lattices decoded; then sizes: of the largest arc score, score, multiplier and sum of two.
BEST_DUAL, BEST_PRIMAL, FACTOR, INCREASES, STALLED, LAST_DUAL, DECODED = 0, 1, 2, 3, 4, 5, 6
LARGEST_ARC, LARGEST, LARGEST_U, LARGEST_SUM, MEMORY = 7, 8, 9, 10, 11


@njit(cache=True, nogil=True)
def forward(lat, side, arc_value, value):
    """value[v, g] <- best path from the start of a lattice to each state v, for every column g."""
    columns = U(lat.width[side // 2])
    first = U(lat.state_ptr[side])
    base = U(lat.value_ptr[side])
    w = U(lat.weight_ptr[side])
    weight = lat.weight
    src = lat.src
    zero, one = U(0), U(1)
    for g in range(columns):
        value[base + g] = 0.0
    for v in range(first + one, U(lat.state_ptr[side + 1])):
        to = base + (v - first) * columns
        a = lat.state_arc[v]
        added = arc_value[a] if a >= 0 else 0.0
        if columns == one:
            best = -np.inf
            for e in range(U(lat.in_ptr[v]), U(lat.in_ptr[v + one])):
                x = value[base + U(src[e]) - first] + weight[w]
                w += one
                best = x if x > best else best
            value[to] = best + added
            continue
        for g in range(columns):
            value[to + g] = -np.inf
        for e in range(U(lat.in_ptr[v]), U(lat.in_ptr[v + one])):
            fro = base + (U(src[e]) - first) * columns
            for g in range(zero, columns):
                x = value[fro + g] + weight[w + g]
                y = value[to + g]
                value[to + g] = x if x > y else y
            w += columns
        for g in range(columns):
            value[to + g] += added


@njit(cache=True, nogil=True)
def take_path(lat, side, g, value, used):
    """Set used[a] to 1 for the arcs of the best path of column g, 0 for the lattice's others. Needs `forward`.

    Ties go to the first transition into a state.
    """
    columns = lat.width[side // 2]
    first = lat.state_ptr[side]
    base = lat.value_ptr[side]
    end = lat.state_ptr[side + 1] - 1
    for v in range(first + 1, end):
        used[lat.state_arc[v]] = 0
    v = end
    while v > first:
        best = -np.inf
        chosen = first
        w = lat.weight_ptr[side] + (lat.in_ptr[v] - lat.in_ptr[first]) * columns + g
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
def path_score(lat, side, g, chosen, score):
    """Weight of the path in column g that takes exactly the arcs with chosen[a] = 1; score is scratch (V,)."""
    columns = lat.width[side // 2]
    first = lat.state_ptr[side]
    last = lat.state_ptr[side + 1] - 1
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
        w = lat.weight_ptr[side] + (lat.in_ptr[v] - lat.in_ptr[first]) * columns + g
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
        for d in range(2):
            side = 2 * h + d
            first, last = lat.state_ptr[side], lat.state_ptr[side + 1] - 1
            base = lat.value_ptr[side]
            other = lat.value_ptr[2 * h + 2 - d] - columns
            for x in range(base, lat.value_ptr[side + 1]):
                after[x] = -np.inf
            for g in range(columns):
                after[lat.value_ptr[side + 1] - columns + g] = value[other + g]
                if scored:
                    after[lat.value_ptr[side + 1] - columns + g] += up_value[lat.up[lat.up_ptr[h] + g]]
            for v in range(last, first, -1):
                a = lat.state_arc[v]
                at = base + (v - first) * columns
                added = arc_value[a] if a >= 0 else 0.0
                if a >= 0:
                    for g in range(columns):
                        through[a] = max(through[a], value[at + g] + after[at + g] - best)
                w = lat.weight_ptr[side] + (lat.in_ptr[v] - lat.in_ptr[first]) * columns
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
def two_best(lat, worth, best, second):
    """best[m], second[m] <- the two largest worths of the arcs into each word, -inf where there are fewer."""
    for m in range(1, best.shape[0]):
        best[m] = second[m] = -np.inf
        for i in range(lat.up_ptr[m], lat.up_ptr[m + 1]):
            x = worth[lat.up[i]]
            if x > best[m]:
                second[m] = best[m]
                best[m] = x
            elif x > second[m]:
                second[m] = x


@njit(cache=True, nogil=True)
def first_multipliers(lat, arc, share, u):
    """u[a] <- multipliers to start from, (A,): they make the first tree and the first automata nearly agree.

    Every word asks a price of all its heads, which changes no tree. At a price just above its best arc a head takes no
    modifier gladly, and the max-marginals say what each arc would be worth to it, with the company that suits it best.
    The price is then set midway between the two heads to which the word is worth most, and the tree gets half of
    what an arc is worth above the price.
    """
    n = lat.width.shape[0] - 1
    value = (1.0 - share) * arc
    best, second = np.empty(n + 1), np.empty(n + 1)
    two_best(lat, value, best, second)
    gap = 0.0
    words = 0
    for m in range(1, n + 1):
        if second[m] > -np.inf:
            gap += best[m] - second[m]
            words += 1
    gap /= max(words, 1)
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        value[a] -= best[lat.arc_mod[a]] + 0.5 * gap
    worth, above = np.empty(arc.shape[0]), np.zeros(arc.shape[0])
    if head_max_marginals(lat, value, above, worth, np.empty(arc.shape[0])) == -np.inf:
        return
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        worth[a] += best[lat.arc_mod[a]] + 0.5 * gap
    two_best(lat, worth, best, second)
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        m = lat.arc_mod[a]
        if worth[a] > -np.inf:
            price = 0.5 * (best[m] + second[m]) if second[m] > -np.inf else best[m] - gap
            u[a] = 0.5 * (price + worth[a])


@njit(cache=True, nogil=True)
def nearest_tree(lat, tree_score, single_root, stale, tree, mark, floats, ints):
    """Fill tree with the best heads for tree_score ((n+1) * (n+1),) and return its value: as ``best_heads``.

    Every word takes its best head; only where that gives a cycle, or too many root words, is there more to do. Words
    that are not stale still hold their best head in tree[n+1 :]. mark (n+1,) is scratch.
    """
    n = lat.width.shape[0] - 1
    roots = 0
    value = 0.0
    for m in range(1, n + 1):
        if stale[m] == 1:
            stale[m] = 0
            best = -np.inf
            tree[n + 1 + m] = -1
            for i in range(lat.up_ptr[m], lat.up_ptr[m + 1]):
                h = lat.arc_head[lat.up[i]]
                x = tree_score[h * (n + 1) + m]
                if x > best:
                    best = x
                    tree[n + 1 + m] = h
        h = tree[n + 1 + m]
        if h < 0:
            return -np.inf
        tree[m] = h
        mark[m] = 0
        roots += h == 0
        value += tree_score[h * (n + 1) + m]
    whole = roots == 1 or not single_root
    for m in range(1, n + 1):
        v = m
        while v > 0 and mark[v] == 0:
            mark[v] = m
            v = tree[v]
        whole = whole and (v == 0 or mark[v] != m)
    return value if whole else best_heads(tree_score, n + 1, n, single_root, tree, floats, ints)


@njit(cache=True, nogil=True)
def relax(
    lat,
    arc,
    share,
    single_root,
    u,
    u_up,
    best_u,
    best_u_up,
    heads,
    dispute,
    tolerance,
    rule,
    scale,
    patience,
    shrink,
    lazy,
    memory,
    trace,
):
    """Dual decomposition of the head automata and the spanning tree (LR alg. 8 and 9), one row of trace per iteration.

    The tree scores share * arc + u + u_up; the automata score (1 - share) * arc - u on taking an arc, and - u_up on
    having it as the arc into their head. The update is u += step (used by automata - used by tree), and likewise u_up.

    Moves u and u_up (A,). best_u and best_u_up (A,) get the multipliers of the lowest dual value, heads (n+1,) the tree
    of the highest score, dispute (A,) the number of iterations at which tree and automata differ on an arc. memory
    (MEMORY,) carries the state of the step rule to the next call. trace (iterations, 4): dual, best primal, step and
    number of disagreements. Step rules as in certus.relax.steps: HARMONIC is per_increase(scale), POLYAK is
    polyak(FACTOR, patience, shrink). Returns (how it ended, iterations done). Ties: first arc, transition, column.
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
    differ = np.empty(arcs, np.int64)
    tree = np.full(n + 1, -1, np.int64)
    new_tree = np.full(2 * n + 2, -1, np.int64)
    word_stale = np.ones(n + 1, np.uint8)  # words whose heads have other scores
    mark = np.empty(n + 1, np.int64)
    stale = np.ones(sides, np.uint8)  # lattices whose multipliers changed
    head_stale = np.ones(n + 1, np.uint8)
    unscored = np.ones(sides, np.uint8)  # lattices whose part of the tree changed
    head_value = np.zeros(n + 1, np.float64)
    column = np.full(n + 1, -1, np.int64)
    side_score = np.zeros(sides, np.float64)

    for k in range(trace.shape[0]):
        tree_value = nearest_tree(lat, tree_score, single_root, word_stale, new_tree, mark, floats, ints)
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
                for side in range(2 * h, 2 * h + 2):
                    if stale[side] == 1 or lazy == 0:
                        forward(lat, side, arc_value, value)
                        memory[DECODED] += 1.0
                best, g = best_column(lat, h, up_value, value)
                if best == -np.inf:
                    return INFEASIBLE, k
                for side in range(2 * h, 2 * h + 2):
                    if stale[side] == 1 or lazy == 0 or g != column[h]:
                        take_path(lat, side, g, value, used)
                    stale[side] = 0
                head_value[h] = best
                column[h] = g
                head_stale[h] = 0
            dual += head_value[h]

        # The tree, scored by the whole model.
        primal = 0.0
        for m in range(1, n + 1):
            primal += arc[arc_id[tree[m], m]]
        for side in range(sides):
            if unscored[side] == 1:
                h = side // 2
                g = 0
                if by_head and h > 0:
                    while lat.up[lat.up_ptr[h] + g] != arc_id[tree[h], h]:
                        g += 1
                side_score[side] = path_score(lat, side, g, chosen, scratch)
                unscored[side] = 0
            primal += side_score[side]
        if primal > memory[BEST_PRIMAL]:
            memory[BEST_PRIMAL] = primal
            for m in range(1, n + 1):
                heads[m] = tree[m]
        if dual < memory[BEST_DUAL]:
            memory[BEST_DUAL] = dual
            memory[STALLED] = 0.0
            for a in range(arcs):
                best_u[a] = u[a]
                best_u_up[a] = u_up[a]
        else:
            memory[STALLED] += 1.0

        apart = 0
        for a in range(arcs):
            if used[a] != chosen[a]:
                differ[apart] = a
                apart += 1
        differing = apart
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
        for i in range(differing):
            a = differ[i]
            h, m = lat.arc_head[a], lat.arc_mod[a]
            dispute[a] += 1.0
            u[a] += step * (used[a] - chosen[a])
            arc_value[a] = (1.0 - share) * arc[a] - u[a]
            tree_score[h * stride + m] = share * arc[a] + u[a] + u_up[a]
            stale[2 * h + (m > h)] = 1
            head_stale[h] = 1
            word_stale[m] = 1
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
                    word_stale[m] = 1
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


@njit(cache=True, nogil=True)
def relax_parts(arc, by_head, pairs, single_root, table, values, keys, unlisted, terms, share, patience, shrink, lazy,
                multipliers, heads, memory, trace):  # fmt: skip
    """The lattices of part scores, their first multipliers and ``relax`` with Polyak's steps, in one call.

    arc (n+1, n+1). Row k of table says which transitions complete the parts of kind k and where their scores lie in
    values[k]; see add_parts, which keys[k] and unlisted[k] are for too. terms is the number of terms in a score, for
    its rounding. multipliers (2, n+1, n+1) gets those of the lowest dual value; heads, memory, trace as in ``relax``.
    """
    lat, added = skeleton(arc > -np.inf, by_head, pairs, single_root)
    arcs = lat.arc_head.shape[0]
    score = np.empty(arcs)
    largest = 0.0
    for a in range(arcs):
        score[a] = arc[lat.arc_head[a], lat.arc_mod[a]]
        largest = max(largest, abs(score[a]))
    memory[LARGEST_ARC] = largest
    for k in range(table.shape[0]):
        found = add_parts(lat, added, table[k, 0], table[k, 1:], values[k], keys[k], unlisted[k])
        largest = max(largest, found)
    memory[LARGEST] = largest
    u, best = np.zeros((2, arcs)), np.zeros((2, arcs))
    first_multipliers(lat, score, share, u[0])
    memory[BEST_DUAL] = memory[LAST_DUAL] = np.inf
    memory[BEST_PRIMAL] = -np.inf
    status, used = relax(lat, score, share, single_root, u[0], u[1], best[0], best[1], heads, np.zeros(arcs),
                         EPSILON * terms * terms * largest, POLYAK, max(largest, 1e-300), patience, shrink, lazy,
                         memory, trace)  # fmt: skip
    for a in range(arcs):
        h, m = lat.arc_head[a], lat.arc_mod[a]
        multipliers[0, h, m] = best[0, a]
        multipliers[1, h, m] = best[1, a]
        memory[LARGEST_U] = max(memory[LARGEST_U], abs(best[0, a]), abs(best[1, a]))
        memory[LARGEST_SUM] = max(memory[LARGEST_SUM], abs(best[0, a] + best[1, a]))
    return status, used
