"""Padded batches give what each item gives alone; many problems of mixed kind decode in order."""

import numpy as np
import pytest

import certus
from certus import Dependency, DependencyBatch, Infeasible, InvalidInput, NotSupported


def draw_batch(rng, *, projective, siblings, root, workers=1):
    """A batch with items of every length and nan in the padding."""
    lengths = np.array([4, 0, 1, 3, 2])
    arc = rng.integers(-8, 9, (5, 5, 5)).astype(float)
    sibling = rng.integers(-8, 9, (5, 5, 5, 5)).astype(float) if siblings else None
    for b, n in enumerate(lengths):
        arc[b, n + 1 :] = np.nan
        arc[b, :, n + 1 :] = np.nan
        if sibling is not None:
            sibling[b, :, n + 1 :] = np.nan
            sibling[b, :, :, n + 1 :] = np.nan
    return DependencyBatch(arc, sibling, lengths=lengths, projective=projective, root=root, workers=workers)


@pytest.mark.parametrize(("projective", "siblings"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_items_answer_as_they_do_alone(projective, siblings, root):
    batch = draw_batch(np.random.default_rng(0), projective=projective, siblings=siblings, root=root)
    result, total = batch.decode(), batch.log_partition()
    marginals, best = batch.marginals()["arcs"], batch.max_marginals()["arcs"]
    assert result.certificate.exact.all()
    for b, n in enumerate(batch.lengths):
        alone = batch[b]
        assert result.score[b] == alone.decode().score == alone.score(result.structure[b, : n + 1])
        assert (result.structure[b, n + 1 :] == -1).all()
        assert total[b] == pytest.approx(alone.log_partition(), rel=1e-12)
        np.testing.assert_allclose(marginals[b, : n + 1, : n + 1], alone.marginals()["arcs"], atol=1e-12)
        assert (best[b, : n + 1, 1 : n + 1] == alone.max_marginals()["arcs"][:, 1:]).all()
        assert not marginals[b, n + 1 :].any()


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("ties", [True, False])
def test_items_of_about_the_same_length_have_the_trees_that_they_have_alone(root, ties):
    """They are served by groups, in the same arithmetic: every bit is the same; what is not read may be anything."""
    rng = np.random.default_rng(6)
    lengths = np.array([12, 12, 3, 11, 9, 12, 10, 0, 12, 11, 9, 9, 8, 1, 7, 2])
    arc = rng.integers(-2, 3, (16, 14, 14)).astype(float) if ties else rng.normal(size=(16, 14, 14))
    arc[rng.random(arc.shape) < 0.2] = -np.inf
    arc[:, range(13), range(1, 14)] = 0.5  # one tree is left for certain
    arc[:, :, 0], arc[:, range(14), range(14)] = np.nan, np.inf
    for b, n in enumerate(lengths):
        arc[b, n + 1 :], arc[b, :, n + 1 :] = np.nan, np.inf
    settings = {"projective": True, "root": root}
    result = DependencyBatch(arc, lengths=lengths, **settings).decode()
    assert result.certificate.exact.all()
    for b in range(16):
        alone = DependencyBatch(arc[b : b + 1], lengths=lengths[b : b + 1], **settings).decode()
        assert (result.structure[b] == alone.structure[0]).all()
        assert result.score[b] == alone.score[0]
        assert result.certificate.bound[b] == alone.certificate.bound[0]


@pytest.mark.parametrize("root", ["single", "multi"])
def test_items_of_about_the_same_length_answer_as_they_do_alone(root):
    """They are served by groups, in the same arithmetic: every bit is the same."""
    rng = np.random.default_rng(5)
    lengths = np.array([12, 12, 3, 11, 9, 12, 10, 0, 12, 11, 9, 9, 8])
    arc, sibling = rng.normal(size=(13, 14, 14)), rng.normal(size=(13, 14, 14, 14))
    arc[rng.random(arc.shape) < 0.1] = -np.inf
    arc[:, range(13), range(1, 14)] = 0.5  # one tree is left for certain
    sibling[3:5][rng.random((2, 14, 14, 14)) < 0.2] = -np.inf
    sibling[:, range(13), range(13), range(1, 14)] = 0.0
    settings = {"projective": True, "root": root, "workers": 1}
    result = DependencyBatch(arc, sibling, lengths=lengths, **settings).decode()
    for b in range(13):
        alone = DependencyBatch(arc[b : b + 1], sibling[b : b + 1], lengths=lengths[b : b + 1], **settings).decode()
        assert (result.structure[b] == alone.structure[0]).all()
        assert result.score[b] == alone.score[0]
        assert result.certificate.bound[b] == alone.certificate.bound[0]


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_the_best_trees_of_every_item_are_those_of_an_enumeration(root, projective):
    """Ties, forbidden arcs, fewer trees than asked for; an item with a score of another size is asked by itself."""
    rng = np.random.default_rng(7)
    arc, lengths = rng.integers(-2, 3, (6, 6, 6)).astype(float), np.array([5, 0, 1, 4, 5, 3])
    arc[3][rng.random((6, 6)) < 0.3] = -np.inf
    arc[3, range(5), range(1, 6)] = 1.0  # one tree is left for certain
    arc[5, 2, 1] = -1e15
    batch = DependencyBatch(arc, lengths=lengths, projective=projective, root=root)
    for k in (1, 30):
        ranks = batch.kbest(k)
        for b, n in enumerate(lengths):
            problem = batch[b]
            score = sorted((problem.score(y) for y in problem.all_structures()), reverse=True)
            score = [x for x in score if x > -np.inf][:k]
            assert ranks.score[b].tolist() == score + [-np.inf] * (k - len(score))
            alone = [r.certificate.exact for r in problem.kbest(k)]
            assert ranks.exact[b, : len(score)].tolist() == alone == [r.certificate.exact for r in ranks[b]]
            assert b == 5 or all(alone)
            trees = ranks.structure[b, : len(score), : n + 1]
            assert len({tuple(tree) for tree in trees.tolist()}) == len(score)
            assert [problem.score(tree) for tree in trees] == score
            assert (ranks.structure[b, len(score) :] == -1).all()
            assert (ranks.structure[b, :, n + 1 :] == -1).all()
            for rank, (result, tree) in enumerate(zip(ranks[b], trees, strict=True), start=1):
                assert (result.structure == tree).all()
                assert result.certificate.rank == rank
            certus.verify(problem, ranks[b][-1])
    with pytest.raises(Infeasible, match="item 1 of the batch"):
        DependencyBatch(np.stack((np.zeros((3, 3)), np.full((3, 3), -np.inf))), projective=projective).kbest(2)
    with pytest.raises(InvalidInput, match="item 0 of the batch: sums of these scores may exceed"):
        DependencyBatch(np.full((2, 4, 4), 1.7e308), projective=projective).kbest(2)


def test_forbidden_parts_of_a_longer_item_do_not_reach_a_shorter_one():
    rng = np.random.default_rng(0)
    arc, sibling = rng.normal(size=(3, 8, 8)), rng.normal(size=(3, 8, 8, 8))
    arc[0] *= 400  # summed by logarithms
    sibling[:2, :, :, 7] = -np.inf
    sibling[0, range(7), range(7), 7] = 0.0
    batch = DependencyBatch(arc, sibling, lengths=[7, 7, 5], projective=True, workers=1)
    assert batch.log_partition()[1] == -np.inf
    arcs = DependencyBatch(arc[::2], sibling[::2], lengths=[7, 5], projective=True, workers=1).marginals()["arcs"]
    np.testing.assert_allclose(arcs[1, :6, :6], batch[2].marginals()["arcs"], rtol=0, atol=1e-12)
    assert batch.log_partition()[2] == pytest.approx(batch[2].log_partition(), rel=1e-12)


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("scale", [1.0, 400.0])
def test_marginals_of_siblings_are_those_of_an_enumeration(root, scale):
    """Far apart too, where sums are of logarithms; the next item is not to see what the one before has left."""
    rng = np.random.default_rng(3)
    lengths = np.array([4, 3, 0, 4, 1, 2])
    arc, sibling = scale * rng.normal(size=(6, 5, 5)), rng.normal(size=(6, 5, 5, 5))
    sibling[rng.random(sibling.shape) < 0.1] = -np.inf
    sibling[3] *= 200.0
    batch = DependencyBatch(arc, sibling, lengths=lengths, projective=True, root=root)
    total, parts = batch.part_sums()
    for b, n in enumerate(lengths.tolist()):
        trees = list(batch[b].all_structures())
        score = np.array([batch[b].score(heads) for heads in trees])
        assert total[b] == pytest.approx(np.logaddexp.reduce(score), rel=1e-12)
        expected = np.zeros((5, 5, 5))
        for heads, chance in zip(trees, np.exp(score - np.logaddexp.reduce(score)), strict=True):
            for h in range(n + 1):
                for side in (
                    [m for m in range(h, n + 1) if heads[m] == h],
                    [m for m in range(h)[::-1] if heads[m] == h],
                ):
                    for s, m in zip([h, *side], side, strict=False):
                        expected[h, s, m] += chance
        np.testing.assert_allclose(parts["sibling"][b], expected, atol=1e-11)
        np.testing.assert_allclose(parts["arc"][b], expected.sum(axis=1), atol=1e-11)


def test_threads_do_not_change_the_answers():
    one = draw_batch(np.random.default_rng(1), projective=True, siblings=True, root="single")
    two = draw_batch(np.random.default_rng(1), projective=True, siblings=True, root="single", workers=2)
    assert (one.decode().structure == two.decode().structure).all()
    assert (one.marginals()["arcs"] == two.marginals()["arcs"]).all()


def test_an_item_without_a_tree_is_named():
    arc = np.zeros((2, 3, 3))
    arc[1, :, 2] = -np.inf
    batch = DependencyBatch(arc, projective=True)
    with pytest.raises(Infeasible, match="item 1 of the batch: word 2"):
        batch.decode()
    assert batch.log_partition()[1] == -np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_scores_are_found(bad):
    arc, sibling = np.zeros((2, 4, 4)), np.zeros((2, 4, 4, 4))
    sibling[1, 3, 2, 1] = bad
    with pytest.raises(InvalidInput, match=r"sibling\[1\]\[3, 2, 1\]"):
        DependencyBatch(arc, sibling, projective=True).decode()
    arc[0, 1, 2] = bad
    with pytest.raises(InvalidInput, match=r"arc\[0, 1, 2\]"):
        DependencyBatch(arc)


def is_read(single, h, s, m):
    """Whether sibling[h, s, m] is a part of some tree."""
    right = h <= s < m and (h > 0 or s == 0 or not single)
    return right or 0 < m < s <= h


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf])
@pytest.mark.parametrize("lengths", [(2, 7, 5), (8, 7, 8)])  # one by one, as a group
def test_a_bad_score_is_found_in_every_cell_that_is_read_and_ignored_in_all_others(root, bad, lengths):
    rng = np.random.default_rng(3)
    lengths = np.array(lengths)
    arc, sibling = rng.normal(size=(3, 9, 9)), rng.normal(size=(3, 9, 9, 9))
    settings = {"lengths": lengths, "projective": True, "root": root, "workers": 1}
    expected = DependencyBatch(arc, sibling, **settings).decode()
    cells = list(np.ndindex(8, 8, 8))
    read = [cell for cell in cells if is_read(root == "single", *cell)]
    chosen = [read[k] for k in rng.permutation(len(read))[:30]]
    for h, s, m in chosen:
        wrong = sibling.copy()
        wrong[1, h, s, m] = bad
        with pytest.raises(InvalidInput, match=rf"sibling\[1\]\[{h}, {s}, {m}\] is "):
            DependencyBatch(arc, wrong, **settings).decode()
        if s == h:
            wrong = arc.copy()
            wrong[1, h, m] = bad
            with pytest.raises(InvalidInput, match=rf"arc\[1, {h}, {m}\] is "):
                DependencyBatch(wrong, **settings)
    batch = DependencyBatch(arc, wrong_everywhere_else(sibling, lengths, root == "single", bad), **settings)
    assert (batch.decode().structure == expected.structure).all()
    assert (batch.decode().score == expected.score).all()


