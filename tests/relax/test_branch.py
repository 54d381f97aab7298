import numpy as np
import pytest

import certus
from certus import Infeasible, Joint, LimitReached, Tagging
from certus.relax.branch import decode
from certus.relax.linear import solve_lp
from certus.relax.steps import constant
from tests.oracles.enumerated import Enumerated
from tests.relax.random_problems import enumerated_joint, optimum, taggings
from tests.relax.test_descent import fractional
from tests.relax.test_proof import leaves


@pytest.mark.parametrize("exclusive", [True, False])
def test_every_optimum_is_proved(exclusive):
    rng = np.random.default_rng(5)
    kinds = set()
    for _ in range(150):
        problem = enumerated_joint(rng, exclusive)
        best = optimum(problem)
        if best == -np.inf:
            with pytest.raises(Infeasible):
                problem.decode()
            kinds.add("infeasible")
            continue
        result = problem.decode()
        assert result.score == best
        assert result.certificate.exact
        assert (result.trace.dual >= result.trace.primal - 1e-9).all()
        certus.verify(problem, result)
        kinds.add(result.certificate.kind)
    assert kinds == {"dual", "branch and bound", "infeasible"}


def test_taggings_against_enumeration():
    rng = np.random.default_rng(6)
    for _ in range(100):
        problem = Joint(*taggings(rng, int(rng.integers(0, 5)), int(rng.integers(1, 4))), on="tags", merge=False)
        best = optimum(problem)
        if best == -np.inf:
            with pytest.raises(Infeasible):
                problem.decode()
        else:
            result = problem.decode()
            assert result.score == best
            assert result.certificate.exact


def test_a_fractional_instance_needs_branching():
    problem = fractional()
    assert solve_lp(problem).fractional
    result = problem.decode()
    assert result.score == -2.0
    assert result.certificate.exact
    assert result.certificate.kind == "branch and bound"
    assert leaves(result.certificate.duals) >= 1
    assert result.info["nodes"] + result.info["fixed"] > 1
    certus.verify(problem, result)


def odd_cycle(n=9, seed=0):
    """Two chains that tie all n words into many frustrated cycles: hard for the relaxation."""
    rng = np.random.default_rng(seed)
    order = rng.integers(-3, 4, (n, 3, 3)).astype(float)
    a, b = Tagging(np.zeros((n, 3)), bigram=order), Tagging(np.zeros((n, 3)), bigram=order[:, ::-1] * 1.5)
    return Joint(a, b, on="tags", merge=False)


def test_an_honest_gap_at_the_limit():
    problem = odd_cycle()
    result = problem.decode(time_limit=1e-6)
    assert result.certificate.bound >= result.score
    exact = problem.decode()
    assert exact.certificate.exact
    assert result.score <= exact.score <= result.certificate.bound + 1e-9
    for r in (result, exact):
        certus.verify(problem, r)


def test_time_out_during_branching_keeps_every_open_node_in_the_bound(monkeypatch):
    from certus import clock as clocks

    rng = np.random.default_rng(2)
    unary, bigram = rng.normal(size=(2, 8, 4)), 2 * rng.normal(size=(2, 4, 4))
    problem = Joint(Tagging(unary[0], bigram=bigram[0]), Tagging(unary[1], bigram=bigram[1]), on="tags", merge=False)
    best = Tagging(unary.sum(axis=0), bigram=bigram.sum(axis=0)).decode().score
    # Let the clock run out after ever more readings: every result must be honest, and verify.
    cut_short = 0
    for readings in range(1, 1200, 97):
        clock = iter([0.0] * readings)
        monkeypatch.setattr(clocks, "perf_counter", lambda clock=clock: next(clock, 1e9))
        result = problem.decode(time_limit=1.0)
        assert result.score <= best + 1e-9
        assert best <= result.certificate.bound + 1e-9
        assert (result.trace.dual >= best - 1e-9).all()
        certus.verify(problem, result)
        cut_short += result.certificate.kind == "branch and bound" and not result.certificate.exact
    assert cut_short > 3


