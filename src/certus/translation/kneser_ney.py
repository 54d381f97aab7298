"""Language models from text: modified Kneser-Ney smoothing, interpolated.

For an n-gram hw, with context h and word w, a(hw) is its count if n is the order of the model or if it begins with
``<s>``, else the number of different words seen before it. With D(1), D(2), D(3+) the discounts of its order,

    p(w | h) = (a(hw) - D(a(hw))) / sum_x a(hx)  +  gamma(h) p(w | h less its first word)
    gamma(h) = sum_x D(a(hx)) / sum_x a(hx)

and unigrams are interpolated with the uniform distribution over all words but ``<s>``, ``<unk>`` among them. gamma(h)
is the back-off weight of h. The discounts come from t_i, the number of n-grams of the order with a = i:

    Y = t_1 / (t_1 + 2 t_2),    D(i) = i - (i + 1) Y t_(i+1) / t_i

as in [ChenGoodman98], with the counts before interpolation as in [Heafield13]. Where some t_i is 0 or a discount comes
out at most 0 or above i (small or odd corpora) the order takes fixed discounts instead.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats, as_positive_int
from certus.errors import InvalidInput
from certus.io.arpa import BEGIN, END, UNKNOWN, Arpa, Ngrams

FALLBACK = (0.5, 1.0, 1.5)
_UNKNOWN, _BEGIN, _END = 0, 1, 2  # numbers of the marks
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A model and how it was smoothed: D(1), D(2), D(3+) per order, and the orders that took fixed discounts."""

    arpa: Arpa
    discounts: list[tuple[float, float, float]]
    fallen_back: list[int]
    sentences: int


@dataclass(frozen=True, slots=True)
class _Counts:
    """The different n-grams of one order: context and end are rows of the order below."""

    context: Ints
    end: Ints
    word: Ints
    count: Ints
    begins: NDArray[np.bool_]  # with <s>


def estimate_kneser_ney(
    sentences: Iterable[Sequence[str]],
    order: int = 3,
    *,
    fallback: tuple[float, float, float] | None = FALLBACK,
) -> Estimate:
    """Estimate an n-gram model from sentences, with modified Kneser-Ney smoothing and no pruning.

    Parameters
    ----------
    sentences : iterable of sequences of str
        Tokenised text; ``<s>`` and ``</s>`` are added. Read once.
    order : int
        Longest n-grams.
    fallback : three floats, optional
        Discounts of counts 1, 2, and 3 or more for orders whose own cannot be estimated; None to raise instead.

    Returns
    -------
    Estimate
        Its probabilities are those of the formulas above to rounding. Memory: about 60 bytes a token and order.

    Raises
    ------
    InvalidInput : no sentences, a sentence that holds ``<s>``, ``</s>`` or ``<unk>``, discounts that cannot be
        estimated and no fallback.

    Examples
    --------
    >>> from certus import LanguageModel
    >>> lm = LanguageModel(estimate_kneser_ney([["a", "b"], ["a", "c"]], order=2).arpa)
    >>> round(lm.score(["a", "b"]), 4)
    -1.9914
    """
    as_positive_int("order", order)
    if fallback is not None and not all(0.0 < d <= i for i, d in enumerate(fallback, start=1)):
        raise InvalidInput(f"fallback is {fallback}; discounts are above 0 and at most 1, 2 and 3.")
    words, text, n_sentences = _numbered(sentences)
    if n_sentences == 0:
        raise InvalidInput("there are no sentences; a language model is estimated from at least one.")
    return Estimate(*_smoothed(words, _count(text, len(words), order), fallback), n_sentences)


