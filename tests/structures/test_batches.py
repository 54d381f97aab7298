"""A batch gives what its items give one by one, in padded arrays, for every question and kind."""

import numpy as np
import pytest

import certus
from certus import Infeasible, InvalidInput

RNG = np.random.default_rng(5)


def whole(*shape):
    return RNG.integers(-4, 5, shape).astype(float)


def padded(scores, lengths, axes=1):
    """The scores with nan in the padding."""
    out = scores.copy()
    for b, length in enumerate(lengths):
        for axis in range(axes):
            out[b].swapaxes(0, axis)[length + (axes == 2) :] = np.nan
    return out


LENGTHS = [4, 0, 2, 3]
MADE = {
    "tagging": lambda: certus.TaggingBatch(padded(whole(4, 4, 3), LENGTHS), whole(3, 3), lengths=LENGTHS),
    "crossing trees": lambda: certus.DependencyBatch(padded(whole(4, 5, 5), LENGTHS, 2), lengths=LENGTHS),
    "projective trees": lambda: certus.DependencyBatch(
        padded(whole(4, 5, 5), LENGTHS, 2), lengths=LENGTHS, projective=True
    ),
    "segmentation": lambda: certus.SegmentationBatch(padded(whole(4, 4, 2, 2), LENGTHS), whole(2, 2), lengths=LENGTHS),
    "own transitions": lambda: certus.SegmentationBatch(whole(4, 4, 2, 2), whole(4, 2, 2), lengths=LENGTHS),
    "span trees": lambda: certus.SpanTreesBatch(padded(whole(4, 5, 5), LENGTHS, 2), lengths=LENGTHS),
    "any shape": lambda: certus.SpanTreesBatch(padded(whole(4, 5, 5, 2), LENGTHS, 2), 1, lengths=LENGTHS),
    "spanning tree": lambda: certus.SpanningTreeBatch(
        (lambda a: a + a.swapaxes(1, 2))(whole(4, 4, 4)), lengths=LENGTHS
    ),
    "graphs": lambda: certus.DependencyGraphBatch(
        padded(whole(4, 4, 4), [3, 0, 2, 1], 2), coparent=whole(4, 4, 4, 4), lengths=[3, 0, 2, 1]
    ),
    "grammar": lambda: certus.AnchoredGrammarBatch(
        whole(2), whole(4, 2, 3, 3), padded(whole(4, 4, 1), [4, 2, 2, 3]), lengths=[4, 2, 2, 3]
    ),
    "alignment": lambda: certus.AlignmentBatch(whole(4, 5, 4, 3), lengths=LENGTHS, second_lengths=[3, 2, 0, 1]),
    "ctc": lambda: certus.CTCBatch(
        padded(whole(4, 4, 3), LENGTHS), [[1, 2], [-1, -1], [1, -1], [2, 2]], lengths=LENGTHS, workers=2
    ),
}


def rows(structure):
    return np.array(structure, dtype=np.int64)


@pytest.mark.parametrize("name", MADE)
def test_a_batch_gives_what_its_items_give(name):
    batch = MADE[name]()
    items = [batch[b] for b in range(len(batch))]
    best, ranks, drawn = batch.decode(), batch.kbest(3), batch.sample(5, seed=1)
    assert best.structure.shape == (4, *batch.structure_shape)
    assert ranks.structure.shape == (4, 3, *batch.structure_shape)
    assert drawn.shape == (4, 5, *batch.structure_shape)
    np.testing.assert_array_equal(batch.sample(5, seed=1), drawn)
    assert best.certificate.exact.all()
    np.testing.assert_array_equal(batch.score(best.structure), best.score)
    np.testing.assert_array_equal(batch.score(ranks.structure[:, 0]), ranks.score[:, 0])
    total, marginals = batch.log_partition_and_marginals()
    np.testing.assert_allclose(batch.log_partition(), total)
    asked = {"marginals": (marginals, 0.0), "max_marginals": (batch.max_marginals(), -np.inf)}
    for b, item in enumerate(items):
        assert best.score[b] == item.decode().score
        certus.verify(item, best[b])
        alone = item.kbest(3)
        assert [r.score for r in ranks[b]] == [r.score for r in alone]
        assert ranks.score[b, : len(alone)].tolist() == [r.score for r in alone]
        assert ranks.exact[b].sum() == len(alone)
        for structure in drawn[b]:
            assert item.score(batch._unpadded(structure, b)) > -np.inf
        assert total[b] == pytest.approx(item.log_partition())
        assert batch.entropy()[b] == pytest.approx(item.entropy(), abs=1e-9)
        for question, (found, rest) in asked.items():
            for view, values in getattr(item, question)().items():
                corner = tuple(map(slice, values.shape))
                np.testing.assert_allclose(found[view][b][corner], values, atol=1e-12)
                outside = found[view][b].copy()
                outside[corner] = rest
                assert (outside == rest).all()


@pytest.mark.parametrize("name", ["tagging", "crossing trees", "projective trees", "span trees"])
def test_answers_have_the_type_of_the_scores(name):
    kind, scores = {
        "tagging": (certus.TaggingBatch, whole(2, 4, 3)),
        "span trees": (certus.SpanTreesBatch, whole(2, 4, 4)),
    }.get(name, (lambda s: certus.DependencyBatch(s, projective=name.startswith("proj")), whole(2, 4, 4)))
    for dtype in (np.float32, np.float64):
        batch = kind(scores.astype(dtype))
        view = next(iter(batch.views))
        answers = [batch.log_partition(), batch.entropy(), batch.marginals()[view], batch.max_marginals()[view]]
        answers += [batch.score(batch.decode().structure), batch.log_partition_and_marginals()[0]]
        assert {answer.dtype for answer in answers} == {np.dtype(dtype)}


def test_a_mask_is_lengths():
    scores = whole(2, 3, 2, 1)
    batch = certus.SegmentationBatch(scores, mask=[[True, True, False], [True, True, True]])
    assert batch.lengths.tolist() == [2, 3]
    with pytest.raises(InvalidInput, match=r"mask\[1\] is true after it was false"):
        certus.SegmentationBatch(scores, mask=[[True, True, False], [True, False, True]])
    with pytest.raises(InvalidInput, match="expected one of them"):
        certus.TaggingBatch(whole(2, 3, 2), lengths=[1, 1], mask=np.ones((2, 3), dtype=bool))


def test_errors_name_the_item():
    frame = np.zeros((2, 3, 3))
    with pytest.raises(Infeasible, match="item 1 of the batch"):
        certus.CTCBatch(frame, [[1, 2], [1, 1]], lengths=[3, 2]).decode()
    with pytest.raises(InvalidInput, match="item 0 of the batch"):
        certus.CTCBatch(frame, [[0, 2], [1, 1]]).decode()
    with pytest.raises(InvalidInput, match="3 axes"):
        certus.CTCBatch(frame[0], [[1]])


def test_an_empty_batch():
    batch = certus.SpanTreesBatch(np.zeros((0, 4, 4)))
    assert batch.decode().structure.shape == (0, 5, 2)
    assert batch.kbest(2).score.shape == (0, 2)
    assert batch.sample(2).shape == (0, 2, 5, 2)
    assert batch.entropy().shape == (0,)
