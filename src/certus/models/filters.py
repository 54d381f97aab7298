"""Filters of arcs, the stages that cascades are made of: the kinds of LR 8.5.1 and the beam of DEP 5.7.3.

A length dictionary keeps the arcs that are no longer than the longest one seen. Every other filter gives each arc that
an earlier one left a *level*, the higher the safer, and keeps those whose level is at least its threshold, of each word
so many heads at most, and one tree in any case: that whose levels add up to most. ``LinearFilter.tuned`` chooses on
held-out trees the sharpest threshold that loses few of the right arcs that were still there.

    measure       level of an arc
    score         its score
    max-marginal  eta at which its max-marginal, the value of the best tree with it, is cut (LR 8.4.1)
    shortfall     how far its max-marginal lies above the best tree, so 0 or less
    probability   its probability
    beam          its probability over that of the likeliest head of the same word

Over the index set of a vine the level of an arc longer than the band is the lower of those of its two ends.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from certus import kernels
from certus.checks import Bools, Floats, Ints, one_of
from certus.errors import Infeasible, InvalidInput
from certus.features.encode import MOST_COARSE, Encoded
from certus.kernels import tuples
from certus.learn.filter_loss import levels
from certus.learn.parts import ForestParts, Parts, Rows
from certus.learn.trees import TreeModel, arc_scores
from certus.learn.vine import VineParts
from certus.learn.weights import Packed

ERROR = 0.002  # share of right arcs that a stage may lose (LR 8.5.1)
MEASURES = ("score", "max-marginal", "shortfall", "probability", "beam")
EVERY_HEAD = 10**6  # more heads than any word has


@dataclass(frozen=True)
class Treebank:
    """Sentences with known trees, and the arcs that earlier stages have left each of them."""

    batch: Encoded
    trees: Sequence[Ints]
    allowed: Sequence[Bools]

    @classmethod
    def of(cls, batch: Encoded, trees: Sequence[Ints]) -> "Treebank":
        """Sentences of which all arcs are left."""
        return cls(batch, trees, [all_arcs(int(n)) for n in batch.length])

    def after(self, stage: "ArcFilter") -> "Treebank":
        """What one more filter leaves."""
        return replace(self, allowed=[stage.keep(self.batch, s, arcs) for s, arcs in enumerate(self.allowed)])


def all_arcs(n: int) -> Bools:
    """Every arc of n words, in shape (n + 1, n + 1)."""
    allowed = ~np.eye(n + 1, dtype=np.bool_)
    allowed[:, 0] = False
    return allowed


class ArcFilter(ABC):
    """A stage of a cascade: which of the arcs that are left it leaves, always with a tree among them."""

    name: str
    model: TreeModel  # which trees there are

    @property
    def arrays(self) -> tuples.ArcFilter | None:
        """As the kernel of a cascade takes it; None if it does not."""
        return None

    @abstractmethod
    def keep(self, batch: Encoded, s: int, allowed: Bools) -> Bools:
        """The arcs of sentence s that are left out of the allowed ones, which must contain a tree."""

    def _best(self, score: Floats) -> Ints | None:
        """The tree whose scores add up to most; None if there is none."""
        heads = np.full(len(score), -1, dtype=np.int64)
        if len(score) == 1 or kernels.parser.best_tree(score, self.model.crossing, self.model.single, heads) > -np.inf:
            return heads
        return None


@dataclass(frozen=True)
class LengthDictionary(ArcFilter):
    """Arcs no longer than the longest that was seen between two coarse tags in a direction (LR 8.5.1).

    Where these make no tree, all arcs are left.
    """

    model: TreeModel
    longest: Ints  # (2, coarse tags, coarse tags): longest arc to the left and to the right
    name: str = "length dictionary"

    @classmethod
    def of(cls, treebank: Treebank, *, projective: bool = True, single: bool = True) -> "LengthDictionary":
        """The longest arcs of a treebank."""
        longest = np.zeros((2, MOST_COARSE + 1, MOST_COARSE + 1), dtype=np.int64)
        for base, heads in zip(treebank.batch.base, treebank.trees, strict=True):
            m, h = np.arange(1, len(heads)), heads[1:]
            coarse = treebank.batch.coarse[base : base + len(heads)]
            np.maximum.at(longest, ((h < m).astype(np.int64), coarse[h], coarse[m]), np.abs(h - m))
        return cls(TreeModel((), projective, single), longest)

    def keep(self, batch: Encoded, s: int, allowed: Bools) -> Bools:
        node = np.arange(len(allowed))
        coarse = batch.coarse[batch.base[s] + node]
        right = (node[:, None] < node[None, :]).astype(np.int64)
        longest = self.longest[right, coarse[:, None], coarse[None, :]]
        kept: Bools = allowed & (np.abs(node[:, None] - node[None, :]) <= longest)
        return kept if self._best(np.where(kept, 0.0, -np.inf)) is not None else allowed


@dataclass(frozen=True)
class LinearFilter(ArcFilter):
    """A linear model over trees, or over the parses of a vine if it has a band, and what of it makes the level.

    ``measure`` is one of MEASURES, ``heads`` the most heads that a word keeps.
    """

    name: str
    model: TreeModel
    measure: str
    bits: int
    weight: Packed
    threshold: float
    band: int | None = None
    heads: int = EVERY_HEAD

    def __post_init__(self) -> None:
        one_of("measure", self.measure, MEASURES)

    @property
    def width(self) -> float:
        """How far below the best tree the max-marginal of an arc may lie, by shortfall."""
        return -self.threshold

    @property
    def arrays(self) -> tuples.ArcFilter | None:
        """As the kernels take it; None if it is not by shortfall among trees scored by arcs, or may remove them all."""
        if self.measure != "shortfall" or self.band is not None or not self.model.first_order or not self.width >= 0.0:
            return None
        return tuples.ArcFilter(self.of_arcs, self.width / self.weight.unit, self.heads)

    @property
    def of_arcs(self) -> tuples.LinearModel:
        """The model of single arcs; its scores, and all below until they are measured, count units of the weights."""
        return tuples.LinearModel(self.model.arrays[0], self.bits, self.weight.value)

    def keep(self, batch: Encoded, s: int, allowed: Bools) -> Bools:
        level = self.levels(batch, s, allowed)
        kept: Bools = allowed & (level >= self.threshold)
        if self.heads < len(level):
            kept &= level >= np.partition(level, -self.heads, axis=0)[-self.heads]
        return with_tree(kept, self._tree(level))

    def tuned(self, held_out: Treebank, error: float = ERROR) -> "LinearFilter":
        """The same filter with the highest threshold that loses at most a share of the right arcs that are left.

        It is inf, for one tree alone, if even that loses no more.
        """
        if not 0.0 <= error < 1.0:
            raise InvalidInput(f"the share of right arcs to lose is {error}; expected 0 or more, and less than 1.")
        return replace(self, threshold=highest_threshold(self.right_levels(held_out), error))

    def right_levels(self, held_out: Treebank) -> Floats:
        """Levels of the right arcs that are left and in some tree; inf for those that are kept at any threshold."""
        found = [np.empty(0)]
        for s, (tree, allowed) in enumerate(zip(held_out.trees, held_out.allowed, strict=True)):
            level = self.levels(held_out.batch, s, allowed)
            own = level[tree[1:], np.arange(1, len(tree))]
            safe = self._tree(level)[1:] == tree[1:]
            found.append(np.where(safe, np.inf, own)[own > -np.inf])
        return np.concatenate(found)

    def _tree(self, level: Floats) -> Ints:
        """The tree whose levels add up to most."""
        heads = self._best(level)
        if heads is None:
            raise Infeasible(f"the arcs left of {len(level) - 1} words contain no tree; a filter needs one.")
        return heads

    def levels(self, batch: Encoded, s: int, allowed: Bools) -> Floats:
        """The level of each allowed arc of sentence s, in shape (n + 1, n + 1); -inf for arcs that are not."""
        if len(allowed) == 1:
            return np.full((1, 1), -np.inf)
        level = self._levels(batch.sentence(s), allowed)
        if self.measure == "beam":
            level /= level.max(axis=0, initial=np.finfo(np.float64).tiny)
        return level

    def _levels(self, sentence: tuples.Sentence, allowed: Bools) -> Floats:
        """The levels, but for the beam, which needs to know the rivals of an arc."""
        if self.band is not None:
            vine = VineParts(self.model, allowed, self.band)
            return vine.onto_arcs(self._measured(vine, self._vine_scores(sentence, vine)))
        level = np.full(allowed.shape, -np.inf)
        if self.model.first_order:
            level = arc_scores(sentence, allowed, self.of_arcs)
            if self.measure in ("max-marginal", "shortfall"):  # without a list of parts
                through = np.empty_like(level)
                best = float(kernels.parser.max_marginals(level, self.model.crossing, self.model.single, through))
                return self._cut(through, best)
        parts = Parts(self.model, allowed)
        score = level[allowed] if self.model.first_order else self._scores(sentence, parts.rows)
        level[allowed] = self._measured(parts, score)
        return level

    def _measured(self, parts: ForestParts, score: Floats) -> Floats:
        """The level of each index of a set."""
        if self.measure == "score":
            return self.weight.unit * score
        if self.measure in ("probability", "beam"):
            return parts.log_sum(self.weight.unit * score)[1][: parts.n_arcs]
        best, through, _ = parts.filter(score, 1.0)
        return self._cut(through, best)

    def _cut(self, through: Floats, best: float) -> Floats:
        """Levels from max-marginals."""
        return levels(through, best) if self.measure == "max-marginal" else self.weight.unit * (through - best)

    def _vine_scores(self, sentence: tuples.Sentence, vine: VineParts) -> Floats:
        short = arc_scores(sentence, vine.short, self.of_arcs)[vine.short]
        return np.concatenate((short, self._scores(sentence, vine.rows[vine.n_short :])))

    def _scores(self, sentence: tuples.Sentence, rows: Rows) -> Floats:
        score, names = np.empty(len(rows)), np.zeros((sentence.n + 1, sentence.n + 1), dtype=np.uint32)
        kernels.parts.score_parts(sentence, names, self.model.weighted(self.bits, self._double), rows, score)
        return score

    @cached_property
    def _double(self) -> Floats:
        """The weights as learners have them, for the kernel they share."""
        return self.weight.value.astype(np.float64)


def highest_threshold(level: Floats, error: float) -> float:
    """The highest threshold that is above at most a share of the levels (LR 8.5.1); inf if there are none."""
    return float(np.sort(level)[int(error * len(level))]) if len(level) else np.inf


def with_tree(allowed: Bools, tree: Ints) -> Bools:
    """Allow the arcs of a tree too: training never prunes the right answer."""
    allowed[tree[1:], np.arange(1, len(tree))] = True
    return allowed
