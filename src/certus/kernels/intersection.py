"""Intersection of a hypergraph with a deterministic automaton, by need (Bar-Hillel; LR 2.2.5).

A group (v, q) holds every item (v, q, q2): the derivations of v whose symbols lead the automaton from q to q2. Groups
are asked for from the root and the initial state, and each asks for the groups of its tails, left to right, under the
states their left neighbours lead to; so no item is made that the initial state does not reach. Groups are finished
tails first, hence items are numbered bottom-up. Graph layout as in kernels.hypergraph.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _grown(array, size):
    """The array, or a copy with at least twice the room if it has no room for size entries."""
    if size <= array.shape[0]:
        return array
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
def intersect(in_ptr, tail_ptr, tail, weight, symbol, root, target, arc_weight, initial, limit):
    """Items and edges of the intersection, and the items of the root.

    symbol (E,) is read where the tail is empty; -1 is the empty symbol. target (Q, S) is -1 where there is no arc.
    Edges and arcs of weight -inf are left out. Returns (item_vertex, item_from, item_to, head, tail_ptr, tail, edge,
    weight, first, end): edges in no order within a group, root items first .. end - 1. Stops with first = -1 once there
    are more than limit edges or tail entries.
    """
    n_states = target.shape[0]
    longest = 0
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
    mark = np.full(n_states, -1, dtype=np.int64)
    stamp = 0
    frontier = np.empty(n_states, dtype=np.int32)
    following = np.empty(n_states, dtype=np.int32)
    at_item = np.empty(longest + 1, dtype=np.int64)  # per place in the tail: the item chosen
    end_item = np.empty(longest + 1, dtype=np.int64)

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
        top = depth - 1
        e = stack_edge[top]
        while e < in_ptr[v + 1] and depth == top + 1:
            if weight[e] > -np.inf:
                frontier[0] = q
                n_frontier = 1
                for k in range(tail_ptr[e], tail_ptr[e + 1]):
                    u = np.int64(tail[k])
                    stamp += 1
                    n_following = 0
                    for i in range(n_frontier):
                        p = np.int64(frontier[i])
                        at = _slot(keys, u, p, n_states)
                        if keys[at] < 0:
                            stack_vertex = _grown(stack_vertex, depth + 1)
                            stack_state = _grown(stack_state, depth + 1)
                            stack_edge = _grown(stack_edge, depth + 1)
                            stack_vertex[depth] = u
                            stack_state[depth] = p
                            stack_edge[depth] = in_ptr[u]
                            depth += 1
                            continue
                        g = values[at]
                        for item in range(group_ptr[g], group_ptr[g + 1]):
                            end = item_to[item]
                            if mark[end] != stamp:
                                mark[end] = stamp
                                following[n_following] = end
                                n_following += 1
                    if depth > top + 1 or n_following == 0:
                        break
                    frontier, following = following, frontier
                    n_frontier = n_following
            if depth == top + 1:
                e += 1
        stack_edge[top] = e
        if depth > top + 1:
            continue

        # All is finished below: make the group.
        first_item = n_items
        for e in range(in_ptr[v], in_ptr[v + 1]):
            if weight[e] == -np.inf:
                continue
            begin = tail_ptr[e]
            size = tail_ptr[e + 1] - begin
            total = weight[e]
            if size == 0:
                end = q
                if symbol[e] >= 0:
                    end = np.int64(target[q, symbol[e]])
                    if end < 0 or arc_weight[q, symbol[e]] == -np.inf:
                        continue
                    total += arc_weight[q, symbol[e]]
            else:
                g = values[_slot(keys, np.int64(tail[begin]), q, n_states)]
                at_item[0] = group_ptr[g]
                end_item[0] = group_ptr[g + 1]
            place = 0
            while place >= 0:
                if size > 0:
                    if at_item[place] == end_item[place]:
                        place -= 1
                        if place >= 0:
                            at_item[place] += 1
                        continue
                    end = np.int64(item_to[at_item[place]])
                    if place < size - 1:
                        g = values[_slot(keys, np.int64(tail[begin + place + 1]), end, n_states)]
                        place += 1
                        at_item[place] = group_ptr[g]
                        end_item[place] = group_ptr[g + 1]
                        continue
                if item_of[end] < 0:
                    item_vertex = _grown(item_vertex, n_items + 1)
                    item_from = _grown(item_from, n_items + 1)
                    item_to = _grown(item_to, n_items + 1)
                    item_vertex[n_items] = v
                    item_from[n_items] = q
                    item_to[n_items] = end
                    item_of[end] = n_items
                    n_items += 1
                if n_edges >= limit or n_tail + size >= limit:
                    empty = np.empty(0, dtype=np.int32)
                    return empty, empty, empty, empty, empty, empty, empty, out_weight[:0], -1, -1
                if n_edges + 2 > out_ptr.shape[0]:
                    out_head = _grown(out_head, n_edges + 2)
                    out_ptr = _grown(out_ptr, n_edges + 2)
                    out_edge = _grown(out_edge, n_edges + 2)
                    out_weight = _grown(out_weight, n_edges + 2)
                out_tail = _grown(out_tail, n_tail + size)
                out_head[n_edges] = item_of[end]
                out_edge[n_edges] = e
                out_weight[n_edges] = total
                for i in range(size):
                    out_tail[n_tail + i] = at_item[i]
                n_tail += size
                n_edges += 1
                out_ptr[n_edges] = n_tail
                if size == 0:
                    break
                at_item[place] += 1
        for item in range(first_item, n_items):
            item_of[item_to[item]] = -1
        if 2 * n_groups > keys.shape[0]:
            keys, values = _rehashed(keys, values, n_states)
        at = _slot(keys, v, q, n_states)
        keys[at] = v * n_states + q
        values[at] = n_groups
        n_groups += 1
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
