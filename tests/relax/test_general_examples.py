"""The examples beyond language (LR 3.4) are right and run as shown."""

import itertools
import runpy
from pathlib import Path

import numpy as np
import pytest

import certus

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
tsp = runpy.run_path(str(EXAMPLES / "tsp.py"), run_name="tsp")
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
    problem = tsp["tours"](distance)
    result = problem.decode()
    assert -result.score == shortest
    assert result.certificate.exact
    assert (-result.trace.dual <= shortest + 1e-9).all()
    assert sorted(tsp["in_order"](result.structure)) == list(range(n))
    certus.verify(problem, result)


def one_trees(n):
    """All 1-trees of n cities."""
    pairs = list(itertools.combinations(range(1, n), 2))
    for tree in itertools.combinations(pairs, n - 2):
        group = list(range(n))
        for i, j in tree:
            group = [group[i] if g == group[j] else g for g in group]
        if len(set(group[1:])) == 1:
            yield from (tuple(sorted((*tree, (0, a), (0, b)))) for a, b in pairs)


@pytest.mark.parametrize("n", [4, 5])
def test_one_trees_by_brute_force(n):
    rng = np.random.default_rng(n)
    distance = rng.integers(1, 9, (n, n)).astype(float)
    problem = tsp["OneTrees"](np.triu(distance, 1) + np.triu(distance, 1).T)
    penalty = {"edges": rng.integers(-4, 5, (n, n)).astype(float)}
    best = np.full((n, n), -np.inf)
    for y in one_trees(n):
        used = problem.indicator(y, "edges")
        best = np.where(used > 0, np.maximum(best, problem.score(y) + (penalty["edges"] * used).sum()), best)
    assert problem.solve(penalty).value == best.max()
    assert (problem.max_marginals(penalty)["edges"] == best).all()
    assert problem.extent().length >= n


def test_a_tour_is_saved_and_read_by_a_program_that_registers_the_class(tmp_path):
    problem = tsp["tours"](tsp["random_cities"](7, seed=1))
    result = problem.decode()
    certus.save_result(tmp_path / "tour.json", problem, result)
    again, read = certus.load_result(tmp_path / "tour.json")
    assert read.structure == result.structure
    assert certus.verify(again, read).trusts == ("OneTrees.solve",)


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


@pytest.mark.parametrize(("example", "expected"), [(tsp, "none is shorter than"), (grid_mrf, "optimal")])
def test_examples_run_and_print_bound_and_score(example, expected, capsys):
    example["main"]()
    assert expected in capsys.readouterr().out
