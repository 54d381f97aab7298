"""The problem over a hypergraph: all its questions, fixing of edges, and travel."""

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Hypergraph, Hyperpath, Infeasible, InvalidInput, verify
from certus.errors import VerificationError
from tests.hypergraph.cases import derivations
from tests.strategies import edge_weights, hypergraphs

GRAPH = Hypergraph([0, 1, 2, 4], [0, 0, 0, 2, 4], [0, 1, 1, 0])


def scored_structures(problem):
    pairs = [(problem.score(y), tuple(y.tolist())) for y in problem.all_structures()]
    return sorted((score, y) for score, y in pairs if score > -math.inf)


@settings(max_examples=80)
@given(hypergraphs())
def test_decode_scores_and_certificate(case):
    graph, weights = case
    problem = Hyperpath(graph, weights)
    scored = derivations(graph, weights)
    assert scored_structures(problem) == sorted(scored)
    if not scored:
        with pytest.raises(Infeasible):
            problem.decode()
        assert problem.reference_maximum() == -math.inf
        return
    result = problem.decode()
    assert result.score == result.certificate.bound == max(scored)[0] == problem.reference_maximum()
    assert result.certificate.exact
    assert result.certificate.kind == "dynamic program"
    assert problem.indicator(result.structure, "edges").sum() == len(result.structure) <= problem.extent().length


@settings(max_examples=100)
@given(hypergraphs(), st.data())
def test_fixing_edges_keeps_exactly_the_derivations_that_agree(case, data):
    graph, weights = case
    if not graph.n_edges:
        return
    problem = Hyperpath(graph, weights)
    fixed = data.draw(st.lists(st.tuples(st.integers(0, graph.n_edges - 1), st.integers(0, 1)), min_size=1, max_size=3))
    for e, value in fixed:
        problem = problem.with_fixed("edges", (e,), value)
    want = sorted((s, y) for s, y in derivations(graph, weights) if all((e in y) == value for e, value in fixed))
    assert scored_structures(problem) == want
    penalty = data.draw(edge_weights(graph.n_edges))
    penalised = [s + sum(penalty[e] for e in y) for s, y in want]
    best = max(penalised, default=-math.inf)
    assert problem.reference_maximum({"edges": penalty}) == best
    if best > -math.inf:
        solution = problem.solve({"edges": penalty})
        assert solution.value == best
        used = problem.indicator(solution.structure, "edges")
        assert all((used[e] > 0) == value for e, value in fixed)
    again = Hyperpath.from_json(json.loads(json.dumps(problem.to_json())))
    assert scored_structures(again) == want


@settings(max_examples=100)
@given(hypergraphs())
def test_max_marginals_are_what_fixing_finds(case):
    graph, weights = case
    problem = Hyperpath(graph, weights)
    found = problem.max_marginals()["edges"]
    for e in range(graph.n_edges):
        assert problem.with_fixed("edges", (e,), 1).reference_maximum() == found[e]


def test_results_are_verified_and_altered_ones_are_not():
    problem = Hyperpath(GRAPH, [1, 2, 3, 4])
    required = problem.with_fixed("edges", (2,), 1)
    for case in (problem, required):
        for result in case.kbest(2):
            verify(case, result)
            for altered in (
                dataclasses.replace(result, score=result.score + 1),
                dataclasses.replace(result, certificate=dataclasses.replace(result.certificate, bound=0.0)),
                dataclasses.replace(result, structure=result.structure[:-1]),
            ):
                with pytest.raises(VerificationError):
                    verify(case, altered)
    with pytest.raises(VerificationError, match="forbidden"):
        verify(required, problem.decode())


def test_vertex_weights_count_for_each_use():
    graph = Hypergraph([0, 1, 2], [0, 0, 2], [0, 0])
    problem = Hyperpath(graph, [1.0, 2.0], vertex_weights=[10.0, 100.0])
    assert problem.decode().score == 2.0 + 100.0 + 2 * (1.0 + 10.0)


def test_the_other_questions_are_answered():
    problem = Hyperpath(GRAPH, [1, 2, 3, 4])
    assert [r.score for r in problem.kbest(5)] == [7.0, 6.0]
    assert [r.certificate.rank for r in problem.kbest(5)] == [1, 2]
    assert problem.log_partition() == pytest.approx(math.log(math.exp(7) + math.exp(6)))
    assert problem.marginals()["edges"].sum() == pytest.approx(3.0)
    assert problem.entropy() == pytest.approx(0.5822, abs=1e-4)
    assert all(problem.score(y) in (6.0, 7.0) for y in problem.sample(10, seed=0))


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ([2, 0], "stops before vertex 1"),
        ([2, 1, 0], "expected an edge into 0"),
        ([2, 0, 1, 0], "complete before it"),
        ([2, 0, 9], r"structure\[2\] is 9; "),
        ([], "stops before vertex 2"),
        ([2.5, 0, 1], "list of edges|expected a whole number"),
        ("abc", "list of edges|expected a list"),
    ],
)
def test_what_is_not_a_derivation_is_rejected(structure, message):
    problem = Hyperpath(GRAPH, np.zeros(4))
    with pytest.raises(InvalidInput, match=message):
        problem.score(np.array(structure))
    with pytest.raises(InvalidInput, match=message):
        problem.structure_from_json(structure)


def test_structures_travel():
    problem = Hyperpath(GRAPH, [1, 2, 3, 4])
    data = json.loads(json.dumps(problem.structure_to_json(problem.decode().structure)))
    assert problem.structure_from_json(data).tolist() == [3, 1, 0]


@pytest.mark.parametrize(
    "broken",
    [[], {}, {"graph": 3}, {"graph": {"format": "certus hypergraph 1"}}],
)
def test_what_is_not_a_problem_is_rejected(broken):
    with pytest.raises(InvalidInput):
        Hyperpath.from_json(broken)


def test_fixing_checks_its_arguments():
    problem = Hyperpath(GRAPH, np.zeros(4))
    for view, index, value in [("arcs", (0,), 1), ("edges", (4,), 1), ("edges", (0, 0), 1), ("edges", (0,), 2)]:
        with pytest.raises(InvalidInput):
            problem.with_fixed(view, index, value)
