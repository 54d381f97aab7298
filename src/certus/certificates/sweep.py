"""Best derivations of a graph by sweeps over its levels, in numpy; what certus.verify bounds graphs by.

Weights are float64 that hold whole numbers, or -inf for edges that no derivation may use; so long as no sum reaches
2^53, everything here is exact.

A plan cuts the vertices into blocks such that no edge has head and tail in the same block; a block is then a handful of
numpy calls. Blocks are runs of vertices as they are numbered, which costs nothing where a graph is numbered level by
level; a graph whose runs would be short is sorted by depth.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from certus.certificates.normal import Graph
from certus.certificates.rounding import Floats
from certus.checks import Ints
from certus.errors import InvalidInput

SHORT = 256  # edges of a block on average, below which it pays to look for larger ones
TINY = 16  # edges of a block on average, below which a loop in Python is faster than numpy


class Plan(NamedTuple):
    """The edges of a graph, block after block; vertices and edges are numbered in this order.

    ``columns`` are the first and second vertices in the tails, V where there is none; ``longer`` lists the edges with
    more, whose further tails are ``rest[rest_ptr[k] .. rest_ptr[k + 1]]``.
    """

    vertex: Ints | None  # (V,) the graph's own number of each vertex; None if they are the same
    edge: Ints | None  # (E,) likewise of each edge
    size: int  # V
    root: int
    head: Ints  # (E,)
    entered: Ints  # (H,) vertices that some edge enters
    first: Ints  # (H,) the first edge into each of these
    columns: tuple[Ints, ...]
    longer: Ints
    rest_ptr: Ints
    rest: Ints
    blocks: "list[_Block]"  # those that have edges


class _Block(NamedTuple):
    """A part of a plan: slices of its entered vertices, edges and longer edges."""

    entered: slice
    edges: slice
    longer: slice


def levels(graph: Graph) -> Plan:
    """The plan of a graph; InvalidInput if some tail is not numbered below its head."""
    bounds = _runs(graph)
    edges = len(graph.tail_ptr) - 1
    vertex, edge = None, None
    if edges < SHORT * (len(bounds) - 1) and len(bounds) > 8:
        depth = _depths(graph, bounds)
        ends = np.cumsum(np.bincount(depth))
        if 2 * len(ends) < len(bounds):
            graph, vertex, edge = _sorted_by(graph, depth)
            bounds = np.concatenate(([0], ends))
    return _plan(graph, vertex, edge, bounds)


def _runs(graph: Graph) -> Ints:
    """Where runs of vertices begin that depend on none of the same run; and the number of vertices."""
    size = len(graph.in_ptr) - 1
    tails = graph.tail_ptr[graph.in_ptr]  # of all edges into each vertex
    some = np.flatnonzero(np.diff(tails))
    last = np.full(size, -1)
    if len(some):
        last[some] = np.maximum.reduceat(graph.tail, tails[some])
    if (last >= np.arange(size)).any() or graph.tail.min(initial=0) < 0:
        v = int(np.argmax(last >= np.arange(size)))
        raise InvalidInput(f"vertex {v} has a tail that is not numbered below it; tails come before heads.")
    reach = np.maximum.accumulate(last) if size else last
    bounds = [0]
    while bounds[-1] < size:
        bounds.append(int(np.searchsorted(reach, bounds[-1])))
    return np.array(bounds)


def _depths(graph: Graph, bounds: Ints) -> Ints:
    """The longest way from each vertex down to an edge without tails."""
    size = len(graph.in_ptr) - 1
    tails = graph.tail_ptr[graph.in_ptr]
    if len(graph.tail) < TINY * len(bounds):
        ends, tail = tails.tolist(), graph.tail.tolist()
        found: list[int] = []
        for v in range(size):
            found.append(1 + max([found[u] for u in tail[ends[v] : ends[v + 1]]], default=-1))
        return np.array(found, dtype=np.int64)
    depth = np.zeros(size, dtype=np.int64)
    some = np.flatnonzero(np.diff(tails))
    at = np.searchsorted(some, bounds)
    for a, b in zip(at[:-1].tolist(), at[1:].tolist(), strict=True):
        if a < b:
            start = tails[some[a:b]]
            below = depth[graph.tail[start[0] : tails[some[b - 1] + 1]]]
            depth[some[a:b]] = 1 + np.maximum.reduceat(below, start - start[0])
    return depth


def _sorted_by(graph: Graph, depth: Ints) -> tuple[Graph, Ints, Ints]:
    """The graph with its vertices sorted by depth, and the old numbers of vertices and edges. Parts are left out."""
    vertex = np.argsort(depth, kind="stable")
    number = np.empty_like(vertex)
    number[vertex] = np.arange(len(vertex))
    in_ptr, edge = rows(graph.in_ptr, vertex)
    tail_ptr, tails = rows(graph.tail_ptr, edge)
    return graph._replace(in_ptr=in_ptr, tail_ptr=tail_ptr, tail=number[graph.tail[tails]]), vertex, edge


def rows(ptr: Ints, chosen: Ints, skip: int = 0) -> tuple[Ints, Ints]:
    """Offsets of the chosen rows of a ragged array laid end to end, and the places of their entries in it.

    The first ``skip`` entries of each row are left out.
    """
    sizes = np.diff(ptr)[chosen] - skip
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return offsets, np.repeat(ptr[chosen] + skip - offsets[:-1], sizes) + np.arange(offsets[-1])


def _plan(graph: Graph, vertex: Ints | None, edge: Ints | None, bounds: Ints) -> Plan:
    in_ptr, tail_ptr, tail = graph.in_ptr, graph.tail_ptr, graph.tail
    size = len(in_ptr) - 1
    degree, arity = np.diff(in_ptr), np.diff(tail_ptr)
    entered = np.flatnonzero(degree)
    padded = np.append(tail, size)
    columns = [
        np.where(arity > k, padded[np.minimum(tail_ptr[:-1] + k, len(tail))], size)
        for k in range(min(2, int(arity.max(initial=0))))
    ]
    longer = np.flatnonzero(arity > 2)
    rest_ptr, places = rows(tail_ptr, longer, skip=2)
    at = in_ptr[bounds]
    ends = np.stack((np.searchsorted(entered, bounds), at, np.searchsorted(longer, at)), 1).tolist()
    return Plan(
        vertex=vertex,
        edge=edge,
        size=size,
        root=size - 1 if vertex is None else int(np.flatnonzero(vertex == size - 1)[0]),
        head=np.repeat(np.arange(size), degree),
        entered=entered,
        first=in_ptr[entered],
        columns=tuple(columns),
        longer=longer,
        rest_ptr=rest_ptr,
        rest=tail[places],
        blocks=[_Block(*map(slice, a, b)) for a, b in pairwise(ends) if a[1] < b[1]],
    )


# -- weights and sweeps ----------------------------------------------------------------------------------------------


def edge_weights(graph: Graph, scores: Floats) -> Floats:
    """For each edge the sum of the scores (P,) of its parts."""
    weight = np.zeros(len(graph.part_ptr) - 1)
    some = np.flatnonzero(np.diff(graph.part_ptr))
    if len(some):
        weight[some] = np.add.reduceat(scores[graph.part], graph.part_ptr[some])
    return weight


def inside(plan: Plan, weight: Floats) -> Floats:
    """(V,) the weight of the best derivation of each vertex; -inf where there is none."""
    own = weight if plan.edge is None else weight[plan.edge]
    chart = _empty(plan)
    for block in plan.blocks:
        total = _totals(plan, block, own, chart)
        chart[plan.entered[block.entered]] = np.maximum.reduceat(total, plan.first[block.entered] - block.edges.start)
    return _by_vertex(plan, chart)


def edge_totals(plan: Plan, weight: Floats, chart: Floats) -> Floats:
    """(E,) the weight of the best derivation of its head that begins with each edge; ``chart`` is the inside chart."""
    own = weight if plan.edge is None else weight[plan.edge]
    everything = _Block(slice(None), slice(0, len(own)), slice(0, len(plan.longer)))
    return _by_edge(plan, _totals(plan, everything, own, _as_planned(plan, chart)))


def outside(plan: Plan, weight: Floats, chart: Floats) -> Floats:
    """(V,) the most that the rest of a derivation of the root around each vertex weighs.

    -inf for vertices that are in no derivation of the root.
    """
    return _by_vertex(plan, _around(plan, edge_totals(plan, weight, chart), chart)[0])


def edge_max_marginals(plan: Plan, weight: Floats, chart: Floats) -> Floats:
    """(E,) the weight of the best derivation of the root that uses each edge; -inf where there is none."""
    return _by_edge(plan, _around(plan, edge_totals(plan, weight, chart), chart)[1])


def _around(plan: Plan, total: Floats, chart: Floats) -> tuple[Floats, Floats]:
    """Outside chart and max-marginals of edges, both in the order of the plan."""
    below = _as_planned(plan, chart)
    below[below == -np.inf] = 0.0  # then the edge's total is -inf, and stays so
    around, through = np.full(plan.size + 1, -np.inf), total if plan.edge is None else total[plan.edge]
    around[plan.root] = 0.0
    for block in reversed(plan.blocks):
        best = around[plan.head[block.edges]] + through[block.edges]
        through[block.edges] = best
        for column in plan.columns:
            tail = column[block.edges]
            np.maximum.at(around, tail, best - below[tail])
        if block.longer.start < block.longer.stop:
            ends = plan.rest_ptr[block.longer.start : block.longer.stop + 1]
            tail = plan.rest[ends[0] : ends[-1]]
            edge = np.repeat(plan.longer[block.longer] - block.edges.start, np.diff(ends))
            np.maximum.at(around, tail, best[edge] - below[tail])
    return around, through


def _totals(plan: Plan, block: _Block, weight: Floats, chart: Floats) -> Floats:
    """Weights of the edges of a block plus the charts of their tails."""
    total = weight[block.edges].copy()
    for column in plan.columns:
        total += chart[column[block.edges]]
    if block.longer.start < block.longer.stop:
        ends = plan.rest_ptr[block.longer.start : block.longer.stop + 1]
        more = np.add.reduceat(chart[plan.rest[ends[0] : ends[-1]]], ends[:-1] - ends[0])
        total[plan.longer[block.longer] - block.edges.start] += more
    return total


def _empty(plan: Plan) -> Floats:
    """A chart in the order of the plan, with a 0 for tails that are not there."""
    chart = np.full(plan.size + 1, -np.inf)
    chart[plan.size] = 0.0
    return chart


def _as_planned(plan: Plan, chart: Floats) -> Floats:
    return np.append(chart if plan.vertex is None else chart[plan.vertex], 0.0)


def _by_vertex(plan: Plan, chart: Floats) -> Floats:
    return _back(chart[:-1], plan.vertex)


def _by_edge(plan: Plan, values: Floats) -> Floats:
    return _back(values, plan.edge)


def _back(values: Floats, number: Ints | None) -> Floats:
    """Values in the graph's own order."""
    if number is None:
        return values
    out = np.empty_like(values)
    out[number] = values
    return out


