"""Log-linear training: sums over all trees, gradients by finite differences, minima that agree, states that resume."""

import numpy as np
import pytest
from scipy.special import logsumexp

from certus.learn.examples import hinge_loss, log_loss
from certus.learn.log_linear import GradientTrainer, LbfgsTrainer, objective
from certus.learn.parts import Parts
from certus.learn.weights import Weights
from tests.learn.toy import BITS, MODELS, all_arcs, examples_of, model_of, trees_over


@pytest.mark.parametrize(("order", "projective", "single"), MODELS)
def test_losses_and_marginals_agree_with_all_trees(order, projective, single):
    rng = np.random.default_rng(8)
    model = model_of(order, projective, single)
    for n in (1, 2, 4):
        allowed = all_arcs(n) & (rng.random((n + 1, n + 1)) < 0.9)
        trees = trees_over(model, allowed)
        if not trees:
            continue
        parts = Parts(model, allowed)
        score = rng.standard_normal(len(parts.rows))
        vectors = np.array([parts.of_tree(tree) for tree in trees])
        values = vectors @ score
        probability = np.exp(values - logsumexp(values))
        total, marginal = parts.log_sum(score)
        assert total == pytest.approx(logsumexp(values))
        np.testing.assert_allclose(marginal, probability @ vectors, atol=1e-12)
        right, errors = vectors[0], parts.errors(trees[0])
        assert [vector @ errors for vector in vectors] == [(tree != trees[0]).sum() for tree in trees]
        loss, gradient = log_loss(parts, score, right)
        assert loss == pytest.approx(-np.log(probability[0]))
        np.testing.assert_allclose(gradient, probability @ vectors - right, atol=1e-12)
        loss, gradient = hinge_loss(parts, score, right, errors)
        assert loss == pytest.approx(max(values + vectors @ errors) - values[0])
        assert loss == pytest.approx(max(0.0, gradient @ score + (gradient + right) @ errors))


@pytest.mark.compiled
@pytest.mark.parametrize(("order", "projective"), [(1, True), (1, False), ("all", True)])
def test_gradient_agrees_with_finite_differences(order, projective):
    examples = examples_of(order, projective, [3, 0, 4], seed=2)
    rng = np.random.default_rng(1)
    weight = 0.1 * rng.standard_normal(1 << BITS)
    _, gradient, wrong = objective(examples, weight, 0.7)
    assert 0.0 < wrong < 7.0
    for f in [*np.argsort(-np.abs(gradient - weight))[:4], *rng.integers(0, 1 << BITS, 3)]:
        step = np.zeros_like(weight)
        step[f] = 1e-5
        up, down = (objective(examples, weight + sign * step, 0.7)[0] for sign in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(gradient[f], abs=1e-7)


@pytest.mark.compiled
def test_stochastic_gradient_comes_close_to_the_minimum_of_lbfgs():
    examples = examples_of(2, True, [3, 5, 2, 0, 4, 4], seed=4)
    exact = Weights(BITS, dtype=np.float64)
    trainer = LbfgsTrainer(examples, exact, cost=0.5, iterations=60)
    ((words, wrong),) = trainer.epoch(0)
    assert (words, trainer.gradient < 1e-4) == (18, True)
    assert 0.0 < wrong < 2.0
    start = objective(examples, np.zeros(1 << BITS), 0.5)[0]
    weights = Weights(BITS, dtype=np.float64)
    stochastic = GradientTrainer(examples, weights, 1, cost=0.5, rate=0.02)
    for epoch in range(40):
        words = sum(n for n, _ in stochastic.epoch(epoch))
    assert words == 18
    value = objective(examples, weights.value, 0.5)[0]
    assert trainer.objective < value < trainer.objective + 0.02 * (start - trainer.objective)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["lbfgs", "gradient"])
def test_a_broken_off_training_goes_on_the_same(kind):
    examples = examples_of(1, False, [3, 4, 2], seed=6)

    def trainer(weights):
        if kind == "lbfgs":
            return LbfgsTrainer(examples, weights, cost=0.2, iterations=2)
        return GradientTrainer(examples, weights, 3, cost=0.2)

    whole, broken = (Weights(BITS, dtype=np.float64) for _ in range(2))
    learner = trainer(whole)
    for epoch in range(3):
        list(learner.epoch(epoch))
    for epoch in range(3):
        list(trainer(broken).epoch(epoch))
    np.testing.assert_array_equal(whole.value, broken.value)
    assert whole.value.any()
