"""Trees with crossing arcs above first order under a trained model: one sentence, scored and relaxed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Floats, Ints
from certus.dependency.nonprojective import polyak_rule
from certus.features.encode import Encoded
from certus.learn.weights import Float32

Features = NDArray[np.uint64]


@dataclass(frozen=True)
class Scorer:
    """The templates of a model as the kernels take them, its weights, and room for the features of a part."""

    templates: tuple[Any, ...]
    bits: int
    weight: Float32
    index: Features

    def arcs(self, batch: Encoded, s: int, allowed: Bools) -> Floats:
        """Scores of the allowed arcs of sentence s alone, -inf elsewhere."""
        arc: Floats = np.empty(allowed.shape)
        sentence: tuple[Any, ...] = (batch.attribute, batch.coarse, int(batch.base[s]), allowed)
        arguments = (*sentence, self.templates[0], self.bits, self.weight, self.index, arc)
        kernels.parser.score_arcs(*arguments)
        return arc


class Crossing:
    """The head automata of a sentence over the allowed arcs, relaxed against the spanning tree.

    ``heads`` is the best tree found, of score ``value``; ``proved`` says whether there is none better.
    """

    def __init__(
        self,
        scorer: Scorer,
        batch: Encoded,
        s: int,
        names: NDArray[np.uint32],
        arc: Floats,
        allowed: Bools,
        *,
        single: bool,
        rounds: int,
        iterations: int,
    ) -> None:
        self.scorer, self.arc = scorer, arc
        base = int(batch.base[s])
        self.sentence = (batch.attribute, batch.coarse, base, names)
        model = (scorer.templates, scorer.bits, scorer.weight)
        self.lattices: Any = kernels.crossing.scored_lattices(batch.attribute, base, names, allowed, single, *model)
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
        scorer = self.scorer
        chosen = (self.lattices, self.arc, self.rule[0], self.multipliers)
        features: tuple[int, Features, Features] = kernels.crossing.choice_features(
            *self.sentence, *chosen, scorer.templates, scorer.bits, scorer.index, gold
        )
        return features
