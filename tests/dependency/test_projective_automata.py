"""Projective trees scored by automata against all trees, and automata that travel as tables."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Dependency, Infeasible
from certus.dependency import AutomataDependency, ProjectiveAutomata
from certus.dependency.head_automata import PartAutomaton
from certus.errors import InvalidInput
from certus.problem import problem_from_json, problem_to_json
from tests.dependency.cases import draw_problem

MODELS = ("siblings", "model 1", "trisiblings", "ends of sides", "everything, outermost")


def of_parts(kind, problem):
    """The automata of a problem's part scores."""
    by_head = problem.model.ancestors > 0
    given = lambda g, h, side: PartAutomaton(problem, g, h, side)  # noqa: E731
    return kind(problem.arc, given, by_head=by_head, root=problem.root)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODELS), st.integers(0, 4), st.sampled_from(["single", "multi"]))
def test_trees_and_their_scores_are_those_of_the_parts(seed, model, n, root):
    parts = draw_problem(np.random.default_rng(seed), model, n, root)
    problem = of_parts(ProjectiveAutomata, parts)
    scores = sorted((parts.score(y) for y in parts.all_structures()), reverse=True)
    scores = [score for score in scores if score > -np.inf]
    assert sorted((problem.score(y) for y in problem.all_structures()), reverse=True) == scores
    if not scores:
        with pytest.raises(Infeasible):
            problem.decode()
        return
    result = problem.decode()
    assert result.score == scores[0]
    assert result.certificate.exact or not any(problem.terms(result.structure))
    certus.verify(problem, result)
    assert [r.score for r in problem.kbest(3)] == scores[:3]
    assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(scores), abs=1e-9)
    bounds = problem.log_partition_bounds()
    assert bounds.lower <= problem.log_partition() <= bounds.upper <= bounds.lower + 1e-6
    assert np.allclose(problem.marginals()["arcs"], parts.marginals()["arcs"])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODELS), st.integers(0, 3), st.sampled_from(["single", "multi"]))
def test_automata_travel(seed, model, n, root):
    rng = np.random.default_rng(seed)
    for kind in (AutomataDependency, ProjectiveAutomata):
        problem = of_parts(kind, draw_problem(rng, model, n, root, projective=False))
        again = problem_from_json(json.loads(json.dumps(problem_to_json(problem))))
        assert type(again) is kind
        for heads in problem.all_structures():
            assert again.score(heads) == problem.score(heads)
            assert again.structure_from_json(problem.structure_to_json(heads)).tolist() == heads.tolist()


def test_a_result_is_saved_and_verified(tmp_path):
    parts = Dependency(np.arange(16.0).reshape(4, 4), sibling=np.ones((4, 4, 4)))
    for kind in (AutomataDependency, ProjectiveAutomata):
        problem = of_parts(kind, parts)
        certus.save_result(tmp_path / "r.json", problem, problem.decode())
        again, result = certus.load_result(tmp_path / "r.json")
        certus.verify(again, result)


def test_damaged_tables_are_refused():
    problem = of_parts(AutomataDependency, Dependency(np.zeros((3, 3)), sibling=np.zeros((3, 3, 3))))
    data = problem_to_json(problem)
    full = next(table for table in data["data"]["automata"] if table["steps"])
    full["steps"][0][2] = 99
    with pytest.raises(InvalidInput, match="steps"):
        problem_from_json(data)
    full["steps"][0][2] = len(full["stops"])
    with pytest.raises(InvalidInput, match="state"):
        problem_from_json(data)


def test_parts_are_fixed_one_way_or_the_other():
    problem = of_parts(ProjectiveAutomata, Dependency(np.zeros((4, 4)), sibling=np.zeros((4, 4, 4))))
    assert all(y[2] == 1 for y in problem.with_fixed("arcs", (1, 2), 1).all_structures())
    assert all(y[2] != 1 for y in problem.with_fixed("arcs", (1, 2), 0).all_structures())
