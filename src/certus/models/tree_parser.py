"""What every trained parser can be asked for, whatever it scores trees with: a linear model, a network, or both."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from certus.checks import Bools, Ints
from certus.errors import LimitReached
from certus.models.trees import Parsed, Room, Trees
from certus.result import Result
from certus.text import Sentence
from certus.threads import interruptible

if TYPE_CHECKING:
    from certus.dependency import Dependency

BATCH = 256  # sentences parsed at a time
FALLBACK = 60  # iterations of the relaxation where a time limit leaves no tree


class Lengths(Protocol):
    """What parsers read of sentences before they score trees has at least their lengths."""

    @property
    def length(self) -> Ints:
        """(B,)"""


Read = TypeVar("Read", bound=Lengths)


class TreeParser(ABC, Generic[Read]):
    """Turns tagged sentences into labelled dependency trees: ``Read`` is what it makes of a batch of sentences.

    It is ``repeatable`` if a sentence has the same scores, to the last digit, whatever it is read together with.
    """

    repeatable: ClassVar[bool] = True

    @property
    @abstractmethod
    def projective(self) -> bool:
        """Whether its trees have no crossing arcs."""

    @property
    @abstractmethod
    def single(self) -> bool:
        """Whether its trees have one root word."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """Scores are whole numbers of this."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """Of all that parses depend on."""

    @abstractmethod
    def encode(self, sentences: Sequence[Sentence]) -> Read:
        """What is read of tagged sentences."""

    @abstractmethod
    def seen(self, batch: Read, s: int) -> bytes:
        """What is read of sentence s, as bytes, for digests."""

    @abstractmethod
    def problem_of(
        self, batch: Read, s: int, allowed: Bools | None = None, *, unit: float | None = None
    ) -> "Dependency":
        """The trees of sentence s over the allowed arcs, (n + 1, n + 1); by default over those worth a look.

        Scores are whole numbers times ``unit``, by default that of the parser.
        """

    @abstractmethod
    def labelled(self, sentences: Sequence[Sentence], batch: Read, trees: Trees) -> list[Sentence]:
        """Sentences, encoded as ``batch``, with these trees and their best labels; threads may call it at one time."""

    def decode(self, batch: Read, *, time_limit: float | None = None) -> Trees:
        """The best tree of each sentence over the arcs worth a look, with its score and a bound.

        ``time_limit``, in seconds, is for each sentence with crossing arcs above first order.
        """
        room, kind, reason = Room.of(batch.length), ["dynamic program"] * len(batch.length), dict[int, str]()
        bound = np.zeros(len(batch.length))
        for s in np.flatnonzero(batch.length).tolist():
            problem = self.problem_of(batch, s, unit=1.0)
            room.kept[room.square[s] : room.square[s + 1]] = (problem.arc > -np.inf).reshape(-1)
            try:
                found = problem.decode(time_limit=time_limit)
            except LimitReached:
                found = problem.decode(max_iterations=FALLBACK, exact=False)
            c = found.certificate
            room.heads[room.start[s] : room.start[s] + int(batch.length[s]) + 1] = found.structure
            kind[s], room.value[s] = c.kind, found.score
            bound[s] = found.score if c.exact else c.bound + c.tolerance
            if not c.exact:
                reason[s] = c.reason or "rounding"
        return room.trees(self.unit, bound, kind, reason)

    # -- use -------------------------------------------------------------------------------------------------------

    def parse(self, sentences: Iterable[Sentence], *, time_limit: float | None = None) -> Iterator[Sentence]:
        """The sentences with HEAD and DEPREL filled in; everything else is kept. Streams.

        ``time_limit`` is that of ``decode``.
        """
        stream = iter(sentences)
        while some := list(islice(stream, BATCH)):
            batch = self.encode(some)
            trees = interruptible(partial(self.decode, batch, time_limit=time_limit))
            yield from interruptible(self.labelled, some, batch, trees)

    def problem(self, sentence: Sentence) -> "Dependency":
        """The trees of a tagged sentence over the arcs worth a look, with the scores of the model.

        A problem like any other: ask it for the k best trees, marginals, samples or a certificate.
        """
        return self.problem_of(self.encode([sentence]), 0)

    def saved(self, parsed: Parsed) -> tuple["Dependency", Result[Any], dict[str, str]]:
        """What ``certus.save_result`` takes: the problem of a parsed sentence, its tree, and where they come from.

        The tree and its certificate are those of the parse, and nothing is decoded again, if the parser is repeatable.
        """
        sentence = parsed.sentence
        heads = np.array([-1, *(token.head for token in sentence)], dtype=np.int64)
        words = "\n".join("\t".join((t.form, t.lemma, t.upos, t.xpos)) for t in sentence)
        source = {"model": self.digest, "sentence": f"sha256:{hashlib.sha256(words.encode()).hexdigest()}"}
        problem = self.problem(sentence)
        if not self.repeatable:
            return problem, problem.decode(), source
        return problem, Result(heads, parsed.certificate.score, parsed.certificate), source
