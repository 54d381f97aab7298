"""certus tag: the best tags of each sentence."""

import json as json_
from enum import StrEnum
from typing import Annotated

import typer

from certus.cli.options import Inputs, JsonLines, TaggerFile, Tokenised
from certus.cli.text import read_lines


class Format(StrEnum):
    """How tagged sentences are printed."""

    inline = "inline"
    columns = "columns"


def tag(
    inputs: Inputs = None,
    tagger: TaggerFile = None,
    tokenised: Tokenised = False,
    format: Annotated[Format, typer.Option(help="word/TAG on one line, or a word and its tag a line")] = Format.inline,
    json: JsonLines = False,
) -> int:
    """Tag sentences, one per line, as they come; an empty line gives an empty line."""
    from certus.cli.models import load_tagger, tagging
    from certus.cli.progress import watched

    model = load_tagger(tagger)
    for line in watched(read_lines(inputs or [], tokenised=tokenised), "tagging"):
        if not line.words:
            print(flush=True)
            continue
        problem = tagging(model, line.words)
        result = problem.decode()
        tags = problem.names(result.structure)
        if json:
            data = {"source": line.source, "line": line.number, "words": line.words, "tags": tags}
            proof = {"score": result.score, "bound": result.certificate.bound, "exact": result.certificate.exact}
            print(json_.dumps(data | proof, ensure_ascii=False), flush=True)
        elif format is Format.inline:
            print(" ".join(f"{w}/{t}" for w, t in zip(line.words, tags, strict=True)), flush=True)
        else:
            print("".join(f"{w}\t{t}\n" for w, t in zip(line.words, tags, strict=True)), flush=True)
    return 0
