"""Labels folded into arcs: against numpy, for any number of labels, types of numbers, padding and forbidden cells."""

import numpy as np
import pytest
from scipy.special import logsumexp

import certus
from certus.dependency.label_folds import fold_labels, folded

LENGTHS = np.array([3, 0, 1, 2])


def draw(labels, dtype, seed=0):
    """Scores with forbidden labels, an arc without any, and nan in all cells that are not read; which ones are."""
    rng = np.random.default_rng(seed)
    label = rng.normal(0.0, 30.0, size=(4, 4, 4, labels))
    label[rng.random(label.shape) < 0.2] = -np.inf
    label[0, 1, 2] = -np.inf
    read = np.zeros((4, 4, 4), dtype=bool)
    for b, n in enumerate(LENGTHS):
        read[b, : n + 1, 1 : n + 1] = ~np.eye(4, dtype=bool)[: n + 1, 1 : n + 1]
    label[~read] = np.nan
    return label.astype(dtype), read


@pytest.mark.parametrize("labels", [1, 2, 7, 8, 9, 15, 16, 21])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_folds_are_those_of_numpy(labels, dtype):
    label, read = draw(labels, dtype)
    wide = np.where(read[..., None], label, -np.inf).astype(np.float64)
    best = folded(label, LENGTHS, summed=False)
    np.testing.assert_array_equal(best.arc, wide.max(axis=3))
    found = folded(label, LENGTHS, summed=True, entropies=True, shares=True)
    np.testing.assert_allclose(found.arc, logsumexp(wide, axis=3), rtol=1e-14)
    total = logsumexp(wide, axis=3, keepdims=True)
    share = np.exp(wide - np.where(total > -np.inf, total, 0.0))
    assert found.share.dtype == dtype
    np.testing.assert_allclose(found.share, share, rtol=1e-12 if dtype == np.float64 else 1e-6, atol=1e-37)
    np.testing.assert_allclose(
        found.entropy, -np.sum(share * np.log(np.where(share > 0, share, 1.0)), axis=3), atol=1e-13
    )


def test_a_fold_of_one_sentence():
    scores = np.random.default_rng(0).normal(size=(3, 3, 12))
    arc, given = fold_labels(scores)
    assert (arc[:, 0] == -np.inf).all()
    assert arc[2, 1] == pytest.approx(logsumexp(scores[2, 1]))
    np.testing.assert_allclose(given[2, 1], np.exp(scores[2, 1] - arc[2, 1]))


@pytest.mark.parametrize("labels", [2, 11])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_label_that_is_no_score_is_named(labels, bad):
    label = np.zeros((2, 3, 3, labels))
    label[1, 2, 1, labels - 1] = bad
    batch = certus.LabelledDependencyBatch(label)
    for ask in (batch.decode, batch.marginals, batch.entropy, batch.log_partition, lambda: batch.sample(1)):
        with pytest.raises(certus.InvalidInput, match=rf"label\[1, 2, 1, {labels - 1}\] is {bad}"):
            ask()
    assert certus.LabelledDependencyBatch(label, lengths=[2, 1]).decode().certificate.exact.all()
