"""certus tag: the best tags of each sentence."""

from enum import StrEnum
from typing import Annotated

from certus.cli.arguments import Option
from certus.cli.inputs import read_lines, read_sentences
from certus.cli.messages import print_json
from certus.cli.options import Conllu, Inputs, JsonLines, Lines, TaggerFile, Tokenised
from certus.cli.progress import watched
from certus.errors import InvalidInput
from certus.models.constituency import tagging_problem
from certus.models.loading import load_tagger
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
        Format, Option(help="word/TAG on one line, a word and its tag a line, or all columns of CoNLL-U")
    ] = Format.inline,
    conllu: Conllu = False,
    lines: Lines = False,
    tokenised: Tokenised = False,
    json: JsonLines = False,
) -> None:
    """Tag text, files or stdin.

    Files that end in .conllu (or .conllu.gz) keep everything but their tags. A hidden Markov model tags text line by
    line; an empty line gives an empty line.
    """
    model = load_tagger(tagger)
    if isinstance(model, Tagger):
        _tag_sentences(model, inputs or [], format, conllu=conllu, lines=lines, tokenised=tokenised, json=json)
    elif conllu or format is Format.conllu:
        raise InvalidInput(
            f"{tagger} is a hidden Markov model, which tags plain text; train one without --hmm for CoNLL-U."
        )
    else:
        _tag_lines(model, inputs or [], format, tokenised=tokenised, json=json)


def _tag_sentences(
    tagger: Tagger, inputs: list[str], format: Format, *, conllu: bool, lines: bool, tokenised: bool, json: bool
) -> None:
    sentences = read_sentences(inputs, conllu=conllu, tokenised=tokenised, lines=lines)
    for sentence, proof in watched(tagger.results(sentences), "tagging"):
        if json:
            tags = {name: [getattr(token, name) for token in sentence] for name in tagger.columns}
            print_json({"words": sentence.words} | tags | _proof(proof))
        elif format is Format.conllu:
            print(sentence, end="")
        else:
            _print(sentence.words, [getattr(token, tagger.columns[0]) for token in sentence], format)


def _tag_lines(tagger: HMM, inputs: list[str], format: Format, *, tokenised: bool, json: bool) -> None:
    for line in watched(read_lines(inputs, tokenised=tokenised), "tagging"):
        if not line.words:
            print(flush=True)
            continue
        problem = tagging_problem(tagger, line.words)
        result = problem.decode()
        tags = problem.names(result.structure)
        if json:
            data = {"source": line.source, "line": line.number, "words": line.words, "tags": tags}
            print_json(data | _proof(result.certificate))
        else:
            _print(line.words, tags, format)


def _proof(certificate: Certificate) -> dict[str, float | bool]:
    return {"score": certificate.score, "bound": certificate.bound, "exact": certificate.exact}


def _print(words: list[str], tags: list[str], format: Format) -> None:
    if format is Format.inline:
        print(" ".join(f"{w}/{t}" for w, t in zip(words, tags, strict=True)), flush=True)
    else:
        print("".join(f"{w}\t{t}\n" for w, t in zip(words, tags, strict=True)), flush=True)
