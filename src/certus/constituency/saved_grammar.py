"""Grammars as JSON files: what all kinds of them share."""

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from certus.errors import InvalidInput
from certus.serialize import load_json, write_json


class SavedGrammar(ABC):
    """A grammar that JSON data describes, under a format and a version."""

    _kind: ClassVar[str]
    _format: ClassVar[str]
    _version: ClassVar[int]

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The grammar as JSON data."""

    @classmethod
    @abstractmethod
    def _of_json(cls, data: dict[str, Any]) -> Self:
        """The grammar of data that claim to be one; whatever these lack may raise as it likes."""

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The grammar that :meth:`to_json` described; InvalidInput if the data is something else."""
        if not isinstance(data, dict) or data.get("format") != cls._format:
            raise InvalidInput(f'not a {cls._kind}: "format" is not "{cls._format}".')
        if data.get("version") != cls._version:
            raise InvalidInput(f"grammar version {data.get('version')!r}; this release reads version {cls._version}.")
        try:
            return cls._of_json(data)
        except InvalidInput:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"damaged grammar data: {type(error).__name__} at {error}.") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the grammar to a JSON file, whole or not at all."""
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a grammar that :meth:`save` wrote. Raises FormatError for a damaged or foreign file."""
        return load_json(path, cls.from_json)
