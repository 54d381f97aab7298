"""Soft constraints: what is broken costs so much per unit, and the best structure is found and proved all the same."""

import json
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import InvalidInput, Joint, Tagging
from certus.certificates import standalone
from certus.constraints import at_least, at_most, budget, exactly, forbid, implies, linear, require
from certus.proof_file import proof_to_json
from certus.relax.linear import solve_ilp
from tests.oracles.enumerated import Enumerated
from tests.relax.random_problems import optimum, scores, taggings

seeds = st.integers(0, 2**32 - 1)


def drawn(rng, shape, view="tags"):
    """A constraint and, in other words, what breaking it costs given the parts used."""
    cells = [tuple(int(k) for k in c) for c in np.ndindex(*shape)]
    chosen = [cells[k] for k in rng.permutation(len(cells))[: rng.integers(1, 5)]]
    k, p = int(rng.integers(0, 3)), float(rng.integers(0, 5))
    a, b = chosen[0], chosen[-1]

    def count(used):
        return sum(used[c] for c in chosen)

    makers = [
        lambda: (at_most(k, view, chosen, penalty=p), lambda used: p * max(count(used) - k, 0)),
        lambda: (at_least(k, view, chosen, penalty=p), lambda used: p * max(k - count(used), 0)),
        lambda: (exactly(k, view, chosen, penalty=p), lambda used: p * abs(count(used) - k)),
        lambda: (forbid(view, a, penalty=p), lambda used: p * used[a]),
        lambda: (require(view, a, penalty=p), lambda used: p * max(1 - used[a], 0)),
        lambda: (implies((view, a), (view, b), penalty=p), lambda used: p * max(used[a] - used[b], 0)),
        lambda: (
            linear([(2.0, view, a), (-3.0, view, b)], "==", 1.0, penalty=p),
            lambda used: p * abs(2 * used[a] - 3 * used[b] - 1),
        ),
    ]
    return makers[int(rng.integers(len(makers)))]()


def check(problem, base, costs):
    values = {}
    for number, y in enumerate(base.all_structures()):
        used = base.indicator(y, next(iter(base.views)))
        values[number] = base.score(y) - sum(cost(used) for cost in costs)
        assert problem.score(y) == values[number]
    best = max(values.values(), default=-inf)
    if best == -inf:
        with pytest.raises(certus.Infeasible):
            problem.decode()
        return
    result = problem.decode()
    assert result.score == best == optimum(problem)
    assert result.certificate.exact
    certus.verify(problem, result)
    standalone.check(json.loads(json.dumps(proof_to_json(problem, result))))


@given(seeds, st.integers(1, 3))
@settings(max_examples=60)
def test_taggings_equal_enumeration(seed, count):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(0, 4)), int(rng.integers(1, 4))
    base = Tagging(scores(rng, n, size), bigram=scores(rng, size, size))
    made = [drawn(rng, (n, size)) for _ in range(count if n else 0)]
    check(base.subject_to(*(c for c, _ in made)), base, [cost for _, cost in made])


@given(seeds)
@settings(max_examples=25)
def test_joint_problems_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    base = Joint(*taggings(rng, int(rng.integers(1, 4)), 2), on="tags", weight=2.0)
    made = [drawn(rng, base.views["tags"]) for _ in range(2)]
    check(base.subject_to(*(c for c, _ in made)), base, [cost for _, cost in made])


@given(seeds)
@settings(max_examples=25)
def test_a_part_of_a_joint_problem_under_soft_constraints(seed):
    rng = np.random.default_rng(seed)
    a, b = taggings(rng, 3, 2)
    constraint, cost = drawn(rng, (3, 2))
    joint = Joint(a, b.subject_to(constraint), on="tags", weights=(1.0, 2.0))
    want = max(
        (a.score(y) + 2.0 * (b.score(y) - cost(b.indicator(y, "tags"))) for y in a.all_structures()), default=-inf
    )
    if want == -inf:
        with pytest.raises(certus.Infeasible):
            joint.decode()
        return
    result = joint.decode()
    assert result.score == want
    certus.verify(joint, result)


@given(seeds)
@settings(max_examples=25)
def test_views_that_are_not_exclusive(seed):
    rng = np.random.default_rng(seed)
    base = Enumerated(rng.integers(0, 2, (6, 4)), rng.integers(-8, 9, 6))
    made = [drawn(rng, (4,), "parts") for _ in range(2)]
    check_values = {y: base.score(y) - sum(cost(base.parts[y]) for _, cost in made) for y in range(6)}
    problem = base.subject_to(*(c for c, _ in made))
    result = problem.decode()
    assert result.score == max(check_values.values())
    certus.verify(problem, result)


