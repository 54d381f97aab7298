"""Intersection of a hypergraph with a deterministic automaton, by need (Bar-Hillel; LR 2.2.5).

A group (v, q) holds every item (v, q, q2): the derivations of v whose symbols lead the automaton from q to q2. Groups
are asked for from the root and the initial state, and each asks for the groups of its tails, left to right, under the
states their left neighbours lead to; so no item is made that the initial state does not reach. Groups are finished
tails first, hence items are numbered bottom-up. Graph layout as in kernels.hypergraph.

The inner loops are functions of their own that only read and fill arrays: a loop in which an array may be replaced by a
larger one pays for counting references at every step.
"""

import numpy as np

from certus.kernels.compiling import njit


@njit(cache=True, nogil=True)
def _grown(array, size):
    """A copy with room for size entries and at least twice the room of before."""
    new = np.empty(max(size, 2 * array.shape[0]), dtype=array.dtype)
    new[: array.shape[0]] = array
    return new


@njit(cache=True, nogil=True)
def _slot(keys, v, q, n_states):
    """Where the key of (v, q) is, or would go, in an open-addressed table whose size is a power of two."""
    key = v * n_states + q
    mixed = v * 2654435761 + q * 2246822519
    at = (mixed ^ (mixed >> 29)) & (keys.shape[0] - 1)
    while keys[at] >= 0 and keys[at] != key:
        at = (at + 1) & (keys.shape[0] - 1)
    return at


