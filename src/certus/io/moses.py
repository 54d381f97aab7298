"""Phrase tables in the text form of Moses, read as a stream and kept only as far as the input needs them.

A line is ``source ||| target ||| scores ...``, with what follows (alignments, counts) skipped. Scores are
probabilities, as many on every line; their natural logarithms are the features.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, log

from certus.errors import FormatError
from certus.io.files import text_lines

Entry = tuple[tuple[str, ...], tuple[float, ...]]  # target words, natural logarithms of the scores


@dataclass(frozen=True, slots=True)
class PhraseTable:
    """Source words -> entries, in the order of the file."""

    entries: dict[tuple[str, ...], list[Entry]] = field(default_factory=dict)
    n_scores: int = 0
    longest: int = 0  # words of the longest source side

    def __len__(self) -> int:
        return sum(map(len, self.entries.values()))

    def matches(self, source: Sequence[str]) -> Iterator[tuple[int, int, Entry]]:
        """(start, end, entry) for every place of a sentence where an entry fits; both ends included."""
        for i in range(len(source)):
            for j in range(i, min(len(source), i + self.longest)):
                for entry in self.entries.get(tuple(source[i : j + 1]), ()):
                    yield i, j, entry


def read_phrase_table(
    path: str | os.PathLike[str],
    sentences: Iterable[Sequence[str]] | None = None,
    *,
    n_scores: int | None = None,
    max_phrase_length: int | None = None,
) -> PhraseTable:
    """Read a phrase table, plain or .gz, line by line.

    Parameters
    ----------
    sentences : iterable of sequences of words, optional
        Keep only entries whose source side occurs in one of these. Memory is then bounded by what the input can use.
    n_scores : int, optional
        Scores a line must have; by default as many as the first line.
    max_phrase_length : int, optional
        Leave out longer source sides.

    Raises
    ------
    FormatError : names the line: a field missing, a score that is none, another number of scores.
    """
    wanted = None if sentences is None else _phrases_of(sentences, max_phrase_length)
    return _table(path, text_lines(path), wanted, n_scores, max_phrase_length)


def _phrases_of(sentences: Iterable[Sequence[str]], max_length: int | None) -> set[str]:
    """Every run of words of every sentence, joined by blanks."""
    out = set()
    for words in sentences:
        for i in range(len(words)):
            for j in range(i + 1, len(words) + 1 if max_length is None else min(len(words), i + max_length) + 1):
                out.add(" ".join(words[i:j]))
    return out


def _table(
    path: object, lines: Iterable[str], wanted: set[str] | None, n_scores: int | None, max_length: int | None
) -> PhraseTable:
    entries: dict[tuple[str, ...], list[Entry]] = {}
    longest = 0
    for number, line in enumerate(lines, start=1):
        fields = line.rstrip("\n").split(" ||| ")
        if len(fields) < 3:
            if line.strip():
                raise FormatError(path, number, f'{len(fields)} field(s); expected "source ||| target ||| scores".')
            continue
        scores = fields[2].split(" |||")[0].split()
        if n_scores is None:
            n_scores = len(scores)
        if len(scores) != n_scores:
            raise FormatError(path, number, f"{len(scores)} scores; expected {n_scores}, as on the lines before.")
        if wanted is not None and fields[0] not in wanted:
            continue
        source = tuple(fields[0].split())
        if not source:
            raise FormatError(path, number, "the source side is empty.")
        if max_length is not None and len(source) > max_length:
            continue
        logs = tuple([_log(path, number, score) for score in scores])
        entries.setdefault(source, []).append((tuple(fields[1].split()), logs))
        longest = max(longest, len(source))
    return PhraseTable(entries, n_scores or 0, longest)


def _log(path: object, line: int, text: str) -> float:
    """Natural logarithm of a score; -inf for 0, which forbids the phrase."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not isfinite(value) or value < 0:
        raise FormatError(path, line, f"score {text!r}; expected a probability, at least 0.")
    return log(value) if value else -inf
