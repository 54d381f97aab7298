"""Tagged sentences of a corpus file, whichever of the formats it is in."""

from collections.abc import Iterator
from pathlib import Path


def read_tagged(path: Path, *, column: str = "upos") -> Iterator[list[tuple[str, str]]]:
    """Sentences as lists of (word, tag): of a .conllu file, from the column named, or of bracketed trees."""
    if path.name.removesuffix(".gz").endswith(".conllu"):
        from certus.io.conllu import read_conllu

        for sentence in read_conllu(path):
            yield sentence.tagged(column)
    else:
        from certus.io.brackets import read_trees

        for tree in read_trees(path, clean=True):
            yield list(zip(tree.words(), tree.tags(), strict=True))
