"""Every question of LexicalizedConstituency against enumeration of heads, spines and levels."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Infeasible, InvalidInput, LexicalizedConstituency
from certus.relax.linear import solve_ilp
from tests.constituency.spines import RandomSpines, trees

SENTENCES = st.lists(st.sampled_from("aabbc,"), min_size=1, max_size=4)


@st.composite
def problems(draw, max_size=4):
    grammar = RandomSpines(draw(st.integers(0, 10**6)))
    words = draw(st.lists(st.sampled_from("aabbc,"), min_size=1, max_size=max_size))
    return LexicalizedConstituency(grammar, words), dict(trees(grammar, words))


def penalties(problem, seed):
    rng = np.random.default_rng(seed)
    out = {}
    for view, shape in problem.views.items():
        values = rng.integers(-8, 9, shape).astype(float)
        values[rng.random(shape) < 0.1] = -np.inf
        if rng.random() < 0.8:
            out[view] = values
    return out


def penalised(problem, found, penalty):
    def extra(tree):
        return sum(p[problem.indicator(tree, view) > 0].sum() for view, p in penalty.items())

    return {tree: score + extra(tree) for tree, score in found.items()}


@settings(max_examples=60)
@given(problems())
def test_scores_and_structures(case):
    problem, found = case
    if not found:
        with pytest.raises(Infeasible):
            problem.decode()
        assert problem.reference_maximum() == -np.inf
        return
    best = max(found.values())
    assert {tree: problem.score(tree) for tree in found} == found
    result = problem.decode()
    assert result.score == best == result.certificate.bound == problem.reference_maximum()
    assert found[result.structure] == best
    certus.verify(problem, result)
    listed = list(problem.all_structures())
    assert len(listed) == len(found)
    assert set(listed) == set(found)
    assert [r.score for r in problem.kbest(5)] == sorted(found.values(), reverse=True)[:5]
    assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(list(found.values())))


@settings(max_examples=60)
@given(problems(), st.integers(0, 10**6))
def test_penalties_and_max_marginals(case, seed):
    problem, found = case
    penalty = penalties(problem, seed)
    left = {tree: score for tree, score in penalised(problem, found, penalty).items() if score > -np.inf}
    if not left:
        with pytest.raises(Infeasible):
            problem.solve(penalty)
        assert problem.reference_maximum(penalty) == -np.inf
        return
    solution = problem.solve(penalty)
    assert solution.value == max(left.values()) == left[solution.structure] == problem.reference_maximum(penalty)
    through = problem.max_marginals(penalty)
    for view, shape in problem.views.items():
        wanted = np.full(shape, -np.inf)
        for tree, score in left.items():
            used = problem.indicator(tree, view) > 0
            wanted[used] = np.maximum(wanted[used], score)
        assert np.array_equal(through[view], wanted)


@settings(max_examples=40)
@given(problems(), st.integers(0, 20), st.integers(0, 10**6))
def test_all_trees_within_a_width_are_kept(case, width, seed):
    problem, found = case
    if not found:
        return
    pruned = problem.within(width)
    best = max(found.values())
    assert pruned.decode().score == best
    kept = list(pruned.all_structures())
    assert {tree for tree, score in found.items() if score >= best - width} <= set(kept) <= set(found)
    assert len(kept) == len(set(kept))
    assert set(map(str, problem.within(np.inf).all_structures())) == set(map(str, found))
    penalty = penalties(problem, seed)
    left = penalised(pruned, {tree: found[tree] for tree in kept}, penalty)
    if max(left.values()) > -np.inf:
        assert pruned.solve(penalty).value == max(left.values()) == pruned.reference_maximum(penalty)
