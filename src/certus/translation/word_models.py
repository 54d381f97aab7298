"""Language models of one's own: what a problem of translation asks of a model that is no table of n-grams.

A ``WordModel`` says how far it looks back, where it begins, what a word scores after a state, and the most that any
word may score. ``tabulated`` asks it once about every n-gram that a problem can reach and makes a ``LanguageModel`` of
the answers, which is what decoders and proofs read: exact, and saved with the problem.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from certus.certificates.ragged import ragged
from certus.checks import Bools, Floats, Ints, as_words
from certus.errors import InvalidInput, NotSupported
from certus.io.arpa import BEGIN, END, MAX_ORDERS, UNKNOWN, Arpa, Ngrams
from certus.translation.language_model import LanguageModel

MOST_NGRAMS = 5_000_000  # of one table


class WordModel(ABC):
    """Scores of words after the words before them, as far back as ``order`` says.

    ``order`` is one more than the number of words that a score may depend on. ``upper_bound`` is the most that any word
    scores, 0 for logarithms of probabilities; a word that scores more is an error, so that no proof rests on a wrong
    one. States are hashable, and equal after the same last order - 1 words.
    """

    order: int
    upper_bound: float = 0.0

    @abstractmethod
    def begin(self) -> Hashable:
        """The state before the first word."""

    @abstractmethod
    def advance(self, state: Any, word: str) -> tuple[float, Hashable]:
        """(score of the word, next state); the word "</s>" ends every sentence. Scores are finite."""

    def score(self, words: Sequence[str]) -> float:
        """The score of a sentence, its end included."""
        total, state = 0.0, self.begin()
        for word in (*as_words("words", words), END):
            value, state = self.advance(state, word)
            total += value
        return total


class FunctionModel(WordModel):
    """A function of the last words and the next one: ``function(context, word)``.

    The context is a tuple of the last order - 1 words, fewer near the begin of a sentence, where "<s>" is the first.

    Examples
    --------
    >>> twice = FunctionModel(2, lambda context, word: -1.0 if context[-1] == word else 0.0)
    >>> twice.score(["very", "very", "old"])
    -1.0
    """

    def __init__(
        self, order: int, function: Callable[[tuple[str, ...], str], float], *, upper_bound: float = 0.0
    ) -> None:
        self.order, self.function, self.upper_bound = order, function, float(upper_bound)

    def begin(self) -> tuple[str, ...]:
        return (BEGIN,)[: self.order - 1]

    def advance(self, state: tuple[str, ...], word: str) -> tuple[float, tuple[str, ...]]:
        then = (*state, word)
        return float(self.function(state, word)), then[max(len(then) - self.order + 1, 0) :]


class NgramModel(WordModel):
    """A ``LanguageModel`` as one of these, to be joined with others."""

    def __init__(self, lm: LanguageModel) -> None:
        self.lm, self.order = lm, lm.order
        self.upper_bound = _most_of(lm)

    def begin(self) -> int:
        return self.lm.begin_state

    def advance(self, state: int, word: str) -> tuple[float, int]:
        return self.lm.advance(state, self.lm.word_id(word))


class ClassModel(WordModel):
    """n-grams of classes of words, and words within their classes: ln p(class | classes before) + ln p(word | class).

    Parameters
    ----------
    classes : LanguageModel
        Over the names of the classes.
    class_of : mapping of words to names of classes
        Such as Brown clusters; a word without one is of the class ``<unk>``.
    within : mapping of words to ln p(word | class), optional
        0 for words that it does not have.
    """

    def __init__(
        self, classes: LanguageModel, class_of: Mapping[str, str], within: Mapping[str, float] | None = None
    ) -> None:
        self.order, self.classes = classes.order, classes
        self.class_of, self.within = dict(class_of), dict(within or {})
        self.upper_bound = _most_of(classes) + max([0.0, *self.within.values()])

    def begin(self) -> int:
        return self.classes.begin_state

    def advance(self, state: int, word: str) -> tuple[float, int]:
        name = END if word == END else self.class_of.get(word, UNKNOWN)
        value, then = self.classes.advance(state, self.classes.word_id(name))
        return value + self.within.get(word, 0.0), then


class WeightedModels(WordModel):
    """The weighted sum of several models, each a ``WordModel`` or a ``LanguageModel``; weights are at least 0."""

    def __init__(self, *weighted: tuple[float, "WordModel | LanguageModel"]) -> None:
        if not weighted or not all(np.isfinite(weight) and weight >= 0.0 for weight, _ in weighted):
            raise InvalidInput("expected pairs of a weight, a finite number of at least 0, and a model.")
        self.weights = [float(weight) for weight, _ in weighted]
        self.models = [NgramModel(m) if isinstance(m, LanguageModel) else checked_model(m) for _, m in weighted]
        self.order = max(m.order for m in self.models)
        self.upper_bound = sum(w * m.upper_bound for w, m in zip(self.weights, self.models, strict=True))
        self.upper_bound += 1e-9 * (1.0 + abs(self.upper_bound))  # the sum is rounded

    def begin(self) -> tuple[Hashable, ...]:
        return tuple(m.begin() for m in self.models)

    def advance(self, state: tuple[Any, ...], word: str) -> tuple[float, tuple[Hashable, ...]]:
        steps = [m.advance(q, word) for m, q in zip(self.models, state, strict=True)]
        return sum(w * value for w, (value, _) in zip(self.weights, steps, strict=True)), tuple(q for _, q in steps)


def _most_of(lm: LanguageModel) -> float:
    """The most that a word may score, however often the model backs off."""
    a = lm.arrays
    values = np.concatenate((a.values[1::3][a.slots[::3] >= 0], a.unigram))
    most = float(values.max()) + (lm.order - 1) * float(a.back_off.max(initial=0.0))
    return max(most, 0.0) + 1e-9 * abs(most)


def checked_model(model: Any) -> WordModel:
    """A model of one's own; InvalidInput if it is none."""
    if not isinstance(model, WordModel):
        raise InvalidInput(
            f"lm is {type(model).__name__}; expected a certus.LanguageModel, or a model of your own that is a "
            "certus.translation.WordModel: order, begin() and advance(state, word)."
        )
    order = model.order
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or not 1 <= order <= MAX_ORDERS:
        raise InvalidInput(f"the order of the language model is {order!r}; expected a whole number 1..{MAX_ORDERS}.")
    if not np.isfinite(model.upper_bound):
        raise InvalidInput(f"the upper bound of the language model is {model.upper_bound!r}; expected a finite number.")
    return model


