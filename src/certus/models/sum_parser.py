"""Two parsers as one: the scores of a network, times a scale, added to those of a linear model, and decoded exactly."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certus.checks import Bools, Ints
from certus.errors import InvalidInput
from certus.evaluate.attachment import AttachmentScores
from certus.features.encode import Encoded
from certus.models.parser import Parser
from certus.models.scores import linear_scores, listed_problem, part_rows, scored_kinds
from certus.models.tree_parser import TreeParser
from certus.models.trees import Trees, with_trees
from certus.text import Sentence

if TYPE_CHECKING:
    from certus.dependency import Dependency
    from certus.models.neural import NeuralParser, Scored

FINER = 256  # units of the sum in one of the linear model: the scores of the network are rounded to these
UNKNOWN = -20.0  # log-probability of a label that the network has not seen
SCALES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)


class Both(NamedTuple):
    """What both parsers make of a batch of sentences."""

    linear: Encoded
    neural: "Scored"

    @property
    def length(self) -> Ints:
        """(B,)"""
        return self.linear.length


@dataclass(frozen=True)
class SumParser(TreeParser[Both]):
    """Trees, and labels, that are best by both parsers together: trees such as those of the linear one.

    Arcs that either of the two finds worth a look are searched.
    """

    linear: Parser
    neural: "NeuralParser"
    scale: float = 1.0

    repeatable = False

    def __post_init__(self) -> None:
        if not 0.0 < self.scale < np.inf:
            raise InvalidInput(f"scale is {self.scale}; expected a number above 0 that the network's scores count.")

    @property
    def projective(self) -> bool:
        return self.linear.projective

    @property
    def single(self) -> bool:
        return self.linear.single

    @property
    def unit(self) -> float:
        return self.linear.unit / FINER

    @cached_property
    def digest(self) -> str:
        """Of both parsers and the scale."""
        text = f"{self.linear.digest} {self.neural.digest} {self.scale!r}"
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def encode(self, sentences: Sequence[Sentence]) -> Both:
        """What both parsers make of the sentences."""
        return Both(self.linear.encode(sentences), self.neural.encode(sentences))

    def seen(self, batch: Both, s: int) -> bytes:
        """What both parsers see of sentence s."""
        return self.linear.seen(batch.linear, s) + self.neural.seen(batch.neural, s)

    def problem_of(
        self, batch: Both, s: int, allowed: Bools | None = None, *, unit: float | None = None
    ) -> "Dependency":
        """The trees of sentence s over the allowed arcs, by default those that either parser has."""
        own = batch.neural.sentences[s]
        if allowed is None:
            allowed = own.kept | self.linear.cascade.survivors(batch.linear, s)
        rows = part_rows(allowed, scored_kinds(self.linear) | own.kinds)
        score = FINER * linear_scores(self.linear, batch.linear, s, allowed, rows)
        score += np.rint(self.scale * own.of(rows) / self.unit)
        return listed_problem(self, rows, (self.unit if unit is None else unit) * score, len(allowed) - 1)

    def labelled(self, sentences: Sequence[Sentence], batch: Both, trees: Trees) -> list[Sentence]:
        """Sentences with these trees and the labels that are best by both parsers."""
        labeller = self.linear.labeller
        number = {label: k for k, label in enumerate(self.neural.labels)}
        known = np.array([number.get(label, len(number)) for label in labeller.labels])
        own = self.neural.label_scores(batch.neural, trees)
        more = np.pad(own, ((0, 0), (0, 1)), constant_values=UNKNOWN)[:, known] * self.scale / labeller.weight.unit
        labels = labeller.label(batch.linear, trees.start, trees.heads, more)
        return with_trees(sentences, trees, labels, labeller.labels)

    def tuned(self, dev: Sequence[Sentence], scales: Iterable[float] = SCALES) -> "SumParser":
        """The same, with the scale by which most words of these trees get the right head and label."""
        batch, found = self.encode(dev), dict[float, float]()
        for scale in scales:
            other = replace(self, scale=scale)
            parsed = other.labelled(dev, batch, other.decode(batch))
            found[scale] = AttachmentScores.of(zip(dev, parsed, strict=True)).scores()["LAS"]
        return replace(self, scale=max(found, key=lambda scale: found[scale]))