def test_no_structure_within_the_time_is_an_error_of_its_own():
    # Agreement needs the eighth structure of both: the first argmaxes do not find it.
    parts = np.eye(8)
    a = Enumerated(parts[[0, 1, 2, 7]], [5, 4, 3, 0])
    b = Enumerated(parts[[3, 4, 5, 7]], [5, 4, 3, 0])
    problem = Joint(a, b, on="parts")
    with pytest.raises(LimitReached, match="raise time_limit"):
        problem.decode(time_limit=1e-9)
    assert problem.decode().score == 0.0
    assert problem.decode(exact=False, max_iterations=1).score == 0.0


def test_an_infeasible_pair_is_proved_infeasible():
    a = Enumerated([[1, 0, 0], [0, 1, 0]], [1, 2])
    b = Enumerated([[0, 0, 1]], [1])
    with pytest.raises(Infeasible, match="proved"):
        Joint(a, b, on="parts").decode()


def test_infeasible_though_the_linear_program_is_not():
    """conv of both sets meets at (1/2, 1/2, 1/2, 1/2), no structure does."""
    a = Enumerated([[1, 1, 0, 0], [0, 0, 1, 1]], [0, 0])
    b = Enumerated([[1, 0, 1, 0], [0, 1, 0, 1]], [0, 0])
    with pytest.raises(Infeasible):
        Joint(a, b, on="parts").decode()


def test_steps_that_are_nothing_beside_the_scores_still_end():
    """Multipliers that do not move show nothing: what is decided must break the row."""
    unary = np.where(np.arange(6) % 2, 1e12, -1e12)[:, None] * np.array([1.0, -1.0, 0.5])
    tagging = Tagging(unary)
    for bound, feasible in ((7, False), (2, True)):
        problem = tagging.subject_to(certus.constraints.exactly(bound, "tags", [(i, 0) for i in range(6)]))
        if not feasible:
            with pytest.raises(Infeasible):
                problem.decode(step=constant(1.0))
            continue
        result = problem.decode(step=constant(1.0))
        assert result.score == max(problem.score(y) for y in problem.all_structures())
        assert result.certificate.exact
        assert result.info["nodes"] < 100
        certus.verify(problem, result)


def test_ties_everywhere():
    flat = Tagging(np.zeros((4, 3)))
    result = Joint(flat, Tagging(np.zeros((4, 3)), bigram=np.zeros((3, 3))), on="tags").decode()
    assert (result.score, result.certificate.exact) == (0.0, True)


def test_parts_used_twice():
    """Counts above one are parts too: the view must agree in its counts."""
    a = Enumerated([[2, 0], [1, 1], [0, 2]], [3, 1, 0])
    b = Enumerated([[1, 1], [0, 2]], [0, 3])
    problem = Joint(a, b, on="parts")
    result = problem.decode()
    assert result.score == optimum(problem) == 3.0
    assert result.certificate.exact


def test_a_problem_with_nothing_to_relax_is_solved_in_one_round():
    result = decode(Tagging([[1.0, 2.0]]))
    assert (result.score, result.iterations, result.certificate.exact) == (2.0, 1, True)


def test_real_scores():
    rng = np.random.default_rng(8)
    for _ in range(30):
        n, size = int(rng.integers(1, 5)), int(rng.integers(2, 4))
        a = Tagging(rng.normal(size=(n, size)), bigram=rng.normal(size=(size, size)))
        b = Tagging(rng.normal(size=(n, size)) * 1e3, bigram=rng.normal(size=(size, size)) * 1e3)
        problem = Joint(a, b, on="tags", weight=1e-3, merge=False)
        result = problem.decode()
        assert result.score == pytest.approx(optimum(problem), abs=1e-9)
        assert result.certificate.exact
        certus.verify(problem, result)
