"""Scores of a phrase-based translation as whole numbers of a small step, rounded up, and the contexts they depend on.

What a proof is checked by: numpy, no kernel. A score that is rounded up makes no translation worse, and sums of whole
numbers are exact, so what is found to bound these scores bounds the true ones. The step is so small beside what matters
that the tolerance of a certificate does not feel it. Scores so low that whatever uses them cannot be above the bound
that is to be shown are raised to a level where that is still so, and nothing overflows.

Place p is where the next source word would be without a jump: 0 at the start, else one past the end of the last phrase.
"""

from collections.abc import Iterator
from math import ceil, inf, isfinite, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.certificates.rounding import in_steps, overflow, step_for
from certus.checks import Bools, Floats, Ints
from certus.errors import InvalidInput
from certus.translation.language_model import LanguageModel
from certus.translation.phrase_reading import OptionReading

if TYPE_CHECKING:
    from certus.translation.phrase_problem import PhraseTranslation

Scores = NDArray[Any]  # whole numbers of a step, or float64
REFUSED = -2
NOWHERE = -(2**62)  # less than any sum


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
        return in_steps(np.maximum(scores, -self.most * self.step), self.step).astype(np.int64)


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
    step = step_for(2.0 * matters, bits)
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
    """Scores of options after states of the language model, and the states after them, where they may follow."""

    score: Ints  # (Q, O)
    after: Ints  # (Q, O) counted from 0; -1 if never met, REFUSED if an automaton does not accept it
    end: Ints  # (Q,) of the end of the sentence


class Places(NamedTuple):
    """What is met at places: states of the language model, counted from 0, and what a relaxation keeps of them.

    The contexts of place p are 0 .. size[p] - 1. Options that may follow there are among near[p]; value[p][c, k] is the
    most that any state of context c gives to the k-th of them, with its jump and the multipliers of its words, and
    then[p][c, k] the context at its own end, or then[p][0, k] if it is the same for all c. end[p][c] is the most for
    the end of the sentence.
    """

    rows: Rows
    state: Ints  # (Q,) of the language model
    context: Ints  # (n + 1, Q); -1 if never met there
    size: Ints  # (n + 1,)
    near: list[slice]
    value: list[Scores]
    then: list[Ints]
    end: list[Scores]


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


class Targets:
    """The words of the options, as a language model of some order looks at them.

    The first order - 1 words of an option, its head, score by the state before it; what follows does not, nor does the
    state after an option that has so many words. That is how models are made, and ``rows`` refuses one that is not so.
    """

    def __init__(self, lm: LanguageModel, weight: float, units: Units, targets: list[tuple[int, ...]]) -> None:
        self.lm, self.weight, self.units = lm, weight, units
        self.depth = lm.order - 1
        self.length = np.array([len(words) for words in targets], dtype=np.int64)
        self.settled = self.length >= self.depth
        self.parent: list[Ints] = []  # heads by length: each is a head one shorter and a word
        self.word: list[Ints] = []
        self.heads: list[Ints] = []  # of every option by length of the head; its own is ``head``
        self.head = np.zeros(len(targets), dtype=np.int64)
        self._place = np.zeros(lm.n_states, dtype=np.int64)
        at: dict[tuple[int, ...], int] = {(): 0}
        for k in range(1, self.depth + 1):
            before, at = at, {}
            long = np.flatnonzero(self.length >= k)
            self.head[long] = [at.setdefault(targets[o][:k], len(at)) for o in long.tolist()]
            self.heads.append(self.head.copy())
            self.parent.append(np.array([before[words[:-1]] for words in at], dtype=np.int64))
            self.word.append(np.array([words[-1] for words in at], dtype=np.int64))
        *_, (_, (self.after_heads,)) = self.reached(np.zeros(1, dtype=np.int64))
        self.inside, self.after = np.zeros((2, len(targets)), dtype=np.int64)  # what follows the heads, and comes after
        self.after[self.settled] = self.after_heads[self.head[self.settled]]
        for k in range(self.depth, int(self.length.max(initial=0))):
            long = np.flatnonzero(self.length > k)
            value, self.after[long] = lm.advance_each(
                self.after[long], np.array([targets[o][k] for o in long.tolist()])
            )
            self.inside[long] += units.up(weight * value)

    def reached(self, states: Ints, asked: list[Bools] | None = None) -> Iterator[tuple[Ints, Ints]]:
        """For each length of a head, shortest first: scores (k, heads) after states, and the states after them.

        ``asked`` says where it matters, for each length.
        """
        total, after = np.zeros((len(states), 1), dtype=np.int64), states[:, None]
        yield total, after
        for k, (parent, word) in enumerate(zip(self.parent, self.word, strict=True)):
            before = after[:, parent]
            different, column = np.unique(word, return_inverse=True)
            seen = np.zeros(self.lm.n_states, dtype=bool)
            seen[before] = True
            distinct = np.flatnonzero(seen)
            self._place[distinct] = np.arange(len(distinct))
            pair = self._place[before] * len(different) + column
            wanted = np.zeros(len(distinct) * len(different), dtype=bool)
            wanted[pair if asked is None else pair[asked[k]]] = True
            pairs = np.flatnonzero(wanted)
            value, following = self.lm.advance_each(
                distinct[pairs // len(different)], different[pairs % len(different)]
            )
            score, then = np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.int64)
            score[pairs], then[pairs] = self.units.up(self.weight * value), following
            total, after = total[:, parent] + score[pair], then[pair]
            yield total, after


