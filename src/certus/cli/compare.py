"""certus compare: two parses of the same sentences on one page."""

from itertools import zip_longest
from pathlib import Path
from typing import Annotated

from certus.cli.arguments import Argument, Option
from certus.cli.overwriting import refuse_overwriting
from certus.errors import InvalidInput
from certus.io.conllu import read_conllu
from certus.report.comparison import compare_parses
from certus.text import Sentence
from certus.writing import write_atomically


def compare(
    first: Annotated[Path, Argument(help="Parses in CoNLL-U, plain or .gz; the gold standard, say")],
    second: Annotated[Path, Argument(help="Other parses of the same sentences")],
    output: Annotated[Path, Option(help="The page to write")],
    most: Annotated[int, Option(min=1, help="Sentences to draw")] = 100,
) -> None:
    """Compare two parses of the same sentences: a page of counts and of pictures of what differs, with filters."""
    refuse_overwriting(output, first, second)
    pairs: list[tuple[Sentence, Sentence]] = []
    for number, (a, b) in enumerate(zip_longest(read_conllu(first), read_conllu(second)), start=1):
        if a is None or b is None:
            shorter = first if a is None else second
            raise InvalidInput(f"{shorter} ends before sentence {number} of the other; compare the same sentences.")
        pairs.append((a, b))
    write_atomically(output, compare_parses(pairs, (first.name, second.name), most=most).encode())
