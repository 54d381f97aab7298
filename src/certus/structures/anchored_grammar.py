"""Grammars whose rules are scored for each sentence: compound grammars and other neural ones."""

from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from certus import kernels
from certus.certificates.assembling import normal_form
from certus.certificates.normal import Closed, Graph
from certus.certificates.rounding import of_sum
from certus.certificates.sound import measured, sound_list, summed
from certus.checks import OBJECT, Bools, Floats, Ints, as_generator, as_positive_int, as_wanted, one_of
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.hypergraph import Forest
from certus.problem import Penalties
from certus.result import Result, Solution
from certus.structures.anchored_sums import Scores, Sums, gathered, sums, swept, widths
from certus.structures.layout import Edges, Layout, Walk, edges, layout_of
from certus.structures.program import CellProgram, as_array, as_rows
from certus.structures.span_trees import children_of, in_order
from certus.threads import long_call

MOST_EDGES = 1 << 20  # of a graph that is spelt out


class AnchoredGrammar(CellProgram):
    """The best tree of a grammar in normal form whose rules, roots and tags are scored for one sentence of n words.

    Symbols are A phrases, numbers 0 .. A - 1, then P tags, A .. A + P - 1; S = A + P. Words have tags, spans of two
    words or more have phrases, each over two symbols. A tree scores

        root[a] for the phrase a over the sentence  +  sum of emission[i, t] over words i with tag A + t
        +  sum of rule[a, b, c] over phrases a that are cut into b and c  +  sum of span[i, j, s] over all its nodes.

    Exact, in O(n^3 S^2 + n^2 A S^2): 40 words and 60 symbols take a fraction of a second. Every question has an answer.
    Sentences of less than two words have no tree: ``Infeasible``. Certificate kind: "dynamic program".

    Parameters
    ----------
    root : array_like of shape (A,)
    rule : array_like of shape (A, S, S)
    emission : array_like of shape (n, P)
    span : array_like of shape (n + 1, n + 1, S), optional
        ``span[i, j, s]``: words i .. j - 1 under symbol s; 0 by default. ``-inf`` forbids a part in all of them.

    Notes
    -----
    Structures are tuples of (i, j, symbol) as those of ``certus.SpanTrees``. The one view is "spans", of shape
    (n + 1, n + 1, S).

    Examples
    --------
    >>> rule = np.zeros((1, 3, 3))
    >>> rule[0, 1, 2] = 2.0
    >>> AnchoredGrammar([0.0], rule, [[1, 0], [0, 1]]).decode().structure
    ((0, 2, 0), (0, 1, 1), (1, 2, 2))
    """

    name = "anchored grammar"
    view = "spans"
    names = ("span", "root", "rule", "emission")

    def __init__(self, root: ArrayLike, rule: ArrayLike, emission: ArrayLike, span: ArrayLike | None = None) -> None:
        tops, words = as_array("root", root, (None,)), as_array("emission", emission, (None, None))
        self.phrases, (self.n, self.tags_count) = len(tops), words.shape
        self.size = self.phrases + self.tags_count
        if not self.phrases or not self.tags_count:
            raise InvalidInput(f"there are {self.phrases} phrases and {self.tags_count} tags; expected some of both.")
        rules = as_array("rule", rule, (self.phrases, self.size, self.size))
        shape = (self.n + 1, self.n + 1, self.size)
        spans = np.zeros(shape) if span is None else as_array("span", span, shape)
        arrays = {"span": spans, "root": tops, "rule": rules, "emission": words}
        super().__init__(arrays, _layout(self.n, self.phrases, self.tags_count))

    def __repr__(self) -> str:
        return f"AnchoredGrammar({self.n} words, {self.phrases} phrases, {self.tags_count} tags)"

    # -- structures ------------------------------------------------------------------------------------------------

    def parts_of(self, structure: Any) -> Ints:
        rows = in_order(as_rows(structure, 3, "(first word, word after the last, symbol)"))
        for i, j, s in rows.tolist():
            first, last = (self.phrases, self.size) if j - i == 1 else (0, self.phrases)
            if not 0 <= i < j <= self.n or not first <= s < last:
                raise InvalidInput(
                    f"the structure has the span {(i, j, s)}; expected words within 0..{self.n} and a symbol from "
                    f"{first} to {last - 1}."
                )
        inside = children_of(rows[:, :2], self.n, binary=True)
        symbol, number = rows[:, 2].tolist(), _Parts(self.n, self.phrases, self.tags_count)
        used = number.span(*rows.T).tolist()
        used += [number.root(symbol[0])] if symbol else []
        for k, (i, j, s) in enumerate(rows.tolist()):
            if j - i == 1:
                used.append(number.emission(i, s - self.phrases))
            else:
                used.append(number.rule(s, *(symbol[c] for c in inside[k])))
        if self.n < 2:
            raise InvalidInput("there is no tree over less than two words.")
        return np.array(used, dtype=np.int64)

    def rows(self, cells: Ints) -> Ints:
        return in_order(np.stack(np.unravel_index(cells, self.shape), axis=1))

    # -- the scores as dense arrays --------------------------------------------------------------------------------

    def _dense(self, penalties: Penalties | None = None) -> Scores:
        """Scores as the dense algorithms take them; Infeasible if there are too few words."""
        if self.n < 2:
            raise Infeasible(f"the sentence has {self.n} words; a tree of this grammar is over two at least.")
        cell = self.arrays["span"].copy()  # -inf where a symbol does not belong
        if penalties:
            for view in penalties:
                self.checked_view(view)
            cell += np.asarray(penalties[self.view], dtype=np.float64).reshape(cell.shape)
        word = np.arange(self.n)
        cell[word, word + 1, self.phrases :] += self.arrays["emission"]
        return Scores(self.arrays["root"], self.arrays["rule"], cell)

    @property
    def _steps(self) -> float:
        return float(self.n**2 * self.size**2 * (self.n / 6 + self.phrases))

    def _chart(self, scores: Scores) -> Floats:
        chart = np.empty(scores.cell.shape)
        long_call(self._steps, kernels.anchored.inside, scores.rule, scores.cell, chart)
        return chart

    def solve(self, penalties: Penalties | None = None) -> Solution[Any]:
        scores = self._dense(penalties)
        tree = np.empty((2 * self.n - 1, 3), dtype=np.int64)
        value = kernels.anchored.best_derivation(scores.rule, scores.cell, scores.root, self._chart(scores), tree)
        if value == -np.inf:
            raise Infeasible("every tree uses a part that is -inf. Allow more roots, rules, tags or spans.")
        return Solution(tuple(map(tuple, in_order(tree).tolist())), float(value))

    # -- sums ------------------------------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> Sums:
        return sums(self._dense())

    def _feasible_sums(self) -> Sums:
        if self.n < 2 or self._sums.total == -np.inf:
            self.solve()  # says why there is none
        return self._sums

    @summed
    def log_partition(self) -> float:
        return -np.inf if self.n < 2 else self._sums.total

    @summed
    def marginals(self) -> dict[str, Floats]:
        return {self.view: self._feasible_sums().cell}

    @summed
    def part_marginals(self, kind: str) -> Floats:
        """The expected uses of each cell of an array, by its name, under exp(score)."""
        found, word = self._feasible_sums(), np.arange(self.n)
        emission = found.cell[word, word + 1, self.phrases :]
        uses = {"span": found.cell, "root": found.root, "rule": found.rule, "emission": emission}
        return uses[one_of("kind", kind, tuple(uses))]

    @summed
    def entropy(self) -> float:
        """Log-partition less the expected score."""
        found = self._feasible_sums()
        mean = sum(_inner(self.part_marginals(name), array) for name, array in self.arrays.items())
        return max(found.total - mean, 0.0)

    @summed
    def sample(self, k: int, *, seed: int | None = None) -> list[Any]:
        size = (max(2 * self.n - 1, 0), 3)
        trees = np.empty((as_wanted(k, OBJECT + prod(size)), *size), dtype=np.int64)
        chart, rng = self._feasible_sums().chart, as_generator(seed)
        kernels.anchored.draw(self.arrays["rule"], self.arrays["root"], chart, rng, trees)
        return [tuple(map(tuple, in_order(tree).tolist())) for tree in trees]

    # -- max-marginals and ranks -----------------------------------------------------------------------------------

    def _bests(self, scores: Scores) -> tuple[Floats, Floats]:
        chart, out = self._chart(scores), np.empty(scores.cell.shape)
        long_call(3 * self._steps, kernels.anchored.outside, scores.rule, scores.cell, scores.root, chart, out)
        return chart, out

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        if self.n < 2:
            return {self.view: np.full(self.shape, -np.inf)}
        chart, out = self._bests(self._dense(penalties))
        return {self.view: chart + out}

    @sound_list
    def kbest(self, k: int) -> list[Result[Any]]:
        """By the graph of the trees that score as much as k symbols over spans do at best, all differently."""
        wanted, scores = as_positive_int("k", k), self._dense()
        self.solve()  # says so if there is no tree
        charts = self._bests(scores)
        least = _kth_value(charts[0] + charts[1], wanted, self._slack(scores))
        if least == -np.inf and self.searched:
            raise NotSupported(f"too many trees score the same to list {k} of them; ask for fewer, or sample().")
        layout = _above(scores, charts, least, self._slack(scores), self.layout)
        made = []
        for rank, (path, value) in enumerate(Forest(layout.hypergraph, layout.weights(self.scores), {}).kbest(k), 1):
            cells = layout.cell[np.asarray(path)]
            made.append(self.proved(self.from_cells(cells[cells >= 0]), value, rank=rank))
        return made

    def _slack(self, scores: Scores) -> float:
        """How far rounding may take a sum of scores from the truth."""
        finite = max(float(np.abs(a).max(initial=0.0, where=a > -np.inf)) for a in scores)
        return 4.0 * of_sum(2 * self.layout.longest, finite)

    # -- proofs ----------------------------------------------------------------------------------------------------

    @property
    def searched(self) -> bool:
        """Whether the grammar has too many rules and spans to be spelt out."""
        return _count_edges(self.n, self.phrases, self.size) > MOST_EDGES

    def make_witness(self, above: float, penalties: Penalties | None = None) -> dict[str, Any]:
        """Nothing: the spans are swept again."""
        return {}

    def closed_form(self, above: float, witness: Any, penalties: Penalties | None = None) -> Closed:
        if self.n < 2:
            layout = self.layout
        else:
            scores = self._dense(penalties)
            layout = _above(scores, swept(scores, np.maximum), above, self._slack(scores), self.layout)
        walk = Walk(layout.graph, layout.cell)
        form = normal_form(layout.graph, self.scores, {self.view: np.arange(layout.cells)})
        return Closed(form, lambda structure: walk.derivation(self.cells_of(structure), layout.cells))