# -- derivations -----------------------------------------------------------------------------------------------------


def best_derivation(graph: Graph, plan: Plan, weight: Floats, chart: Floats) -> list[int]:
    """The edges of a best derivation of the root, head before tails; the first edge of those as good.

    InvalidInput if there is none.
    """
    root = len(graph.in_ptr) - 2
    if chart[root] == -np.inf:
        raise InvalidInput("the graph has no derivation; ask for one where the chart of the last vertex is not -inf.")
    total = edge_totals(plan, weight, chart)
    found, pending = [], [root]
    while pending:
        v = pending.pop()
        first, last = graph.in_ptr[v], graph.in_ptr[v + 1]
        e = int(first + np.argmax(total[first:last]))
        found.append(e)
        pending.extend(graph.tail[graph.tail_ptr[e] : graph.tail_ptr[e + 1]][::-1].tolist())
    return found


_Open = tuple[int, float, "_Open"] | None  # a vertex to derive, what those after it weigh at best, and these


def best_excluding(
    graph: Graph, plan: Plan, weight: Floats, chart: Floats, derivations: Sequence[Sequence[int]]
) -> float:
    """The weight of the best derivation of the root that is none of the given ones; -inf if there is none.

    A derivation is its edges, head before tails. Any other one leaves the given ones at some place: it shares the edges
    before with one of them and goes on with an edge that none of those with the same beginning has.
    """
    total = edge_totals(plan, weight, chart)
    best = -np.inf
    agenda: list[tuple[_Open, float, int, list[Sequence[int]]]] = []
    if derivations:
        agenda.append(((len(graph.in_ptr) - 2, 0.0, None), 0.0, 0, list(derivations)))
    else:
        return float(chart[-1])
    while agenda:
        pending, prefix, place, given = agenda.pop()
        if pending is None:
            if any(len(edges) != place for edges in given):
                raise InvalidInput(f"a derivation of {place} edges is given with more.")
            continue
        v, after, others = pending
        first, last = int(graph.in_ptr[v]), int(graph.in_ptr[v + 1])
        taken: dict[int, list[Sequence[int]]] = {}
        for edges in given:
            if len(edges) <= place or not first <= edges[place] < last:
                raise InvalidInput(f"a derivation has no edge into vertex {v} at place {place}, where one is due.")
            taken.setdefault(int(edges[place]), []).append(edges)
        rivals = total[first:last].copy()
        rivals[np.array(list(taken)) - first] = -np.inf
        best = max(best, prefix + float(rivals.max()) + after)
        for e, edges_with_it in taken.items():
            todo, rest = others, after
            for u in graph.tail[graph.tail_ptr[e] : graph.tail_ptr[e + 1]][::-1].tolist():
                todo, rest = (u, rest, todo), rest + float(chart[u])
            agenda.append((todo, prefix + float(weight[e]), place + 1, edges_with_it))
    return best


def derivation_using(graph: Graph, parts: Sequence[int]) -> list[int] | None:
    """The edges of the derivation that uses these parts, heads before tails, one an edge; None if there is none."""
    agenda: list[tuple[list[int], list[int]]] = [([len(graph.in_ptr) - 2], [])]
    while agenda:
        pending, edges = agenda.pop()
        if not pending or len(edges) == len(parts):
            if not pending and len(edges) == len(parts):
                return edges
            continue
        *others, v = pending
        first, last = int(graph.in_ptr[v]), int(graph.in_ptr[v + 1])
        for e in (first + np.flatnonzero(graph.part[first:last] == parts[len(edges)])).tolist():
            tails = graph.tail[graph.tail_ptr[e] : graph.tail_ptr[e + 1]].tolist()
            agenda.append(([*others, *reversed(tails)], [*edges, e]))
    return None
