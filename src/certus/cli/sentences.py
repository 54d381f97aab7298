"""Sentences of CoNLL-U files, which keep all they hold, and of plain text."""

import sys
from collections.abc import Iterator
from itertools import chain

from certus.cli.overwriting import refuse_reading_output
from certus.cli.streams import stdin_bytes
from certus.cli.text import read_lines, read_paragraphs
from certus.io.conllu import Sentence, parse_conllu, read_conllu


def read_sentences(inputs: list[str], *, conllu: bool, tokenised: bool, lines: bool) -> Iterator[Sentence]:
    """The sentences of the inputs as they come.

    Files named .conllu, and stdin with ``conllu``, are CoNLL-U. With ``tokenised`` every line of a text is a sentence
    of words; with ``lines`` it is a sentence, to be split into words; otherwise sentences are found too.
    """
    from certus.models.tokenizer import tokenize

    for given in inputs or ["-"]:
        if given.removesuffix(".gz").endswith(".conllu"):
            refuse_reading_output(given, given)
            yield from read_conllu(given)
        elif conllu and given == "-":
            stream = stdin_bytes()
            refuse_reading_output("stdin", sys.stdin)
            yield from parse_conllu(stream, path="stdin")
        elif tokenised:
            for line in read_lines([given], tokenised=True):
                if line.words:
                    yield Sentence.from_words(line.words)
        else:
            for paragraph in read_paragraphs(given, lines=lines):
                split = tokenize(paragraph)
                for words in [list(chain.from_iterable(split))] if lines else split:
                    yield Sentence.from_words(words)
