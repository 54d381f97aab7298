"""From the items of a forest to the normal form of its derivations: a graph whose parts are edges and n-grams."""

from typing import TYPE_CHECKING

import numpy as np

from certus.certificates.normal import Graph, NormalForm
from certus.certificates.ragged import flat, offsets
from certus.checks import Bools, Floats, Ints
from certus.translation.forest import TranslationForest
from certus.translation.forest_items import Ways
from certus.translation.language_model import LanguageModel
from certus.translation.lm_lookup import advance
from certus.translation.scored_forest import ScoredForest

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation


def score_terms(lm: LanguageModel, lm_weight: float, words: Ints, terms: Ints) -> Floats:
    """Weighted ln p of the word after the state of each row, as ``ForestTranslation.terms`` has it.

    Words are numbered as in ``words``.
    """
    return lm_weight * advance(lm, terms[:, 0], words[terms[:, 1]])[0]


def assembled(problem: "ForestTranslation", prepared: ScoredForest, words: Ints, ways: Ways | None) -> NormalForm:
    """The derivations of the top's item. Items of the graph that yield nothing come first, one for each vertex."""
    forest = problem.translation_forest
    cells = np.full(forest.graph.n_edges, -1, dtype=np.int64)
    if ways is None or ways.top < 0:
        zero = np.zeros(2, dtype=np.int64)
        return NormalForm(np.zeros(0), (Graph(zero, zero[:1], zero[:0], zero[:1], zero[:0]),), {"edges": cells})
    tail, used = _reached(ways)
    head, edge, tail = ways.head[used], ways.edge[used], tail[used]
    items, number = np.unique(head, return_inverse=True)
    renumbered = np.full(ways.top + 2, -1)  # the last one for -1, no item
    renumbered[items] = np.arange(len(items))
    empty = _Empty(forest, prepared, edge)
    tails = empty.tails(edge, np.where(tail >= 0, renumbered[tail] + len(empty.vertices), -1))
    term = np.column_stack([column[used] for column in ways.term])
    grams, terms = np.unique(term, return_inverse=True)
    origin = prepared.origin[edge]
    edges = np.union1d(origin[origin >= 0], empty.edges)
    cells[edges] = np.arange(len(edges))
    missing = int(len(grams) and grams[0] < 0)
    terms = terms.reshape(term.shape) - missing
    parts = np.column_stack((np.append(cells, -1)[origin], np.where(terms >= 0, terms + len(edges), -1)))
    scores = score_terms(problem.lm, problem.lm_weight, words, ways.terms[grams[missing:]])
    below = np.column_stack((cells[empty.edges], np.full((len(empty.edges), parts.shape[1] - 1), -1)))
    tail_ptr, flat_tail = flat(_stacked(empty.below, tails))
    part_ptr, flat_part = flat(np.concatenate((below, parts)))
    degree = np.bincount(np.concatenate((empty.heads, number + len(empty.vertices))))
    graph = Graph(offsets(degree), tail_ptr, flat_tail, part_ptr, flat_part)
    return NormalForm(np.concatenate((forest.weights[edges], scores)), (graph,), {"edges": cells})


def path(form: NormalForm, forest: TranslationForest, edges: list[int]) -> list[int] | None:
    """Edges of the graph of a derivation, head before tails; None if the graph does not hold it.

    An edge and the items below it make one item, so that the way up is found without a search.
    """
    (graph,) = form.spaces
    assert isinstance(graph, Graph)
    cells, tails = form.cells["edges"], np.diff(forest.graph.tail_ptr)
    parts = cells[edges]
    if not len(graph.part) or (parts < 0).any():
        return None
    first = np.where(np.diff(graph.part_ptr) > 0, np.append(graph.part, -1)[graph.part_ptr[:-1]], -1)
    first[first >= cells.max() + 1] = -1  # the top's own: it has no edge of the forest
    own = np.flatnonzero(np.isin(first, parts))
    head = np.repeat(np.arange(len(graph.in_ptr) - 1), np.diff(graph.in_ptr))
    known = {(int(first[k]), *graph.tail[graph.tail_ptr[k] : graph.tail_ptr[k + 1]].tolist()): int(k) for k in own}
    done: list[list[int]] = []  # of the subtrees complete so far, from right to left: their edges
    for e in reversed(edges):
        below = [done.pop() for _ in range(tails[e])]
        k = known.get((int(cells[e]), *(int(head[x[0]]) for x in below)))
        if k is None:
            return None
        done.append([k, *(y for x in below for y in x)])
    top = [
        k
        for k in range(int(graph.in_ptr[-2]), int(graph.in_ptr[-1]))
        if graph.tail[graph.tail_ptr[k]] == head[done[0][0]]
    ]
    return [top[0], *done[0]] if top else None


