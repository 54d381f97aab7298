import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Infeasible, InvalidInput, Joint, NotSupported, Tagging
from certus.constraints import at_least, at_most, at_most_one, budget, exactly, forbid, implies, linear, require
from certus.relax.linear import solve_ilp
from tests.oracles.enumerated import Enumerated, best_by_enumeration
from tests.relax.random_problems import optimum, scores, taggings


def tagging(rng, n=4, size=3):
    return Tagging(rng.integers(-8, 9, (n, size)).astype(float), bigram=scores(rng, size, size))


def random_constraint(rng, shape):
    cells = [tuple(int(k) for k in c) for c in np.ndindex(*shape)]
    chosen = [cells[k] for k in rng.permutation(len(cells))[: rng.integers(1, 5)]]
    a, b = (("tags", cells[int(rng.integers(len(cells)))]) for _ in range(2))
    make = [
        lambda: at_most(int(rng.integers(0, 3)), "tags", chosen),
        lambda: at_least(int(rng.integers(0, 3)), "tags", chosen),
        lambda: exactly(int(rng.integers(0, 3)), "tags", chosen),
        lambda: at_most_one("tags", chosen),
        lambda: implies(a, b),
        lambda: forbid(*a),
        lambda: require(*b),
        lambda: budget("tags", rng.integers(0, 5, shape), float(rng.integers(0, 12))),
        lambda: linear([(float(rng.integers(-3, 4)), "tags", c) for c in chosen], "==", float(rng.integers(-1, 3))),
    ]
    return make[int(rng.integers(len(make)))]()


def check(base, *constraints):
    problem = base.subject_to(*constraints)
    views = {view for c in constraints for _, view, _ in c.terms}
    every = {id(y): (y, {view: base.indicator(y, view) for view in views}) for y in base.all_structures()}
    best = max(
        (base.score(y) for y, used in every.values() if all(c.holds(used) for c in constraints)), default=-np.inf
    )
    if best == -np.inf:
        with pytest.raises(Infeasible):
            problem.decode()
        return "infeasible"
    result = problem.decode()
    assert result.score == best
    assert result.certificate.exact
    assert all(c.holds({view: base.indicator(result.structure, view) for view in views}) for c in constraints)
    certus.verify(problem, result)
    return result.certificate.kind


def test_constrained_taggings_equal_enumeration():
    rng = np.random.default_rng(11)
    kinds = set()
    for _ in range(150):
        base = tagging(rng, int(rng.integers(1, 5)), int(rng.integers(1, 4)))
        constraints = [random_constraint(rng, base.views["tags"]) for _ in range(rng.integers(1, 4))]
        kinds.add(check(base, *constraints))
    assert kinds == {"dual", "branch and bound", "infeasible", "dynamic program"}


def test_constrained_joint_problems_equal_enumeration():
    rng = np.random.default_rng(12)
    for _ in range(40):
        joint = Joint(*taggings(rng, int(rng.integers(1, 4)), int(rng.integers(1, 4))), on="tags")
        check(joint, *(random_constraint(rng, joint.views["tags"]) for _ in range(rng.integers(1, 3))))


def test_joining_a_constrained_problem():
    rng = np.random.default_rng(13)
    for _ in range(20):
        a, b = taggings(rng, 3, 2)
        constrained = a.subject_to(at_most(1, "tags", [(i, 0) for i in range(3)]), forbid("tags", (1, 1)))
        problem = Joint(constrained, b, on="tags")
        best = optimum(problem)
        if best == -np.inf:
            with pytest.raises(Infeasible):
                problem.decode()
        else:
            result = problem.decode()
            assert result.score == best
            certus.verify(problem, result)


def test_views_that_are_not_exclusive():
    rng = np.random.default_rng(14)
    for _ in range(60):
        parts = rng.integers(0, 2, (8, 5))
        base = Enumerated(parts, rng.integers(-8, 9, 8))
        cells = [(int(k),) for k in rng.permutation(5)[:3]]
        made = [at_most(1, "parts", cells), require("parts", (0,)), implies(("parts", cells[0]), ("parts", cells[1]))]
        check(base, *made[: rng.integers(1, 4)])


