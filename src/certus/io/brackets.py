"""Penn-style bracketed trees: a streaming reader and writer, and the usual cleaning.

One tree after another, over as many lines as they like: ``( (S (NP (N dogs)) (VP (V bark))) )``. An outer bracket
without a label gets the label ``root``. Files may be gzip.
"""

import os
import re
from collections.abc import Iterable, Iterator

from certus.errors import FormatError
from certus.io.files import text_lines
from certus.serialize import write_text_atomically
from certus.text import Tree

_TOKEN = re.compile(r"[()]|[^\s()]+")


def parse_trees(lines: Iterable[str], *, path: object = "<text>", root: str = "TOP") -> Iterator[Tree]:
    """Trees of an iterable of lines, as they come; ``path`` is only named in errors."""
    # A frame is (line of its bracket, [label] or [], children so far).
    stack: list[tuple[int, list[str], list[Tree | str]]] = []
    number = 0
    for number, line in enumerate(lines, start=1):
        for token in _TOKEN.findall(line):
            if token == "(":
                if stack and stack[-1][2] and isinstance(stack[-1][2][0], str):
                    raise FormatError(
                        path, number, f'"(" after the word "{stack[-1][2][0]}"; a tag is over one word only.'
                    )
                stack.append((number, [], []))
            elif token == ")":
                if not stack:
                    raise FormatError(path, number, '")" without an opening bracket before it.')
                tree = _closed(stack, path, number, root)
                if stack:
                    stack[-1][2].append(tree)
                else:
                    yield tree
            elif not stack:
                raise FormatError(path, number, f'"{token}" stands outside all brackets; expected "(".')
            elif not stack[-1][1] and not stack[-1][2]:
                stack[-1][1].append(token)
            else:
                _add_word(stack[-1], token, path, number)
    if stack:
        raise FormatError(
            path, number, f"the file ends inside a tree: the bracket opened on line {stack[-1][0]} is never closed."
        )


def _add_word(frame: tuple[int, list[str], list[Tree | str]], word: str, path: object, number: int) -> None:
    _, label, children = frame
    if not label:
        raise FormatError(path, number, f'the word "{word}" follows a tree inside a bracket without a label.')
    if children:
        raise FormatError(
            path, number, f'the word "{word}" is not the only child of ({label[0]} ...); tags are over one word.'
        )
    children.append(word)


def _closed(stack: list[tuple[int, list[str], list[Tree | str]]], path: object, number: int, root: str) -> Tree:
    opened, label, children = stack.pop()
    if not children:
        what = f"({label[0]}) has no children" if label else "empty bracket ()"
        raise FormatError(path, number, f"{what}; expected a word or trees.")
    if not label and stack:
        raise FormatError(
            path, opened, "a bracket inside a tree has no label; only the outermost bracket may do without."
        )
    return Tree(label[0] if label else root, children)


def parse_tree(text: str, *, root: str = "TOP") -> Tree:
    """The one tree in a string.

    >>> parse_tree("(S (NP (N dogs)) (VP (V bark)))").tags
    ['N', 'V']
    """
    trees = list(parse_trees(text.splitlines(), root=root))
    if len(trees) != 1:
        raise FormatError("<text>", None, f"holds {len(trees)} trees; expected one.")
    return trees[0]


def read_trees(path: str | os.PathLike[str], *, root: str = "TOP", clean: bool = False) -> Iterator[Tree]:
    """Trees of a file, one at a time, in bounded memory.

    Parameters
    ----------
    path : path
        Text, plain or gzip.
    root : str
        Label of outer brackets that have none.
    clean : bool
        Apply :func:`clean_tree`; trees that hold nothing but traces are left out.

    Raises
    ------
    FormatError : names the file and line of an unbalanced bracket, an empty one, or a missing label.
    """
    for tree in parse_trees(text_lines(path), path=path, root=root):
        cleaned = clean_tree(tree) if clean else tree
        if cleaned is not None:
            yield cleaned


def write_trees(path: str | os.PathLike[str], trees: Iterable[Tree]) -> None:
    """Write one tree a line, the whole file or nothing."""
    write_text_atomically(path, "".join(f"{tree}\n" for tree in trees))


def clean_tree(tree: Tree) -> Tree | None:
    """The tree without traces (``-NONE-``), nodes emptied by that, function tags and indices.

    ``NP-SBJ-1`` and ``NP=2`` become ``NP``; labels that start with a hyphen, such as ``-LRB-``, and tags with ``|``
    are kept as they are. None if nothing is left.
    """
    kept: dict[int, Tree | None] = {}
    for node in reversed(list(tree.nodes())):
        if node.word is not None:
            kept[id(node)] = None if node.label == "-NONE-" else node
            continue
        children = [child for sub in node.subtrees if (child := kept[id(sub)]) is not None]
        kept[id(node)] = Tree(plain_label(node.label), children) if children else None
    return kept[id(tree)]


def plain_label(label: str) -> str:
    """A phrase label without function tags and indices.

    >>> plain_label("NP-SBJ-1"), plain_label("-LRB-"), plain_label("PP=2")
    ('NP', '-LRB-', 'PP')
    """
    if label.startswith("-"):
        return label
    return re.split(r"[-=]", label, maxsplit=1)[0]