def _inner(uses: Floats, scores: Floats) -> float:
    return float(np.sum(uses * np.where(uses > 0.0, scores, 0.0)))


def _kth_value(values: Floats, k: int, slack: float) -> float:
    """A little less than the k-th of different best values, each of which is that of a tree; -inf if there are less."""
    falling = np.unique(values[values > -np.inf])[::-1]
    kept, apart = 0, 2.0 * slack
    previous = np.inf
    for value in falling.tolist():
        if value < previous - apart:
            kept, previous = kept + 1, value
            if kept == k:
                return float(np.nextafter(value - apart, -np.inf))
    return -np.inf


class _Parts(NamedTuple):
    """Numbers of the parts: cells of span, root, rule and emission, laid end to end."""

    n: int
    phrases: int
    tags: int

    @property
    def starts(self) -> tuple[int, ...]:
        """Where the cells of each array start, and how many there are in all."""
        size = self.phrases + self.tags
        sizes = ((self.n + 1) ** 2 * size, self.phrases, self.phrases * size * size, self.n * self.tags)
        return tuple(np.cumsum((0, *sizes)).tolist())

    def span(self, i: Any, j: Any, symbol: Any) -> Any:
        return (i * (self.n + 1) + j) * (self.phrases + self.tags) + symbol

    def root(self, a: Any) -> Any:
        return self.starts[1] + a

    def rule(self, a: Any, b: Any, c: Any) -> Any:
        size = self.phrases + self.tags
        return self.starts[2] + (a * size + b) * size + c

    def emission(self, i: Any, tag: Any) -> Any:
        return self.starts[3] + i * self.tags + tag