def tabulated(model: WordModel, words: Sequence[str], beside: Bools) -> LanguageModel:
    """The n-grams of a model that sentences of some words can have, as tables; the same scores to the last digit.

    ``words`` are different, and ``beside`` (W + 2, W + 2) says which may follow which, "<s>" being number W and "</s>"
    number W + 1. Shorter n-grams than the model has, which only bounds read, get the least of what they end.

    Raises
    ------
    InvalidInput : a score is no number, or above the bound that the model declares; states differ after the same words.
    NotSupported : there are more than ``MOST_NGRAMS`` n-grams.
    """
    for mark in (BEGIN, END):
        if mark in words:
            raise InvalidInput(f"{mark} is one of the target words; models of one's own have it as the mark only.")
    rows, values = _Asked(checked_model(model), words, beside).ngrams()
    names = [*words, BEGIN, END, *(() if UNKNOWN in words else (UNKNOWN,))]
    least = float(values.min(initial=0.0))
    orders: list[Ngrams] = []
    for k in range(int(model.order), 1, -1):
        own = (rows[:, -k] >= 0) & (rows[:, : rows.shape[1] - k] < 0).all(axis=1)
        orders.append(Ngrams(rows[own][:, -k:].astype(np.int32), values[own], np.zeros(int(own.sum()))))
        shorter = rows[own].copy()
        shorter[:, -k] = -1
        shorter, at = np.unique(shorter, axis=0, return_inverse=True)
        lowest = np.full(len(shorter), np.inf)
        np.minimum.at(lowest, at.reshape(-1), values[own])
        rows, values = np.concatenate((rows[~own], shorter)), np.concatenate((values[~own], lowest))
    unigram = np.full(len(names), np.inf)
    np.minimum.at(unigram, rows[:, -1], values)
    unigram[unigram == np.inf] = least  # never asked for
    numbers = np.arange(len(names), dtype=np.int32)[:, None]
    orders.append(Ngrams(numbers, unigram, np.zeros(len(names))))
    return LanguageModel(Arpa(names, orders[::-1], natural=True))


