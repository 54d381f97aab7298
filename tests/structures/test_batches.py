"""A batch gives what its items give one by one, in padded arrays, for every question and kind."""

import copy
import pickle
from contextlib import nullcontext, suppress

import numpy as np
import pytest

import certus
from certus import Infeasible, InvalidInput, NotSupported

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
    "siblings": lambda: certus.DependencyBatch(
        padded(whole(4, 5, 5), LENGTHS, 2), whole(4, 5, 5, 5), lengths=LENGTHS, projective=True
    ),
    "third order": lambda: certus.DependencyBatch(
        padded(whole(4, 4, 4), [3, 0, 2, 1], 2),
        grandparent=whole(4, 4, 4, 4),
        grandsibling=whole(4, 4, 4, 4, 4),
        lengths=[3, 0, 2, 1],
        projective=True,
    ),
    "labels": lambda: certus.LabelledDependencyBatch(
        padded(whole(4, 4, 4, 2), [3, 0, 2, 1], 2), lengths=[3, 0, 2, 1], projective=True
    ),
    "labels of arcs": lambda: certus.LabelledDependencyBatch(
        whole(4, 4, 4, 2), padded(whole(4, 4, 4), [3, 0, 2, 1], 2), lengths=[3, 0, 2, 1]
    ),
    "many labels": lambda: certus.LabelledDependencyBatch(
        padded(whole(4, 4, 4, 11), [3, 0, 2, 1], 2),
        sibling=whole(4, 4, 4, 4),
        lengths=[3, 0, 2, 1],
        projective=True,
    ),
    "segmentation": lambda: certus.SegmentationBatch(padded(whole(4, 4, 2, 2), LENGTHS), whole(2, 2), lengths=LENGTHS),
    "own transitions": lambda: certus.SegmentationBatch(whole(4, 4, 2, 2), whole(4, 2, 2), lengths=LENGTHS),
    "span trees": lambda: certus.SpanTreesBatch(padded(whole(4, 5, 5), LENGTHS, 2), lengths=LENGTHS),
    "any shape": lambda: certus.SpanTreesBatch(padded(whole(4, 5, 5, 2), LENGTHS, 2), 1, lengths=LENGTHS),
    "spanning tree": lambda: certus.SpanningTreeBatch(
        padded((lambda a: a + a.swapaxes(1, 2))(whole(4, 5, 5)), [3, -1, 1, 2], 2), lengths=LENGTHS
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


def check_parts(parts, item, b):
    """Expected uses of parts are those of the item, and 0 in the padding."""
    for kind, uses in parts.items():
        arcs = kind in ("arc", "label") and "arcs" in item.views
        own = item.marginals()["labels" if kind == "label" else "arcs"] if arcs else item.part_marginals(kind)
        corner = tuple(map(slice, own.shape))
        np.testing.assert_allclose(uses[b][corner], own, atol=1e-12)
        outside = uses[b].copy()
        outside[corner] = 0.0
        assert not outside.any()


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
    parts = batch.part_marginals()
    asked = {"marginals": (marginals, 0.0), "max_marginals": (batch.max_marginals(), -np.inf)}
    for b, item in enumerate(items):
        assert best.score[b] == item.decode().score
        check_parts(parts, item, b)
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


@pytest.mark.parametrize("empty", [None, 4])
def test_sums_over_spans_equal_enumeration(empty):
    """More labels than a machine adds at once, forbidden cells, and an item with a score of another size."""
    span, lengths = RNG.normal(size=(4, 4, 4, 9)), [2, 1, 2, 3]
    span[RNG.random(span.shape) < 0.8] = -np.inf
    span[:, range(3), range(1, 4), 0] = span[:, 0, :, 1] = span[2, :, :, 2] = 0.5
    span[1:, 0, 1, 3] = [30.0, -40.0, -1e12]
    batch = certus.SpanTreesBatch(span, empty, lengths=lengths)
    total, found = batch.log_partition_and_marginals()
    np.testing.assert_allclose(batch.log_partition(), total, rtol=1e-13)
    for b, n in enumerate(lengths):
        problem = batch[b]
        trees = list(problem.all_structures())
        score = np.array([problem.score(y) for y in trees])
        assert total[b] == pytest.approx(np.logaddexp.reduce(score), rel=1e-12)
        expected = np.zeros((4, 4, 9))
        for y, chance in zip(trees, np.exp(score - total[b]), strict=True):
            np.add.at(expected, tuple(np.array(y).T), chance)
        np.testing.assert_allclose(found["spans"][b], expected, atol=1e-12)
        assert not found["spans"][b, n:].any()
    with pytest.raises(InvalidInput, match=r"item 1 of the batch: span\[0, 1, 0\] is nan"):
        certus.SpanTreesBatch(np.where(np.arange(4)[:, None, None, None] == 1, np.nan, span)).marginals()
    with pytest.raises(Infeasible, match="item 0 of the batch"):
        certus.SpanTreesBatch(np.full((1, 3, 3, 2), -np.inf)).marginals()
    with pytest.raises(InvalidInput, match=r"span has shape \(4, 3, 4, 9\)"):
        certus.SpanTreesBatch(span[:, :3]).marginals()


@pytest.mark.parametrize(("labels", "empty"), [(0, None), (1, None), (2, 1), (8, 0), (9, None), (17, 16)])
def test_best_trees_of_spans_are_those_of_the_items_ties_and_all(labels, empty):
    """Whole numbers, many of them equal; cells that are not read hold what is no score."""
    lengths = [4, 0, 1, 2, 3, 4]
    span = RNG.integers(-2, 2, (6, 5, 5, labels) if labels else (6, 5, 5)).astype(float)
    span[RNG.random(span.shape) < 0.1] = -np.inf
    span[5, 0, 4], span[2, 0, 1], span[3, 0, 1], span[3, 1, 2], span[3, 0, 2] = -3e38, -1.0, 0.0, 0.0, 1.0
    span[:, *np.tril_indices(5)] = np.nan
    if empty is not None:
        span[..., empty] = np.inf
    span = padded(span, lengths, 2)
    batch = certus.SpanTreesBatch(span, empty, lengths=lengths)
    expected = {}
    for b in range(6):
        try:
            expected[b] = batch[b].decode()
        except Infeasible:
            with pytest.raises(Infeasible, match="item 0 of the batch"):
                certus.SpanTreesBatch(span[b : b + 1], empty, lengths=lengths[b : b + 1]).decode()
    assert {1, 2, 3} <= expected.keys()
    kept = list(expected)
    found = certus.SpanTreesBatch(span[kept], empty, lengths=np.array(lengths)[kept]).decode()
    for own, (b, alone) in zip(found, expected.items(), strict=True):
        assert own.structure.tolist() == list(map(list, alone.structure))
        assert own.score == alone.score
        assert own.certificate.exact == alone.certificate.exact
        certus.verify(batch[b], own)
        if labels <= 2:
            assert own.score == max(batch[b].score(y) for y in batch[b].all_structures())


@pytest.mark.parametrize("empty", [None, 3])
def test_best_trees_of_spans_of_long_sentences(empty):
    span, lengths = RNG.normal(size=(3, 31, 31, 11)), [30, 17, 29]
    batch = certus.SpanTreesBatch(span.astype(np.float32), empty, lengths=lengths)
    found = batch.decode()
    assert found.certificate.exact.all()
    for b in range(3):
        alone = batch[b].decode()
        assert found[b].structure.tolist() == list(map(list, alone.structure))
        assert found.score[b] == alone.score
    for bad in (np.nan, np.inf):
        span[1, 2, 5, 10] = bad
        with pytest.raises(InvalidInput, match=r"item 1 of the batch: span\[2, 5, 10\] is"):
            certus.SpanTreesBatch(span, empty, lengths=lengths).decode()


def test_an_empty_batch():
    batch = certus.SpanTreesBatch(np.zeros((0, 4, 4)))
    assert batch.decode().structure.shape == (0, 5, 2)
    assert batch.kbest(2).score.shape == (0, 2)
    assert batch.sample(2).shape == (0, 2, 5, 2)
    assert batch.entropy().shape == (0,)


def test_parts_in_lists_and_trees_that_are_relaxed():
    words, lists = [2, 1], [([0, 1, 0], [1, 2, 2], [5.0, 4.0, 1.0]), ([0], [1], [1.0])]
    batch = certus.DependencyBatch.from_parts(words, lists, projective=True)
    assert batch.decode().structure.tolist() == [[-1, 0, 1], [-1, 0, -1]]
    assert batch.decode().score.tolist() == [9.0, 1.0]
    relaxed = certus.DependencyBatch(whole(2, 4, 4), whole(2, 4, 4, 4), lengths=[3, 2])
    found = relaxed.decode()
    assert found.certificate.exact.all()
    for b in range(2):
        assert found.score[b] == max(relaxed[b].score(y) for y in relaxed[b].all_structures())
        certus.verify(relaxed[b], found[b])


def test_matchings():
    batch = certus.AssignmentBatch(whole(3, 3, 2), lengths=[3, 1, 0])
    found = batch.decode()
    for b in range(3):
        assert found.score[b] == max(batch[b].score(y) for y in batch[b].all_structures())
    np.testing.assert_array_equal(batch.score(found.structure), found.score)


@pytest.mark.parametrize("root", ["single", "multi"])
def test_projective_trees_come_as_often_as_they_should(root):
    batch = certus.DependencyBatch(whole(1, 4, 4) / 4, projective=True, root=root)
    drawn = [tuple(y) for y in batch.sample(4000, seed=3)[0].tolist()]
    total = batch.log_partition()[0]
    for y in batch[0].all_structures():
        chance = np.exp(batch[0].score(y) - total)
        assert drawn.count(tuple(y.tolist())) / 4000 == pytest.approx(chance, abs=5 * np.sqrt(chance / 4000) + 1e-3)


def test_samples_of_weights_that_lie_far_apart():
    arc = 500.0 * np.random.default_rng(0).normal(size=(1, 8, 8))  # the best two trees lie 130 apart
    batch = certus.DependencyBatch(arc, projective=True)
    assert batch.sample(1, seed=0)[0, 0].tolist() == batch.decode().structure[0].tolist()
    with pytest.raises(Infeasible, match="item 0 of the batch"):
        certus.DependencyBatch(np.full((1, 3, 3), -np.inf), projective=True).sample(1)


def test_arrays_with_the_modifier_first():
    arc, label = whole(2, 4, 4), whole(2, 4, 4, 2)
    for kind, scores in ((certus.DependencyBatch, arc), (certus.LabelledDependencyBatch, label)):
        turned = kind(scores.swapaxes(1, 2), axes="mh").decode()
        np.testing.assert_array_equal(turned.structure, kind(scores).decode().structure)
    turned = certus.DependencyBatch(arc.swapaxes(1, 2), whole(2, 4, 4, 4), axes="mh", root="multi")
    np.testing.assert_array_equal(turned[0].arc[0, 1:], arc[0, 0, 1:])
    with pytest.raises(InvalidInput, match="axes is 'mm'; expected one of 'hm', 'mh'"):
        certus.DependencyBatch(arc, axes="mm")
    without_root = np.where(np.arange(4)[:, None] == 0, -np.inf, arc)
    for projective in (True, False):
        with pytest.raises(Infeasible, match=r"item 0 of the batch: .*the head first"):
            certus.DependencyBatch(without_root, projective=projective).decode()


class Tensor:
    """What numpy sees of a tensor of a type or state that it cannot take."""

    def __init__(self, error):
        self.error = error

    def __array__(self, *_, **__):
        raise self.error


GRADIENT, SHORT = RuntimeError("a Tensor that requires grad."), TypeError("unsupported ScalarType BFloat16")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: certus.DependencyBatch(Tensor(GRADIENT)), "ask certus.torch"),
        (lambda: certus.Dependency(Tensor(GRADIENT)), "ask certus.torch"),
        (lambda: certus.TaggingBatch(Tensor(GRADIENT)), "ask certus.torch"),
        (lambda: certus.SpanTreesBatch(Tensor(SHORT)), r"bfloat16.*give span\.float\(\)"),
        (lambda: certus.SpanTrees(Tensor(SHORT)), r"bfloat16.*give span\.float\(\)"),
        (lambda: certus.Tagging(Tensor(SHORT)), r"bfloat16.*give unary\.float\(\)"),
        (lambda: certus.DependencyBatch(whole(2, 4, 4), mask=np.ones((2, 4), dtype=bool)), "without the root"),
        (lambda: certus.SpanTreesBatch(whole(2, 4, 4), lengths=[4, 1]), "which is what the arrays hold"),
        (lambda: certus.AlignmentBatch(whole(1, 2, 2, 3), second_lengths=[2]), r"second_lengths\[0\] is 2"),
        (lambda: certus.SpanTreesBatch(np.full((2, 3, 3), np.nan)).decode(), r"item 0 .*span\[0, 1\] is nan"),
        (lambda: certus.SegmentationBatch(whole(2, 3, 1, 2), whole(3, 2, 2)), "transition has 3 items; expected 2"),
    ],
)
def test_what_no_batch_takes_says_what_to_do(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()


OTHERS = {
    "siblings of crossing trees": lambda: certus.DependencyBatch(whole(2, 4, 4), whole(2, 4, 4, 4)),
    "parts in lists": lambda: certus.DependencyBatch.from_parts([1], [([0], [1], [1.0])], projective=True),
    "several kinds of pairs": lambda: certus.DependencyGraphBatch(whole(2, 3, 3), whole(2, 3, 3, 3), whole(2, 3, 3, 3)),
    "matchings": lambda: certus.AssignmentBatch(whole(2, 3, 2)),
}


@pytest.mark.parametrize("name", [*MADE, *OTHERS])
def test_a_batch_that_is_copied_or_pickled_answers_alike(name):
    batch = {**MADE, **OTHERS}[name]()
    found = batch.decode()
    for again in (copy.copy(batch), copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        assert type(again) is type(batch)
        own = again.decode()
        np.testing.assert_array_equal(own.structure, found.structure)
        np.testing.assert_array_equal(own.score, found.score)


@pytest.mark.parametrize("question", ["kbest", "sample"])
@pytest.mark.parametrize("name", [*MADE, *OTHERS])
def test_more_structures_than_memory_holds_are_refused_in_words(name, question):
    batch = {**MADE, **OTHERS}[name]()
    of_items = "" if len(batch) == 1 else f" of each of {len(batch)} items"
    for k in (10**12, 2**63 - 1):
        with pytest.raises(InvalidInput, match=rf"^a list of k = {k} structures{of_items} takes .* Ask for fewer\.$"):
            getattr(batch, question)(k)
    for k in (0, -1, 2.5, True, "2"):
        with pytest.raises(InvalidInput, match=r"^k is .*; expected a whole number of at least 1\.$"):
            getattr(batch, question)(k)


@pytest.mark.parametrize("name", [name for name in MADE if name != "labels of arcs"])
def test_more_samples_of_one_problem_than_memory_holds_are_refused_in_words(name):
    with pytest.raises(InvalidInput, match=r"^a list of k = 1000000000000 structures takes .* Ask for fewer\.$"):
        MADE[name]()[0].sample(10**12)


@pytest.mark.parametrize("name", ["tagging", "projective trees", "siblings", "grammar", "siblings of crossing trees"])
def test_more_ranks_of_one_problem_than_memory_holds_are_refused_in_words(name):
    with pytest.raises(InvalidInput, match=r"^a list of k = 1000000000000 structures takes .* Ask for fewer\.$"):
        {**MADE, **OTHERS}[name]()[0].kbest(10**12)


EMPTY = {
    "tagging": lambda: certus.TaggingBatch(np.zeros((0, 4, 3)), whole(4, 4)),
    "crossing trees": lambda: certus.DependencyBatch(np.zeros((0, 4, 4))),
    "siblings": lambda: certus.DependencyBatch(np.zeros((0, 4, 4)), np.zeros((0, 4, 4, 4)), projective=True),
    "labels": lambda: certus.LabelledDependencyBatch(np.zeros((0, 4, 4, 2))),
    "span trees": lambda: certus.SpanTreesBatch(np.zeros((0, 4, 4))),
    "spanning tree": lambda: certus.SpanningTreeBatch(np.zeros((0, 4, 4))),
    "segmentation": lambda: certus.SegmentationBatch(np.zeros((0, 4, 2, 2)), np.zeros((2, 2))),
    "third order": lambda: certus.DependencyBatch(
        np.zeros((0, 4, 4)), grandparent=np.zeros((0, 4, 4, 4)), stop=np.zeros((0, 4, 2, 4)), projective=True
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_batch_of_no_items_answers_every_question(name):
    batch = EMPTY[name]()
    assert batch.decode().structure.shape == (0, *batch.structure_shape)
    assert batch.kbest(2).structure.shape == batch.sample(2).shape == (0, 2, *batch.structure_shape)
    assert batch.log_partition().shape == batch.entropy().shape == (0,)
    for found in (batch.marginals(), batch.max_marginals()):
        assert {view: own.shape for view, own in found.items()} == {v: (0, *s) for v, s in batch.views.items()}
    kinds = {"labels": {"label"}, "siblings": {"arc", "sibling"}, "third order": {"arc", "grandparent", "stop"}}
    parts = batch.part_marginals()
    assert kinds.get(name, parts.keys()) == parts.keys()
    assert {len(own) for own in parts.values()} == {0}


@pytest.mark.parametrize(
    "batch",
    [
        certus.AlignmentBatch(np.full((1, 2, 2, 3), -np.inf)),
        certus.SpanTreesBatch(np.full((1, 3, 3), -np.inf)),
        certus.CTCBatch(np.zeros((1, 1, 3)), [[1, 2]]),
        certus.SegmentationBatch(np.full((1, 2, 1, 1), -np.inf)),
        certus.DependencyGraphBatch(np.zeros((1, 2, 2)), np.full((1, 2, 2, 2), -np.inf)),
        certus.DependencyBatch(np.full((1, 3, 3), -np.inf)),
        certus.SpanningTreeBatch(np.full((1, 3, 3), -np.inf)),
    ],
)
def test_max_marginals_of_an_item_without_structures_are_those_of_the_problem(batch):
    for view, values in batch[0].max_marginals().items():
        np.testing.assert_array_equal(batch.max_marginals()[view][0], values)


def test_what_graphs_with_several_kinds_of_pairs_refuse_is_named_as_it_was_asked():
    batch = OTHERS["several kinds of pairs"]()
    for question in ("entropy", "marginals", "part_marginals", "log_partition"):
        with pytest.raises(NotSupported, match=rf"^{question}\(\) of graphs scored by arc, sibling, coparent"):
            getattr(batch, question)()
    with pytest.raises(NotSupported, match=r"^sample\(\) of graphs"):
        batch.sample(2)
    found, ranks = batch.max_marginals()["arcs"], batch.kbest(2)
    for b in range(2):
        np.testing.assert_array_equal(found[b], batch[b].max_marginals()["arcs"])
        assert ranks.score[b].tolist() == [r.score for r in batch[b].kbest(2)]


def sized(rng, scale, n):
    """Batches of two items, the first of scores around 1, the second of scores around ``scale``."""

    def drawn(*shape):
        scores = rng.normal(size=(2, *shape))
        scores[1] *= scale
        return scores

    edge = drawn(n + 1, n + 1)
    return [
        certus.TaggingBatch(drawn(n, 3)),
        certus.DependencyBatch(drawn(n + 1, n + 1)),
        certus.DependencyBatch(drawn(n + 1, n + 1), projective=True),
        certus.LabelledDependencyBatch(drawn(n + 1, n + 1, 2)),
        certus.SpanningTreeBatch(edge + edge.swapaxes(1, 2)),
        certus.AssignmentBatch(drawn(n, n)),
        certus.SpanTreesBatch(drawn(n + 1, n + 1)),
    ]


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e278, 1e282, 1e300, 1e307])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_what_a_batch_proves_of_scores_of_any_size_is_verified(scale, n):
    for batch in sized(np.random.default_rng(n), scale, n):
        with suppress(InvalidInput) if scale > 1.0 else nullcontext():
            for item, result in zip(batch, batch.decode(), strict=True):
                certus.verify(item, result)


@pytest.mark.parametrize("size", [1e281, 1e300, 1.7e308])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_item_of_scores_whose_sums_may_overflow_is_refused_by_name(size, sign):
    label = np.zeros((2, 3, 3, 2))
    label[1] = sign * size
    for batch in (
        certus.TaggingBatch(label[:, 0]),
        certus.DependencyBatch(label[..., 0]),
        certus.DependencyBatch(label[..., 0], projective=True),
        certus.LabelledDependencyBatch(label),
        certus.SpanningTreeBatch(label[..., 0]),
    ):
        with pytest.raises(InvalidInput, match=r"^item 1 of the batch: sums of these scores may exceed"):
            batch.decode()
