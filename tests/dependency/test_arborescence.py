"""Best non-projective trees and max-marginals against all trees, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certus import Dependency, Infeasible, InvalidInput, kernels
from certus.dependency.arborescence import (
    max_marginals,
    max_marginals_batch,
)
from tests.oracles.references import best_tree_value
from tests.oracles.trees import all_trees, arc_score, is_tree
from tests.strategies import arc_scores

ROOTS = ("single", "multi")
INF = np.inf


def best_arborescence(arc, root="single"):
    return Dependency(arc, root=root).decode()


def scored_trees(arc, root):
    """(score, heads) of every tree that uses no forbidden arc."""
    scored = ((arc_score(arc, heads), heads) for heads in all_trees(len(arc) - 1, root))
    return [(score, heads) for score, heads in scored if score > -INF]


def oracle_max_marginals(arc, root):
    out = np.full(arc.shape, -INF)
    for score, heads in scored_trees(arc, root):
        for m in range(1, len(heads)):
            out[heads[m], m] = max(out[heads[m], m], score)
    return out


@given(arc=arc_scores(), root=st.sampled_from(ROOTS))
def test_best_tree_equals_enumeration(arc, root):
    trees = scored_trees(arc, root)
    best = max((score for score, _ in trees), default=-INF)
    assert best_tree_value(arc, root) == best
    if not trees:
        with pytest.raises(Infeasible):
            best_arborescence(arc, root=root)
        return
    result = best_arborescence(arc, root=root)
    assert result.score == best == arc_score(arc, result.structure)
    assert is_tree(result.structure.tolist(), root)
    assert result.structure.dtype == np.int64
    assert result.structure[0] == -1
    assert result.certificate.kind == "combinatorial"
    assert result.certificate.bound == best
    assert result.certificate.exact


@given(arc=arc_scores(), root=st.sampled_from(ROOTS))
def test_max_marginals_equal_enumeration(arc, root):
    if not scored_trees(arc, root):
        with pytest.raises(Infeasible):
            max_marginals(arc, root)
        return
    np.testing.assert_array_equal(max_marginals(arc, root), oracle_max_marginals(arc, root))


@given(arcs=st.lists(arc_scores(max_words=4), min_size=1, max_size=4), root=st.sampled_from(ROOTS))
def test_a_padded_batch_gives_what_each_sentence_gives(arcs, root):
    lengths = np.array([len(arc) - 1 for arc in arcs])
    padded = np.full((len(arcs), 6, 6), 7.0)  # what lies beyond a sentence must not matter
    for page, arc in zip(padded, arcs, strict=True):
        page[: len(arc), : len(arc)] = arc
    heads, values = np.empty((len(arcs), 6), dtype=np.int64), np.empty(len(arcs))
    kernels.arborescence.best_heads_batch(padded.reshape(-1), 6, lengths, root == "single", heads, values)
    marginals = max_marginals_batch(padded, lengths, root)
    for b, arc in enumerate(arcs):
        width = len(arc)
        oracle = oracle_max_marginals(arc, root)
        np.testing.assert_array_equal(marginals[b, :width, :width], oracle)
        assert (np.delete(marginals[b], np.s_[:width], axis=0) == -INF).all()
        assert (heads[b, width:] == -1).all()
        if scored_trees(arc, root):
            assert values[b] == arc_score(arc, heads[b, :width]) == max(s for s, _ in scored_trees(arc, root))
            assert is_tree(heads[b, :width].tolist(), root)
        else:
            assert values[b] == -INF
            assert (heads[b] == -1).all()


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("n", [6, 7, 13, 40])
def test_longer_sentences_agree_with_the_plain_recursion(n, root):
    rng = np.random.default_rng(n)
    for forbidden in (0.0, 0.5, 0.8):
        arc = rng.integers(-8, 9, (n + 1, n + 1)).astype(float)
        arc[rng.random(arc.shape) < forbidden] = -INF
        best = best_tree_value(arc, root)
        if best == -INF:
            with pytest.raises(Infeasible):
                best_arborescence(arc, root=root)
            continue
        result = best_arborescence(arc, root=root)
        assert result.score == best
        assert is_tree(result.structure.tolist(), root)
        marginals = max_marginals(arc, root)
        assert (marginals[:, 1:].max(axis=0) == best).all()
        for h, m in rng.integers(1, n + 1, (6, 2)):
            forced = arc.copy()
            forced[:, m] = -INF
            forced[h, m] = arc[h, m]
            assert marginals[h, m] == best_tree_value(forced, root)


@pytest.mark.parametrize("size", [10.0, 1e15])
def test_a_single_root_costs_no_precision(size):
    """The second root arc is worth far more than everything else; the choice among the rest must still be exact."""
    arc = np.array([[0, size, size, -INF], [0, 0, 1, 3], [0, 2, 0, 2], [0, 0, 0, 0]])
    result = best_arborescence(arc)
    assert result.structure.tolist() == [-1, 2, 0, 1]
    assert result.score == size + 5
    assert best_arborescence(arc, root="multi").score == 2 * size + 3


def test_nested_cycles():
    """1 and 2 prefer each other, then 3 prefers the pair and the pair 3; the root comes in through 2."""
    arc = np.array([[0, 1, 2, 0], [0, 0, 10, 9], [0, 10, 0, 0], [0, 8, 0, 0]])
    assert best_arborescence(arc).structure.tolist() == [-1, 2, 0, 1]  # 2 + 10 + 9


def test_the_diagonal_and_column_0_are_not_used():
    rng = np.random.default_rng(0)
    arc = rng.normal(size=(7, 7))
    other = arc.copy()
    np.fill_diagonal(other, 1e300)
    other[:, 0] = 1e300
    for root in ROOTS:
        assert best_arborescence(arc, root=root).score == best_arborescence(other, root=root).score
        np.testing.assert_array_equal(max_marginals(arc, root), max_marginals(other, root))


def test_the_input_is_left_alone():
    arc = np.random.default_rng(0).normal(size=(9, 9))
    arc.flags.writeable = False
    best_arborescence(arc)
    max_marginals(arc, "multi")


def test_ties_are_broken_the_same_way_each_time():
    arc = np.zeros((12, 12))
    first = best_arborescence(arc)
    assert all((best_arborescence(arc.copy()).structure == first.structure).all() for _ in range(3))
    assert best_arborescence(arc, root="multi").structure.tolist() == [-1] + [0] * 11


@pytest.mark.parametrize("root", ROOTS)
def test_no_words(root):
    result = best_arborescence([[0.0]], root=root)
    assert result.structure.tolist() == [-1]
    assert result.score == 0.0
    assert max_marginals(np.zeros((1, 1)), root).tolist() == [[-INF]]


def test_errors_name_the_tokens():
    arc = np.zeros((4, 4))
    arc[:, 2] = -INF
    with pytest.raises(Infeasible, match="word 2 has no head: all 3 arcs into it are -inf"):
        best_arborescence(arc)
    arc = np.zeros((4, 4))
    arc[0, 1:3] = arc[3, 1:3] = -INF
    with pytest.raises(Infeasible, match="from the root to tokens 1, 2"):
        best_arborescence(arc, root="multi")
    arc = np.zeros((4, 4))
    arc[1:, 3] = -INF
    arc[3, 1] = arc[2, 1] = -INF
    with pytest.raises(Infeasible, match=r'none of the 3 tokens .* misses token 3.*root="multi"'):
        best_arborescence(arc)
    assert best_arborescence(arc, root="multi").score == 0


@pytest.mark.parametrize("arc", [np.zeros((2, 3)), np.zeros((0, 0)), np.zeros(4), np.zeros((2, 2, 2))])
def test_wrong_shapes(arc):
    with pytest.raises(InvalidInput, match="shape"):
        best_arborescence(arc)


def test_wrong_root():
    with pytest.raises(InvalidInput, match="root is 'two'"):
        best_arborescence(np.zeros((2, 2)), root="two")