def _reached(ways: Ways) -> tuple[Ints, Bools]:
    """(items below each way, by place; whether the way is in a derivation of the top's item)."""
    tail = np.column_stack(ways.tail)
    item = np.zeros(ways.top + 2, dtype=bool)  # the last one is no item
    item[ways.top] = True
    while True:
        used = item[ways.head]
        n = int(item.sum())
        item[tail[used].reshape(-1)] = True
        item[-1] = False
        if int(item.sum()) == n:
            return tail, used


class _Empty:
    """Derivations that yield nothing, of the vertices that edges (prepared ones) leave out."""

    def __init__(self, forest: TranslationForest, prepared: ScoredForest, edges: Ints) -> None:
        self.forest, self.prepared = forest, prepared
        graph = forest.graph
        self.places: dict[int, list[int]] = {}  # per edge: the vertices of its tail, -1 for those that yield something
        for e in np.unique(edges).tolist():
            if e in prepared.empties:
                origin = int(prepared.origin[e])
                tail = graph.tail_of(origin).tolist() if origin >= 0 else [graph.root]
                ways = prepared.empties[e]
                self.places[e] = [-1 if way is None else v for v, way in zip(tail, ways, strict=True)]
        wanted = {v for places in self.places.values() for v in places if v >= 0}
        self.vertices: list[int] = []
        rows: list[tuple[int, int]] = []  # vertex, edge
        if wanted:
            rows = self._rows(wanted)
        number = {v: i for i, v in enumerate(self.vertices)}
        self.number = number
        self.heads = np.array([number[v] for v, _ in rows], dtype=np.int64)
        self.edges = np.array([e for _, e in rows], dtype=np.int64)
        self.below = _table([[number[u] for u in graph.tail_of(e).tolist()] for _, e in rows])

    def _rows(self, wanted: set[int]) -> list[tuple[int, int]]:
        """Vertices and edges of derivations that yield nothing, of the wanted vertices and those below them."""
        graph, sizes = self.forest.graph, np.diff(self.forest.token_ptr)
        bare = np.flatnonzero((sizes == np.diff(graph.tail_ptr)) & (self.forest.weights > -np.inf))
        by_vertex: dict[int, list[int]] = {}
        for e, v in zip(bare.tolist(), graph.heads[bare].tolist(), strict=True):
            if all(u in by_vertex for u in graph.tail_of(e).tolist()):
                by_vertex.setdefault(v, []).append(e)
        rows: list[tuple[int, int]] = []
        for v in sorted(by_vertex, reverse=True):
            if v in wanted:
                self.vertices.append(v)
                rows.extend((v, e) for e in reversed(by_vertex[v]))
                wanted |= {u for e in by_vertex[v] for u in graph.tail_of(e).tolist()}
        self.vertices.reverse()
        return rows[::-1]

    def tails(self, edge: Ints, tail: Ints) -> Ints:
        """Tails of the graph's edges, with what yields nothing in its place."""
        if not self.places:
            return tail
        rows = []
        for e, row in zip(edge.tolist(), tail.tolist(), strict=True):
            items = [x for x in row if x >= 0]
            if e in self.places:
                rest = iter(items)
                items = [next(rest) if v < 0 else self.number[v] for v in self.places[e]]
            rows.append(items)
        return _table(rows)


def _table(rows: list[list[int]]) -> Ints:
    """Rows of different lengths, -1 after them."""
    out = np.full((len(rows), max(map(len, rows), default=0)), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def _stacked(a: Ints, b: Ints) -> Ints:
    """One table below the other, -1 where one is narrower."""
    width = max(a.shape[1], b.shape[1])
    return np.concatenate([np.pad(x, ((0, 0), (0, width - x.shape[1])), constant_values=-1) for x in (a, b)])
