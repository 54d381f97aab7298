"""Sentences from text, files or stdin: one per line, read as they come."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from certus.errors import FormatError, InvalidInput


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
    for position, given in enumerate(inputs or ["-"], start=1):
        if given == "-":
            if not inputs and sys.stdin.isatty():
                print("certus: reading sentences from the terminal, one per line; Ctrl-D ends.", file=sys.stderr)
            yield from _lines_of("stdin", sys.stdin.buffer, tokenised)
        elif _names_a_file(given):
            with open(given, "rb") as stream:
                yield from _lines_of(given, stream, tokenised)
        else:
            for number, text in enumerate(given.split("\n"), start=1):
                yield Line(f"argument {position}", number, words_of(text, tokenised))


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


def _lines_of(source: str, stream: BinaryIO, tokenised: bool) -> Iterator[Line]:
    for number, raw in enumerate(stream, start=1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(source, number, f"not UTF-8 text (byte {error.start} of the line).") from None
        if "\0" in text:
            raise FormatError(source, number, "holds a NUL character; the input must be text.")
        yield Line(source, number, words_of(text, tokenised))


def words_of(text: str, tokenised: bool) -> list[str]:
    """Words of a line: split at white space, and unless it is tokenised already, at punctuation and clitics."""
    return text.split() if tokenised else [token for chunk in text.split() for token in tokenise(chunk)]


OPENING = re.compile(r"``|''|[(\[{<\"'`“‘«¿¡$£€#]")
CLOSING = re.compile(r"(?:\.\.\.|''|[)\]}>\"'”’»,;:?!%.…])$")
KEPT_PERIOD = re.compile(
    r"(?:[A-Za-z]\.)+|(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Inc|Corp|Ltd|Co|vs|etc|No|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec)\."
)
CLITIC = re.compile(r"(?i)(.*?)(n['’]t|['’](?:s|m|d|ll|re|ve))")


def tokenise(chunk: str) -> list[str]:
    """Light tokeniser for plain text: sets off punctuation at the edges of a chunk, and clitics such as n't and 's.

    Periods stay with initials and common abbreviations. Inside a chunk nothing is split: numbers, dates, hyphens and
    addresses stay whole.

    >>> tokenise("(Don't!)")
    ['(', 'Do', "n't", '!', ')']
    """
    before: list[str] = []
    after: list[str] = []
    while (mark := OPENING.match(chunk)) and mark[0] != chunk and not CLITIC.fullmatch(chunk):
        before.append(mark[0])
        chunk = chunk[mark.end() :]
    while (mark := CLOSING.search(chunk)) and mark[0] != chunk and not KEPT_PERIOD.fullmatch(chunk):
        after.append(mark[0])
        chunk = chunk[: mark.start()]
    clitic = CLITIC.fullmatch(chunk)
    middle = [part for part in clitic.groups() if part] if clitic else [chunk]
    return before + middle + after[::-1]
