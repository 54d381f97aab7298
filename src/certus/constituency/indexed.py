"""A grammar as flat arrays for the chart kernels, and its restriction to one sentence."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats
from certus.constituency.binarise import Binary, Chain, Symbol
from certus.text import Tree

if TYPE_CHECKING:
    from certus.constituency.grammar import Grammar

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Indexed:
    """Rules and chains over the numbers 0 .. size - 1.

    A symbol that some chain leads to has two numbers: its base, built by words and binary rules, and its top, built
    by chains, one of which (weight 0, ``source_chain`` -1) lifts the base as it is. Other symbols have one number.
    Rules are sorted by right child, then left child, then parent; chains by top. ``source_*`` are positions in the
    grammar's lists of rules and chains.
    """

    size: int
    root: int
    symbol: Int32  # (size,) number of a base or top -> symbol
    is_top: Int32  # (size,) 1 for tops
    base: Int32  # (symbols,) symbol -> its base, -1 if it was dropped
    parent: Int32
    left: Int32
    right: Int32
    weight: Floats
    source_rule: Int32
    chain_top: Int32
    chain_base: Int32
    chain_weight: Floats
    source_chain: Int32

    @cached_property
    def right_ptr(self) -> Int64:
        return _offsets(self.right, self.size)

    @cached_property
    def by_parent(self) -> Int32:
        return np.argsort(self.parent, kind="stable").astype(np.int32)

    @cached_property
    def parent_ptr(self) -> Int64:
        return _offsets(self.parent, self.size)

    @cached_property
    def chain_ptr(self) -> Int64:
        return _offsets(self.chain_top, self.size)

    def restricted(self, bases: Int32, *, needed: bool = True) -> "Indexed":
        """Only what can be built from the given bases and, if ``needed``, lead up to the root."""
        built = np.zeros(self.size, dtype=bool)
        built[bases] = True
        before = -1
        while (count := int(built.sum())) != before:
            before = count
            built[self.chain_top[built[self.chain_base]]] = True
            built[self.parent[built[self.left] & built[self.right]]] = True
        rules = built[self.left] & built[self.right]
        chains = built[self.chain_base]
        keep = built
        if needed:
            keep = np.zeros(self.size, dtype=bool)
            keep[self.root] = built[self.root]
            before = -1
            while (count := int(keep.sum())) != before:
                before = count
                used = rules & keep[self.parent]
                keep[self.left[used]] = True
                keep[self.right[used]] = True
                keep[self.chain_base[chains & keep[self.chain_top]]] = True
            rules &= keep[self.parent]
            chains &= keep[self.chain_top]
        keep[self.root] = True
        number = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        return Indexed(
            size=int(keep.sum()),
            root=int(number[self.root]),
            symbol=self.symbol[keep],
            is_top=self.is_top[keep],
            base=np.where(self.base >= 0, number[self.base], -1).astype(np.int32),
            parent=number[self.parent[rules]],
            left=number[self.left[rules]],
            right=number[self.right[rules]],
            weight=self.weight[rules],
            source_rule=self.source_rule[rules],
            chain_top=number[self.chain_top[chains]],
            chain_base=number[self.chain_base[chains]],
            chain_weight=self.chain_weight[chains],
            source_chain=self.source_chain[chains],
        )


class GrammarIndex:
    """What every sentence of one grammar shares: numbers for symbols, and the whole grammar as arrays."""

    def __init__(self, grammar: "Grammar") -> None:
        self.symbols: tuple[Symbol, ...] = grammar.symbols
        self.number = {symbol: k for k, symbol in enumerate(self.symbols)}
        self.rules: tuple[Binary, ...] = tuple(grammar.binary)
        self.chains: tuple[Chain, ...] = tuple(grammar.chains)
        self.by_label: dict[str, list[Symbol]] = {}
        for symbol in sorted(grammar.lexicon.preterminals):
            self.by_label.setdefault(symbol.label, []).append(symbol)
        self.indexed = self._index(grammar)

    def _index(self, grammar: "Grammar") -> Indexed:
        count = len(self.symbols)
        number = self.number
        chained = np.zeros(count, dtype=bool)
        chained[[number[chain.path[0]] for chain in self.chains]] = True
        # The base of a symbol comes right before its top.
        base = (np.arange(count) + np.concatenate(([0], np.cumsum(chained)[:-1]))).astype(np.int32)
        top = base + chained
        size = count + int(chained.sum())
        symbol = np.repeat(np.arange(count), 1 + chained).astype(np.int32)
        is_top = np.zeros(size, dtype=np.int32)
        is_top[top[chained]] = 1

        triples = np.array([[number[x], number[y], number[z]] for x, y, z in self.rules], dtype=np.int64).reshape(-1, 3)
        parent, left, right = base[triples[:, 0]], top[triples[:, 1]], top[triples[:, 2]]
        order = np.lexsort((parent, left, right))
        ends = np.array([[number[c.path[0]], number[c.path[-1]]] for c in self.chains], dtype=np.int64).reshape(-1, 2)
        lifted = np.flatnonzero(chained)
        chain_top = np.concatenate((top[lifted], top[ends[:, 0]]))
        chain_base = np.concatenate((base[lifted], base[ends[:, 1]]))
        chain_weight = np.concatenate((np.zeros(len(lifted)), list(grammar.chains.values())))
        source = np.concatenate((np.full(len(lifted), -1), np.arange(len(self.chains))))
        chain_order = np.argsort(chain_top, kind="stable")
        return Indexed(
            size=size,
            root=int(top[number[Symbol(grammar.root)]]),
            symbol=symbol,
            is_top=is_top,
            base=base,
            parent=parent[order],
            left=left[order],
            right=right[order],
            weight=np.array(list(grammar.binary.values()), dtype=np.float64)[order],
            source_rule=order.astype(np.int32),
            chain_top=chain_top[chain_order].astype(np.int32),
            chain_base=chain_base[chain_order].astype(np.int32),
            chain_weight=chain_weight[chain_order],
            source_chain=source[chain_order].astype(np.int32),
        )

    def tree(self, indexed: Indexed, steps: list[int], words: list[tuple[str, str]]) -> Tree:
        """The plain tree of a derivation in preorder; ``words[l]`` is the tag and word of word item l."""
        n_rules, n_chains = len(indexed.parent), len(indexed.chain_top)
        stack: list[list[Tree]] = []  # what each finished item contributes to the node above it
        for step in reversed(steps):
            if step >= n_rules + n_chains:
                tag, word = words[step - n_rules - n_chains]
                stack.append([Tree(tag, word)])
            elif step >= n_rules:
                source = int(indexed.source_chain[step - n_rules])
                if source >= 0:
                    trees = stack.pop()
                    for symbol in reversed(self.chains[source].path[:-1]):
                        trees = [Tree(symbol.label, trees)]
                    stack.append(trees)
            else:
                symbol = self.rules[indexed.source_rule[step]].parent
                children = stack.pop() + stack.pop()
                stack.append([Tree(symbol.label, children)] if symbol.is_node else children)
        ((tree,),) = stack
        return tree


def _offsets(values: NDArray[Any], size: int) -> Int64:
    """Offsets of the runs of equal values in a sorted array over 0 .. size - 1."""
    return np.concatenate(([0], np.cumsum(np.bincount(values, minlength=size)))).astype(np.int64)