def test_masking_answers_every_question():
    rng = np.random.default_rng(15)
    base = Tagging(rng.integers(-8, 9, (3, 3)).astype(float), bigram=rng.integers(-8, 9, (3, 3)).astype(float))
    problem = base.subject_to(forbid("tags", (0, 0)), require("tags", (2, 1)))
    allowed = [y for y in base.all_structures() if y[0] != 0 and y[2] == 1]
    values = np.array([base.score(y) for y in allowed])
    assert problem.decode().score == values.max()
    assert problem.decode().certificate.kind == "dynamic program"
    assert problem.log_partition() == pytest.approx(np.log(np.exp(values).sum()))
    assert [r.score for r in problem.kbest(4)] == sorted(values, reverse=True)[:4]
    assert problem.marginals()["tags"][2].tolist() == pytest.approx([0.0, 1.0, 0.0])
    assert problem.max_marginals()["tags"][0, 0] == -np.inf
    assert problem.entropy() >= 0
    assert all(y[0] != 0 and y[2] == 1 for y in problem.sample(20, seed=0))
    for rank, result in enumerate(problem.kbest(3), 1):
        assert result.certificate.rank == rank
        certus.verify(problem, result)


@pytest.mark.parametrize("question", ["log_partition", "marginals", "entropy", "max_marginals"])
def test_questions_without_an_answer_say_so(question):
    problem = Tagging(np.zeros((3, 2))).subject_to(at_most(1, "tags", [(0, 0), (1, 0)]))
    with pytest.raises(NotSupported, match="decode"):
        getattr(problem, question)()


def test_kbest_filters_the_problems_own():
    rng = np.random.default_rng(16)
    base = tagging(rng, 4, 2)
    problem = base.subject_to(exactly(2, "tags", [(i, 0) for i in range(4)]))
    want = sorted((problem.score(y) for y in problem.all_structures() if problem.score(y) > -np.inf), reverse=True)
    for k in (1, 3, 6, 50):
        found = problem.kbest(k)
        assert [r.score for r in found] == want[:k]
        assert [r.certificate.rank for r in found] == list(range(1, len(found) + 1))
        for r in found:
            certus.verify(problem, r)


def test_kbest_under_ties_lists_no_structure_twice():
    problem = Tagging(np.zeros((4, 2))).subject_to(exactly(2, "tags", [(i, 0) for i in range(4)]))
    found = problem.kbest(6)
    assert len({tuple(r.structure.tolist()) for r in found}) == 6
    assert found[0].certificate.kind in ("dual", "branch and bound")


def test_impossible_constraints_are_proved_impossible():
    rng = np.random.default_rng(17)
    n = 12
    base = Tagging(rng.normal(size=(n, 4)), bigram=rng.normal(size=(4, 4)))
    with pytest.raises(Infeasible):
        base.subject_to(at_least(n + 1, "tags", [(i, t) for i in range(n) for t in range(4)])).decode()
    with pytest.raises(Infeasible):
        base.subject_to(require("tags", (0, 0)), require("tags", (0, 1))).decode()
    with pytest.raises(Infeasible):
        base.subject_to(
            require("tags", (0, 0)), implies(("tags", (0, 0)), ("tags", (1, 1))), forbid("tags", (1, 1))
        ).decode()
    # A parity no multiplier can see: 2 (tags 0) = 3.
    with pytest.raises(Infeasible):
        base.subject_to(linear([(2.0, "tags", (i, 0)) for i in range(5)], "==", 3.0)).decode()
    with pytest.raises(Infeasible):
        base.subject_to(at_least(2, "tags", [(0, 0), (0, 1)])).kbest(3)


def test_fixing_parts_of_a_constrained_problem():
    rng = np.random.default_rng(18)
    base = tagging(rng, 3, 2).subject_to(at_most(2, "tags", [(i, 0) for i in range(3)]))
    for index, value in itertools.product(np.ndindex(3, 2), (0, 1)):
        fixed = base.with_fixed("tags", index, value)
        want = max(
            (base.score(y) for y in base.all_structures() if (y[index[0]] == index[1]) == bool(value)), default=-np.inf
        )
        assert fixed.decode().score == want


