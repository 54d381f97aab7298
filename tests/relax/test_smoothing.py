"""Multipliers of the smoothed dual function: no worse than those before, near the linear program, never false."""

import numpy as np
import pytest

import certus
from certus.relax import branch
from certus.relax.descent import Descent
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.linear import solve_lp
from certus.relax.run import Run
from certus.relax.smoothing import Smoothing
from certus.relax.steps import polyak
from certus.relax.system import Relaxation
from tests.factors.cases import agrees, factor_graph


def taggers(seed):
    rng = np.random.default_rng(seed)
    sides = (certus.Tagging(rng.normal(size=(8, 3)), bigram=3.0 * rng.normal(size=(3, 3))) for _ in range(2))
    return certus.Joint(*sides, on="tags", merge=False)


def covers(seed):
    rng = np.random.default_rng(seed)
    sets = [rng.choice(9, 3, replace=False).tolist() for _ in range(9)]
    return certus.SetCover(rng.integers(1, 9, 10), [*sets, list(range(9))])


@pytest.mark.parametrize("made", [taggers, covers])
def test_near_the_linear_program_and_never_below_it(made):
    for seed in range(4):
        problem = made(seed)
        relaxation = Relaxation.of(problem)
        subproblems = Subproblems(relaxation)
        oracle = Lagrangian(subproblems, subproblems.initial)
        at = Descent(Run(), oracle, np.zeros(relaxation.n_rows), polyak())
        at.ask(None, False)
        least = solve_lp(problem).value
        smoothing = Smoothing(relaxation)
        u = smoothing.better(at, oracle, least - 1e-3)
        assert (u[relaxation.inequality] <= 0).all()
        found = oracle.ask(u).value
        assert least - 1e-6 <= found <= at.best
        assert found - least <= 0.05 * (at.best - least) + 1e-6


def test_smoothed_where_a_linear_program_is_too_large(monkeypatch):
    monkeypatch.setattr(branch, "PROGRAM", 0)
    from certus.factors import problem as problems

    monkeypatch.setattr(problems, "LARGEST", -1)
    rng = np.random.default_rng(5)
    for _ in range(25):
        agrees(factor_graph(rng, most=4, width=int(rng.integers(1, 10))))
    for seed in range(6):
        problem = covers(seed)
        result = problem.decode()
        assert result.certificate.exact
        assert result.score == max(problem.score(y) for y in problem.all_structures())
        certus.verify(problem, result)
