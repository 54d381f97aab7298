"""certus tag: the best tags of each sentence."""

import json as json_
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from certus.cli.options import Inputs, JsonLines, TaggerFile, Tokenised

if TYPE_CHECKING:
    from certus.models.tagger import Tagger
    from certus.result import Certificate
    from certus.tagging import HMM


class Format(StrEnum):
    """How tagged sentences are printed."""

    inline = "inline"
    columns = "columns"
    conllu = "conllu"


def tag(
    inputs: Inputs = None,
    tagger: TaggerFile = None,
    format: Annotated[
        Format, typer.Option(help="word/TAG on one line, a word and its tag a line, or all columns of CoNLL-U")
    ] = Format.inline,
    conllu: Annotated[bool, typer.Option("--conllu", help="stdin is CoNLL-U")] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Every line of a text is a sentence")] = False,
    tokenised: Tokenised = False,
    json: JsonLines = False,
) -> int:
    """Tag text, files or stdin.

    Files that end in .conllu (or .conllu.gz) keep everything but their tags. A hidden Markov model tags text line by
    line; an empty line gives an empty line.
    """
    from certus.cli.models import load_any_tagger
    from certus.errors import InvalidInput
    from certus.tagging import HMM

    model = load_any_tagger(tagger)
    if isinstance(model, HMM):
        if conllu or format is Format.conllu:
            raise InvalidInput(
                f"{tagger} is a hidden Markov model, which tags plain text; train one without --hmm for CoNLL-U."
            )
        _tag_lines(model, inputs or [], format, tokenised=tokenised, json=json)
    else:
        _tag_sentences(model, inputs or [], format, conllu=conllu, lines=lines, tokenised=tokenised, json=json)
    return 0


def _tag_sentences(
    tagger: "Tagger", inputs: list[str], format: Format, *, conllu: bool, lines: bool, tokenised: bool, json: bool
) -> None:
    from certus.cli.progress import watched
    from certus.cli.sentences import read_sentences

    sentences = read_sentences(inputs, conllu=conllu, tokenised=tokenised, lines=lines)
    for sentence, proof in watched(tagger.results(sentences), "tagging"):
        if json:
            tags = {name: [getattr(token, name) for token in sentence] for name in tagger.columns}
            print(json_.dumps({"words": sentence.words} | tags | _proof(proof), ensure_ascii=False))
        elif format is Format.conllu:
            print(sentence, end="")
        else:
            _print(sentence.words, [getattr(token, tagger.columns[0]) for token in sentence], format)


def _tag_lines(tagger: "HMM", inputs: list[str], format: Format, *, tokenised: bool, json: bool) -> None:
    from certus.cli.models import tagging
    from certus.cli.progress import watched
    from certus.cli.text import read_lines

    for line in watched(read_lines(inputs, tokenised=tokenised), "tagging"):
        if not line.words:
            print(flush=True)
            continue
        problem = tagging(tagger, line.words)
        result = problem.decode()
        tags = problem.names(result.structure)
        if json:
            data = {"source": line.source, "line": line.number, "words": line.words, "tags": tags}
            print(json_.dumps(data | _proof(result.certificate), ensure_ascii=False), flush=True)
        else:
            _print(line.words, tags, format)


def _proof(certificate: "Certificate") -> dict[str, float | bool]:
    return {"score": certificate.score, "bound": certificate.bound, "exact": certificate.exact}


def _print(words: list[str], tags: list[str], format: Format) -> None:
    if format is Format.inline:
        print(" ".join(f"{w}/{t}" for w, t in zip(words, tags, strict=True)), flush=True)
    else:
        print("".join(f"{w}\t{t}\n" for w, t in zip(words, tags, strict=True)), flush=True)
