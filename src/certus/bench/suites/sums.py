"""Sums over crossing trees above first order: widths of intervals, estimates beside exact marginals, calibration.

``model`` is the folder of a parser trained with --order 2 or 3 and --no-projective on the train part of ``treebank``.
Estimated marginals stand beside exact ones where sentences have few enough trees to list, and for the scores of arcs
alone, where the matrix-tree theorem has them and the sampler is made to work all the same. How often arcs of some
confidence are right stands beside the same for exact marginals of the same scores over projective trees.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Row, Skipped, data_folder, evenly
from certus.dependency import matrix_tree, sum_estimates
from certus.io.conllu import read_conllu

LISTED = 5000  # trees of a sentence that are listed, at most
BINS = np.linspace(0.0, 1.0, 11)


def run(
    data: str = "", treebank: str = "nl_cdb", model: str = "", sentences: int = 736, samples: int = 1000
) -> Iterator[Row | Skipped]:
    folder = data_folder(data, "ud", treebank)
    if not model:
        yield Skipped("no model: give the folder of a parser of crossing trees with --set model=FOLDER")
        return
    parser = certus.load(model).parser
    test = evenly([s for s in read_conllu(folder / "test.conllu.gz") if len(s)], sentences)
    problems = [parser.problem(s) for s in test]
    yield _widths(problems)
    start = time.process_time()
    found = [problem.marginal_estimates(samples=samples, seed=1) for problem in problems]
    seconds = time.process_time() - start
    shares = np.array([one.effective_sample_size / samples for one in found])
    yield Row(
        f"estimates from {samples} trees",
        {"median effective share": float(np.median(shares)), "least": float(shares.min())}
        | {"ms a sentence": 1e3 * seconds / len(found)},
    )
    yield _beside_exact("listed", list(_listed(problems, found)))
    best = [problem.decode().structure for problem in problems]
    gold = [s.heads for s in test]
    yield _calibration("estimated, crossing trees", [one.marginals["arcs"] for one in found], best, gold)
    exact, trees, right = [], [], []
    for problem, heads in zip(problems, gold, strict=True):
        projective = problem.with_projective(True)
        try:
            trees.append(projective.decode().structure)
        except certus.Infeasible:
            continue
        exact.append(projective.marginals()["arcs"])
        right.append(heads)
    yield _calibration("exact, projective trees alone", exact, trees, right)
    yield from _first_order(problems, gold, samples)


def _widths(problems: Sequence[Any]) -> Row:
    start = time.process_time()
    bounds = [problem.log_partition_bounds() for problem in problems]
    seconds = time.process_time() - start
    widths = np.array([b.width for b in bounds])
    below = sum(b.lower_by.startswith("Gibbs") for b in bounds) / len(bounds)
    lists = np.array([b.upper - b.info["projective trees and trees one by one"] for b in bounds])
    return Row(
        "log-partition intervals",
        {"sentences": len(bounds), "median width": float(np.median(widths)), "mean width": float(widths.mean())}
        | {"90% below": float(np.quantile(widths, 0.9)), "by Gibbs": below}
        | {"median width, sums alone": float(np.median(lists)), "ms a sentence": 1e3 * seconds / len(bounds)},
    )


def _listed(problems: Sequence[Any], found: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The exact marginals of sentences with few trees, and their estimates."""
    for problem, one in zip(problems, found, strict=True):
        open_arcs = np.where(problem.arc > -np.inf, 0.0, -np.inf)
        if matrix_tree.log_partition(open_arcs, problem.root) > np.log(LISTED):
            continue
        trees = list(problem.all_structures())
        scores = np.array([problem.score(heads) for heads in trees])
        shares = np.exp(scores - np.logaddexp.reduce(scores))
        yield sum(p * problem.indicator(y, "arcs") for p, y in zip(shares, trees, strict=True)), one


def _beside_exact(name: str, pairs: Sequence[tuple[Any, Any]]) -> Row:
    errors: list[float] = []
    scaled: list[float] = []
    for exact, one in pairs:
        unsure = (exact > 1e-3) & (exact < 1.0 - 1e-3)
        off = np.abs(one.marginals["arcs"] - exact)[unsure]
        errors += off.tolist()
        scaled += (off / np.maximum(one.standard_error["arcs"][unsure], 1e-6)).tolist()
    return Row(
        f"estimates beside exact marginals, {name}",
        {"sentences": len(pairs), "arcs": len(errors), "mean error": float(np.mean(errors))}
        | {"largest error": float(np.max(errors)), "within 2 standard errors": float(np.mean(np.array(scaled) < 2.0))},
    )


def _first_order(problems: Sequence[Any], gold: Sequence[Any], samples: int) -> Iterator[Row]:
    """The scores of arcs alone, whose marginals the matrix-tree theorem gives, by the sampler all the same."""
    bare = [certus.Dependency(problem.arc, root=problem.root) for problem in problems]
    exact = [problem.marginals()["arcs"] for problem in bare]
    drawn = [sum_estimates.marginal_estimates(problem, samples, 1) for problem in bare]
    yield _beside_exact("arcs alone", list(zip(exact, drawn, strict=True)))
    best = [problem.decode().structure for problem in bare]
    yield _calibration("estimated, arcs alone", [one.marginals["arcs"] for one in drawn], best, gold)
    yield _calibration("exact, arcs alone", exact, best, gold)


def _calibration(name: str, marginals: Sequence[Any], trees: Sequence[Any], gold: Sequence[Any]) -> Row:
    """How often arcs of some confidence are right, and the mean distance of both (expected calibration error)."""
    share: Any = np.concatenate([p[t[1:], np.arange(1, len(t))] for p, t in zip(marginals, trees, strict=True)])
    right: Any = np.concatenate([t[1:] == g[1:] for t, g in zip(trees, gold, strict=True)])
    at = np.clip(np.digitize(share, BINS) - 1, 0, len(BINS) - 2)
    cells: dict[str, Any] = {"arcs": len(share), "right": float(right.mean()), "mean confidence": float(share.mean())}
    error = 0.0
    for b in range(len(BINS) - 1):
        here = at == b
        if here.any():
            error += float(here.mean()) * abs(float(right[here].mean() - share[here].mean()))
            cells[f"{BINS[b]:.1f}+"] = float(right[here].mean())
    return Row(f"calibration, {name}", cells | {"calibration error": error})
