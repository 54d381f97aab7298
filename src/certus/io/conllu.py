"""CoNLL-U: a streaming reader and a writer for treebanks of Universal Dependencies and tagged text.

Ten tab-separated columns a word, a blank line after each sentence, comments before its first word. What is read is
written again as it was (line ends become "\\n"): comments, multiword tokens (ID 3-4) and empty nodes (ID 8.1) are kept.
Files may be gzip.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from certus.errors import FormatError, InvalidInput
from certus.io.files import opened, whole_number
from certus.serialize import write_text_atomically
from certus.text import Sentence, Token

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_OTHER_ID = re.compile(r"([0-9]+)([-.])([0-9]+)")


def is_conllu(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file ends in .conllu, .conllu.gz or .conllu.zst."""
    return os.fspath(path).removesuffix(".gz").removesuffix(".zst").endswith(".conllu")


def read_conllu(path: str | os.PathLike[str], *, require_heads: bool = False) -> Iterator[Sentence]:
    """Sentences of a CoNLL-U file as they come; with ``require_heads`` every word must have a head.

    Raises
    ------
    FormatError : with file and line, for a line that is not CoNLL-U, a head out of range or a cycle.
    """
    with opened(path) as stream:
        yield from parse_conllu(stream, path=path, require_heads=require_heads)


def parse_conllu(
    lines: Iterable[str] | Iterable[bytes], *, path: object = "<text>", require_heads: bool = False, before: int = 0
) -> Iterator[Sentence]:
    """Sentences of an iterable of lines; ``path``, and the lines ``before`` them, are only named in errors."""
    reader = _Reader(path, require_heads)
    number = before
    for number, raw in enumerate(lines, start=before + 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8") if isinstance(raw, bytes) else str(raw)
        except UnicodeDecodeError as error:
            raise FormatError(path, number, f"not UTF-8 text: {error.reason} at byte {error.start}.") from None
        line = line.rstrip("\r\n")
        if "\0" in line:
            raise FormatError(path, number, "holds a NUL character; expected text.")
        if line and not line.isspace():
            reader.add(number, line)
        elif (sentence := reader.finished(number)) is not None:
            yield sentence
    if (sentence := reader.finished(number)) is not None:
        yield sentence


def write_conllu(path: str | os.PathLike[str], sentences: Iterable[Sentence]) -> None:
    """Write sentences as plain text, the whole file or nothing."""
    if os.fspath(path).endswith(".gz"):
        raise InvalidInput(f"{path}: CoNLL-U is written as plain text; give a name that does not end in .gz.")
    write_text_atomically(path, "".join(map(str, sentences)))


class _Reader:
    """Collects the lines of one sentence after another."""

    def __init__(self, path: object, require_heads: bool) -> None:
        self.path = path
        self.require_heads = require_heads
        self.start()

    def start(self) -> None:
        self.sentence = Sentence([])
        self.lines: list[int] = []  # line of each word
        self.spans: list[tuple[int, int]] = []  # line and last word of each multiword token

    def add(self, number: int, line: str) -> None:
        """Take a line that is not blank."""
        tokens = self.sentence.tokens
        if line[0] == "#":
            if self.lines or self.sentence.others:
                raise FormatError(
                    self.path, number, "a comment inside a sentence; comments stand before its first word."
                )
            self.sentence.comments.append(line)
            return
        columns = line.split("\t")
        if len(columns) != 10:
            hint = " Columns are separated by tabs, not blanks." if len(columns) == 1 and len(line.split()) > 1 else ""
            raise FormatError(self.path, number, f"{_count(len(columns), 'column')}; expected 10.{hint}")
        if "" in columns:
            k = columns.index("")
            raise FormatError(self.path, number, f'column {k + 1} ({COLUMNS[k]}) is empty; write "_" for no value.')
        if columns[0] != str(len(tokens) + 1):
            self.add_other(number, line, columns[0])
            return
        _, form, lemma, upos, xpos, feats, text, deprel, deps, misc = columns
        if text == "_" and not self.require_heads:
            head = None
        elif text.isdecimal() and text.isascii():
            head = whole_number(text, self.path, number)
        else:
            raise FormatError(self.path, number, f'column 7 (HEAD) is "{text}"; expected the number of a word, or 0.')
        tokens.append(Token(len(tokens) + 1, form, lemma, upos, xpos, feats, head, deprel, deps, misc))
        self.lines.append(number)

    def add_other(self, number: int, line: str, identifier: str) -> None:
        """Take a multiword token, which stands before its first word, or an empty node, which stands after a word."""
        words = len(self.sentence.tokens)
        match = _OTHER_ID.fullmatch(identifier)
        if match is not None:
            first, last = (whole_number(match[k], self.path, number) for k in (1, 3))
            if match[2] == "-" and first == words + 1 and last >= first:
                self.spans.append((number, last))
                self.sentence.others.append((words, line))
                return
            if match[2] == "." and first == words and last >= 1:
                self.sentence.others.append((words, line))
                return
        raise FormatError(
            self.path,
            number,
            f'column 1 (ID) is "{identifier}"; expected {words + 1}, a range {words + 1}-k or an empty node {words}.k.',
        )

    def finished(self, number: int) -> Sentence | None:
        """The sentence collected so far, checked; None if nothing was."""
        sentence = self.sentence
        n = len(sentence.tokens)
        if not n:
            if sentence.comments or sentence.others:
                raise FormatError(self.path, number, "a sentence without words.")
            return None
        for line, last in self.spans:
            if last > n:
                raise FormatError(
                    self.path, line, f"a multiword token ends at word {last}; the sentence has {_count(n, 'word')}."
                )
        heads: list[int | None] = [None, *(token.head for token in sentence.tokens)]
        for m in range(1, n + 1):
            head = heads[m]
            if head is not None and head > n:
                raise FormatError(self.path, self.lines[m - 1], f"column 7 (HEAD) is {head}; expected 0..{n}.")
        cycle = find_cycle(heads)
        if cycle:
            way = " -> ".join(map(str, [*cycle, cycle[0]]))
            raise FormatError(self.path, self.lines[cycle[0] - 1], f"heads form a cycle: {way}.")
        self.start()
        return sentence


def find_cycle(heads: Sequence[int | None]) -> list[int]:
    """Words on a cycle, from the smallest on, each followed by its head; empty if there is none.

    ``heads[m]`` is the head of word m, or None; entry 0 is not read.

    >>> find_cycle([None, 0, 3, 2])
    [2, 3]
    """
    reached = [0] * len(heads)  # the word whose walk upwards came by first, 0 for none
    for start in range(1, len(heads)):
        m: int | None = start
        while m and not reached[m]:
            reached[m] = start
            m = heads[m]
        if m and reached[m] == start:
            cycle = [m]
            up = heads[m]
            while up != m:
                assert up is not None
                cycle.append(up)
                up = heads[up]
            smallest = cycle.index(min(cycle))
            return cycle[smallest:] + cycle[:smallest]
    return []


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
