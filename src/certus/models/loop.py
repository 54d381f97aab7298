"""The one training loop: stage after stage, epoch after epoch, with a checkpoint after each.

A stage trains one set of weights: the tags of a column, a filter, the labels, the trees. It lasts so many epochs, or
with a score on dev until that has not risen for some; then the averaged weights of the best epoch are kept. A training
that was killed goes on from its checkpoint, and ends with the same weights as without the interruption.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from certus.checks import as_positive_int
from certus.errors import InvalidInput
from certus.learn.learners import EpochTrainer
from certus.learn.weights import Float32, Weights
from certus.models.checkpoints import Checkpoint
from certus.models.files import Stored
from certus.schema import Field, in_file

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


class Training:
    """How far a training has come: the stages that are done, and the weights of the one that is not."""

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
        self.done: dict[str, Float32] = {}  # averaged weights of finished stages; of the one at work, the best so far
        self.stage, self.epoch = "", 0
        self.weights = Weights(1)
        self.score, self.best_epoch = -1.0, 0

    def run(
        self,
        name: str,
        trainer_of: Callable[[Weights], EpochTrainer],
        evaluate: Evaluation | None = None,
    ) -> Float32:
        """The averaged weights of a stage, trained unless they are there already; the best ones, by ``evaluate``."""
        stage = self.stages[name]
        if name != self.stage:
            if name in self.done:
                return self.done[name]
            self.stage, self.epoch, self.weights = name, 0, stage.weights()
            self.score, self.best_epoch = -1.0, 0
        trainer = None
        while self.epoch < stage.epochs and not self._stuck(stage):
            trainer = trainer or trainer_of(self.weights)
            words, wrong = 0, 0.0
            for some, errors in trainer.epoch(self.epoch):
                words, wrong = words + some, wrong + errors
            self.epoch += 1
            score = self._keep(stage, evaluate)
            if stage.forget and self.epoch in FORGOTTEN:
                self.weights.average_from_here()
            if self.file is not None:
                self._save(self.file)
            self.tell(Epoch(name, self.epoch, stage.epochs, int(words), float(wrong), trainer.objective, score))
        if self.epoch < stage.epochs:
            best = f"dev was best after epoch {self.best_epoch}, which is kept."
            self.say(f"{name}: stopped after epoch {self.epoch}; {best}")
        return self.done[name]

    def _stuck(self, stage: Stage) -> bool:
        """Whether dev has not become better for too long."""
        return stage.patience is not None and self.score >= 0.0 and self.epoch - self.best_epoch >= stage.patience

    def _keep(self, stage: Stage, evaluate: Evaluation | None) -> float | None:
        """Keep the average of the weights if it is the best so far, or without dev the last; returns the dev score."""
        if evaluate is None and self.epoch < stage.epochs:
            return None
        averaged = self.weights.averaged()
        score = None if evaluate is None else evaluate(averaged)
        if score is None or score > self.score:
            self.done[self.stage] = averaged
            self.score, self.best_epoch = (-1.0 if score is None else score), self.epoch
        return score

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def _save(self, file: Checkpoint) -> None:
        weights = self.weights
        arrays: dict[str, Any] = {f"done.{name}": weight for name, weight in self.done.items()}
        arrays |= {f"extra.{name}": state for name, state in weights.extra.items()}
        arrays |= {"value": weights.value, "total": weights.total, "squares": weights.squares}
        state = {"stage": self.stage, "epoch": self.epoch, "clock": weights.clock}
        file.save(state | {"score": self.score, "best_epoch": self.best_epoch}, arrays)

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
        self.stage = config["stage"].one_of(names)
        stage = self.stages[self.stage]
        self.epoch = config["epoch"].whole(1, stage.epochs)
        self.score = config["score"].number(-1.0, 1.0)
        self.best_epoch = config["best_epoch"].whole(0, self.epoch)
        done = {Field(name, "done").one_of(names) for name in stored.names("done.")}
        if self.stage not in done and (self.score >= 0.0 or self.epoch == stage.epochs):
            raise InvalidInput(f"the array done.{self.stage} is missing, though epoch {self.epoch} of it is over.")
        sizes = {name: self.stages[name].weights().value.shape for name in done}
        self.done = {name: stored.array(f"done.{name}", np.float32, size).copy() for name, size in sizes.items()}
        weights = self.weights = stage.weights()
        size = weights.value.shape
        weights.value = stored.array("value", weights.value.dtype, size).copy()
        weights.total = stored.array("total", np.float64, size).copy()
        weights.squares = stored.array("squares", weights.squares.dtype, size).copy()
        if weights.squares.min() < 0.0:
            raise InvalidInput("squares holds a number below 0; the file is damaged.")
        extra = stored.names("extra.")
        weights.extra = {name: stored.array(f"extra.{name}", np.float64, (None,)).copy() for name in extra}
        weights.clock = config["clock"].number(1.0)