def _smoothed(
    words: list[str], counts: list[_Counts], fallback: tuple[float, float, float] | None
) -> tuple[Arpa, list[tuple[float, float, float]], list[int]]:
    """The model order by order, the discounts of each, and the orders that had to take the fallback."""
    discounts: list[tuple[float, float, float]] = []
    fallen_back: list[int] = []
    orders: list[Ngrams] = []
    rows = np.empty((1, 0), dtype=np.int32)
    lower = np.full(1, 1.0 / (len(words) - 1))  # the uniform distribution, over all words but <s>
    for n, grams in enumerate(counts, start=1):
        adjusted = _adjusted(counts, n)
        found = _discounts(adjusted)
        if found is None:
            fallen_back.append(n)
        discounts.append(_required(found or fallback, n))
        discount = np.array([0.0, *discounts[-1]])[np.minimum(adjusted, 3)]
        total = np.bincount(grams.context, adjusted, len(rows))
        gamma = np.bincount(grams.context, discount, len(rows)) / np.maximum(total, 1.0)
        gamma[total == 0] = 1.0
        if orders:
            orders[-1].back_off[:] = np.log10(gamma)
        own = (adjusted - discount) / np.maximum(total, 1.0)[grams.context]
        probability = own + gamma[grams.context] * lower[grams.end]
        rows = np.column_stack([rows[grams.context], grams.word.astype(np.int32)])
        value = np.log10(probability)
        if n == 1:
            value[_BEGIN] = 0.0  # never predicted
        orders.append(Ngrams(rows, np.minimum(value, 0.0), np.zeros(len(rows))))
        lower = probability
    return Arpa(words, orders), discounts, fallen_back


def _adjusted(counts: list[_Counts], n: int) -> Ints:
    """Counts of the n-grams: how many words stand before them, but for the highest order and for those at <s>."""
    adjusted = counts[n - 1].count
    if n < len(counts):
        extensions = np.bincount(counts[n].end, minlength=len(adjusted))
        adjusted = np.where(counts[n - 1].begins, adjusted, extensions)
    if n == 1:
        adjusted = adjusted.copy()
        adjusted[_BEGIN] = adjusted[_UNKNOWN] = 0
    return adjusted


def _required(discounts: tuple[float, float, float] | None, n: int) -> tuple[float, float, float]:
    if discounts is None:
        raise InvalidInput(
            f"the discounts of order {n} cannot be estimated: too few different {n}-grams have counts 1 to 4. "
            "Give more text, a lower order, or fallback discounts."
        )
    return discounts


def _numbered(sentences: Iterable[Sequence[str]]) -> tuple[list[str], Ints, int]:
    """Words by number, the text with marks as numbers, and how many sentences there are."""
    ids = {UNKNOWN: _UNKNOWN, BEGIN: _BEGIN, END: _END}
    text: list[int] = []
    n_sentences = 0
    for n_sentences, sentence in enumerate(sentences, start=1):
        text.append(_BEGIN)
        for word in sentence:
            k = ids.setdefault(word, len(ids))
            if k < 3:
                raise InvalidInput(f"sentence {n_sentences} holds {word!r}, which marks what no text holds; remove it.")
            text.append(k)
        text.append(_END)
    return list(ids), np.array(text, dtype=np.int64), n_sentences


def _count(text: Ints, n_words: int, order: int) -> list[_Counts]:
    """The n-grams of each order that lie within a sentence; fewer orders if no sentence is long enough."""
    unigrams = np.arange(n_words, dtype=np.int64)
    nothing = np.zeros(n_words, dtype=np.int64)
    out = [_Counts(nothing, nothing, unigrams, np.bincount(text, minlength=n_words), unigrams == _BEGIN)]
    row, start = text, np.arange(len(text))  # row of the n-gram that begins at each start
    place = np.full(len(text), -1, dtype=np.int64)
    for n in range(2, order + 1):
        place[:] = -1
        place[start] = np.arange(len(start))
        longer = (text[start + n - 2] != _END) & (start + n - 1 < len(text))  # not beyond </s>
        start, context = start[longer], row[longer]
        if not len(start):
            break
        word, end = text[start + n - 1], row[place[start + 1]]
        keys, first, row, count = np.unique(
            context * n_words + word, return_index=True, return_inverse=True, return_counts=True
        )
        out.append(_Counts(keys // n_words, end[first], keys % n_words, count, out[-1].begins[keys // n_words]))
    return out


def _discounts(adjusted: Ints) -> tuple[float, float, float] | None:
    t: Floats = np.bincount(np.minimum(adjusted, 5), minlength=6).astype(np.float64)
    if not (t[1:5] > 0).all():
        return None
    y = t[1] / (t[1] + 2 * t[2])
    first, second, third = (float(i - (i + 1) * y * t[i + 1] / t[i]) for i in (1, 2, 3))
    return (first, second, third) if 0 < first <= 1 and 0 < second <= 2 and 0 < third <= 3 else None
