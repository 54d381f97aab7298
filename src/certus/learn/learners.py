"""The learners of tree models by name, and what each of them can learn."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from certus.checks import Bools, Ints, one_of
from certus.errors import NotSupported
from certus.features.encode import Encoded
from certus.learn.examples import Examples
from certus.learn.exponentiated import ExponentiatedTrainer
from certus.learn.log_linear import GradientTrainer, LbfgsTrainer
from certus.learn.relaxed import RelaxedTrainer
from certus.learn.trees import LEARNERS as BY_BEST_TREE
from certus.learn.trees import Trainer, TreeModel
from certus.learn.weights import Weights

BY_MARGINALS = ("log-linear", "log-linear-lbfgs", "log-linear-eg", "max-margin")
LOG_COST, HINGE_COST = 1.0, 0.1  # C of L(w), as did well on held-out trees
NAMES = (*BY_BEST_TREE, *BY_MARGINALS, "relaxed")


class TreeTrainer(Protocol):
    """What trains a tree model: the weights it was given, and their ``extra``, are all its state."""

    @property
    def objective(self) -> float | None:
        """The loss, or what else the learner lowers or raises, over the last epoch; None if it has no such number."""

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once; yields the words and the wrong, or expected to be wrong, heads of each."""


def check_learner(name: str, *, projective: bool, order: int, trisiblings: bool = False) -> None:
    """InvalidInput for a learner there is none of, NotSupported for one that cannot learn such a model."""
    one_of("learner", name, NAMES)
    if name in BY_MARGINALS and not projective and order > 1:
        raise NotSupported(
            f"{name} sums over all trees, which is NP-hard with crossing arcs above order 1; use mira, perceptron, "
            "adagrad or relaxed, or order 1, or projective trees."
        )
    if name == "relaxed" and trisiblings:
        raise NotSupported("relaxed learns no tri-siblings; leave them out, or use another learner.")


def new_weights(name: str, bits: int) -> Weights:
    """Weights of zero for a learner: in double precision for those that add up many small steps."""
    return Weights(bits, dtype=np.float32 if name in BY_BEST_TREE else np.float64)


def new_trainer(
    name: str,
    model: TreeModel,
    batch: Encoded,
    trees: Sequence[Ints],
    allowed: Callable[[int], Bools],
    weights: Weights,
    seed: int,
    *,
    cost: float | None = None,
) -> TreeTrainer:
    """A trainer of ``model`` on a batch of sentences with known trees, by the name of a learner.

    ``allowed(s)`` are the arcs of sentence s that trees may have, those of its own tree among them. ``cost`` is C, the
    weight of the treebank against the regulariser, for the learners that have one.
    """
    one_of("learner", name, NAMES)
    if name in BY_BEST_TREE:
        return Trainer(model, batch, trees, allowed, weights, BY_BEST_TREE[name], seed)
    if name == "relaxed":
        return RelaxedTrainer(model, batch, trees, allowed, weights, seed)
    examples = Examples(model, batch, trees, allowed, weights.bits)
    if name == "log-linear":
        return GradientTrainer(examples, weights, seed, cost=cost or LOG_COST)
    if name == "log-linear-lbfgs":
        return LbfgsTrainer(examples, weights, cost=cost or LOG_COST)
    margin = name == "max-margin"
    return ExponentiatedTrainer(
        examples, weights, seed, margin=margin, cost=cost or (HINGE_COST if margin else LOG_COST)
    )