def test_solve_under_penalties():
    rng = np.random.default_rng(19)
    problem = tagging(rng, 3, 3).subject_to(at_most_one("tags", [(i, 0) for i in range(3)]))
    for _ in range(10):
        penalty = scores(rng, 3, 3)
        want = best_by_enumeration(problem, {"tags": penalty})
        if want == -np.inf:
            with pytest.raises(Infeasible):
                problem.solve({"tags": penalty})
        else:
            assert problem.solve({"tags": penalty}).value == want


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_agrees_with_the_integer_program(seed):
    rng = np.random.default_rng(seed)
    problem = tagging(rng, 5, 3).subject_to(
        budget("tags", rng.integers(0, 4, (5, 3)), 6.0), implies(("tags", (0, 0)), ("tags", (4, 2)))
    )
    try:
        result = problem.decode()
    except Infeasible:
        with pytest.raises(Infeasible):
            solve_ilp(problem)
    else:
        assert solve_ilp(problem).score == result.score


def test_names():
    assert repr(at_most_one("tags", [(0, 1), (2, 1)])) == "at_most_one(tags: [0, 1], [2, 1])"
    assert (
        repr(exactly(2, "tags", [(i, 0) for i in range(9)])) == "exactly(2, tags: [0, 0], [1, 0], [2, 0], [3, 0], ...)"
    )
    assert repr(implies(("tags", (0, 1)), ("arcs", (2, 3)))) == "implies(tags[0, 1], arcs[2, 3])"
    assert repr(forbid("tags", (0, 1))) == "forbid(tags[0, 1])"
    assert repr(require("tags", (0, 1))) == "require(tags[0, 1])"
    assert repr(budget("tags", [[1.0, 0.0]], 3)) == "budget(tags, 1 costs, 3)"
    assert repr(linear([(2, "tags", (0, 1))], "<=", 1)) == "2 tags[0, 1] <= 1"
    assert repr(forbid("tags", (0, 1)).named("no verb first")) == "no verb first"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p.subject_to(forbid("heads", (0, 0))), "no view 'heads'"),
        (lambda p: p.subject_to(forbid("tags", (0, 2))), "outside the view"),
        (lambda p: p.subject_to(forbid("tags", (-1, 0))), "outside the view"),
        (lambda p: p.subject_to(forbid("tags", (0,))), "outside the view"),
        (lambda p: p.subject_to(forbid("tags", (0.5, 0))), "whole numbers"),
        (lambda p: p.subject_to("at most one"), "not a constraint"),
        (lambda p: at_most(-1, "tags", []), "at least 0"),
        (lambda p: at_most(1.5, "tags", []), "whole number"),
        (lambda p: at_most(1, "tags", [(0, 0), (0, 0)]), "listed twice"),
        (lambda p: linear([(float("nan"), "tags", (0, 0))], "<=", 1), "finite"),
        (lambda p: linear([], "<", 1), "expected one of"),
        (lambda p: budget("tags", [[float("-inf")]], 1), "finite"),
        (lambda p: budget("tags", [[1.0]], float("inf")), "finite"),
        (lambda p: forbid("tags", 3), "index"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(InvalidInput, match=message):
        make(Tagging(np.zeros((2, 2))))


def test_a_constraint_without_terms():
    base = Tagging([[1.0, 2.0]])
    assert base.subject_to(linear([], "<=", 1)).decode().score == 2.0
    with pytest.raises(Infeasible):
        base.subject_to(linear([], "==", 1)).decode()


def test_no_words():
    problem = Tagging(np.zeros((0, 2))).subject_to(at_most(1, "tags", []))
    assert problem.decode().score == 0.0


def test_costs_in_another_shape_than_their_view_are_refused():
    problem = Tagging(np.zeros((4, 3)))
    with pytest.raises(InvalidInput, match=r"costs have shape \(3, 2\); view tags has \(4, 3\)"):
        problem.subject_to(budget("tags", np.ones((3, 2)), 2.0))
    assert problem.subject_to(budget("tags", np.ones((4, 3)), 4.0)).decode().score == 0.0
