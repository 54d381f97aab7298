"""Masks, unread cells, forgeries: what must not fool a certificate."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import certus
from certus import Dependency, InvalidInput, VerificationError, verify
from certus.relax.linear import solve_ilp
from tests.fuzz import cases, problems  # noqa: F401 (problems registers the kinds)
from tests.fuzz.cases import KINDS
from tests.oracles.enumerated import Enumerated

LEAST = [float(np.finfo(np.float32).min), float(np.finfo(np.float64).min)]
MASKS = [-1e4, -1e9, *LEAST]


def best_without(problem, mask):
    """The best score of all structures that use no score near the mask; None if there is none."""
    scores = (problem.terms(y) for y in problem.all_structures())
    return max((sum(s) for s in scores if min(s, default=0.0) > mask / 2), default=None)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", ["arcs", "projective", "crossing", "labels"])
def test_masks_of_any_size_are_read_as_forbidden(kind, mask):
    rng = np.random.default_rng(7)
    for _ in range(4):
        arc = rng.integers(-8, 9, (5, 5)).astype(float)
        arc[rng.random(arc.shape) < 0.25] = mask
        parts = {} if kind == "arcs" else {k: rng.normal(size=(5, 5, 5)) for k in ("sibling", "grandparent")}
        if kind == "crossing":
            parts["sibling"][rng.random((5, 5, 5)) < 0.1] = mask
        problem = Dependency(arc, **parts, projective=kind == "projective")
        if kind == "labels":
            problem = problem.labelled(np.where(rng.random((5, 5, 2)) < 0.2, mask, 1.0))
        best = best_without(problem, mask)
        if best is None and mask == LEAST[1]:
            with pytest.raises(InvalidInput, match="overflow"):
                problem.decode()
            continue
        result = problem.decode()
        verify(problem, result)
        if best is None:
            assert not result.certificate.exact or mask > -1e9
        else:
            assert result.score == pytest.approx(best, abs=1e-9)
            assert result.certificate.exact


def test_a_cell_that_is_never_read_proves_nothing():
    rng = np.random.default_rng(3)
    for cell in (1e20, -1e20, 1e300, np.finfo(np.float64).max):
        arc, sibling, grandparent = rng.normal(size=(4, 4)), rng.normal(size=(4, 4, 4)), rng.normal(size=(4, 4, 4))
        sibling[1, 1, 1] = grandparent[2, 2, 1] = cell
        for projective in (True, False):
            problem = Dependency(arc, sibling, grandparent, projective=projective)
            result = problem.decode()
            assert result.score == pytest.approx(max(map(problem.score, problem.all_structures())), abs=1e-12)
            assert result.certificate.exact
            verify(problem, result)


def test_a_mask_that_every_structure_needs_is_not_exact_and_says_why():
    arc = np.full((3, 3), -1e30)
    arc[1, 2], arc[2, 1] = 3.0, 4.0
    result = Dependency(arc, np.zeros((3, 3, 3))).decode()
    assert not result.certificate.exact
    assert "-inf" in result.certificate.reason
    assert "gap" in repr(result)


def test_scores_that_overflow_are_refused():
    with pytest.raises(InvalidInput, match="overflow"):
        Dependency(np.full((4, 4), 1e300)).decode()
    with pytest.raises(InvalidInput, match="overflow"):
        Dependency(np.full((4, 4), np.finfo(np.float64).min)).decode()


def test_a_forged_result_is_refused():
    """A tree that scores 4 cannot be passed off as one of 123456 beside an arc of -1e30."""
    problem = Dependency([[0, 5, 1], [0, 0, 4], [-1e30, 3, 0]])
    result = problem.decode()
    verify(problem, result)
    worse = np.array([-1, 2, 0])
    for structure, score in ((worse, 123456.0), (worse, 4.0), (result.structure, 123456.0)):
        for tolerance in (result.certificate.tolerance, 1e15):
            for floor in (None, -np.inf, 1.0):
                claim = replace(result.certificate, score=score, bound=score, tolerance=tolerance, floor=floor)
                with pytest.raises(VerificationError):
                    verify(problem, replace(result, structure=structure, score=score, certificate=claim))


def test_a_floor_that_leaves_out_something_of_use_is_refused():
    problem = Dependency([[0, 5, 1], [0, 0, 4], [0, 3, 0]], projective=True)
    worse = problem.kbest(2)[1]
    claim = replace(worse.certificate, rank=1, better=(), bound=worse.score, floor=4.5)
    with pytest.raises(VerificationError, match="may be better"):
        verify(problem, replace(worse, certificate=claim))


@pytest.mark.parametrize("root", ["single", "multi"])
def test_the_first_of_the_k_best_is_accepted(root):
    """Two formulas for one tolerance once refused every first of a k-best list of trees with crossing arcs."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        problem = Dependency(rng.normal(size=(5, 5)), root=root)
        for result in problem.kbest(3):
            verify(problem, result)


