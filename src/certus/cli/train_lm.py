"""certus train lm: a language model from text."""

from pathlib import Path
from typing import Annotated

from certus.cli.arguments import Option
from certus.cli.messages import say
from certus.cli.overwriting import refuse_overwriting
from certus.cli.progress import watched
from certus.features.brown import read_sentences
from certus.io.arpa import write_arpa
from certus.translation.kneser_ney import estimate_kneser_ney


def lm(
    text: Annotated[list[Path], Option(help="Tokenised sentences, one a line, plain or .gz; may be repeated")],
    output: Annotated[Path, Option(help="Where the model goes, in ARPA format; .gz by its name")],
    order: Annotated[int, Option(min=1, help="Longest n-grams")] = 3,
) -> None:
    """Estimate an n-gram language model with modified Kneser-Ney smoothing, interpolated, without pruning.

    Orders whose discounts cannot be estimated, as happens with little text, take the fixed ones 0.5, 1 and 1.5.
    """
    refuse_overwriting(output, *text)
    sentences = (sentence for path in text for sentence in read_sentences(path))
    found = estimate_kneser_ney(watched(sentences, "reading"), order)
    write_arpa(output, found.arpa)
    sizes = " ".join(str(len(grams.words)) for grams in found.arpa.orders)
    say(f"{output}: {sizes} n-grams by order, from {found.sentences} sentences")
    if found.fallen_back:
        orders = ", ".join(map(str, found.fallen_back))
        say(f"too little text to estimate the discounts of order {orders}; fixed ones were taken")
