"""Sums over labellings of frames in batches: those of each item alone, however far apart weights lie."""

import numpy as np
import pytest

import certus


def draw(rng, scale, dtype):
    """A batch with lengths of all kinds, forbidden labels, nan in the padding, and targets with equal neighbours."""
    items, frames, labels, most = 6, int(rng.integers(1, 12)), int(rng.integers(2, 5)), int(rng.integers(0, 6))
    blank = int(rng.integers(labels))
    frame = scale * rng.normal(size=(items, frames, labels))
    frame[rng.random(frame.shape) < 0.05] = -np.inf
    lengths = rng.integers(0, frames + 1, items)
    target = np.full((items, most), -1)
    for b in range(items):
        size = rng.integers(0, most + 1)
        target[b, :size] = rng.choice([label for label in range(labels) if label != blank], size)
        frame[b, lengths[b] :] = np.nan
    return certus.CTCBatch(frame.astype(dtype), target, blank, lengths=lengths)


@pytest.mark.parametrize("scale", [1.0, 5.0, 60.0, 400.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_each_item(scale, dtype):
    rng = np.random.default_rng(int(scale))
    close = {"rtol": 1e-12, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-6, "atol": 1e-4}
    for _ in range(15):
        batch = draw(rng, scale, dtype)
        expected = np.array([batch[b].log_partition() for b in range(len(batch))])
        np.testing.assert_allclose(batch.log_partition(), expected, **close)
        if (expected == -np.inf).any():
            with pytest.raises(certus.Infeasible, match=f"item {expected.argmin()} of the batch"):
                batch.marginals()
            continue
        total, marginals = batch.log_partition_and_marginals()
        np.testing.assert_allclose(total, expected, **close)
        assert marginals["frames"].dtype == dtype
        for b, n in enumerate(batch.lengths.tolist()):
            own = batch[b].marginals()["frames"]
            np.testing.assert_allclose(marginals["frames"][b, :n], own, atol=1e-10 if dtype == np.float64 else 1e-6)
            assert not marginals["frames"][b, n:].any()


@pytest.mark.parametrize("frames", [3, 40])
def test_the_best_labelling_may_be_hidden_behind_better_beginnings(frames):
    """What leads to the end is far below what does not, at every frame."""
    frame = np.zeros((1, frames, 3))
    frame[0, :, 0] = 300.0
    target = np.array([[1, 2] * (frames // 2) + [1] * (frames % 2)])
    frame[0, -1, 1:] = -900.0
    batch = certus.CTCBatch(frame, target)
    assert batch.log_partition()[0] == pytest.approx(batch[0].log_partition(), rel=1e-13)
    np.testing.assert_allclose(batch.marginals()["frames"][0], batch[0].marginals()["frames"], atol=1e-12)


def test_what_is_wrong_is_named():
    frame = np.zeros((2, 3, 3))
    frame[1, 2, 1] = np.nan
    with pytest.raises(certus.InvalidInput, match=r"item 1 of the batch: frame\[2, 1\] is nan"):
        certus.CTCBatch(frame, [[1], [1]]).log_partition()
    with pytest.raises(certus.InvalidInput, match=r"item 1 of the batch: target\[0\] is 3"):
        certus.CTCBatch(frame, [[1], [3]])
    with pytest.raises(certus.InvalidInput, match=r"item 0 of the batch: target\[0\] is -1"):
        certus.CTCBatch(frame, [[-1, 1], [1, -1]])
    with pytest.raises(certus.InvalidInput, match="blank is 3"):
        certus.CTCBatch(frame, [[1], [1]], 3)
