"""certus parse: dependency trees in CoNLL-U."""

import json as json_
from typing import TYPE_CHECKING, Any

from certus.cli.sentences import read_sentences

if TYPE_CHECKING:
    from certus.models.trees import Parsed


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
    time_limit: float | None,
    workers: int | None,
) -> None:
    """Parse .conllu files, keeping all they hold but heads and labels, and text; print trees as they come."""
    from certus.cli import complain
    from certus.cli.progress import watched
    from certus.models.pipeline import load

    pipeline = load() if model is None else load(model)
    sentences = read_sentences(inputs, conllu=conllu, tokenised=tokenised, lines=lines)
    found = pipeline.results(
        sentences, confidences=confidences, certificates=certificates, time_limit=time_limit, workers=workers
    )
    for number, parsed in enumerate(watched(found, "parsing"), start=1):
        proof = parsed.certificate
        if not proof.exact:
            name = parsed.sentence.comment("sent_id")
            complain(
                f"sentence {number}{f' ({name})' if name else ''}: not proved optimal, {proof.reason}; "
                f"a better tree could score {proof.gap:.6g} more."
            )
        print(_described(parsed) if json else parsed.annotated(), end="\n" if json else "")


def _described(parsed: "Parsed") -> str:
    sentence, proof = parsed.sentence, parsed.proof
    columns = ("form", "lemma", "upos", "xpos", "head", "deprel")
    tokens: list[dict[str, Any]] = [{name: getattr(token, name) for name in columns} for token in sentence]
    if parsed.confidence is not None:
        for shown, share in zip(tokens, parsed.confidence, strict=True):
            shown["confidence"] = share
    data: dict[str, Any] = {"sent_id": sentence.comment("sent_id"), "tokens": tokens}
    if proof is not None:
        c = proof.certificate
        data |= {"score": c.score, "bound": c.bound, "kind": c.kind, "exact": c.exact, "reason": c.reason}
        data["units"] = {"score": proof.units[0], "bound": proof.units[1], "unit": proof.unit}
        root = "single" if proof.single else "multi"
        data["scope"] = {"projective": proof.projective, "root": root, "kept": proof.kept, "arcs": proof.arcs}
        data |= {"model_digest": proof.model, "problem_digest": proof.problem}
    return json_.dumps(data, ensure_ascii=False)
