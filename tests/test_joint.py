import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import (
    Constituency,
    Grammar,
    Hypergraph,
    Hyperpath,
    Infeasible,
    InvalidInput,
    Joint,
    NotSupported,
    Tagging,
)
from certus.certificates import standalone
from certus.proof_file import proof_to_json
from tests.constituency.spines import RandomSpines
from tests.oracles.enumerated import best_by_enumeration
from tests.relax.random_problems import enumerated_joint, optimum, scores, taggings
from tests.strategies import edge_weights, hypergraphs

GRAMMAR = """
0 S -> NP VP
0 NP -> A N
-1 NP -> N
0 VP -> V NP
-1 VP -> V
0 A -> "time"
0 N -> "time"
0 N -> "flies"
0 V -> "flies"
0 N -> "arrows"
0 V -> "arrows"
"""


def parsing_and_tagging(rng, words=("time", "flies", "arrows")):
    grammar = Grammar.from_text(GRAMMAR)
    n, size = len(words), len(grammar.tags)
    trees = Constituency(grammar, words)
    return trees, Tagging(scores(rng, n, size), bigram=scores(rng, size, size), tags=grammar.tags)


def test_parsing_and_tagging_equals_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(60):
        problem = Joint(*parsing_and_tagging(rng), on="tags", weight=0.5)
        best = optimum(problem)
        if best == -np.inf:
            with pytest.raises(Infeasible):
                problem.decode()
            continue
        result = problem.decode()
        assert result.score == best
        assert result.certificate.exact
        tree, tags = result.structure
        assert list(tree.tags) == problem.problems[1].names(tags)
        certus.verify(problem, result)


def test_three_problems_agree():
    rng = np.random.default_rng(1)
    for _ in range(30):
        n, size = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        a, b = taggings(rng, n, size)
        c = Tagging(scores(rng, n, size), bigram=scores(rng, size, size))
        problem = Joint(Joint(a, b, on="tags", weight=2.0, merge=False), c, on="tags", weight=0.5)
        assert len(problem.relaxation().subproblems) == 3
        best = optimum(problem)
        if best == -np.inf:
            with pytest.raises(Infeasible):
                problem.decode()
            continue
        result = problem.decode()
        (y, z), w = result.structure
        assert y.tolist() == z.tolist() == w.tolist()
        assert result.score == best == a.score(y) + 2.0 * b.score(z) + 0.5 * c.score(w)
        assert result.certificate.exact
        certus.verify(problem, result)


@pytest.mark.parametrize("projective", [True, False])
def test_two_dependency_parsers_agree_on_arcs(projective):
    rng = np.random.default_rng(7)
    for _ in range(6):
        n = int(rng.integers(1, 4)) + 1
        a = certus.Dependency(scores(rng, n, n), sibling=scores(rng, n, n, n), projective=True)
        b = certus.Dependency(scores(rng, n, n), projective=projective)
        problem = Joint(a, b, on="arcs")
        best = optimum(problem)
        if best == -np.inf:
            with pytest.raises(Infeasible):
                problem.decode()
            continue
        result = problem.decode()
        assert result.score == best
        assert result.structure[0].tolist() == result.structure[1].tolist()
        certus.verify(problem, result)


def test_weights_on_both_levels():
    a, b, c = (Tagging([[x, 0.0]]) for x in (1.0, -2.0, 4.0))
    problem = Joint(a, Joint(b, c, on="tags", weight=0.25, merge=False), on="tags", weight=2.0)
    assert problem.relaxation().weights == (1.0, 2.0, 0.5)
    assert problem.decode().score == 0.0
    assert problem.score((np.array([0]), (np.array([0]), np.array([0])))) == 1.0 + 2.0 * (-2.0 + 0.25 * 4.0)


def test_kbest_equals_enumeration():
    rng = np.random.default_rng(2)
    for _ in range(15):
        problem = Joint(*parsing_and_tagging(rng), on="tags")
        values = sorted((s for s in map(problem.score, problem.all_structures()) if s > -np.inf), reverse=True)
        if not values:
            with pytest.raises(Infeasible):
                problem.kbest(2)
            continue
        for k in (1, 2, 5):
            found = problem.kbest(k)
            assert [r.score for r in found] == values[:k]
            for rank, r in enumerate(found, 1):
                assert r.certificate.rank == rank
                certus.verify(problem, r)


def test_kbest_of_taggings_with_many_ties():
    rng = np.random.default_rng(3)
    a = Tagging(rng.integers(-1, 2, (4, 2)).astype(float), bigram=rng.integers(-1, 2, (2, 2)).astype(float))
    b = Tagging(rng.integers(-1, 2, (4, 2)).astype(float))
    problem = Joint(a, b, on="tags")
    values = sorted(map(problem.score, problem.all_structures()), reverse=True)
    found = problem.kbest(16)
    assert [r.score for r in found] == values
    assert len({tuple(r.structure[0].tolist()) for r in found}) == 16


