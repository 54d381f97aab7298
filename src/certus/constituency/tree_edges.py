"""The derivation of a phrase-structure tree in the graph of its sentence's normal form."""

from typing import NamedTuple

from certus.constituency.binarise import Binary, Chain, Step, Symbol, Word
from certus.constituency.indexed import GrammarIndex, Indexed
from certus.constituency.normal import ParseGraph


class _Built(NamedTuple):
    """A symbol over words i to j, and its edges, head before tails."""

    number: int  # of the symbol, base or top
    i: int
    j: int
    edges: list[int]


class _Missing(Exception):
    """The graph does not have a part of the tree."""


def edges_of(graph: ParseGraph, index: GrammarIndex, rules: Indexed, steps: list[Step]) -> list[int] | None:
    """The edges of the tree with these steps, head before tails; None if it uses a forbidden part."""
    builder = _Builder(graph, index, rules)
    try:
        return builder.built(steps)
    except _Missing:
        return None


class _Builder:
    def __init__(self, graph: ParseGraph, index: GrammarIndex, rules: Indexed) -> None:
        self.graph, self.index, self.rules = graph, index, rules
        self.top_of = {int(rules.base[rules.symbol[x]]): int(x) for x in rules.is_top.nonzero()[0]}
        source = rules.source_chain.tolist()
        self.chain_of = {index.chains[s]: c for c, s in enumerate(source) if s >= 0}

    def built(self, steps: list[Step]) -> list[int]:
        """From the last word back: combs take as many finished symbols as they have children."""
        stack: list[_Built] = []
        place = len(steps)
        while place:
            place -= 1
            step = steps[place]
            if isinstance(step, Word):
                stack.append(self._joined(step.symbol, step.position, step.position + 1, []))
            elif isinstance(step, Chain):
                stack.append(self._chained(stack.pop(), self.chain_of.get(step, -1)))
            else:
                first = place
                while not _starts_comb(steps, first):
                    first -= 1
                comb = [s for s in steps[first : place + 1] if isinstance(s, Binary)]
                children = [self._lifted(stack.pop()) for _ in range(len(comb) + 1)]
                stack.append(self._comb(comb, children))
                place = first
        (whole,) = stack
        return self._lifted(whole).edges

    def _comb(self, comb: list[Binary], children: list[_Built]) -> _Built:
        right = children.pop()
        for step in reversed(comb):
            left = children.pop()
            right = self._joined(step.parent, left.i, right.j, [left, right])
        return right

    def _joined(self, symbol: Symbol, i: int, j: int, children: list[_Built]) -> _Built:
        """The base of a symbol, made of a word or of two children."""
        known = self.index.number.get(symbol)
        x = -1 if known is None else int(self.rules.base[known])
        return self._made(x, i, j, children, None)

    def _chained(self, below: _Built, chain: int) -> _Built:
        if chain < 0 or int(self.rules.chain_base[chain]) != below.number:
            raise _Missing
        part = int(self.graph.chains[chain])
        if part < 0:
            raise _Missing
        return self._made(int(self.rules.chain_top[chain]), below.i, below.j, [below], part)

    def _lifted(self, item: _Built) -> _Built:
        """A base that has a top as it is, by the edge without parts."""
        if item.number in self.top_of:
            return self._made(self.top_of[item.number], item.i, item.j, [item], -1)
        return item

    def _made(self, x: int, i: int, j: int, children: list[_Built], part: int | None) -> _Built:
        v = -1 if x < 0 else int(self.graph.number[i, j, x])
        e = -1 if v < 0 else self.graph.edge(v, [int(self.graph.number[c.i, c.j, c.number]) for c in children], part)
        if e < 0:
            raise _Missing
        return _Built(x, i, j, [e, *(edge for child in children for edge in child.edges)])


def _starts_comb(steps: list[Step], place: int) -> bool:
    """Whether the binary step at a place is not the rest of the one before it."""
    step, before = steps[place], steps[place - 1] if place else None
    assert isinstance(step, Binary)
    return not (isinstance(before, Binary) and not before.right.is_node and before.right == step.parent)
