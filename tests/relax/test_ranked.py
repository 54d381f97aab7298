"""Lists and max-marginals of problems that are decoded by relaxation, against all structures."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Dependency, Infeasible, Joint, Tagging, constraints, kernels
from certus.dependency import nonprojective
from certus.dependency.automata_problem import AutomataDependency
from certus.relax import ranked
from certus.relax.proof import Later
from tests.strategies import arc_scores


class Costly:
    """Every modifier but the first of a side costs a little."""

    start = 0

    def step(self, state, m):
        return state + 1, -float(state)

    def stop(self, state):
        return 0.0


def scored(problem):
    """Structures and scores of a problem, best first."""
    every = ((problem.score(y), y) for y in problem.all_structures())
    return sorted(((s, y) for s, y in every if s > -np.inf), key=lambda pair: -pair[0])


def check_list(problem, k, verified=True):
    scores = [score for score, _ in scored(problem)]
    if not scores:
        with pytest.raises(Infeasible):
            problem.kbest(k)
        return
    results = problem.kbest(k)
    assert [r.score for r in results] == scores[:k] == [problem.score(r.structure) for r in results]
    assert len({str(r.structure) for r in results}) == len(results)
    assert [r.certificate.rank for r in results] == list(range(1, len(results) + 1))
    assert all(r.certificate.exact for r in results)
    for result in results if verified else ():
        certus.verify(problem, result)


def check_parts(problem):
    every = scored(problem)
    if not every:
        with pytest.raises(Infeasible):
            problem.max_marginals()
        return
    found = problem.max_marginals()
    assert found.keys() == problem.views.keys()
    for view, values in found.items():
        best = np.full(values.shape, -np.inf)
        for score, y in every:
            best = np.where(problem.indicator(y, view) > 0, np.maximum(best, score), best)
        assert np.array_equal(values, best)


@st.composite
def crossing_trees(draw, max_words=4):
    arc = draw(arc_scores(max_words))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = draw(st.sampled_from([{"sibling": 3}, {"grandparent": 3}, {"sibling": 3, "grandparent": 3}]))
    parts = {name: rng.integers(-4, 5, (len(arc),) * axes).astype(float) for name, axes in kinds.items()}
    return Dependency(arc, **parts, root=draw(st.sampled_from(["single", "multi"])))


@settings(max_examples=25)
@given(problem=crossing_trees(), k=st.sampled_from([2, 5, 200]))
def test_crossing_trees_in_order(problem, k):
    check_list(problem, k, verified=k < 200)


@settings(max_examples=15)
@given(problem=crossing_trees(max_words=3), k=st.integers(2, 6))
def test_trees_in_order_without_the_kernel(problem, k):
    """The search that goes on where the kernel does not solve a cell finds the same trees by itself."""
    whole = nonprojective.Arcs.fill
    nonprojective.Arcs.fill = lambda self, root, best: False
    try:
        check_list(problem, k, verified=False)
    finally:
        nonprojective.Arcs.fill = whole


@settings(max_examples=15)
@given(problem=crossing_trees())
def test_best_trees_with_each_arc(problem):
    check_parts(problem)


@settings(max_examples=8)
@given(arc=arc_scores(3), k=st.integers(2, 8))
def test_trees_of_automata(arc, k):
    problem = AutomataDependency(arc, lambda g, h, side: Costly())
    check_list(problem, k)
    check_parts(problem)


@pytest.mark.parametrize("seed", range(4))
def test_great_grandparents_and_labels(seed):
    rng = np.random.default_rng(seed)
    trees = Dependency(rng.integers(-4, 5, (4, 4)), greatgrandparent=rng.integers(-4, 5, (4,) * 4))
    check_list(trees, 4)
    check_parts(trees)
    labelled = certus.LabelledDependency(rng.integers(-4, 5, (3, 3, 2)), sibling=rng.integers(-4, 5, (3,) * 3))
    check_list(labelled, 6)
    check_parts(labelled)


def tagging(rng, n=3, size=2):
    return Tagging(rng.integers(-4, 5, (n, size)), bigram=rng.integers(-4, 5, (size, size)))


@pytest.mark.parametrize("seed", range(6))
def test_three_problems_that_agree(seed):
    rng = np.random.default_rng(seed)
    problem = Joint(Joint(tagging(rng), tagging(rng), on="tags"), tagging(rng), on="tags")
    check_list(problem, 5)
    check_parts(problem)


@pytest.mark.parametrize("seed", range(6))
def test_joint_trees(seed):
    rng = np.random.default_rng(seed)
    a = Dependency(rng.integers(-4, 5, (4, 4)), sibling=rng.integers(-4, 5, (4, 4, 4)))
    problem = Joint(a, Dependency(rng.integers(-4, 5, (4, 4)), projective=True), on="arcs")
    check_list(problem, 5)
    check_parts(problem)


@pytest.mark.parametrize("seed", range(6))
def test_under_constraints(seed):
    rng = np.random.default_rng(seed)
    limit = constraints.at_most(1, "tags", [(0, 0), (1, 0), (2, 0)])
    tags = tagging(rng).subject_to(limit)
    check_parts(tags)
    assert [r.score for r in ranked.kbest(tags, 4)] == [r.score for r in tags.kbest(4)]
    trees = Dependency(rng.integers(-4, 5, (4, 4)), sibling=rng.integers(-4, 5, (4, 4, 4)))
    problem = trees.subject_to(constraints.at_most(1, "arcs", [(0, 1), (1, 2), (2, 3)]))
    check_list(problem, 5)
    check_parts(problem)


def test_structures_that_no_part_tells_apart():
    """Two parses of the same tags are two structures, though constraints on tags see no difference."""
    grammar = certus.Grammar.from_text('1 S -> N N\n 0 S -> N S\n 2 S -> S N\n 0 N -> "x"\n 1 V -> "x"\n 1 S -> V N')
    problem = certus.Constituency(grammar, ["x", "x", "x"])
    tagged = problem.subject_to(constraints.at_most(1, "tags", [(0, 1), (1, 1)]))
    every = [score for score, _ in scored(tagged)]
    assert [r.score for r in ranked.kbest(tagged, 50)] == every


def test_phrases_with_each_option():
    from tests.test_contract import phrase_translation

    problem = phrase_translation()
    best = np.full(problem.views["options"], -np.inf)
    for score, y in scored(problem):
        best = np.where(problem.indicator(y, "options") > 0, np.maximum(best, score), best)
    assert np.allclose(problem.max_marginals()["options"], best, rtol=0, atol=1e-12)


def test_a_limit_leaves_bounds():
    rng = np.random.default_rng(2)
    problem = Dependency(rng.normal(size=(6, 6)), rng.normal(size=(6, 6, 6)), rng.normal(size=(6, 6, 6)))
    exact = problem.max_marginals()["arcs"]
    lower, upper = problem.max_marginal_bounds(time_limit=1e-9)
    assert (lower["arcs"] <= exact + 1e-9).all()
    assert (upper["arcs"] >= exact - 1e-9).all()
    assert (lower["arcs"] < upper["arcs"]).any()
    tags = tagging(rng)
    assert np.array_equal(tags.max_marginal_bounds().lower["tags"], tags.max_marginals()["tags"])


def test_ranks_travel(tmp_path):
    rng = np.random.default_rng(3)
    problem = Dependency(rng.normal(size=(5, 5)), rng.normal(size=(5, 5, 5)))
    second = problem.kbest(3)[1]
    certus.save_result(tmp_path / "second.json", problem, second)
    certus.verify(*certus.load_result(tmp_path / "second.json"))
    assert isinstance(second.certificate.witness, Later)
    certus.verify(problem, pickle.loads(pickle.dumps(second)))


def test_a_wrong_rank_is_refused():
    rng = np.random.default_rng(4)
    problem = Dependency(rng.normal(size=(5, 5)), rng.normal(size=(5, 5, 5)))
    first, second, third = problem.kbest(3)
    claimed = third.certificate.__class__(
        **{name: getattr(third.certificate, name) for name in ("kind", "score", "bound", "tolerance", "witness")}
        | {"rank": 2, "better": (first.structure,)}
    )
    with pytest.raises(certus.VerificationError):
        certus.verify(problem, certus.Result(third.structure, third.score, claimed))
    assert second.score >= third.score


def test_the_best_tree_seen_is_listed_next():
    found, score = np.zeros((3, 3), dtype=np.int64), np.zeros(3)
    heads, seen = np.array([[-1, 0, 1], [-1, 2, 0], [-1, 0, 0]]), np.array([1.0, 4.0, -np.inf])
    assert kernels.ranked_trees.list_seen(found, score, 1, heads, seen) == 2
    assert found[1].tolist() == [-1, 2, 0]
    assert score[1] == 4.0
    assert seen.tolist() == [1.0, -np.inf, -np.inf]


def test_ranks_beside_a_constraint_of_no_parts_are_verified():
    trees = Dependency([[0, 1, 2], [0, 0, 3], [0, 1, 0]], sibling=np.ones((3, 3, 3)), projective=False)
    problem = trees.subject_to(constraints.at_most(1, "arcs", []))
    for result in problem.kbest(2):
        certus.verify(problem, result)
