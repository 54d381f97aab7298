"""The labels of a finished tree's arcs; and names of arcs, their likely labels before that."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Ints
from certus.errors import InvalidInput
from certus.features.encode import MOST_COARSE, Encoded
from certus.features.templates import LABEL, LABEL_PAIR, Templates
from certus.learn.learners import LABELS, find_learner
from certus.learn.weights import Float32, Packed, Weights

NO_PAIR = Templates("hms", ())


@dataclass(frozen=True)
class Labeller:
    """A linear model of labels, and of two on neighbouring modifiers of a head; the best are found exactly.

    ``seen`` says which ones go with a direction and two coarse tags.
    """

    labels: tuple[str, ...]
    seen: NDArray[np.bool_]
    bits: int
    weight: Packed
    templates: Templates = LABEL

    def label(self, batch: Encoded, start: Ints, heads: Ints) -> Ints:
        """Number of the label of each word, -1 at node 0; heads of sentence s begin at start[s]."""
        found = np.empty(len(heads), dtype=np.int64)
        index = np.empty(max(self.templates.most, LABEL_PAIR.most), dtype=np.uint64)
        sentences = (batch.attribute, batch.coarse, batch.base, batch.length, start, heads)
        model = (self.seen, self.templates.arrays, LABEL_PAIR.arrays, self.bits, self.weight.value)
        kernels.labels.label_trees(*sentences, *model, index, found)
        return found

    def names(self, batch: Encoded, s: int, allowed: Bools) -> NDArray[np.uint32]:
        """Names of the allowed arcs of sentence s, (n + 1, n + 1), 0 elsewhere: likely labels, by two words alone."""
        name = np.empty(allowed.shape, dtype=np.uint32)
        index = np.empty(self.templates.most, dtype=np.uint64)
        sentence = (batch.attribute, batch.coarse, int(batch.base[s]), allowed)
        arguments: tuple[Any, ...] = (*sentence, *self.arguments, index, name)
        kernels.labels.name_arcs(*arguments)
        return name

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As the kernels take them."""
        return (self.seen, self.templates.arrays, self.bits, self.weight.value)


# A labeller that names nothing, for models that do not ask.
NAMELESS = Labeller(
    (), np.zeros((2, 1, 1, 1), dtype=np.bool_), 1, Packed(np.zeros(2, dtype=np.int8), 1.0), Templates("hmglr", ())
)


class LabelTrainer:
    """Trains a labeller on trees with known labels, epoch by epoch; with ``alone`` on their arcs one by one.

    ``learner`` is an online one.
    """

    objective = None

    def __init__(
        self,
        batch: Encoded,
        trees: Sequence[Ints],
        labels: Sequence[Sequence[str]],
        *,
        bits: int,
        seed: int,
        templates: Templates = LABEL,
        alone: bool = False,
        learner: str = "mira",
    ) -> None:
        self.names = tuple(sorted({label for sentence in labels for label in sentence}))
        if not self.names:
            raise InvalidInput("there is no label to learn: every sentence is empty.")
        number = {label: k for k, label in enumerate(self.names)}
        self.batch, self.trees, self.seed = batch, trees, seed
        self.templates, self.alone, self.step = templates, alone, find_learner(learner).steps(LABELS)
        self.gold = [np.array([-1, *(number[label] for label in sentence)], dtype=np.int64) for sentence in labels]
        self.seen = np.zeros((2, MOST_COARSE + 1, MOST_COARSE + 1, len(self.names)), dtype=np.bool_)
        for base, heads, own in zip(batch.base, trees, self.gold, strict=True):
            m, h = np.arange(1, len(heads)), heads[1:]
            coarse = batch.coarse[base : base + len(heads)]
            self.seen[(h < m).astype(np.int64), coarse[h], coarse[m], own[1:]] = True
        self.weights, self.members = Weights(bits), np.arange(len(trees))
        self.pairs = NO_PAIR if alone else LABEL_PAIR
        self._index = np.empty(max(templates.most, self.pairs.most), dtype=np.uint64)

    def on(self, members: Ints, weights: Weights) -> Self:
        """The same, for some of the sentences and with weights of their own."""
        other = copy(self)
        other.members, other.weights = members, weights
        return other

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once; yields their words, and how many labels were wrong or did not win by 1."""
        batch, weights = self.batch, self.weights
        for s in np.random.default_rng([self.seed, number]).permutation(self.members):
            sentence = (batch.attribute, batch.coarse, int(batch.base[s]))
            wrong = kernels.labels.learn_labels(
                *sentence, self.trees[s], self.gold[s], self.seen, self.templates.arrays, self.pairs.arrays,
                weights.bits, self.step, self.alone, weights.clock, weights.arrays, self._index,
            )  # fmt: skip
            weights.clock += 1.0
            yield int(batch.length[s]), float(wrong)

    def labeller(self, weight: Float32) -> Labeller:
        """The labeller with these weights."""
        return Labeller(self.names, self.seen, self.weights.bits, Packed.of(weight), self.templates)
