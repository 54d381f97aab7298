"""Labels by a linear model and scores from elsewhere: each alone, and both."""

import numpy as np
import pytest

from certus.features.encode import MOST_COARSE, Encoder
from certus.learn.weights import Packed
from certus.models.labels import Labeller
from certus.text import Sentence, Token

HEADS = [[2, 0], [], [0, 1, 1]]
SENTENCES = [
    Sentence([Token(m, f"w{m}", upos="XY"[m % 2], head=h, deprel="a") for m, h in enumerate(heads, start=1)])
    for heads in HEADS
]
START = np.array([0, 3, 4])
FLAT = np.concatenate([sentence.heads for sentence in SENTENCES])


def labeller(weight) -> Labeller:
    seen = np.ones((2, MOST_COARSE + 1, MOST_COARSE + 1, 3), dtype=np.bool_)
    return Labeller(("a", "b", "c"), seen, 8, Packed(weight.astype(np.int8), 1.0))


def sums(model: Labeller, more):
    batch = Encoder.of(SENTENCES, top=3).encode(SENTENCES)
    return batch, model.label(batch, START, FLAT, more)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_added_is_the_linear_model(seed):
    model = labeller(np.random.default_rng(seed).integers(-9, 10, 256))
    batch, found = sums(model, np.zeros((len(FLAT), 3)))
    assert found.tolist() == model.label(batch, START, FLAT).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_more_than_all_weights_decides(seed):
    rng = np.random.default_rng(seed)
    more = rng.permuted(np.tile([0.0, 1e6, 2e6], (len(FLAT), 1)), axis=1)
    _, found = sums(labeller(rng.integers(-9, 10, 256)), more)
    words = FLAT >= 0
    assert found[words].tolist() == more.argmax(axis=1)[words].tolist()
    assert (found[~words] == -1).all()


def test_both_are_added():
    """The linear model is for one label by some weight w: adding more than w to another one turns the choice."""
    model = labeller(np.random.default_rng(4).integers(-9, 10, 256))
    batch, _ = sums(model, np.zeros((len(FLAT), 3)))
    first = model.label(batch, START, FLAT)
    for other in {0, 1, 2} - {int(first[1])}:
        more, turned = np.zeros((len(FLAT), 3)), []
        for amount in (0.0, 0.5, 1e4):
            more[1, other] = amount
            turned.append(sums(model, more)[1][1] == other)
        assert turned == [False, False, True]
