"""Tree models: the best tree is the best of all, and learning reaches trees that can be learned."""

from itertools import product

import numpy as np
import pytest

from certus.features import templates as T
from certus.features.encode import Encoder
from certus.kernels import parser as kernel
from certus.kernels import parts as part_kernels
from certus.kernels.features import ABSENT, named_features
from certus.learn.learners import LEARNERS, online
from certus.learn.trees import Trainer, TreeModel, TreeTask, arc_scores, projectivised
from certus.learn.weights import Step, Weights
from certus.text import Sentence, Token
from tests.oracles.trees import all_trees, is_projective, projective_trees

BITS = 16
KINDS = {
    1: (T.ARC,),
    "siblings": (T.ARC, T.SIBLING),
    2: (T.ARC, T.SIBLING, T.GRANDPARENT),
    3: (T.ARC, *(T.with_names(kind) for kind in (T.SIBLING, T.GRANDPARENT, T.GRANDSIBLING))),
    "trisiblings": (T.ARC, T.SIBLING, T.Templates("hmg", ()), T.Templates("hmsg", ()), T.TRISIBLING),
    "all": (
        T.ARC,
        *(T.with_names(kind) for kind in (T.SIBLING, T.GRANDPARENT, T.GRANDSIBLING, T.TRISIBLING)),
    ),
}


def sentence(n, rng):
    tags = ["NOUN", "VERB", "DET"]
    return Sentence([Token(i, f"w{rng.integers(9)}", f"l{i}", tags[rng.integers(3)]) for i in range(1, n + 1)])


def parts(heads):
    """The parts of every word, by the roles of their templates."""
    n = len(heads) - 1
    for m in range(1, n + 1):
        h = heads[m]
        side = [v for v in (range(m + 1, h) if m < h else range(m - 1, h, -1)) if heads[v] == h]
        s, t = [*side, ABSENT, ABSENT][:2]
        yield "hm", (h, m)
        yield "hms", (h, m, s)
        if h > 0:
            yield "hmg", (h, m, heads[h])
            yield "hmsg", (h, m, s, heads[h])
        if s != ABSENT:
            yield "hmst", (h, m, s, t)


def score(model, batch, weight, heads, name=None, known=None):
    """Sum of the weights of a tree's features; ``known`` keeps the sums of parts from tree to tree."""
    name = np.zeros((len(heads), len(heads)), dtype=np.uint32) if name is None else name
    known = {} if known is None else known
    total = 0.0
    for part in parts(heads):
        if part not in known:
            known[part] = part_score(model, batch, weight, *part, name)
        total += known[part]
    return total


def part_score(model, batch, weight, roles, part, name):
    by_roles = {t.roles: t for t in model.templates}
    if roles not in by_roles or not by_roles[roles].lines:
        return 0.0
    at = dict(zip(roles, part, strict=True))
    pairs = (("h", "m", 1), ("h", "s", 0x85EBCA77), ("h", "t", 0x27D4EB2F), ("g", "h", 0xC2B2AE3D))
    found = [(at.get(a, ABSENT), at.get(b, ABSENT), factor) for a, b, factor in pairs]
    names = sum(int(name[a, b]) * factor for a, b, factor in found if ABSENT not in (a, b)) % 2**32
    index = np.empty(by_roles[roles].max_features, dtype=np.uint64)
    row = np.array(part, dtype=np.int64)
    count = named_features(batch.sentence(0), row, np.uint32(names), by_roles[roles].arrays, BITS, index)
    return weight[index[:count]].sum(dtype=np.float64)


def random_names(n, rng):
    return rng.integers(0, 2**32, (n + 1, n + 1), dtype=np.uint32)


