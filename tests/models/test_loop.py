"""The training loop, with a trainer that only counts."""

from time import sleep

import numpy as np
import pytest

from certus.errors import FormatError, InvalidInput
from certus.learn.weights import Weights
from certus.models.checkpoints import Checkpoint
from certus.models.loop import Stage, Training


class Counter:
    """Sets every weight to the number of epochs it has seen, as after a step each."""

    def __init__(self, weights):
        self.weights, self.objective = weights, None

    def epoch(self, number):
        self.weights.value += 1.0
        self.weights.total += self.weights.clock
        self.weights.clock += 1.0
        self.objective = float(number)
        yield 3, 1.0
        yield 5, 1.0


def trained(scores, *, patience=2, forget=False):
    """The weight that is kept, the epochs that were reported and what was said."""
    said, seen = [], []
    training = Training(
        {"one": Stage(lambda: Weights(2), len(scores), patience, forget)}, progress=seen.append, say=said.append
    )
    left = iter(scores)
    weight = training.run("one", Counter, (lambda weight: next(left)) if any(scores) else None)
    assert (weight == weight[0]).all()
    return float(weight[0]), seen, said


def test_without_dev_the_last_average_is_kept():
    weight, seen, said = trained([0.0] * 4)
    assert weight == np.mean([0, 1, 2, 3, 4])
    assert [(e.epoch, e.epochs, e.words, e.wrong, e.errors, e.loss, e.score) for e in seen[:2]] == [
        (1, 4, 8, 2.0, 0.25, 0.0, None),
        (2, 4, 8, 2.0, 0.25, 1.0, None),
    ]
    assert (len(seen), said) == (4, [])


def test_with_dev_the_best_average_is_kept_and_the_rest_is_not_waited_for():
    weight, seen, said = trained([0.5, 0.9, 0.9, 0.8, 1.0, 1.0])
    assert weight == np.mean([0, 1, 2])
    assert [epoch.score for epoch in seen] == [0.5, 0.9, 0.9, 0.8]
    assert said == ["one: stopped after epoch 4; dev was best after epoch 2, which is kept."]


def test_averages_begin_anew_after_some_epochs():
    assert trained([0.0] * 5, forget=True)[0] == np.mean([3, 4, 5])


def test_a_stage_has_an_epoch_at_least():
    with pytest.raises(InvalidInput, match="epochs is 0"):
        Stage(lambda: Weights(2), 0)


def test_what_is_done_is_not_trained_again(tmp_path):
    stages = {name: Stage(lambda: Weights(2), epochs) for name, epochs in (("one", 1), ("two", 2))}
    file = Checkpoint(tmp_path / "state", "toy checkpoint", "toy")
    first = Training(stages, file)
    weights = [first.run(name, Counter) for name in stages]
    again = Training(stages, file)
    again.restore()

    def refuse(weights):
        raise AssertionError("trained again")

    assert np.array_equal([again.run(name, refuse) for name in stages], weights)
    with pytest.raises(FormatError, match="other training data"):
        Training(stages, Checkpoint(tmp_path / "state", "toy checkpoint", "other")).restore()
    with pytest.raises(InvalidInput, match="no checkpoint was named"):
        Training(stages).restore()


class Slow(Counter):
    """Lets others go on after every pass, so that stages on threads are mixed."""

    def epoch(self, number):
        yield from super().epoch(number)
        sleep(0.002)


def side_by_side(path, workers, *, stop_at=None, resume=False):
    """Weights of three stages, two of them with dev, trained side by side; Stopped after so many epochs in all."""
    seen = []

    def progress(epoch):
        seen.append((epoch.stage, epoch.epoch))
        if len(seen) == stop_at:
            raise KeyboardInterrupt

    stages = {name: Stage(lambda: Weights(2), 3 + k, 2) for k, name in enumerate(("one", "two", "three"))}
    training = Training(stages, Checkpoint(path, "toy checkpoint", "toy"), progress=progress)
    if resume:
        training.restore()
    scores = {name: lambda weight: 1.0 - abs(float(weight[0]) - 0.5) for name in ("one", "three")}
    return training.run_each(dict.fromkeys(stages, Slow), workers, scores), seen


@pytest.mark.parametrize("stop_at", range(1, 10))
def test_stages_side_by_side_give_the_same_weights_also_when_resumed(tmp_path, stop_at):
    alone, epochs = side_by_side(tmp_path / "alone", 1)
    together, others = side_by_side(tmp_path / "together", 3)
    assert np.array_equal(alone, together)
    assert sorted(epochs) == sorted(others)
    for workers in (1, 3):
        path = tmp_path / f"stopped {workers}"
        with pytest.raises(KeyboardInterrupt):
            side_by_side(path, workers, stop_at=stop_at)
        again, _ = side_by_side(path, 4 - workers, resume=True)
        assert np.array_equal(alone, again)
