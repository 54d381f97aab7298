"""Higher-order trees with crossing arcs: equal to enumeration and to the integer program, and never a false proof."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Dependency, Infeasible, InvalidInput, LimitReached, NotSupported, load_result, save_result
from certus.dependency import flow, nonprojective
from certus.dependency.polyak import SHARE
from certus.problem import Limits
from certus.relax.descent import descend
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.proof import Leaf
from certus.relax.run import Run
from certus.relax.steps import halving, harmonic, per_increase, polyak
from tests.dependency.cases import draw_problem, whole_scores

MODELS = (
    "siblings",
    "carreras",
    "model 0",
    "model 1",
    "grandparents and siblings",
    "model 2",
    "trisiblings",
    "ends of sides",
    "everything",
    "everything, outermost",
    "grand-tri-siblings",
    "grand-tri-siblings, outermost",
)
GREAT = ("great-grandparents", "both, outermost")  # with lineages
seeds = st.integers(0, 2**32 - 1)
roots = st.sampled_from(["single", "multi"])


def optimum(problem):
    return max((problem.score(y) for y in problem.all_structures()), default=-np.inf)


@settings(max_examples=200)
@given(seeds, st.sampled_from(MODELS), st.integers(0, 4), roots, st.booleans())
def test_decode_equals_enumeration(seed, model, n, root, listed):
    listed = listed and "ends" not in model and "everything" not in model  # those have parts that cannot be listed
    problem = draw_problem(np.random.default_rng(seed), model, n, root, projective=False, listed=listed)
    best = optimum(problem)
    if best == -np.inf:
        with pytest.raises(Infeasible):
            problem.decode()
        return
    result = problem.decode()
    assert result.score == best == problem.score(result.structure)
    assert result.certificate.exact
    assert result.certificate.kind in ("dual", "branch and bound")
    certus.verify(problem, result)
    if result.info["nodes"] == 1 and not result.info["fixed"]:
        assert (result.trace.dual >= best - problem.error()).all()  # weak duality, at every iteration
    assert (result.trace.primal <= best).all()


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from(GREAT), st.integers(0, 3), roots, st.booleans())
def test_great_grandparents_equal_enumeration(seed, model, n, root, listed):
    problem = draw_problem(np.random.default_rng(seed), model, n, root, projective=False, listed=listed)
    best = optimum(problem)
    if best == -np.inf:
        with pytest.raises(Infeasible):
            problem.decode()
        return
    result = problem.decode()
    assert result.score == best == problem.score(result.structure)
    assert result.certificate.exact
    assert result.certificate.kind in ("dual", "branch and bound")
    certus.verify(problem, result)
    short = problem.decode(max_iterations=2, exact=False)
    assert short.score <= best <= short.certificate.bound + short.certificate.tolerance


@pytest.mark.compiled
@pytest.mark.parametrize("model", GREAT)
def test_great_grandparents_of_more_words_with_constraints_and_labels(model):
    rng = np.random.default_rng(5)
    problem = draw_problem(rng, model, 4, projective=False)
    every = [(problem.score(y), y) for y in problem.all_structures()]
    result = problem.decode()
    assert result.score == max(score for score, _ in every)
    certus.verify(problem, result)
    m = 1 + int(np.argmax(result.structure[1:] > 0))
    taken = (int(result.structure[m]), m)
    constrained = problem.subject_to(
        certus.constraints.at_most(1, "arcs", [taken, (0, int(np.argmin(result.structure[1:])) + 1)])
    )
    other = constrained.decode()
    assert other.score == max(score for score, y in every if not constrained.violated(y))
    label = whole_scores(rng, (5, 5, 2))
    labelled = problem.labelled(label)
    best = max(score + sum(label[y[m], m].max() for m in range(1, 5)) for score, y in every)
    assert labelled.decode().score == best


@pytest.mark.parametrize("seed", [15, 57])
def test_what_a_search_removes_by_more_than_the_check_sees_is_proved_without_it(seed):
    rng = np.random.default_rng(seed)
    cells = {"arc": 2, "grandsibling": 4, "greatgrandparent": 4, "grandtrisibling": 5}
    scores = {kind: rng.integers(-9, 10, (5,) * axes).astype(float) for kind, axes in cells.items()}
    problem = Dependency(**scores, projective=False, grandparents="outermost")
    for result in problem.kbest(2):
        certus.verify(problem, result)


def test_linear_programs_do_not_know_great_grandparents():
    problem = draw_problem(np.random.default_rng(0), "great-grandparents", 3, projective=False)
    with pytest.raises(NotSupported, match="greatgrandparent"):
        flow.ilp(problem)


@settings(max_examples=15)
@given(seeds, st.sampled_from(("siblings", "grandparents and siblings")), roots)
def test_decode_equals_enumeration_for_five_words(seed, model, root):
    problem = draw_problem(np.random.default_rng(seed), model, 5, root, projective=False)
    best = optimum(problem)
    if best > -np.inf:
        result = problem.decode()
        assert result.score == best
        assert result.certificate.exact


@settings(max_examples=60)
@given(seeds, st.sampled_from(MODELS), st.integers(2, 4), roots)
def test_a_run_cut_short_is_honest(seed, model, n, root):
    problem = draw_problem(np.random.default_rng(seed), model, n, root, projective=False)
    best = optimum(problem)
    if best == -np.inf:
        return
    result = problem.decode(max_iterations=2, exact=False)
    assert result.certificate.bound >= best - result.certificate.tolerance
    assert result.score <= best
    assert not result.certificate.exact or result.score == best
    certus.verify(problem, result)


@pytest.mark.slow
@pytest.mark.parametrize("flow_kind", flow.FLOWS)
@pytest.mark.parametrize(("model", "n"), [("siblings", 8), ("grandparents and siblings", 7), ("model 2", 5)])
def test_decode_equals_the_integer_program(model, n, flow_kind):
    rng = np.random.default_rng(n)
    for root in ("single", "multi"):
        problem = draw_problem(rng, model, n, root, projective=False)
        result, reference = problem.decode(), flow.ilp(problem, flow=flow_kind)
        assert result.score == reference.score
        assert reference.certificate.kind == "integer program"
        certus.verify(problem, reference)  # by a proof that goes with it: a solver proves nothing by its word


@settings(max_examples=25)
@given(seeds, st.sampled_from(("siblings", "model 0", "trisiblings")), st.integers(0, 4), roots)
def test_linear_programs_bound_the_optimum_and_multi_commodity_flow_is_tighter(seed, model, n, root):
    problem = draw_problem(np.random.default_rng(seed), model, n, root, projective=False)
    best = optimum(problem)
    if best == -np.inf:
        with pytest.raises(Infeasible):
            flow.ilp(problem)
        return
    single, multi = flow.lp(problem, flow="single"), flow.lp(problem, flow="multi")
    assert flow.ilp(problem).score == best
    assert single.value >= multi.value - 1e-6
    assert multi.value >= best - 1e-6
    if not multi.fractional:
        assert multi.value == pytest.approx(best)


@pytest.mark.compiled
def test_real_scores_are_certified():
    rng = np.random.default_rng(5)
    for n in (6, 8):
        size = n + 1
        problem = Dependency(rng.normal(size=(size,) * 2), rng.normal(size=(size,) * 3), rng.normal(size=(size,) * 3))
        result = problem.decode()
        assert result.certificate.exact
        certus.verify(problem, result)


@pytest.mark.parametrize("model", ["siblings", "grandparents and siblings", "trisiblings"])
def test_the_kernel_and_the_general_relaxation_make_the_same_steps(model):
    compared = 0
    for seed in range(12):
        problem = draw_problem(np.random.default_rng(seed), model, 4, projective=False)
        if optimum(problem) == -np.inf:
            continue
        rule = per_increase(problem.extent().size)
        result = nonprojective.decode(problem, Limits(30, exact=False, step=rule), estimate=False)
        relaxation, run = nonprojective.relaxation(problem), Run()
        subproblems = Subproblems(relaxation)
        oracle = Lagrangian(subproblems, subproblems.initial)
        start = np.zeros(relaxation.n_rows)  # where the tree has the share of the arc scores that the kernel gives it
        start[: problem.arc.size] = SHARE * np.where(problem.arc > -np.inf, problem.arc, 0.0).ravel()
        descend(run, oracle, start, rule, max_iterations=len(result.trace))
        log = run.log.trace()
        shorter = min(len(log), len(result.trace))
        # Rounding differs, so that ties may be broken differently: from there on the two may go different ways.
        apart = np.abs(log.dual[:shorter] - result.trace.dual[:shorter]) > 1e-9
        same = int(np.argmax(apart)) if apart.any() else shorter
        assert same >= 1
        np.testing.assert_allclose(log.step[: same - 1], result.trace.step[: same - 1])
        compared += same
    assert compared > 12


@pytest.mark.parametrize("model", ["siblings", "grandparents and siblings", "everything"])
@pytest.mark.parametrize("rule", [polyak(1.5, shrink=0.7), per_increase(8.0), halving(4.0)], ids=repr)
def test_bursts_and_single_rounds_are_the_same_descent(model, rule):
    """A rule that kernels do not know makes its steps one by one: same rows, same tree, same bound."""
    single = replace(rule, numbers=None)
    compared = 0
    for seed in range(3):
        problem = draw_problem(np.random.default_rng(seed), model, 4, projective=False)
        if optimum(problem) == -np.inf:
            continue
        burst, rounds = (nonprojective.decode(problem, Limits(step=r), estimate=False) for r in (rule, single))
        assert burst.score == rounds.score == optimum(problem)
        assert rounds.info["decoded"] == 1.0
        a, b = burst.trace, rounds.trace
        shorter = min(len(a), len(b))
        apart = np.abs(a.dual[:shorter] - b.dual[:shorter]) > 1e-9
        same = int(np.argmax(apart)) if apart.any() else shorter  # ties may be broken differently, as rounding differs
        assert same >= 1
        for column in ("primal", "round_primal", "active"):
            np.testing.assert_allclose(getattr(a, column)[: same - 1], getattr(b, column)[: same - 1])
        np.testing.assert_allclose(a.step[: same - 1], b.step[: same - 1])
        compared += same
    assert compared > 6


def test_the_general_relaxation_reaches_the_same_optimum_with_the_projective_parser_in_the_tree_s_place():
    from certus.relax import branch

    for seed in range(3):
        problem = draw_problem(np.random.default_rng(seed), "grandparents and siblings", 4, projective=True)
        if optimum(problem) == -np.inf:
            continue
        relaxed = branch.climb(problem, nonprojective.relaxation(problem, projective=True))
        assert relaxed.score == problem.decode().score == optimum(problem)
        assert relaxed.certificate.exact


@pytest.mark.parametrize("model", ["siblings", "grandparents and siblings"])
@pytest.mark.compiled
def test_lazy_decoding_changes_nothing_but_the_work(model):
    problem = draw_problem(np.random.default_rng(3), model, 8, projective=False)
    lazy, eager = nonprojective.decode(problem), nonprojective.decode(problem, lazy=False)
    np.testing.assert_array_equal(lazy.trace.dual, eager.trace.dual)
    np.testing.assert_array_equal(lazy.structure, eager.structure)
    assert lazy.info["decoded"] < eager.info["decoded"] == 1.0


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
def test_any_share_of_the_arc_scores_gives_the_same_optimum(share):
    problem = draw_problem(np.random.default_rng(11), "grandparents and siblings", 4, projective=False)
    result = nonprojective.decode(problem, share=share)
    assert result.score == optimum(problem)
    certus.verify(problem, result)


def test_an_altered_certificate_is_rejected():
    problem = draw_problem(np.random.default_rng(0), "siblings", 4, projective=False)
    result = problem.decode()
    c = result.certificate
    lower = certus.Certificate(c.kind, c.score, c.bound - 1.0, c.tolerance, c.duals)
    with pytest.raises(certus.VerificationError):
        certus.verify(problem, certus.Result(result.structure, result.score, lower))
    moved = {name: values + np.arange(values.size).reshape(values.shape) for name, values in c.duals.items()}
    other = replace(c, witness=Leaf(moved))
    with pytest.raises(certus.VerificationError):
        certus.verify(problem, certus.Result(result.structure, result.score, other))


def test_results_travel(tmp_path):
    problem = draw_problem(np.random.default_rng(8), "grandparents and siblings", 4, projective=False)
    result = problem.decode()
    certus.save_result(tmp_path / "result.json", problem, result)
    again, loaded = certus.load_result(tmp_path / "result.json")
    certus.verify(again, loaded)


def test_solve_adds_penalties_to_the_arcs():
    problem = draw_problem(np.random.default_rng(2), "siblings", 4, projective=False)
    penalty = np.random.default_rng(4).integers(-8, 9, size=(5, 5)).astype(np.float64)
    solution = problem.solve({"arcs": penalty})
    best = max(
        problem.score(y) + float((penalty * problem.indicator(y, "arcs")).sum()) for y in problem.all_structures()
    )
    assert solution.value == pytest.approx(best)


@pytest.mark.compiled
def test_limits_are_checked_and_kept():
    problem = draw_problem(np.random.default_rng(2), "siblings", 4, projective=False)
    with pytest.raises(InvalidInput, match="max_iterations"):
        problem.decode(max_iterations=0)
    with pytest.raises(InvalidInput, match="time_limit"):
        problem.decode(time_limit=-1.0)
    rng = np.random.default_rng(0)
    hard = Dependency(rng.normal(size=(41,) * 2), rng.normal(size=(41,) * 3), rng.normal(size=(41,) * 3))
    try:
        result = hard.decode(time_limit=0.05)
    except LimitReached:
        return
    assert result.certificate.bound >= result.score


def test_a_word_without_any_head_is_infeasible():
    arc = np.zeros((4, 4))
    arc[:, 2] = -np.inf
    with pytest.raises(Infeasible):
        Dependency(arc, sibling=np.zeros((4, 4, 4))).decode()


def test_decode_takes_a_step_rule_and_its_trace_travels(tmp_path):
    rng = np.random.default_rng(3)
    problem = Dependency(rng.normal(size=(7, 7)), sibling=2.0 * rng.normal(size=(7, 7, 7)))
    result = problem.decode(step=harmonic(0.5), max_iterations=30, exact=False)
    assert result.trace.step[:2].tolist() == [0.5, 0.25]
    assert result.score <= problem.decode().score
    save_result(tmp_path / "r.json", problem, result)
    _, again = load_result(tmp_path / "r.json")
    for name in ("dual", "primal", "step", "active", "round_primal"):
        np.testing.assert_array_equal(getattr(again.trace, name), getattr(result.trace, name))
