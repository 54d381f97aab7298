"""The labels of a finished tree's arcs; and names of arcs, their likely labels before that."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Floats, Ints
from certus.errors import InvalidInput
from certus.features.encode import MOST_COARSE, Encoded
from certus.features.templates import LABEL, LABEL_PAIR, Templates
from certus.kernels.tuples import LabelModel, LinearModel
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

    def __post_init__(self) -> None:
        _check_bits(self.bits, len(self.labels))

    def label(self, batch: Encoded, start: Ints, heads: Ints, more: Floats | None = None) -> Ints:
        """Number of the label of each word, -1 at node 0; heads of sentence s begin at start[s].

        ``more`` (nodes, labels) is added to the scores, in units of the weights.
        """
        found = np.empty(len(heads), dtype=np.int64)
        kernels.labels.label_trees(batch, start, heads, self.arrays, more, found)
        return found

    def names(self, batch: Encoded, s: int, allowed: Bools) -> NDArray[np.uint32]:
        """Names of the allowed arcs of sentence s, (n + 1, n + 1), 0 elsewhere: likely labels, by two words alone."""
        names = np.empty(allowed.shape, dtype=np.uint32)
        kernels.arcs.name_arcs(batch.sentence(s), allowed, self.arrays, names)
        return names

    @property
    def arrays(self) -> LabelModel:
        """As the kernels take it."""
        model = LinearModel(self.templates.arrays, self.bits, self.weight.value)
        return LabelModel(self.seen, model, LABEL_PAIR.arrays)


def _check_bits(bits: int, labels: int) -> None:
    """InvalidInput unless there is a weight for each label of a feature: kernels read them side by side."""
    if 1 << bits < labels:
        raise InvalidInput(f"label_bits is {bits}, for {1 << bits} weights; expected more, for {labels} labels.")


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
        _check_bits(bits, len(self.names))
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

    def on(self, members: Ints, weights: Weights) -> Self:
        """The same, for some of the sentences and with weights of their own."""
        other = copy(self)
        other.members, other.weights = members, weights
        return other

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once; yields their words, and how many labels were wrong or did not win by 1."""
        batch, weights = self.batch, self.weights
        model = LinearModel(self.templates.arrays, weights.bits, weights.value)
        labeller = LabelModel(self.seen, model, self.pairs.arrays)
        for s in np.random.default_rng([self.seed, number]).permutation(self.members):
            tree = (batch.sentence(s), self.trees[s], self.gold[s], self.alone)
            wrong = kernels.labels.learn_labels(*tree, labeller, self.step, weights.clock, weights.arrays)
            weights.clock += 1.0
            yield int(batch.length[s]), float(wrong)

    def labeller(self, weight: Float32) -> Labeller:
        """The labeller with these weights."""
        return Labeller(self.names, self.seen, self.weights.bits, Packed.of(weight), self.templates)
