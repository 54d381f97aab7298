"""Sums over non-projective trees against all trees, known counts and 50-digit arithmetic; samples by chi-square."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import chisquare

from certus import DependencyBatch, Infeasible, LabelledDependency
from certus.dependency.label_folds import fold_labels
from certus.dependency.matrix_tree import (
    entropy,
    log_partition,
    log_partition_batch,
    marginals,
    marginals_batch,
    sample_trees,
)
from tests.oracles.trees import all_trees, arc_score, is_tree
from tests.strategies import arc_scores

ROOTS = ("single", "multi")
INF = np.inf
SCALES = (1.0, 30.0, 300.0, 1000.0)


def enumerated(arc, root):
    """(log-partition, marginals, entropy) by listing all trees; None if there is no tree."""
    trees = all_trees(len(arc) - 1, root)
    scores = np.array([arc_score(arc, heads) for heads in trees])
    if scores.max() == -INF:
        return None
    total = logsumexp(scores)
    probability = np.exp(scores - total)
    out = np.zeros(arc.shape)
    for heads, p in zip(trees, probability, strict=True):
        out[list(heads[1:]), range(1, len(heads))] += p
    used = probability > 0
    return total, out, -np.sum(probability[used] * np.log(probability[used]))


@given(arc=arc_scores(), root=st.sampled_from(ROOTS), scale=st.sampled_from([0.125, 1.0, 16.0, 125.0]))
def test_sums_equal_enumeration(arc, root, scale):
    """Scores up to +-1000, with forbidden arcs: every way of computing is met."""
    arc = arc * scale
    expected = enumerated(arc, root)
    if expected is None:
        for question in log_partition, marginals, entropy:
            with pytest.raises(Infeasible):
                question(arc, root)
        return
    assert log_partition(arc, root) == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(marginals(arc, root), expected[1], rtol=0, atol=1e-11)
    assert entropy(arc, root) == pytest.approx(expected[2], abs=1e-9)


@given(arcs=st.lists(arc_scores(max_words=3), min_size=1, max_size=4), root=st.sampled_from(ROOTS))
def test_a_padded_batch_gives_what_each_sentence_gives(arcs, root):
    arcs = [*arcs, arcs[0] * 125]
    lengths = np.array([len(arc) - 1 for arc in arcs])
    padded = np.full((len(arcs), 5, 5), 7.0)
    for page, arc in zip(padded, arcs, strict=True):
        page[: len(arc), : len(arc)] = arc
    probability, totals = marginals_batch(padded, lengths, root)
    np.testing.assert_array_equal(log_partition_batch(padded, lengths, root), totals)
    for b, arc in enumerate(arcs):
        inside = np.zeros((5, 5))
        if enumerated(arc, root) is None:
            assert totals[b] == -INF
        else:
            assert totals[b] == log_partition(arc, root)
            inside[: len(arc), : len(arc)] = marginals(arc, root)
        np.testing.assert_array_equal(probability[b], inside)


@pytest.mark.parametrize("root", ROOTS)
def test_no_answer_depends_on_the_rest_of_the_batch(root):
    """Every way of computing in one batch, lengths mixed: groups of sentences, forbidden arcs, no tree, logarithms."""
    rng = np.random.default_rng(5)
    lengths = np.array([9, 3, 0, 6, 11, 1, 5, 2, 11, 8, 4, 7, 10, 3, 9, 1, 6, 11, 2, 5, 7, 9, *[12] * 8])
    padded = rng.normal(size=(len(lengths), 13, 13)) * 3
    for b in (3, 9, 17):
        padded[b][rng.random((13, 13)) < 0.3] = -INF
        padded[b][range(12), range(1, 13)] = 0.5  # one tree is left for certain
    padded[6, :, 2] = -INF  # a word without a head
    padded[12, 1:4, 5:] = padded[12, 0, 1:4] = padded[12, 4:, 1:4] = -INF  # a part without a root
    padded[14] *= 400
    probability, totals = marginals_batch(padded, lengths, root)
    np.testing.assert_array_equal(log_partition_batch(padded, lengths, root), totals)
    assert np.flatnonzero(totals == -INF).tolist() == [6, 12]
    for b, n in enumerate(lengths):
        inside = np.zeros((13, 13))
        if totals[b] > -INF:
            arc = np.ascontiguousarray(padded[b, : n + 1, : n + 1])
            assert totals[b] == log_partition(arc, root)
            inside[: n + 1, : n + 1] = marginals(arc, root)
            np.testing.assert_allclose(inside[:, 1 : n + 1].sum(axis=0), 1.0, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(probability[b], inside)


@pytest.mark.parametrize("root", ROOTS)
def test_groups_of_sentences_equal_enumeration(root):
    rng = np.random.default_rng(6)
    lengths = np.array([4, 1, 3, 4, 2, 3, 4, 1, 2, 4])
    padded = rng.normal(size=(len(lengths), 5, 5)) * 2
    probability, totals = marginals_batch(padded, lengths, root)
    for b, n in enumerate(lengths):
        expected = enumerated(padded[b, : n + 1, : n + 1], root)
        assert totals[b] == pytest.approx(expected[0], rel=1e-13)
        np.testing.assert_allclose(probability[b, : n + 1, : n + 1], expected[1], rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 31])
def test_counts_of_trees(n):
    """Cayley: (n + 1)^(n - 1) trees with any number of roots; n^(n - 1) with one."""
    zero = np.zeros((n + 1, n + 1))
    multi, single = (n - 1) * math.log(n + 1), (n - 1) * math.log(n)
    assert log_partition(zero, "multi") == pytest.approx(multi, rel=1e-13)
    assert log_partition(zero, "single") == pytest.approx(single, rel=1e-13)
    assert entropy(zero, "multi") == pytest.approx(multi, rel=1e-13)
    assert entropy(zero, "single") == pytest.approx(single, rel=1e-13)
    assert marginals(zero, "single")[0, 1:] == pytest.approx(np.full(n, 1 / n), rel=1e-13)


@pytest.mark.parametrize("root", ROOTS)
def test_no_words(root):
    assert log_partition(np.zeros((1, 1)), root) == 0.0
    assert marginals(np.zeros((1, 1)), root).tolist() == [[0.0]]
    assert entropy(np.zeros((1, 1)), root) == 0.0
    assert sample_trees(np.zeros((1, 1)), 2, root, np.random.default_rng(0)).tolist() == [[-1], [-1]]


def exact_determinant(power, root):
    """Partition function, times a power of two, by the determinants of DEP 4.3: weights 2^power are whole numbers, and
    so is every step of Bareiss' elimination. A power of None forbids the arc."""
    n = len(power) - 1
    least = min(p for row in power for p in row if p is not None)
    weight = [[0 if p is None else 1 << (p - least) for p in row] for row in power]
    matrix = [[-weight[h][m] for m in range(1, n + 1)] for h in range(1, n + 1)]
    for m in range(1, n + 1):
        matrix[m - 1][m - 1] = sum(weight[h][m] for h in range(0 if root == "multi" else 1, n + 1) if h != m)
    if root == "single":
        matrix[0] = weight[0][1:]
    sign, last = 1, 1
    for k in range(n - 1):
        swap = next((i for i in range(k, n) if matrix[i][k]), None)
        if swap is None:
            return mpmath.mpf(0)
        if swap != k:
            matrix[k], matrix[swap], sign = matrix[swap], matrix[k], -sign
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                matrix[i][j] = (matrix[i][j] * matrix[k][k] - matrix[i][k] * matrix[k][j]) // last
        last = matrix[k][k]
    return sign * matrix[n - 1][n - 1] * mpmath.mpf(2) ** (n * least)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n", [2, 7, 12])
