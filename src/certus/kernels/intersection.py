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
    """A hypergraph; symbol (E,) is read where the tail is empty, -1 is the empty symbol."""

    in_ptr: np.ndarray
    tail_ptr: np.ndarray
    tail: np.ndarray
    weight: np.ndarray
    symbol: np.ndarray
    root: int


class Automaton(NamedTuple):
    """target and weight (Q, S) of the arcs; the target is -1 where there is none."""

    target: np.ndarray
    weight: np.ndarray
    initial: int


class Groups(NamedTuple):
    """The finished groups: a table from (v, q) to their numbers, and the items of group g, ptr[g] .. ptr[g + 1] - 1."""

    keys: np.ndarray
    values: np.ndarray
    ptr: np.ndarray


class Items(NamedTuple):
    """Vertex and the two states of each item."""

    vertex: np.ndarray
    start: np.ndarray
    end: np.ndarray


class Edges(NamedTuple):
    """Edges of the intersection, and the edge of the graph that each comes from."""

    head: np.ndarray
    tail_ptr: np.ndarray
    tail: np.ndarray
    origin: np.ndarray
    weight: np.ndarray


class Counts(NamedTuple):
    """How much of the arrays is in use."""

    groups: int
    items: int
    edges: int
    tails: int


class Scratch(NamedTuple):
    """Work for one edge or group, (Q,) if not said otherwise."""

    item_of: np.ndarray  # within the group at hand: the item that ends in a state, -1 for none
    mark: np.ndarray  # (Q + 1,): counts up from call to call in its last cell
    reached: np.ndarray  # (2, Q)
    missing: np.ndarray
    chosen: np.ndarray  # (longest tail,)
    last: np.ndarray


@njit(cache=True, nogil=True)
def _grown(array, size):
    """A copy with room for size entries and at least twice the room of before."""
    new = np.empty(max(size, 2 * array.shape[0]), dtype=array.dtype)
    for i in range(array.shape[0]):
        new[i] = array[i]
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
def _ask(graph, v, q, e, groups, item_to, scratch):
    """The first edge of v from e on that, entered in state q, needs groups that are missing; how many, of which vertex.

    Their states are put in scratch.missing.
    """
    in_ptr, tail_ptr, tail, weight, _, _ = graph
    keys, values, group_ptr = groups
    mark, reached, missing = scratch.mark, scratch.reached, scratch.missing
    n_states = mark.shape[0] - 1
    while e < in_ptr[v + 1]:
        if weight[e] == -np.inf:
            e += 1
            continue
        reached[0, 0] = q
        n_reached = 1
        now = 0
        last = tail_ptr[e + 1] - 1
        for k in range(tail_ptr[e], last + 1):
            u = np.int64(tail[k])
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
                elif n_missing == 0 and k < last:
                    for item in range(group_ptr[values[at]], group_ptr[values[at] + 1]):
                        end = item_to[item]
                        if mark[end] != stamp:
                            mark[end] = stamp
                            reached[1 - now, n_next] = end
                            n_next += 1
            if n_missing > 0:
                return e, n_missing, u
            n_reached = n_next
            now = 1 - now
        e += 1
    return e, 0, np.int64(0)


@njit(cache=True, nogil=True)
def _enter(tails, place, q, groups, scratch):
    """Begin with the items of a tail that start in state q."""
    keys, values, group_ptr = groups
    g = values[_slot(keys, np.int64(tails[place]), np.int64(q), scratch.item_of.shape[0])]
    scratch.chosen[place] = group_ptr[g]
    scratch.last[place] = group_ptr[g + 1]


@njit(cache=True, nogil=True)
def _choose(begin, tails, q, groups, item_to, scratch):
    """The first, or the next, choice of an item for each tail but the last, end to end from state q; whether there is.

    The last tail may then take any of the items from scratch.chosen to scratch.last.
    """
    chosen, end = scratch.chosen, scratch.last
    last = tails.shape[0] - 1
    place = 0 if begin else last - 1
    if begin:
        _enter(tails, 0, q, groups, scratch)
    elif place >= 0:
        chosen[place] += 1
    while place >= 0 and place < last:
        if chosen[place] < end[place]:
            _enter(tails, place + 1, item_to[chosen[place]], groups, scratch)
            place += 1
        else:
            place -= 1
            if place >= 0:
                chosen[place] += 1
    return place == last