def test_kbest_lists_no_structure_twice_when_the_best_tie():
    flat = Tagging(np.zeros((3, 2)))
    for order in (flat, Tagging(np.zeros((3, 2)), bigram=np.zeros((2, 2)))):
        problem = Joint(order, flat, on="tags")
        found = problem.kbest(8)
        assert len({tuple(r.structure[0].tolist()) for r in found}) == 8
        for r in found:
            certus.verify(problem, r)


@settings(max_examples=20, deadline=None)
@given(hypergraphs(limit=60), st.data())
def test_kbest_where_a_derivation_uses_an_edge_twice(case, data):
    """Ranks are those of all pairs with the same edges as often, and what is said of them is verified, by both."""
    graph, weights = case
    problem = Joint(Hyperpath(graph, weights), Hyperpath(graph, data.draw(edge_weights(graph.n_edges))), on="edges")
    values = [problem.score(y) for y in problem.all_structures()]
    values = sorted((value for value in values if value > -np.inf), reverse=True)
    if not values:
        return
    found = problem.kbest(4)
    assert [r.score for r in found] == values[:4]
    for r in found:
        certus.verify(problem, r)
        if np.isfinite(r.certificate.bound):
            standalone.check(json.loads(json.dumps(proof_to_json(problem, r))))


def test_a_partner_beyond_those_that_use_an_edge_more_often():
    """Of the second problem the four best derivations over these edges use the good one too often."""
    graph = Hypergraph([0, 2, 3], [0, 0, 0, 3], [0, 0, 0])
    problem = Joint(Hyperpath(graph, [0, 5, 0]), Hyperpath(graph, [3, 0, 0]), on="edges")
    values = sorted(map(problem.score, problem.all_structures()), reverse=True)
    assert [r.score for r in problem.kbest(4)] == values[:4] == [15, 13, 13, 13]


def test_solve_under_penalties_equals_enumeration():
    rng = np.random.default_rng(4)
    for _ in range(20):
        problem = Joint(*taggings(rng, 3, 2), on="tags", weight=0.5)
        penalty = {"tags": scores(rng, 3, 2)}
        want = best_by_enumeration(problem, penalty)
        if want == -np.inf:
            with pytest.raises(Infeasible):
                problem.solve(penalty)
            continue
        found = problem.solve(penalty)
        used = problem.indicator(found.structure, "tags")
        assert found.value == want
        assert problem.score(found.structure) + penalty["tags"][used > 0].sum() == want


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_words(n):
    problem = Joint(Tagging(np.ones((n, 2)), bigram=np.zeros((2, 2))), Tagging(np.ones((n, 2))), on="tags")
    result = problem.decode()
    assert (result.score, result.certificate.exact) == (2.0 * n, True)
    certus.verify(problem, result)


def test_views_of_the_parts_keep_their_names_apart():
    rng = np.random.default_rng(5)
    problem = enumerated_joint(rng)
    assert set(problem.views) == {"tags"}
    a, b = taggings(rng, 2, 2)
    nested = Joint(a, b, on="tags")
    assert dict(nested.views) == {"tags": (2, 2)}
    with pytest.raises(InvalidInput, match="has no view"):
        nested.indicator((np.array([0, 0]), np.array([0, 0])), "arcs")


def test_structures_that_disagree_are_none():
    problem = Joint(Tagging(np.zeros((2, 2))), Tagging(np.zeros((2, 2))), on="tags")
    with pytest.raises(InvalidInput, match=r"do not agree on tags\[1, 0\]"):
        problem.score((np.array([0, 0]), np.array([0, 1])))
    with pytest.raises(InvalidInput, match="tuple of 2"):
        problem.score(np.array([0, 0]))


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        (
            Tagging(np.zeros((2, 2))),
            Tagging(np.zeros((2, 3))),
            {},
            "in problem 0 and .* in problem 1",
        ),
        (Tagging(np.zeros((2, 2))), Tagging(np.zeros((2, 2))), {"on": "arcs"}, "has no view 'arcs'"),
        (Tagging(np.zeros((2, 2))), Tagging(np.zeros((2, 2))), {"weight": 0.0}, "positive"),
        (Tagging(np.zeros((2, 2))), Tagging(np.zeros((2, 2))), {"weight": float("nan")}, "positive"),
        (
            Tagging(np.zeros((2, 2)), tags=("N", "V")),
            Tagging(np.zeros((2, 2)), tags=("N", "X")),
            {},
            "only problem 0 has 'V', only problem 1 has 'X'",
        ),
        (
            Tagging(np.zeros((2, 2)), tags=("N", "V")),
            Tagging(np.zeros((2, 2)), tags=("V", "N")),
            {},
            "tag 0 is 'N' in problem 0 and 'V' in problem 1",
        ),
        (3, Tagging(np.zeros((2, 2))), {}, "problem 0 is 3"),
    ],
)
def test_errors_say_what_differs(a, b, options, message):
    with pytest.raises(InvalidInput, match=message):
        Joint(a, b, **{"on": "tags", **options})


