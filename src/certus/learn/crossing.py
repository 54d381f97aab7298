"""Trees with crossing arcs above first order under a trained model: one sentence, scored and relaxed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Floats, Ints
from certus.dependency.polyak import polyak_rule
from certus.kernels.tuples import LinearModel, Sentence

Features = NDArray[np.uint64]


class Crossing:
    """The head automata of a sentence over the allowed arcs, relaxed against the spanning tree.

    ``heads`` is the best tree found, of score ``value``; ``proved`` says whether there is none better.
    """

    def __init__(
        self,
        sentence: Sentence,
        names: NDArray[np.uint32],
        model: LinearModel,
        arc: Floats,
        allowed: Bools,
        *,
        single: bool,
        rounds: int,
        iterations: int,
    ) -> None:
        self.sentence, self.names, self.model, self.arc = sentence, names, model, arc
        self.lattices: Any = kernels.crossing.scored_lattices(sentence, names, allowed, single, model)
        self.multipliers = np.zeros((2, len(self.lattices.arc_head)))
        self.heads: Ints = np.full(len(arc), -1, dtype=np.int64)
        self.rule = (*polyak_rule(iterations, rounds), 0)
        found = kernels.crossing.relaxed(self.lattices, arc, single, self.rule, 0.0, self.multipliers, self.heads)
        self.proved, self.value = bool(found[0]), float(found[1])

    def against(self, gold: Ints) -> tuple[int, Features, Features]:
        """Where no tree is proved: what the head automata choose at the last multipliers (LR 6.6).

        Returns the number of its arcs that the tree gold lacks, the features of gold, and those of the choice, both
        without those of the parts that they share.
        """
        features: tuple[int, Features, Features] = kernels.crossing.choice_features(
            self.sentence, self.names, self.model, self.lattices, self.arc, self.rule[0], self.multipliers, gold
        )
        return features
