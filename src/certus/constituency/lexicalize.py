"""Phrase structure with heads: lexicalised trees, their dependencies and their spines, and back without loss.

A lexicalised tree is a tree with a head child at every node. Two other forms say the same:

- the tree and the dependency tree of its heads: the head child of a node is the one that holds the word whose own head
  lies outside the node;
- spines: every word has the labels of the nodes it heads, from its tag upwards, and hangs with the topmost one on a
  level of the spine of its head (the second argument of LR 4.2.2, as in a tree-adjoining grammar).
"""

from dataclasses import dataclass

import numpy as np

from certus.checks import Ints
from certus.constituency.head_rules import HeadRules
from certus.draw import Drawn, Picture, phrase_tree
from certus.errors import InvalidInput
from certus.text import Sentence, Token, Tree

Spine = tuple[str, ...]  # the tag of a word, and the labels of the phrases it heads, bottom up


@dataclass(frozen=True, slots=True)
class LexicalizedTree(Drawn):
    """A phrase-structure tree and the heads of its words.

    Parameters
    ----------
    tree : Tree
    heads : tuple of int
        ``heads[m]`` is the head of word m (1..n), 0 for the root word, and ``heads[0]`` is -1: the dependencies that
        the head children imply. :func:`lexicalized` finds them by rules.

    Examples
    --------
    >>> from certus.io.brackets import parse_tree
    >>> tree = lexicalized(parse_tree("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"))
    >>> tree.heads
    (-1, 2, 3, 0)
    """

    tree: Tree
    heads: tuple[int, ...]

    def __str__(self) -> str:
        return str(self.tree)

    @property
    def words(self) -> list[str]:
        """The words, left to right."""
        return self.tree.words

    @property
    def tags(self) -> list[str]:
        """The labels right above the words."""
        return self.tree.tags

    def picture(self) -> Picture:
        """The tree, each phrase with its head word and a bold line down to it."""
        return phrase_tree(self.tree.preorder(), heads=self.heads)

    @property
    def dependencies(self) -> Ints:
        """The heads as certus.Dependency has them: an int64 array of size n + 1."""
        return np.array(self.heads, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Spines:
    """The spine of each word, its head, and the level of the head's spine that it hangs on; indices start at word 1.

    ``level[m]`` is k if word m hangs on label number k of the spine of its head (k >= 1), and 0 for the root word.
    Entries 0 are unused.
    """

    words: tuple[str, ...]
    spine: tuple[Spine, ...]
    head: tuple[int, ...]
    level: tuple[int, ...]


def lexicalized(tree: Tree, rules: HeadRules | None = None) -> LexicalizedTree:
    """A tree with the heads that rules give; the bundled Penn rules by default."""
    found = rules or HeadRules.penn()
    word = len(tree.words)
    heads = [-1] + [0] * word
    stack: list[tuple[str, int]] = []  # label and head word of finished nodes, leftmost on top
    for label, is_word, arity in reversed(tree.preorder()):
        if is_word is not None:
            stack.append((label, word))
            word -= 1
            continue
        children = [stack.pop() for _ in range(arity)]
        head = children[found.head(label, [name for name, _ in children])][1]
        for _, modifier in children:
            if modifier != head:
                heads[modifier] = head
        stack.append((label, head))
    return LexicalizedTree(tree, tuple(heads))


def spines(lexical: LexicalizedTree) -> Spines:
    """The spines of a lexicalised tree. InvalidInput if the heads do not fit the tree."""
    words = lexical.tree.words
    n, heads = len(words), lexical.heads
    if len(heads) != n + 1 or heads[0] != -1 or not all(0 <= h <= n for h in heads[1:]):
        raise InvalidInput(f"heads are {heads}; expected -1 and the heads, 0..{n}, of the {n} words of the tree.")
    spine: list[list[str]] = [[] for _ in range(n + 1)]
    level = [0] * (n + 1)
    stack: list[int] = []  # head words of finished nodes, leftmost on top
    word = n
    for label, is_word, arity in reversed(lexical.tree.preorder()):
        if is_word is not None:
            spine[word].append(label)
            stack.append(word)
            word -= 1
            continue
        children = [stack.pop() for _ in range(arity)]
        tops = [c for c in children if heads[c] not in children]
        if len(tops) != 1 or any(heads[c] != tops[0] for c in children if c != tops[0]):
            raise InvalidInput(f"the heads do not fit the tree: ({label} ...) joins words {children}, not all to one.")
        (head,) = tops
        for c in children:
            if c != head:
                level[c] = len(spine[head])
        spine[head].append(label)
        stack.append(head)
    if heads[stack[0]] != 0:
        raise InvalidInput(f"the heads do not fit the tree: its head is word {stack[0]}, whose head is not 0.")
    return Spines(tuple(words), tuple(map(tuple, spine)), heads, tuple(level))


def from_spines(parts: Spines) -> LexicalizedTree:
    """The lexicalised tree of spines; the inverse of :func:`spines`."""
    n = len(parts.words)
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for m in range(1, n + 1):
        children[parts.head[m]].append(m)
    ((root,),) = (children[0],)
    order = [root]
    for h in order:
        order.extend(children[h])
    built: list[Tree | None] = [None] * (n + 1)
    for h in reversed(order):
        tree = Tree(parts.spine[h][0], parts.words[h - 1])
        for k in range(1, len(parts.spine[h])):
            here = [m for m in children[h] if parts.level[m] == k]
            left = [built[m] for m in here if m < h]
            right = [built[m] for m in here if m > h]
            tree = Tree(parts.spine[h][k], [t for t in (*left, tree, *right) if t is not None])
        built[h] = tree
    whole = built[root]
    assert whole is not None
    return LexicalizedTree(whole, parts.head)


def to_sentence(lexical: LexicalizedTree) -> Sentence:
    """The dependencies of a lexicalised tree in CoNLL-U.

    Tags go to UPOS and XPOS. The relation names the topmost phrase of the word and the phrase it hangs in: ``NP|S``.
    """
    parts = spines(lexical)
    tokens = []
    for m, word in enumerate(parts.words, start=1):
        h = parts.head[m]
        relation = f"{parts.spine[m][-1]}|{parts.spine[h][parts.level[m]]}" if h else "root"
        tag = parts.spine[m][0]
        tokens.append(Token(m, word, upos=tag, xpos=tag, head=h, deprel=relation))
    return Sentence(tokens)
