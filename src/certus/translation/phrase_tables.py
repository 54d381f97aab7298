"""Scores of a phrase-based translation as whole numbers of a small step, rounded up, and the contexts they depend on.

What a proof is checked by: numpy, no kernel. A score that is rounded up makes no translation worse, and sums of whole
numbers are exact, so what is found to bound these scores bounds the true ones. The step is so small beside what matters
that the tolerance of a certificate does not feel it. Scores so low that whatever uses them cannot be above the bound
that is to be shown are raised to a level where that is still so, and nothing overflows.

Place p is where the next source word would be without a jump: 0 at the start, else one past the end of the last phrase.
"""

from math import ceil, frexp, inf, isfinite, isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.certificates.rounding import overflow
from certus.checks import Bools, Floats, Ints
from certus.errors import InvalidInput
from certus.translation.language_model import LanguageModel

if TYPE_CHECKING:
    from certus.translation.phrase_problem import PhraseTranslation

States = NDArray[np.int32]


class Units(NamedTuple):
    """Whole numbers of ``step``: scores lie at ``-most`` or above, best completions at ``floor`` or above."""

    step: float
    most: int
    floor: int
    above: int  # what scores more than the bound in question is more than this

    def up(self, scores: Floats) -> Ints:
        """Scores, rounded up."""
        if not (scores < inf).all():
            raise InvalidInput("a score of the language model is no number, or inf; expected finite ones, or -inf.")
        rounded: Ints = np.ceil(np.maximum(scores, -self.most * self.step) / self.step).astype(np.int64)
        return rounded


