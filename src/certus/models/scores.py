"""What a trained parser thinks of a sentence, as a problem that answers every question: k-best, marginals, proofs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import Bools, Ints
from certus.dependency.problem import Dependency
from certus.features.encode import Encoded
from certus.io.conllu import Sentence, Token

if TYPE_CHECKING:
    from certus.models.parser import Parser

# Kinds of parts in the order of the kernels, with the columns of their rows in the order of certus.Dependency.
ARC, *HIGHER = (("arc", (0, 1)), ("sibling", (0, 2, 1)), ("grandparent", (2, 0, 1)), ("grandsibling", (3, 0, 2, 1)),
                ("trisibling", (0, 3, 2, 1)))  # fmt: skip


def problem(parser: "Parser", batch: Encoded, s: int, allowed: Bools | None = None) -> Dependency:
    """The trees of sentence s with the scores of the parser's model, over the arcs that its cascade leaves.

    Or over those allowed, (n + 1, n + 1).
    """
    from certus.kernels.part_scores import list_parts, score_parts

    n = int(batch.length[s])
    if allowed is None:
        allowed = parser.cascade.survivors(batch, s)
    size = np.empty(5, dtype=np.int64)
    list_parts(allowed, size, np.empty((5, 0, 4), dtype=np.int64))
    part = np.empty((5, int(size.max()), 4), dtype=np.int64)
    list_parts(allowed, size, part)
    index = np.empty(parser.model.most, dtype=np.uint64)
    name = parser.namer.names(batch, s, allowed)
    arrays = parser.model.arrays

    def listed(kind: int, columns: Sequence[int]) -> list[Any]:
        rows: Ints = np.ascontiguousarray(part[kind, : size[kind], : len(columns)])
        score = np.empty(len(rows))
        sentence = (batch.attribute, batch.coarse, int(batch.base[s]))
        score_parts(*sentence, kind, rows, name, arrays[kind], parser.settings.bits, parser.weight.floats, index, score)
        filled = np.where(rows < 0, rows[:, :1], rows)  # no sibling: s == h, t == h
        return [*(filled[:, column] for column in columns), score]

    lists: dict[str, Any] = {
        name: listed(kind, columns)
        for kind, (name, columns) in enumerate(HIGHER, start=1)
        if kind < len(parser.model.templates) and parser.model.templates[kind].lines
    }
    root = "single" if parser.model.single else "multi"
    return Dependency.from_parts(n, listed(0, ARC[1]), projective=parser.model.projective, root=root, **lists)


def annotated(
    parser: "Parser", sentences: Sequence[Sentence], batch: Encoded, *, confidences: bool, certificates: bool
) -> Iterator[Sentence]:
    """Parsed sentences, encoded as ``batch``, with certificates in comments and the confidence in every arc in MISC.

    The certificate speaks of all trees over the arcs that the cascade leaves, under the parser's model. A confidence is
    the share of the arc among these trees, each weighted by the exponential of its score.
    """
    for s, sentence in enumerate(sentences):
        trees = problem(parser, batch, s)
        comments, tokens = sentence.comments, sentence.tokens
        if certificates:
            proof = trees.decode().certificate
            said = {
                "certificate": f"{proof.kind}, {'exact' if proof.exact else 'not proved optimal'}",
                "score": f"{proof.score:.6g}",
                "bound": f"{proof.bound:.6g}",
            }
            comments = [line for line in comments if line[1:].partition("=")[0].strip() not in said]
            comments += [f"# {key} = {value}" for key, value in said.items()]
        if confidences:
            share = trees.marginals()["arcs"]
            tokens = [_with_confidence(token, float(share[token.head, token.id])) for token in tokens]
        yield replace(sentence, comments=comments, tokens=tokens)


def _with_confidence(token: Token, share: float) -> Token:
    kept: Iterable[str] = () if token.misc == "_" else token.misc.split("|")
    kept = [item for item in kept if not item.startswith("Confidence=")]
    return replace(token, misc="|".join([*kept, f"Confidence={min(share, 1.0):.4f}"]))
