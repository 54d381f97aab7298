"""What a trained parser thinks of a sentence, as a problem that answers every question: k-best, marginals, proofs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from certus import kernels
from certus.checks import Bools, Ints
from certus.dependency.part_kinds import PART_KINDS
from certus.dependency.problem import Dependency
from certus.features.encode import Encoded
from certus.models.trees import Confidences, Trees

if TYPE_CHECKING:
    from certus.models.parser import Parser


SAMPLES, SEED = 1000, 1  # of estimates


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
    model = parser.model.weighted(parser.settings.bits, parser.weight.value)
    kinds = np.array([len(templates.seed) > 0 for templates in model.templates])
    rows: Ints = kernels.parts.list_parts(allowed, kinds)[0]
    score = np.empty(len(rows))
    kernels.parts.score_parts(batch.sentence(s), parser.namer.names(batch, s, allowed), model, rows, score)
    unit = parser.weight.unit if unit is None else unit
    lists: dict[str, Any] = {}
    for number, kind in enumerate(PART_KINDS):
        if kinds[number] or kind.name == "arc":
            of_kind = rows[:, 0] == number
            index = dict(zip(kind.axes, kind.columns(rows[of_kind]), strict=True))
            used = index["g"] != index["s"] if {"g", "s"} <= index.keys() else slice(None)
            lists[kind.name] = [*(nodes[used] for nodes in index.values()), unit * score[of_kind][used]]
    root = "single" if parser.model.single else "multi"
    return Dependency.from_parts(n, projective=parser.model.projective, root=root, **lists)


def confidences_of(parser: "Parser", batch: Encoded, trees: Trees, s: int) -> Confidences:
    """The share of the arc into each word of sentence s among all trees over the arcs that the cascade keeps.

    Each is weighted by the exponential of its score. Estimates, always the same ones, where it has no exact marginals.
    """
    found = problem(parser, batch, s, trees.arcs(s)).marginal_estimates(samples=SAMPLES, seed=SEED)
    words = np.arange(1, int(batch.length[s]) + 1)
    share = np.minimum(found.marginals["arcs"][trees.heads[trees.start[s] + words], words], 1.0)
    return Confidences(share.tolist(), found.method, found.samples, found.effective_sample_size, found.seed)
