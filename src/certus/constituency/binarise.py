"""Trees as binarised derivations: one derivation a tree, one tree a derivation.

A node with k > 2 children becomes a right-branching comb. The comb's inner symbols remember the node and the last
``horizontal`` children already generated (all of them when None); every symbol remembers ``vertical - 1``
ancestors of its node, a preterminal ``tag_vertical - 1``. A run of unary nodes is one step, its chain. All of this
can be read off a tree from the top down and from left to right, so the way from trees to derivations is a
function, and forgetting the memories is its inverse.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from certus.text import Tree


class Symbol(NamedTuple):
    """A symbol of a binarised grammar: a node of the tree, or the rest of a node after the children ``seen``."""

    label: str
    ancestors: tuple[str, ...] = ()
    seen: tuple[str, ...] | None = None

    @property
    def is_node(self) -> bool:
        """True for the symbol of a tree's node, False for one that only binarisation needs."""
        return self.seen is None

    def __str__(self) -> str:
        name = "^".join((self.label, *self.ancestors))
        return name if self.seen is None else f"@{name}|{'_'.join(self.seen)}"


class Word(NamedTuple):
    """A lexical step: word number ``position`` under a preterminal."""

    symbol: Symbol
    position: int


class Chain(NamedTuple):
    """A unary step: the symbols of a maximal run of unary nodes and of the node below it."""

    path: tuple[Symbol, ...]


class Binary(NamedTuple):
    """A binary step."""

    parent: Symbol
    left: Symbol
    right: Symbol


Step = Word | Chain | Binary


@dataclass(frozen=True, slots=True)
class Memory:
    """What the symbols of a grammar remember of the tree around them; None is without limit."""

    horizontal: int | None = None
    vertical: int = 1
    tag_vertical: int = 1

    def node(self, node: Tree, above: tuple[str, ...]) -> Symbol:
        """Symbol of a node under the labels ``above``, nearest first."""
        keep = self.vertical if node.word is None else self.tag_vertical
        return Symbol(node.label, above[: keep - 1])

    def rest(self, parent: Symbol, seen: tuple[str, ...]) -> Symbol:
        """Symbol of what remains of a node once the children ``seen`` are generated."""
        kept = seen if self.horizontal is None else seen[max(len(seen) - self.horizontal, 0) :]
        return Symbol(parent.label, parent.ancestors, kept)

    def derivation(self, tree: Tree) -> Iterator[Step]:
        """The steps of a tree's derivation, parents before children, left to right."""
        longest = max(self.vertical, self.tag_vertical) - 1
        stack: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
        position = 0
        while stack:
            node, above = stack.pop()
            symbol = self.node(node, above)
            path = [symbol]
            while node.word is None and len(node.children) == 1:
                above = (node.label, *above)[:longest]
                (node,) = node.subtrees
                symbol = self.node(node, above)
                path.append(symbol)
            if len(path) > 1:
                yield Chain(tuple(path))
            if node.word is not None:
                yield Word(symbol, position)
                position += 1
                continue
            above = (node.label, *above)[:longest]
            # The steps of one comb come together, each left child's own steps later: order within a tree does not
            # matter to a score, and a reader of rules wants no more.
            children = node.subtrees
            labels = tuple(child.label for child in children)
            parent = symbol
            for k in range(len(children) - 2):
                first = 0 if self.horizontal is None else max(k + 1 - self.horizontal, 0)
                rest = self.rest(symbol, labels[first : k + 1])
                yield Binary(parent, self.node(children[k], above), rest)
                parent = rest
            yield Binary(parent, self.node(children[-2], above), self.node(children[-1], above))
            stack.extend((child, above) for child in reversed(children))