class _Asked:
    """Every n-gram that may be reached, breadth first from the begin of a sentence, and what a model says of each."""

    def __init__(self, model: WordModel, words: Sequence[str], beside: Bools) -> None:
        self.model, self.names = model, [*words, BEGIN, END]
        self.begin, self.end, self.width = len(words), len(words) + 1, max(int(model.order) - 1, 1)
        followers = beside.copy()
        followers[self.end] = False
        self.size = followers.sum(axis=1)
        self.first = np.cumsum(self.size) - self.size
        self.follower = np.nonzero(followers)[1]
        self.number: dict[Hashable, int] = {}  # of states
        self.states: list[Hashable] = []
        self.answers: dict[int, tuple[float, int]] = {}  # by state and word

    def ngrams(self) -> tuple[Ints, Floats]:
        """Rows of words, -1 before those that start a sentence, and their scores."""
        context = np.full((1, self.width), -1, dtype=np.int64)
        context[0, -1] = self.begin
        state = np.array([self._state(self.model.begin())])
        known: dict[bytes, int] = {context.tobytes(): int(state[0])}
        rows, values, total = list[Ints](), list[Floats](), 0
        while len(context):
            origin, within = ragged(self.size[context[:, -1]])
            word = self.follower[self.first[context[origin, -1]] + within]
            total += len(word)
            if total > MOST_NGRAMS:
                raise NotSupported(
                    f"the problem can reach more than {MOST_NGRAMS} n-grams of order {self.model.order}, and a model "
                    "of one's own is asked about each. Give fewer options or a smaller forest, or a lower order."
                )
            value, then = self._ask(state[origin], word)
            rows.append(np.column_stack((context[origin], word)))
            values.append(value)
            context, state = self._reached(rows[-1][word != self.end, 1:], then[word != self.end], known)
        if self.model.order == 1:
            return self._without_contexts(np.concatenate(rows), np.concatenate(values))
        return np.concatenate(rows), np.concatenate(values)

    def _without_contexts(self, rows: Ints, values: Floats) -> tuple[Ints, Floats]:
        words, at = np.unique(rows[:, -1:], axis=0, return_index=True)
        if (values != values[at][np.searchsorted(words[:, 0], rows[:, -1])]).any():
            raise InvalidInput("the language model is of order 1, but scores a word by what stands before it.")
        return words, values[at]

    def _reached(self, context: Ints, state: Ints, known: dict[bytes, int]) -> tuple[Ints, Ints]:
        """The contexts among these that are new, each once, and their states."""
        if not len(context):
            return context, state
        context, at, inverse = np.unique(context, axis=0, return_index=True, return_inverse=True)
        inverse, first = inverse.reshape(-1), state[at]
        different = np.flatnonzero(state != first[inverse])
        if len(different):
            self._refuse(context[inverse[different[0]]])
        new = np.zeros(len(context), dtype=bool)
        for k, (row, q) in enumerate(zip(context, first.tolist(), strict=True)):
            held = known.setdefault(row.tobytes(), -1)
            if held not in (-1, q):
                self._refuse(row)
            new[k], known[row.tobytes()] = held == -1, q
        return context[new], first[new]

    def _refuse(self, context: Ints) -> None:
        words = " ".join(self.names[w] for w in context.tolist() if w >= 0)
        raise InvalidInput(
            f"the language model has order {self.model.order}, but different states after the words {words!r}: it "
            "looks back further, or its states hold more than what matters to the words that follow."
        )

    def _state(self, state: Hashable) -> int:
        if state not in self.number:
            self.number[state] = len(self.states)
            self.states.append(state)
        return self.number[state]

    def _ask(self, state: Ints, word: Ints) -> tuple[Floats, Ints]:
        """Scores of words after states, and the states after them; the model is asked about each pair once."""
        keys, inverse = np.unique((state << 32) | word, return_inverse=True)
        value, then = np.empty(len(keys)), np.empty(len(keys), dtype=np.int64)
        for k, key in enumerate(keys.tolist()):
            if key not in self.answers:
                self.answers[key] = self._answer(key >> 32, key & 0xFFFFFFFF)
            value[k], then[k] = self.answers[key]
        return value[inverse], then[inverse]

    def _answer(self, state: int, word: int) -> tuple[float, int]:
        score, following = self.model.advance(self.states[state], self.names[word])
        if not np.isfinite(score) or score > self.model.upper_bound:
            wrong = f"above its upper_bound {self.model.upper_bound}" if np.isfinite(score) else "expected a number"
            raise InvalidInput(
                f"the language model scores {self.names[word]!r} after state {self.states[state]!r} as {score!r}; "
                f"{wrong}."
            )
        return float(score), -1 if word == self.end else self._state(following)
