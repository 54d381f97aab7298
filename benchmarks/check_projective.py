"""Every projective decoder and question against enumeration, on random small problems; prints how many were checked.

    python benchmarks/check_projective.py [--problems 20000] [--seed 0] [--only NAME]

Scores are whole numbers in [-8, 8], so that ties are common and best scores compare with ==; some parts are -inf. For
each model the problems alternate between single and multi root, have 0 .. 5 words (0 .. 4 above second order) and are
asked for the best tree; every tenth is asked everything else too. "groups" compares second-order items of 0 .. 15
words in batches, where those of about the same length are decoded side by side, with the same items one by one.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import certus
from certus.dependency.parts import shape_of
from tests.oracles.trees import projective_trees

MODELS = {
    "eisner": ((), "all"),
    "sibling": (("sibling",), "all"),
    "carreras": (("sibling", "grandparent"), "outermost"),
    "model 0": (("grandparent",), "all"),
    "model 1": (("sibling", "grandparent", "grandsibling"), "all"),
    "model 2": (("sibling", "grandparent", "grandsibling", "trisibling"), "outermost"),
    "trisibling": (("sibling", "trisibling"), "all"),
    "end of side": (("stop", "null", "sibling"), "all"),
    "listed": (("sibling", "grandparent", "grandsibling"), "all"),
    "everything": (("sibling", "grandparent", "grandsibling", "trisibling", "stop", "null"), "all"),
}


def scores(rng: np.random.Generator, shape: tuple[int, ...], forbidden: float) -> np.ndarray:
    """Whole numbers, some of them -inf."""
    values = rng.integers(-8, 9, size=shape).astype(np.float64)
    values[rng.random(shape) < forbidden] = -np.inf
    return values


def as_lists(arrays: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray, ...]]:
    """Dense arrays as lists of parts, those at -inf left out."""
    return {kind: (*np.nonzero(a > -np.inf), a[a > -np.inf]) for kind, a in arrays.items()}


def draw(rng: np.random.Generator, model: str, n: int, root: str) -> certus.Dependency:
    """A random problem of one model."""
    kinds, grandparents = MODELS[model]
    arc = scores(rng, (n + 1, n + 1), rng.choice([0.0, 0.1, 0.3]))
    arrays = {kind: scores(rng, shape_of(kind, n), rng.choice([0.0, 0.05])) for kind in kinds}
    settings = {"projective": True, "root": root, "grandparents": grandparents}
    if model == "listed":
        return certus.Dependency.from_parts(n, **as_lists({"arc": arc, **arrays}), **settings)
    return certus.Dependency(arc, **arrays, **settings)


def check_best(problem: certus.Dependency) -> list[tuple[float, tuple[int, ...]]]:
    """Compare the best tree with the enumeration, which is returned: (score, heads), forbidden trees left out."""
    trees = [(problem.score(np.array(t)), t) for t in projective_trees(problem.n, problem.root)]
    alive = sorted((t for t in trees if t[0] > -np.inf), reverse=True)
    expected = alive[0][0] if alive else -np.inf
    try:
        result = problem.decode()
    except certus.Infeasible:
        assert not alive, (problem, expected)
        return alive
    assert result.score == expected == result.certificate.bound, (problem, result, expected)
    assert problem.score(result.structure) == expected
    return alive


def check_rest(problem: certus.Dependency, trees: list[tuple[float, tuple[int, ...]]], seed: int) -> None:
    """Compare every other question with the enumeration."""
    n = problem.n
    assert problem.reference_maximum() == (trees[0][0] if trees else -np.inf)
    if not trees:
        assert problem.log_partition() == -np.inf
        assert (problem.max_marginals()["arcs"] == -np.inf).all()
        return
    values = np.array([score for score, _ in trees])
    weight = np.exp(values - values[0])
    probability = weight / weight.sum()
    best, mass = np.full((n + 1, n + 1), -np.inf), np.zeros((n + 1, n + 1))
    for (score, heads), p in zip(trees, probability, strict=True):
        for m in range(1, n + 1):
            best[heads[m], m] = max(best[heads[m], m], score)
            mass[heads[m], m] += p
    log_partition = values[0] + np.log(weight.sum())
    assert abs(problem.log_partition() - log_partition) < 1e-10
    assert (problem.max_marginals()["arcs"] == best).all()
    assert np.abs(problem.marginals()["arcs"] - mass).max() < 1e-10
    assert abs(problem.entropy() + np.sum(probability * np.log(probability))) < 1e-9
    k = 7
    found = problem.kbest(k)
    assert [r.score for r in found] == values[:k].tolist()
    assert len({tuple(r.structure.tolist()) for r in found}) == len(found)
    known = {heads for _, heads in trees}
    assert all(tuple(heads.tolist()) in known for heads in problem.sample(3, seed=seed))


def check_groups(rng: np.random.Generator, k: int) -> int:
    """Compare a batch, of whole numbers with ties or of real ones, with each item; returns how many they are."""
    items, size, root = int(rng.integers(1, 20)), int(rng.integers(2, 17)), "single" if k % 2 else "multi"
    lengths = rng.integers(0 if k % 3 else max(size - 3, 0), size, items)
    arc, sibling = (rng.integers(-8, 9, (items,) + (size,) * d).astype(np.float64) for d in (2, 3))
    if k % 4 == 0:
        arc, sibling = arc + rng.normal(size=arc.shape), sibling * rng.normal(size=sibling.shape)
    if k % 5 == 0:
        sibling = np.where(rng.random(sibling.shape) < 0.2, -np.inf, sibling)
        sibling[:, range(size), range(size)] = 0.0  # some tree is left
    settings = {"projective": True, "root": root, "workers": 1}
    batch = certus.DependencyBatch(arc, sibling, lengths=lengths, **settings).decode()
    for b in range(items):
        one = slice(b, b + 1)
        alone = certus.DependencyBatch(arc[one], sibling[one], lengths=lengths[one], **settings).decode()
        assert (batch.structure[b] == alone.structure[0]).all(), (k, b)
        assert batch.score[b] == alone.score[0], (k, b)
        assert batch.certificate.bound[b] == alone.certificate.bound[0], (k, b)
    return items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=20_000, help="random problems per model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=[*MODELS, "groups"], help="check one model")
    options = parser.parse_args()
    if options.only in (None, "groups"):
        rng, checked, batches = np.random.default_rng(options.seed), 0, 0
        while checked < options.problems:
            checked += check_groups(rng, batches)
            batches += 1
        print(f"groups       {checked} items in {batches} batches answer as they do alone", flush=True)
    models = [options.only] if options.only else list(MODELS)
    for model in [m for m in models if m != "groups"]:
        rng = np.random.default_rng(options.seed)
        largest = 5 if len(MODELS[model][0]) < 2 else 4
        started, infeasible = time.perf_counter(), 0
        for k in range(options.problems):
            n = int(rng.integers(0, largest + 1)) if k % 20 else k // 20 % 3
            problem = draw(rng, model, n, "single" if k % 2 else "multi")
            trees = check_best(problem)
            infeasible += not trees
            if k % 10 == 0:
                check_rest(problem, trees, k)
        seconds = time.perf_counter() - started
        print(
            f"{model:12} {options.problems} problems equal enumeration ({infeasible} infeasible), {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
