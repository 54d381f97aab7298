"""The perceptron over relaxed trees: the best of Z against every choice of modifiers and heads, and its updates."""

from itertools import chain, combinations, product

import numpy as np
import pytest

from certus.errors import Infeasible
from certus.kernels.features import ABSENT
from certus.learn.relaxed import RelaxedParts, RelaxedTrainer
from certus.learn.trees import TreeTask
from certus.learn.weights import Weights
from tests.learn.toy import BITS, KINDS, all_arcs, model_of, treebank, trees_over


def choices(model, allowed):
    """For each word the parts of all its choices of modifiers and head."""
    has = [len(t.seed) > 0 for t in model.arrays]
    n = len(allowed) - 1
    for h in range(n + 1):
        reach = np.flatnonzero(allowed[h])
        sets = list(chain.from_iterable(combinations(reach, k) for k in range(len(reach) + 1)))
        if h == 0 and model.single:
            sets = [s for s in sets if len(s) == 1]
        heads = np.flatnonzero(allowed[:, h]) if h > 0 and (has[2] or has[3]) else [None]
        own = []
        for g, modifiers in product(heads, sets):
            if g in modifiers:
                continue
            parts = []
            for m in modifiers:
                inner = [s for s in modifiers if min(h, m) < s < max(h, m)]
                inner.sort(key=lambda s, h=h: -abs(s - h))
                s, t = [*inner, ABSENT, ABSENT][:2]
                parts += [(0, h, m, ABSENT, ABSENT), (1, h, m, s, ABSENT)]
                parts += [(4, h, m, s, t)] if inner else []
                parts += [(2, h, m, g, ABSENT), (3, h, m, s, g)] if g is not None else []
            own.append([p for p in parts if has[p[0]]])
        yield own


@pytest.mark.parametrize("order", KINDS)
@pytest.mark.parametrize("single", [True, False])
def test_the_best_choice_is_the_best_of_all(order, single):
    rng = np.random.default_rng(12)
    model = model_of(order, False, single)
    for n in (1, 2, 3, 4):
        allowed = all_arcs(n) & (rng.random((n + 1, n + 1)) < 0.85)
        allowed[0, 1:] = True
        parts = RelaxedParts(model, allowed)
        row = {tuple(r): k for k, r in enumerate(parts.rows.tolist())}
        assert len(row) == len(parts.rows)
        score = rng.integers(-8, 9, len(row)).astype(float)
        value, vector = parts.best(score)
        best = sum(max(sum(score[row[p]] for p in own) for own in word) for word in choices(model, allowed))
        assert value == best == vector @ score
        for word in choices(model, allowed):
            listed = {p for own in word for p in own}
            assert listed <= set(row)
        for tree in trees_over(model, allowed):
            assert parts.of_tree(tree) @ score <= value
    allowed[:, 1] = False
    parts = RelaxedParts(model, allowed)
    if order not in (1, "trisiblings"):
        with pytest.raises(Infeasible, match="without a head"):
            parts.best(np.zeros(len(parts.rows)))


@pytest.mark.compiled
@pytest.mark.parametrize("order", [1, 3, "all"])
def test_training_learns_trees_with_crossing_arcs(order):
    lengths = [4, 5, 0, 3, 6]
    batch, _ = treebank(lengths, 3)
    trees = [np.array([-1, 3, 0, 2, 1, 2, 4][: n + 1]) if n > 3 else np.array([-1, *range(n)]) for n in lengths]
    weights = Weights(BITS, dtype=np.float64)
    task = TreeTask(model_of(order, False, True), batch, trees, lambda s: all_arcs(lengths[s]))
    trainer = RelaxedTrainer(task, weights, 1)
    for epoch in range(30):
        words, lacking = np.sum(list(trainer.epoch(epoch)), axis=0)
    assert words == sum(lengths)
    assert lacking == 0
    assert trainer.objective == 0.0


def test_a_fractional_solution_moves_weights_by_what_is_missing():
    batch, trees = treebank([3], 4)
    weights = Weights(BITS, dtype=np.float64)
    model = model_of(2, False, True)

    def half(s, rows, score):
        assert s == 0
        assert len(score) == len(rows)
        return np.full(len(rows), 0.5)

    trainer = RelaxedTrainer(TreeTask(model, batch, trees, lambda s: all_arcs(3)), weights, 1, infer=half)
    assert list(trainer.epoch(0)) == [(3, 1.5)]
    parts = RelaxedParts(model, all_arcs(3))
    touched = trainer._features.gather(0, parts.rows, parts.of_tree(trees[0]) - 0.5)
    np.testing.assert_allclose(weights.value[touched], trainer._features.vector[touched])
    assert np.count_nonzero(weights.value) <= len(touched)
