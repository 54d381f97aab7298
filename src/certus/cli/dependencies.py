"""certus parse: dependency trees in CoNLL-U."""

import json as json_
from typing import Any

from certus.cli.sentences import read_sentences
from certus.io.conllu import Sentence


def parse_dependencies(
    inputs: list[str],
    *,
    model: str | None,
    conllu: bool,
    tokenised: bool,
    lines: bool,
    json: bool,
    confidences: bool,
    certificates: bool,
    workers: int | None,
) -> None:
    """Parse .conllu files, keeping all they hold but heads and labels, and text; print trees as they come."""
    from certus.cli.progress import watched
    from certus.models.pipeline import load

    pipeline = load() if model is None else load(model)
    sentences = read_sentences(inputs, conllu=conllu, tokenised=tokenised, lines=lines)
    trees = pipeline.parse(sentences, confidences=confidences, certificates=certificates, workers=workers)
    for sentence in watched(trees, "parsing"):
        print(_described(sentence, confidences, certificates) if json else sentence, end="\n" if json else "")


def _described(sentence: Sentence, confidences: bool, certificates: bool) -> str:
    columns = ("form", "lemma", "upos", "xpos", "head", "deprel")
    tokens = [{name: getattr(token, name) for name in columns} for token in sentence]
    if confidences:
        for token, shown in zip(sentence, tokens, strict=True):
            shown["confidence"] = float(token.misc.rpartition("Confidence=")[2])
    data: dict[str, Any] = {"sent_id": sentence.comment("sent_id"), "tokens": tokens}
    if certificates:
        said = {key: sentence.comment(key) or "" for key in ("score", "bound", "certificate")}
        kind, _, status = said["certificate"].rpartition(", ")
        data |= {"score": float(said["score"]), "bound": float(said["bound"]), "kind": kind, "exact": status == "exact"}
    return json_.dumps(data, ensure_ascii=False)