def test_numbers_hold_in_50_digits(n, scale, root):
    """Log-partition and one marginal; scores are multiples of log 2, so that the partition function is rational."""
    rng = np.random.default_rng(n)
    most = int(scale / math.log(2))
    for forbidden in (0.0, 0.3):
        power = rng.integers(-most, most + 1, (n + 1, n + 1)).tolist()
        for h, m in np.argwhere(rng.random((n + 1, n + 1)) < forbidden).tolist():
            power[h][m] = None
        power[0][1] = -most
        for m in range(2, n + 1):
            power[m - 1][m] = most // 2  # one tree is left for certain
        arc = np.array([[-INF if p is None else p * math.log(2) for p in row] for row in power])
        forced = [[p if m < n or h == n - 1 else None for m, p in enumerate(row)] for h, row in enumerate(power)]
        with mpmath.workdps(50):
            total = exact_determinant(power, root)
            exact = float(mpmath.log(total))
            share = float(exact_determinant(forced, root) / total)
        assert log_partition(arc, root) == pytest.approx(exact, rel=1e-12)
        probability = marginals(arc, root)
        assert probability[n - 1, n] == pytest.approx(share, rel=1e-9, abs=1e-300)
        np.testing.assert_allclose(probability[:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("scale", SCALES)
def test_marginals_of_long_sentences_sum_to_one(scale, root):
    rng = np.random.default_rng(3)
    for n in (20, 41):
        arc = rng.uniform(-scale, scale, (n + 1, n + 1))
        probability = marginals(arc, root)
        assert (probability >= 0).all()
        np.testing.assert_allclose(probability[:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-12)
        if root == "single":
            assert probability[0].sum() == pytest.approx(1.0, abs=1e-9)
        assert np.diagonal(probability).sum() == 0 == probability[:, 0].sum()


def test_a_cycle_that_all_but_hides_the_root():
    """1 and 2 hold each other by e^1000 each: one of them must let go, and either is as likely."""
    arc = np.array([[0.0, -1000, -1000], [0, 0, 1000], [0, 1000, 0]])
    assert log_partition(arc, "multi") == pytest.approx(math.log(2), abs=1e-12)
    np.testing.assert_allclose(marginals(arc, "multi")[:, 1:], [[0.5, 0.5], [0, 0.5], [0.5, 0]], atol=1e-12)
    assert entropy(arc, "multi") == pytest.approx(math.log(2), abs=1e-9)


@pytest.mark.parametrize("root", ROOTS)
def test_entropy_where_every_tree_has_arcs_far_below_the_best_into_their_words(root):
    arc = np.random.default_rng(3).normal(size=(5, 5))
    pairs = np.array([0, 1, 1, 2, 2])
    far = arc - 1e6 * (pairs[:, None] != pairs)  # two pairs of words that prefer each other
    trees = all_trees(4, root)
    with mpmath.workdps(50):
        scores = [mpmath.fsum(mpmath.mpf(float(far[h, m])) for m, h in enumerate(heads) if m) for heads in trees]
        weight = [mpmath.exp(s - max(scores)) for s in scores]
        p = [w / mpmath.fsum(weight) for w in weight if w > 1e-300]
        exact = float(-mpmath.fsum(x * mpmath.log(x) for x in p))
    assert entropy(far, root) == pytest.approx(exact, abs=1e-8)
    assert DependencyBatch(np.stack([arc, far]), root=root).entropy() == pytest.approx(
        [entropy(arc, root), exact], abs=1e-8
    )


@given(arc=arc_scores(max_words=3), root=st.sampled_from(ROOTS))
def test_labels(arc, root):
    """Two labels on every arc: each labelled tree is a tree and a choice of labels."""
    rng = np.random.default_rng(0)
    scores = arc[:, :, None] + rng.normal(size=(*arc.shape, 2))
    scores[0, 1:, 1] = -INF
    folded, given_arc = fold_labels(scores)
    scores[:, 0] = scores[range(len(arc)), range(len(arc))] = -INF  # what no tree reads
    np.testing.assert_allclose(folded, logsumexp(scores, axis=2), atol=1e-12)
    expected = enumerated(folded, root)
    problem = LabelledDependency(scores, projective=False, root=root)
    if expected is None:
        with pytest.raises(Infeasible):
            problem.marginals()
        return
    probability = problem.marginals()["labels"]
    assert problem.log_partition() == pytest.approx(expected[0], abs=1e-11)
    np.testing.assert_allclose(probability.sum(axis=2), expected[1], atol=1e-11)
    np.testing.assert_allclose(probability, expected[1][:, :, None] * given_arc, atol=1e-11)
    used = probability > 0
    assert problem.entropy() == pytest.approx(expected[0] - np.sum(probability[used] * scores[used]), abs=1e-9)


def tilted(arc):
    """The same distribution over trees of three words plus a fourth word that is only ever the head of nothing, and
    whose pull on the others is so strong that random walks would hardly ever leave the cycle 4 <-> 1."""
    out = np.full((5, 5), -INF)
    out[:4, :4] = arc
    out[4, 1] = out[1, 4] = 60.0
    out[0, 4] = out[0, 1] = -60.0
    return out


def assert_drawn_from(arc, root, drawn):
    """The trees have the frequencies of the distribution, by chi-square."""
    trees, k = all_trees(len(arc) - 1, root), len(drawn)
    scores = np.array([arc_score(arc, heads) for heads in trees])
    probability = np.exp(scores - logsumexp(scores))
    index = {heads: i for i, heads in enumerate(trees)}
    counts = np.bincount([index[tuple(heads)] for heads in drawn.tolist()], minlength=len(trees))
    rare = probability * k < 5
    assert counts[probability == 0].sum() == 0
    observed = np.r_[counts[~rare], counts[rare].sum()]
    expected = np.r_[probability[~rare], probability[rare].sum()] * k
    likely = expected > 0
    scale = observed[likely].sum() / expected[likely].sum()
    assert likely.sum() == 1 or chisquare(observed[likely], expected[likely] * scale).pvalue > 1e-3


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("pull", [False, True])
def test_samples_have_the_frequencies_of_the_distribution(root, pull):
    arc = np.random.default_rng(4).normal(size=(4, 4))
    arc[2, 3] = -INF
    if pull:
        arc = tilted(arc)
    k = 1_000 if pull else 5_000  # walks are fast, contraction is not
    drawn = sample_trees(arc, k, root, np.random.default_rng(7))
    assert drawn.shape == (k, len(arc))
    assert_drawn_from(arc, root, drawn)
    few, again = (sample_trees(arc, 20, root, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(few, again)


def test_samples_whose_walks_are_long_below_some_roots_alone():
    """Two words that often choose each other hold up walks to the third: half of those below that are given up."""
    arc = np.array([[0.0, 0, 0, 0], [0, 0, 5, 0], [0, 5, 0, 0], [0, 0, 0, 0]])
    assert_drawn_from(arc, "single", sample_trees(arc, 1_000, "single", np.random.default_rng(3)))


@pytest.mark.parametrize("root", ROOTS)
def test_samples_of_a_batch_have_the_frequencies_of_the_distribution(root):
    rng, lengths = np.random.default_rng(5), np.array([3, 0, 1, 2, 4])
    arc = rng.normal(size=(5, 5, 5))
    arc[0, 2, 3] = -INF
    arc[4] = tilted(arc[4, :4, :4])
    for b, n in enumerate(lengths):
        arc[b, n + 1 :] = arc[b, :, n + 1 :] = np.nan
    drawn = DependencyBatch(arc, lengths=lengths, root=root).sample(1_000, seed=2)
    assert drawn.shape == (5, 1_000, 5)
    for b, n in enumerate(lengths):
        assert (drawn[b, :, n + 1 :] == -1).all()
        assert_drawn_from(arc[b, : n + 1, : n + 1], root, drawn[b, :, : n + 1])


@pytest.mark.parametrize("root", ROOTS)
def test_samples_of_extreme_scores_are_trees(root):
    arc = np.random.default_rng(2).uniform(-1000, 1000, (13, 13))
    for heads in sample_trees(arc, 5, root, np.random.default_rng(0)).tolist():
        assert is_tree(heads, root)


@pytest.mark.parametrize("root", ROOTS)
def test_sampling_without_a_tree(root):
    with pytest.raises(Infeasible):
        sample_trees(np.array([[0.0, -INF], [0, 0]]), 3, root, np.random.default_rng(0))
    with pytest.raises(Infeasible, match="item 1 of the batch"):
        DependencyBatch([[[0.0, 0], [0, 0]], [[0, -INF], [0, 0]]], root=root).sample(3, seed=0)
