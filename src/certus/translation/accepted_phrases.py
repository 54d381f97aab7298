"""Translations by phrases under constraints on their words: the search carries the state of an automaton."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from certus.hypergraph.readings import Reading
from certus.schema import Field
from certus.translation.language_model import LanguageModel
from certus.translation.phrase_problem import PhraseTranslation, Structure
from certus.translation.phrases import PhraseOption
from certus.translation.word_models import WordModel
from certus.translation.word_reader import WordReader


class AcceptedPhrases(PhraseTranslation):
    """A ``PhraseTranslation`` restricted to the translations that an automaton accepts; what ``subject_to`` makes.

    Structures, scores and views are those of the problem. Relaxations, searches and proofs tell apart the states of the
    automaton beside those of the language model, so that the constraint itself is never relaxed.
    """

    name: ClassVar[str] = "accepted phrase translation"
    reader: WordReader

    def __init__(
        self, options: Iterable[PhraseOption], lm: LanguageModel | WordModel, *, reader: WordReader, **settings: Any
    ) -> None:
        super().__init__(options, lm, **settings)
        self.reader = reader

    @classmethod
    def of(cls, problem: PhraseTranslation, reading: Reading) -> Self:
        """A problem under one constraint more."""
        reader = WordReader.of(reading, (word for o in problem.options for word in o.target))
        if problem.reader is not None:
            reader = problem.reader.joined(reader)
        return cls(problem.options, problem.lm, **(problem._settings() | {"reader": reader}))

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"reader": self.reader}

    def accepts(self, structure: Sequence[int]) -> bool:
        """Whether the words of a translation are accepted."""
        return self.reader.accepts(self.words(structure))

    def terms(self, structure: Sequence[int]) -> list[float]:
        scores = super().terms(structure)
        return scores if self.accepts(structure) else [-np.inf]

    def all_structures(self) -> Iterator[Structure]:
        return (y for y in super().all_structures() if self.accepts(y))

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"reader": self.reader.to_json()}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return super().from_json(data)

    @classmethod
    def _more(cls, given: Field) -> dict[str, Any]:
        return {"reader": WordReader.from_json(given["reader"])}