def wrong_everywhere_else(sibling, lengths, single, bad):
    """A copy with bad in all cells that are not read."""
    out = np.full_like(sibling, bad)
    for b, n in enumerate(lengths):
        for cell in np.ndindex(n + 1, n + 1, n + 1):
            if is_read(single, *cell):
                out[(b, *cell)] = sibling[(b, *cell)]
    return out


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("question", ["decode", "marginals", "log_partition", "max_marginals"])
def test_every_question_names_the_item_with_a_bad_score(question, workers):
    sibling = np.zeros((9, 4, 4, 4))
    sibling[7, 1, 2, 3] = np.nan
    batch = DependencyBatch(np.zeros((9, 4, 4)), sibling, projective=True, workers=workers)
    with pytest.raises(InvalidInput, match=r"sibling\[7\]\[1, 2, 3\] is nan"):
        getattr(batch, question)()


def test_cells_of_arcs_that_are_not_read_are_ignored():
    rng = np.random.default_rng(4)
    arc = rng.normal(size=(2, 6, 6))
    expected = DependencyBatch(arc, projective=True)
    arc = arc.copy()
    arc[:, :, 0] = np.nan
    arc[:, np.arange(6), np.arange(6)] = np.inf
    batch = DependencyBatch(arc, projective=True)
    assert (batch.decode().structure == expected.decode().structure).all()
    assert (batch.marginals()["arcs"] == expected.marginals()["arcs"]).all()
    assert (batch.max_marginals()["arcs"] == expected.max_marginals()["arcs"]).all()


