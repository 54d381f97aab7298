"""Phrase options: which words of a source sentence may become what, and for how much."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats, as_members
from certus.errors import InvalidInput

Int32 = NDArray[np.int32]
STAYS = -2  # what follows a phrase without words is the state before it


@dataclass(frozen=True, slots=True)
class PhraseOption:
    """The source words ``start`` .. ``end``, both included and counted from 0, as the words ``target``, for ``score``.

    The score holds all but distortion and language model: the weighted features of the phrase table, and penalties for
    words and phrases. -inf forbids the option.
    """

    start: int
    end: int
    target: tuple[str, ...]
    score: float

    def __str__(self) -> str:
        return f"{self.start}-{self.end} {' '.join(self.target)!r}"


class PhraseArrays(NamedTuple):
    """The options of a sentence for kernels: sorted by span, with shared heads, bodies and short sequences numbered.

    certus/kernels/phrase_contexts.py says what heads and bodies are. ``short`` numbers the word sequences of fewer than
    order - 1 words, after which the state of the language model depends on the one before; -1 for longer sequences,
    STAYS for options without words. The last entry of ``head`` and ``body`` is the end of the sentence.
    """

    n: int
    span_start: Int32  # (S,)
    span_end: Int32
    start_ptr: Int32  # (n + 1,) spans that start at each word
    phrase_ptr: Int32  # (S + 1,) options of each span
    phrase_span: Int32  # (O,)
    score: Floats  # (O,)
    word_ptr: Int32  # (O + 2,)
    word: Int32
    head: Int32  # (O + 1,)
    head_ptr: Int32  # (H + 1,)
    head_word: Int32
    body: Int32  # (O + 1,) B if all words are head
    body_head: Int32  # (B,)
    body_word: Int32  # (B,)
    short: Int32  # (O,)
    short_ptr: Int32
    short_word: Int32


def checked_options(options: Iterable[Any], n: int) -> tuple[PhraseOption, ...]:
    """Options of a sentence of n words; InvalidInput names the one that is none."""
    out = as_members("options", options, "a list of certus.PhraseOption")
    for k, option in enumerate(out):
        if _plain(option, n):
            continue
        if not isinstance(option, PhraseOption):
            raise InvalidInput(f"options[{k}] is {type(option).__name__}; expected a certus.translation.PhraseOption.")
        for name, place in (("start", option.start), ("end", option.end)):
            if isinstance(place, bool) or not isinstance(place, int | np.integer) or not 0 <= place < n:
                raise InvalidInput(f"options[{k}].{name} is {place!r}; source words are 0..{n - 1}.")
        if option.start > option.end:
            raise InvalidInput(f"options[{k}] covers {option.start}-{option.end}; it starts after its end.")
        if isinstance(option.target, str) or not all(isinstance(w, str) for w in option.target):
            raise InvalidInput(f"options[{k}].target is {option.target!r}; expected a tuple of words.")
        if not isinstance(option.score, int | float | np.number) or not option.score < inf:
            raise InvalidInput(f"options[{k}].score is {option.score!r}; scores are finite, or -inf to forbid a part.")
    return out


def _plain(option: Any, n: int) -> bool:
    """Whether an option is as nearly all are: of plain Python's own types, and fine."""
    if type(option) is not PhraseOption:
        return False
    start, end, target, score = option.start, option.end, option.target, option.score
    return (
        type(start) is type(end) is int
        and 0 <= start <= end < n
        and type(score) is float
        and score < inf
        and type(target) is tuple
        and set(map(type, target)) <= _WORDS
    )


_WORDS = {str}


def pack(n: int, order: int, end: int, options: Sequence[tuple[int, int, float, tuple[int, ...]]]) -> PhraseArrays:
    """Options (start, end, score, ids of words), sorted by span, as arrays for a language model of an order.

    ``end`` is the id of the word that ends a sentence.
    """
    spans = {span: k for k, span in enumerate(sorted({(i, j) for i, j, _, _ in options}))}
    numbered = np.array([spans[i, j] for i, j, _, _ in options], dtype=np.int32)
    heads: dict[tuple[int, ...], int] = {}
    bodies: dict[tuple[int, int], int] = {}
    shorts: dict[tuple[int, ...], int] = {}
    head, body, short = [], [], []
    in_head = max(order - 2, 0)
    sequences = [words for _, _, _, words in options] + [(end,)]
    for words in sequences:
        h = heads.setdefault(words[:in_head], len(heads))
        head.append(h)
        body.append(bodies.setdefault((h, words[in_head]), len(bodies)) if order > 1 and in_head < len(words) else -1)
        if not words:
            short.append(STAYS)
        else:
            short.append(-1 if len(words) >= order - 1 else shorts.setdefault(words, len(shorts)))
    starts = np.array([i for i, _ in spans], dtype=np.int32)
    return PhraseArrays(
        n,
        starts,
        np.array([j for _, j in spans], dtype=np.int32),
        np.searchsorted(starts, np.arange(n + 1)).astype(np.int32),
        np.searchsorted(numbered, np.arange(len(spans) + 1)).astype(np.int32),
        numbered,
        np.array([score for _, _, score, _ in options], dtype=np.float64),
        *_flat(sequences),
        np.array(head, dtype=np.int32),
        *_flat(heads),
        np.array([len(bodies) if b < 0 else b for b in body], dtype=np.int32),
        np.array([h for h, _ in bodies], dtype=np.int32),
        np.array([w for _, w in bodies], dtype=np.int32),
        np.array(short[:-1], dtype=np.int32),
        *_flat(shorts),
    )


def _flat(sequences: Iterable[Sequence[int]]) -> tuple[Int32, Int32]:
    """Offsets and entries of sequences laid end to end."""
    listed = list(sequences)
    ptr = np.array([0, *accumulate(map(len, listed))], dtype=np.int32)
    return ptr, np.array([w for s in listed for w in s], dtype=np.int32)
