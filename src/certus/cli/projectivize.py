"""certus projectivize: a treebank without crossing arcs."""

from pathlib import Path
from typing import Annotated

from certus.cli.arguments import Argument
from certus.cli.messages import say
from certus.cli.overwriting import refuse_overwriting
from certus.cli.progress import watched
from certus.dependency.projectivize import projectivized
from certus.io.conllu import read_conllu
from certus.writing import write_atomically


def projectivize(
    treebank: Annotated[Path, Argument(help="CoNLL-U with heads; plain or .gz")],
    output: Annotated[Path, Argument(help="Where the projective trees go")],
) -> None:
    """Replace every tree by the nearest projective one.

    It keeps as many heads as any projective tree can, by an exact dynamic program; words that have to move go to their
    lowest possible ancestors where ties allow. Labels stay, and MISC keeps the head that was: CrossingHead=5.
    """
    refuse_overwriting(output, treebank)
    words = moved = sentences = changed = 0
    text = []
    for sentence in watched(read_conllu(treebank, require_heads=True), "projectivizing"):
        found = projectivized(sentence)
        other = sum(a.head != b.head for a, b in zip(sentence, found, strict=True))
        words, moved = words + len(sentence), moved + other
        sentences, changed = sentences + 1, changed + (other > 0)
        text.append(str(found))
    write_atomically(output, "".join(text).encode())
    say(f"{output}: {moved} of {words} words moved, in {changed} of {sentences} sentences")
