"""Plain text and CoNLL-U as sentences, read as they come; and which files of a folder hold such."""

import os
from collections.abc import Iterable, Iterator
from glob import has_magic, iglob
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from certus.errors import FormatError, InvalidInput
from certus.io.conllu import is_conllu, read_conllu
from certus.io.files import opened
from certus.text import Sentence, tokenize

LONGEST_PARAGRAPH = 1 << 16  # characters; text without empty lines is cut at the end of a line
KINDS = (".txt", ".conllu")  # of files in folders that are read, plain or packed
PACKED = (".gz", ".zst")


def stem(path: str | os.PathLike[str]) -> str | None:
    """The path of a file without ``.txt.gz`` and the like; None if it is of no kind that is read from folders."""
    name = os.fspath(path)
    for ending in (kind + packed for kind in KINDS for packed in ("", *PACKED)):
        if name.endswith(ending) and len(Path(name).name) > len(ending):
            return name.removesuffix(ending)
    return None


def found_files(given: str) -> list[tuple[Path, Path]] | None:
    """The files that the name of a folder, a file or a pattern stands for, in order, each with its name below that.

    None if it is none of these. Of a folder these are the texts and CoNLL-U files in it and in the folders below;
    InvalidInput if there is none.
    """
    path = Path(given)
    try:
        folder, file = path.is_dir(), path.is_file()
    except (OSError, ValueError):  # too long, or holds a NUL: not a name
        return None
    if file:
        return [(path, Path(path.name))]
    if folder:
        below = sorted(p for p in path.rglob("*") if stem(p) is not None and p.is_file() and not _hidden(p, path))
        if not below:
            kinds = ", ".join(kind + packed for kind in KINDS for packed in ("", *PACKED))
            raise InvalidInput(f"{given}: there is no file to read in this folder; such are {kinds}.")
        return [(p, p.relative_to(path)) for p in below]
    if not has_magic(given) or any(map(str.isspace, given)):
        return None
    matched = sorted(Path(p) for p in iglob(given, recursive=True) if os.path.isfile(p))
    base = os.path.commonpath([p.parent for p in matched]) if matched else ""
    return [(p, p.relative_to(base)) for p in matched] or None


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def numbered_lines(source: str, stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers; FormatError for one that is no text."""
    for number, raw in enumerate(stream, start=1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(source, number, f"not UTF-8 text (byte {error.start} of the line).") from None
        if "\0" in text:
            raise FormatError(source, number, "holds a NUL character; the input must be text.")
        yield number, text.rstrip("\r\n")


def sentences_of(text: Iterable[str], *, tokenised: bool, lines: bool) -> Iterator[Sentence]:
    """The sentences of the lines of a text. With ``tokenised`` every line is a sentence of words; with ``lines`` it is
    a sentence, to be split into words; otherwise sentences are found too."""
    for piece in pieces_of(text, lines=lines or tokenised):
        sentences = tokenize(piece, style="blank" if tokenised else "web")
        for words in [list(chain.from_iterable(sentences))] if lines else sentences:
            yield Sentence.from_words(words)


def read_file(path: str | os.PathLike[str], *, tokenised: bool = False, lines: bool = False) -> Iterator[Sentence]:
    """The sentences of a file as they come: one named .conllu keeps all that it holds, another is text."""
    if is_conllu(path):
        yield from read_conllu(path)
    else:
        with opened(path) as stream:
            text = (line for _, line in numbered_lines(os.fspath(path), stream))
            yield from sentences_of(text, tokenised=tokenised, lines=lines)


def pieces_of(text: Iterable[str], *, lines: bool) -> Iterator[str]:
    """A text in pieces that end at empty lines; with ``lines``, line by line."""
    held: list[str] = []
    size = 0
    for line in text:
        if line.strip():
            held.append(line)
            size += len(line)
        if held and (lines or not line.strip() or size > LONGEST_PARAGRAPH):
            yield "\n".join(held)
            held, size = [], 0
    if held:
        yield "\n".join(held)
