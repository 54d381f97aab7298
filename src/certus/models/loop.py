"""The one training loop: stage after stage, epoch after epoch, with a checkpoint after each.

A stage trains one set of weights: the tags of a column, a filter, the labels, the trees. It lasts so many epochs, or
with a score on dev until that has not risen for some; then the averaged weights of the best epoch are kept. Stages that
do not need each other go side by side. A training that was killed goes on from its checkpoint, and ends with the same
weights as without the interruption.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from certus.checks import as_positive_int
from certus.errors import InvalidInput
from certus.learn.learners import EpochTrainer
from certus.learn.weights import Float32, Weights
from certus.models.checkpoints import Checkpoint
from certus.models.files import Stored
from certus.schema import Field, in_file
from certus.threads import in_order, thread_count

FORGOTTEN = (1, 3, 6, 10, 15)  # epochs after which weights are averaged anew: early ones are far from good


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one pass over the sentences of a stage came to.

    ``wrong`` of ``words`` were wrong, or expected to be; ``loss`` is the loss or other objective of the learner, None
    if it has none; ``score`` is that on dev, None without it.
    """

    stage: str
    epoch: int
    epochs: int
    words: int
    wrong: float
    loss: float | None
    score: float | None

    @property
    def errors(self) -> float:
        """The share of words that were wrong."""
        return self.wrong / max(self.words, 1)


Progress = Callable[[Epoch], None]


Trainers = Callable[[Weights], EpochTrainer]  # the one that trains some weights


class Evaluation(Protocol):
    """What gives averaged weights a score on dev, 0 to 1."""

    def __call__(self, weight: Float32, /) -> float:
        """The score."""


@dataclass(frozen=True)
class Stage:
    """What makes the weights of a stage, its epochs, how many of them dev may get no better, if averages begin anew."""

    weights: Callable[[], Weights]
    epochs: int
    patience: int | None = None
    forget: bool = False

    def __post_init__(self) -> None:
        as_positive_int("epochs", self.epochs)


def run_names(stage: str, runs: int) -> list[str]:
    """The names of a stage that is trained so many times, by seeds that follow each other, for their mean."""
    return [f"{stage}, run {k + 1}" if k else stage for k in range(runs)]


@dataclass
class _Course:
    """How far a stage has come: its weights after so many epochs; on dev the best score, -1 for none, when, and how."""

    weights: Weights
    epoch: int = 0
    score: float = -1.0
    best_epoch: int = 0
    best: Float32 | None = None

    def over(self, stage: Stage) -> bool:
        """Whether all epochs are done, or dev has not become better for too long."""
        stuck = stage.patience is not None and self.score >= 0.0 and self.epoch - self.best_epoch >= stage.patience
        return stuck or self.epoch == stage.epochs


