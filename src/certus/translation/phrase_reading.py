"""Phrase options as an automaton reads them: its state is carried beside that of the language model.

A state of the search is then a pair, of the language model's r and the automaton's q, numbered r * Q + q. What an
option scores depends on q only in that it may be refused, which is a score of -inf; where it leads depends on q too.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from certus.checks import Bools, Ints
from certus.errors import NotSupported
from certus.translation.phrases import STAYS, PhraseArrays
from certus.translation.word_reader import WordReader

MOST_CELLS = 1 << 28  # of the tables of one sentence


class OptionReading(NamedTuple):
    """What options do to the states of an automaton, in the order of the options."""

    initial: int
    final: Bools  # (Q,)
    after: Ints  # (Q, O) state after each option; -1 if it is refused

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.final)


def read_options(reader: WordReader, targets: Sequence[Sequence[str]]) -> OptionReading:
    """The reading of options with these target words."""
    useful, known = reader.useful, dict[tuple[str, ...], Ints]()
    after = np.empty((reader.n_states, len(targets)), dtype=np.int64)
    for o, target in enumerate(targets):
        words = tuple(target)
        if words not in known:
            known[words] = useful.after(words)
        after[:, o] = known[words]
    return OptionReading(reader.initial, reader.final, after)


def read_arrays(p: PhraseArrays) -> PhraseArrays:
    """The options with a body each, and each with states of its own after it."""
    n = len(p.score)
    return p._replace(body=np.arange(n + 1, dtype=np.int32), short=np.arange(n, dtype=np.int32))


def read_contexts(p: PhraseArrays, reading: OptionReading, met: Any, scores: Any) -> tuple[Any, Any]:
    """What ``kernels.phrase_contexts`` met and scored, with the states of the automaton beside it."""
    n_states, n_options, n_ends = reading.n_states, len(p.score), len(met.after_short)
    n_classes = len(scores.second)
    if n_states * max(n_ends * n_options, n_classes * n_options, scores.first.size) > MOST_CELLS:
        raise NotSupported(
            f"an automaton of {n_states} states, {n_options} options and {n_ends} contexts of the language model take "
            "too much memory. Give fewer constraints or fewer options."
        )
    q = np.arange(n_states)
    refused = np.column_stack((reading.after < 0, ~reading.final))  # (Q, O + 1)
    second = scores.second[:, p.body][:, None, :] + np.where(refused, -np.inf, 0.0)
    lm_after = np.tile(met.after.astype(np.int64), (n_ends, 1))  # state of the language model after each option
    depends = np.flatnonzero(p.short >= 0)
    lm_after[:, depends] = met.after_short[:, p.short[depends]]
    then = np.where(reading.after < 0, q[:, None], reading.after)  # refused ones lead anywhere
    after_short = (np.maximum(lm_after, 0)[:, None, :] * n_states + then).reshape(n_ends * n_states, n_options)
    at_start = met.pair_place == 0
    place, state = met.pair_place[~at_start], met.pair_state[~at_start].astype(np.int64)
    begin = int(met.pair_state[at_start][0]) * n_states + reading.initial
    made = met._replace(
        state=np.repeat(met.state, n_states),
        after=np.where(p.short == STAYS, STAYS, -1).astype(np.int32),
        state_end=(met.state_end[:, None].astype(np.int64) * n_states + q).reshape(-1).astype(np.int32),
        after_short=after_short.astype(np.int32),
        pair_place=np.concatenate(([0], np.repeat(place, n_states))).astype(np.int32),
        pair_state=np.concatenate(([begin], (state[:, None] * n_states + q).reshape(-1))).astype(np.int32),
    )
    classes = (scores.state_class[:, None].astype(np.int64) * n_states + q).reshape(-1)
    second = np.ascontiguousarray(second.reshape(n_classes * n_states, n_options + 1))
    first = np.repeat(scores.first, n_states, axis=0)
    return made, scores._replace(first=first, second=second, state_class=classes.astype(np.int32))
