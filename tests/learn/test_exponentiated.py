"""Exponentiated gradient: the dual rises with each step, the gap goes to 0, the minimum is that of L-BFGS."""

import numpy as np
import pytest

from certus.learn.exponentiated import ExponentiatedTrainer
from certus.learn.log_linear import LbfgsTrainer
from certus.learn.weights import Weights
from tests.learn.toy import BITS, examples_of


@pytest.mark.compiled
@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize(("order", "projective"), [(1, True), (1, False), (3, True)])
def test_the_dual_rises_and_the_gap_goes_to_zero(order, projective, margin):
    examples = examples_of(order, projective, [3, 0, 4, 2, 4], seed=3)
    weights = Weights(BITS, dtype=np.float64)
    trainer = ExponentiatedTrainer(examples, weights, 1, margin=margin, cost=0.3)
    gaps, last = [trainer.primal() - trainer.dual()], trainer.dual()
    for epoch in range(150 if margin else 40):
        for words, wrong in trainer.epoch(epoch):
            assert 0.0 <= wrong <= words
            now = trainer.dual()
            assert now >= last - 1e-12
            last = now
        gaps.append(trainer.primal() - trainer.dual())
    assert min(gaps) > -1e-9
    assert gaps[-1] < (1e-2 if margin else 1e-4) * gaps[0]


@pytest.mark.compiled
def test_weights_are_those_of_the_dual():
    examples = examples_of(1, True, [3, 4, 2], seed=5)
    weights = Weights(BITS, dtype=np.float64)
    trainer = ExponentiatedTrainer(examples, weights, 1, margin=False, cost=0.5)
    for epoch in range(60):
        list(trainer.epoch(epoch))
    expected = np.zeros(1 << BITS)
    for s, tree in enumerate(examples.trees):
        parts = examples.parts(s)
        _, marginal = parts.log_sum(trainer._theta(s))
        touched = examples.features.gather(s, parts.rows, 0.5 * (parts.of_tree(tree) - marginal))
        expected[touched] += examples.features.vector[touched]
        examples.features.vector[touched] = 0.0
    np.testing.assert_allclose(weights.value, expected, atol=1e-10)
    exact = Weights(BITS, dtype=np.float64)
    minimum = LbfgsTrainer(examples, exact, cost=0.5, iterations=100)
    list(minimum.epoch(0))
    assert trainer.dual() == pytest.approx(minimum.objective, rel=1e-5)
    np.testing.assert_allclose(weights.value, exact.value, atol=2e-3)


def test_a_broken_off_training_goes_on_the_same():
    examples = examples_of(1, True, [3, 4, 2], seed=5)
    whole, broken = (Weights(BITS, dtype=np.float64) for _ in range(2))
    learner = ExponentiatedTrainer(examples, whole, 1, margin=True, cost=0.1)
    for epoch in range(4):
        list(learner.epoch(epoch))
        again = ExponentiatedTrainer(examples, broken, 1, margin=True, cost=0.1)
        list(again.epoch(epoch))
    np.testing.assert_array_equal(whole.value, broken.value)
    np.testing.assert_array_equal(whole.extra["theta"], broken.extra["theta"])
    assert again.dual() == learner.dual()
