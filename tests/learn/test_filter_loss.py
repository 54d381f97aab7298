"""Filter loss: thresholds, losses and subgradients against all trees one by one."""

import numpy as np
import pytest

from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.kernels.learning import threshold
from certus.learn.examples import Examples
from certus.learn.filter_loss import FilterLoss, FilterTrainer, filter_loss, levels
from certus.learn.parts import Parts
from certus.learn.trees import TreeTask
from certus.learn.weights import Weights
from tests.learn.toy import BITS, MODELS, all_arcs, model_of, parts_of, treebank, trees_over


@pytest.mark.parametrize(("order", "projective", "single"), MODELS)
def test_max_marginals_threshold_and_subgradient_agree_with_all_trees(order, projective, single):
    rng = np.random.default_rng(3)
    model = model_of(order, projective, single)
    for n in (1, 2, 3, 4):
        allowed = all_arcs(n) & (rng.random((n + 1, n + 1)) < 0.8)
        trees = trees_over(model, allowed)
        parts = Parts(model, allowed)
        if not trees:
            score = np.zeros(len(parts.rows))
            with pytest.raises(Infeasible, match="no tree"):
                parts.filter(score, 0.5)
            continue
        score = rng.standard_normal(len(parts.rows))
        vectors = np.array([parts.of_tree(tree) for tree in trees])
        for tree, vector in zip(trees, vectors, strict=True):
            assert sorted(map(tuple, parts.rows[vector > 0].tolist())) == sorted(parts_of(model, tree))
        values = vectors @ score
        expected = np.array([values[vectors[:, a] > 0].max(initial=-np.inf) for a in range(parts.n_arcs)])
        best, through, mean = parts.filter(score, 0.3)
        assert best == pytest.approx(values.max())
        np.testing.assert_allclose(through, expected)
        tau = 0.3 * values.max() + 0.7 * expected[expected > -np.inf].mean()
        assert mean @ score == pytest.approx(tau) == threshold(through, best, 0.3)
        # With real scores the best trees are unique, so their mean is the gradient.
        tops = [vectors[np.where(vectors[:, a] > 0, values, -np.inf).argmax()] for a in range(parts.n_arcs)
                if expected[a] > -np.inf]  # fmt: skip
        np.testing.assert_allclose(mean, 0.3 * vectors[values.argmax()] + 0.7 * np.mean(tops, axis=0), atol=1e-12)
        assert parts.best(score)[0] == pytest.approx(values.max())
        np.testing.assert_array_equal(parts.best(score)[1], vectors[values.argmax()])


def test_loss_is_a_hinge_above_the_threshold():
    rng = np.random.default_rng(4)
    model = model_of(2, True, True)
    parts = Parts(model, all_arcs(4))
    trees = trees_over(model, all_arcs(4))
    seen = set()
    for _ in range(60):
        gold = trees[rng.integers(len(trees))]
        right = parts.of_tree(gold)
        score = 0.8 * rng.standard_normal(len(parts.rows)) + rng.choice([0.0, 0.5, 1.0]) * right
        loss, gradient, lost = filter_loss(parts, score, gold, 0.5)
        _, through, mean = parts.filter(score, 0.5)
        assert loss == pytest.approx(max(0.0, 1 + mean @ score - right @ score))
        assert lost == sum(through[a] < mean @ score for a in np.flatnonzero(right[: parts.n_arcs]))
        assert (loss >= 1.0) or lost == 0.0  # the hinge lies above the number it stands for
        np.testing.assert_array_equal(gradient, mean - right if loss > 0 else 0.0 * right)
        seen.add((loss > 0, lost > 0))
    assert seen == {(True, True), (True, False), (False, False)}


@pytest.mark.compiled
@pytest.mark.parametrize(("order", "projective"), [(1, True), (1, False), (2, True)])
def test_training_keeps_right_arcs_above_the_threshold(order, projective):
    lengths = [1, 5, 3, 6, 0, 4]
    batch, trees = treebank(lengths, 1)
    model = model_of(order, projective, True)
    weights = Weights(BITS, dtype=np.float64)
    examples = Examples(TreeTask(model, batch, trees, lambda s: all_arcs(lengths[s])), BITS)
    trainer = FilterTrainer(examples, weights, 1, FilterLoss(0.5, 0.05))
    losses = []
    for epoch in range(8):
        words, lost = np.sum(list(trainer.epoch(epoch)), axis=0)
        losses.append(trainer.objective)
    assert words == sum(lengths)
    assert lost == 0
    assert losses[-1] < losses[0] / 2
    assert losses[-1] == pytest.approx(1 / 6)  # one word has one tree, whose loss is 1


def test_levels_say_at_which_threshold_an_arc_is_lost():
    through = np.array([[-np.inf, 6.0, 2.0], [-np.inf, -np.inf, 6.0], [-np.inf, 2.0, -np.inf]])
    level = levels(through, 6.0)
    assert level[[0, 0, 2, 1], [1, 2, 1, 1]].tolist() == [1.0, -1.0, -1.0, -np.inf]  # the mean is 4
    for eta in (0.0, 0.5, 1.0):
        assert ((level >= eta) == (through >= threshold(through, 6.0, eta))).all()
    assert levels(np.array([3.0, -np.inf]), 3.0).tolist() == [1.0, -np.inf]


def test_what_cannot_be_done_is_refused():
    with pytest.raises(InvalidInput, match=r"eta is 1\.5"):
        FilterLoss(1.5)
    with pytest.raises(NotSupported, match="NP-hard"):
        Parts(model_of(2, False, True), all_arcs(3))
