"""Probabilistic grammars from treebanks: relative frequencies of binarised rules."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import log
from typing import Any

from certus.constituency.binarise import Binary, Chain, Memory, Symbol
from certus.constituency.lexicon import Counted
from certus.constituency.tree import Tree
from certus.errors import InvalidInput


def estimate(trees: Iterable[Tree], memory: Memory, root: str) -> dict[str, Any]:
    """Arguments of Grammar for a treebank."""
    binary: Counter[Binary] = Counter()
    unary: Counter[tuple[Symbol, Symbol]] = Counter()
    chains: set[Chain] = set()
    words: defaultdict[str, Counter[Symbol]] = defaultdict(Counter)
    for tree in trees:
        rooted = tree if tree.label == root else Tree(root, [tree])
        leaves = rooted.leaves()
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
    return {
        "root": root,
        "binary": {rule: log(count / expanded[rule.parent]) for rule, count in binary.items()},
        "chains": {
            chain: sum(unary_log[pair] for pair in zip(chain.path, chain.path[1:], strict=False))
            for chain in sorted(chains, key=lambda chain: [str(symbol) for symbol in chain.path])
        },
        "lexicon": Counted(words),
        "memory": memory,
    }
