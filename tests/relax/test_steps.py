"""Step rules are pure functions: tested without any solver."""

import math

import pytest

from certus import InvalidInput
from certus.relax import steps


def run(rule, duals, primal=-math.inf, norm2=1.0, scale=1.0):
    state, out = rule.init(scale), []
    for dual in duals:
        step, state = rule.update(state, dual, primal, norm2)
        out.append(step)
    return out


DUALS = [10.0, 8.0, 9.0, 7.0, 7.5, 7.4]  # goes up at the third and the fifth


def test_constant():
    assert run(steps.constant(2.0), DUALS) == [2.0] * 6


def test_harmonic():
    assert run(steps.harmonic(3.0), DUALS) == [3.0 / k for k in range(1, 7)]


def test_inverse_sqrt():
    assert run(steps.inverse_sqrt(3.0), DUALS) == [3.0 / math.sqrt(k) for k in range(1, 7)]


def test_per_increase_shrinks_only_when_the_dual_goes_up():
    assert run(steps.per_increase(6.0), DUALS) == [6.0, 6.0, 3.0, 3.0, 2.0, 2.0]


def test_halving_on_increase():
    assert run(steps.halving(0.5), DUALS) == [0.5, 0.5, 0.25, 0.25, 0.125, 0.125]


def test_an_equal_dual_is_no_increase():
    assert run(steps.halving(1.0), [5.0, 5.0, 5.0]) == [1.0, 1.0, 1.0]


def test_polyak_aims_at_the_best_primal():
    assert run(steps.polyak(1.0), [10.0], primal=4.0, norm2=3.0) == [2.0]
    assert run(steps.polyak(0.5), [10.0], primal=4.0, norm2=3.0) == [1.0]


def test_polyak_before_the_first_primal_uses_the_scale():
    assert run(steps.polyak(1.0), [10.0], norm2=4.0, scale=8.0) == [2.0]


def test_polyak_shrinks_after_a_stall_and_not_before():
    rule = steps.polyak(1.0, patience=2, shrink=0.5)
    assert run(rule, [4.0, 4.0, 4.0, 4.0, 3.0], primal=0.0) == [4.0, 4.0, 2.0, 2.0, 1.5]


def test_polyak_is_free_of_scale():
    small = run(steps.polyak(), DUALS, primal=1.0, scale=2.0)
    large = run(steps.polyak(), [1024 * d for d in DUALS], primal=1024.0, scale=2048.0)
    assert large == [1024 * s for s in small]


def test_steps_stay_positive_when_the_gap_is_gone():
    assert all(s > 0 for s in run(steps.polyak(), [1.0, 1.0], primal=1.0, scale=5.0))


def test_rules_do_not_share_state():
    rule = steps.per_increase(1.0)
    assert run(rule, DUALS) == run(rule, DUALS)


@pytest.mark.parametrize(
    "rule", [steps.constant, steps.harmonic, steps.inverse_sqrt, steps.per_increase, steps.halving, steps.polyak]
)
@pytest.mark.parametrize("c", [0.0, -1.0, math.nan, math.inf, "1"])
def test_a_step_that_is_not_positive_is_refused(rule, c):
    with pytest.raises(InvalidInput, match="positive"):
        rule(c)


def test_repr_names_the_rule():
    assert repr(steps.halving(0.5)) == "halving(0.5)"


def test_deflected_rules():
    assert steps.deflected().deflection == 1.0
    assert repr(steps.deflected(0.5)) == "deflected(0.5)"
    assert run(steps.deflected(), DUALS, primal=1.0) == run(steps.polyak(), DUALS, primal=1.0)
    with pytest.raises(InvalidInput, match="deflection is -1"):
        steps.deflected(deflection=-1)