def test_what_batches_do_not_do_says_what_to_use():
    with pytest.raises(NotSupported, match="crossing arcs"):
        DependencyBatch(np.zeros((1, 3, 3)), np.zeros((1, 3, 3, 3))).log_partition()
    with pytest.raises(InvalidInput, match=r"lengths\[0\] is 3"):
        DependencyBatch(np.zeros((1, 3, 3)), lengths=[3])


def test_decode_all_keeps_the_order_of_mixed_problems():
    rng = np.random.default_rng(2)
    problems = []
    for k in range(12):
        n = k % 5
        sibling = rng.normal(size=(n + 1,) * 3) if k % 3 else None
        problems.append(Dependency(rng.normal(size=(n + 1, n + 1)), sibling, projective=k % 2 == 0))
    problems.append(certus.Tagging(rng.normal(size=(3, 2))))
    seen = []
    results = list(certus.decode_all(iter(problems), workers=2, progress=seen.append))
    assert [r.score for r in results] == [p.decode().score for p in problems]
    assert seen == list(range(1, len(problems) + 1))


def test_decode_all_raises_or_yields_what_cannot_be_decoded():
    stuck = Dependency(np.full((2, 2), -np.inf), projective=True)
    fine = Dependency(np.zeros((2, 2)), projective=True)
    with pytest.raises(Infeasible):
        list(certus.decode_all([fine, stuck]))
    results = list(certus.decode_all([fine, stuck, fine], errors="yield"))
    assert isinstance(results[1], Infeasible)
    assert results[2].score == 0.0


