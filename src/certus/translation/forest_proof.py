"""Proofs about translation forests: which derivations may score more than a number, found in numpy alone.

``closed_form`` asks nothing of the witness but multipliers on pairs of words and contexts, any of them. Bounds from the
bigram relaxation (``lm_lookup``, ``forest_tables``) remove edges, pairs of words and ends of vertices that are in no
derivation above the limit, again and again; what is left is spelt out under the whole model (``forest_items``).

Nothing is rounded but the scores: all are raised to multiples of a power of two so large that float64 holds every sum
of them. Scores too low for any derivation above the limit may be raised too, to what is still too low. So a bound is
never below the truth, and what is left out scores no more than the limit.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certus.certificates.normal import NormalForm
from certus.certificates.rounding import EPSILON, in_steps, step_for
from certus.checks import Bools, Floats, Ints
from certus.errors import InvalidInput, NotSupported
from certus.translation.forest_closed import assembled, score_terms
from certus.translation.forest_items import Bounds, Items, Model
from certus.translation.forest_sides import Sides, adjacent, ends, lay_out
from certus.translation.forest_tables import Tables
from certus.translation.language_model import LanguageModel
from certus.translation.lm_automaton import extent_of_lm
from certus.translation.lm_lookup import pair_tables
from certus.translation.scored_forest import BEGIN, END, ScoredForest, prepare

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

ROUNDS = 6  # of removal, at most
SHRUNK = 0.7  # another round is worth its time if this one left no more edges than that
LARGEST = 16.0  # of the multipliers, in scores: larger ones are cut
DIGITS = 52  # of the largest sum, in steps


class Steps(NamedTuple):
    """Scores as whole numbers of steps, a power of two; what is lower than ``lowest`` may be raised to it."""

    step: float
    lowest: float
    margin: float  # how far rounding may have taken tables of the model from the truth
    largest: float  # of the multipliers

    def up(self, scores: Floats) -> Floats:
        """Scores in steps, rounded up; -inf stays."""
        return in_steps(np.where(scores == -np.inf, scores, np.maximum(scores, self.lowest)), self.step)

    def limit(self, score: float) -> float:
        """A score in steps: whole numbers of steps are above this if and only if they score more."""
        with np.errstate(over="ignore"):  # of a score that is far above all others
            number = score / self.step
        return number if number * self.step <= score else float(np.nextafter(number, -np.inf))

    def table(self, scores: Floats) -> Floats:
        """The same of scores that are rounded themselves."""
        return self.up(scores + self.margin)

    def multipliers(self, u: Floats) -> Floats:
        """Multipliers in steps; any are good."""
        return np.rint(np.clip(u, -self.largest, self.largest) / self.step)


def closed_form(problem: "ForestTranslation", above: float, witness: Any, weights: Floats) -> NormalForm:
    """All derivations that score more than ``above`` with these weights of edges, perhaps with some others.

    The parts have the scores of the problem. ``witness`` is a mapping with "pairs", rows of word, word and multiplier,
    and perhaps "contexts", rows of words, -3 before those of shorter ones, and multiplier.
    """
    if not isinstance(witness, Mapping) or "pairs" not in witness:
        raise InvalidInput('the witness of a translation is a mapping with multipliers of "pairs".')
    rows = _rows(witness, "pairs", 3)
    contexts = _rows(witness, "contexts", problem.lm.order) if problem.lm.order > 3 else np.zeros((0, 1))
    if np.isnan(above):
        raise InvalidInput("the score to be exceeded is nan; expected a number.")
    steps = _steps(problem, above, [float(np.abs(y[:, -1]).max(initial=0.0)) for y in (rows, contexts)], weights)
    prepared = prepare(problem.translation_forest, problem.lm, steps.up(weights))
    sides, words = sides_of(prepared)
    edges = np.flatnonzero(prepared.alive)
    u = np.zeros((len(words), len(words)))
    if problem.lm.order > 2:
        u = steps.multipliers(prepared.multipliers(rows.astype(np.float64)))
        u[:, END] = 0.0
    high = steps.multipliers(_by_state(problem.lm, prepared, contexts))
    found = _Search(problem, sides, words, steps, steps.limit(above)).run(u, high)
    return assembled(problem, prepared, words, None if found is None else found._replace(edge=edges[found.edge]))


def _rows(witness: Mapping[str, Any], kind: str, width: int) -> Floats:
    """Rows of words and a multiplier; those of contexts need not be there."""
    rows = np.asarray(witness.get(kind, np.zeros((0, width))))
    if rows.ndim != 2 or rows.shape[1] != width or rows.dtype.kind not in "iuf" or not np.isfinite(rows).all():
        raise InvalidInput(f"multipliers of {kind} are rows of {width - 1} words and a value, all finite.")
    return rows.astype(np.float64)


def _by_state(lm: LanguageModel, forest: ScoredForest, rows: Floats) -> Floats:
    """Multipliers of contexts, per state of the model; rows of what the forest or the model lacks are left out."""
    high = np.zeros(lm.n_states)
    known = {name: int(word) for name, word in zip(forest.name.tolist(), forest.lm_word.tolist(), strict=True)}
    ids = [[known.get(name, -1) for name in row if name != -3] for row in rows[:, :-1].tolist()]
    for row, value in zip(ids, rows[:, -1].tolist(), strict=True):
        state = 0
        for word in row if -1 not in row else []:
            state = lm.advance(state, word)[1]
        if lm.arrays.state_length[state] == len(row) > 2:
            high[state] = value
    return high


def _steps(problem: "ForestTranslation", above: float, largest: list[float], weights: Floats) -> Steps:
    """Steps such that no sum of scores and multipliers along a derivation, or two of them, has too many."""
    lm, length = extent_of_lm(problem.lm, problem.lm_weight), problem.extent().length + 2.0
    finite = weights[np.isfinite(weights)]
    highest = max(float(finite.max(initial=0.0)), lm.highest, 0.0)
    lowest = min(float(finite.min(initial=0.0)), lm.lowest, 0.0)
    if np.isfinite(above):
        ceiling = length * highest
        lowest = max(lowest, min(above - ceiling, 0.0) - 1e-6 * max(abs(above) + ceiling, 1.0))
    size = max(highest, -lowest)
    most_u = min(max(largest), LARGEST * size)
    most = 4.0 * length * ((2.0 + problem.lm.order) * size + 4.0 * most_u)
    if not most < 2.0**960:
        raise NotSupported(f"scores of derivations may add up to {most:.3g}, too much to be checked.")
    return Steps(step_for(most, DIGITS), lowest, 16.0 * problem.lm.order * EPSILON * lm.size, most_u)


def sides_of(f: ScoredForest) -> tuple[Sides, Ints]:
    """Target sides of the edges alive over the words of the forest, and the numbers of these in the model."""
    a = f.arrays
    tail = np.repeat(a.tail_ptr[:-1], np.diff(a.token_ptr)) + np.maximum(~a.token, 0)
    symbol = np.where(a.token >= 0, a.token, ~np.append(a.tail, 0)[tail])
    return Sides(a.in_ptr, a.token_ptr, symbol, a.weight).only(f.alive), f.lm_word.astype(np.int64)


class _Search:
    """What is left of a forest above a limit, in steps."""

    def __init__(self, problem: "ForestTranslation", sides: Sides, words: Ints, steps: Steps, limit: float) -> None:
        self.problem, self.sides, self.words, self.steps, self.limit = problem, sides, words, steps, limit

    def run(self, u: Floats, high: Floats) -> Any:
        """Ways of the items left, None if there are none."""
        problem, steps, limit = self.problem, self.steps, self.limit
        sides, n_vertices, n_words = self.sides, len(self.sides.in_ptr) - 1, len(self.words)
        edges = np.arange(len(sides.weight))
        first = last = np.ones((n_vertices, n_words), dtype=bool)
        model, allowed = None, np.ones((n_words, n_words), dtype=bool)
        for _ in range(ROUNDS):
            layout = lay_out(sides, n_words)
            first, last = ends(layout, sides.in_ptr, first, last)
            if model is None:
                allowed = adjacent(layout, first, last)
                model = pair_tables(problem.lm, problem.lm_weight, self.words, allowed).mapped(steps.table)
            tables = Tables(sides, layout, model.optimistic(u, high, allowed), first, last)
            if not tables.best > limit:
                return None
            tables.complete(limit)
            alive, allowed = tables.edge > limit, allowed & (tables.pair > limit)
            sides, edges = sides.only(alive), edges[alive]
            first, last = _kept(tables, first, last, limit)
            if len(edges) > SHRUNK * len(alive):
                break
        items = Items(sides, Model(problem.lm, self.words, BEGIN, self._score), Bounds(tables, u, high, allowed, limit))
        return items.ways._replace(edge=edges[items.ways.edge])

    def _score(self, terms: Ints) -> Floats:
        return self.steps.up(score_terms(self.problem.lm, self.problem.lm_weight, self.words, terms))


def _kept(tables: Tables, first: Bools, last: Bools, limit: float) -> tuple[Bools, Bools]:
    """First and last words of the vertices that are in a derivation above the limit."""
    n = tables.layout.n_vertices
    first, last = np.zeros_like(first[:n]), np.zeros_like(last[:n])
    for v in range(n):
        items = tables.inside[v] + tables.outside[v] > limit
        first[v, tables.first[v][items.any(axis=1)]] = True
        last[v, tables.last[v][items.any(axis=0)]] = True
    return first, last
