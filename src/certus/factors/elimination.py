"""Variables eliminated one after the other: a factor graph of small width spelt out as a dynamic program.

Eliminating v leaves a message over its neighbours, the separator: for each of their labels the best (or the sum) over
the labels of v of what the tables there and the messages before add up to. As a hypergraph: a vertex for each message
at each of its labels, with an edge for each label of v, whose tails are the label of v, the cells of the tables, and
the messages that v takes part in. Labels and cells of tables are axioms, so that each is one edge: a part. Derivations
are assignments, one to one.
"""

import heapq
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from certus.certificates.assembling import Layers
from certus.certificates.normal import Graph
from certus.checks import Ints

Scope = tuple[int, ...]


class Bucket(NamedTuple):
    """A variable and what is left of its neighbours when it is eliminated."""

    variable: int
    separator: Scope


def neighbours(n: int, scopes: Sequence[Scope]) -> list[set[int]]:
    """The variables that share a scope with each variable."""
    out: list[set[int]] = [set() for _ in range(n)]
    for scope in scopes:
        for v in scope:
            out[v].update(scope)
    for v, near in enumerate(out):
        near.discard(v)
    return out


def eliminated(near: list[set[int]], sizes: Sequence[int], limit: float) -> list[Bucket] | None:
    """An order of elimination, smallest bucket first, in which no bucket has more than ``limit`` cells; None if stuck.

    ``near``, as ``neighbours`` has it, is used up.
    """
    order: list[Bucket] = []
    cells = [_cells(v, near, sizes) for v in range(len(sizes))]
    waiting = [(size, v) for v, size in enumerate(cells)]
    heapq.heapify(waiting)
    while waiting:
        size, v = heapq.heappop(waiting)
        if size != cells[v]:
            continue  # an old entry
        if size > limit:
            return None
        cells[v] = 0
        separator = tuple(sorted(near[v]))
        for u in separator:
            near[u].update(separator)
            near[u] -= {u, v}
            now = _cells(u, near, sizes)
            if now != cells[u]:
                cells[u] = now
                heapq.heappush(waiting, (now, u))
        order.append(Bucket(v, separator))
    return order


def _cells(v: int, near: list[set[int]], sizes: Sequence[int]) -> int:
    return prod((sizes[u] for u in near[v]), start=sizes[v])


class Spelt(NamedTuple):
    """A graph whose parts are labels, v * K + s, and cells of tables, which are numbered after all labels."""

    graph: Graph
    part: Ints  # (E,) that each edge uses, -1 for none


def spelt_out(
    domains: Sequence[Ints], labels: int, tables: Sequence[tuple[Scope, int]], order: Sequence[Bucket]
) -> Spelt:
    """The dynamic program over the labels of ``domains``; ``tables`` are scopes and where their cells begin."""
    layers, axioms = Layers(), _Axioms()
    unary = [axioms.add(layers, v * labels + domain) for v, domain in enumerate(domains)]
    cells = []
    for scope, start in tables:
        cell = np.zeros((1,) * 0, dtype=np.int64)
        for v in scope:
            cell = cell[..., None] * labels + domains[v]
        cells.append(axioms.add(layers, start + cell.reshape(-1)))
    place = {bucket.variable: at for at, bucket in enumerate(order)}
    inputs: list[list[tuple[Scope, int]]] = [[] for _ in order]  # of each bucket: scopes, and the first vertex of each
    for (scope, _), first in zip(tables, cells, strict=True):
        inputs[min(place[v] for v in scope)].append((scope, first))
    ends = []
    for at, (v, separator) in enumerate(order):
        scope = (*separator, v)
        shape = tuple(len(domains[u]) for u in scope)
        given = [((v,), unary[v]), *inputs[at]]
        tails = [_at(shape, scope, own, first, domains) for own, first in given]
        degree = np.full(prod(shape[:-1]), shape[-1])
        edges = prod(shape)
        message = layers.add(degree, np.stack(tails, axis=1), np.full((edges, 1), -1))
        axioms.part.append(np.full(edges, -1))
        if separator:
            inputs[min(place[u] for u in separator)].append((separator, message))
        else:
            ends.append(message)
    layers.add(np.array([1]), np.array([ends], dtype=np.int64).reshape(1, -1), np.full((1, 1), -1))
    axioms.part.append(np.full(1, -1))
    return Spelt(layers.graph(), np.concatenate(axioms.part))


class _Axioms:
    """Edges without tails, one for each part."""

    def __init__(self) -> None:
        self.part: list[Ints] = []

    def add(self, layers: Layers, parts: Ints) -> int:
        self.part.append(parts)
        return layers.add(
            np.ones(len(parts), dtype=np.int64), np.empty((len(parts), 0), dtype=np.int64), parts[:, None]
        )


def _at(shape: tuple[int, ...], scope: Scope, own: Scope, first: int, domains: Sequence[Ints]) -> Ints:
    """For each cell of a bucket the vertex of what it takes from a table or message over some of its variables."""
    index, stride = np.zeros((1,) * len(shape), dtype=np.int64), 1
    for v in reversed(own):
        along = [1] * len(shape)
        axis = scope.index(v)
        along[axis] = shape[axis]
        index = index + stride * np.arange(shape[axis]).reshape(along)
        stride *= shape[axis]
    return first + np.broadcast_to(index, shape).reshape(-1)