@njit(cache=True, nogil=True)
def _combinations(tails, q, groups, item_to, scratch):
    """Number of ways to choose items for the tails that fit end to end from state q."""
    last = tails.shape[0] - 1
    count = np.int64(0)
    more = _choose(True, tails, q, groups, item_to, scratch)
    while more:
        count += scratch.last[last] - scratch.chosen[last]
        more = _choose(False, tails, q, groups, item_to, scratch)
    return count


@njit(cache=True, nogil=True)
def _combine(tails, q, groups, item_to, n_items, scratch, head, out_tail):
    """head, out_tail <- head item and tail items of the combinations that _combinations counts; the number of items.

    A state that has no item in item_of yet gets the next one, from n_items on, noted in item_to.
    """
    item_of, chosen, end = scratch.item_of, scratch.chosen, scratch.last
    last = tails.shape[0] - 1
    n = 0
    k = 0
    more = _choose(True, tails, q, groups, item_to, scratch)
    while more:
        for item in range(chosen[last], end[last]):
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
        more = _choose(False, tails, q, groups, item_to, scratch)
    return n_items


@njit(cache=True, nogil=True)
def _with_room(edges, n_edges, n_tails):
    """The edges with room for so many, one more, and so many tails."""
    head, tail_ptr, tail, origin, weight = edges
    if n_edges >= tail_ptr.shape[0]:
        head, tail_ptr = _grown(head, n_edges + 1), _grown(tail_ptr, n_edges + 1)
        origin, weight = _grown(origin, n_edges + 1), _grown(weight, n_edges + 1)
    if n_tails > tail.shape[0]:
        tail = _grown(tail, n_tails)
    return Edges(head, tail_ptr, tail, origin, weight)


@njit(cache=True, nogil=True, inline="always")
def _add_edges(graph, automaton, group, groups, item_to, edges, counts, scratch):
    """Make the edges of the group (v, q), below which all is finished; limit says how many edges or tails are allowed.

    Returns item_to and edges, grown if need be, and the counts, with -1 items if there are too many.
    """
    v, q, limit = group
    n_groups, n_items, n_edges, n_tails = counts
    item_of, target, arc_weight = scratch.item_of, automaton.target, automaton.weight
    in_ptr, tail_ptr, tail, weight, symbol, _ = graph
    n_states = item_of.shape[0]
    for e in range(in_ptr[v], in_ptr[v + 1]):
        if weight[e] == -np.inf:
            continue
        tails = tail[tail_ptr[e] : tail_ptr[e + 1]]
        size = tails.shape[0]
        total = weight[e]
        state = q
        count = np.int64(1)
        if size > 0:
            count = _combinations(tails, q, groups, item_to, scratch)
        elif symbol[e] >= 0:
            state = np.int64(target[q, symbol[e]])
            if state < 0 or arc_weight[q, symbol[e]] == -np.inf:
                continue
            total += arc_weight[q, symbol[e]]
        if n_edges + count > limit or n_tails + count * size > limit:
            return item_to, edges, Counts(n_groups, -1, n_edges, n_tails)
        if n_items + min(count, n_states) > item_to.shape[0]:
            item_to = _grown(item_to, n_items + min(count, n_states))
        if n_edges + count >= edges.tail_ptr.shape[0] or n_tails + count * size > edges.tail.shape[0]:
            edges = _with_room(edges, n_edges + count, n_tails + count * size)
        if size == 0:
            if item_of[state] < 0:
                item_of[state] = n_items
                item_to[n_items] = state
                n_items += 1
            edges.head[n_edges] = item_of[state]
        else:
            heads = edges.head[n_edges : n_edges + count]
            out_tail = edges.tail[n_tails : n_tails + count * size]
            n_items = _combine(tails, q, groups, item_to, n_items, scratch, heads, out_tail)
        n_tails = _note(edges, n_edges, count, n_tails, size, e, total)
        n_edges += count
    return item_to, edges, Counts(n_groups, n_items, n_edges, n_tails)


@njit(cache=True, nogil=True)
def _note(edges, first, count, n_tails, size, origin, total):
    """Set origin, weight and tail_ptr of ``count`` edges with tails of one size; the number of tails."""
    tail_ptr, origins, weight = edges.tail_ptr, edges.origin, edges.weight
    for e in range(first, first + count):
        origins[e] = origin
        weight[e] = total
        n_tails += size
        tail_ptr[e + 1] = n_tails
    return n_tails