def test_questions_without_an_answer():
    problem = Joint(Tagging(np.zeros((1, 2))), Tagging(np.zeros((1, 2))), on="tags", merge=False)
    for question in ("log_partition", "marginals", "entropy"):
        with pytest.raises(NotSupported):
            getattr(problem, question)()


def test_nan_is_refused_at_the_door():
    problem = Joint(Tagging(np.zeros((1, 2))), Tagging(np.zeros((1, 2))), on="tags")
    with pytest.raises(InvalidInput, match="nan"):
        problem.solve({"tags": np.array([[np.nan, 0.0]])})


@given(st.integers(0, 2**32 - 1), st.integers(3, 4))
@settings(max_examples=25)
def test_any_number_of_problems_agree(seed, number):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(0, 4)), int(rng.integers(1, 4))
    problems = [Tagging(scores(rng, n, size), bigram=scores(rng, size, size)) for _ in range(number)]
    weights = [float(rng.choice([0.5, 1.0, 2.0])) for _ in problems]
    joint = Joint(*problems, on="tags", weights=weights)
    pairs = list(zip(weights, problems, strict=True))
    best = max((sum(w * p.score(y) for w, p in pairs) for y in problems[0].all_structures()), default=-np.inf)
    assert optimum(joint) == best
    if best == -np.inf:
        with pytest.raises(Infeasible):
            joint.decode()
        return
    result = joint.decode()
    assert result.score == best
    assert len({tuple(y.tolist()) for y in result.structure}) == 1
    certus.verify(joint, result)


def three_views(rng):
    grammar = RandomSpines(3, forbidden=0.0)
    words = ["a", "b"]
    parser = certus.LexicalizedConstituency(grammar, words)
    tagger = Tagging(scores(rng, 2, len(parser.tags)), tags=parser.tags)
    return parser, tagger, certus.Dependency(scores(rng, 3, 3), projective=True)


def test_problems_tied_by_different_views(tmp_path):
    rng = np.random.default_rng(8)
    for _ in range(6):
        problem = Joint(*three_views(rng), on=["tags", "arcs"], weights=(1.0, 0.5, 2.0))
        assert set(problem.views) == {"tags", "arcs"}
        best = optimum(problem)
        if best == -np.inf:
            with pytest.raises(Infeasible):
                problem.decode()
            continue
        result = problem.decode()
        assert result.score == pytest.approx(best)
        nested = Joint(Joint(*problem.problems[:2], on="tags", weight=0.5), problem.problems[2], on="arcs", weight=2.0)
        assert nested.decode().score == pytest.approx(best)
        certus.save_result(tmp_path / "r.json", problem, result)
        certus.verify(*certus.load_result(tmp_path / "r.json"))


def test_fixing_parts_of_a_joint_problem():
    rng = np.random.default_rng(9)
    problem = Joint(*taggings(rng, 3, 2), Tagging(scores(rng, 3, 2)), on="tags")
    for index in np.ndindex(3, 2):
        for value in (0, 1):
            kept = [y for y in problem.all_structures() if (y[0][index[0]] == index[1]) == bool(value)]
            best = max(map(problem.score, kept), default=-np.inf)
            fixed = problem.with_fixed("tags", index, value)
            assert best == optimum(fixed)
            if best > -np.inf:
                assert fixed.decode().score == best


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (2, {"weights": (1.0,)}, "there are 1 weights"),
        (3, {"weight": 2.0}, "weights="),
        (2, {"on": ["tags", "arcs"]}, "no view 'arcs'"),
        (1, {}, "two or more"),
    ],
)
def test_errors_about_any_number_of_problems(given, options, message):
    with pytest.raises(InvalidInput, match=message):
        Joint(*[Tagging(np.zeros((1, 2)))] * given, **{"on": "tags", **options})


def test_a_list_of_problems_is_told_how_to_ask():
    with pytest.raises(
        InvalidInput,
        match=r"problem 0 is a list of 2; expected problems, without brackets, as in Joint\(a, b, on='tags'\)",
    ):
        Joint([Tagging(np.zeros((1, 2)))] * 2, on="tags")


def test_a_problem_that_shares_nothing_is_named():
    tagging = Tagging(np.zeros((2, 2)))
    with pytest.raises(InvalidInput, match="problem 2 shares none of the views"):
        Joint(tagging, tagging, certus.Dependency(np.zeros((3, 3))), on=["tags"])


def test_ranks_of_three_where_derivations_use_an_edge_twice_are_checked_alike():
    """What is claimed of a rank is true, and both checkers say so."""
    rng = np.random.default_rng(1)
    graph = Hypergraph([0, 2, 4], [0, 0, 0, 1, 3], [0, 0, 0])
    problem = Joint(*(Hyperpath(graph, rng.integers(-4, 5, 4)) for _ in range(3)), on="edges")
    values = sorted(map(problem.score, problem.all_structures()), reverse=True)
    for r in problem.kbest(3):
        assert values[r.certificate.rank - 1] <= r.certificate.bound + r.certificate.tolerance
        certus.verify(problem, r)
        if np.isfinite(r.certificate.bound):
            standalone.check(json.loads(json.dumps(proof_to_json(problem, r))))
