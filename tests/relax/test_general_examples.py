"""The examples beyond language (LR 3.4) are right and run as shown."""

import itertools
import runpy
from pathlib import Path

import numpy as np
import pytest

import certus

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
held_karp = runpy.run_path(str(EXAMPLES / "held_karp.py"), run_name="held_karp")
grid_mrf = runpy.run_path(str(EXAMPLES / "grid_mrf.py"), run_name="grid_mrf")


@pytest.mark.parametrize("seed", range(4))
def test_shortest_tours_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    distance = rng.integers(1, 20, (n, n)).astype(float)
    distance = np.triu(distance, 1) + np.triu(distance, 1).T
    shortest = min(
        sum(distance[a, b] for a, b in zip((0, *order), (*order, 0), strict=True))
        for order in itertools.permutations(range(1, n))
    )
    problem = held_karp["tours"](distance)
    result = problem.decode()
    assert -result.score == shortest
    assert result.certificate.exact
    assert (-result.trace.dual <= shortest + 1e-9).all()
    assert sorted(held_karp["in_order"](result.structure)) == list(range(n))
    certus.verify(problem, result)


@pytest.mark.parametrize("n", [4, 5])
def test_one_trees_by_brute_force(n):
    rng = np.random.default_rng(n)
    distance = rng.integers(1, 9, (n, n)).astype(float)
    problem = held_karp["OneTrees"](np.triu(distance, 1) + np.triu(distance, 1).T)
    penalty = {"edges": rng.integers(-4, 5, (n, n)).astype(float)}
    values = [
        problem.score(y) + (penalty["edges"] * problem.indicator(y, "edges")).sum() for y in problem.all_structures()
    ]
    assert problem.solve(penalty).value == max(values) == problem.reference_maximum(penalty)


@pytest.mark.parametrize("seed", range(6))
def test_grids_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    rows, columns, k = 3, 3, 2
    unary = 2.0 * rng.integers(-4, 5, (rows, columns, k))
    pairwise = rng.integers(-4, 5, (k, k)).astype(float)

    def energy(labels):
        total = sum(unary[r, c, labels[r, c]] for r in range(rows) for c in range(columns))
        total += sum(pairwise[labels[r, c], labels[r, c + 1]] for r in range(rows) for c in range(columns - 1))
        return total + sum(pairwise[labels[r, c], labels[r + 1, c]] for r in range(rows - 1) for c in range(columns))

    best = max(energy(np.array(y).reshape(rows, columns)) for y in itertools.product(range(k), repeat=rows * columns))
    problem = grid_mrf["grid"](unary, pairwise)
    result = problem.decode()
    assert result.score == best == energy(result.structure[0].reshape(rows, columns))
    assert result.certificate.exact
    certus.verify(problem, result)


@pytest.mark.parametrize(("example", "expected"), [(held_karp, "none is shorter than"), (grid_mrf, "optimal")])
def test_examples_run_and_print_bound_and_score(example, expected, capsys):
    example["main"]()
    assert expected in capsys.readouterr().out
