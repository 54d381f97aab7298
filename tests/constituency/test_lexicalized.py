"""Every question of LexicalizedConstituency against enumeration of heads, spines and levels."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Infeasible, InvalidInput, LexicalizedConstituency
from certus.relax.linear import solve_ilp
from tests.constituency.spines import RandomSpines, trees
from tests.oracles import closed


@st.composite
def problems(draw, max_size=3):
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


@settings(max_examples=30)
@given(problems())
def test_scores_and_structures(case):
    problem, found = case
    if not found:
        with pytest.raises(Infeasible):
            problem.decode()
        return
    best = max(found.values())
    assert {tree: problem.score(tree) for tree in found} == found
    result = problem.decode()
    assert result.score == best == result.certificate.bound
    assert found[result.structure] == best
    certus.verify(problem, result)
    listed = list(problem.all_structures())
    assert len(listed) == len(found)
    assert set(listed) == set(found)
    assert [r.score for r in problem.kbest(5)] == sorted(found.values(), reverse=True)[:5]
    assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(list(found.values())))


@settings(max_examples=30)
@given(problems(), st.integers(0, 10**6))
def test_penalties_and_max_marginals(case, seed):
    problem, found = case
    penalty = penalties(problem, seed)
    left = {tree: score for tree, score in penalised(problem, found, penalty).items() if score > -np.inf}
    if not left:
        with pytest.raises(Infeasible):
            problem.solve(penalty)
        closed.check(problem, {}, -1000.0, penalty)
        return
    solution = problem.solve(penalty)
    assert solution.value == max(left.values()) == left[solution.structure]
    through = problem.max_marginals(penalty)
    for view, shape in problem.views.items():
        wanted = np.full(shape, -np.inf)
        for tree, score in left.items():
            used = problem.indicator(tree, view) > 0
            wanted[used] = np.maximum(wanted[used], score)
        assert np.array_equal(through[view], wanted)


@settings(max_examples=25)
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
        assert pruned.solve(penalty).value == max(left.values())


@settings(max_examples=20)
@given(problems(), st.integers(0, 10**6), st.integers(-30, 3))
def test_what_a_search_leaves_above_a_score(case, seed, distance):
    problem, found = case
    penalty = penalties(problem, seed)
    left = penalised(problem, found, penalty)
    best = max(left.values(), default=-np.inf)
    closed.check(problem, left, best + distance if best > -np.inf else distance, penalty)
    closed.check(problem, left, -np.inf, penalty)
    closed.check(problem, left, np.inf, penalty)
    huge = {view: 2.0**40 * p for view, p in penalty.items()}
    left = penalised(problem, found, huge)
    closed.check(problem, left, max(left.values(), default=0.0) - 5.0, huge)


@settings(max_examples=10)
@given(problems())
def test_ranks_are_proved_and_nothing_less(case):
    problem, found = case
    results = problem.kbest(6) if found else []
    for result in results:
        certus.verify(problem, result)
        claim = replace(result.certificate, bound=result.score - 0.5, score=result.score)
        with pytest.raises(certus.VerificationError, match="bound"):
            certus.verify(problem, replace(result, certificate=claim))
    if len(results) > 2 and results[1].score > results[2].score:
        claim = replace(results[2].certificate, better=results[2].certificate.better[:1], rank=2)
        with pytest.raises(certus.VerificationError, match="bound"):
            certus.verify(problem, replace(results[2], certificate=claim))


@settings(max_examples=10)
@given(problems())
def test_travels_and_solves_as_an_integer_program(case):
    problem, found = case
    again = LexicalizedConstituency.from_json(json.loads(json.dumps(problem.to_json())))
    assert again.within(3.0).to_json() == problem.within(3.0).to_json()
    if not found:
        return
    result = problem.decode()
    structure = again.structure_from_json(json.loads(json.dumps(problem.structure_to_json(result.structure))))
    assert structure == result.structure
    assert again.decode().score == again.score(structure) == result.score
    assert solve_ilp(problem).score == result.score


def test_bad_input():
    grammar = RandomSpines(1, forbidden=0.0)
    problem = LexicalizedConstituency(grammar, ["b", "a"])
    tree = problem.decode().structure
    with pytest.raises(InvalidInput, match="split it first"):
        LexicalizedConstituency(grammar, "b a")
    with pytest.raises(InvalidInput, match=r"words\[1\] is 3"):
        LexicalizedConstituency(grammar, ["b", 3])
    with pytest.raises(InvalidInput, match="no view 'spines'"):
        problem.solve({"spines": np.zeros(2)})
    with pytest.raises(InvalidInput, match="the tree's words"):
        LexicalizedConstituency(grammar, ["b"]).score(tree)
    with pytest.raises(InvalidInput, match=r"expected a certus\.LexicalizedTree"):
        problem.score(tree.tree)
    with pytest.raises(InvalidInput, match="width is -1"):
        problem.within(-1)
    with pytest.raises(InvalidInput, match="nan"):
        problem.closed_form(np.nan, {})
    with pytest.raises(InvalidInput, match="inf"):
        problem.closed_form(0.0, {}, {"tags": np.full((2, 3), np.inf)})
    with pytest.raises(Infeasible, match="no words"):
        LexicalizedConstituency(grammar, []).decode()
    with pytest.raises(Infeasible, match=r'word 2 \("z"\) has no spine: it has no tag'):
        LexicalizedConstituency(grammar, ["b", "z"]).decode()
    with pytest.raises(Infeasible, match="all its tags are forbidden"):
        problem.solve({"tags": np.full((2, 3), -np.inf)})
    data = problem.to_json()
    data["node_group"]["values"][0] = 10**6
    with pytest.raises(InvalidInput, match="node_group holds numbers from -1 to 1000000"):
        LexicalizedConstituency.from_json(data)


def test_too_large(monkeypatch):
    problem = LexicalizedConstituency(RandomSpines(1, forbidden=0.0), ["b", "a"])
    monkeypatch.setattr(LexicalizedConstituency, "memory_limit", 1)
    with pytest.raises(certus.NotSupported, match="parsing 2 words"):
        problem.decode()