class Met(NamedTuple):
    """States that may be met, and where."""

    state: Ints  # (Q,)
    number: Ints  # of every state of the language model; -1 if never met
    at: Bools  # (n + 1, Q)
    reader: Ints  # (Q,) the state of an automaton beside it


def meet(n: int, limit: int, options: Options, targets: Targets) -> Met:
    """States that may be met at each place, from the start on, whatever is covered."""
    lm = targets.lm
    number = np.full(lm.n_states, -1, dtype=np.int64)
    states, at = np.zeros(0, dtype=np.int64), np.zeros((n + 1, 0), dtype=bool)
    ends, follow = np.full(lm.n_states, -1, dtype=np.int64), np.zeros((0, len(targets.head)), dtype=np.int64)
    settled = np.flatnonzero(targets.settled)
    place = np.concatenate(([0], options.end[options.span[settled]] + 1))
    state = np.concatenate(([lm.begin_state], targets.after[settled]))
    spans = []  # with options after which the state depends on the one before
    for s in np.unique(options.span[~targets.settled]).tolist():
        some = np.arange(options.first[s], options.first[s + 1])
        sources = np.arange(max(0, options.start[s] - limit), min(n, options.start[s] + limit) + 1)
        sources = sources[(sources <= options.start[s]) | (sources > options.end[s] + 1)]
        spans.append((sources, int(options.end[s]) + 1, some[~targets.settled[some]]))
    while len(place):
        new = np.unique(state[number[state] < 0])
        number[new] = len(states) + np.arange(len(new))
        states, at = np.concatenate((states, new)), np.pad(at, ((0, 0), (0, len(new))))
        fresh = np.zeros(at.shape, dtype=bool)
        fresh[place, number[state]] = True
        fresh &= ~at
        at |= fresh
        end = lm.cut(states, max(targets.depth - 1, 0))  # all that counts for what is after a short option
        unknown = np.unique(end[ends[end] < 0])
        ends[unknown] = len(follow) + np.arange(len(unknown))
        follow = np.concatenate((follow, _after_short(targets, unknown)))
        found = []
        for sources, target, some in spans:
            origins = np.flatnonzero(fresh[sources].any(axis=0))
            if len(origins):
                then = np.where(
                    targets.length[some] == 0, states[origins, None], follow[ends[end[origins]][:, None], some]
                )
                found.append((target, np.unique(then)))
        place = np.concatenate([np.full(len(then), target) for target, then in found] or [place[:0]])
        state = np.concatenate([then for _, then in found] or [place[:0]])
    return Met(states, number, at, np.zeros(len(states), dtype=np.int64))


def _after_short(targets: Targets, states: Ints) -> Ints:
    """(k, O): states after options that are shorter than the model looks back."""
    out = np.zeros((len(states), len(targets.head)), dtype=np.int64)
    for length, (_, after) in zip(range(targets.depth), targets.reached(states), strict=False):
        some = np.flatnonzero(targets.length == length)
        out[:, some] = after[:, targets.head[some]]
    return out