def _count_edges(n: int, phrases: int, size: int) -> int:
    """Of the graph that is spelt out, at most."""
    return size * size * sum((n - w + 1) * (w - 1 + phrases) for w in range(2, n + 1))


@lru_cache(maxsize=32)
def _layout(n: int, phrases: int, tags: int) -> Layout:
    """The parts that trees use are known without a graph, which is made when it is asked for."""
    number = _Parts(n, phrases, tags)
    used, tag = np.zeros(number.starts[-1], dtype=bool), np.arange(phrases + tags) >= phrases
    if n >= 2:
        i, j = np.indices((n + 1, n + 1))
        spans = (i < j)[:, :, None] & ((j - i == 1)[:, :, None] == tag)
        pair = (~tag[:, None] * 1 + ~tag * 1) + 2 <= n  # a phrase has two words at least
        rules = np.broadcast_to(pair, (phrases, *pair.shape))
        used = np.concatenate((spans, np.ones(phrases), rules, np.ones(n * tags)), axis=None).astype(bool)
    return Layout(lambda: _graph(n, phrases, tags), number.starts[1], number.starts[-1], 4 * n, used)


def _graph(n: int, phrases: int, tags: int) -> Graph:
    """Vertices by width: tags of words; else pairs of symbols over the two parts of a span, and phrases."""
    size, number = phrases + tags, _Parts(n, phrases, tags)
    if _count_edges(n, phrases, size) > MOST_EDGES:
        raise NotSupported(
            f"a grammar of {size} symbols over {n} words has too many rules and spans to be spelt out as a graph."
        )
    if n < 2:
        return layout_of(1, [edges(np.empty(0, dtype=np.int64))], 0, 0, 0).graph
    every, word = np.arange(size), np.arange(n)
    vertex = np.full((n + 1, n + 1, size), -1)
    vertex[word, word + 1, phrases:] = np.arange(n * tags).reshape(n, tags)
    own, i = every[phrases:], word[:, None]
    blocks = [edges(vertex[i, i + 1, own], (), (number.span(i, i + 1, own), number.emission(i, own - phrases)))]
    vertices = n * tags
    for width in range(2, n + 1):
        i = np.arange(n - width + 1)[:, None, None]
        pair = vertices + (i * size + every[:, None]) * size + every
        for k in range(1, width):
            left, right = (every[phrases:] if w == 1 else every[:phrases] for w in (k, width - k))
            tails = (vertex[i, i + k, left[:, None]], vertex[i + k, i + width, right])
            blocks.append(edges(pair[:, left[:, None], right], tails))
        vertices += pair.size
        a = np.arange(phrases)
        vertex[i[:, 0], i[:, 0] + width, a] = vertices + np.arange(len(i) * phrases).reshape(-1, phrases)
        i, a = i[..., None], a[:, None, None]
        parts = (number.span(i, i + width, a), number.rule(a, every[:, None], every))
        blocks.append(edges(vertex[i, i + width, a], (pair[:, None],), parts))
        vertices += len(i) * phrases
    tops = np.arange(phrases)
    blocks.append(edges(np.full(phrases, vertices), (vertex[0, n, tops],), (number.root(tops),)))
    return layout_of(vertices + 1, blocks, 0, 0, 0, trim=True).graph