@njit(cache=True, nogil=True, inline="always")
def _close(groups, v, q, counts, n_states):
    """The groups with (v, q), whose items are all those that no other group has; and the counts."""
    keys, values, ptr = groups
    if 2 * counts.groups > keys.shape[0]:
        keys, values = _rehashed(keys, values, n_states)
    at = _slot(keys, v, q, n_states)
    keys[at] = v * n_states + q
    values[at] = counts.groups
    n_groups = counts.groups + 1
    if n_groups == ptr.shape[0]:
        ptr = _grown(ptr, n_groups + 1)
    ptr[n_groups] = counts.items
    return Groups(keys, values, ptr), Counts(n_groups, counts.items, counts.edges, counts.tails)


@njit(cache=True, nogil=True)
def intersect(graph, automaton, limit):
    """(items, edges, first, end): the intersection, and the items of the root, first .. end - 1.

    Edges and arcs of weight -inf are left out. Edges are in no order within a group. Stops with first = -1 once there
    are more than limit edges or tail entries.
    """
    n_states = automaton.target.shape[0]
    longest = 1
    for e in range(graph.tail_ptr.shape[0] - 1):
        longest = max(longest, graph.tail_ptr[e + 1] - graph.tail_ptr[e])
    scratch = Scratch(
        np.full(n_states, -1, dtype=np.int32),
        np.zeros(n_states + 1, dtype=np.int64),
        np.empty((2, n_states), dtype=np.int32),
        np.empty(n_states, dtype=np.int32),
        np.empty(longest, dtype=np.int32),
        np.empty(longest, dtype=np.int32),
    )
    room = np.empty((6, 1024), dtype=np.int32)
    groups = Groups(np.full(1024, -1, dtype=np.int64), room[0], np.zeros(1024, dtype=np.int32))
    item_vertex, item_start, item_to = room[1], room[2], room[3]
    edges = Edges(room[4], np.zeros(1024, dtype=np.int32), room[5], np.empty(1024, dtype=np.int32), np.empty(1024))
    counts = Counts(0, 0, 0, 0)
    stack = np.empty((1024, 3), dtype=np.int32)  # vertex, state, the first edge whose tails may not be finished
    stack[0, 0], stack[0, 1], stack[0, 2] = graph.root, automaton.initial, graph.in_ptr[graph.root]
    depth = 1
    while depth > 0:
        v, q = np.int64(stack[depth - 1, 0]), np.int64(stack[depth - 1, 1])
        if groups.keys[_slot(groups.keys, v, q, n_states)] >= 0:
            depth -= 1
            continue
        e, asked, u = _ask(graph, v, q, stack[depth - 1, 2], groups, item_to, scratch)
        stack[depth - 1, 2] = e
        if asked > 0:
            while depth + asked > stack.shape[0]:
                stack = longer(stack)
            for k in range(asked):
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = u, scratch.missing[k], graph.in_ptr[u]
                depth += 1
            continue
        first = counts.items
        item_to, edges, counts = _add_edges(
            graph, automaton, (v, q, limit), groups, item_to, edges, counts, scratch
        )  # fmt: skip
        if counts.items < 0:
            return Items(item_vertex[:0], item_start[:0], item_to[:0]), edges, -1, -1
        if counts.items > item_vertex.shape[0]:
            item_vertex, item_start = _grown(item_vertex, counts.items), _grown(item_start, counts.items)
        item_vertex[first : counts.items] = v
        item_start[first : counts.items] = q
        for item in range(first, counts.items):
            scratch.item_of[item_to[item]] = -1
        groups, counts = _close(groups, v, q, counts, n_states)
        depth -= 1
    g = groups.values[_slot(groups.keys, np.int64(graph.root), np.int64(automaton.initial), n_states)]
    items = Items(item_vertex[: counts.items], item_start[: counts.items], item_to[: counts.items])
    head, tail_ptr, tail, origin, weight = edges
    n = counts.edges
    out = Edges(head[:n], tail_ptr[: n + 1], tail[: counts.tails], origin[:n], weight[:n])
    return items, out, groups.ptr[g], groups.ptr[g + 1]
