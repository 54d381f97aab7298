"""The modifiers that each head may take, as acyclic lattices in flat arrays: built from part scores, and restricted.

Every head h has two lattices, 2 h (modifiers to its left) and 2 h + 1 (to its right). A path from the first to the
last state of a lattice takes some of the allowed modifiers of h, from the nearest outwards.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit

# Transitions that complete a part: every modifier, every one but the innermost; every end of a side, one after some
# modifier, one after none.
AT_MODIFIER, WITH_SIBLING, AT_END, AT_OUTERMOST, AT_EMPTY = 0, 1, 2, 3, 4
_SPARSE = 32  # cells of an array of all scores, for each score that is looked up


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
    state_ptr: np.ndarray  # (2n+3,) states of each lattice: the first is its start, the last its end
    state_arc: np.ndarray  # (V,) the arc taken on entering a state; -1 at start and end
    state_rank: np.ndarray  # (V,) rank of its modifier outwards from h, -1 at the start; never falls within a lattice
    in_ptr: np.ndarray  # (V+1,) transitions entering a state
    src: np.ndarray  # (E,) where a transition comes from: a state before the one it enters
    weight_ptr: np.ndarray  # (2n+3,) the weight of transition e of a lattice in column g is at
    weight: np.ndarray  # weight[weight_ptr[side] + (e - in_ptr[state_ptr[side]]) * width[h] + g]
    value_ptr: np.ndarray  # (2n+3,) where the values of the states of a lattice start, width[h] for each


@njit(cache=True, nogil=True)
def _numbered(allowed):
    """The allowed arcs in order of head, then modifier: heads, modifiers, and the number of each pair, or -1."""
    n = allowed.shape[0] - 1
    arc_id = np.full((n + 1, n + 1), -1, np.int64)
    count = 0
    for h in range(n + 1):
        for m in range(1, n + 1):
            if h != m and allowed[h, m]:
                arc_id[h, m] = count
                count += 1
    arc_head = np.empty(count, np.int64)
    arc_mod = np.empty(count, np.int64)
    for h in range(n + 1):
        for m in range(1, n + 1):
            if arc_id[h, m] >= 0:
                arc_head[arc_id[h, m]] = h
                arc_mod[arc_id[h, m]] = m
    return arc_head, arc_mod, arc_id


@njit(cache=True, nogil=True)
def _by_modifier(arc_id, count, by_head):
    """up_ptr, up and width of the lattices of so many arcs."""
    n = arc_id.shape[0] - 1
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
    return up_ptr, up, width


@njit(cache=True, nogil=True)
def _sizes(arc_id, width, pairs, single_root):
    """state_ptr, weight_ptr and value_ptr of the lattices, and the number of all transitions."""
    n = arc_id.shape[0] - 1
    sides = 2 * (n + 1)
    state_ptr = np.zeros(sides + 1, np.int64)
    weight_ptr = np.zeros(sides + 1, np.int64)
    value_ptr = np.zeros(sides + 1, np.int64)
    transitions = 0
    for side in range(sides):
        h = side // 2
        k = 0
        for m in range(1, n + 1):
            k += arc_id[h, m] >= 0 and (m > h) == (side % 2 == 1)
        states = k + 2
        edges = k * (k + 1) // 2 + k + 1
        if h == 0 and single_root:
            edges = 2 * k if side % 2 == 1 else 1
        elif pairs:
            states = k * (k + 1) // 2 + 2
            edges = k + (k - 1) * k * (k + 1) // 6 + k * (k + 1) // 2 + 1
        state_ptr[side + 1] = state_ptr[side] + states
        weight_ptr[side + 1] = weight_ptr[side] + edges * width[h]
        value_ptr[side + 1] = value_ptr[side] + states * width[h]
        transitions += edges
    return state_ptr, weight_ptr, value_ptr, transitions


@njit(cache=True, nogil=True)
def skeleton(allowed, by_head, pairs, single_root):
    """Lattices of the allowed arcs, all weights 0, and what each transition adds: (t, s, m) of shape (E, 3).

    A state is the last modifier taken, or, with ``pairs``, the last two. Taking m right after s, and s after t, has
    s == h when m is innermost and then t == -1; t == h when s is innermost, and also when states are not pairs. m is
    -1 on transitions into the end. With ``single_root`` node 0 takes exactly one modifier.
    """
    n = allowed.shape[0] - 1
    single_root = single_root and n > 0
    arc_head, arc_mod, arc_id = _numbered(allowed)
    up_ptr, up, width = _by_modifier(arc_id, arc_head.shape[0], by_head)
    state_ptr, weight_ptr, value_ptr, transitions = _sizes(arc_id, width, pairs, single_root)
    sides = 2 * (n + 1)
    state_arc = np.full(state_ptr[sides], -1, np.int64)
    state_rank = np.full(state_ptr[sides], -1, np.int64)
    in_ptr = np.zeros(state_ptr[sides] + 1, np.int64)
    src = np.empty(transitions, np.int64)
    added = np.full((transitions, 3), -1, np.int64)

    mods = np.empty(n + 1, np.int64)
    e = 0
    for side in range(sides):
        h = side // 2
        k = 0
        for d in range(1, n + 1):
            m = h + d if side % 2 == 1 else h - d
            if m >= 1 and m <= n and arc_id[h, m] >= 0:
                mods[k] = m
                k += 1
        star = h == 0 and single_root
        start = state_ptr[side]
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
            if v == start and star and side % 2 == 1:
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
    Returns the largest absolute finite score that was added.
    """
    width, state_ptr, in_ptr, weight, weight_ptr = lat.width, lat.state_ptr, lat.in_ptr, lat.weight, lat.weight_ptr
    arc_head, up, up_ptr = lat.arc_head, lat.up, lat.up_ptr
    by_g, by_h, by_d, by_t, by_s, by_m = strides[0], strides[1], strides[2], strides[3], strides[4], strides[5]
    n = width.shape[0] - 1
    dense = keys.shape[0] == 0 and values.shape[0] > 0
    first_key, span = 0, 0  # a list that is not too sparse is spread out, which is faster than searching it
    if keys.shape[0] > 0 and keys[-1] - keys[0] < _SPARSE * weight.shape[0]:
        first_key, span = keys[0], keys[-1] - keys[0] + 1
    spread = np.full(span, unlisted)
    if span > 0:
        for i in range(keys.shape[0]):
            spread[keys[i] - first_key] = values[i]
    largest = 0.0
    for side in range(2 * n + 2):
        h = side // 2
        first = in_ptr[state_ptr[side]]
        columns = width[h]
        if h == 0 and (by_g != 0 or side == 0):
            continue  # node 0 has no head and no left side, and no parts that score them
        for e in range(first, in_ptr[state_ptr[side + 1]]):
            t, s, m = added[e, 0], added[e, 1], added[e, 2]
            completes = m >= 0 if when <= WITH_SIBLING else m < 0
            if when in (WITH_SIBLING, AT_OUTERMOST):
                completes = completes and s != h
            elif when == AT_EMPTY:
                completes = completes and s == h
            if not completes:
                continue
            part = by_h * h + by_d * (side % 2) + by_t * t + by_s * s + by_m * m
            w = weight_ptr[side] + (e - first) * columns
            for g in range(columns):
                index = part
                if by_g != 0:
                    index += by_g * arc_head[up[up_ptr[h] + g]]
                if dense:
                    x = values[index]
                elif span > 0:
                    place = index - first_key
                    x = spread[place] if place >= 0 and place < span else unlisted
                else:
                    low, high = 0, keys.shape[0]
                    while low < high:
                        middle = (low + high) // 2
                        if keys[middle] < index:
                            low = middle + 1
                        else:
                            high = middle
                    x = values[low] if low < keys.shape[0] and keys[low] == index else unlisted
                weight[w + g] += x
                if x > -np.inf:
                    largest = max(largest, abs(x))
    return largest