def _above(scores: Scores, charts: tuple[Floats, Floats], above: float, slack: float, layout: Layout) -> Layout:
    """The graph of all trees that score more than ``above``, perhaps with others: of rules and splits in such trees."""
    (chart, out), n, phrases = charts, scores.n, scores.phrases
    number = _Parts(n, phrases, scores.rule.shape[1] - phrases)
    least = above - slack
    kept: Bools = chart + out > (least - slack if least > -np.inf else least)
    first, last, symbol = np.nonzero(kept)
    order = np.argsort(last - first, kind="stable")
    vertex = np.full(chart.shape, -1)
    vertex[first[order], last[order], symbol[order]] = np.arange(len(order))
    i, s = first[last - first == 1], symbol[last - first == 1]
    blocks = [edges(vertex[i, i + 1, s], (), (number.span(i, i + 1, s), number.emission(i, s - phrases)))]
    for w in widths(n):
        some = kept[w.i, w.j].any(axis=1)
        own = w._replace(
            i=w.i[some],
            j=w.j[some],
            left=(w.left[0][some], w.left[1][some]),
            right=(w.right[0][some], w.right[1][some]),
        )
        pairs = gathered(chart, own, np.maximum)
        for at, (i, j) in enumerate(zip(own.i.tolist(), own.j.tolist(), strict=True)):
            blocks.append(_rules_above(scores, charts, (i, j), pairs[at], least, vertex, number))
    tops = np.flatnonzero((scores.root + chart[0, n, :phrases] > least) & (vertex[0, n, :phrases] >= 0))
    blocks.append(edges(np.full(len(tops), len(order)), (vertex[0, n, tops],), (number.root(tops),)))
    graph = layout_of(len(order) + 1, blocks, 0, 0, 0, trim=True).graph
    return Layout(lambda: graph, layout.cells, layout.size, layout.longest)


def _rules_above(
    scores: Scores,
    charts: tuple[Floats, Floats],
    span: tuple[int, int],
    pairs: Floats,
    least: float,
    vertex: Ints,
    number: _Parts,
) -> Edges:
    """The rules and splits of a span in trees that score more than ``least``."""
    (chart, out), (i, j) = charts, span
    above = out[i, j, : scores.phrases] + scores.cell[i, j, : scores.phrases]
    own = np.flatnonzero(vertex[i, j, : scores.phrases] >= 0)
    rule = above[own, None, None] + scores.rule[own]
    at, b, c = np.nonzero(rule + pairs > least)
    k = np.arange(i + 1, j)[:, None]
    value = rule[at, b, c] + chart[i, k, b] + chart[k, j, c]
    split, pick = np.nonzero((value > least) & (vertex[i, k, b] >= 0) & (vertex[k, j, c] >= 0))
    k, a, b, c = split + i + 1, own[at[pick]], b[pick], c[pick]
    return edges(vertex[i, j, a], (vertex[i, k, b], vertex[k, j, c]), (number.span(i, j, a), number.rule(a, b, c)))
