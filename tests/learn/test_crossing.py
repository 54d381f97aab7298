"""Trained models above first order with crossing arcs: a proved guess is the best of all trees, others are relaxed."""

from itertools import chain, combinations

import numpy as np
import pytest

from certus.dependency.polyak import polyak_rule
from certus.features.encode import Encoder
from certus.kernels import crossing
from certus.kernels.features import ABSENT, named_features
from certus.learn.crossing import Crossing
from certus.learn.learners import LEARNERS
from certus.learn.trees import Trainer, TreeModel, TreeTask, arc_scores
from certus.learn.weights import Weights
from tests.learn.test_trees import BITS, KINDS, score, sentence
from tests.oracles.trees import all_trees

ABOVE_FIRST = [order for order in KINDS if order != 1]


def drawn(order, single, n, seed, forbidden=(), **limits):
    """A model with random weights, a sentence, and its relaxation."""
    rng = np.random.default_rng(seed)
    model = TreeModel(KINDS[order], False, single)
    words = sentence(n, rng)
    batch = Encoder.of([words]).encode([words])
    weight = rng.integers(-8, 9, size=1 << BITS).astype(np.float32)  # whole numbers: sums are exact
    allowed = ~np.eye(n + 1, dtype=np.bool_)
    allowed[:, 0] = False
    for arc in forbidden:
        allowed[arc] = False
    linear = model.weighted(BITS, weight)
    arc = arc_scores(batch.sentence(0), allowed, linear._replace(templates=linear.templates[0]))
    names = np.zeros(allowed.shape, dtype=np.uint32)
    return model, batch, weight, Crossing(batch.sentence(0), names, linear, arc, allowed, single=single, **limits)


def lead(weight, found, tree):
    """How far a tree is ahead of what the heads choose."""
    _, plus, minus = found.against(np.array(tree))
    return weight[plus].sum(dtype=np.float64) - weight[minus].sum(dtype=np.float64)


@pytest.mark.parametrize("order", ABOVE_FIRST)
@pytest.mark.parametrize(("single", "n"), [(True, 2), (False, 2), pytest.param(True, 4, marks=pytest.mark.compiled)])
def test_a_proved_guess_is_the_best_of_all_trees(order, single, n):
    count = 0
    for seed in range(2 * n):
        model, batch, weight, found = drawn(order, single, n, seed, iterations=3, rounds=8)
        trees = all_trees(n, "single" if single else "multi")
        values = {tree: score(model, batch, weight, tree) for tree in trees}
        assert values[tuple(found.heads.tolist())] == pytest.approx(found.value, abs=1e-9)
        if found.proved:
            assert found.value == pytest.approx(max(values.values()), abs=1e-9)
            count += 1
        ahead = {tree: lead(weight, found, tree) for tree in (trees[0], trees[-1], tuple(found.heads.tolist()))}
        others = {tree: lead - values[tree] for tree, lead in ahead.items()}  # minus the score of what the heads choose
        assert len(set(others.values())) == 1
    assert count


@pytest.mark.parametrize("order", ABOVE_FIRST)
@pytest.mark.parametrize("grain", [0.0, 1.0])
def test_branching_proves_the_best_of_the_allowed_trees(order, grain):
    forbidden = {(0, 1), (0, 2), (3, 1)}  # word 1 has only the head 2
    trees = [tree for tree in all_trees(3, "multi") if not forbidden & {(h, m) for m, h in enumerate(tree)}]
    unproved = 0
    for seed in range(8):
        model, batch, weight, found = drawn(order, False, 3, seed, forbidden, iterations=1, rounds=1)
        values = {tree: score(model, batch, weight, tree) for tree in trees}
        heads, multipliers = np.full(4, -1), np.zeros_like(found.multipliers)
        rule = (*polyak_rule(1, 2), 50)
        proved, value, bound, _ = crossing.relaxed(found.lattices, found.arc, False, rule, grain, multipliers, heads)
        assert proved
        assert value == values[tuple(heads.tolist())] == max(values.values())
        assert bound == value if grain else bound >= value
        unproved += not found.proved
        rule = (*polyak_rule(1, 1), 0)
        _, value, bound, runs = crossing.relaxed(found.lattices, found.arc, False, rule, grain, multipliers, heads)
        assert value <= max(values.values()) <= bound
        assert runs == 1
    assert unproved


