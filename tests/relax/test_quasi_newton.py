"""The minimiser of smooth convex functions in a box: against scipy's, and at its ends."""

import numpy as np
import pytest

from certus.relax.quasi_newton import least


def soft_maximum(rng, n):
    """log sum exp(A x + b) + |x|^2 / 8."""
    a, b = rng.normal(size=(3 * n, n)), rng.normal(size=3 * n)

    def ask(x):
        total = np.logaddexp.reduce(a @ x + b)
        return float(total + x @ x / 8), a.T @ np.exp(a @ x + b - total) + x / 4

    return ask


@pytest.mark.parametrize("seed", range(8))
def test_as_low_as_scipy(seed):
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    ask = soft_maximum(rng, n)
    low, high = np.full(n, -0.1 if seed % 2 else -np.inf), np.where(rng.random(n) < 0.5, 0.05, np.inf)
    found = least(ask, np.zeros(n), low, high, steps=300, memory=10)
    best = minimize(ask, np.zeros(n), jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)))
    assert (found.x >= low).all()
    assert (found.x <= high).all()
    assert found.value == ask(found.x)[0]
    assert found.value <= best.fun + 1e-6


def test_a_start_outside_the_box_is_moved_into_it_and_every_step_goes_down():
    ask = soft_maximum(np.random.default_rng(1), 6)
    values = [least(ask, np.full(6, 9.0), np.full(6, -1.0), np.ones(6), steps=k, memory=3).value for k in range(1, 9)]
    assert values == sorted(values, reverse=True)
    assert values[0] < ask(np.ones(6))[0]


def test_points_too_far_away_are_stepped_back_from():
    def ask(x):  # x - log x, which has no value below 0
        with np.errstate(all="ignore"):
            return float(np.where(x > 0, x - np.log(np.abs(x)), np.inf)[0]), 1.0 - 1.0 / x

    found = least(ask, np.array([0.01]), np.array([-np.inf]), np.array([np.inf]), steps=100, memory=5)
    assert found.x == pytest.approx(1.0, abs=1e-4)


def test_where_there_is_nothing_below_it_stays():
    found = least(lambda x: (-np.inf, np.zeros_like(x)), np.zeros(2), np.full(2, -1.0), np.ones(2), steps=9, memory=5)
    assert found.steps == 0
    assert found.value == -np.inf
