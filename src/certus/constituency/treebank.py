"""Probabilistic grammars from treebanks: relative frequencies of binarised rules."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import log
from typing import Any

from certus.constituency.binarise import Binary, Chain, Memory, Step, Symbol, Word
from certus.constituency.lexicon import Counted
from certus.errors import InvalidInput
from certus.text import Tree
from certus.text.tree import as_trees

FALLBACK_WEIGHT = -30.0  # of a rule that was not seen; far below any that was


def estimate(trees: Iterable[Tree], memory: Memory, root: str, fallback: str | None) -> dict[str, Any]:
    """Arguments of Grammar for a treebank."""
    binary: Counter[Binary] = Counter()
    unary: Counter[tuple[Symbol, Symbol]] = Counter()
    chains: set[Chain] = set()
    words: defaultdict[str, Counter[Symbol]] = defaultdict(Counter)
    for tree in as_trees(trees):
        rooted = tree if tree.label == root else Tree(root, [tree])
        leaves = rooted.words
        for step in memory.derivation(rooted):
            if isinstance(step, Binary):
                binary[step] += 1
            elif isinstance(step, Chain):
                chains.add(step)
                unary.update(zip(step.path, step.path[1:], strict=False))
            else:
                words[leaves[step.position]][step.symbol] += 1
    if not words:
        raise InvalidInput("the treebank holds no trees; a grammar needs at least one.")
    expanded: Counter[Symbol] = Counter()
    for rule, count in binary.items():
        expanded[rule.parent] += count
    for (parent, _), count in unary.items():
        expanded[parent] += count
    unary_log = {pair: log(count / expanded[pair[0]]) for pair, count in unary.items()}
    binary_log = {rule: log(count / expanded[rule.parent]) for rule, count in binary.items()}
    chain_log = {
        chain: sum(unary_log[pair] for pair in zip(chain.path, chain.path[1:], strict=False))
        for chain in sorted(chains, key=lambda chain: [str(symbol) for symbol in chain.path])
    }
    also: set[Symbol] = set()
    if fallback is not None:
        tags = sorted({symbol.label for counts in words.values() for symbol in counts})
        for step in _fallback(memory, root, fallback, tags, binary):
            if isinstance(step, Binary):
                binary_log.setdefault(step, FALLBACK_WEIGHT)
            elif isinstance(step, Chain):
                chain_log.setdefault(step, FALLBACK_WEIGHT)
            else:
                also.add(step.symbol)
    return {
        "root": root,
        "binary": binary_log,
        "chains": chain_log,
        "lexicon": Counted(words, also),
        "memory": memory,
    }


def _fallback(memory: Memory, root: str, label: str, tags: list[str], binary: Iterable[Binary]) -> Iterator[Step]:
    """Steps that put any tags and known phrases side by side: (root (X a (X b (X c)))) with X the fallback label."""
    phrases = {rule.parent for rule in binary if rule.parent.is_node}
    shapes = [Tree(tag, "word") for tag in tags]
    shapes += [Tree(name, [Tree("", "word")] * 2) for name in sorted({s.label for s in phrases} - {root, label, *tags})]
    for shape in shapes:
        pile = Tree(label, [shape])
        piles = [pile]
        for _ in range(memory.vertical + 1):
            pile = Tree(label, [shape, pile])
            piles.append(pile)
        for tree in piles:
            for step in memory.derivation(Tree(root, [tree])):
                if isinstance(step, Word):
                    if step.symbol.label:
                        yield step
                    continue
                parent, *children = step.path if isinstance(step, Chain) else step
                known = all(child.label in (label, *tags) or child in phrases for child in children)
                if parent.label in (root, label) and known:
                    yield step
