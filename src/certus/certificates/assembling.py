"""Graphs in normal form made of edges in any order: put in levels, cut down to what derivations use, and read back."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from certus.certificates import sweep
from certus.certificates.layers import normal_form
from certus.certificates.normal import Graph, NormalForm
from certus.certificates.ragged import offsets, ragged
from certus.certificates.rounding import Floats
from certus.checks import Bools, Ints
from certus.errors import InvalidInput


class _Edges(NamedTuple):
    """Some edges, by level of their heads: tails (E, any) and parts (E, any), -1 for none."""

    head: Ints
    tails: Ints
    parts: Ints

    def at(self, at: Ints | Bools) -> "_Edges":
        """Some of the edges."""
        return _Edges(self.head[at], self.tails[at], self.parts[at])


class Assembly:
    """Vertices, edges and parts of a graph, many at a time. Edges lead from lower to higher levels."""

    def __init__(self) -> None:
        self._levels: list[Ints] = []
        self._edges: list[_Edges] = []
        self._scores: list[Floats] = []
        self.n_vertices = self.n_parts = 0

    def vertices(self, level: Ints) -> Ints:
        """The numbers of new vertices at these levels."""
        self._levels.append(level.reshape(-1))
        first, self.n_vertices = self.n_vertices, self.n_vertices + level.size
        return np.arange(first, self.n_vertices).reshape(level.shape)

    def parts(self, scores: Floats, *, always: bool = False) -> Ints:
        """The numbers of new parts; -1 for those that score 0, which need not be told, unless ``always``."""
        self._scores.append(scores)
        first, self.n_parts = self.n_parts, self.n_parts + len(scores)
        numbers = np.arange(first, self.n_parts)
        return numbers if always else np.where(scores == 0.0, -1, numbers)

    def edges(self, head: Ints, tails: Sequence[Ints], parts: Sequence[Ints]) -> None:
        """New edges: in tails and parts one array for each place, -1 where an edge has none."""
        size = (len(head), 0)
        columns = (np.stack(c, axis=1) if c else np.empty(size, dtype=np.int64) for c in (tails, parts))
        self._edges.append(_Edges(head, *columns))

    def form(self, root: int, cells: Mapping[str, Ints]) -> NormalForm:
        """The normal form of the derivations of a vertex: without dead edges, and parts that no edge uses."""
        level = np.concatenate(self._levels)
        scores = np.concatenate((*self._scores, np.zeros(1)))
        allowed = (batch.at(np.all(scores[batch.parts] > -np.inf, axis=1)) for batch in self._edges)
        kept = _useful([batch.at(np.argsort(level[batch.head], kind="stable")) for batch in allowed], level, root)
        used = np.zeros(len(level), dtype=bool)
        used[root] = True
        for batch in kept:
            used[batch.head] = True
        order = np.flatnonzero(used)
        order = order[np.argsort(level[order], kind="stable")]
        number = np.zeros(len(level), dtype=np.int64)
        number[order] = np.arange(len(order))
        return normal_form(_joined(kept, number, len(order)), scores[:-1], cells)


def _useful(batches: list[_Edges], level: Ints, root: int) -> list[_Edges]:
    """The edges that are in derivations of the root; batches are sorted by level."""
    places = []
    for k, batch in enumerate(batches):
        found, first, count = np.unique(level[batch.head], return_index=True, return_counts=True)
        places += [(here, k, slice(a, a + b)) for here, a, b in np.stack((found, first, count), axis=1).tolist()]
    places.sort(key=lambda place: place[:2])
    alive = np.zeros(len(level) + 1, dtype=bool)
    alive[-1] = True  # a tail that is not there
    keep = [np.zeros(len(batch.head), dtype=bool) for batch in batches]
    for _, k, block in places:
        keep[k][block] = alive[batches[k].tails[block]].all(axis=1)
        alive[batches[k].head[block][keep[k][block]]] = True
    wanted = np.zeros(len(level) + 1, dtype=bool)
    wanted[root] = True
    for _, k, block in reversed(places):
        keep[k][block] &= wanted[batches[k].head[block]]
        wanted[batches[k].tails[block][keep[k][block]]] = True
    return [batch.at(mask) for batch, mask in zip(batches, keep, strict=True)]


def _joined(batches: list[_Edges], number: Ints, size: int) -> Graph:
    """The graph of all edges, its vertices renumbered."""
    head = np.concatenate([number[batch.head] for batch in batches])
    order = np.argsort(head, kind="stable")
    tail_ptr, tail = _reordered([batch.tails for batch in batches], order)
    part_ptr, part = _reordered([batch.parts for batch in batches], order)
    return Graph(offsets(np.bincount(head, minlength=size)), tail_ptr, number[tail], part_ptr, part)


def _reordered(tables: list[Ints], order: Ints) -> tuple[Ints, Ints]:
    """What is there (not -1) in the rows of all tables, in another order: offsets and entries."""
    sizes = np.concatenate([(table >= 0).sum(axis=1) for table in tables])
    entries = np.concatenate([table[table >= 0] for table in tables])
    row, place = ragged(sizes[order])
    return offsets(sizes[order]), entries[offsets(sizes)[order[row]] + place]


def derivation(form: NormalForm, used: Mapping[str, Floats]) -> list[int]:
    """The edges, heads before tails, of the derivation of the only space that uses these cells of views and no others.

    InvalidInput if there is none. Derivations must differ in the cells that they use.
    """
    (graph,) = form.spaces
    assert isinstance(graph, Graph)
    scores, count = np.zeros(len(form.scores)), 0.0
    for view, indicator in used.items():
        flat, part = indicator.reshape(-1), form.cells[view]
        scores[part[part >= 0]] = np.where(flat > 0, 1.0, -np.inf)[part >= 0]
        count += float(flat.sum())
    plan, weight = sweep.levels(graph), sweep.edge_weights(graph, scores)
    chart = sweep.inside(plan, weight)
    if chart[-1] != count:
        raise InvalidInput("the structure uses a forbidden part: the normal form does not have it.")
    return sweep.best_derivation(graph, plan, weight, chart)
