"""What a trained parser thinks of a sentence, as a problem that answers every question: k-best, marginals, proofs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from certus import kernels
from certus.checks import Bools, Ints
from certus.dependency.problem import Dependency
from certus.features.encode import Encoded
from certus.models.trees import Trees

if TYPE_CHECKING:
    from certus.models.parser import Parser

# Kinds of parts in the order of the kernels, with the columns of their rows in the order of certus.Dependency.
ARC, *HIGHER = (("arc", (0, 1)), ("sibling", (0, 2, 1)), ("grandparent", (2, 0, 1)), ("grandsibling", (3, 0, 2, 1)),
                ("trisibling", (0, 3, 2, 1)))  # fmt: skip


def problem(
    parser: "Parser", batch: Encoded, s: int, allowed: Bools | None = None, *, unit: float | None = None
) -> Dependency:
    """The trees of sentence s with the scores of the parser's model, over the arcs that its cascade leaves.

    Or over those allowed, (n + 1, n + 1). Scores are whole numbers times ``unit``, by default that of the model, which
    has few enough digits for these products, and sums of them, to be exact.
    """
    n = int(batch.length[s])
    if allowed is None:
        allowed = parser.cascade.survivors(batch, s)
    size = np.empty(5, dtype=np.int64)
    kernels.part_scores.list_parts(allowed, size, np.empty((5, 0, 4), dtype=np.int64))
    part = np.empty((5, int(size.max()), 4), dtype=np.int64)
    kernels.part_scores.list_parts(allowed, size, part)
    index = np.empty(parser.model.most, dtype=np.uint64)
    name = parser.namer.names(batch, s, allowed)
    arrays = parser.model.arrays
    unit = parser.weight.unit if unit is None else unit

    def listed(kind: int, columns: Sequence[int]) -> list[Any]:
        rows: Ints = np.ascontiguousarray(part[kind, : size[kind], : len(columns)])
        score = np.empty(len(rows))
        sentence = (batch.attribute, batch.coarse, int(batch.base[s]))
        kernels.part_scores.score_parts(
            *sentence, kind, rows, name, arrays[kind], parser.settings.bits, parser.weight.value, index, score
        )
        filled = np.where(rows < 0, rows[:, :1], rows)  # no sibling: s == h, t == h
        return [*(filled[:, column] for column in columns), unit * score]

    lists: dict[str, Any] = {
        name: listed(kind, columns)
        for kind, (name, columns) in enumerate(HIGHER, start=1)
        if kind < len(parser.model.templates) and parser.model.templates[kind].lines
    }
    root = "single" if parser.model.single else "multi"
    return Dependency.from_parts(n, listed(0, ARC[1]), projective=parser.model.projective, root=root, **lists)


def confidences_of(parser: "Parser", batch: Encoded, trees: Trees, s: int) -> list[float]:
    """The share of the arc into each word of sentence s among all trees over the arcs that the cascade keeps.

    Each is weighted by the exponential of its score.
    """
    share = problem(parser, batch, s, trees.arcs(s)).marginals()["arcs"]
    words = np.arange(1, int(batch.length[s]) + 1)
    found: list[float] = np.minimum(share[trees.heads[trees.start[s] + words], words], 1.0).tolist()
    return found
