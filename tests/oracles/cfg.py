"""Every tree of a small grammar over a sentence, one by one, by recursion over the rules as they were written."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from certus import Tree


class Rule(NamedTuple):
    """weight  parent -> children, or -> "word"."""

    weight: float
    parent: str
    children: tuple[str, ...] = ()
    word: str | None = None

    def __str__(self) -> str:
        right = f'"{self.word}"' if self.word is not None else " ".join(self.children)
        return f"{self.weight:g} {self.parent} -> {right}"


def trees(rules: Sequence[Rule], symbol: str, words: Sequence[str]) -> Iterator[tuple[Tree, float]]:
    """Trees with the given root over the words, with their scores. Unary rules must not have a cycle."""
    for rule in rules:
        if rule.parent != symbol:
            continue
        if rule.word is not None:
            if list(words) == [rule.word]:
                yield Tree(symbol, rule.word), rule.weight
            continue
        for children, score in _sequences(rules, rule.children, words):
            yield Tree(symbol, children), score + rule.weight


def _sequences(
    rules: Sequence[Rule], symbols: Sequence[str], words: Sequence[str]
) -> Iterator[tuple[list[Tree], float]]:
    if not symbols:
        if not words:
            yield [], 0.0
        return
    for end in range(1, len(words) - len(symbols) + 2):
        rest = list(_sequences(rules, symbols[1:], words[end:]))
        if rest:
            for first, score in trees(rules, symbols[0], words[:end]):
                for others, more in rest:
                    yield [first, *others], score + more
