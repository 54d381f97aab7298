"""certus parse --model: dependency trees in CoNLL-U."""

import json as json_
import sys
from collections.abc import Iterator
from pathlib import Path

from certus.cli.text import read_lines
from certus.io.conllu import Sentence, parse_conllu, read_conllu


def parse_dependencies(model: Path, inputs: list[str], *, tokenised: bool, conllu: bool, json: bool) -> None:
    """Parse .conllu files, keeping all they hold but heads and labels, and text, one sentence a line."""
    from certus.cli.progress import watched
    from certus.models.pipeline import load

    pipeline = load(model)
    for sentence in watched(pipeline.parse(_sentences(inputs, tokenised=tokenised, conllu=conllu)), "parsing"):
        print(_described(sentence) if json else sentence, end="\n" if json else "")


def _sentences(inputs: list[str], *, tokenised: bool, conllu: bool) -> Iterator[Sentence]:
    for given in inputs or ["-"]:
        if given.removesuffix(".gz").endswith(".conllu"):
            yield from read_conllu(given)
        elif conllu and given == "-":
            yield from parse_conllu(sys.stdin.buffer, path="stdin")
        else:
            for line in read_lines([given], tokenised=tokenised):
                if line.words:
                    yield Sentence.from_words(line.words)


def _described(sentence: Sentence) -> str:
    columns = ("form", "lemma", "upos", "xpos", "head", "deprel")
    return json_.dumps(
        {
            "sent_id": sentence.comment("sent_id"),
            "tokens": [{name: getattr(token, name) for name in columns} for token in sentence],
        },
        ensure_ascii=False,
    )