@pytest.mark.parametrize("order", KINDS)
@pytest.mark.parametrize("single", [True, False])
def test_the_best_tree_above_first_order_is_the_best_of_all(order, single):
    rng = np.random.default_rng(7)
    model = TreeModel(KINDS[order], True, single)
    weight = rng.integers(-8, 9, 1 << BITS).astype(np.float32)
    for n in (1, 2, 3, 4, 5, 5):
        batch = Encoder(("NOUN", "VERB", "DET")).encode([sentence(n, rng)])
        allowed = rng.random((n + 1, n + 1)) < 0.8
        allowed[:, 0] = False
        np.fill_diagonal(allowed, False)
        every = projective_trees(n, "single" if single else "multi")
        trees = [heads for heads in every if all(allowed[heads[m], m] for m in range(1, n + 1))]
        words, linear = batch.sentence(0), model.weighted(BITS, weight)
        arc = arc_scores(words, allowed, linear._replace(templates=linear.templates[0]))
        heads = np.empty(n + 1, dtype=np.int64)
        name = random_names(n, rng)
        value = kernel.best_above_first(words, name, arc, allowed, single, linear, heads)
        if not trees:
            assert value == -np.inf
            continue
        rows = part_kernels.tree_parts(heads).reshape(-1, 5)
        rows = rows[rows[:, 0] != part_kernels.NO_PART]
        scores = np.empty(len(rows))
        double = linear._replace(weight=weight.astype(np.float64))  # as learners have them: one kernel less to compile
        part_kernels.score_parts(words, name, double, rows, scores)
        assert scores.sum() == value
        known = {}
        assert value == max(score(model, batch, weight, tree, name, known) for tree in trees)
        assert value == score(model, batch, weight, tuple(heads.tolist()), name, known)


@pytest.mark.parametrize("order", KINDS)
def test_differences_are_the_features_of_the_parts_that_differ(order):
    rng = np.random.default_rng(11)
    model = TreeModel(KINDS[order], True, True)
    n = 5
    batch = Encoder(("NOUN", "VERB", "DET")).encode([sentence(n, rng)])
    weight = rng.integers(-8, 9, 1 << BITS).astype(np.float32)
    out = np.empty((2, n * model.max_features), dtype=np.uint64)
    trees = [np.array(heads) for heads in projective_trees(n)]
    name = random_names(n, rng)
    for _ in range(12):
        a, b = (trees[rng.integers(len(trees))] for _ in range(2))
        linear = model.weighted(BITS, weight)
        n_plus, n_minus = part_kernels.differences(batch.sentence(0), name, linear, a, b, out)
        net = weight[out[0, :n_plus]].sum(dtype=np.float64) - weight[out[1, :n_minus]].sum(dtype=np.float64)
        assert net == score(model, batch, weight, a, name) - score(model, batch, weight, b, name)


@pytest.mark.parametrize("learner", online())
@pytest.mark.parametrize(("order", "projective"), [(1, True), (1, False), (3, True)])
def test_training_reaches_trees_that_can_be_learned(learner, order, projective):
    rng = np.random.default_rng(5)
    sentences = [sentence(int(rng.integers(1, 6)), rng) for _ in range(6)]
    batch = Encoder(("NOUN", "VERB", "DET")).encode(sentences)
    trees = [np.array([-1, *range(len(s))]) for s in sentences]  # chains: each word's head is the word before it
    model = TreeModel(KINDS[order], projective, True)
    step = LEARNERS[learner].step
    trainer = Trainer(TreeTask(model, batch, trees, lambda s: all_arcs(len(trees[s]) - 1)), Weights(BITS), step, 1)
    for epoch in range(12):
        list(trainer.epoch(epoch))
    # The perceptron guesses without a margin: one more epoch counts what is still wrong.
    trainer.step = LEARNERS["perceptron"].step
    assert sum(wrong for _, wrong in trainer.epoch(12)) == 0


def all_arcs(n):
    allowed = ~np.eye(n + 1, dtype=np.bool_)
    allowed[:, 0] = False
    return allowed


def test_averaged_weights_are_the_mean_of_all_steps():
    weights = Weights(4)
    seen = []
    rng = np.random.default_rng(2)
    for _ in range(6):
        plus, minus = rng.integers(0, 16, (2, 3)).astype(np.uint64)
        seen.append(weights.value.copy())
        weights.move(plus, minus, 1.0, Step(0.5))
        weights.clock += 1.0
    seen.append(weights.value.copy())
    np.testing.assert_allclose(weights.averaged(), np.mean(seen, axis=0), atol=1e-6)


def test_projectivised_keeps_most_arcs():
    for n, root in product((1, 2, 3, 4), ("single", "multi")):
        projective = [np.array(heads) for heads in projective_trees(n, root)]
        for heads in all_trees(n, root):
            if root == "multi" and heads.count(0) == 1:
                continue
            found = projectivised(np.array(heads))
            assert is_projective(found.tolist())
            assert (found == heads).sum() == max((tree == heads).sum() for tree in projective)