@njit(cache=True, nogil=True)
def _rehashed(keys, values, n_states):
    """The table in twice the room."""
    new_keys = np.full(2 * keys.shape[0], -1, dtype=np.int64)
    new_values = np.empty(2 * keys.shape[0], dtype=np.int32)
    for i in range(keys.shape[0]):
        if keys[i] >= 0:
            at = _slot(new_keys, keys[i] // n_states, keys[i] % n_states, n_states)
            new_keys[at] = keys[i]
            new_values[at] = values[i]
    return new_keys, new_values


@njit(cache=True, nogil=True)
def _missing(tails, q, n_states, keys, values, group_ptr, item_to, mark, reached, missing):
    """(number of missing groups, their vertex): those an edge with these tails, entered in state q, needs next.

    Their states are put in missing. mark (Q,) counts up from call to call in its last cell; reached (2, Q) is scratch.
    """
    reached[0, 0] = q
    n_reached = 1
    now = 0
    for k in range(tails.shape[0]):
        u = np.int64(tails[k])
        mark[n_states] += 1
        stamp = mark[n_states]
        n_missing = 0
        n_next = 0
        for i in range(n_reached):
            p = np.int64(reached[now, i])
            at = _slot(keys, u, p, n_states)
            if keys[at] < 0:
                missing[n_missing] = p
                n_missing += 1
            elif n_missing == 0 and k < tails.shape[0] - 1:
                for item in range(group_ptr[values[at]], group_ptr[values[at] + 1]):
                    end = item_to[item]
                    if mark[end] != stamp:
                        mark[end] = stamp
                        reached[1 - now, n_next] = end
                        n_next += 1
        if n_missing > 0:
            return n_missing, u
        n_reached = n_next
        now = 1 - now
    return 0, np.int64(0)


@njit(cache=True, nogil=True)
def _combinations(tails, q, n_states, keys, values, group_ptr, item_to, chosen, end):
    """Number of ways to choose items for the tails that fit end to end from state q; chosen and end are scratch."""
    last = tails.shape[0] - 1
    count = np.int64(0)
    place = 0
    g = values[_slot(keys, np.int64(tails[0]), np.int64(q), n_states)]
    chosen[0] = group_ptr[g]
    end[0] = group_ptr[g + 1]
    while place >= 0:
        if place < last and chosen[place] < end[place]:
            place += 1
            state = np.int64(item_to[chosen[place - 1]])
            g = values[_slot(keys, np.int64(tails[place]), state, n_states)]
            chosen[place] = group_ptr[g]
            end[place] = group_ptr[g + 1]
            continue
        if place == last:
            count += end[place] - chosen[place]
        place -= 1
        if place >= 0:
            chosen[place] += 1
    return count


@njit(cache=True, nogil=True)
def _combine(tails, q, n_states, keys, values, group_ptr, item_to, item_of, n_items, chosen, end, head, out_tail):
    """head, out_tail <- head item and tail items of the combinations that _combinations counts; the number of items.

    A state that has no item in item_of yet gets the next one, from n_items on, noted in item_to.
    """
    last = tails.shape[0] - 1
    n = 0
    k = 0
    place = 0
    g = values[_slot(keys, np.int64(tails[0]), np.int64(q), n_states)]
    chosen[0] = group_ptr[g]
    end[0] = group_ptr[g + 1]
    while place >= 0:
        if place < last and chosen[place] < end[place]:
            place += 1
            state = np.int64(item_to[chosen[place - 1]])
            g = values[_slot(keys, np.int64(tails[place]), state, n_states)]
            chosen[place] = group_ptr[g]
            end[place] = group_ptr[g + 1]
            continue
        if place == last:
            for item in range(chosen[place], end[place]):
                to = item_to[item]
                if item_of[to] < 0:
                    item_of[to] = n_items
                    item_to[n_items] = to
                    n_items += 1
                head[n] = item_of[to]
                n += 1
                for i in range(last):
                    out_tail[k] = chosen[i]
                    k += 1
                out_tail[k] = item
                k += 1
        place -= 1
        if place >= 0:
            chosen[place] += 1
    return n_items


@njit(cache=True, nogil=True)
def intersect(in_ptr, tail_ptr, tail, weight, symbol, root, target, arc_weight, initial, limit):
    """Items and edges of the intersection, and the items of the root.

    symbol (E,) is read where the tail is empty; -1 is the empty symbol. target (Q, S) is -1 where there is no arc.
    Edges and arcs of weight -inf are left out. Returns (item_vertex, item_from, item_to, head, tail_ptr, tail, edge,
    weight, first, end): edges in no order within a group, root items first .. end - 1. Stops with first = -1 once there
    are more than limit edges or tail entries.
    """
    n_states = target.shape[0]
    longest = 1
    for e in range(tail_ptr.shape[0] - 1):
        longest = max(longest, tail_ptr[e + 1] - tail_ptr[e])

    keys = np.full(1024, -1, dtype=np.int64)  # of the finished groups
    values = np.empty(1024, dtype=np.int32)
    n_groups = 0
    group_ptr = np.zeros(1024, dtype=np.int32)  # items of group g: group_ptr[g] .. group_ptr[g + 1] - 1
    item_vertex = np.empty(1024, dtype=np.int32)
    item_from = np.empty(1024, dtype=np.int32)
    item_to = np.empty(1024, dtype=np.int32)
    n_items = 0
    out_head = np.empty(1024, dtype=np.int32)
    out_ptr = np.zeros(1024, dtype=np.int32)
    out_tail = np.empty(1024, dtype=np.int32)
    out_edge = np.empty(1024, dtype=np.int32)
    out_weight = np.empty(1024, dtype=np.float64)
    n_edges = 0
    n_tail = 0

    item_of = np.full(n_states, -1, dtype=np.int32)  # within the group at hand: the item that ends in a state
    mark = np.zeros(n_states + 1, dtype=np.int64)
    reached = np.empty((2, n_states), dtype=np.int32)
    missing = np.empty(n_states, dtype=np.int32)
    chosen = np.empty(longest, dtype=np.int32)
    end = np.empty(longest, dtype=np.int32)

    stack_vertex = np.empty(1024, dtype=np.int32)
    stack_state = np.empty(1024, dtype=np.int32)
    stack_edge = np.empty(1024, dtype=np.int32)  # the first edge whose tails may not be finished
    stack_vertex[0] = root
    stack_state[0] = initial
    stack_edge[0] = in_ptr[root]
    depth = 1
    while depth > 0:
        v = np.int64(stack_vertex[depth - 1])
        q = np.int64(stack_state[depth - 1])
        if keys[_slot(keys, v, q, n_states)] >= 0:
            depth -= 1
            continue

        # Ask for what is missing below, one place of one edge at a time.
        asked = 0
        e = stack_edge[depth - 1]
        while e < in_ptr[v + 1]:
            if weight[e] > -np.inf:
                tails = tail[tail_ptr[e] : tail_ptr[e + 1]]
                asked, u = _missing(tails, q, n_states, keys, values, group_ptr, item_to, mark, reached, missing)
                if asked > 0:
                    break
            e += 1
        stack_edge[depth - 1] = e
        if asked > 0:
            if depth + asked > stack_vertex.shape[0]:
                stack_vertex = _grown(stack_vertex, depth + asked)
                stack_state = _grown(stack_state, depth + asked)
                stack_edge = _grown(stack_edge, depth + asked)
            stack_vertex[depth : depth + asked] = u
            stack_state[depth : depth + asked] = missing[:asked]
            stack_edge[depth : depth + asked] = in_ptr[u]
            depth += asked
            continue

        # All is finished below: make the group.
        first_item = n_items
        for e in range(in_ptr[v], in_ptr[v + 1]):
            if weight[e] == -np.inf:
                continue
            tails = tail[tail_ptr[e] : tail_ptr[e + 1]]
            size = tails.shape[0]
            total = weight[e]
            state = q
            count = np.int64(1)
            if size > 0:
                count = _combinations(tails, q, n_states, keys, values, group_ptr, item_to, chosen, end)
            elif symbol[e] >= 0:
                state = np.int64(target[q, symbol[e]])
                if state < 0 or arc_weight[q, symbol[e]] == -np.inf:
                    continue
                total += arc_weight[q, symbol[e]]
            if n_edges + count > limit or n_tail + count * size > limit:
                empty = np.empty(0, dtype=np.int32)
                return empty, empty, empty, empty, empty, empty, empty, out_weight[:0], -1, -1
            if n_items + min(count, n_states) > item_to.shape[0]:
                item_to = _grown(item_to, n_items + min(count, n_states))
            if n_edges + count >= out_ptr.shape[0]:
                out_head = _grown(out_head, n_edges + count + 1)
                out_ptr = _grown(out_ptr, n_edges + count + 1)
                out_edge = _grown(out_edge, n_edges + count + 1)
                out_weight = _grown(out_weight, n_edges + count + 1)
            if n_tail + count * size > out_tail.shape[0]:
                out_tail = _grown(out_tail, n_tail + count * size)
            if size == 0:
                if item_of[state] < 0:
                    item_of[state] = n_items
                    item_to[n_items] = state
                    n_items += 1
                out_head[n_edges] = item_of[state]
            else:
                heads = out_head[n_edges : n_edges + count]
                items = out_tail[n_tail : n_tail + count * size]
                n_items = _combine(
                    tails, q, n_states, keys, values, group_ptr, item_to, item_of, n_items, chosen, end, heads, items
                )
            for _ in range(count):
                out_edge[n_edges] = e
                out_weight[n_edges] = total
                n_edges += 1
                n_tail += size
                out_ptr[n_edges] = n_tail
        if n_items > item_vertex.shape[0]:
            item_vertex = _grown(item_vertex, n_items)
            item_from = _grown(item_from, n_items)
        item_vertex[first_item:n_items] = v
        item_from[first_item:n_items] = q
        for item in range(first_item, n_items):
            item_of[item_to[item]] = -1
        if 2 * n_groups > keys.shape[0]:
            keys, values = _rehashed(keys, values, n_states)
        at = _slot(keys, v, q, n_states)
        keys[at] = v * n_states + q
        values[at] = n_groups
        n_groups += 1
        if n_groups == group_ptr.shape[0]:
            group_ptr = _grown(group_ptr, n_groups + 1)
        group_ptr[n_groups] = n_items
        depth -= 1
    g = values[_slot(keys, np.int64(root), np.int64(initial), n_states)]
    return (
        item_vertex[:n_items],
        item_from[:n_items],
        item_to[:n_items],
        out_head[:n_edges],
        out_ptr[: n_edges + 1],
        out_tail[:n_tail],
        out_edge[:n_edges],
        out_weight[:n_edges],
        group_ptr[g],
        group_ptr[g + 1],
    )
