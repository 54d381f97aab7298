"""The labels of a finished tree's arcs; and names of arcs, their likely labels before that."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Ints
from certus.errors import InvalidInput
from certus.features.encode import MOST_COARSE, Encoded
from certus.features.templates import LABEL, LABEL_PAIR, Templates
from certus.kernels.tuples import LabelModel, LinearModel
from certus.learn.weights import Float32, Packed, Weights

STEP = 0.05  # the largest step of one update
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
        kernels.labels.label_trees(batch, start, heads, self.arrays, found)
        return found

    def names(self, batch: Encoded, s: int, allowed: Bools) -> NDArray[np.uint32]:
        """Names of the allowed arcs of sentence s, (n + 1, n + 1), 0 elsewhere: likely labels, by two words alone."""
        names = np.empty(allowed.shape, dtype=np.uint32)
        kernels.labels.name_arcs(batch.sentence(s), allowed, self.arrays, names)
        return names

    @property
    def arrays(self) -> LabelModel:
        """As the kernels take it."""
        model = LinearModel(self.templates.arrays, self.bits, self.weight.value)
        return LabelModel(self.seen, model, LABEL_PAIR.arrays)


# A labeller that names nothing, for models that do not ask.
NAMELESS = Labeller(
    (), np.zeros((2, 1, 1, 1), dtype=np.bool_), 1, Packed(np.zeros(2, dtype=np.int8), 1.0), Templates("hmglr", ())
)


class LabelTrainer:
    """Trains a labeller on trees with known labels, epoch by epoch; with ``alone`` on their arcs one by one."""

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
    ) -> None:
        self.names = tuple(sorted({label for sentence in labels for label in sentence}))
        if not self.names:
            raise InvalidInput("there is no label to learn: every sentence is empty.")
        number = {label: k for k, label in enumerate(self.names)}
        self.batch, self.trees, self.seed = batch, trees, seed
        self.templates, self.alone = templates, alone
        self.gold = [np.array([-1, *(number[label] for label in sentence)], dtype=np.int64) for sentence in labels]
        self.seen = np.zeros((2, MOST_COARSE + 1, MOST_COARSE + 1, len(self.names)), dtype=np.bool_)
        for base, heads, own in zip(batch.base, trees, self.gold, strict=True):
            m, h = np.arange(1, len(heads)), heads[1:]
            coarse = batch.coarse[base : base + len(heads)]
            self.seen[(h < m).astype(np.int64), coarse[h], coarse[m], own[1:]] = True
        self.weights = Weights(bits)
        self.pairs = NO_PAIR if alone else LABEL_PAIR

    def epoch(self, number: int, members: Ints | None = None) -> int:
        """Go through all sentences once, or those listed; returns how many labels did not win by 1."""
        batch, weights, wrong = self.batch, self.weights, 0
        model = LinearModel(self.templates.arrays, weights.bits, weights.value)
        labeller = LabelModel(self.seen, model, self.pairs.arrays)
        order = np.arange(len(self.trees)) if members is None else members
        for s in np.random.default_rng([self.seed, number]).permutation(order):
            tree = (batch.sentence(s), self.trees[s], self.gold[s], self.alone)
            wrong += kernels.labels.learn_labels(*tree, labeller, STEP, weights.clock, weights.total)
            weights.clock += 1.0
        return wrong

    def labeller(self, weight: Float32) -> Labeller:
        """The labeller with these weights."""
        return Labeller(self.names, self.seen, self.weights.bits, Packed.of(weight), self.templates)