def test_coefficients_that_are_not_whole():
    rng = np.random.default_rng(3)
    for _ in range(20):
        base = Tagging(rng.normal(size=(3, 3)), bigram=rng.normal(size=(3, 3)))
        costs, price = rng.random((3, 3)), float(rng.random())
        problem = base.subject_to(budget("tags", costs, 0.7, penalty=price))
        want = max(
            base.score(y) - price * max((costs * base.indicator(y, "tags")).sum() - 0.7, 0.0)
            for y in base.all_structures()
        )
        result = problem.decode()
        assert result.score == pytest.approx(want, abs=1e-12)
        assert result.certificate.exact
        certus.verify(problem, result)


@pytest.mark.parametrize("seed", range(3))
def test_trees_with_crossing_arcs_are_proposed_beside_what_it_costs_to_miss_a_row(seed):
    rng = np.random.default_rng(seed)
    base = certus.Dependency(scores(rng, 4, 4), trisibling=scores(rng, 4, 4, 4, 4), root="multi")
    missed = linear([(0.1, "arcs", (0, 2))], "==", 2.0, penalty=3.0)
    problem = base.subject_to(missed, at_most(1, "arcs", [(0, 1), (0, 3)]))
    result = problem.decode(time_limit=60.0)
    assert result.certificate.exact
    assert result.score == pytest.approx(max(map(problem.score, problem.all_structures())), abs=1e-12)


def test_hard_and_soft_constraints_together():
    base, first = Tagging([[3.0, 0.0]] * 4), [(i, 0) for i in range(4)]
    problem = base.subject_to(at_most(2, "tags", first), exactly(4, "tags", first, penalty=1.0))
    result = problem.decode()
    assert result.score == 6.0 - 2.0
    assert [c.soft for c in problem.violated(result.structure)] == [True]


def test_no_exceptions_at_an_infinite_price():
    assert at_most(1, "tags", [(0, 0)], penalty=inf) == at_most(1, "tags", [(0, 0)])
    base = Tagging([[1.0, 0.0]])
    assert isinstance(base.subject_to(forbid("tags", (0, 0), penalty=inf)), Tagging)


@pytest.mark.parametrize("price", [-1.0, float("nan"), "2", True])
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(InvalidInput, match="penalty"):
        at_most(1, "tags", [(0, 0)], penalty=price)


def test_prices_are_saved(tmp_path):
    problem = Tagging([[2.0, 0.0], [2.0, 0.5]]).subject_to(at_most(1, "tags", [(0, 0), (1, 0)], penalty=1.75))
    result = problem.decode()
    assert result.score == 2.5
    certus.save_result(tmp_path / "r.json", problem, result)
    again, loaded = certus.load_result(tmp_path / "r.json")
    assert again.constraints == problem.constraints
    certus.verify(again, loaded)


def test_the_integer_program_knows_prices():
    problem = Tagging([[2.0, 0.0], [2.0, 0.5]]).subject_to(at_most(1, "tags", [(0, 0), (1, 0)], penalty=1.0))
    assert solve_ilp(problem).score == problem.decode().score == 3.0


def test_a_large_price_forbids():
    problem = Tagging([[2.0, 0.0], [2.0, 0.5]]).subject_to(at_most(1, "tags", [(0, 0), (1, 0)], penalty=1e12))
    result = problem.decode()
    assert result.score == 2.5
    assert result.certificate.exact
    certus.verify(problem, result)


@given(seeds, st.booleans())
@settings(max_examples=8, deadline=None)
def test_lists_and_max_marginals_equal_enumeration(seed, trees):
    rng = np.random.default_rng(seed)
    base = certus.Dependency(scores(rng, 3, 3), scores(rng, 3, 3, 3)) if trees else Tagging(scores(rng, 3, 2))
    (view,) = base.views
    problem = base.subject_to(*(drawn(rng, base.views[view], view)[0] for _ in range(2)))
    every = [(problem.indicator(y, view), problem.score(y)) for y in problem.all_structures()]
    values = sorted((score for _, score in every if score > -inf), reverse=True)
    if not values:
        return
    found = problem.kbest(3)
    assert [r.score for r in found] == values[:3]
    certus.verify(problem, found[-1])
    best = np.max([np.where(used > 0, score, -inf) for used, score in every], axis=0)
    assert (problem.max_marginals()[view] == best).all()
    bounds = problem.log_partition_bounds(iterations=10) if not trees else None
    assert bounds is None or bounds.lower <= np.logaddexp.reduce(values) <= bounds.upper
