"""Constrained hypergraphs against all derivations; beam search that says whether it pruned."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import certus
from certus import ConstrainedHyperpath, HypergraphBuilder, Infeasible, InvalidInput, LimitReached, NotSupported
from tests.oracles.questions import answer
from tests.strategies import hypergraphs


@st.composite
def problems(draw):
    """Rows over a small hypergraph: often ones that some derivation satisfies."""
    graph, weights = draw(hypergraphs())
    assume(graph.n_edges > 0)
    p = draw(st.integers(0, 3))
    coefficient = draw(st.sampled_from([st.integers(0, 1), st.integers(-1, 2)]))
    A = np.array(draw(st.lists(coefficient, min_size=p * graph.n_edges, max_size=p * graph.n_edges)), dtype=np.float64)
    A = A.reshape(p, graph.n_edges)
    b = np.array(draw(st.lists(st.integers(0, 3), min_size=p, max_size=p)), dtype=np.float64)
    some = next(graph.hyperpaths(), None)
    if some is not None and draw(st.booleans()):
        b = A[:, some].sum(axis=1)
    return ConstrainedHyperpath(graph, weights, A, b)


def every_score(problem):
    """Scores of the derivations with A y = b, best first."""
    out = []
    for edges in problem.graph.hyperpaths():
        score = sum(float(problem.weights[e]) for e in edges)
        if score > -np.inf and (problem.A[:, edges].sum(axis=1) == problem.b).all():
            out.append(score)
    return sorted(out, reverse=True)


@given(problems(), st.sampled_from(["alternating", "staged"]))
@settings(max_examples=50)
def test_optimal_beam_search_finds_the_best_constrained_derivation(problem, method):
    scores = every_score(problem)
    result = answer(scores, problem.decode, method=method)
    if result is None:
        return
    assert result.score == scores[0]
    assert result.certificate.exact
    certus.verify(problem, result)


@given(problems(), st.integers(1, 4))
@settings(max_examples=40)
def test_a_beam_claims_the_optimum_only_if_it_did_not_prune(problem, width):
    scores = every_score(problem)
    found = problem.beam_search(width)
    if not found.pruned:
        assert found.score == (scores[0] if scores else -np.inf)
    elif found.structure is not None:
        assert found.score <= scores[0]
    if scores:
        again = problem.beam_search(1 << 40, lower=scores[0])
        assert again.structure is None  # nothing is above the optimum
        assert not again.pruned
    try:
        result = problem.decode(method="beam", width=width)
    except (Infeasible, LimitReached):
        return
    assert result.certificate.bound >= scores[0]
    certus.verify(problem, result)


@given(problems())
@settings(max_examples=30)
def test_bounds_and_fixed_edges_hold_for_every_constrained_derivation(problem):
    scores = every_score(problem)
    if not scores:
        return
    u = np.linspace(-2, 2, len(problem.b))
    assert problem.dual(u)[0] >= scores[0] - 1e-9
    gone = problem.fixed_edges(u, scores[0] - 1)
    for edges in problem.all_structures():
        if problem.score(edges) > scores[0] - 1:
            assert not gone[edges].any()


@given(problems(), st.integers(1, 5))
@settings(max_examples=30)
def test_the_other_questions_spell_out_signatures(problem, k):
    scores = every_score(problem)
    results = answer(scores, problem.kbest, k)
    if results is None:
        return
    assert [r.score for r in results] == scores[:k]
    assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(scores))
    certus.verify(problem, results[-1])


def labelled_brackets(n: int, score) -> tuple[HypergraphBuilder, int, list[int]]:
    """All binary bracketings of n words, each span A or B: the builder, the root, and the edges that make an A."""
    builder = HypergraphBuilder()
    vertex = {(i, j, x): builder.vertex(f"{x}{i}{j}") for i in range(n) for j in range(i, n) for x in "AB"}
    made = []
    for i in range(n):
        for x in "AB":
            made.append((builder.edge(vertex[i, i, x], weight=score(i, i, x)), x))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            for x in "AB":
                for k in range(i, j):
                    for left, right in ("AA", "AB", "BA", "BB"):
                        tails = [vertex[i, k, left], vertex[k + 1, j, right]]
                        made.append((builder.edge(vertex[i, j, x], tails, weight=score(i, j, x)), x))
    root = builder.vertex("root")
    for x in "AB":
        builder.edge(root, [vertex[0, n - 1, x]])
    return builder, root, [e for e, x in made if x == "A"]


@pytest.mark.parametrize("k", [0, 2, 5])
def test_trees_with_exactly_k_spans_of_a_kind(k):
    rng = np.random.default_rng(3)
    scores = {}
    builder, root, counted = labelled_brackets(4, lambda *span: scores.setdefault(span, float(rng.integers(-8, 9))))
    graph, weights, edge_map, _ = builder.build(root=root)
    A = np.isin(edge_map, counted).astype(float)[None, :]
    problem = ConstrainedHyperpath(graph, weights, A, [k])
    best = max(sum(weights[e] for e in edges) for edges in graph.hyperpaths() if A[0, edges].sum() == k)
    result = problem.decode()
    assert result.score == best
    assert result.certificate.exact
    certus.verify(problem, result)
    free = certus.Hyperpath(graph, weights).decode().score
    assert result.score <= free


def small() -> ConstrainedHyperpath:
    graph = certus.Hypergraph(in_ptr=[0, 2, 4, 5], tail_ptr=[0, 0, 0, 0, 0, 2], tail=[0, 1])
    return ConstrainedHyperpath(graph, [3, 1, 3, 1, 0], A=[[1, 0, 1, 0, 0]], b=[1])


def test_check_and_groups_are_the_problems_own():
    seen = []
    own = small()

    def check(signature):
        seen.append(signature)
        return signature[0] <= 1

    problem = ConstrainedHyperpath(own.graph, own.weights, own.A, own.b, check=check, group=lambda v, signature: v)
    assert problem.decode().score == 4.0
    assert (2.0,) in seen
    assert problem.beam_search(1).pruned
    assert not problem.beam_search(2).pruned


def test_saved_and_altered_results(tmp_path):
    problem = small()
    result = problem.decode(method="staged")
    certus.save_result(tmp_path / "r.json", problem, result)
    certus.verify(*certus.load_result(tmp_path / "r.json"))
    with pytest.raises(certus.VerificationError):
        certus.verify(problem, replace(result, structure=np.array([4, 0, 2])))


def test_errors():
    own = small()
    with pytest.raises(InvalidInput, match="A has shape"):
        ConstrainedHyperpath(own.graph, own.weights, [[1, 0]], [1])
    with pytest.raises(InvalidInput, match="b holds -inf"):
        ConstrainedHyperpath(own.graph, own.weights, own.A, [-np.inf])
    with pytest.raises(Infeasible, match="no derivation satisfies the 1 rows"):
        ConstrainedHyperpath(own.graph, own.weights, own.A, [3]).decode()
    with pytest.raises(NotSupported, match="add a row"):
        own.with_fixed("edges", (0,), 1)
    assert own.with_fixed("edges", (0,), 0).decode().structure.tolist() == [4, 1, 2]