def test_whole_scores_are_proved_where_what_is_used_adds_up_to_nothing():
    arc = np.array([[0, 0, 3, -9], [0, 0, 0, -9], [0, -9, 0, 0], [0, -9, -9, 0]], dtype=float)
    for parts in ({}, {"sibling": np.zeros((4, 4, 4))}):
        result = Dependency(arc, **parts).decode()
        assert result.score == 0.0
        assert result.certificate.exact


def test_a_problem_that_cannot_leave_scores_out_is_asked_as_it_is():
    problem = Enumerated(np.eye(2), [-1e30, 3.0])
    result = problem.decode()
    assert (result.structure, result.score) == (1, 3.0)


def test_a_required_part_that_no_tree_has_leaves_no_tree():
    problem = Dependency(np.zeros((3, 3)), projective=True)
    with pytest.raises(certus.Infeasible):
        problem.subject_to(certus.constraints.require("arcs", (2, 0))).decode()


def test_the_word_of_a_solver_is_no_proof():
    """What HiGHS finds is proved by multipliers and a tree of our own, or not at all."""
    problem = certus.Tagging([[3.0, 1.0], [0.0, 2.0]], bigram=[[1.0, 0.0], [0.0, 1.0]])
    result = solve_ilp(problem)
    verify(problem, result)
    assert result.certificate.exact
    worse = problem.kbest(2)[1]
    claim = replace(result.certificate, score=worse.score, bound=worse.score)
    with pytest.raises(VerificationError, match="bound"):
        verify(problem, replace(result, structure=worse.structure, score=worse.score, certificate=claim))


def test_a_floor_is_held_against_the_scores_that_go_with_it():
    """Without S -> B B the high score of B is out of reach: that it is not there says nothing of S -> B B."""
    graph = certus.Hypergraph(in_ptr=[0, 1, 3], tail_ptr=[0, 0, 1, 1], tail=[0])
    problem = certus.Hyperpath(graph, [1e33, -1e20, -5.0])
    assert problem.decode().score == pytest.approx(1e33)
    worse = problem.kbest(2)[1]
    claim = replace(worse.certificate, rank=1, better=(), bound=worse.score, floor=-1e10, tolerance=0.0)
    with pytest.raises(VerificationError, match="may be better"):
        verify(problem, replace(worse, certificate=replace(claim, reason=None)))


def test_floors_one_after_the_other_are_accepted():
    """Below the first floor goes the one score that makes 1e30 of use; below a second, what is hopeless without it."""
    graph = certus.Hypergraph(in_ptr=[0, 1, 3, 5], tail_ptr=[0, 0, 0, 0, 1, 2], tail=[0, 1])
    problem = certus.Hyperpath(graph, [1e30, 0.0, -1e9, -1e38, 1.0])
    constrained = problem.subject_to(certus.constraints.at_most(1, "edges", [(0,), (4,)]))
    (best,) = constrained.kbest(1)
    assert best.certificate.exact
    assert best.score == 1.0
    assert best.certificate.floor == -1e6
    verify(constrained, best)
    claim = replace(best, certificate=replace(best.certificate, floor=2.0))
    with pytest.raises(VerificationError):
        verify(constrained, claim)


def test_the_best_is_not_the_second_best():
    problem = Dependency([[0, 5, 1], [0, 0, 4], [0, 3, 0]], projective=True)
    first, second = problem.kbest(2)
    claim = replace(second.certificate, score=first.score, bound=first.score)
    with pytest.raises(VerificationError, match="rank 2"):
        verify(problem, replace(first, certificate=claim))


