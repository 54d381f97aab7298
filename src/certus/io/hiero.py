"""Synchronous rules in the text form of cdec and Hiero, feature weights, and nothing of what they are used for.

A rule is a line ``[X] ||| source ||| target ||| name=value ...``. Nonterminals are ``[X,1]`` on the source side and
``[1]`` or ``[X,1]`` on the target side; the numbers 1, 2, ... say which belong together, and each stands once on either
side. The features may be left out, and what follows a fourth ``|||`` (alignments) is skipped.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Floats, Ints
from certus.errors import FormatError
from certus.io.files import feature_number, read_bytes, read_text
from certus.schema import Field
from certus.serialize import load_json

Int32 = NDArray[np.int32]
LEFT, SOURCE, TARGET, FEATURES = 0, 1, 2, 3  # the fields of a rule

_LEFT = re.compile(r"\[([^\s\[\],]+)\]")
_LINKED = re.compile(r"\[([^\s\[\],]+),([0-9]+)\]")
_REFERENCE = re.compile(r"\[(?:([^\s\[\],]+),)?([0-9]+)\]")


@dataclass(frozen=True, slots=True)
class RuleTable:
    """Rules as flat arrays, in the order of the files.

    Source sides hold words, by their number in ``source_words``, and ~a for the nonterminal ``nonterminals[a]``. Target
    sides hold words, by their number in ``target_words``, and ~k for the k-th nonterminal of the source side.
    """

    nonterminals: list[str]
    source_words: list[str]
    target_words: list[str]
    left: Int32  # (R,)
    source_ptr: Int32
    source: Int32
    target_ptr: Int32
    target: Int32
    feature_names: list[str]
    feature_ptr: Int32
    feature: Int32
    feature_value: Floats
    file: Int32  # (R,): which of the files
    line: Int32  # (R,): counted from 1
    paths: list[object]

    def __len__(self) -> int:
        return len(self.left)

    def place(self, rule: int) -> tuple[object, int]:
        """File and line of a rule."""
        return self.paths[self.file[rule]], int(self.line[rule])


def read_rules(*paths: str | os.PathLike[str], source_words: Iterable[str] | None = None) -> RuleTable:
    """Read files of rules, plain or .gz; two to four seconds for 800,000 rules.

    Parameters
    ----------
    paths
        One or more files.
    source_words : iterable of str, optional
        Keep only rules whose source words are all among these: the words of the sentences to translate.

    Raises
    ------
    FormatError : names the line: a rule without its fields, a nonterminal without its partner, a bad feature.
    """
    return parse_rules([read_bytes(path) for path in paths], list(paths), source_words=source_words)


def parse_rules(
    texts: Sequence[bytes], paths: Sequence[object] | None = None, *, source_words: Iterable[str] | None = None
) -> RuleTable:
    """The rules in texts; ``paths`` is what errors call them. See ``read_rules``."""
    reader = _Reader(texts, [f"text {i}" for i in range(1, len(texts) + 1)] if paths is None else paths)
    return reader.table(None if source_words is None else set(source_words))


def read_weights(path: str | os.PathLike[str], section: str = "hiero") -> dict[str, float]:
    """Read feature weights: JSON if the name ends in .json, else lines ``name value``.

    JSON is an object of numbers, or has one under "weights", or under a section's name and "weights". The language
    model's weight, for natural logarithms, is called "LM".
    """
    weights: dict[str, float] = {}
    if str(path).endswith(".json"):
        return load_json(path, partial(_weights, section=section))
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        fields = line.replace("=", " ").split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 2:
            raise FormatError(path, number, f"expected 'name value', found {line[:60]!r}.")
        weights[fields[0]] = feature_number(path, number, fields[0], fields[1])
    return weights


def _weights(data: Any, section: str) -> dict[str, float]:
    """The weights of JSON data: an object of numbers, perhaps under a section's name and "weights"."""
    given = Field(data)
    for key in (section, "weights"):
        if isinstance(given.value, dict) and isinstance(given.value.get(key), dict):
            given = given[key]
    if not isinstance(given.value, dict):
        given.fail('an object {"feature": number, ...}, perhaps under "weights"')
    return {name: value.number() for name, value in given.entries()}


