"""Filters of arcs as objects, and cascades made of them: the kinds of LR 8.5.1 and the beam of DEP 5.7.3.

A filter gives each arc that an earlier one left a *level*, the higher the safer, and keeps those whose level is at
least its threshold, and one tree in any case: that whose levels add up to most. ``train_filter`` makes a filter of any
kind, ``ArcFilter.tuned`` chooses on held-out trees the sharpest threshold that loses few of the right arcs that were
still there, and ``train_cascade`` does both for one filter after the other.

    kind                level of an arc                                             trained by
    length dictionary   words by which it is shorter than the longest one seen
    local               score of a classifier                                       logistic regression
    local short         the same over the index set of a vine                       logistic regression
    vine                eta at which its max-marginal among vine parses is cut      filter loss
    first order         the same among trees scored by arcs                         filter loss
    second order        the same among trees scored by arcs and siblings            filter loss
    vine width          how far its max-marginal is from the best vine parse        filter loss
    first order width   the same among trees scored by arcs                         MIRA
    second order width  the same among trees scored by arcs and siblings            MIRA
    posterior           its probability                                             log-linear
    vine posterior      its probability among vine parses                           log-linear
    marginal beam       its probability over that of the word's likeliest head      log-linear

Over the index set of a vine the level of an arc longer than the band is the lower of those of its two ends. A parser's
own cascade (``certus.models.cascade``) is a dictionary and two filters of first-order width in one kernel.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from certus import kernels
from certus.checks import Bools, Floats, Ints, one_of
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.features import templates as T
from certus.features.encode import Encoded
from certus.kernels.tuples import LinearModel, Sentence
from certus.learn.examples import Examples
from certus.learn.filter_loss import FilterLoss, FilterTrainer, levels
from certus.learn.learners import EpochTrainer, TreeTask, new_trainer, new_weights
from certus.learn.local import LocalTrainer
from certus.learn.log_linear import GradientTrainer
from certus.learn.parts import ForestParts, Parts, Rows
from certus.learn.trees import TreeModel, arc_scores
from certus.learn.vine import VineParts, vine_model
from certus.learn.weights import Float32, Weights
from certus.models.cascade import Cascade, Filter, longest_arcs, with_tree
from certus.models.loop import Stage, Training

ERROR = 0.002  # share of right arcs that a stage may lose (LR 8.5.1)
MEASURES = ("score", "max-marginal", "shortfall", "probability", "beam")


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
    """Keeps the arcs whose level is at least a threshold, and the arcs of the tree whose levels add up to most."""

    name: str
    model: TreeModel  # which trees there are
    threshold: float

    @abstractmethod
    def levels(self, batch: Encoded, s: int, allowed: Bools) -> Floats:
        """The level of each allowed arc of sentence s, in shape (n + 1, n + 1); -inf for arcs that are not."""

    def keep(self, batch: Encoded, s: int, allowed: Bools) -> Bools:
        """The arcs of sentence s that are left out of the allowed ones, which must contain a tree."""
        level = self.levels(batch, s, allowed)
        kept: Bools = level >= self.threshold
        return with_tree(kept & allowed, self._best(level))

    def tuned(self, held_out: Treebank, error: float = ERROR) -> Self:
        """The same filter with the highest threshold that loses at most a share of the right arcs that are left.

        It is inf, for one tree alone, if even that loses no more.
        """
        if not 0.0 <= error < 1.0:
            raise InvalidInput(f"the share of right arcs to lose is {error}; expected 0 or more, and less than 1.")
        threshold = highest_threshold(self.right_levels(held_out), error)
        return replace(self, threshold=threshold)  # type: ignore[type-var]

    def right_levels(self, held_out: Treebank) -> Floats:
        """Levels of the right arcs that are left and in some tree; inf for those that are kept at any threshold."""
        found = [np.empty(0)]
        for s, (tree, allowed) in enumerate(zip(held_out.trees, held_out.allowed, strict=True)):
            level = self.levels(held_out.batch, s, allowed)
            own = level[tree[1:], np.arange(1, len(tree))]
            safe = self._best(level)[1:] == tree[1:]
            found.append(np.where(safe, np.inf, own)[own > -np.inf])
        return np.concatenate(found)

    def _best(self, level: Floats) -> Ints:
        """The tree whose levels add up to most."""
        heads = np.full(len(level), -1, dtype=np.int64)
        if len(level) > 1 and kernels.parser.best_tree(level, self.model.crossing, self.model.single, heads) == -np.inf:
            raise Infeasible(f"the arcs left of {len(level) - 1} words contain no tree; a filter needs one.")
        return heads


def highest_threshold(level: Floats, error: float) -> float:
    """The highest threshold that is above at most a share of the levels (LR 8.5.1); inf if there are none."""
    return float(np.sort(level)[int(error * len(level))]) if len(level) else np.inf


@dataclass(frozen=True)
class LengthDictionary(ArcFilter):
    """Arcs no longer than the longest that was seen between two coarse tags in a direction (LR 8.5.1)."""

    model: TreeModel
    longest: Ints
    threshold: float = 0.0
    name: str = "length dictionary"

    def levels(self, batch: Encoded, s: int, allowed: Bools) -> Floats:
        node = np.arange(len(allowed))
        coarse = batch.coarse[batch.base[s] + node]
        right = (node[:, None] < node[None, :]).astype(np.int64)
        slack = self.longest[right, coarse[:, None], coarse[None, :]] - np.abs(node[:, None] - node[None, :])
        return np.where(allowed, slack, -np.inf)


@dataclass(frozen=True)
class LinearFilter(ArcFilter):
    """A linear model over trees, or over the parses of a vine if it has a band, and what of it makes the level.

    ``measure`` is "score", the score of the arc alone; "max-marginal", the largest eta of LR 8.4.1 that keeps it;
    "shortfall", how far its max-marginal lies above the best tree, so 0 or less; "probability"; or "beam", the
    probability over that of the likeliest head of the same word.
    """

    name: str
    model: TreeModel
    measure: str
    bits: int
    weight: Float32
    threshold: float
    band: int | None = None

    def __post_init__(self) -> None:
        one_of("measure", self.measure, MEASURES)

    def levels(self, batch: Encoded, s: int, allowed: Bools) -> Floats:
        if len(allowed) == 1:
            return np.full((1, 1), -np.inf)
        level = self._levels(batch.sentence(s), allowed)
        if self.measure == "beam":
            level /= level.max(axis=0, initial=np.finfo(np.float64).tiny)
        return level

    def _levels(self, sentence: Sentence, allowed: Bools) -> Floats:
        """The levels, but for the beam, which needs to know the rivals of an arc."""
        if self.band is not None:
            vine = VineParts(self.model, allowed, self.band)
            short = self._arc_scores(sentence, vine.short)[vine.short]
            score = np.concatenate((short, self._scores(sentence, vine.rows[vine.n_short :])))
            return vine.onto_arcs(self._measured(vine, score))
        if self.model.first_order and self.measure in ("score", "max-marginal", "shortfall"):
            return self._of_arcs(self._arc_scores(sentence, allowed))
        parts = Parts(self.model, allowed)
        first = self.model.first_order
        score = self._arc_scores(sentence, allowed)[allowed] if first else self._scores(sentence, parts.rows)
        level = np.full(allowed.shape, -np.inf)
        level[allowed] = self._measured(parts, score)
        return level

    def _measured(self, parts: ForestParts, score: Floats) -> Floats:
        """The level of each index of a set."""
        if self.measure == "score":
            return score
        if self.measure in ("probability", "beam"):
            return parts.log_sum(score)[1][: parts.n_arcs]
        best, through, _ = parts.filter(score, 1.0)
        return levels(through, best) if self.measure == "max-marginal" else through - best

    def _of_arcs(self, score: Floats) -> Floats:
        """Levels from the scores of the arcs alone, without a list of parts."""
        if self.measure == "score":
            return score
        through = np.empty_like(score)
        best = float(kernels.parser.max_marginals(score, self.model.crossing, self.model.single, through))
        return levels(through, best) if self.measure == "max-marginal" else through - best

    def _arc_scores(self, sentence: Sentence, allowed: Bools) -> Floats:
        return arc_scores(sentence, allowed, LinearModel(self.model.arrays[0], self.bits, self.weight))

    def _scores(self, sentence: Sentence, rows: Rows) -> Floats:
        score, names = np.empty(len(rows)), np.zeros((sentence.n + 1, sentence.n + 1), dtype=np.uint32)
        kernels.parts.score_parts(sentence, names, self.model.weighted(self.bits, self._double), rows, score)
        return score

    @cached_property
    def _double(self) -> Floats:
        """The weights as learners have them, for the kernel they share."""
        return self.weight.astype(np.float64)


def of_parser(stage: Filter, cascade: Cascade) -> LinearFilter:
    """A filter of a parser's cascade as an object."""
    model = TreeModel((stage.templates,), cascade.projective, cascade.single)
    return LinearFilter("parser", model, "shortfall", stage.bits, stage.weight.floats, -stage.width)