def test_masks_in_a_batch_of_trees_with_crossing_arcs():
    """Contraction subtracts what it adds again later: beside a mask, 5 and 7 looked the same."""
    rng = np.random.default_rng(2)
    arc = rng.integers(-8, 9, (100, 6, 6)).astype(float)
    arc[rng.random(arc.shape) < 0.2] = -1e26
    found = certus.DependencyBatch(arc).decode()
    for b in range(len(arc)):
        problem = Dependency(arc[b])
        best = best_without(problem, -1e26)
        if best is not None:
            assert found.score[b] == best == problem.decode().score
            assert found.certificate.exact[b]
            marginal = problem.max_marginals()["arcs"]
            assert marginal.max() == best


def test_sums_leave_masks_out_and_refuse_what_they_cannot_tell_apart():
    arc = np.array([[0, 1, 2], [0, 0, 3], [0, 1, 0]], dtype=float)
    plain = Dependency(np.where(arc == 2, -np.inf, arc)).log_partition()
    assert Dependency(np.where(arc == 2, -1e30, arc)).log_partition() == pytest.approx(plain)
    with pytest.raises(InvalidInput, match="sums of exp"):
        Dependency(np.where(arc == 3, 1e30, arc)).marginals()


def test_kbest_lists_what_needs_no_mask_that_overflows_and_refuses_what_does():
    """Three of the four taggings use the least float64 once or twice: there is one to list, and it is proved."""
    least = np.finfo(np.float64).min
    problem = certus.Tagging([[1.0, least], [2.0, least]])
    (best,) = problem.kbest(1)
    assert best.score == 3.0
    assert best.certificate.exact
    verify(problem, best)
    for k, low in ((2, problem), (1, certus.Tagging([[least, least]]))):
        with pytest.raises(InvalidInput, match="overflow"):
            low.kbest(k)


@pytest.mark.parametrize("mask", [-1e15, -1e30])
@pytest.mark.parametrize("projective", [True, False])
def test_ranks_before_those_that_need_a_mask_are_proved(mask, projective):
    arc = np.full((4, 4), mask)
    arc[0, 1], arc[1, 2], arc[2, 3], arc[1, 3] = 1.0, 2.0, 1.0, 0.0
    for p in (
        Dependency(arc, projective=projective),
        certus.LabelledDependency(arc[:, :, None], projective=projective),
    ):
        found = p.kbest(4)
        assert [r.score for r in found[:2]] == [4.0, 3.0]
        assert [r.certificate.exact for r in found] == [True, True, False, False]
        assert [r.certificate.rank for r in found] == [1, 2, 3, 4]
        for r in found:
            verify(p, r)


@pytest.mark.parametrize("fixed", [((0, 1), 1), ((0, 2), 0)])
def test_labels_and_arcs_that_overflow_together_are_no_reason_for_infeasible_under_constraints(fixed):
    lowest = float(np.finfo(np.float64).min)
    arc = np.zeros((3, 3))
    arc[0, 1] = lowest
    label = np.zeros((3, 3, 1))
    label[0, 1] = lowest
    p = certus.LabelledDependency(label, arc)
    with pytest.raises(InvalidInput, match="overflow"):
        p.with_fixed("arcs", *fixed).decode()


def test_labels_and_arcs_that_overflow_together_are_not_infeasible():
    least = np.finfo(np.float64).min
    arc, label = np.array([[0.0, least], [0.0, 0.0]]), np.array([[[0.0], [least]], [[0.0], [0.0]]])
    with pytest.raises(InvalidInput, match="overflow"):
        certus.LabelledDependency(label, arc).decode()


@pytest.mark.parametrize("projective", [True, False])
def test_max_marginals_that_rounding_left_nothing_of_are_refused(projective):
    rng = np.random.default_rng(5)
    arc = rng.normal(size=(4, 4))
    arc[0, 1], arc[1, 2] = 1e30, -1e30
    for problem in (Dependency(arc, projective=projective), Dependency(arc).labelled(np.zeros((4, 4, 2)))):
        with pytest.raises(InvalidInput, match="max-marginals"):
            problem.max_marginals()
    with pytest.raises(InvalidInput, match="max-marginals"):
        certus.DependencyBatch([arc], projective=projective).max_marginals()
    with pytest.raises(InvalidInput, match="max-marginals"):
        certus.TaggingBatch(arc[None]).max_marginals()