def rows_of(met: Met, options: Options, targets: Targets, limit: int) -> Rows:
    """Scores of the options after the states, where they are near."""
    near = np.abs(options.start[options.span] - np.arange(len(met.at))[:, None]) <= limit  # (n + 1, O)
    asked = []
    for k, heads in enumerate(targets.heads, start=1):
        asked.append(np.zeros((len(met.state), len(targets.word[k - 1])), dtype=bool))
        for at, beside in zip(met.at, near & (targets.length >= k), strict=True):
            asked[-1][np.flatnonzero(at)[:, None], np.unique(heads[beside])] = True
    totals, first, width = [], np.zeros(targets.depth + 1, dtype=np.int64), 0
    after = np.tile(met.number[targets.after], (len(met.state), 1))
    for k, (total, reached) in enumerate(targets.reached(met.state, asked)):
        totals.append(total)
        first[k], width = width, width + total.shape[1]
        if k < targets.depth:
            some = np.flatnonzero(targets.length == k)
            after[:, some] = met.number[reached[:, targets.head[some]]]
        elif k and (asked[-1] & (reached != targets.after_heads)).any():
            raise InvalidInput(f"a language model of order {k + 1} looks back more than {k} words.")
    column = first[np.minimum(targets.length, targets.depth)] + targets.head
    score = np.take(np.hstack(totals), column, axis=1)
    score += targets.inside
    end, _ = targets.lm.advance_each(met.state, np.full(len(met.state), targets.lm.end))
    return Rows(score, after, targets.units.up(targets.weight * end))


def read(met: Met, rows: Rows, reading: OptionReading, units: Units) -> tuple[Met, Rows]:
    """The same with the states of an automaton beside those of the language model: number r becomes r * Q + q."""
    n, q = reading.n_states, np.arange(reading.n_states)
    after = np.where(rows.after[:, None, :] >= 0, rows.after[:, None, :] * n + reading.after, -1)
    after = np.where(reading.after >= 0, after, REFUSED)
    score = np.where(reading.after >= 0, rows.score[:, None, :], units.floor)
    end = np.where(reading.final, rows.end[:, None], NOWHERE)
    size = len(met.state) * n
    read_rows = Rows(score.reshape(size, -1), after.reshape(size, -1), end.reshape(-1))
    return Met(np.repeat(met.state, n), met.number, np.repeat(met.at, n, axis=1), np.tile(q, len(met.state))), read_rows


def places_of(lm: LanguageModel, met: Met, rows: Rows, options: Options, own: Ints, limit: int, exact: bool) -> Places:
    """The contexts of every place: its states, or with ``exact`` False the last words of its states."""
    kept = (met.state if exact else lm.cut(met.state, 1)) + met.reader * lm.n_states
    context = np.full(met.at.shape, -1)
    members, groups = [], []
    for at, found in zip(met.at, context, strict=True):
        here = np.flatnonzero(at)
        here = here[np.argsort(kept[here], kind="stable")]
        first = np.flatnonzero(np.diff(kept[here], prepend=-1))
        found[here] = np.searchsorted(first, np.arange(len(here)), side="right") - 1
        members.append(here)
        groups.append(first)
    size = np.array([len(first) for first in groups], dtype=np.int64)
    places = Places(rows, met.state, context, size, [], [], [], [])
    start, end = options.start[options.span], options.end[options.span]
    for p, (here, first) in enumerate(zip(members, groups, strict=True)):
        near = slice(*np.searchsorted(start, (p - limit, p + limit + 1)).tolist())
        score, finish = rows.score[here, near], rows.end[here]
        after = rows.after[here, near]
        then = context[end[near] + 1, np.maximum(after, 0)]
        then[after < 0] = -1
        then[after == REFUSED] = 0  # it scores too little to lead anywhere
        then[:, (start[near] < p) & (p <= end[near] + 1)] = 0  # over the last word: never follows
        if len(first) < len(here):
            if (np.maximum.reduceat(then, first) != np.minimum.reduceat(then, first)).any():
                raise InvalidInput("states with the same last word go on to different last words.")
            score, then, finish = (np.maximum.reduceat(x, first) for x in (score, then, finish))
        if (then < 0).any():
            raise InvalidInput("a state of the language model was met where none of its kind can be.")
        places.near.append(near)
        places.value.append(score + (options.score[near] + own[p, options.span[near]]))
        places.then.append(then[:1] if (then == then[:1]).all() else then)
        places.end.append(finish)
    return places
