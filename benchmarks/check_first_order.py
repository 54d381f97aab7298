"""Random problems of up to five words: every first-order non-projective decoder and question against all trees.

    python benchmarks/check_first_order.py [--problems 20000] [--seed 0]

Scores are small integers with many ties, so that best trees, k-best lists and max-marginals must be equal to the last
bit; sums are compared to 1e-10 on the same scores times 1, 16 and 125. A third of the problems have forbidden arcs, and
many of those have no tree, which must be found out too. Prints the number of problems checked for each question.
"""

import argparse
from collections import Counter
from functools import cache
from itertools import product

import numpy as np

from certus import Infeasible
from certus.dependency import arborescence, kbest_trees, matrix_tree

Arrays = tuple[np.ndarray, np.ndarray]


@cache
def trees(n: int, root: str) -> Arrays:
    """Heads (T, n + 1) of every tree, and its arcs as 0/1 (T, (n + 1)^2)."""
    found = []
    for choice in product(range(n + 1), repeat=n):
        heads = (-1, *choice)
        reached = all(0 in ancestors(heads, m) for m in range(1, n + 1))
        if reached and (root == "multi" or n == 0 or choice.count(0) == 1):
            found.append(heads)
    heads = np.array(found).reshape(len(found), n + 1)
    used = np.zeros((len(found), n + 1, n + 1), dtype=bool)
    for m in range(1, n + 1):
        used[np.arange(len(found)), heads[:, m], m] = True
    return heads, used.reshape(len(found), -1)


def ancestors(heads: tuple[int, ...], m: int) -> set[int]:
    seen: set[int] = set()
    while m > 0 and m not in seen:
        seen.add(m)
        m = heads[m]
    return seen | {m} if m == 0 else seen


def random_scores(rng: np.random.Generator) -> np.ndarray:
    n = int(rng.integers(0, 6))
    low = int(rng.choice([-8, -1, 0]))
    arc = rng.integers(low, 1 - low, (n + 1, n + 1)).astype(float)
    arc[rng.random(arc.shape) < rng.choice([0, 0, 0.2, 0.5])] = -np.inf
    return arc


def check(arc: np.ndarray, root: str, scale: float, rng: np.random.Generator, checked: Counter[str]) -> None:
    n = len(arc) - 1
    heads, used = trees(n, root)
    scores = arc[heads[:, 1:], np.arange(1, n + 1)].sum(axis=1)
    best = scores.max()
    questions = {
        "best tree": lambda: arborescence.best_arborescence(arc, root=root),
        "max-marginals": lambda: arborescence.max_marginals(arc, root),
        "k-best": lambda: kbest_trees.kbest_arborescences(arc, 8, root),
        "log-partition": lambda: matrix_tree.log_partition(arc * scale, root),
        "marginals": lambda: matrix_tree.marginals(arc * scale, root),
        "entropy": lambda: matrix_tree.entropy(arc * scale, root),
        "sample": lambda: matrix_tree.sample_trees(arc, 2, root, rng),
    }
    answers = {}
    for name, question in questions.items():
        checked[f"{name} ({root})"] += 1
        try:
            answers[name] = question()
        except Infeasible:
            assert best == -np.inf, (name, arc, root)
        else:
            assert best > -np.inf, (name, arc, root)
    checked[f"reference ({root})"] += 1
    assert arborescence.reference_best(arc, root) == best, (arc, root)
    if best == -np.inf:
        checked["of which without a tree"] += 1
        return
    assert answers["best tree"].score == best, (arc, root)
    assert (heads == answers["best tree"].structure).all(axis=1).any(), (arc, root)
    top = np.where(used, scores[:, None], -np.inf).max(axis=0).reshape(arc.shape)
    assert (answers["max-marginals"] == top).all(), (arc, root)
    order = np.sort(scores[scores > -np.inf])[::-1][:8]
    assert [result.score for result in answers["k-best"]] == order.tolist(), (arc, root)
    assert len({tuple(result.structure) for result in answers["k-best"]}) == len(order), (arc, root)
    total = best * scale + np.log(np.exp((scores - best) * scale).sum())
    probability = np.exp(scores * scale - total)
    assert abs(answers["log-partition"] - total) <= 1e-10 * max(1, abs(total)), (arc, root, scale)
    marginals = (probability @ used).reshape(arc.shape)
    assert np.abs(answers["marginals"] - marginals).max() <= 1e-10, (arc, root, scale)
    logs = np.log(probability, where=probability > 0, out=np.zeros(len(probability)))
    assert abs(answers["entropy"] + probability @ logs) <= 1e-8, (arc, root, scale)
    for drawn in answers["sample"]:
        assert scores[(heads == drawn).all(axis=1)].max(initial=-np.inf) > -np.inf, (arc, root)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    checked: Counter[str] = Counter()
    for i in range(options.problems):
        arc = random_scores(rng)
        for root in ("single", "multi"):
            check(arc, root, (1.0, 16.0, 125.0)[i % 3], rng, checked)
    for name, count in checked.items():
        print(f"{name:<28}{count:>8} problems, all equal to enumeration")


if __name__ == "__main__":
    main()
