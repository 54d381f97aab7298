"""Sentences to learn from, whichever of the formats a corpus file is in: CoNLL-U by its name, or bracketed trees."""

import os
from collections.abc import Iterable, Iterator

from certus.constituency.lexicalize import lexicalized, to_sentence
from certus.io.brackets import read_trees
from certus.io.conllu import is_conllu, read_conllu
from certus.text import Sentence, Token


def read_tagged(path: str | os.PathLike[str]) -> Iterator[Sentence]:
    """Tagged sentences; the tags of bracketed trees stand in both columns."""
    if is_conllu(path):
        yield from read_conllu(path)
        return
    for tree in read_trees(path, clean=True):
        pairs = enumerate(zip(tree.words, tree.tags, strict=True), start=1)
        yield Sentence([Token(i, word, upos=tag, xpos=tag) for i, (word, tag) in pairs])


def read_dependencies(path: str | os.PathLike[str]) -> Iterator[Sentence]:
    """Dependency trees; those of bracketed trees by the Penn rules for heads."""
    if is_conllu(path):
        yield from read_conllu(path, require_heads=True)
        return
    for tree in read_trees(path, clean=True):
        yield to_sentence(lexicalized(tree))


def tag_columns(sentences: Iterable[Sentence]) -> set[str]:
    """The columns in which some word has a tag."""
    columns = ("upos", "xpos", "feats")
    return {name for sentence in sentences for token in sentence for name in columns if getattr(token, name) != "_"}
