"""From words to preterminals: listed one by one, or estimated from counts with classes of unknown words."""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from math import log
from typing import Any

from certus.constituency.binarise import Symbol
from certus.constituency.signatures import classes
from certus.schema import Field

Entry = tuple[tuple[Symbol, float], ...]  # the preterminals of a word, with their weights

RARE = 5  # words seen no more often may take tags they were never seen with
CLASS_STRENGTH = 1.0  # what a word's class counts for, in occurrences of the word
WIDER_STRENGTH = 10.0  # what the next wider class counts for, in words of the class
SPLIT_STRENGTH = 5.0  # what P(symbol | tag) counts for, in occurrences of the word with the tag
BRACKETS = {"(": "-LRB-", ")": "-RRB-", "{": "-LCB-", "}": "-RCB-", "[": "-LSB-", "]": "-RSB-"}  # as Penn has them
LEAST = 1e-3  # tags never seen with a word are left out below this probability


class Lexicon(ABC):
    """The lexical rules of a grammar."""

    words: Mapping[str, object]

    @abstractmethod
    def entry(self, word: str, *, first: bool = False) -> Entry:
        """The preterminals of a word with their weights; empty if it has none. ``first``: it begins a sentence."""

    def __contains__(self, word: str) -> bool:
        """True if the word itself is known, rather than its class."""
        return word in self.words

    def __len__(self) -> int:
        """Number of words known."""
        return len(self.words)

    @property
    @abstractmethod
    def preterminals(self) -> frozenset[Symbol]:
        """Every symbol that may stand over some word."""

    @abstractmethod
    def to_json(self, number: Mapping[Symbol, int]) -> dict[str, Any]:
        """The lexicon as JSON data, symbols by number."""


class Listed(Lexicon):
    """Words with their entries, and one entry for all other words, which may be empty."""

    def __init__(self, words: Mapping[str, Entry], unknown: Entry = ()) -> None:
        self.words: dict[str, Entry] = dict(words)
        self.unknown = unknown

    def entry(self, word: str, *, first: bool = False) -> Entry:
        return self.words.get(word, self.unknown)

    @cached_property
    def preterminals(self) -> frozenset[Symbol]:
        return frozenset(symbol for entry in (*self.words.values(), self.unknown) for symbol, _ in entry)

    def to_json(self, number: Mapping[Symbol, int]) -> dict[str, Any]:
        def numbered(entry: Entry) -> list[list[Any]]:
            return [[number[symbol], weight] for symbol, weight in entry]

        return {
            "kind": "listed",
            "words": {word: numbered(entry) for word, entry in self.words.items()},
            "unknown": numbered(self.unknown),
        }


