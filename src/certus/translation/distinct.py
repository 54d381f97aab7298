"""Distinct translations: the best derivation of each string, among all derivations that score more than a number.

Derivations that may score more are the paths of a graph (``ForestTranslation.closed_form``). Two paths from one vertex
down that yield the same words are as good as each other to all around them, so that each vertex keeps the best of every
string it yields, and only strings that some path of more than the limit may use. However many derivations a string has,
it is kept once: lists are never spelt out derivation by derivation.

Scores are whole numbers: scores of the parts in steps of 2^-80, rounded up, which is far below any tolerance.
"""

from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certus.certificates.normal import Graph, NormalForm
from certus.checks import Ints
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph import sweeps
from certus.result import Result
from certus.translation.forest import TranslationForest

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

STEPS = 1 << 80  # to one
FIRST_MARGIN = 0.5
FEW = 5_000  # derivations of a forest that are all looked at
MOST = 1_000_000  # strings of vertices

Words = tuple[str, ...]


class Way(NamedTuple):
    """The best way to make a string: its score in steps, the edge of the graph, and the strings below."""

    score: int
    edge: int
    below: tuple[Words, ...]


class Strings:
    """``best[v]`` are the strings that vertex v of the graph yields in a derivation of more than ``above``."""

    def __init__(self, forest: TranslationForest, form: NormalForm, above: float) -> None:
        (graph,) = form.spaces
        assert isinstance(graph, Graph)
        self.forest, self.graph = forest, graph
        parts = [ceil(Fraction(x) * STEPS) for x in form.scores.tolist()]
        ptr, part = graph.part_ptr.tolist(), graph.part.tolist()
        self.cost: list[int] = [sum(parts[p] for p in part[a:b]) for a, b in pairwise(ptr)]
        self.tails = [graph.tail[a:b].tolist() for a, b in pairwise(graph.tail_ptr.tolist())]
        cells = form.cells["edges"]
        used = np.flatnonzero(cells >= 0)
        edge_of = dict(zip(cells[used].tolist(), used.tolist(), strict=True))
        self.edges = [edge_of.get(part[a], -1) if a < b else -1 for a, b in pairwise(ptr)]
        self.limit = floor(Fraction(above) * STEPS) if isfinite(above) else None
        self.best: list[dict[Words, Way]] = []
        self._bounds()
        for v in range(len(graph.in_ptr) - 1):
            self.best.append({})
            for e in range(graph.in_ptr[v], graph.in_ptr[v + 1]):
                self._add(v, e)
            if sum(map(len, self.best)) > MOST:
                raise NotSupported(f"more than {MOST} strings of parts of the sentence; ask for fewer translations.")

    def _bounds(self) -> None:
        """Best score of each vertex and of all around it; None where there is none."""
        n, ptr = len(self.graph.in_ptr) - 1, self.graph.in_ptr.tolist()
        self.inside: list[int | None] = []
        for v in range(n):
            found = [self._through(e) for e in range(ptr[v], ptr[v + 1])]
            self.inside.append(max((x for x in found if x is not None), default=None))
        self.outside: list[int | None] = [None] * n
        self.outside[-1:] = [0] * min(n, 1)
        for v in range(n - 1, -1, -1):
            above = self.outside[v]
            for e in range(ptr[v], ptr[v + 1]):
                whole = self._through(e)
                if whole is None or above is None:
                    continue
                for u in self.tails[e]:
                    around = above + whole - (self.inside[u] or 0)
                    known = self.outside[u]
                    self.outside[u] = around if known is None or around > known else known

    def _through(self, e: int) -> int | None:
        total = self.cost[e]
        for u in self.tails[e]:
            below = self.inside[u]
            if below is None:
                return None
            total += below
        return total

    def _add(self, v: int, e: int) -> None:
        """Take up the strings of edge e into v."""
        whole, above = self._through(e), self.outside[v]
        if whole is None or above is None:
            return
        made: list[tuple[int, tuple[Words, ...]]] = [(whole, ())]  # with the best of what is still to come
        for u in self.tails[e]:
            best = self.inside[u] or 0
            made = [
                (score - best + way.score, (*below, words))
                for score, below in made
                for words, way in self.best[u].items()
                if self.limit is None or score - best + way.score + above > self.limit
            ]
        known = self.best[v]
        for score, below in made:
            if self.limit is None or score + above > self.limit:
                words = self._yield(self.edges[e], below)
                if words not in known or score > known[words].score:
                    known[words] = Way(score, e, below)

    def _yield(self, edge: int, below: tuple[Words, ...]) -> Words:
        if edge < 0:
            return sum(below, ())
        forest, rest = self.forest, iter(below)
        out: list[str] = []
        for token in forest.token[forest.token_ptr[edge] : forest.token_ptr[edge + 1]].tolist():
            out.extend((forest.words[token],) if token >= 0 else next(rest))
        return tuple(out)

    def ranked(self) -> list[tuple[Words, int]]:
        """The strings of whole derivations and their scores, best first."""
        found = self.best[-1] if self.best else {}
        return sorted(((words, way.score) for words, way in found.items()), key=lambda pair: (-pair[1], pair[0]))

    def derivation(self, words: Words) -> list[int]:
        """Edges of the forest of the best derivation of a string, head before tails."""
        out, agenda = [], [(len(self.best) - 1, words)]
        while agenda:
            v, own = agenda.pop()
            way = self.best[v][own]
            if self.edges[way.edge] >= 0:
                out.append(self.edges[way.edge])
            agenda.extend(reversed(list(zip(self.tails[way.edge], way.below, strict=True))))
        return out


def distinct(problem: "ForestTranslation", best: Result[Ints], k: int) -> list[tuple[float, Ints]]:
    """Scores and derivations of the k best strings, best first; ``best`` is the result of decoding."""
    duals = best.certificate.duals or {}
    witness = {kind: duals[kind] for kind in ("pairs", "contexts") if kind in duals}
    margin = np.inf if sweeps.count(problem.translation_forest.graph) <= FEW else FIRST_MARGIN
    while True:
        above = best.score - margin
        try:
            form = problem.closed_form(above, witness or problem.make_witness(above)).form
        except InvalidInput as wrong:
            raise NotSupported(f"these are too many translations for this forest: {wrong} Ask for fewer.") from None
        strings = Strings(problem.translation_forest, form, above)
        listed = strings.ranked()[:k]
        if len(listed) == k or above == -np.inf:
            found = [np.array(strings.derivation(words), dtype=np.int64) for words, _ in listed]
            return [(problem.score(y), y) for y in found]
        margin = 2 * margin if margin < 1e6 else np.inf


def best_other(problem: "ForestTranslation", form: NormalForm, above: float, better: list[Words]) -> float:
    """The best of a graph that yields none of these strings, rounded up; ``above`` if that is no more."""
    strings, known = Strings(problem.translation_forest, form, above), set(better)
    for words, score in strings.ranked():
        if words not in known:
            value = float(Fraction(score, STEPS))
            return max(above, float(np.nextafter(value, np.inf)) if Fraction(value) * STEPS < score else value)
    return above
