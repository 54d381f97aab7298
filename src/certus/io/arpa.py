"""ARPA files: n-gram language models with back-off, plain or .gz, read and written.

::

    \\data\\
    ngram 1=4
    ngram 2=2

    \\1-grams:
    -1.0    <unk>
    0       <s>     -0.5
    -0.5    </s>
    -0.4    dog     -0.2

    \\2-grams:
    -0.3    <s> dog
    -0.1    dog </s>

    \\end\\

An entry is the logarithm to base 10 of a probability, the words, and the logarithm of the back-off weight, which is 0
if left out. Fields are separated by tabs or blanks.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats
from certus.errors import FormatError
from certus.io.files import read_bytes, whole_number, write_maybe_gzip

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
MAX_ORDERS = 32


@dataclass(frozen=True, slots=True)
class Ngrams:
    """The n-grams of one order: ``words[i]`` are word ids, the other arrays logarithms, to base 10 in files."""

    words: NDArray[np.int32]  # (count, order)
    log_probability: Floats
    back_off: Floats  # zeros at the highest order


@dataclass(frozen=True, slots=True)
class Arpa:
    """What an ARPA file holds: word of each id, and one table of n-grams per order, beginning with 1."""

    words: list[str]
    orders: list[Ngrams]
    natural: bool = False  # logarithms are natural ones, not to base 10


def read_arpa(path: str | os.PathLike[str], *, unknown: float | None = None) -> Arpa:
    """Read an ARPA file; linear time, about a second for half a million n-grams.

    Parameters
    ----------
    path : path
        Plain text or, by its first bytes, gzip.
    unknown : float, optional
        Logarithm to base 10 of the probability of ``<unk>`` for files that have none.

    Raises
    ------
    FormatError : names the line of what is wrong: a count that does not hold, a bad number, an n-gram given twice, a
        word that is no unigram, a missing section or end, no ``<unk>``, ``<s>`` or ``</s>``.
    """
    return parse_arpa(read_bytes(path), path, unknown=unknown)


def parse_arpa(data: bytes | str, path: object = "text", *, unknown: float | None = None) -> Arpa:
    """The model in a text in ARPA format; ``path`` is what errors call it. See ``read_arpa``."""
    if isinstance(data, bytes) and data.startswith(b"mmap lm http://kheafield.com"):
        raise FormatError(
            path,
            None,
            "is a binary file of KenLM; read it with LanguageModel.read_kenlm, or give the ARPA file it was made from.",
        )
    lines = (data.encode() if isinstance(data, str) else data).split(b"\n")
    at, counts, count_lines = _header(path, lines)
    vocabulary: dict[bytes, int] = {}
    orders: list[Ngrams] = []
    for order, count in enumerate(counts, start=1):
        at = _skip_blank(lines, at)
        title = b"\\%d-grams:" % order
        if at >= len(lines) or lines[at].strip() != title:
            found = _shown(lines[at]) if at < len(lines) else "the end of the file"
            raise FormatError(
                path, min(at, len(lines) - 1) + 1, f"expected {title.decode()!r}, found {found}; is the file cut short?"
            )
        at += 1
        rows = [line.split() for line in lines[at : at + count]]
        if len(rows) < count or not all(rows):
            have = next((i for i, row in enumerate(rows) if not row), len(rows))
            raise FormatError(
                path,
                at + have,
                f"section {order} has {have} entries, but line {count_lines[order - 1]} announces {count}; "
                "is the file cut short?",
            )
        orders.append(_section(path, rows, order, len(counts), vocabulary, at + 1))
        if order == 1:
            _require_marks(path, vocabulary, orders, unknown, at)
        at += count
        if at < len(lines) and lines[at].strip() and not lines[at].startswith(b"\\"):
            raise FormatError(
                path,
                at + 1,
                f"section {order} has more entries than line {count_lines[order - 1]} announces ({count}).",
            )
    at = _skip_blank(lines, at)
    if at >= len(lines) or lines[at].strip() != b"\\end\\":
        raise FormatError(path, min(at, len(lines) - 1) + 1, r"expected '\end\'; is the file cut short?")
    try:
        words = [word.decode() for word in vocabulary]
    except UnicodeDecodeError as error:
        raise FormatError(path, None, f"word {_shown(error.object)} is not UTF-8 text.") from None
    return Arpa(words, orders)


def write_arpa(path: str | os.PathLike[str], arpa: Arpa) -> None:
    """Write an ARPA file, whole or not at all; .gz by its name. Seven significant digits, as is usual."""
    parts = ["\\data\\\n"]
    parts += [f"ngram {n}={len(grams.words)}\n" for n, grams in enumerate(arpa.orders, start=1)]
    for n, grams in enumerate(arpa.orders, start=1):
        parts.append(f"\n\\{n}-grams:\n")
        last = n == len(arpa.orders)
        for ids, value, back_off in zip(
            grams.words.tolist(), grams.log_probability.tolist(), grams.back_off.tolist(), strict=True
        ):
            text = " ".join([arpa.words[w] for w in ids])
            parts.append(f"{value:.7g}\t{text}\n" if last else f"{value:.7g}\t{text}\t{back_off:.7g}\n")
    parts.append("\n\\end\\\n")
    write_maybe_gzip(path, "".join(parts))


def _header(path: object, lines: list[bytes]) -> tuple[int, list[int], list[int]]:
    """Index of the line after the counts, the counts by order, and the numbers of their lines."""
    at = 0
    while at < len(lines) and lines[at].strip() != b"\\data\\":  # anything may stand before it
        at += 1
    if at == len(lines):
        raise FormatError(path, 1, r"no line '\data\': not an ARPA file, or empty.")
    at += 1
    counts: list[int] = []
    numbers: list[int] = []
    while at < len(lines) and lines[at].startswith(b"ngram"):
        if len(counts) == MAX_ORDERS:
            raise FormatError(path, at + 1, f"n-grams of more than {MAX_ORDERS} words; no model has such.")
        name, equals, value = lines[at][5:].partition(b"=")
        if not (equals and name.strip().isdigit() and value.strip().isdigit()):
            raise FormatError(path, at + 1, f"expected 'ngram N=COUNT', found {_shown(lines[at])}.")
        order = whole_number(name.decode(), path, at + 1)
        if order != len(counts) + 1:
            raise FormatError(path, at + 1, f"expected the count of order {len(counts) + 1}, found order {order}.")
        counts.append(whole_number(value.decode(), path, at + 1))
        numbers.append(at + 1)
        at += 1
    if not counts:
        raise FormatError(path, at, r"no line 'ngram 1=COUNT' after '\data\'.")
    return at, counts, numbers


def _section(
    path: object, rows: list[list[bytes]], order: int, highest: int, vocabulary: dict[bytes, int], first: int
) -> Ngrams:
    widths = {len(row) for row in rows}
    if not widths <= {order + 1, order + 2}:
        i, row = next((i, row) for i, row in enumerate(rows) if len(row) not in (order + 1, order + 2))
        raise FormatError(
            path,
            first + i,
            f"expected a number, {order} word{'s' if order > 1 else ''} and perhaps a back-off; "
            f"found {len(row)} fields.",
        )
    value = _numbers(path, [row[0] for row in rows], first, "log probability")
    if order < highest and widths == {order + 2}:
        back_off = _numbers(path, [row[-1] for row in rows], first, "back-off")
    elif order < highest and order + 2 in widths:
        back_off = _numbers(path, [row[order + 1] if len(row) > order + 1 else b"0" for row in rows], first, "back-off")
    else:
        back_off = np.zeros(len(rows))
    if len(value) and value.max() > 0:
        i = int(np.argmax(value > 0))
        raise FormatError(path, first + i, f"log probability {value[i]} is above 0; a probability is at most 1.")
    if order == 1:
        for i, row in enumerate(rows):
            if vocabulary.setdefault(row[1], i) != i:
                raise FormatError(path, first + i, f"the word {_shown(row[1])} is given twice.")
        return Ngrams(np.arange(len(rows), dtype=np.int32)[:, None], value, back_off)
    words = np.empty((len(rows), order), dtype=np.int32)
    for k in range(order):
        try:
            words[:, k] = [vocabulary[row[k + 1]] for row in rows]
        except KeyError:
            i = next(i for i, row in enumerate(rows) if row[k + 1] not in vocabulary)
            raise FormatError(path, first + i, f"the word {_shown(rows[i][k + 1])} is not among the 1-grams.") from None
    _check_distinct(path, words, rows, first)
    return Ngrams(words, value, back_off)


def _numbers(path: object, texts: Sequence[bytes], first: int, what: str) -> Floats:
    try:
        values = np.array(list(map(float, texts)), dtype=np.float64)
        if np.isfinite(values).all():
            return values
        i = int(np.argmin(np.isfinite(values)))
    except ValueError:
        i = next(i for i, text in enumerate(texts) if not _is_number(text))
    raise FormatError(path, first + i, f"{what} {_shown(texts[i])} is not a finite number.")


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_distinct(path: object, words: NDArray[np.int32], rows: list[list[bytes]], first: int) -> None:
    order = np.lexsort(words.T[::-1])
    equal = (words[order[1:]] == words[order[:-1]]).all(axis=1)
    if equal.any():
        i = int(order[int(np.argmax(equal)) + 1])
        text = b" ".join(rows[i][1 : words.shape[1] + 1])
        raise FormatError(path, first + i, f"the n-gram {_shown(text)} is given twice.")


def _require_marks(
    path: object, vocabulary: dict[bytes, int], orders: list[Ngrams], unknown: float | None, line: int
) -> None:
    for mark in (BEGIN, END):
        if mark.encode() not in vocabulary:
            raise FormatError(path, line, f"the 1-grams have no {mark}; sentences begin with <s> and end with </s>.")
    if UNKNOWN.encode() in vocabulary:
        return
    if unknown is None:
        raise FormatError(
            path,
            line,
            "the 1-grams have no <unk>, so unknown words have no probability; give one, say -10 (log10), as unknown= "
            "or --lm-unknown.",
        )
    vocabulary[UNKNOWN.encode()] = len(vocabulary)
    grams = orders[0]
    orders[0] = Ngrams(
        np.arange(len(vocabulary), dtype=np.int32)[:, None],
        np.append(grams.log_probability, unknown),
        np.append(grams.back_off, 0.0),
    )


def _skip_blank(lines: list[bytes], at: int) -> int:
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def _shown(text: bytes) -> str:
    return repr(text[:60].decode(errors="replace"))