# -- training --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of filter: over which index set, by which measure, with which learner, and with which threshold at first.

    Learners are "local", "filter-loss", or the name of a learner of trees.
    """

    measure: str
    learner: str
    threshold: float
    vine: bool = False
    siblings: bool = False


KINDS = {
    "local": Kind("score", "local", 0.0),
    "local short": Kind("score", "local", 0.0, vine=True),
    "vine": Kind("max-marginal", "filter-loss", 0.4, vine=True),
    "first order": Kind("max-marginal", "filter-loss", 0.4),
    "second order": Kind("max-marginal", "filter-loss", 0.4, siblings=True),
    "vine width": Kind("shortfall", "filter-loss", -6.0, vine=True),
    "first order width": Kind("shortfall", "mira", -3.0),
    "second order width": Kind("shortfall", "mira", -3.0, siblings=True),
    "posterior": Kind("probability", "log-linear", 0.001),
    "vine posterior": Kind("probability", "log-linear", 0.001, vine=True),
    "marginal beam": Kind("beam", "log-linear", 0.0001),
}


def train_filter(
    kind: str,
    treebank: Treebank,
    *,
    projective: bool = True,
    single: bool = True,
    learner: str | None = None,
    templates: T.Templates = T.FIRST_FILTER,
    siblings: T.Templates = T.SIBLING,
    band: int = 5,
    bits: int = 18,
    epochs: int = 3,
    eta: float = 0.4,
    seed: int = 1,
) -> ArcFilter:
    """A filter of a kind, trained over the arcs that earlier stages left, and over the right ones in any case.

    Its threshold is the usual one of its kind; ``tuned`` finds a better one.

    Parameters
    ----------
    kind : "length dictionary" or a name in KINDS
    treebank : Treebank
        Trees must be projective for a filter of projective trees.
    projective, single : bool
        Whether arcs may not cross, and whether the root has one word at most. Vines and siblings are projective only.
    learner : str, optional
        Filters by max-marginals over trees learn by "filter-loss" or by a learner of trees such as "mira".
    templates, siblings : Templates
        What a filter looks at: of arcs, and beyond them at second order.
    band : int
        The longest short arc of a vine.
    eta : float
        Where filter loss puts the threshold in training.
    """
    if kind == "length dictionary":
        return LengthDictionary(TreeModel((), projective, single), longest_arcs(treebank.batch, treebank.trees))
    one_of("kind", kind, ("length dictionary", *KINDS))
    own = KINDS[kind]
    if not projective and (own.vine or own.siblings):
        raise NotSupported(f"filters of kind {kind!r} are over projective trees; use one of first order.")
    if own.vine:
        model = vine_model(templates, single=single)
    else:
        model = TreeModel((templates, siblings) if own.siblings else (templates,), projective, single)
    learner = learner or own.learner
    allowed = [with_tree(arcs.copy(), tree) for arcs, tree in zip(treebank.allowed, treebank.trees, strict=True)]
    parts: Callable[[TreeModel, Bools], ForestParts] = partial(VineParts, band=band) if own.vine else Parts

    def trainer(weights: Weights) -> EpochTrainer:
        examples = Examples(model, treebank.batch, treebank.trees, allowed.__getitem__, bits, parts)
        if learner == "local":
            return LocalTrainer(examples, weights, seed)
        if learner == "filter-loss":
            return FilterTrainer(examples, weights, seed, FilterLoss(eta))
        if learner == "log-linear":
            return GradientTrainer(examples, weights, seed, cost=1.0)
        if own.vine:
            raise NotSupported(f"{learner} learns from trees; a vine learns by filter-loss, log-linear or local.")
        task = TreeTask(model, treebank.batch, treebank.trees, allowed.__getitem__, weights, seed)
        return new_trainer(learner, task)

    weight = Training({kind: Stage(partial(new_weights, learner, bits), epochs)}).run(kind, trainer)
    found = LinearFilter(kind, model, own.measure, bits, weight, own.threshold)
    return replace(found, band=band) if own.vine else found


# -- cascades --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StagedCascade:
    """Filters one after the other; ``certus.models.cascade.stages`` says what each leaves, and how fast."""

    filters: tuple[ArcFilter, ...]

    def survivors(self, batch: Encoded, s: int) -> Bools:
        """Which arcs of sentence s are left, in shape (n + 1, n + 1)."""
        allowed = all_arcs(int(batch.length[s]))
        for stage in self.filters:
            allowed = stage.keep(batch, s, allowed)
        return allowed

    def prefixes(self) -> dict[str, "StagedCascade"]:
        """The cascade up to each of its filters."""
        return {stage.name: StagedCascade(self.filters[: k + 1]) for k, stage in enumerate(self.filters)}


def train_cascade(
    kinds: Iterable[str], treebank: Treebank, held_out: Treebank, *, error: float = ERROR, **options: Any
) -> StagedCascade:
    """A filter of each kind, trained and tuned over what the ones before it leave; the dictionary stays as it is.

    ``options`` are those of ``train_filter``.
    """
    filters = []
    for kind in kinds:
        stage = train_filter(kind, treebank, **options)
        if kind != "length dictionary":
            stage = stage.tuned(held_out, error)
        filters.append(stage)
        treebank, held_out = treebank.after(stage), held_out.after(stage)
    return StagedCascade(tuple(filters))