class _Reader:
    """Texts cut into numbered words, with the field of each word."""

    def __init__(self, texts: Sequence[bytes], paths: Sequence[object]) -> None:
        self.paths = list(paths)
        self.newlines = [text.count(b"\n") + 1 for text in texts]  # the texts are joined by a newline each
        joined = b"\n".join(texts)
        data = np.frombuffer(joined, dtype=np.uint8)
        n_words, n_lines = kernels.text.count_words(data)
        self.word = np.empty(n_words, dtype=np.int32)
        self.line_ptr = np.zeros(n_lines + 2, dtype=np.int32)
        pool, start = kernels.text.number_words(data, self.word, self.line_ptr)
        spelt = pool.tobytes()
        self.strings: list[str] = []
        for a, b in pairwise(start.tolist()):
            try:
                self.strings.append(spelt[a:b].decode())
            except UnicodeDecodeError:
                line = int(np.searchsorted(self.line_ptr, int(np.argmax(self.word == len(self.strings))), "right")) - 1
                self.fail(line, f"{spelt[a:b][:40]!r} is not UTF-8 text.")

    def fail(self, line: int, message: str) -> NoReturn:
        """FormatError at a line, counted from 0 through all the texts."""
        file, at = self.place(line)
        raise FormatError(self.paths[file], at, message)

    def place(self, line: int) -> tuple[int, int]:
        """Number of the text, and line in it counted from 1."""
        file = 0
        while file < len(self.newlines) - 1 and line >= self.newlines[file]:
            line -= self.newlines[file]
            file += 1
        return file, line + 1

    def table(self, source_words: set[str] | None) -> RuleTable:
        rows = np.flatnonzero(np.diff(self.line_ptr) > 0)  # lines that are not blank
        bar = self.strings.index("|||") if "|||" in self.strings else -1
        bars = np.zeros(len(rows), dtype=np.int32)
        ptr = np.zeros(FEATURES + 2, dtype=np.int64)
        word, row = np.empty_like(self.word), np.empty_like(self.word)
        kernels.text.split_fields(self.word, self.line_ptr, bar, bars, ptr, word, row)
        if (bars < 2).any():
            self.fail(int(rows[np.argmax(bars < 2)]), "expected '[X] ||| source ||| target ||| features'.")
        fields = [(word[a:b], row[a:b]) for a, b in pairwise(ptr.tolist())]

        nonterminals, left = self._left(*fields[LEFT], rows)
        source = self._symbols(*fields[SOURCE], _LINKED)
        target = self._symbols(*fields[TARGET], _REFERENCE)
        self._check_source(source, nonterminals, rows)
        self._link(source, target, rows)
        names, feature, value, feature_row = self._features(*fields[FEATURES], rows)

        if source_words is not None:
            known = np.array([w in source_words for w in source.words] + [True], dtype=bool)
            unknown_word = ~known[np.maximum(source.symbol, -1)]
            kept = np.bincount(source.row[unknown_word], minlength=len(rows)) == 0
        else:
            kept = np.ones(len(rows), dtype=bool)
        files, lines = self._places(rows)
        return RuleTable(
            nonterminals,
            source.words,
            target.words,
            left[kept],
            *_cut(source.row, kept, source.symbol),
            *_cut(target.row, kept, target.symbol),
            names,
            *_cut(feature_row, kept, feature),
            value[kept[feature_row]],
            files[kept],
            lines[kept],
            self.paths,
        )

    def _places(self, rows: Ints) -> tuple[Int32, Int32]:
        first = np.concatenate(([0], np.cumsum(self.newlines)))[:-1]
        files = np.searchsorted(first, rows, side="right") - 1
        return files.astype(np.int32), (rows - first[files] + 1).astype(np.int32)

    def _used(self, word: Int32) -> tuple[Ints, Ints]:
        """The numbers that occur, and where each first does."""
        first = np.full(len(self.strings), -1, dtype=np.int64)
        first[word[::-1]] = np.arange(len(word) - 1, -1, -1)
        used = np.flatnonzero(first >= 0)
        return used, first[used]

    def _left(self, word: Int32, row: Int32, rows: Ints) -> tuple[list[str], Int32]:
        counts = np.bincount(row, minlength=len(rows))
        names: dict[str, int] = {}
        number: dict[int, int] = {}
        for k, first in zip(*(a.tolist() for a in self._used(word)), strict=True):
            if match := _LEFT.fullmatch(self.strings[k]):
                number[k] = names.setdefault(match[1], len(names))
            else:
                line = int(rows[row[first]])
                self.fail(line, f"the left-hand side is {self.strings[k]!r}; expected a nonterminal such as [X].")
        if (counts != 1).any():
            self.fail(
                int(rows[np.argmax(counts != 1)]), "expected one nonterminal, such as [X], before the first '|||'."
            )
        lookup = np.zeros(len(self.strings) + 1, dtype=np.int32)
        lookup[list(number)] = list(number.values())
        return list(names), lookup[word]

    def _symbols(self, word: Int32, row: Int32, pattern: re.Pattern[str]) -> "_Side":
        symbol_of = np.zeros(len(self.strings) + 1, dtype=np.int32)
        index_of = np.zeros(len(self.strings) + 1, dtype=np.int32)
        words: list[str] = []
        labels: dict[str, int] = {}
        for k in self._used(word)[0].tolist():
            text = self.strings[k]
            if text[0] == "[" and (match := pattern.fullmatch(text)):
                index_of[k] = int(match[2]) if len(match[2]) < 7 else 1 << 20
                symbol_of[k] = ~labels.setdefault(match[1] or "", len(labels))
            else:
                symbol_of[k] = len(words)
                words.append(text)
        return _Side(row, symbol_of[word], index_of[word], words, list(labels))

    def _check_source(self, source: "_Side", nonterminals: list[str], rows: Ints) -> None:
        """Renumber the labels of the source side as in ``nonterminals``; complain of one that no rule rewrites."""
        empty = np.bincount(source.row, minlength=len(rows)) == 0
        if empty.any():
            self.fail(int(rows[np.argmax(empty)]), "the source side is empty; a rule covers at least one word.")
        number = {name: a for a, name in enumerate(nonterminals)}
        for text in (f"[{name}]" for name in nonterminals):
            if text in source.words:
                k = int(np.argmax(source.symbol == source.words.index(text)))
                self.fail(
                    int(rows[source.row[k]]),
                    f"the nonterminal {text} on the source side has no index; write [{text[1:-1]},1].",
                )
        renumber = []
        for label, name in enumerate(source.labels):
            if name not in number:
                k = int(np.argmax(source.symbol == ~label))
                self.fail(
                    int(rows[source.row[k]]),
                    f"the nonterminal [{name}] is unknown: no rule has it on its left-hand side. "
                    f"Known are {', '.join(f'[{n}]' for n in nonterminals)}.",
                )
            renumber.append(~number[name])
        link = source.symbol < 0
        source.symbol[link] = np.array(renumber, dtype=np.int32)[~source.symbol[link]]
        source.labels = nonterminals

    def _link(self, source: "_Side", target: "_Side", rows: Ints) -> None:
        """Replace references on the target side by ~k, k the position among the nonterminals of the source side."""
        s, t = np.flatnonzero(source.symbol < 0), np.flatnonzero(target.symbol < 0)
        for at, side, name in ((s, source, "source"), (t, target, "target")):
            counts = np.bincount(side.row[at], minlength=len(rows))
            by_index = at[np.lexsort((side.index[at], side.row[at]))]
            rank = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
            wrong = side.index[by_index] != rank + 1
            if wrong.any():
                line = int(side.row[by_index[np.argmax(wrong)]])
                self.fail(
                    int(rows[line]),
                    f"the nonterminals of the {name} side are numbered "
                    f"{sorted(side.index[at][side.row[at] == line].tolist())}; expected 1, 2, ..., each once.",
                )
            if side is source:
                source_counts, order = counts, by_index
        if (counts != source_counts).any():
            line = int(np.argmax(counts != source_counts))
            self.fail(
                int(rows[line]),
                f"{source_counts[line]} nonterminals on the source side but {counts[line]} on the target side; "
                "each stands once on either side.",
            )
        first = np.cumsum(counts) - counts
        position = np.empty(len(source.symbol), dtype=np.int64)
        position[s] = np.arange(len(s)) - first[source.row[s]]  # among the nonterminals of its source side
        partner = order[first[target.row[t]] + target.index[t] - 1]
        for label, name in enumerate(target.labels):
            other = (~target.symbol[t] == label) & (name != "")
            if name and (clash := other & (np.array(source.labels)[~source.symbol[partner]] != name)).any():
                k = int(np.argmax(clash))
                self.fail(
                    int(rows[target.row[t[k]]]),
                    f"[{name},{target.index[t[k]]}] on the target side has another nonterminal on the source side.",
                )
        target.symbol[t] = ~position[partner].astype(np.int32)

    def _features(self, word: Int32, row: Int32, rows: Ints) -> tuple[list[str], Int32, Floats, Int32]:
        names: dict[str, int] = {}
        used, first = self._used(word)
        ids, values = np.empty(len(used), dtype=np.int32), np.empty(len(used))
        for i, k in enumerate(used.tolist()):
            name, equals, value = self.strings[k].rpartition("=")
            if not equals:
                self.fail(int(rows[row[first[i]]]), f"the feature {self.strings[k]!r} is not 'name=value'.")
            ids[i] = names.setdefault(name, len(names))
            try:
                values[i] = float(value)
            except ValueError:
                values[i] = np.nan
        if not np.isfinite(values).all():
            i = int(np.argmin(np.isfinite(values)))
            self.fail(int(rows[row[first[i]]]), f"the feature {self.strings[used[i]]!r} is not a finite number.")
        lookup = np.zeros(len(self.strings) + 1, dtype=np.int32)
        lookup[used] = np.arange(len(used), dtype=np.int32)
        at = lookup[word]
        return list(names), ids[at], values[at], row


@dataclass(slots=True)
class _Side:
    """One side of all rules: per token the row, the symbol (a word, or ~label), and the index of a nonterminal."""

    row: Int32
    symbol: Int32
    index: Int32
    words: list[str]
    labels: list[str]


def _cut(row: Int32, kept: NDArray[np.bool_], values: Int32) -> tuple[Int32, Int32]:
    """Offsets per kept row, and the values of the kept rows."""
    sizes = np.bincount(row, minlength=len(kept))[kept]
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int32), values[kept[row]]
