"""Crossing arcs with siblings and grandparents on treebank sentences: share proved, rounds, against an integer program.

Scores stand in for a trained model: every arc gets normal noise of deviation 1 and arcs of the gold tree 3.2 more,
which puts the first-order tree at 87% of the heads right; every higher-order part gets noise of deviation 0.5 and parts
of the gold tree 1 more. Each word keeps its 15 best heads and that of the first-order tree. Trained parsers are
measured by the suite "treebanks".
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Row, data_folder, evenly
from certus.dependency import flow
from certus.io.conllu import read_conllu

TREEBANKS = ("nl_cdb", "da_cdt")
MODELS = {"siblings": ("sibling",), "siblings and grandparents": ("sibling", "grandparent")}
KEPT = 15  # heads per word
GOLD_ARC, GOLD_PART, PART_NOISE = 3.2, 1.0, 0.5
LONGEST = 60


def run(data: str = "", sentences: int = 400, ilp: int = 20, seconds: float = 60.0) -> Iterator[Case | Row]:
    folder = data_folder(data, "ud")
    trees: list[Any] = []
    for name in TREEBANKS:
        read = read_conllu(folder / name / "dev.conllu.gz")
        trees += evenly([s.heads for s in read if 1 <= len(s) <= LONGEST], sentences // len(TREEBANKS))
    for model, kinds in MODELS.items():
        rng = np.random.default_rng(0)
        scores = [scores_for(rng, heads, kinds) for heads in trees]
        results = [certus.Dependency(**given).decode() for given in scores]
        rounds = np.array([r.iterations for r in results])
        right = sum(int((r.structure[1:] == h[1:]).sum()) for r, h in zip(results, trees, strict=True))
        yield Row(
            f"{model}, proofs",
            {
                "sentences": len(trees),
                "heads right": right / sum(len(h) - 1 for h in trees),
                "proved": sum(r.certificate.exact for r in results) / len(results),
                "by relaxation alone": sum(r.certificate.kind == "dual" for r in results) / len(results),
                "median rounds": float(np.median(rounds)),
                "most rounds": int(rounds.max()),
            },
        )
        yield Case(
            f"{model}, decode",
            lambda given=scores: [certus.Dependency(**one).decode() for one in given],
            items=len(trees),
            numbers=lambda found: [[r.structure.tolist(), r.score, r.certificate.exact] for r in found],
        )
        some = evenly(scores, ilp) if ilp else []
        if some:
            yield Case(
                f"{model}, beside HiGHS",
                lambda given=some: [certus.Dependency(**one).decode() for one in given],
                {"HiGHS": lambda given=some: [_integer_program(one, seconds) for one in given]},
                items=len(some),
                agrees=lambda ours, _, theirs: np.testing.assert_array_less(theirs, [r.score + 1e-6 for r in ours]),
            )


def _integer_program(given: dict[str, Any], seconds: float) -> float:
    """The score that the solver finds in the time it has; -inf if it finds none."""
    try:
        return flow.ilp(certus.Dependency(**given), time_limit=seconds).score
    except certus.LimitReached:
        return -np.inf


def scores_for(rng: np.random.Generator, heads: Any, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Scores that favour the tree ``heads``."""
    n = len(heads) - 1
    arc = rng.normal(size=(n + 1, n + 1))
    arc[heads[1:], np.arange(1, n + 1)] += GOLD_ARC
    np.fill_diagonal(arc, -np.inf)
    arc[:, 0] = -np.inf
    first_order = certus.Dependency(arc).decode().structure
    for m in range(1, n + 1):
        pruned = np.argsort(-arc[:, m], kind="stable")[KEPT:]
        arc[pruned[pruned != first_order[m]], m] = -np.inf
    parts = {kind: PART_NOISE * rng.normal(size=(n + 1,) * 3) for kind in kinds}
    for h in range(n + 1):
        mods = [m for m in range(1, n + 1) if heads[m] == h]
        for side in ([m for m in mods if m > h], [m for m in reversed(mods) if m < h]):
            for s, m in zip([h, *side], side, strict=False):
                parts["sibling"][h, s, m] += GOLD_PART
        if "grandparent" in parts and h and mods:
            parts["grandparent"][heads[h], h, mods] += GOLD_PART
    return {"arc": arc, "projective": False, **parts}
