"""What a trained parser thinks of a sentence, as a problem that answers every question: k-best, marginals, proofs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from certus import dependency, kernels
from certus.checks import Bools, Floats, Ints
from certus.dependency.part_kinds import PART_KINDS
from certus.features.encode import Encoded
from certus.models.trees import Confidences, Trees

if TYPE_CHECKING:
    from certus.dependency import Dependency
    from certus.models.parser import Parser
    from certus.models.tree_parser import Read, TreeParser


SAMPLES, SEED = 1000, 1  # of estimates


def problem(
    parser: "Parser", batch: Encoded, s: int, allowed: Bools | None = None, *, unit: float | None = None
) -> "Dependency":
    """The trees of sentence s with the scores of the parser's model, over the arcs that its cascade leaves.

    Or over those allowed, (n + 1, n + 1). Scores are whole numbers times ``unit``, by default that of the model, which
    has few enough digits for these products, and sums of them, to be exact.
    """
    if allowed is None:
        allowed = parser.cascade.survivors(batch, s)
    rows = part_rows(allowed, scored_kinds(parser))
    unit = parser.unit if unit is None else unit
    return listed_problem(parser, rows, unit * linear_scores(parser, batch, s, allowed, rows), len(allowed) - 1)


def scored_kinds(parser: "Parser") -> Bools:
    """Which kinds of parts a linear model has."""
    return np.array([len(templates.seed) > 0 for templates in parser.model.arrays])


def part_rows(allowed: Bools, kinds: Bools) -> Ints:
    """(P, 5) the parts of these kinds over the allowed arcs, as kernels have them: arcs first, wanted or not."""
    rows: Ints = kernels.parts.list_parts(allowed, kinds)[0]
    return rows


def linear_scores(parser: "Parser", batch: Encoded, s: int, allowed: Bools, rows: Ints) -> Floats:
    """(P,) scores of parts of sentence s by a linear model, in its units."""
    score = np.empty(len(rows))
    model = parser.model.weighted(parser.settings.bits, parser.weight.value)
    kernels.parts.score_parts(batch.sentence(s), parser.namer.names(batch, s, allowed), model, rows, score)
    return score


def listed_problem(parser: "TreeParser[Any]", rows: Ints, score: Floats, n: int) -> "Dependency":
    """The problem of n words with these parts, and no others, of trees such as the parser gives."""
    lists: dict[str, Any] = {}
    for number, kind in enumerate(PART_KINDS):
        of_kind = rows[:, 0] == number
        if of_kind.any() or kind.name == "arc":
            index = dict(zip(kind.axes, kind.columns(rows[of_kind]), strict=True))
            used = index["g"] != index["s"] if {"g", "s"} <= index.keys() else slice(None)
            lists[kind.name] = [*(nodes[used] for nodes in index.values()), score[of_kind][used]]
    root = "single" if parser.single else "multi"
    return dependency.Dependency.from_parts(n, projective=parser.projective, root=root, **lists)


def confidences_of(parser: "TreeParser[Read]", batch: "Read", trees: Trees, s: int) -> Confidences:
    """The share of the arc into each word of sentence s among all trees over the arcs that the cascade keeps.

    Each is weighted by the exponential of its score. Estimates, always the same ones, where it has no exact marginals.
    """
    found = parser.problem_of(batch, s, trees.arcs(s)).marginal_estimates(samples=SAMPLES, seed=SEED)
    words = np.arange(1, int(batch.length[s]) + 1)
    share = np.minimum(found.marginals["arcs"][trees.heads[trees.start[s] + words], words], 1.0)
    return Confidences(share.tolist(), found.method, found.samples, found.effective_sample_size, found.seed)
