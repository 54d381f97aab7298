import numpy as np
import pytest

import certus
from certus import Joint, Tagging
from certus.relax import steps
from certus.relax.descent import descend
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.linear import solve_lp
from certus.relax.run import Run
from certus.relax.system import Relaxation
from tests.oracles.enumerated import Enumerated
from tests.relax.random_problems import enumerated_joint, optimum, taggings

RULES = [
    steps.constant(1.0),
    steps.harmonic(2.0),
    steps.inverse_sqrt(2.0),
    steps.per_increase(2.0),
    steps.halving(1.0),
    steps.polyak(),
    steps.deflected(),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_weak_duality_at_every_iteration(rule):
    rng = np.random.default_rng(1)
    for _ in range(40):
        problem = enumerated_joint(rng)
        best = optimum(problem)
        if best == -np.inf:
            continue
        trace = problem.decode(max_iterations=30, exact=False, step=rule).trace
        assert (trace.dual >= best - 1e-9).all()
        assert (trace.primal <= best).all()
        assert (trace.primal[1:] >= trace.primal[:-1]).all()


def two_words():
    """Alone, a says (0, 0) and b says (1, 1); together (1, 1) is best, with 5 against 4."""
    a = Tagging([[2.0, 0.0], [2.0, 1.0]])
    b = Tagging([[0.0, 2.0], [0.0, 2.0]])
    return Joint(a, b, on="tags", merge=False)


def test_d_and_e_convergence():
    """Agreement of the argmaxes makes the dual value equal to the score of the pair (LR 3.3)."""
    result = two_words().decode()
    assert result.score == 5.0
    assert result.certificate.kind == "dual"
    assert result.certificate.bound == 5.0
    assert result.trace.dual[-1] == result.trace.primal[-1] == 5.0
    assert result.trace.dual[0] == 8.0


def test_agreement_at_once_needs_one_iteration():
    a = Tagging([[1.0, 0.0]])
    result = Joint(a, a, on="tags", merge=False).decode()
    assert (result.iterations, result.score) == (1, 2.0)
    assert result.trace.step.tolist() == [0.0]


def test_bounds_do_not_depend_on_the_rule():
    rng = np.random.default_rng(3)
    for _ in range(5):
        problem = Joint(*taggings(rng, 4, 3), on="tags", merge=False)
        if optimum(problem) == -np.inf:
            continue
        value = solve_lp(problem).value
        for rule in (steps.per_increase(4.0), steps.polyak()):
            found = problem.decode(max_iterations=300, exact=False, step=rule)
            assert found.certificate.bound >= value - 1e-6
            assert found.certificate.bound <= value + 0.5


def fractional():
    """Two taggings of two words that want different pairs of tags: the linear program takes half of each."""
    alike = Tagging(np.zeros((2, 2)), bigram=[[0.0, -2.0], [-2.0, 0.0]])
    different = Tagging(np.zeros((2, 2)), bigram=[[-2.0, 0.0], [0.0, -2.0]])
    return Joint(alike, different, on="tags", merge=False)


def test_averages_approach_the_linear_program():
    result = fractional().decode(max_iterations=400, exact=False, step=steps.inverse_sqrt(1.0))
    np.testing.assert_allclose(result.info["averages"]["tags"], np.full((2, 2), 0.5), atol=0.05)
    assert result.certificate.bound == pytest.approx(0.0, abs=1e-9)
    assert result.certificate.gap == pytest.approx(2.0)
    assert not result.certificate.exact


def test_only_subproblems_whose_penalties_changed_are_solved_again():
    class Counted(Enumerated):
        solves = 0

        def solve(self, penalties=None):
            self.solves += 1
            return super().solve(penalties)

    # c is tied to nothing that moves: its rows agree from the start.
    a = Counted([[1, 0], [0, 1]], [3, 0], (1, 2), "tags", exclusive=1)
    b = Counted([[1, 0], [0, 1]], [0, 5], (1, 2), "tags", exclusive=1)
    c = Counted([[1, 0, 0, 0], [0, 0, 1, 0]], [1, 0], (2, 2), "other")
    relaxation = Relaxation.of(Joint(a, b, on="tags", merge=False))
    both = Relaxation(
        (*relaxation.subproblems, c),
        (1.0, 1.0, 1.0),
        {**relaxation.views, "other": ((2, "other"),)},
        relaxation.rows,
        lambda leaves: leaves,
        lambda structures: structures,
    )
    run, subproblems = Run(), Subproblems(both)
    oracle = Lagrangian(subproblems, subproblems.initial)
    descend(run, oracle, np.zeros(both.n_rows), steps.polyak(), max_iterations=10)
    assert run.score == 6.0
    assert run.iterations > 1
    assert c.solves < a.solves


def test_time_limit_is_respected():
    rng = np.random.default_rng(0)
    problem = Joint(
        Tagging(rng.normal(size=(30, 6)), bigram=5 * rng.normal(size=(6, 6))),
        Tagging(rng.normal(size=(30, 6)), bigram=5 * rng.normal(size=(6, 6))),
        on="tags",
        merge=False,
    )
    result = problem.decode(time_limit=1e-9)
    assert result.iterations <= 1
    assert result.certificate.bound >= result.score
    certus.verify(problem, result)


@pytest.mark.parametrize("limits", [{"max_iterations": 0}, {"time_limit": 0.0}, {"time_limit": -1.0}])
def test_limits_that_make_no_sense(limits):
    with pytest.raises(certus.InvalidInput):
        two_words().decode(**limits)


def test_inequality_rows_need_more_than_a_feasible_argmax():
    """At multipliers below zero a feasible argmax is no proof: slack times multiplier is part of the dual value."""
    problem = Tagging([[3.0, 2.0], [3.0, 0.0], [1.0, 0.0]]).subject_to(
        certus.constraints.at_most(2, "tags", [(i, 0) for i in range(3)])
    )
    result = problem.decode(step=steps.constant(2.0), max_iterations=3, exact=False)
    # Multiplier -2 makes 1 the tag of words 0 and 2: feasible with slack 1, score 5, while the optimum is 6.
    assert result.certificate.bound >= 6.0
    assert problem.decode().score == 6.0
