"""Posteriors of translations over what is left of a pruned problem: n-grams, samples, minimum risk [Tromble08].

p(y) is proportional to exp(scale * score). What is kept are all derivations that score more than the best less a
margin, as proofs find them (``closed_form``). How much of the mass lies outside is bounded, not estimated: outside,
scores are at most ``above``, so that with any l in 0 .. 1

    sum of exp(scale * score)  <=  exp((1 - l) * scale * above) * sum of exp(l * scale * score),

and sums over all derivations are bounded by a relaxation that can be summed (``mass_bounds``).
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from certus.certificates.normal import Closed, Graph
from certus.checks import Floats, Ints, as_positive_int
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph import Hypergraph, sweeps
from certus.result import Result
from certus.translation.accepted_forest import AcceptedForest
from certus.translation.forest_problem import ForestTranslation
from certus.translation.mass_bounds import SLACK, forest_mass_bounds, phrase_mass_bounds
from certus.translation.phrase_problem import PhraseTranslation

Words = tuple[str, ...]
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # l of the head of the file
MOST_EDGES = 3_000_000  # of the kept derivations, told apart by the words at their ends


class Kept(NamedTuple):
    """Derivations as a graph: the target side of each edge, of words and of ~k for what the k-th tail yields."""

    graph: Hypergraph
    sides: list[tuple[str | int, ...]]
    scores: Floats


class RiskDecision(NamedTuple):
    """A translation and its gain."""

    words: list[str]
    gain: float


class PrunedPosterior:
    """The posterior of a problem's derivations, restricted to those within a margin of the best.

    Parameters
    ----------
    problem : ForestTranslation or PhraseTranslation
        Under constraints, if it has any.
    margin : float
        Every derivation that scores more than the best score less this is kept; some others may be.
    scale : float
        The posterior is proportional to exp(scale * score); less than 1 makes it flatter.

    Attributes
    ----------
    best : Result
    left_out : float
        No more than this share of the mass of all derivations is outside. 1 says that nothing could be shown. It is
        found when it is first asked for, which takes longer than all else.
    log_mass : float
        ln of the sum of exp(scale * score) over what is kept.

    Raises
    ------
    NotSupported : the best is not proved, or the margin leaves too much.
    """

    def __init__(
        self, problem: ForestTranslation | PhraseTranslation, *, margin: float = 3.0, scale: float = 1.0
    ) -> None:
        for name, number in (("margin", margin), ("scale", scale)):
            if not isinstance(number, int | float) or not 0.0 < number < np.inf:
                raise InvalidInput(f"{name} is {number!r}; expected a number above 0.")
        self.problem, self.margin, self.scale = problem, float(margin), float(scale)
        self.best: Result[Any] = problem.decode()
        above = self.best.score - margin
        witness = problem.make_witness(above)
        try:
            closed: Closed = problem.closed_form(above, witness)
        except InvalidInput as wrong:
            raise NotSupported(f"a margin of {margin} keeps too much: {wrong} Give a smaller one.") from None
        self.kept = _kept(problem, closed)
        self.log_mass = sweeps.log_partition(self.kept.graph, self.scale * self.kept.scores)
        self._above, self._witness = above, witness

    def __repr__(self) -> str:
        return f"PrunedPosterior({self.count} derivations, margin={self.margin}, scale={self.scale})"

    @property
    def count(self) -> int:
        """How many derivations are kept."""
        return sweeps.count(self.kept.graph)

    @cached_property
    def left_out(self) -> float:
        """The most that the share of the mass outside can be."""
        above, witness = self._above, self._witness
        scales = [share * self.scale for share in SHARES]
        if isinstance(self.problem, PhraseTranslation):
            sums = phrase_mass_bounds(self.problem, above, scales)
        else:
            whole = self.problem.inner if isinstance(self.problem, AcceptedForest) else self.problem
            sums = forest_mass_bounds(whole, witness["pairs"], scales)
        outside = min((1.0 - share) * self.scale * above + total for share, total in zip(SHARES, sums, strict=True))
        rest = np.exp(min(sums[-1] - (self.log_mass - SLACK), 700.0)) - 1.0  # of the whole, less what is kept
        beside = min(np.exp(min(outside - (self.log_mass - SLACK), 700.0)), max(rest, 0.0))
        return float(beside / (1.0 + beside))

    # -- questions -------------------------------------------------------------------------------------------------

    def sample(self, k: int, *, seed: int | None = None) -> list[list[str]]:
        """k translations drawn from what is kept, each by itself."""
        drawn = sweeps.sample(self.kept.graph, self.scale * self.kept.scores, k, seed)
        return [self._yield(edges.tolist()) for edges in drawn]

    def ngram_expectations(self, order: int = 4) -> dict[Words, float]:
        """How often each n-gram of at most so many words is expected to stand in a translation of what is kept."""
        spelt = self._spelt(as_positive_int("order", order))
        uses = sweeps.marginals(spelt.graph, self.scale * self.kept.scores[spelt.origin])
        found: dict[Words, float] = {}
        for use, grams in zip(uses.tolist(), spelt.grams, strict=True):
            for gram in grams:
                found[gram] = found.get(gram, 0.0) + use
        return found

    def minimum_risk(self, *, order: int = 4, precision: float = 0.85, ratio: float = 0.72) -> RiskDecision:
        r"""The kept translation of the greatest expected gain, a linear approximation of BLEU [Tromble08].

        The gain of a translation is  -words + sum over its n-grams g of  expectation(g) / (4 precision ratio^(n - 1)).
        It is maximised exactly over what is kept; expectations, too, are over what is kept.
        """
        expected, spelt = self.ngram_expectations(order), self._spelt(order)
        factor = [1.0 / (order * precision * ratio**n) for n in range(order)]
        worth = {g: factor[len(g) - 1] * x - (len(g) == 1) for g, x in expected.items()}
        weights = np.array([sum(worth[g] for g in grams) for grams in spelt.grams])
        gain, edges = sweeps.best(spelt.graph, weights)
        origin = spelt.origin[edges]
        return RiskDecision(self._yield(origin.tolist()), gain)

    def _yield(self, edges: Sequence[int]) -> list[str]:
        """The words of a derivation, its edges head before tails."""
        rest, out = iter(edges), list[str]()
        pending: list[str | int] = [0]
        while pending:
            item = pending.pop()
            if isinstance(item, str):
                out.append(item)
            else:
                pending.extend(reversed(self.kept.sides[next(rest)]))
        return out

    @cached_property
    def _told_apart(self) -> dict[int, "Spelt"]:
        return {}

    def _spelt(self, order: int) -> "Spelt":
        if order not in self._told_apart:
            self._told_apart[order] = _spell(self.kept, order)
        return self._told_apart[order]


class Spelt(NamedTuple):
    """The kept derivations with the n-grams that each edge completes."""

    graph: Hypergraph
    origin: Ints  # of each edge among those kept
    grams: list[list[Words]]


def _kept(problem: ForestTranslation | PhraseTranslation, closed: Closed) -> Kept:
    """The graph of a closed form with words."""
    form = closed.form
    (g,) = form.spaces
    assert isinstance(g, Graph)
    if not len(g.tail_ptr) - 1:
        raise NotSupported("nothing scores more than the best less the margin; give a larger margin.")
    part_edge = np.repeat(np.arange(len(g.part_ptr) - 1), np.diff(g.part_ptr))
    scores = np.bincount(part_edge, form.scores[g.part], len(g.part_ptr) - 1).astype(np.float64)
    (cells,) = form.cells.values()
    named = np.full(len(form.scores), -1)
    named[cells[cells >= 0]] = np.flatnonzero(cells >= 0)
    own = np.full(len(scores), -1)
    known = named[g.part] >= 0
    own[part_edge[known]] = named[g.part[known]]
    sides: list[tuple[str | int, ...]] = []
    for e, k in enumerate(own.tolist()):
        tails = int(g.tail_ptr[e + 1] - g.tail_ptr[e])
        if isinstance(problem, PhraseTranslation):
            sides.append((*[0] * tails, *(problem.options[k].target if k >= 0 else ())))
        elif k < 0:
            sides.append((0,) * tails)
        else:
            forest = problem.translation_forest
            tokens = forest.token[forest.token_ptr[k] : forest.token_ptr[k + 1]].tolist()
            sides.append(tuple(forest.words[t] if t >= 0 else ~t for t in tokens))
    return Kept(Hypergraph(g.in_ptr, g.tail_ptr, g.tail, len(g.in_ptr) - 2), sides, scores)


End = tuple[Words, Words, bool]  # first words, last words, whether these are all


def _spell(kept: Kept, order: int) -> Spelt:
    """The derivations, their vertices told apart by the first and last order - 1 words of what they yield."""
    graph, most = kept.graph, order - 1
    before, after = _beside(kept)
    below: list[dict[End, int]] = []
    head, tails, origin, grams, n_new = list[int](), list[tuple[int, ...]](), list[int](), list[list[Words]](), 0
    for v in range(graph.root + 1):
        own: dict[End, int] = {}
        for e in graph.edges_into(v):
            tail = graph.tail_of(e).tolist()
            for choice in product(*(below[u].items() for u in tail)):
                (first, last, whole), found = _joined(kept.sides[e], [c[0] for c in choice], most)
                end = (first if before[v] else (), last if after[v] else (), whole and before[v] and after[v])
                if end not in own:
                    own[end], n_new = n_new, n_new + 1
                head.append(own[end])
                tails.append(tuple(c[1] for c in choice))
                origin.append(e)
                grams.append(found)
            if len(head) > MOST_EDGES:
                raise NotSupported(f"the kept derivations have more than {MOST_EDGES} edges; give a smaller margin.")
        below.append(own)
    for x in below[graph.root].values():
        head.append(n_new)
        tails.append((x,))
        origin.append(-1)
        grams.append([])
    sizes = np.array([len(t) for t in tails])
    made, edges, _ = Hypergraph.from_edges(
        np.array(head),
        np.concatenate(([0], np.cumsum(sizes))),
        np.array([x for t in tails for x in t], dtype=np.int64),
        n_vertices=n_new + 1,
        root=n_new,
    )
    return Spelt(made, np.array(origin, dtype=np.int64)[edges], [grams[e] for e in edges.tolist()])


def _beside(kept: Kept) -> tuple[list[bool], list[bool]]:
    """Of each vertex, whether anything may stand before what it yields, and after it; else its ends do not matter."""
    graph = kept.graph
    before, after = [False] * graph.n_vertices, [False] * graph.n_vertices
    heads = graph.heads.tolist()
    for e in range(graph.n_edges - 1, -1, -1):  # heads come after tails
        side, tail = kept.sides[e], graph.tail_of(e).tolist()
        for place, symbol in enumerate(side):
            if not isinstance(symbol, str):
                u = tail[symbol]
                before[u] = before[u] or place > 0 or before[heads[e]]
                after[u] = after[u] or place < len(side) - 1 or after[heads[e]]
    return before, after


def _joined(side: tuple[str | int, ...], ends: list[End], most: int) -> tuple[End, list[Words]]:
    """The ends of what an edge yields, and the n-grams that are in none of its tails."""
    runs: list[list[tuple[str, int]]] = [[]]  # words and the part that they are of; a new run after a gap
    for place, symbol in enumerate(side):
        if isinstance(symbol, str):
            runs[-1].append((symbol, place))
            continue
        first, last, whole = ends[symbol]
        runs[-1] += [(word, place) for word in first]
        if not whole:
            runs.append([(word, place) for word in last])
    own = {place for place, symbol in enumerate(side) if isinstance(symbol, str)}
    found = list(_new(runs, own, most + 1))
    first, last = (tuple(word for word, _ in run) for run in (runs[0], runs[-1]))
    if len(runs) == 1 and len(first) <= most:
        return (first, first, True), found
    return (first[:most], last[max(len(last) - most, 0) :], False), found


def _new(runs: list[list[tuple[str, int]]], own: set[int], order: int) -> Iterator[Words]:
    for run in runs:
        for i in range(len(run)):
            for j in range(i + 1, min(len(run), i + order) + 1):
                if run[i][1] != run[j - 1][1] or run[i][1] in own:
                    yield tuple(word for word, _ in run[i:j])
