"""The files that a training reads, and what is said of those that hold nothing."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from certus.cli.progress import watched
from certus.errors import FormatError, InvalidInput
from certus.text import Sentence

Item = TypeVar("Item")


def read_corpus(
    paths: Sequence[Path], reader: Callable[[Path], Iterator[Item]], model: str, of: str = "sentences"
) -> list[Item]:
    """Everything in the files; InvalidInput if that is nothing for a model to be trained on."""
    found = [item for path in paths for item in watched(reader(path), "reading")]
    if not found:
        raise InvalidInput(f"{paths[0]}: holds no {of}; {model} is trained on at least one.")
    return found


def read_dev(path: Path, reader: Callable[[Path], Iterator[Sentence]]) -> list[Sentence]:
    """The sentences of a dev file; without any, training would neither choose an epoch nor stop early."""
    found = list(reader(path))
    if not any(map(len, found)):
        raise FormatError(path, None, "holds no words; give sentences to choose the best epoch by, or leave --dev out.")
    return found
