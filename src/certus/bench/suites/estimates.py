"""Marginals estimated where sums are hard: how many equal samples the samples are worth, of problems of every kind.

Scores are normal deviates; those of tables, bigrams and pairs of arcs are ``strength`` times as large.
"""

from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import numpy as np

import certus
from certus import constraints
from certus.bench.cases import Row

Rng = np.random.Generator
WORDS, TAGS, SIDE, LABELS = 30, 8, 15, 3


def run(samples: int = 1000, problems: int = 4, strength: float = 1.0) -> Iterator[Row]:
    for name, make in PROBLEMS.items():
        found, seconds = [], 0.0
        for k in range(problems + 1):  # the first has its kernels loaded
            problem = make(np.random.default_rng(k), strength)
            started = process_time()
            found.append(problem.marginal_estimates(samples=samples, seed=1))
            seconds = 0.0 if k == 0 else seconds + process_time() - started
        sizes = [one.effective_sample_size for one in found[1:]]
        chains = sum(one.method == "Markov chains" for one in found[1:])
        cells = {"by chains": chains, "effective size": float(np.mean(sizes)), "least": min(sizes)}
        yield Row(name, {"problems": problems} | cells | {"seconds": seconds / problems})


def _tagging(rng: Rng, strength: float) -> certus.Tagging:
    return certus.Tagging(rng.normal(size=(WORDS, TAGS)), bigram=strength * rng.normal(size=(TAGS, TAGS)))


def _constrained(rng: Rng, strength: float) -> Any:
    most, exactly = ([(i, tag) for i in range(WORDS)] for tag in (0, 1))
    rows = constraints.at_most(3, "tags", most), constraints.exactly(4, "tags", exactly)
    return _tagging(rng, strength).subject_to(*rows)


def _soft(rng: Rng, strength: float) -> Any:
    row = constraints.at_most(1, "tags", [(i, 0) for i in range(WORDS)], penalty=1.0)
    return _tagging(rng, strength).subject_to(row)


def _tied(rng: Rng, strength: float) -> Any:
    return certus.Joint(_tagging(rng, strength), _tagging(rng, strength), on="tags", merge=False)


def _cover(rng: Rng, strength: float) -> Any:
    return certus.SetCover(
        3.0 * rng.random(30), [rng.choice(20, 4, replace=False).tolist() for _ in range(29)] + [range(20)]
    )


def _graph(rng: Rng, strength: float) -> Any:
    size = 9
    pairs = (strength * rng.normal(size=(size,) * 3) for _ in range(3))
    return certus.DependencyGraph(rng.normal(size=(size, size)) - 1.0, *pairs)


def _trees(rng: Rng, strength: float) -> Any:
    size = 13
    trees = certus.Dependency(rng.normal(size=(size, size)), strength * rng.normal(size=(size,) * 3))
    return trees.subject_to(constraints.at_most(2, "arcs", [(3, m) for m in range(1, size) if m != 3]))


def _grid(rng: Rng, strength: float) -> Any:
    down = {(v, v + SIDE): strength * rng.normal(size=(LABELS, LABELS)) for v in range(SIDE * (SIDE - 1))}
    across = {(v, v + 1): strength * rng.normal(size=(LABELS, LABELS)) for v in range(SIDE * SIDE) if (v + 1) % SIDE}
    return certus.FactorGraph(rng.normal(size=(SIDE * SIDE, LABELS)), down | across)


PROBLEMS: dict[str, Callable[[Rng, float], Any]] = {
    f"{WORDS} words, {TAGS} tags, two constraints": _constrained,
    "the same, one soft constraint": _soft,
    "two taggings of as many words, tied": _tied,
    "matchings of 30 and 30": lambda rng, strength: certus.Assignment(rng.normal(size=(30, 30)) + 5.0),
    "knapsack of 50": lambda rng, strength: certus.Knapsack(rng.normal(size=50) + 1.0, rng.integers(1, 9, 50), 60),
    "set cover, 20 elements, 30 sets": _cover,
    "graphs of 8 words, three kinds of pairs": _graph,
    "crossing trees of 12 words, siblings, a constraint": _trees,
    f"grid of {SIDE} x {SIDE}, {LABELS} labels": _grid,
}