def units_for(problem: "PhraseTranslation", above: float, penalties: Floats, multipliers: Floats) -> Units:
    """Units in which no sum over a translation, or over a path of its relaxation, is beyond 2^60; above is not inf."""
    if isnan(above):
        raise InvalidInput("above is nan; expected a number.")
    extent = problem.extent()
    positive = extent.ceiling + problem.n * float(penalties.max(initial=0.0))
    finite = penalties[np.isfinite(penalties)]
    lowest = extent.length * max(-extent.lowest, 0.0) + problem.n * max(-float(finite.min(initial=0.0)), 0.0)
    matters = 2.0 * positive + (abs(above) if isfinite(above) else lowest)
    matters += float(np.abs(multipliers).max(initial=0.0)) + float(matters == 0.0)
    if not matters < 2.0**1000:
        raise overflow()
    terms = 3 + max((len(o.target) for o in problem.options), default=0)  # of one option
    bits = 60 - ceil(np.log2(terms + 5 * problem.n + 8))
    step = 2.0 ** max(frexp(matters)[1] + 1 - bits, -1000)
    least = int(above // step) if isfinite(above) else -(2**61)
    return Units(step, 2**bits, -(2 * problem.n + 2) * 2**bits, least)


class Options(NamedTuple):
    """The options that are not forbidden, sorted by span, and their spans."""

    start: Ints  # (S,)
    end: Ints
    first: Ints  # (S + 1,) options of each span
    span: Ints  # (O,)
    number: Ints  # (O,) as the problem counts them
    score: Ints  # (O,) with penalties


class Rows(NamedTuple):
    """Scores of all options after states of the language model, and the states after them."""

    score: Ints  # (k, O)
    after: States  # (k, O)
    end: Ints  # (k,) of the end of the sentence


class Places(NamedTuple):
    """What is met at places: states of the language model, counted from 0, and what a relaxation keeps of them.

    The contexts of place p are 0 .. size[p] - 1. Options that may follow there are option[p]; value[p][c, k] is the
    most that any state of context c gives to the k-th of them, with its jump and the multipliers of its words, and
    then[p][c, k] the context at its own end. end[p][c] is the most for the end of the sentence.
    """

    rows: Rows
    after: Ints  # (Q, O) rows.after, counted from 0
    state: Ints  # (Q,) of the language model
    context: NDArray[np.int32]  # (n + 1, Q); -1 if never met there
    size: Ints  # (n + 1,)
    option: list[Ints]
    value: list[Ints]
    then: list[Ints]
    end: list[Ints]


def packed_options(problem: "PhraseTranslation", units: Units, penalties: Floats) -> Options:
    """The options that neither score nor penalty forbids."""
    scores = np.array([float(o.score) for o in problem.options], dtype=np.float64)
    start, end = (
        np.array(x, dtype=np.int64) for x in ([o.start for o in problem.options], [o.end for o in problem.options])
    )
    number = np.flatnonzero((scores > -inf) & (penalties > -inf))
    number = number[np.lexsort((end[number], start[number]))]
    start, end = start[number], end[number]
    new = np.flatnonzero(np.diff(start * problem.n + end, prepend=-1))
    span = np.searchsorted(new, np.arange(len(number)), side="right") - 1
    score = units.up(scores[number]) + units.up(penalties[number])
    return Options(start[new], end[new], np.append(new, len(number)), span, number, score)


class _Trie:
    """The beginnings of the options' targets by length: each once, as a beginning one shorter and a word."""

    def __init__(self, targets: list[tuple[int, ...]]) -> None:
        self.parent: list[Ints] = []
        self.word: list[Ints] = []
        self.ending: list[tuple[Ints, Ints]] = []  # options that end at this length, and their beginnings
        at = {(): 0}
        length, left = 0, list(range(len(targets)))
        while left:
            whole = [o for o in left if len(targets[o]) == length]
            self.ending.append(
                (np.array(whole, dtype=np.int64), np.array([at[targets[o]] for o in whole], dtype=np.int64))
            )
            left = [o for o in left if len(targets[o]) > length]
            length += 1
            before, at = at, {}
            for o in left:
                at.setdefault(targets[o][:length], len(at))
            self.parent.append(np.array([before[t[:-1]] for t in at], dtype=np.int64))
            self.word.append(np.array([t[-1] for t in at], dtype=np.int64))


class LmRows:
    """Scores after states of the language model, in units, for the options of a sentence."""

    def __init__(self, lm: LanguageModel, weight: float, units: Units, targets: list[tuple[int, ...]]) -> None:
        self.lm, self.weight, self.units, self.n_options = lm, weight, units, len(targets)
        self.trie = _Trie(targets)
        self._place = np.zeros(lm.n_states, dtype=np.int64)

    def of(self, states: Ints) -> Rows:
        """The rows of states."""
        score = np.empty((len(states), self.n_options), dtype=np.int64)
        after = np.empty((len(states), self.n_options), dtype=np.int32)
        total, reached = np.zeros((len(states), 1), dtype=np.int64), states[:, None]
        trie = self.trie
        for length, (options, at) in enumerate(trie.ending):
            score[:, options], after[:, options] = total[:, at], reached[:, at]
            if len(trie.word[length]):
                more, following = self._scored(reached[:, trie.parent[length]], trie.word[length])
                total, reached = total[:, trie.parent[length]] + more, following
        end, _ = self.lm.advance_each(states, np.full(len(states), self.lm.end))
        return Rows(score, after, self.units.up(self.weight * end))

    def _scored(self, states: Ints, words: Ints) -> tuple[Ints, Ints]:
        """Scores (k, m) of words (m,) after states (k, m), and the states after; each pair is looked up once."""
        different, column = np.unique(words, return_inverse=True)
        distinct = np.flatnonzero(np.bincount(states.ravel(), minlength=1))
        self._place[distinct] = np.arange(len(distinct))
        pair = self._place[states] * len(different) + column
        asked = np.zeros(len(distinct) * len(different), dtype=bool)
        asked[pair] = True
        pairs = np.flatnonzero(asked)
        value, following = self.lm.advance_each(distinct[pairs // len(different)], different[pairs % len(different)])
        score, after = np.empty(len(asked), dtype=np.int64), np.empty(len(asked), dtype=np.int64)
        score[pairs], after[pairs] = self.units.up(self.weight * value), following
        return score[pair], after[pair]


def sources(n: int, limit: int, start: int, end: int) -> Ints:
    """Places after which a span may follow: within the limit, and the last word not in the span."""
    place = np.arange(max(0, start - limit), min(n, start + limit) + 1)
    return place[(place <= start) | (place > end + 1)]


class Met(NamedTuple):
    """States that may be met, their rows, and where."""

    state: Ints  # (Q,)
    number: States  # of every state of the language model; -1 if never met
    rows: Rows
    at: Bools  # (n + 1, Q)


def meet(n: int, limit: int, options: Options, lm_rows: LmRows) -> Met:
    """States that may be met at each place, from the start on, whatever is covered."""
    number = np.full(lm_rows.lm.n_states, -1, dtype=np.int32)
    states = np.array([lm_rows.lm.begin_state], dtype=np.int64)
    number[states] = 0
    rows = Rows(
        np.empty((0, len(options.span)), np.int64), np.empty((0, len(options.span)), np.int32), np.empty(0, np.int64)
    )
    at = np.zeros((n + 1, 1), dtype=bool)
    at[0, 0] = True
    fresh = at.copy()
    places = [sources(n, limit, i, j) for i, j in zip(options.start.tolist(), options.end.tolist(), strict=True)]
    while fresh.any():
        more = lm_rows.of(states[len(rows.end) :])
        rows = Rows(*(np.concatenate(pair) for pair in zip(rows, more, strict=True)))
        found = []
        for s, place in enumerate(places):
            origins = np.flatnonzero(fresh[place].any(axis=0))
            if len(origins):
                after = rows.after[origins, options.first[s] : options.first[s + 1]]
                found.append((int(options.end[s]) + 1, np.unique(after)))
        new = [np.zeros(0, dtype=np.int64)]
        for _, after in found:
            unseen = after[number[after] < 0]
            number[unseen] = np.arange(len(unseen)) + len(states) + sum(map(len, new))
            new.append(unseen.astype(np.int64))
        states = np.concatenate((states, *new))
        at = np.pad(at, ((0, 0), (0, len(states) - at.shape[1])))
        before = at.copy()
        for place, after in found:
            at[place, number[after]] = True
        fresh = at & ~before
    return Met(states, number, rows, at)


def places_of(lm: LanguageModel, met: Met, options: Options, own: Ints, limit: int, exact: bool) -> Places:
    """The contexts of every place: its states, or with ``exact`` False the last words of its states."""
    kept = met.state.copy()
    while not exact and (long := lm.arrays.state_length[kept] > 1).any():
        kept[long] = lm.arrays.state_suffix[kept[long]]
    context = np.full(met.at.shape, -1, dtype=np.int32)
    members, groups = [], []
    for at, found in zip(met.at, context, strict=True):
        here = np.flatnonzero(at)
        here = here[np.argsort(kept[here], kind="stable")]
        first = np.flatnonzero(np.diff(kept[here], prepend=-1))
        found[here] = np.searchsorted(first, np.arange(len(here)), side="right") - 1
        members.append(here)
        groups.append(first)
    after = met.number[met.rows.after].astype(np.int64)
    size = np.array([len(first) for first in groups], dtype=np.int64)
    places = Places(met.rows, after, met.state, context, size, [], [], [], [])
    for p, (here, first) in enumerate(zip(members, groups, strict=True)):
        start, end = options.start[options.span], options.end[options.span]
        may = np.flatnonzero((np.abs(start - p) <= limit) & ((p <= start) | (p > end + 1)) & (len(here) > 0))
        cells = np.ix_(here, may)
        score, then = met.rows.score[cells], context[end[may] + 1, after[cells]]
        finish = met.rows.end[here]
        if len(first) < len(here):
            if (np.maximum.reduceat(then, first) != np.minimum.reduceat(then, first)).any():
                raise InvalidInput("states with the same last word go on to different last words.")
            score, then, finish = (np.maximum.reduceat(x, first) for x in (score, then, finish))
        if (then < 0).any():
            raise InvalidInput("a state was met that cannot be met.")
        places.option.append(may)
        places.value.append(score + options.score[may] + own[p, options.span[may]])
        places.then.append(then.astype(np.int64))
        places.end.append(finish)
    return places
