"""Grammars as JSON files: what all kinds of them share."""

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from certus.schema import Field
from certus.serialize import load_json, write_json


class SavedGrammar(ABC):
    """A grammar that JSON data describes, under a format and a version."""

    _format: ClassVar[str]
    _version: ClassVar[int]

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The grammar as JSON data."""

    @classmethod
    @abstractmethod
    def _of_json(cls, data: Field) -> Self:
        """The grammar of data that claim to be one; InvalidInput for what is not."""

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The grammar that :meth:`to_json` described; InvalidInput if the data is something else."""
        given = Field.of(data, "")
        return given.made(lambda: cls._of_json(given.format(cls._format, cls._version)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the grammar to a JSON file, whole or not at all."""
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a grammar that :meth:`save` wrote. Raises FormatError for a damaged or foreign file."""
        return load_json(path, cls.from_json)
