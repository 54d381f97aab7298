"""Training filters of every kind, and cascades of them.

    kind                level of an arc                                             trained by
    length dictionary
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

A parser has a length dictionary and one or two filters of first-order width (``certus.models.training``).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from certus.checks import Bools, one_of
from certus.errors import NotSupported
from certus.features import templates as T
from certus.learn.examples import Examples
from certus.learn.filter_loss import FilterLoss, FilterTrainer
from certus.learn.learners import EpochTrainer, new_trainer, new_weights
from certus.learn.local import LocalTrainer
from certus.learn.log_linear import GradientTrainer
from certus.learn.parts import ForestParts, Parts
from certus.learn.trees import TreeModel, TreeTask
from certus.learn.vine import VineParts, vine_model
from certus.learn.weights import Packed, Weights
from certus.models.cascade import Cascade
from certus.models.filters import ERROR, ArcFilter, LengthDictionary, LinearFilter, Treebank, with_tree
from certus.models.loop import Stage, Training


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
        return LengthDictionary.of(treebank, projective=projective, single=single)
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
    task = TreeTask(model, treebank.batch, treebank.trees, allowed.__getitem__)
    trainer = partial(_trainer, learner, task, band=band if own.vine else None, seed=seed, eta=eta)
    weight = Training({kind: Stage(partial(new_weights, learner, bits), epochs)}).run(kind, trainer)
    found = LinearFilter(kind, model, own.measure, bits, Packed.of(weight), own.threshold)
    return replace(found, band=band) if own.vine else found


def _trainer(
    learner: str, task: TreeTask, weights: Weights, *, band: int | None, seed: int, eta: float
) -> EpochTrainer:
    """What trains a filter over trees, or over vines of a band."""
    parts: Callable[[TreeModel, Bools], ForestParts] = Parts if band is None else partial(VineParts, band=band)
    examples = Examples(task, weights.bits, parts)
    if learner == "local":
        return LocalTrainer(examples, weights, seed)
    if learner == "filter-loss":
        return FilterTrainer(examples, weights, seed, FilterLoss(eta))
    if learner == "log-linear":
        return GradientTrainer(examples, weights, seed, cost=1.0)
    if band is not None:
        raise NotSupported(f"{learner} learns from trees; a vine learns by filter-loss, log-linear or local.")
    return new_trainer(learner, task, weights, seed)


def train_cascade(
    kinds: Iterable[str], treebank: Treebank, held_out: Treebank, *, error: float = ERROR, **options: Any
) -> Cascade:
    """A filter of each kind, trained and tuned over what the ones before it leave; the dictionary stays as it is.

    ``options`` are those of ``train_filter``.
    """
    filters: list[ArcFilter] = []
    for kind in kinds:
        stage = train_filter(kind, treebank, **options)
        if isinstance(stage, LinearFilter):
            stage = stage.tuned(held_out, error)
        filters.append(stage)
        treebank, held_out = treebank.after(stage), held_out.after(stage)
    return Cascade(tuple(filters))
