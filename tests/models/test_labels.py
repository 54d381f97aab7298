"""Labels of finished trees: the best of all assignments, learnt from trees, and what they are learnt for."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from certus.features.encode import Encoder
from certus.features.templates import LABEL, LABEL_PAIR
from certus.learn.weights import Packed
from certus.models.explain import features_of
from certus.models.labels import LabelTrainer
from certus.text import Sentence, Token

pytestmark = pytest.mark.compiled

ABSENT = -2
BEFORE = 0xD6E8FEB86659FD93
TREES = [[0], [0, 1], [2, 0, 2], [2, 0, 2, 2], [0, 1, 1, 1], [3, 3, 0, 3, 4], [0, 1, 2, 3]]


def sentence(heads: list[int], seed: int) -> Sentence:
    """Words of two tags; under each head the labels a and b take turns, and a third marks the root."""
    rng = np.random.default_rng(seed)
    seen: dict[int, int] = {}
    tokens = []
    for m, h in enumerate(heads, start=1):
        seen[h] = seen.get(h, 0) + 1
        label = "root" if h == 0 else "ab"[seen[h] % 2]
        word, tag = f"w{rng.integers(3)}", "XY"[rng.integers(2)]
        tokens.append(Token(m, word, "_", tag, tag, "_", h, label))
    return Sentence(tokens)


TREEBANK = [sentence(heads, seed) for seed in range(6) for heads in TREES]


@pytest.fixture(scope="module")
def trained():
    batch = Encoder.of(TREEBANK, clusters={}, top=10).encode(TREEBANK)
    trees, labels = [s.heads for s in TREEBANK], [[t.deprel for t in s] for s in TREEBANK]
    trainer = LabelTrainer(batch, trees, labels, bits=12, seed=1)
    errors = [sum(wrong for _, wrong in trainer.epoch(k)) for k in range(12)]
    return batch, trainer, errors


@pytest.mark.parametrize("learner", ["perceptron", "adagrad"])
def test_every_online_learner_learns_labels(trained, learner):
    batch, other, _ = trained
    trees, labels = [s.heads for s in TREEBANK], [[t.deprel for t in s] for s in TREEBANK]
    trainer = LabelTrainer(batch, trees, labels, bits=12, seed=1, learner=learner)
    for k in range(12):
        list(trainer.epoch(k))
    found = labels_of(trainer.labeller(trainer.weights.averaged()), batch)
    assert all((own == gold).all() for own, gold in zip(found, other.gold, strict=True))


def labels_of(labeller, batch):
    start = np.cumsum(batch.length + 1) - batch.length - 1
    heads = np.concatenate([s.heads for s in TREEBANK])
    return np.split(labeller.label(batch, start, heads), start[1:])


def test_what_the_neighbour_has_can_be_learnt(trained):
    batch, trainer, errors = trained
    found = labels_of(trainer.labeller(trainer.weights.averaged()), batch)
    assert errors[-1] < errors[0]
    assert all((own == gold).all() for own, gold in zip(found, trainer.gold, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_the_labels_are_the_best_of_all(trained, seed):
    batch, trainer, _ = trained
    rng = np.random.default_rng(seed)
    weight = rng.integers(-8, 9, 1 << 12).astype(np.float32)
    weight[0] = 127.0  # so that the unit is 1
    labeller = replace(trainer.labeller(trainer.weights.averaged()), weight=Packed.of(weight))
    assert labeller.weight.unit == 1.0
    for s, found in list(enumerate(labels_of(labeller, batch)))[:: len(TREES) - 1]:
        heads = TREEBANK[s].heads.tolist()
        assert found[0] == -1
        best = max(product(*allowed(labeller, batch, s, heads)), key=lambda y: total(labeller, batch, s, heads, y))
        assert total(labeller, batch, s, heads, found[1:].tolist()) == total(labeller, batch, s, heads, best)


def allowed(labeller, batch, s, heads):
    """The labels of each word that come into question."""
    tags = batch.coarse[batch.base[s] :]
    seen = [labeller.seen[int(heads[m] < m), tags[heads[m]], tags[m]] for m in range(1, len(heads))]
    return [np.flatnonzero(some if some.any() else ~some).tolist() for some in seen]


def total(labeller, batch, s, heads, labels):
    """Sum of the weights of the features of all words and of neighbouring modifiers, one by one."""
    size, result = 1 << labeller.bits, 0.0
    weight = labeller.weight.floats

    def cell(feature, before, label):
        return min((feature + (before + 1) * BEFORE) % size, size - 16) + label  # rows are read 16 labels at a time

    for m, label in enumerate(labels, start=1):
        h = heads[m]
        below = [k for k in range(1, len(heads)) if heads[k] == m] or [ABSENT]
        row = [h, m, heads[h] if h else ABSENT, below[0], below[-1]]
        index = features_of(batch, s, np.array(row), LABEL, labeller.bits).tolist()
        result += sum(weight[cell(i, -1, label)] for i in index)
        before = [k for k in range(1, m) if heads[k] == h]
        if before:
            index = features_of(batch, s, np.array([h, m, before[-1]]), LABEL_PAIR, labeller.bits).tolist()
            result += sum(weight[cell(i, labels[before[-1] - 1], label)] for i in index)
    return result