@pytest.mark.parametrize("projective", [True, False])
def test_max_marginals_beside_masks_and_whole_scores_are_not_refused(projective):
    rng = np.random.default_rng(6)
    for cell in (-1e30, np.finfo(np.float64).min, 1e10):
        arc = rng.integers(-8, 9, (4, 4)).astype(float)
        arc[2, 1] = cell
        problem = Dependency(arc, projective=projective)
        found = problem.max_marginals()["arcs"]
        for m in range(1, 4):
            for h in range(4):
                trees = [y for y in problem.all_structures() if y[m] == h]
                assert found[h, m] == max(map(problem.score, trees), default=-np.inf)
        batch = certus.DependencyBatch([arc], projective=projective).max_marginals()["arcs"][0]
        np.testing.assert_array_equal(batch, found)


def nothing_beside_something(kind):
    """A problem whose best structure scores 0 in every part, beside scores without a grain."""
    rng = np.random.default_rng(11)
    n = 4
    arc = -1.0 - np.abs(rng.normal(size=(n, n)))
    arc[0, 1] = arc[1, 2] = arc[2, 3] = 0.0
    arc[3, 1], arc[3, 2] = 0.3, 0.1  # of use only with arcs that cost more
    arc[0, 3] = -7.7
    if kind == "arcs":
        return Dependency(arc)
    if kind == "projective":
        return Dependency(arc, np.zeros((n, n, n)), projective=True)
    if kind == "crossing":
        return Dependency(arc, np.zeros((n, n, n)), np.zeros((n, n, n)))
    if kind == "labels":
        return certus.LabelledDependency(np.stack([arc, arc - 0.1], axis=2))
    return Dependency(arc, projective=True).subject_to(certus.constraints.at_most(2, "arcs", [(0, 1), (0, 2), (0, 3)]))


@pytest.mark.parametrize("kind", ["arcs", "projective", "crossing", "labels", "constrained"])
def test_a_structure_of_nothing_but_0_is_proved(kind):
    problem = nothing_beside_something(kind)
    result = problem.decode()
    assert result.score == 0.0
    assert result.certificate.exact
    assert result.certificate.tolerance == 0.0
    verify(problem, result)
    for worse in problem.all_structures():
        score = problem.score(worse)
        if score < 0.0:
            claim = replace(result.certificate, score=score, bound=score)
            with pytest.raises(VerificationError):
                verify(problem, replace(result, structure=worse, score=score, certificate=claim))


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "grid"])
def test_scores_rounded_up_are_multiples_and_no_lower(kind):
    step, tried = 2.0**-20, 0
    for seed in range(12):
        case = cases.drawn(np.random.default_rng(seed), kind, "real")
        problem = cases.made(case).without_scores_below(-np.inf)
        try:
            raised = problem.with_scores_rounded_up(step)
        except certus.NotSupported:
            assert problem.all_scores() is None or kind in ("joint", "phrase translation", "constrained", "soft")
            continue
        for structure, _ in islice(cases.listed(case, problem), 30):
            given, now = problem.terms(structure), raised.terms(structure)
            for before, after in zip(given, now, strict=True):
                assert before <= after < before + step or before == after == -np.inf
                assert after == -np.inf or after % step == 0.0
            tried += 1
    assert tried or kind in ("forest translation", "accepted forest translation")


@pytest.mark.parametrize("scale", [1e-290, 1e-300, 1e-307, 1e-312, 5e-324])
def test_tiny_scores_that_decode_proves_are_verified(scale):
    """They were rounded up to multiples of 2^-1020 and more, beside which they have no digits."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        tree, pairs = rng.normal(size=(4, 4)) * scale, rng.normal(size=(4, 4, 4)) * scale
        for problem in (
            certus.Assignment(rng.normal(size=(3, 3)) * scale),
            certus.Tagging(rng.normal(size=(3, 3)) * scale, rng.normal(size=(3, 3)) * scale),
            Dependency(tree),
            Dependency(tree, pairs),
            certus.LabelledDependency(pairs),
            certus.SpanningTree(tree + tree.T),
            certus.DependencyGraph(tree, pairs, pairs),
        ):
            result = problem.decode()
            verify(problem, result)
            if scale > 1e-310:
                assert result.certificate.exact or problem.relaxation() is not None
            above = replace(result.certificate, score=result.score - scale, bound=result.score - scale)
            with pytest.raises(VerificationError):
                verify(problem, replace(result, score=result.score - scale, certificate=above))