class Counted(Lexicon):
    """Log P(word | symbol) from counts in a treebank.

    By Bayes' rule from P(symbol | word) = P(tag | word) P(symbol | tag, word). For rare and unknown words P(tag | word)
    leans on the word's class, estimated from the words seen once and backed off to wider classes; P(symbol | tag, word)
    leans on P(symbol | tag). A symbol of ``also`` that was never seen has P(word | symbol) = P(word | tag).
    """

    def __init__(self, words: Mapping[str, Mapping[Symbol, int]], also: Iterable[Symbol] = ()) -> None:
        self.words: dict[str, dict[Symbol, int]] = {word: dict(counts) for word, counts in words.items()}
        self.also = sorted(also)
        self._of_symbol: Counter[Symbol] = Counter()
        self._once: defaultdict[str, Counter[str]] = defaultdict(Counter)  # class -> tag -> words seen once
        for word, counts in self.words.items():
            self._of_symbol.update(counts)
            if sum(counts.values()) == 1:
                (symbol,) = counts
                for name in classes(word):
                    self._once[name][symbol.label] += 1
        self._total = self._of_symbol.total()
        self._of_tag: Counter[str] = Counter()
        self._splits: defaultdict[str, list[Symbol]] = defaultdict(list)
        for symbol in sorted(self._of_symbol):
            self._of_tag[symbol.label] += self._of_symbol[symbol]
            self._splits[symbol.label].append(symbol)
        self._unseen: defaultdict[str, list[Symbol]] = defaultdict(list)
        for symbol in self.also:
            if symbol not in self._of_symbol:
                self._unseen[symbol.label].append(symbol)
        self._class_tags: dict[str, dict[str, float]] = {}
        self._entries: dict[str, Entry] = {}  # of known words, as they are asked for

    def entry(self, word: str, *, first: bool = False) -> Entry:
        if word not in self.words:
            word = BRACKETS.get(word, word)
            if first and word.lower() in self.words:
                word = word.lower()
        if word not in self.words:
            return self._estimated(word)
        if word not in self._entries:
            self._entries[word] = self._estimated(word)
        return self._entries[word]

    def _estimated(self, word: str) -> Entry:
        counts = self.words.get(word, {})
        size = sum(counts.values())
        seen: Counter[str] = Counter()
        for symbol, count in counts.items():
            seen[symbol.label] += count
        if size > RARE:
            tags = {tag: count / size for tag, count in seen.items()}
        else:
            wide = self._tags_of(list(classes(word)))
            tags = {t: (seen[t] + CLASS_STRENGTH * wide[t]) / (size + CLASS_STRENGTH) for t in wide}
        likeliest = max(tags.values())
        out = []
        for tag in sorted(tags):
            if not seen[tag] and tags[tag] < LEAST * likeliest:
                continue
            for symbol in self._splits[tag]:
                share = self._of_symbol[symbol] / self._of_tag[tag]
                split = (counts.get(symbol, 0) + SPLIT_STRENGTH * share) / (seen[tag] + SPLIT_STRENGTH)
                out.append((symbol, log(tags[tag] * split * max(size, 0.5) / self._of_symbol[symbol])))
            for symbol in self._unseen[tag]:
                out.append((symbol, log(tags[tag] * max(size, 0.5) / self._of_tag[tag])))
        return tuple(out)

    def _tags_of(self, names: list[str]) -> dict[str, float]:
        """P(tag | class) of the first class named that was ever seen, backed off to the ones after it."""
        name, *wider = names
        if name not in self._class_tags:
            counts = self._once.get(name, Counter())
            around = self._tags_of(wider) if wider else {t: c / self._total for t, c in self._of_tag.items()}
            strength = WIDER_STRENGTH if wider else 1.0
            size = counts.total() + strength
            self._class_tags[name] = {t: (counts[t] + strength * around[t]) / size for t in around}
        return self._class_tags[name]

    @cached_property
    def preterminals(self) -> frozenset[Symbol]:
        return frozenset({*self._of_symbol, *self.also})

    def to_json(self, number: Mapping[Symbol, int]) -> dict[str, Any]:
        words = {word: [[number[s], count] for s, count in counts.items()] for word, counts in self.words.items()}
        return {"kind": "counted", "words": words, "also": [number[symbol] for symbol in self.also]}


def lexicon_from_json(data: Field, symbols: list[Symbol]) -> Lexicon:
    """The lexicon that ``to_json`` described; InvalidInput if the data is something else."""

    def rows(field: Field) -> Iterator[tuple[Symbol, Field]]:
        seen = set()
        for row in field.items():
            number, value = row.items(size=2)
            k = number.whole(0, len(symbols) - 1)
            if k in seen:
                number.fail("symbols, each once")
            seen.add(k)
            yield symbols[k], value

    def entry(field: Field) -> Entry:
        return tuple((symbol, weight.number()) for symbol, weight in rows(field))

    kind, words = data["kind"].one_of(("listed", "counted")), data["words"]
    if kind == "listed":
        return Listed({word: entry(pairs) for word, pairs in words.entries()}, entry(data["unknown"]))
    counts = {word: {symbol: count.whole(1) for symbol, count in rows(pairs)} for word, pairs in words.entries()}
    if not any(counts.values()):
        words.fail("words with counts")
    return Counted(counts, [symbols[k] for k in data["also"].wholes(0, len(symbols) - 1).tolist()])
