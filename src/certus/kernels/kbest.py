"""The k best derivations of a hypergraph, made as they are asked for.

Lazy k-best extraction: [HuangChiang05], Algorithm 3. Differs: a rank vector is only raised at its last non-zero place
or after it, so each is reached in one way and no set of those seen is needed; the recursion is a stack of our own.

Layout of the graph: that of kernels/hypergraph.py. A derivation is a record: its value, its edge, and which derivation
of each vertex of the tail, from ``ranks[at]`` on. Candidates of a vertex are a pairing heap of records: ``child`` and
``next`` are the first below each and the next beside it. Ties go to the smallest edge, then to the record made first.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit


class Graph(NamedTuple):
    """The graph, its weights, and of each vertex the value and the edge of the best derivation."""

    in_ptr: np.ndarray
    tail_ptr: np.ndarray
    tail: np.ndarray
    weight: np.ndarray
    chart: np.ndarray
    back: np.ndarray


class Records(NamedTuple):
    """Derivations made so far; ``size`` holds how many there are, and how many entries of ``ranks`` they have."""

    size: np.ndarray  # (2,)
    value: np.ndarray
    edge: np.ndarray
    at: np.ndarray
    child: np.ndarray
    next: np.ndarray
    ranks: np.ndarray


class Vertices(NamedTuple):
    """What is known of each vertex: its place among those begun, -1 before; for these the rest."""

    place: np.ndarray  # (V,)
    begun: np.ndarray  # (1,)
    top: np.ndarray  # (R,) of the heap, -1 if it is empty
    count: np.ndarray  # (R,) derivations found
    expanded: np.ndarray  # (R,) of these, how many have passed on their successors
    start: np.ndarray  # (R,) where those found stand in ``found``
    room: np.ndarray  # (R,) how many may stand there
    used: np.ndarray  # (1,) entries of ``found``
    found: np.ndarray


@njit(cache=True, nogil=True)
def _doubled(array):
    """The array with as much room again."""
    more = np.empty(2 * array.shape[0], dtype=array.dtype)
    for i in range(array.shape[0]):
        more[i] = array[i]
    return more


@njit(cache=True, nogil=True)
def _with_room(records, more, entries):
    """Records with room for so many more, with so many ranks."""
    while records.size[0] + more > records.value.shape[0]:
        records = Records(
            records.size,
            _doubled(records.value),
            _doubled(records.edge),
            _doubled(records.at),
            _doubled(records.child),
            _doubled(records.next),
            records.ranks,
        )
    while records.size[1] + entries > records.ranks.shape[0]:
        records = Records(
            records.size,
            records.value,
            records.edge,
            records.at,
            records.child,
            records.next,
            _doubled(records.ranks),
        )
    return records


@njit(cache=True, nogil=True)
def merged(records, a, b):
    """The heap of two heaps."""
    if a < 0:
        return b
    if b < 0:
        return a
    x, y = records.value[a], records.value[b]
    if y > x or (y == x and (records.edge[b], b) < (records.edge[a], a)):
        a, b = b, a
    records.next[b] = records.child[a]
    records.child[a] = b
    return a


@njit(cache=True, nogil=True)
def popped(records, top):
    """The heap without its top: what lies below is merged by pairs, then one after the other."""
    pairs = -1  # merged pairs, the last one first
    a = records.child[top]
    while a >= 0:
        b = records.next[a]
        records.next[a] = -1
        after = -1
        if b >= 0:
            after = records.next[b]
            records.next[b] = -1
        pair = merged(records, a, b)
        records.next[pair] = pairs
        pairs = pair
        a = after
    heap = -1
    while pairs >= 0:
        after = records.next[pairs]
        records.next[pairs] = -1
        heap = merged(records, heap, pairs)
        pairs = after
    return heap


@njit(cache=True, nogil=True)
def _made(records, value, edge):
    """A new record, the last one; its ranks, if it has some, are written by the caller."""
    r = records.size[0]
    records.value[r] = value
    records.edge[r] = edge
    records.at[r] = records.size[1]
    records.child[r] = -1
    records.next[r] = -1
    records.size[0] += 1
    return r


@njit(cache=True, nogil=True)
def _begin(graph, vertices, records, v):
    """Candidates of v: each edge with the best of its tail. Room for them must be there."""
    place = vertices.begun[0]
    vertices.begun[0] += 1
    vertices.place[v] = place
    heap = -1
    for e in range(graph.in_ptr[v], graph.in_ptr[v + 1]):
        value = graph.weight[e]
        for k in range(graph.tail_ptr[e], graph.tail_ptr[e + 1]):
            value += graph.chart[graph.tail[k]]
        if value > -np.inf:
            r = _made(records, value, e)
            for _ in range(graph.tail_ptr[e], graph.tail_ptr[e + 1]):
                records.ranks[records.size[1]] = 0
                records.size[1] += 1
            heap = merged(records, heap, r)
    vertices.top[place] = heap
    vertices.count[place] = 0
    vertices.expanded[place] = 0
    vertices.room[place] = 0
    vertices.start[place] = 0


@njit(cache=True, nogil=True)
def _first_raised(graph, records, r):
    """The first place of the tail that the successors of a record may raise."""
    first, at = 0, records.at[r]
    for i in range(graph.tail_ptr[records.edge[r] + 1] - graph.tail_ptr[records.edge[r]]):
        if records.ranks[at + i] > 0:
            first = i
    return first


@njit(cache=True, nogil=True)
def _missing(graph, vertices, records, r, stack, depth):
    """Put what must be known before the successors of r on the stack; returns its depth."""
    begin = graph.tail_ptr[records.edge[r]]
    for i in range(_first_raised(graph, records, r), graph.tail_ptr[records.edge[r] + 1] - begin):
        u, rank = graph.tail[begin + i], records.ranks[records.at[r] + i] + 1
        place = vertices.place[u]
        known = place >= 0 and (
            vertices.count[place] > rank
            or (vertices.top[place] < 0 and vertices.expanded[place] == vertices.count[place])
        )
        if not known:
            stack[depth, 0] = u
            stack[depth, 1] = rank
            depth += 1
    return depth


@njit(cache=True, nogil=True)
def _record(vertices, v, rank):
    """The record of a derivation that was found."""
    return vertices.found[vertices.start[vertices.place[v]] + rank]


@njit(cache=True, nogil=True)
def _value(graph, vertices, records, v, rank):
    """What a derivation that was found scores."""
    return graph.chart[v] if rank == 0 else records.value[_record(vertices, v, rank)]


@njit(cache=True, nogil=True)
def _expand(graph, vertices, records, place, r):
    """Add the successors of r to the candidates of its vertex. Room for them must be there."""
    e = records.edge[r]
    begin, size = graph.tail_ptr[e], graph.tail_ptr[e + 1] - graph.tail_ptr[e]
    for i in range(_first_raised(graph, records, r), size):
        below = vertices.place[graph.tail[begin + i]]
        if vertices.count[below] <= records.ranks[records.at[r] + i] + 1:
            continue
        new = _made(records, 0.0, e)
        value = graph.weight[e]
        for j in range(size):
            rank = records.ranks[records.at[r] + j] + (i == j)
            records.ranks[records.size[1]] = rank
            records.size[1] += 1
            value += _value(graph, vertices, records, graph.tail[begin + j], rank)
        records.value[new] = value
        vertices.top[place] = merged(records, vertices.top[place], new)


@njit(cache=True, nogil=True)
def _more_vertices(vertices):
    """Vertices with as much room again for those begun."""
    return Vertices(
        vertices.place,
        vertices.begun,
        _doubled(vertices.top),
        _doubled(vertices.count),
        _doubled(vertices.expanded),
        _doubled(vertices.start),
        _doubled(vertices.room),
        vertices.used,
        vertices.found,
    )


@njit(cache=True, nogil=True)
def _append(vertices, place, r):
    """Add a record to those found for a vertex, which move where there is room for twice as many if need be."""
    count = vertices.count[place]
    if count == vertices.room[place]:
        room, start, new = max(2 * count, 4), vertices.start[place], vertices.used[0]
        while new + room > vertices.found.shape[0]:
            vertices = Vertices(
                vertices.place,
                vertices.begun,
                vertices.top,
                vertices.count,
                vertices.expanded,
                vertices.start,
                vertices.room,
                vertices.used,
                _doubled(vertices.found),
            )
        for i in range(count):
            vertices.found[new + i] = vertices.found[start + i]
        vertices.start[place] = new
        vertices.room[place] = room
        vertices.used[0] = new + room
    vertices.found[vertices.start[place] + count] = r
    vertices.count[place] = count + 1
    return vertices


@njit(cache=True, nogil=True)
def _derived(graph, vertices, records, root, rank, out, n):
    """Write the edges of a derivation of root, head before tails, from out[n] on; returns out, and where they end."""
    stack = np.empty((64, 2), dtype=np.int32)
    stack[0, 0], stack[0, 1] = root, rank
    depth = 1
    while depth > 0:
        depth -= 1
        v, rank = stack[depth, 0], stack[depth, 1]
        r = -1 if rank == 0 else _record(vertices, v, rank)
        e = graph.back[v] if rank == 0 else records.edge[r]
        if n == out.shape[0]:
            out = _doubled(out)
        out[n] = e
        n += 1
        size = graph.tail_ptr[e + 1] - graph.tail_ptr[e]
        while depth + size > stack.shape[0]:
            grown = np.empty((2 * stack.shape[0], 2), dtype=np.int32)
            for i in range(depth):
                grown[i, 0], grown[i, 1] = stack[i, 0], stack[i, 1]
            stack = grown
        for i in range(size - 1, -1, -1):
            stack[depth, 0] = graph.tail[graph.tail_ptr[e] + i]
            stack[depth, 1] = 0 if rank == 0 else records.ranks[records.at[r] + i]
            depth += 1
    return out, n


@njit(cache=True, nogil=True)
def _ensure(graph, vertices, records, v, rank):
    """Find derivations of v until there are more than ``rank``, or no more; returns vertices and records, with room."""
    stack = np.empty((64, 2), dtype=np.int32)
    stack[0, 0], stack[0, 1] = v, rank
    depth = 1
    while depth > 0:
        u, wanted = stack[depth - 1, 0], stack[depth - 1, 1]
        if vertices.place[u] < 0:
            if vertices.begun[0] == vertices.top.shape[0]:
                vertices = _more_vertices(vertices)
            a, b = graph.in_ptr[u], graph.in_ptr[u + 1]
            records = _with_room(records, b - a, graph.tail_ptr[b] - graph.tail_ptr[a])
            _begin(graph, vertices, records, u)
        place = vertices.place[u]
        count = vertices.count[place]
        if count > wanted:
            depth -= 1
            continue
        if vertices.expanded[place] < count:
            r = _record(vertices, u, count - 1)
            size = graph.tail_ptr[records.edge[r] + 1] - graph.tail_ptr[records.edge[r]]
            while depth + size > stack.shape[0]:
                grown = np.empty((2 * stack.shape[0], 2), dtype=np.int32)
                for i in range(depth):
                    grown[i, 0], grown[i, 1] = stack[i, 0], stack[i, 1]
                stack = grown
            deeper = _missing(graph, vertices, records, r, stack, depth)
            if deeper > depth:
                depth = deeper
                continue
            records = _with_room(records, size, size * size)
            _expand(graph, vertices, records, place, r)
            vertices.expanded[place] = count
        top = vertices.top[place]
        if top < 0:
            depth -= 1
            continue
        vertices.top[place] = popped(records, top)
        vertices = _append(vertices, place, top)
    return vertices, records


@njit(cache=True, nogil=True)
def kbest(graph, root, value):
    """value (k,) <- the scores of the k best derivations of root, best first; returns their edges, and where each ends.

    The second, of shape (k + 1,), has as many entries after the first as there are derivations, then -1. Derivations
    that use an edge of weight -inf are none; root must have one.
    """
    k, room = value.shape[0], 256
    records = Records(
        np.zeros(2, dtype=np.int64),
        np.empty(room),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
    )
    vertices = Vertices(
        np.full(graph.chart.shape[0], -1, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        np.empty(64, dtype=np.int32),
        np.empty(64, dtype=np.int32),
        np.empty(64, dtype=np.int32),
        np.empty(64, dtype=np.int64),
        np.empty(64, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.empty(room, dtype=np.int32),
    )
    ends = np.full(k + 1, -1, dtype=np.int64)
    out, n = np.empty(256, dtype=np.int32), 0
    ends[0] = 0
    value[0] = graph.chart[root]
    for rank in range(k):
        if rank > 0:
            vertices, records = _ensure(graph, vertices, records, root, rank)
            if vertices.count[vertices.place[root]] <= rank:
                break
            value[rank] = _value(graph, vertices, records, root, rank)
        out, n = _derived(graph, vertices, records, root, rank, out, n)
        ends[rank + 1] = n
    return out, ends
