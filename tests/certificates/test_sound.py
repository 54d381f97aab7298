"""Masks, unread cells, forgeries: what must not fool a certificate."""

from dataclasses import replace

import numpy as np
import pytest

import certus
from certus import Dependency, InvalidInput, VerificationError, verify
from certus.relax.linear import solve_ilp
from tests.oracles.enumerated import Enumerated

LEAST = [float(np.finfo(np.float32).min), float(np.finfo(np.float64).min)]
MASKS = [-1e4, -1e6, -1e9, -1e15, -1e30, *LEAST]


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
    claim = replace(worse.certificate, rank=1, bound=worse.score, floor=4.5)
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
    problem = certus.Tagging([[3.0, 1.0], [0.0, 2.0]], bigram=[[1.0, 0.0], [0.0, 1.0]])
    result = solve_ilp(problem)
    verify(problem, result)
    with pytest.raises(VerificationError, match="solver"):
        verify(problem, replace(result, certificate=replace(result.certificate, reason=None)))


def test_a_floor_is_held_against_the_scores_that_go_with_it():
    """Without S -> B B the high score of B is out of reach: that it is not there says nothing of S -> B B."""
    graph = certus.Hypergraph(in_ptr=[0, 1, 3], tail_ptr=[0, 0, 1, 1], tail=[0])
    problem = certus.Hyperpath(graph, [1e33, -1e20, -5.0])
    assert problem.decode().score == pytest.approx(1e33)
    worse = problem.kbest(2)[1]
    claim = replace(worse.certificate, kind="dynamic program", rank=1, bound=worse.score, floor=-1e10, tolerance=0.0)
    with pytest.raises(VerificationError, match="may be better"):
        verify(problem, replace(worse, certificate=replace(claim, reason=None)))


def test_the_best_is_not_the_second_best():
    problem = Dependency([[0, 5, 1], [0, 0, 4], [0, 3, 0]], projective=True)
    first, second = problem.kbest(2)
    claim = replace(second.certificate, score=first.score, bound=first.score)
    with pytest.raises(VerificationError, match="rank 2"):
        verify(problem, replace(first, certificate=claim))


def test_masks_in_a_batch_of_trees_with_crossing_arcs():
    """Contraction subtracts what it adds again later: beside a mask, 5 and 7 looked the same."""
    rng = np.random.default_rng(2)
    arc = rng.integers(-8, 9, (300, 6, 6)).astype(float)
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
