"""A batch gives what its items give one by one."""

import numpy as np
import pytest

from certus import Infeasible, InvalidInput, TaggingBatch


def random_batch(seed, *, items=7, n=5, size=3, order=3, boundary=True, per_position=False, forbid=0.0, **options):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, n + 1, items)
    lengths[0] = n
    side = size + boundary

    def draw(*shape):
        return np.where(rng.random(shape) < forbid, -np.inf, rng.integers(-8, 9, shape).astype(float))

    unary = draw(items, n, size)
    tables = [draw(*[side] * k) if order >= k else None for k in (2, 3)]
    if per_position:
        tables = [table if table is None else draw(items, n + boundary, *table.shape) for table in tables]
    for j, length in enumerate(lengths):  # what is not read may hold anything
        unary[j, length:] = np.nan
        if per_position:
            for k, table in enumerate(tables, 2):
                if table is not None:
                    table[j, length + boundary :] = np.nan
                    table[j, : 0 if boundary else k - 1] = np.nan
    return TaggingBatch(unary, *tables, lengths=lengths, **options)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("per_position", [False, True])
def test_batch_equals_its_items(order, boundary, per_position, workers):
    for seed in range(4):
        batch = random_batch(seed, order=order, boundary=boundary, per_position=per_position, workers=workers)
        items = [batch[j] for j in range(len(batch))]
        result = batch.decode()
        assert result.score.tolist() == [item.decode().score for item in items]
        assert result.certificate.exact.all()
        for j, item in enumerate(items):
            np.testing.assert_array_equal(result.structure[j, : item.n], item.decode().structure)
            assert (result.structure[j, item.n :] == -1).all()
            marginals = batch.marginals()["tags"][j]
            np.testing.assert_allclose(marginals[: item.n], item.marginals()["tags"], atol=1e-12)
            assert not marginals[item.n :].any()
            np.testing.assert_array_equal(batch.max_marginals()["tags"][j, : item.n], item.max_marginals()["tags"])
        # Sums are scaled by the largest score of a table, which may lie in another item.
        np.testing.assert_allclose(batch.log_partition(), [item.log_partition() for item in items], atol=1e-12)
        np.testing.assert_allclose(batch.entropy(), [item.entropy() for item in items], atol=1e-12)


