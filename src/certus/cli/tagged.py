"""Tagged sentences of a corpus file, whichever of the formats it is in."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from certus.io.conllu import Sentence


def read_sentences_with_tags(path: Path) -> "Iterator[Sentence]":
    """Sentences of a .conllu file, or of bracketed trees: their tags stand in both columns."""
    if path.name.removesuffix(".gz").endswith(".conllu"):
        from certus.io.conllu import read_conllu

        yield from read_conllu(path)
    else:
        from certus.io.brackets import read_trees
        from certus.io.conllu import Sentence, Token

        for tree in read_trees(path, clean=True):
            pairs = zip(tree.words(), tree.tags(), strict=True)
            yield Sentence([Token(i, word, upos=tag, xpos=tag) for i, (word, tag) in enumerate(pairs, start=1)])


def read_dependencies(path: Path) -> "Iterator[Sentence]":
    """Dependency trees of a .conllu file, or of bracketed trees by the Penn rules for heads."""
    if path.name.removesuffix(".gz").endswith(".conllu"):
        from certus.io.conllu import read_conllu

        yield from read_conllu(path, require_heads=True)
    else:
        from certus.constituency.lexicalize import lexicalized, to_sentence
        from certus.io.brackets import read_trees

        for tree in read_trees(path, clean=True):
            yield to_sentence(lexicalized(tree))


def read_tagged(path: Path, *, column: str = "upos") -> Iterator[list[tuple[str, str]]]:
    """The same as lists of (word, tag), with tags from the column named."""
    for sentence in read_sentences_with_tags(path):
        yield sentence.tagged(column)


def tag_columns(sentences: "Iterable[Sentence]") -> set[str]:
    """The columns in which some word has a tag."""
    columns = ("upos", "xpos", "feats")
    return {name for sentence in sentences for token in sentence for name in columns if getattr(token, name) != "_"}