@pytest.mark.parametrize("projective", [True, False])
def test_long_lists_of_longer_sentences_outgrow_their_first_room(projective):
    arc = np.random.default_rng(4).integers(-2, 3, (1, 13, 13)).astype(float)
    ranks = DependencyBatch(arc, projective=projective).kbest(100)
    alone = Dependency(arc[0], projective=projective).kbest(100)
    assert ranks.score[0].tolist() == [r.score for r in alone]
    assert len({tuple(heads) for heads in ranks.structure[0].tolist()}) == 100


@pytest.mark.parametrize("projective", ["yes", "", 1, 0, None])
def test_what_is_merely_taken_for_a_truth_value_is_refused(projective):
    arc, label = np.zeros((2, 3, 3)), np.zeros((2, 3, 3, 2))
    for make in (
        lambda: DependencyBatch(arc, projective=projective),
        lambda: DependencyBatch(arc, grandparent=np.zeros((2, 3, 3, 3)), projective=projective),
        lambda: certus.LabelledDependencyBatch(label, projective=projective).decode(),
        lambda: Dependency(arc[0], projective=projective),
        lambda: Dependency.from_parts(1, ([0], [1], [0.0]), projective=projective),
        lambda: certus.LabelledDependency(label[0], projective=projective),
    ):
        with pytest.raises(InvalidInput, match=r"projective is .*; expected True or False\.$"):
            make()
    assert DependencyBatch(arc, projective=np.True_).projective is True