def test_scores_so_large_that_rounding_may_exceed_a_grain_prove_nothing():
    _, _, _, found = drawn(2, False, 3, 0, iterations=1, rounds=1)
    rule = (*polyak_rule(60, 2), 50)
    for scale, sound in ((1.0, True), (2.0**45, False)):
        lattices = found.lattices._replace(weight=found.lattices.weight * scale)
        heads, multipliers = np.full(4, -1), np.zeros_like(found.multipliers)
        run = (False, rule, 1.0, multipliers, heads)
        proved, value, bound, _ = crossing.relaxed(lattices, found.arc * scale, *run)
        assert bool(proved) == sound
        assert bound == value if sound else bound > value


def choices(n, h, single):
    """(g, left modifiers, right modifiers), both innermost first, that head h may choose."""
    for g in [g for g in range(n + 1) if g != h] if h else [-1]:
        others = [m for m in range(1, n + 1) if m not in (g, h)]
        for taken in chain.from_iterable(combinations(others, k) for k in range(len(others) + 1)):
            if h or not single or len(taken) == 1:
                yield g, [m for m in reversed(taken) if m < h], [m for m in taken if m > h]


def value_of(model, words, weight, choice, h):
    """Score of the parts of one head's choice."""
    g, *sides = choice
    index = np.empty(max(t.max_features for t in model.templates), dtype=np.uint64)
    total = 0.0
    for side in sides:
        for k, m in enumerate(side):
            s, t = [*reversed(side[:k]), ABSENT, ABSENT][:2]
            parts = {"hm": (h, m), "hms": (h, m, s)}
            if h:
                parts |= {"hmg": (h, m, g), "hmsg": (h, m, s, g)}
            if k:
                parts["hmst"] = (h, m, s, t)
            for template in model.templates:
                if template.roles in parts:
                    row = np.array(parts[template.roles], dtype=np.int64)
                    count = named_features(words, row, np.uint32(0), template.arrays, BITS, index)
                    total += weight[index[:count]].sum(dtype=np.float64)
    return total


@pytest.mark.parametrize("order", ABOVE_FIRST)
@pytest.mark.parametrize("single", [True, False])
def test_without_iterations_every_head_chooses_its_best_modifiers(order, single):
    model, batch, weight, found = drawn(order, single, 3, 7, iterations=0, rounds=1)
    words = batch.sentence(0)
    best = sum(max(value_of(model, words, weight, choice, h) for choice in choices(3, h, single)) for h in range(4))
    assert not found.proved
    tree = (-1, 0, 1, 1)
    ahead = score(model, batch, weight, tree) - best
    share = 0.01 * abs(float(best))  # of the arcs, which the tree has
    assert lead(weight, found, tree) == pytest.approx(ahead, abs=share)
    assert found.against(np.array(tree))[0] > 0


@pytest.mark.compiled
@pytest.mark.parametrize("iterations", [0, 40])
def test_learning_reaches_trees_with_crossing_arcs(iterations, monkeypatch):
    monkeypatch.setattr("certus.learn.trees.ITERATIONS", iterations)
    rng = np.random.default_rng(0)
    words = [sentence(4, rng) for _ in range(3)]
    trees = [np.array(heads) for heads in ([-1, 3, 0, 2, 2], [-1, 0, 4, 1, 1], [-1, 2, 0, 2, 1])]
    batch = Encoder.of(words).encode(words)
    allowed = ~np.eye(5, dtype=np.bool_)
    allowed[:, 0] = False
    weights = Weights(BITS)
    task = TreeTask(TreeModel(KINDS[3], False, True), batch, trees, lambda s: allowed)
    trainer = Trainer(task, weights, LEARNERS["perceptron"].step, 1)
    errors = [sum(wrong for _, wrong in trainer.epoch(k)) for k in range(12)]
    assert errors[0] > 0
    assert errors[-1] == 0
