"""Online learning of tree models: guess a tree, and move the weights towards the right one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Floats, Ints
from certus.dependency.part_kinds import PART_KINDS
from certus.features.encode import Encoded
from certus.features.templates import Templates
from certus.kernels.tuples import Array, LinearModel, Sentence, TemplateArrays
from certus.learn.crossing import Crossing
from certus.learn.weights import Step, Weights

ITERATIONS, ROUNDS = 40, 1  # of the relaxation of trees with crossing arcs; what it has then is learned from


@dataclass(frozen=True)
class TreeModel:
    """The kinds of parts a model scores, by their templates: arc, sibling, grandparent, grand-sibling, tri-sibling."""

    templates: tuple[Templates, ...]
    projective: bool
    single: bool

    @cached_property
    def arrays(self) -> tuple[TemplateArrays, ...]:
        """The templates as the kernels take them, with empty ones for the kinds the model does not have."""
        missing = [Templates(kind.roles, ()) for kind in PART_KINDS[len(self.templates) :]]
        return tuple(t.arrays for t in (*self.templates, *missing))

    def weighted(self, bits: int, weight: Array) -> LinearModel:
        """With weights, as the kernels take it."""
        return LinearModel(self.arrays, bits, weight)

    @property
    def crossing(self) -> bool | None:
        """As the kernels take it: None for projective trees, for which they compile less."""
        return None if self.projective else True

    @cached_property
    def first_order(self) -> bool:
        """True if the model scores arcs only."""
        return not any(t.lines for t in self.templates[1:])

    @property
    def max_features(self) -> int:
        """More features than a word's parts can have."""
        return sum(t.max_features for t in self.templates)


@dataclass(frozen=True)
class TreeTask:
    """Trees to learn: a model, sentences with their trees, and the arcs that trees may have, sentence by sentence."""

    model: TreeModel
    batch: Encoded
    trees: Sequence[Ints]
    allowed: Callable[[int], Bools]

    def order(self, seed: int, epoch: int) -> Iterator[int]:
        """The sentences that have words, in an order that depends on the seed and the epoch only."""
        for s in np.random.default_rng([seed, epoch]).permutation(len(self.trees)):
            if len(self.trees[s]) > 1:
                yield int(s)


class Trainer:
    """Trains a tree model on a batch of sentences with known trees, epoch by epoch."""

    def __init__(self, task: TreeTask, weights: Weights, step: Step, seed: int) -> None:
        self.task, self.model, self.batch, self.trees = task, task.model, task.batch, task.trees
        self.weights, self.step, self.seed = weights, step, seed
        self.objective: float | None = None  # mean hinge loss of the last epoch, if the learner has a margin
        self._loss = 0.0
        longest = int(self.batch.length.max(initial=0))
        self._features = np.empty((2, longest * self.model.max_features + 1), dtype=np.uint64)
        self.names: Callable[[int], NDArray[np.uint32]] | None = None  # names of the arcs of a sentence

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once; yields the words and the wrong heads of each guess."""
        self._loss = 0.0
        for s in self.task.order(self.seed, number):
            yield self._learn(s)
        self.objective = self._loss / max(len(self.trees), 1) if self.step.margin else None

    def _learn(self, s: int) -> tuple[int, float]:
        batch, weights, gold = self.batch, self.weights, self.trees[s]
        n = int(batch.length[s])
        allowed, sentence = self.task.allowed(s), batch.sentence(s)
        model = self.model.weighted(weights.bits, weights.value)
        arc = arc_scores(sentence, allowed, model._replace(templates=model.templates[0]))
        if self.step.margin:
            add_errors(arc, gold)
        if not self.model.projective and not self.model.first_order:
            return self._learn_crossing(s, arc, allowed)
        guess = np.empty(n + 1, dtype=np.int64)
        if self.model.first_order:
            kernels.parser.best_tree(arc, self.model.crossing, self.model.single, guess)
        else:
            kernels.parser.best_above_first(sentence, self._names(s), arc, allowed, self.model.single, model, guess)
        return n, self._towards(s, guess)

    def _names(self, s: int) -> NDArray[np.uint32]:
        if self.names is not None:
            return self.names(s)
        n = int(self.batch.length[s])
        return np.zeros((n + 1, n + 1), dtype=np.uint32)

    def _learn_crossing(self, s: int, arc: Floats, allowed: Bools) -> tuple[int, float]:
        """Learn from what the relaxation finds: a tree that is proved the best, or else the choices of all heads."""
        gold, model = self.trees[s], self.model.weighted(self.weights.bits, self.weights.value)
        limits = {"rounds": ROUNDS, "iterations": ITERATIONS}
        sentence = self.batch.sentence(s)
        found = Crossing(sentence, self._names(s), model, arc, allowed, single=self.model.single, **limits)
        if found.proved:
            return len(gold) - 1, self._towards(s, found.heads)
        wrong, plus, minus = found.against(gold)
        self._move(plus, minus, float(wrong))
        return len(gold) - 1, float(wrong)

    def _towards(self, s: int, guess: Ints) -> float:
        """Move the weights from a guessed tree towards the right one; returns the number of wrong heads."""
        gold = self.trees[s]
        errors = float((guess[1:] != gold[1:]).sum())
        if np.array_equal(guess, gold):
            self.weights.clock += 1.0
            return errors
        sentence, model = self.batch.sentence(s), self.model.weighted(self.weights.bits, self.weights.value)
        out = self._features
        n_plus, n_minus = kernels.parts.differences(sentence, self._names(s), model, gold, guess, out)
        self._move(out[0, :n_plus], out[1, :n_minus], errors)
        return errors

    def _move(self, plus: Any, minus: Any, errors: float) -> None:
        """Move the weights towards the features of plus and away from those of minus, by the learner's step."""
        self._loss += self.weights.move(plus, minus, errors if self.step.margin else np.inf, self.step)
        self.weights.clock += 1.0


def arc_scores(sentence: Sentence, allowed: Bools, model: LinearModel) -> Floats:
    """The scores of the allowed arcs of a sentence alone, (n + 1, n + 1), -inf elsewhere."""
    arc: Floats = np.empty(allowed.shape)
    kernels.arcs.score_arcs(sentence, allowed, model, arc)
    return arc


def add_errors(arc: Floats, gold: Ints) -> None:
    """Add 1 to the score of every arc that is not in the gold tree (the Hamming margin)."""
    arc += 1.0
    arc[gold[1:], np.arange(1, len(gold))] -= 1.0


def projectivised(heads: Ints) -> Ints:
    """The projective tree that shares most arcs with a tree (DEP 4.6.1); with one root word if the tree has one."""
    n = len(heads) - 1
    arc = np.zeros((n + 1, n + 1))
    arc[heads[1:], np.arange(1, n + 1)] = 1.0
    nearest = np.empty(n + 1, dtype=np.int64)
    kernels.parser.best_tree(arc, None, bool((heads[1:] == 0).sum() <= 1), nearest)
    return nearest