@njit(cache=True, nogil=True)
def _kept(lat, keep, force):
    """up_ptr, up and width for the arcs with keep[a] = 1; the columns that these had; which arcs must be taken."""
    n = lat.width.shape[0] - 1
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
        if lat.by_head[0] == 1 and m > 0:
            width[m] = k - up_ptr[m]
        if force and k - up_ptr[m] == 1:
            forced[up[k - 1]] = 1
    up_ptr[n + 1] = k
    return up_ptr, up[:k].copy(), width, column, forced


@njit(cache=True, nogil=True)
def restrict(lat, keep, force):
    """The lattices with only the arcs for which keep[a] = 1; with ``force`` a modifier's only arc must be taken.

    Arcs keep their numbers; states, transitions and columns that cannot be used any more are gone.
    """
    sides = 2 * lat.width.shape[0]
    up_ptr, up, width, column, forced = _kept(lat, keep, force)
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
    for side in range(sides):
        h = side // 2
        first = lat.state_ptr[side]
        state_ptr[side] = states
        weight_ptr[side] = w
        value_ptr[side] = values
        must = -1  # rank of the outermost arc so far that has to be taken: no transition passes over it
        must_before = -1
        for v in range(first, lat.state_ptr[side + 1]):
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
                row = lat.weight_ptr[side] + (old - lat.in_ptr[first]) * lat.width[h]
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
        values += (states - state_ptr[side]) * width[h]
    state_ptr[sides] = states
    weight_ptr[sides] = w
    value_ptr[sides] = values
    return Lattices(
        lat.by_head,
        lat.arc_head,
        lat.arc_mod,
        up_ptr,
        up,
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
