"""Averages of weights, and weights in one byte."""

import numpy as np
import pytest

from certus.learn.weights import Packed, Step, Weights


def moved(weights, change):
    """One step of a learner."""
    weights.value += np.float32(change)
    weights.total += weights.clock * change
    weights.clock += 1.0
    return weights.value[0]


def test_the_average_is_over_all_steps_or_over_those_since_it_began_anew():
    weights = Weights(3)
    values = [0.0, *(moved(weights, change) for change in (1.0, -3.0, 5.0))]
    assert weights.averaged()[0] == np.mean(values)
    weights.average_from_here()
    values = [values[-1], *(moved(weights, change) for change in (2.0, 4.0, 0.0))]
    assert weights.averaged()[0] == np.mean(values)


def test_a_step_is_the_least_that_makes_the_loss_zero_up_to_the_cap():
    plus, minus = np.array([[1, 2, 2], [3, 2, 1]], dtype=np.uint64)  # 2 less 3: features 1 cancel
    weights = Weights(3)
    assert weights.move(plus, minus, 1.0, Step(9.0, margin=True)) == 1.0
    assert weights.value.tolist() == [0.0, 0.0, 0.5, -0.5, 0.0, 0.0, 0.0, 0.0]
    assert weights.move(plus, minus, 1.0, Step(9.0, margin=True)) == 0.0
    weights.move(plus, minus, 9.0, Step(0.25, margin=True))
    assert weights.value[2:4].tolist() == [0.75, -0.75]


def test_adagrad_has_a_step_for_each_weight():
    weights, feature = Weights(3, beyond=2, dtype=np.float64), np.array([4, 9])
    change = np.zeros(10)
    for clock, amount in enumerate(([3.0, 1.0], [4.0, 0.0], [0.0, -2.0]), start=1):
        vector = np.zeros(10)
        vector[feature] = amount
        weights.move_along(feature, vector, Step(1.0, rate=0.5))
        assert not vector.any()
        weights.clock = clock + 1.0
    change[feature] = 0.5 * (1.0 + 4.0 / 5.0), 0.5 * (1.0 - 2.0 / np.sqrt(5.0))
    np.testing.assert_allclose(weights.value, change, rtol=1e-15)


@pytest.mark.parametrize("bits", [1, 6, 12])
def test_packed_weights_begin_a_line_of_the_cache(bits):
    value = np.random.default_rng(bits).integers(-128, 128, 1 << bits).astype(np.int8)
    packed = Packed(value, 0.5)
    assert packed.value.ctypes.data % 64 == 0
    assert np.array_equal(packed.value, value)
    assert np.array_equal(packed.floats, value * np.float32(0.5))
