"""Lines and sentences from text, files or stdin, read as they come.

Lines are split into words as the Penn Treebank has them, for grammars; texts into sentences and words as the English
Web Treebank has them, for taggers and dependency parsers.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from certus.cli.messages import say
from certus.cli.overwriting import refuse_reading_output
from certus.cli.streams import stdin_bytes
from certus.errors import InvalidInput
from certus.io.conllu import is_conllu, parse_conllu, read_conllu
from certus.io.files import opened
from certus.io.texts import found_files, numbered_lines, sentences_of
from certus.text import Sentence, tokenize


@dataclass(frozen=True, slots=True)
class Line:
    """One line of input, split into words, and where it came from."""

    source: str
    number: int
    words: list[str]

    @property
    def place(self) -> str:
        """``file:line``, as messages begin."""
        return f"{self.source}:{self.number}"


def read_lines(inputs: list[str], *, tokenised: bool) -> Iterator[Line]:
    """Every line of the inputs; an empty one has no words.

    An input that names a file is read, "-" is stdin, and no input at all is stdin too. Anything else is a sentence
    itself, unless it looks like the name of a file that is missing.
    """
    style = "blank" if tokenised else "penn"
    for source, number, text in _numbered(inputs):
        yield Line(source, number, list(chain.from_iterable(tokenize(text, style=style))))


def read_sentences(inputs: list[str], *, conllu: bool, tokenised: bool, lines: bool) -> Iterator[Sentence]:
    """The sentences of the inputs as they come.

    Files named .conllu, and stdin with ``conllu``, are CoNLL-U, and keep all they hold. With ``tokenised`` every line
    of a text is a sentence of words; with ``lines`` it is a sentence, to be split into words; otherwise sentences are
    found too.
    """
    for given in _each(inputs):
        if is_conllu(given):
            refuse_reading_output(given, given)
            yield from read_conllu(given)
        elif conllu and given == "-":
            stream = stdin_bytes()
            refuse_reading_output("stdin", sys.stdin)
            yield from parse_conllu(stream, path="stdin")
        else:
            text = (line for _, _, line in _numbered([given]))
            yield from sentences_of(text, tokenised=tokenised, lines=lines)


def byte_streams(inputs: list[str], *, conllu: bool) -> "Iterator[tuple[str, BinaryIO, bool]] | None":
    """The bytes of the inputs with their names, each open until the next, and whether they are CoNLL-U.

    None if some input is neither a file nor stdin, or somebody types.
    """
    names = list(_each(inputs))
    if not all(_is_stream(name) for name in names):
        return None

    def streams() -> Iterator[tuple[str, BinaryIO, bool]]:
        for name in names:
            if name == "-":
                refuse_reading_output("stdin", sys.stdin)
                yield "stdin", stdin_bytes(), conllu
            else:
                refuse_reading_output(name, name)
                with opened(name) as stream:
                    yield name, stream, is_conllu(name)

    return streams()


def _is_stream(given: str) -> bool:
    if given == "-":
        stdin_bytes()
        return not sys.stdin.isatty()
    return is_conllu(given) or _names_a_file(given)


def _each(inputs: list[str]) -> Iterator[str]:
    """The inputs, with the files of a folder or of a pattern in its place."""
    for given in inputs or ["-"]:
        found = found_files(given) if given != "-" else None
        yield from [given] if found is None else (str(path) for path, _ in found)


def _numbered(inputs: list[str]) -> Iterator[tuple[str, int, str]]:
    """Where each line of the inputs stands, and the line."""
    for position, given in enumerate(inputs or ["-"], start=1):
        if given == "-":
            stream = stdin_bytes()
            if sys.stdin.isatty():
                say("certus: reading from the terminal; Ctrl-D ends.")
            refuse_reading_output("stdin", sys.stdin)
            yield from _placed("stdin", stream)
        elif _names_a_file(given):
            refuse_reading_output(given, given)
            with opened(given) as stream:
                yield from _placed(given, stream)
        else:
            try:
                given.encode()
            except UnicodeEncodeError:
                raise InvalidInput(f"argument {position} is not UTF-8 text, and no file has that name.") from None
            for number, text in enumerate(given.split("\n"), start=1):
                yield f"argument {position}", number, text


def _names_a_file(given: str) -> bool:
    if not any(map(str.isalnum, given)):
        return False
    try:
        if Path(given).is_file():
            return True
    except (OSError, ValueError):  # too long, or holds a NUL: not a name
        return False
    if Path(given).is_dir():
        raise InvalidInput(f"{given} is a folder; give a file, or a sentence in quotes.")
    if re.fullmatch(r"\S*(/\S*|\.[A-Za-z]\w{0,9})", given):
        raise InvalidInput(f"{given}: no such file. To have it read as a sentence, pipe it in on stdin.")
    return False


def _placed(source: str, stream: BinaryIO) -> Iterator[tuple[str, int, str]]:
    return ((source, number, text) for number, text in numbered_lines(source, stream))