class Training:
    """How far a training has come: the stages that are done, and the weights of those that are not."""

    def __init__(
        self,
        stages: Mapping[str, Stage],
        checkpoint: Checkpoint | None = None,
        *,
        progress: Progress | None = None,
        say: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.stages, self.file = stages, checkpoint
        self.tell, self.say = progress or (lambda epoch: None), say
        self.done: dict[str, Float32] = {}  # averaged weights of finished stages; of those at work, the best so far
        self.begun: dict[str, _Course] = {}
        self.kept: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}  # of stages at work, for the checkpoint
        self.lock, self.stopped = Lock(), False

    def run_each(
        self,
        trainers: Mapping[str, Trainers],
        workers: int | None = None,
        evaluate: Mapping[str, Evaluation] = MappingProxyType({}),
    ) -> list[Float32]:
        """``run`` of stages none of which needs another, on threads: the same weights for any number of these."""

        def trained(name: str) -> Float32:
            return self.run(name, trainers[name], evaluate.get(name))

        try:
            return list(in_order(trained, trainers, min(thread_count(workers), len(trainers))))
        except BaseException:
            with self.lock:
                self.stopped = True  # what other threads are at is nothing that a later training should find
            raise

    def run(self, name: str, trainer_of: Trainers, evaluate: Evaluation | None = None) -> Float32:
        """The averaged weights of a stage, trained unless they are there already; the best ones, by ``evaluate``."""
        stage = self.stages[name]
        if name in self.done and name not in self.begun:
            return self.done[name]
        course = self.begun.setdefault(name, _Course(stage.weights()))
        trainer = None
        while not course.over(stage):
            trainer = trainer or trainer_of(course.weights)
            words, wrong = 0, 0.0
            for some, errors in trainer.epoch(course.epoch):
                words, wrong = words + some, wrong + errors
            course.epoch += 1
            score = _kept_score(course, stage, evaluate)
            if stage.forget and course.epoch in FORGOTTEN:
                course.weights.average_from_here()
            self._save(name, course)
            self.tell(Epoch(name, course.epoch, stage.epochs, int(words), float(wrong), trainer.objective, score))
        del self.begun[name]
        if course.epoch < stage.epochs:
            best = f"dev was best after epoch {course.best_epoch}, which is kept."
            self.say(f"{name}: stopped after epoch {course.epoch}; {best}")
        return self.done[name]

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def _save(self, name: str, course: _Course) -> None:
        """Note where a stage is, and write it with the others, which go on meanwhile, as after their last epochs."""
        with self.lock:
            if self.stopped:
                raise InvalidInput(f"{name}: training was stopped.")
            if course.best is not None:
                self.done[name] = course.best
            if self.file is None:
                return
            self.kept.pop(name, None)
            if not course.over(self.stages[name]):
                self.kept[name] = _kept(course)
            arrays: dict[str, Any] = {f"done.{stage}": weight for stage, weight in self.done.items()}
            for stage, (_, own) in self.kept.items():
                arrays |= {f"{part}.{stage}": array for part, array in own.items()}
            self.file.save({"stages": {stage: state for stage, (state, _) in self.kept.items()}}, arrays)

    def restore(self) -> None:
        """Go back to the checkpoint, if there is one, else say so."""
        if self.file is None:
            raise InvalidInput("there is nothing to resume: no checkpoint was named.")
        found = self.file.load()
        if found is None:
            self.say(f"{self.file.path}: there is no checkpoint to resume; training starts from the beginning.")
            return
        with in_file(self.file.path):
            self._restored(*found)

    def _restored(self, config: Field, stored: Stored) -> None:
        names = tuple(self.stages)
        done = {Field(name, "done").one_of(names) for name in stored.names("done.")}
        sizes = {name: self.stages[name].weights().value.shape for name in done}
        self.done = {name: stored.array(f"done.{name}", np.float32, size).copy() for name, size in sizes.items()}
        for name, state in config["stages"].entries():
            stage = self.stages[Field(name, "stages").one_of(names)]
            course = self.begun[name] = _Course(stage.weights())
            course.epoch = state["epoch"].whole(1, stage.epochs)
            course.score = state["score"].number(-1.0, 1.0)
            course.best_epoch = state["best_epoch"].whole(0, course.epoch)
            if name not in done and (course.score >= 0.0 or course.epoch == stage.epochs):
                raise InvalidInput(f"the array done.{name} is missing, though epoch {course.epoch} of it is over.")
            _restore_weights(course.weights, name, stored)
            course.weights.clock = state["clock"].number(1.0)
            self.kept[name] = _kept(course)


def _kept_score(course: _Course, stage: Stage, evaluate: Evaluation | None) -> float | None:
    """The dev score; the average of the weights is kept if it is the best so far, or without dev the last."""
    if evaluate is None and course.epoch < stage.epochs:
        return None
    averaged = course.weights.averaged()
    score = None if evaluate is None else evaluate(averaged)
    if score is None or score > course.score:
        course.best, course.best_epoch = averaged, course.epoch
        course.score = -1.0 if score is None else score
    return score


def _kept(course: _Course) -> tuple[dict[str, Any], dict[str, Any]]:
    """A copy of where a stage is, as a checkpoint has it: numbers, and arrays by what they are."""
    weights = course.weights
    state = {"epoch": course.epoch, "clock": weights.clock, "score": course.score, "best_epoch": course.best_epoch}
    arrays = {"value": weights.value, "total": weights.total, "squares": weights.squares}
    arrays |= {f"extra.{name}": own for name, own in weights.extra.items()}
    return state, {name: array.copy() for name, array in arrays.items()}


def _restore_weights(weights: Weights, stage: str, stored: Stored) -> None:
    size = weights.value.shape
    weights.value = stored.array(f"value.{stage}", weights.value.dtype, size).copy()
    weights.total = stored.array(f"total.{stage}", np.float64, size).copy()
    weights.squares = stored.array(f"squares.{stage}", weights.squares.dtype, size).copy()
    if weights.squares.min() < 0.0:
        raise InvalidInput(f"squares.{stage} holds a number below 0; the file is damaged.")
    for name in stored.names("extra."):
        if name.endswith(f".{stage}"):
            own = stored.array(f"extra.{name}", np.float64, (None,)).copy()
            weights.extra[name.removesuffix(f".{stage}")] = own
