"""Intersection of a hypergraph with a deterministic automaton, by need (Bar-Hillel; LR 2.2.5).

A group (v, q) holds every item (v, q, q2): the derivations of v whose symbols lead the automaton from q to q2. Groups
are asked for from the root and the initial state, and each asks for the groups of its tails, left to right, under the
states their left neighbours lead to; so no item is made that the initial state does not reach. Groups are finished
tails first, hence items are numbered bottom-up. Graph layout as in kernels.hypergraph.

The inner loops are functions of their own that only read and fill arrays: a loop in which an array may be replaced by a
larger one pays for counting references at every step.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.arrays import longer
from certus.kernels.compiling import njit


class Graph(NamedTuple):
    """A hypergraph with a weight for each edge. symbol (E,) is read where the tail is empty; -1 is the empty symbol."""

    in_ptr: np.ndarray
    tail_ptr: np.ndarray
    tail: np.ndarray
    weight: np.ndarray
    symbol: np.ndarray
    root: int


class Arcs(NamedTuple):
    """An automaton: target and weight (Q, S); the target is -1 where there is no arc."""

    target: np.ndarray
    weight: np.ndarray
    initial: int


class Groups(NamedTuple):
    """The groups finished so far, by an open-addressed table; items of group g: ptr[g] .. ptr[g + 1] - 1."""

    n_states: int
    keys: np.ndarray
    values: np.ndarray
    ptr: np.ndarray
    item_to: np.ndarray  # the state each item ends in


class Workspace(NamedTuple):
    """Scratch."""

    mark: np.ndarray  # (Q + 1,) counts up from call to call in its last cell
    reached: np.ndarray  # (2, Q)
    missing: np.ndarray  # (Q,)
    item_of: np.ndarray  # (Q,) within the group at hand: the item that ends in a state, or -1
    chosen: np.ndarray  # (longest tail,) the item chosen at each place, and where the items to choose from end
    end: np.ndarray


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
def _missing(tails, q, groups, work):
    """(number of missing groups, their vertex): those an edge with these tails, entered in state q, needs next.

    Their states are put in work.missing.
    """
    keys, values, ptr, item_to, n_states = groups.keys, groups.values, groups.ptr, groups.item_to, groups.n_states
    mark, reached, missing = work.mark, work.reached, work.missing
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
                for item in range(ptr[values[at]], ptr[values[at] + 1]):
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
def _enter(tails, place, state, groups, chosen, end):
    """Make the items of the vertex at a place, entered in a state, those to choose from."""
    at = _slot(groups.keys, np.int64(tails[place]), np.int64(state), groups.n_states)
    g = groups.values[at]
    chosen[place], end[place] = groups.ptr[g], groups.ptr[g + 1]


@njit(cache=True, nogil=True)
def _combine(tails, q, groups, work, n_items, head, out_tail):
    """(combinations, items): ways to choose items for the tails that fit end to end from state q.

    They are counted; and if head and out_tail have room, these get the head item and the tail items of each. A state
    that has no item in work.item_of yet gets the next one, from n_items on, noted in groups.item_to.
    """
    chosen, end, item_to, item_of = work.chosen, work.end, groups.item_to, work.item_of
    last = tails.shape[0] - 1
    count = np.int64(0)
    k = 0
    place = 0
    _enter(tails, place, q, groups, chosen, end)
    while place >= 0:
        if place < last and chosen[place] < end[place]:
            place += 1
            _enter(tails, place, item_to[chosen[place - 1]], groups, chosen, end)
            continue
        if place == last and head.shape[0] == 0:
            count += end[place] - chosen[place]
        elif place == last:
            for item in range(chosen[place], end[place]):
                to = item_to[item]
                if item_of[to] < 0:
                    item_of[to] = n_items
                    item_to[n_items] = to
                    n_items += 1
                head[count] = item_of[to]
                count += 1
                for i in range(last):
                    out_tail[k] = chosen[i]
                    k += 1
                out_tail[k] = item
                k += 1
        place -= 1
        if place >= 0:
            chosen[place] += 1
    return count, n_items


@njit(cache=True, nogil=True)
def _unfinished(graph, v, q, e, groups, work):
    """(edge, number of groups, vertex): the first edge into v from e on that lacks groups when entered in state q."""
    while e < graph.in_ptr[v + 1]:
        if graph.weight[e] > -np.inf:
            asked, u = _missing(graph.tail[graph.tail_ptr[e] : graph.tail_ptr[e + 1]], q, groups, work)
            if asked > 0:
                return e, asked, u
        e += 1
    return e, 0, np.int64(0)


@njit(cache=True, nogil=True)
def intersect(graph, arcs, limit):
    """Items and edges of the intersection, and the items of the root.

    Edges and arcs of weight -inf are left out. Returns (item_vertex, item_from, item_to, head, tail_ptr, tail, edge,
    weight, first, end): edges in no order within a group, root items first .. end - 1. Stops with first = -1 once there
    are more than limit edges or tail entries.
    """
    in_ptr, tail_ptr, tail, weight, symbol = graph.in_ptr, graph.tail_ptr, graph.tail, graph.weight, graph.symbol
    n_states = arcs.target.shape[0]
    longest = 1
    for e in range(tail_ptr.shape[0] - 1):
        longest = max(longest, tail_ptr[e + 1] - tail_ptr[e])
    keys, values = np.full(1024, -1, dtype=np.int64), np.empty(1024, dtype=np.int32)
    group_ptr, n_groups = np.zeros(1024, dtype=np.int32), 0
    item_vertex, item_from = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    item_to, n_items = np.empty(1024, dtype=np.int32), 0
    out_head, out_ptr = np.empty(1024, dtype=np.int32), np.zeros(1024, dtype=np.int32)
    out_edge, out_weight, n_edges = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float64), 0
    out_tail, n_tail = np.empty(1024, dtype=np.int32), 0
    item_of = np.full(n_states, -1, dtype=np.int32)
    work = Workspace(
        np.zeros(n_states + 1, dtype=np.int64), np.empty((2, n_states), dtype=np.int32),
        np.empty(n_states, dtype=np.int32), item_of,
        np.empty(longest, dtype=np.int32), np.empty(longest, dtype=np.int32),
    )  # fmt: skip
    stack = np.empty((1024, 3), dtype=np.int32)  # vertex, state, the first edge whose tails may not be finished
    stack[0, 0], stack[0, 1], stack[0, 2] = graph.root, arcs.initial, in_ptr[graph.root]
    depth = 1
    while depth > 0:
        v, q = np.int64(stack[depth - 1, 0]), np.int64(stack[depth - 1, 1])
        if keys[_slot(keys, v, q, n_states)] >= 0:
            depth -= 1
            continue
        groups = Groups(n_states, keys, values, group_ptr, item_to)
        stack[depth - 1, 2], asked, u = _unfinished(graph, v, q, stack[depth - 1, 2], groups, work)
        if asked > 0:  # first what is missing below, one place of one edge at a time
            while depth + asked > stack.shape[0]:
                stack = longer(stack)
            for i in range(asked):
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = u, work.missing[i], in_ptr[u]
                depth += 1
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
                groups = Groups(n_states, keys, values, group_ptr, item_to)
                count, _ = _combine(tails, q, groups, work, n_items, item_of[:0], item_of[:0])
            elif symbol[e] >= 0:
                state = np.int64(arcs.target[q, symbol[e]])
                if state < 0 or arcs.weight[q, symbol[e]] == -np.inf:
                    continue
                total += arcs.weight[q, symbol[e]]
            if n_edges + count > limit or n_tail + count * size > limit:
                none = item_of[:0]
                return none, none, none, none, none, none, none, out_weight[:0], np.int64(-1), np.int64(-1)
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
                groups = Groups(n_states, keys, values, group_ptr, item_to)
                _, n_items = _combine(tails, q, groups, work, n_items, out_head[n_edges:], out_tail[n_tail:])
            for _ in range(count):
                out_edge[n_edges] = e
                out_weight[n_edges] = total
                n_edges += 1
                n_tail += size
                out_ptr[n_edges] = n_tail
        if n_items > item_vertex.shape[0]:
            item_vertex, item_from = _grown(item_vertex, n_items), _grown(item_from, n_items)
        for item in range(first_item, n_items):
            item_vertex[item], item_from[item] = v, q
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
    g = values[_slot(keys, np.int64(graph.root), np.int64(arcs.initial), n_states)]
    return (
        item_vertex[:n_items], item_from[:n_items], item_to[:n_items], out_head[:n_edges], out_ptr[: n_edges + 1],
        out_tail[:n_tail], out_edge[:n_edges], out_weight[:n_edges], np.int64(group_ptr[g]), np.int64(group_ptr[g + 1]),
    )  # fmt: skip
