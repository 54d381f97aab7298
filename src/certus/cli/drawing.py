"""Drawings on stdout: SVG, a page of HTML, or plain text."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from certus.draw import Picture, stacked
from certus.report.page import figures


class Form(StrEnum):
    """How parses are printed."""

    conllu = "conllu"
    svg = "svg"
    html = "html"
    ascii = "ascii"
    parquet = "parquet"
    parquet_sentences = "parquet-sentences"


PARQUET = (Form.parquet, Form.parquet_sentences)


def print_drawings(form: Form, pictures: Iterable[tuple[Picture, str]]) -> None:
    """Pictures with what is said of each: text as they come, the rest as one file once all are there."""
    if form is Form.ascii:
        for picture, _ in pictures:
            print(picture.text, flush=True)
    elif form is Form.html:
        print(figures("Parses", pictures))
    else:
        print(stacked(_pictures(pictures), "Parses").svg)


def _pictures(pictures: Iterable[tuple[Picture, str]]) -> Iterator[Picture]:
    for picture, _ in pictures:
        yield picture
