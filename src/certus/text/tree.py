"""Phrase-structure trees: a label over children, or over one word. No method recurses, so any depth will do."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from certus.checks import shown
from certus.draw import Drawn, Picture, phrase_tree
from certus.errors import InvalidInput


class Span(NamedTuple):
    """A node of a tree seen as a labelled span: words ``start`` to ``end - 1``, counted from 0."""

    label: str
    start: int
    end: int


class Tree(Drawn):
    """An immutable phrase-structure tree.

    Parameters
    ----------
    label : str
        The nonterminal, or the part-of-speech tag of a preterminal.
    children : str or iterable of Tree
        One word for a preterminal; at least one tree otherwise.

    Examples
    --------
    >>> tree = Tree("S", [Tree("NP", [Tree("N", "dogs")]), Tree("VP", [Tree("V", "bark")])])
    >>> str(tree)
    '(S (NP (N dogs)) (VP (V bark)))'
    >>> tree.words, tree.tags
    (['dogs', 'bark'], ['N', 'V'])
    """

    __slots__ = ("_hash", "_preterminals", "children", "label")

    label: str
    _preterminals: "tuple[Tree, ...]"
    children: "tuple[Tree, ...] | tuple[str]"

    def __init__(self, label: str, children: "str | Iterable[Tree | str]") -> None:
        if not isinstance(label, str):
            raise InvalidInput(f"a tree's label is {label!r}; expected a string.")
        if not isinstance(children, Iterable):
            raise InvalidInput(f"the children of ({label} ...) are {children!r}; expected one word, or trees.")
        parts = (children,) if isinstance(children, str) else tuple(children)
        one_word = len(parts) == 1 and isinstance(parts[0], str)
        if not parts or not (one_word or all(isinstance(p, Tree) for p in parts)):
            raise InvalidInput(
                f"the children of ({label} ...) are {_kinds(parts)}; expected one word, or one or more trees."
            )
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "children", parts)
        object.__setattr__(self, "_hash", hash((label, parts)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Tree is immutable; build a new one.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Tree is immutable; build a new one.")

    def __reduce__(self) -> tuple[object, ...]:
        return (Tree.from_preorder, (self.preorder(),))

    def __copy__(self) -> "Tree":
        return self

    def __deepcopy__(self, memo: object) -> "Tree":
        return self

    # -- what it is made of ----------------------------------------------------------------------------------------

    @property
    def word(self) -> str | None:
        """The word of a preterminal; None for other nodes."""
        first = self.children[0]
        return first if isinstance(first, str) else None

    @property
    def subtrees(self) -> "tuple[Tree, ...]":
        """The children that are trees: all of them, or none for a preterminal."""
        children: Any = self.children
        return () if isinstance(children[0], str) else children

    def nodes(self) -> "Iterator[Tree]":
        """Every node, parents before children, left to right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.subtrees))

    def preterminals(self) -> "list[Tree]":
        """The nodes right above the words, left to right; looked for once."""
        try:
            return list(self._preterminals)
        except AttributeError:
            object.__setattr__(self, "_preterminals", tuple(node for node in self.nodes() if node.word is not None))
            return list(self._preterminals)

    @property
    def words(self) -> list[str]:
        """The words, left to right."""
        return [str(node.children[0]) for node in self.preterminals()]

    @property
    def tags(self) -> list[str]:
        """The labels right above the words, left to right."""
        return [node.label for node in self.preterminals()]

    def spans(self, *, preterminals: bool = False) -> list[Span]:
        """Labelled spans of the nodes, parents before children; those of preterminals only when asked for."""
        nodes = list(self.nodes())
        width: dict[int, int] = {}
        for node in reversed(nodes):
            width[id(node)] = 1 if node.word is not None else sum(width[id(child)] for child in node.subtrees)
        out = []
        stack = [(self, 0)]
        while stack:
            node, start = stack.pop()
            end = start + width[id(node)]
            if preterminals or node.word is None:
                out.append(Span(node.label, start, end))
            for child in reversed(node.subtrees):
                end -= width[id(child)]
                stack.append((child, end))
        return out

    def height(self) -> int:
        """Nodes on the longest way from the root down to a preterminal."""
        height: dict[int, int] = {}
        for node in reversed(list(self.nodes())):
            height[id(node)] = 1 + max((height[id(child)] for child in node.subtrees), default=0)
        return height[id(self)]

    def preorder(self) -> list[tuple[str, str | None, int]]:
        """(label, word or None, number of subtrees) of every node, parents first: the tree without nesting."""
        return [(node.label, node.word, len(node.subtrees)) for node in self.nodes()]

    @staticmethod
    def from_preorder(items: "Iterable[tuple[str, str | None, int]]") -> "Tree":
        """The tree that :meth:`preorder` described; InvalidInput if it is none."""
        stack: list[Tree] = []
        for label, word, arity in reversed(list(items)):
            if len(stack) < arity:
                break
            stack.append(Tree(label, word if word is not None else [stack.pop() for _ in range(arity)]))
        else:
            if len(stack) == 1:
                return stack[0]
        raise InvalidInput("the list of nodes is not one tree.")

    # -- equality --------------------------------------------------------------------------------------------------

    def __hash__(self) -> int:
        return int(object.__getattribute__(self, "_hash"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        stack = [(self, other)]
        while stack:
            a, b = stack.pop()
            if a is b:
                continue
            if a.label != b.label or a.word != b.word or len(a.children) != len(b.children):
                return False
            stack.extend(zip(a.subtrees, b.subtrees, strict=True))
        return True

    # -- text ------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        """One line of brackets; brackets in words and labels are written ``-LRB-`` and ``-RRB-``."""
        out: list[str] = []
        stack: list[Tree | str] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                out.append(item)
            elif item.word is not None:
                out.append(f"({_escaped(item.label)} {_escaped(item.word)})")
            else:
                out.append(f"({_escaped(item.label)}")
                stack.append(")")
                for child in reversed(item.subtrees):
                    stack.extend((child, " "))
        return "".join(out)

    def __repr__(self) -> str:
        return f"Tree({str(self)!r})"

    def picture(self, *, other: "Tree | None" = None, across: bool | None = None) -> Picture:
        """The tree above its words, or beside them where it is wide; with ``other``, of the same words, below them."""
        if other is not None and other.words != self.words:
            raise InvalidInput("the two trees have different words; draw each by itself.")
        return phrase_tree(self.preorder(), other=None if other is None else other.preorder(), across=across)

    def pretty(self, *, width: int = 100, indent: int = 2) -> str:
        """Brackets over several indented lines; a node that fits the width stays on one line.

        >>> print(Tree("S", [Tree("NP", [Tree("N", "dogs")]), Tree("VP", [Tree("V", "bark")])]).pretty(width=20))
        (S
          (NP (N dogs))
          (VP (V bark)))
        """
        length: dict[int, int] = {}
        for node in reversed(list(self.nodes())):
            inner = (
                len(_escaped(node.word)) + 1 if node.word is not None else sum(length[id(c)] + 1 for c in node.subtrees)
            )
            length[id(node)] = inner + len(node.label) + 2
        lines: list[str] = []
        stack: list[tuple[Tree, int, int]] = [(self, 0, 0)]  # node, depth, brackets to close after it
        while stack:
            node, depth, closing = stack.pop()
            margin = " " * (indent * depth)
            if node.word is not None or len(margin) + length[id(node)] + closing <= width:
                lines.append(f"{margin}{node}{')' * closing}")
                continue
            lines.append(f"{margin}({_escaped(node.label)}")
            for position, child in enumerate(reversed(node.subtrees)):
                stack.append((child, depth + 1, closing + 1 if position == 0 else 0))
        return "\n".join(lines)


def _kinds(parts: tuple[object, ...]) -> str:
    return ", ".join(type(part).__name__ for part in parts) or "missing"


def _escaped(text: str) -> str:
    return text.replace("(", "-LRB-").replace(")", "-RRB-") if "(" in text or ")" in text else text


def as_trees(trees: Iterable[object]) -> Iterator[Tree]:
    """Trees one by one; InvalidInput for what is none."""
    how = "trees of certus.Tree; certus.io.brackets.read_trees(path) reads them from a file"
    if isinstance(trees, Tree | str) or not isinstance(trees, Iterable):
        raise InvalidInput(f"trees is {shown(trees)}; expected {how}.")
    for k, tree in enumerate(trees):
        if not isinstance(tree, Tree):
            raise InvalidInput(f"tree {k} is {shown(tree)}; expected {how}.")
        yield tree
