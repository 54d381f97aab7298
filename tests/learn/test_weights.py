"""Averages of weights, and weights in one byte."""

import numpy as np
import pytest

from certus.learn.weights import Packed, Weights


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


@pytest.mark.parametrize("bits", [1, 6, 12])
def test_packed_weights_begin_a_line_of_the_cache(bits):
    value = np.random.default_rng(bits).integers(-128, 128, 1 << bits).astype(np.int8)
    packed = Packed(value, 0.5)
    assert packed.value.ctypes.data % 64 == 0
    assert np.array_equal(packed.value, value)
    assert np.array_equal(packed.floats, value * np.float32(0.5))
