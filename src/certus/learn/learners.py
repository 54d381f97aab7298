"""The learners by name, each registered once: what it can learn, and how it begins.

An online learner has a step, by which it moves from the best guess towards what is right; such a one learns trees, tags
and labels alike. The others learn trees only. The command line, the settings of parsers and the messages of errors read
``LEARNERS``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from certus.checks import one_of
from certus.errors import NotSupported
from certus.learn.examples import Examples
from certus.learn.exponentiated import ExponentiatedTrainer
from certus.learn.log_linear import GradientTrainer, LbfgsTrainer
from certus.learn.relaxed import RelaxedTrainer
from certus.learn.trees import Trainer, TreeTask
from certus.learn.weights import Step, Weights

LOG_COST, HINGE_COST = 1.0, 0.1  # C of L(w), as did well on held-out trees
TAGS, LABELS = 3.0, 2.5  # steps beside those of trees, which have more features


class EpochTrainer(Protocol):
    """What trains a model: the weights it was given, and their ``extra``, are all its state."""

    @property
    def objective(self) -> float | None:
        """The loss, or what else the learner lowers or raises, over the last epoch; None if it has no such number."""

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once; yields words, and how many of them are, or are expected to be, wrong."""


class Given(NamedTuple):
    """What a trainer begins with: the trees to learn, the weights to move and a seed."""

    task: TreeTask
    weights: Weights
    seed: int

    @property
    def examples(self) -> Examples:
        """The trees, as learners by marginals see them."""
        return Examples(self.task, self.weights.bits)


Maker = Callable[[Given], EpochTrainer]


@dataclass(frozen=True)
class Learner:
    """A learner: what makes its trainer of trees; its step, if it is online; what it can learn."""

    name: str
    trainer: Maker
    step: Step | None = None
    marginals: bool = False  # whether it sums over all trees

    def steps(self, factor: float) -> Step:
        """Its step where steps are so many times as large; NotSupported if it takes none."""
        if self.step is None:
            raise NotSupported(f"{self.name} learns trees only; use one of {', '.join(online())}.")
        return self.step.times(factor)


LEARNERS: dict[str, Learner] = {}


def learner(name: str, *, marginals: bool = False) -> Callable[[Maker], Maker]:
    """Register what makes a trainer of trees under a name."""

    def register(trainer: Maker) -> Maker:
        LEARNERS[name] = Learner(name, trainer, None, marginals)
        return trainer

    return register


def online_learner(name: str, step: Step) -> None:
    """Register a learner that goes from guess to guess by a step."""
    LEARNERS[name] = Learner(name, lambda given: Trainer(given.task, given.weights, step, given.seed), step)


online_learner("mira", Step(0.02, margin=True))
online_learner("perceptron", Step(1.0))
online_learner("adagrad", Step(1.0, margin=True, rate=0.01))


@learner("log-linear", marginals=True)
def _log_linear(given: Given) -> EpochTrainer:
    return GradientTrainer(given.examples, given.weights, given.seed, cost=LOG_COST)


@learner("log-linear-lbfgs", marginals=True)
def _log_linear_lbfgs(given: Given) -> EpochTrainer:
    return LbfgsTrainer(given.examples, given.weights, cost=LOG_COST)


@learner("log-linear-eg", marginals=True)
def _log_linear_eg(given: Given) -> EpochTrainer:
    return ExponentiatedTrainer(given.examples, given.weights, given.seed, margin=False, cost=LOG_COST)


@learner("max-margin", marginals=True)
def _max_margin(given: Given) -> EpochTrainer:
    return ExponentiatedTrainer(given.examples, given.weights, given.seed, margin=True, cost=HINGE_COST)


@learner("relaxed")
def _relaxed(given: Given) -> EpochTrainer:
    return RelaxedTrainer(given.task, given.weights, given.seed)


def online() -> tuple[str, ...]:
    """The names of the online learners."""
    return tuple(name for name, known in LEARNERS.items() if known.step is not None)


def find_learner(name: str) -> Learner:
    """The learner of this name; InvalidInput if there is none."""
    return LEARNERS[one_of("learner", name, tuple(LEARNERS))]


def check_learner(name: str, *, projective: bool, order: int) -> None:
    """InvalidInput for a learner there is none of, NotSupported for one that cannot learn such a model."""
    known = find_learner(name)
    if known.marginals and not projective and order > 1:
        others = ", ".join(other.name for other in LEARNERS.values() if not other.marginals)
        raise NotSupported(
            f"{name} sums over all trees, which is NP-hard with crossing arcs above order 1; use one of {others}, or "
            "order 1, or projective trees."
        )


def new_weights(name: str, bits: int) -> Weights:
    """Weights of zero for a learner: in double precision for those that add up many small steps."""
    known = LEARNERS.get(name)
    return Weights(bits, dtype=np.float32 if known and known.step else np.float64)


def new_trainer(name: str, task: TreeTask, weights: Weights, seed: int) -> EpochTrainer:
    """A trainer of trees, by the name of a learner.

    ``task.allowed(s)`` are the arcs of sentence s that trees may have, those of its own tree among them.
    """
    return find_learner(name).trainer(Given(task, weights, seed))
