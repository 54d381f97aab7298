import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus.constraints import at_least, at_most
from certus.problem import problem_from_json, problem_to_json
from tests.factors.cases import agrees, whole

seeds = st.integers(0, 2**32 - 1)


def constrained(rng, problem):
    """The problem itself, with a part fixed, or with at most one and at least one of some parts."""
    (view, shape), chance = next(iter(problem.views.items())), rng.random()
    cells = [tuple(map(int, index)) for index in rng.permutation(list(np.ndindex(*shape)))]
    if chance < 0.4 or not cells:
        return problem
    if chance < 0.7:
        return problem.with_fixed(view, cells[0], int(rng.integers(2)))
    return problem.subject_to(at_most(1, view, cells[:3]), at_least(1, view, cells[2:4]))


@settings(max_examples=30)
@given(seeds)
def test_assignments_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    problem = constrained(rng, certus.Assignment(whole(rng, *rng.integers(0, 5, 2))))
    result = agrees(problem)
    if result is not None:
        certus.verify(problem_from_json(problem_to_json(problem)), result)


@settings(max_examples=30)
@given(seeds)
def test_assignments_under_penalties(seed):
    rng = np.random.default_rng(seed)
    problem = certus.Assignment(whole(rng, 3, 3))
    penalty = whole(rng, 3, 3)
    best = max(
        problem.score(y) + np.where(y >= 0, penalty[np.arange(3), y], 0.0).sum() for y in problem.all_structures()
    )
    assert problem.solve({"matches": penalty}).value == best


def test_a_large_assignment_is_proved_by_prices():
    problem = certus.Assignment(np.random.default_rng(0).normal(size=(60, 50)))
    result = problem.decode()
    assert (result.certificate.kind, result.iterations) == ("dual", 0)
    assert result.certificate.exact
    assert (result.certificate.duals["columns"] <= 0).all()
    certus.verify(problem, result)


def test_sums_over_matchings_are_refused_with_the_reason():
    problem = certus.Assignment([[1.0]])
    for ask in (problem.log_partition, problem.marginals, problem.entropy, lambda: problem.sample(1)):
        with pytest.raises(certus.NotSupported, match="#P-hard"):
            ask()


@pytest.mark.parametrize("columns", [[0, 0], [2, 0], [0], [-2, 0], [0.5, 1.0]])
def test_what_is_no_matching_is_refused(columns):
    with pytest.raises(certus.InvalidInput):
        certus.Assignment(np.zeros((2, 2))).score(columns)


def test_an_assignment_and_a_tagging_agree():
    """Each word has a role, and no role two words."""
    roles = certus.Assignment([[3.0, 2.0, 0.0], [3.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
    tags = certus.Tagging(np.zeros((3, 3)), [[0, 0, 2], [0, 0, 0], [0, 4, 0]])
    with pytest.raises(certus.InvalidInput):
        certus.Joint(roles, tags, on="tags")
    both = certus.Joint(roles, certus.Assignment(np.ones((3, 3)) * [[0, 4, 0]]), on="matches")
    agrees(both)


@settings(max_examples=30)
@given(seeds)
def test_knapsacks_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, kinds = int(rng.integers(0, 7)), int(rng.integers(1, 3))
    cost, budget = rng.integers(0, 6, (kinds, n)), rng.integers(0, 8, kinds)
    problem = constrained(rng, certus.Knapsack(whole(rng, n), cost, budget))
    result = agrees(problem)
    if result is not None:
        certus.verify(problem_from_json(problem_to_json(problem)), result)


def test_costs_that_are_not_whole_fit_the_budget_but_for_rounding():
    problem = certus.Knapsack([1.0, 1.0, 1.0], [0.1, 0.2, 0.7], 0.3)
    assert agrees(problem).structure == (0, 1)


@settings(max_examples=30)
@given(seeds)
def test_covers_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, elements = int(rng.integers(0, 6)), int(rng.integers(0, 5))
    sets = [[e for e in range(elements) if rng.random() < 0.4] for _ in range(n)]
    problem = constrained(rng, certus.SetCover(-whole(rng, n), sets, elements))
    result = agrees(problem)
    if result is not None:
        certus.verify(problem_from_json(problem_to_json(problem)), result)


def test_an_element_in_no_set_is_infeasible():
    with pytest.raises(certus.Infeasible):
        certus.SetCover([1.0], [[0]], elements=2).decode()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: certus.Knapsack([1.0], [-1.0], 2), "at least 0"),
        (lambda: certus.SetCover([1.0, 2.0], [[0]]), "1 sets for 2 costs"),
        (lambda: certus.SetCover([1.0], [[3]], elements=2), "expected as many"),
        (lambda: certus.Knapsack([1.0, 2.0], [1.0, 1.0], 2).score((1, 0)), "in order"),
        (lambda: certus.Knapsack([1.0], [1.0], 2).with_fixed("items", (1,), 0), "outside"),
        (lambda: certus.Assignment([[1.0]]).with_fixed("matches", (0, 0), 2), "fixed to 0 or 1"),
    ],
)
def test_what_is_wrong_is_said(make, said):
    with pytest.raises(certus.InvalidInput, match=said):
        make()
