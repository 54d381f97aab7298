"""The one owner of rounding against exact arithmetic."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import certus
from certus.certificates import rounding
from certus.certificates.rounding import EXACT, MASK, Extent, allowed, counted, extent_of, grain, of_best, of_sum, total

numbers = st.floats(-1e30, 1e30, allow_subnormal=False)


def exact_sum(values):
    return sum(map(Fraction, values), Fraction(0))


@given(st.lists(numbers, min_size=1, max_size=40))
def test_a_sum_in_any_order_is_within_its_error(values):
    plain = 0.0
    for x in values:
        plain += x
    size = max(map(abs, values))
    assert abs(Fraction(plain) - exact_sum(values)) <= Fraction(of_sum(len(values), size))
    assert Fraction(total(values)) == Fraction(float(exact_sum(values)))


@given(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_best_of_many_rounded_sums_is_within_its_error_whatever_the_others_are(rows):
    value = max(row[0] + row[1] + row[2] for row in rows)
    best = max(map(exact_sum, rows))
    extent = extent_of(3, np.array(rows))
    assert abs(Fraction(value) - best) <= Fraction(of_best(extent, value))


def test_masks_have_no_part_in_the_error_of_a_best_value():
    assert of_best(Extent(5, -1e38, 3.0), 7.0) == of_best(Extent(5, -4.0, 3.0), 7.0)


def test_sums_that_overflow():
    most = np.finfo(np.float64).max
    assert total([-most, -most, 1.0]) == total([most, most, -inf]) == -inf
    assert total([most, most, -most]) == most
    with pytest.raises(certus.InvalidInput, match="overflow"):
        total([most, most])


def test_a_mask_that_is_used_buys_no_tolerance():
    assert allowed([3.0, -4.0, 0.0]) == EXACT * 7.0
    assert allowed([3.0, -1e30]) == EXACT * (3.0 + MASK)
    assert counted(np.array([3.0, -1e30, -2.0])).tolist() == [3.0, MASK, 2.0]


@pytest.mark.parametrize(
    ("scores", "step"),
    [
        ([3.0, -8.0], 1.0),
        ([4.0, -8.0, -inf], 4.0),
        ([0.5, 3.0], 0.5),
        ([3.0, -9.0, 0.0], 3.0),
        ([0.75, 1.5], 0.75),
        ([0.0], inf),
        ([0.1, 3.0], 0.0),
        ([1e300, 1.0], 0.0),
    ],
)
def test_the_grain_of_scores(scores, step):
    array = np.array(scores)
    assert grain(extent_of(10, array), [array]) == step


def test_extents():
    assert extent_of(3, np.array([-inf, 2.0, -5.0]), np.array([[7.0]])) == Extent(3, -5.0, 7.0)
    assert extent_of(0, np.empty(0), np.array([-inf])) == Extent(0, 0.0, 0.0)
    assert Extent(2, -1.0, 3.0, 9.0, 4).joined(Extent(1, -4.0, 1.0), 2.0) == Extent(3, -8.0, 3.0)
    assert rounding.absolute_of(np.array([-inf, 2.0, -5.0]), np.array([[7.0]])) == 14.0
    assert rounding.absolute_of(np.array([-1.7e308, 1.7e308])) == inf
    assert rounding.of_sum(2**60, 1.0) == inf


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-1000, 1000),
)
@example(5e-324, 200)  # the quotient is 0
@example(-5e-324, 200)
def test_scores_in_steps_are_rounded_up_and_by_less_than_a_step(score, exponent):
    step = 2.0**exponent
    (number,) = rounding.in_steps(np.array([score]), step).tolist()
    if abs(number) == np.inf:  # beyond float64, as what is far too low or high for its step
        assert abs(Fraction(score)) > Fraction(step) * 2**1000
    else:
        assert (Fraction(number) - 1) * Fraction(step) < Fraction(score) <= Fraction(number) * Fraction(step)
        assert number == round(number)


@given(st.floats(1e-290, 1e290), st.integers(20, 60))
def test_steps_are_powers_of_two_that_leave_so_many_bits(most, bits):
    step = rounding.step_for(most, bits)
    assert np.frexp(step)[0] == 0.5
    assert 2 ** (bits - 1) <= Fraction(most) / Fraction(step) < 2**bits or step == 2.0**-1074
    assert Fraction(most) <= Fraction(step) * 2**bits
