"""Sums by cells, and their derivatives, are the moments of the cells that structures use, found by listing these."""

import os

import numpy as np
import pytest

import certus
from certus.structures.part_sums import ArrayKind, PartSums, Shape

RNG = np.random.default_rng(3)
TARGETS = np.array([[1, 2], [-1, -1], [2, -1], [1, -1]])
TREES = {"arc": "nn", "sibling": "nnn"}


def labelled(label, lengths=None):
    """A batch of one labelled problem, which is all that numbers need."""
    return [certus.LabelledDependency(label[0])]


KINDS = {
    "tags": (ArrayKind(certus.TaggingBatch, {"unary": "n.", "bigram": "n.."}), [(3, 2), (3, 3)], {}),
    "projective": (ArrayKind(certus.DependencyBatch, TREES, more=1), [(4, 4), (4, 4, 4)], {"projective": True}),
    "crossing": (ArrayKind(certus.DependencyBatch, TREES, more=1), [(4, 4)], {"root": "multi"}),
    "single root": (ArrayKind(certus.DependencyBatch, TREES, more=1), [(4, 4)], {}),
    "labelled": (ArrayKind(labelled, {"label": "nn."}, more=1), [(4, 4, 2)], {}),
    "edges": (ArrayKind(certus.SpanningTreeBatch, {"edge": "nn"}, symmetric=True), [(3, 3)], {}),
    "spans": (ArrayKind(certus.SpanTreesBatch, {"span": "nn"}, more=1), [(4, 4, 2)], {"empty": 1}),
    "alignment": (ArrayKind(certus.AlignmentBatch, {"score": "nm."}, more=1), [(4, 3, 3)], {}),
    "ctc": (
        ArrayKind(certus.CTCBatch, {"frame": "n."}, own=("target",)),
        [(3, 3)],
        {"target": np.array([[1, 2], [-1, -1], [2, -1], [1, -1]])},
    ),
}
LENGTHS = np.array([3, 0, 1, 2])


def sums(name):
    kind, sizes, options = KINDS[name]
    shared = {"bigram"} if name == "tags" else set()
    shapes = [Shape(array, array not in shared, size) for array, size in zip(kind.axes, sizes, strict=False)]
    lengths = {"n": LENGTHS, "m": np.array([2, 1, 0, 2])} if name == "alignment" else {"n": LENGTHS}
    return PartSums(kind, shapes, lengths, options)


def listed(parts, item):
    """(S, P) how often each structure of an item uses each cell."""
    group = next(group for group in parts.groups if item in group.items)
    structures = list(group.numbered.problem.all_structures())
    return np.array([np.bincount(parts.cells(y, item), minlength=parts.size) for y in structures], dtype=float)


@pytest.mark.parametrize("name", KINDS)
def test_sums_and_their_derivatives_are_moments(name):
    parts = sums(name)
    scores = RNG.normal(size=(len(LENGTHS), parts.size))
    scores[0, RNG.integers(parts.size)] = -np.inf
    check(parts, scores)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") != "1", reason="compiled in tests/torch alone: it takes long")
@pytest.mark.parametrize("name", ["crossing", "labelled"])
def test_trees_whose_words_prefer_each_other(name):
    """Words 1 and 2 head each other far better than anything else: the Laplacian cannot be inverted."""
    parts = sums(name)
    scores = RNG.normal(size=(len(LENGTHS), *parts.shapes[0].size))
    scores[0, 1, 2] += 45.0
    scores[0, 2, 1] += 45.0
    check(parts, scores.reshape(len(LENGTHS), -1))


def check(parts, scores):
    """All answers against the moments of all structures."""
    u, v = RNG.normal(size=(2, *scores.shape))
    total, uses = parts.sums(scores)
    tangents, curvatures = parts.tangents(scores, u), parts.curvatures(scores, u, v)
    for b in range(len(LENGTHS)):
        used = listed(parts, b)
        values = np.array([scores[b][row > 0] @ row[row > 0] for row in used])
        most = values.max()
        assert total[b] == pytest.approx(most + np.log(np.exp(values - most).sum()), abs=1e-12)
        chance = np.exp(values - total[b])
        centred = used - chance @ used
        np.testing.assert_allclose(uses[b], chance @ used, atol=1e-12)
        np.testing.assert_allclose(tangents[b], (chance * (centred @ u[b])) @ centred, atol=1e-11)
        np.testing.assert_allclose(curvatures[b], (chance * (centred @ u[b]) * (centred @ v[b])) @ centred, atol=1e-11)


def test_scores_of_any_size_and_no_scores():
    parts = sums("tags")
    scores = np.zeros((4, parts.size))
    scores[0, 0], scores[0, 3], scores[0, 4] = 900.0, -2000.0, 1000.0
    scores[2] = -np.inf
    scores[3, 1] = np.nan
    total, uses = parts.sums(scores)
    assert total[0] == pytest.approx(1900.0, rel=1e-15)
    assert uses[0, [0, 3, 4]].tolist() == [1.0, 0.0, 1.0]
    assert total[2] == -np.inf
    assert not uses[2:].any()
    assert np.isnan(total[3])


def test_what_has_no_sums_says_so():
    kind = ArrayKind(lambda arc, sibling: [certus.Dependency(arc[0], sibling[0])], TREES, more=1)
    shapes = [Shape("arc", True, (3, 3)), Shape("sibling", True, (3, 3, 3))]
    with pytest.raises(certus.NotSupported, match=r"Dependency\(n=2, arc, sibling.*hinge"):
        PartSums(kind, shapes, {"n": np.array([2])}, {}).sums(np.zeros((1, 36)))