@pytest.mark.parametrize(("far", "forbidden"), [(1.0, False), (1.0, True), (500.0, False), (500.0, True)])
def test_sums_over_chains_are_those_of_an_enumeration(far, forbidden):
    """Scores of all sizes: weights that lie too far apart for plain numbers are added up as logarithms."""
    rng = np.random.default_rng(3)
    unary, bigram, lengths = far * rng.normal(size=(3, 4, 3)), rng.normal(size=(3, 3)), [4, 0, 3]
    unary[0, 1:3, 2] = unary[2, 0, :2] = -np.inf
    if forbidden:
        bigram[0, 1] = -np.inf
    batch = TaggingBatch(unary, bigram, lengths=lengths)
    total, found = batch.log_partition_and_marginals()
    for b in range(3):
        expected, every = np.zeros((4, 3)), list(batch[b].all_structures())
        score = np.array([batch[b].score(y) for y in every])
        assert total[b] == pytest.approx(np.logaddexp.reduce(score), rel=1e-12)
        for tags, chance in zip(every, np.exp(score - total[b]), strict=True):
            expected[range(lengths[b]), list(tags)] += chance
        np.testing.assert_allclose(found["tags"][b], expected, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_items_side_by_side_have_the_sums_that_they_have_alone(size):
    """To the last bit, whatever stands beside them, in the padding, or is forbidden."""
    rng = np.random.default_rng(size)
    lengths = np.array([5, 3, 0, 1, 5, 2, 4, 5, 1, 5, 3])
    unary, bigram = 3.0 * rng.normal(size=(11, 5, size)), rng.normal(size=(size, size))
    unary[4, 2:4, 1:] = unary[8, 0, 1:] = -np.inf
    for b, n in enumerate(lengths):
        unary[b, n:] = np.nan
    total, uses = TaggingBatch(unary, bigram, lengths=lengths).part_sums()
    for b, n in enumerate(lengths):
        one = TaggingBatch(unary[b : b + 1], bigram, lengths=lengths[b : b + 1])
        alone, found = one.part_sums()
        assert total[b] == alone[0]
        assert (uses["unary"][b] == found["unary"][0]).all()
        assert (uses["bigram"][b] == found["bigram"][0]).all()
        assert total[b] == pytest.approx(one[0].log_partition(), rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(uses["unary"][b, :n], one[0].marginals()["tags"], atol=1e-12)
        assert not uses["unary"][b, n:].any()
        expected = np.zeros((size, size))
        for tags in one[0].all_structures() if n and size < 6 else ():
            np.add.at(expected, (tags[:-1], tags[1:]), np.exp(one[0].score(tags) - total[b]))
        if size < 6:
            np.testing.assert_allclose(uses["bigram"][b], expected, atol=1e-12)


def test_an_item_without_sequences_leaves_those_beside_it_alone():
    unary, bigram = np.random.default_rng(1).normal(size=(9, 4, 3)), np.zeros((3, 3))
    expected, _ = TaggingBatch(unary, bigram).part_sums()
    unary[6, 2] = -np.inf
    total, uses = TaggingBatch(unary, bigram).part_sums()
    assert total[6] == -np.inf
    assert not uses["unary"][6].any()
    assert not uses["bigram"][6].any()
    assert (np.delete(total, 6) == np.delete(expected, 6)).all()
    assert np.isfinite(uses["unary"]).all()


def test_infeasible_item_is_named():
    unary = np.zeros((3, 4, 2))
    unary[1, 2] = -np.inf
    with pytest.raises(Infeasible, match="item 1 of the batch: position 2 has no tag"):
        TaggingBatch(unary).decode()
    assert TaggingBatch(unary, lengths=[4, 2, 4]).decode().score.tolist() == [0, 0, 0]


def test_no_items_and_no_positions():
    assert TaggingBatch(np.zeros((0, 4, 2))).decode().structure.shape == (0, 4)
    assert TaggingBatch(np.zeros((2, 0, 2)), bigram=np.ones((3, 3))).decode().score.tolist() == [1, 1]


def test_wrong_input_is_named():
    with pytest.raises(InvalidInput, match="expected"):
        TaggingBatch(np.zeros((3, 2)))
    with pytest.raises(InvalidInput, match=r"lengths\[1\] is 5; expected 0..4"):
        TaggingBatch(np.zeros((2, 4, 2)), lengths=[4, 5])
    with pytest.raises(InvalidInput, match="whole numbers"):
        TaggingBatch(np.zeros((2, 4, 2)), lengths=[4.0, 3.0])
    with pytest.raises(InvalidInput, match=r"unary\[1, 3, 0\] is nan"):
        TaggingBatch(np.where(np.arange(16).reshape(2, 4, 2) == 14, np.nan, 0.0))
    with pytest.raises(InvalidInput, match=r"bigram has shape \(2, 5, 2, 2\).*\(2, 4, 2, 2\)"):
        TaggingBatch(np.zeros((2, 4, 2)), bigram=np.zeros((2, 5, 2, 2)))
    with pytest.raises(InvalidInput, match="workers"):
        TaggingBatch(np.zeros((2, 4, 2)), workers=0)


def test_repr_counts_the_exact_ones():
    assert repr(random_batch(0).decode()) == "BatchResult(7 items, 7 exact)"


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_expected_uses_of_tables_are_those_of_the_items(order, per_position, boundary):
    rng, lengths, side = np.random.default_rng(order), [3, 0, 1], 3 + boundary
    shape = (3, 3 + boundary) if per_position else ()
    tables = [rng.normal(size=(*shape, *(side,) * k)) for k in range(2, order + 1)]
    batch = TaggingBatch(rng.normal(size=(3, 3, 3)), *tables, lengths=lengths)
    found = batch.part_marginals()
    assert list(found) == ["unary", "bigram", "trigram"][:order]
    for kind, scores in zip(found, [batch.unary, *tables], strict=True):
        own_axis = kind == "unary" or per_position
        assert found[kind].shape == (3, *scores.shape[own_axis:])
        for b in range(3):
            own = batch[b].part_marginals(kind)
            corner = tuple(map(slice, own.shape))
            np.testing.assert_allclose(found[kind][b][corner], own, atol=1e-12)
            assert found[kind][b].sum() == pytest.approx(own.sum())
    with pytest.raises(Infeasible, match="item 0 of the batch"):
        TaggingBatch(
            np.full((1, 2, 3), -np.inf), *[np.zeros((side,) * k) for k in range(2, order + 1)]
        ).part_marginals()
