"""Estimated marginals of problems that are relaxed, against all structures; what they are drawn by, and refused for."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import certus
from certus import constraints
from certus.dependency.tree_law import TreeLaw
from certus.relax import estimates
from certus.relax.chains import Chains, Moves
from certus.relax.laws import Asked, Budget, ForestLaw, law_of
from certus.relax.weighted import Uses, chained, effective_size, weighted
from tests.test_contract import WideGraph

FORBIDDEN = (-np.inf, -1e6, -1e5)


def whole(rng, *shape, masks=True):
    scores = rng.integers(-3, 4, shape).astype(float)
    if masks and rng.random() < 0.4:
        scores[rng.random(shape) < 0.1] = rng.choice(FORBIDDEN)
    return scores


def tagging(rng, n, tags=2):
    return certus.Tagging(whole(rng, n, tags), bigram=whole(rng, tags, tags))


def constrained(rng, **options):
    n = int(rng.integers(1, 5))
    cells = [(i, 0) for i in range(n)]
    make = (constraints.at_most, constraints.at_least, constraints.exactly)[int(rng.integers(3))]
    return tagging(rng, n).subject_to(make(int(rng.integers(0, n + 1)), "tags", cells, **options))


def wide(rng):
    n = int(rng.integers(1, 5))
    return WideGraph(whole(rng, n, 2), {k: whole(rng, 2, 2) for k in combinations(range(n), 2)}, width=4)


def crossing(rng):
    """Trees that may cross, scored above arcs, under a constraint on two arcs."""
    trees = certus.Dependency(whole(rng, 4, 4), whole(rng, 4, 4, 4), root="multi")
    return trees.subject_to(constraints.at_most(1, "arcs", [(1, 2), (2, 3)]))


def tied(rng):
    n = int(rng.integers(1, 4))
    return certus.Joint(tagging(rng, n), tagging(rng, n), on="tags", merge=False)


def parsed_and_tagged(rng):
    """Projective trees and trees that may cross, which must be the same, and a constraint on them."""
    trees = [certus.Dependency(whole(rng, 4, 4), projective=projective) for projective in (True, False)]
    return certus.Joint(*trees, on="arcs").subject_to(constraints.at_most(1, "arcs", [(0, 1), (0, 2), (1, 2)]))


class Counting:
    start = 0

    def step(self, state, m):
        return state + 1, -float(state > 0)

    def stop(self, state):
        return 0.0


MADE = {
    "constrained": constrained,
    "soft": lambda rng: constrained(rng, penalty=2.0),
    "tied": tied,
    "three tied": lambda rng: certus.Joint(*(tagging(rng, 2) for _ in range(3)), on="tags", merge=False),
    "tied trees": parsed_and_tagged,
    "tied and soft": lambda rng: tied(rng).subject_to(constraints.at_most(1, "tags", [(0, 0), (0, 1)], penalty=1.0)),
    "crossing trees": crossing,
    "graph": lambda rng: certus.DependencyGraph(whole(rng, 3, 3), *(whole(rng, 3, 3, 3) for _ in range(3))),
    "wide factor graph": wide,
    "assignment": lambda rng: certus.Assignment(whole(rng, *rng.integers(0, 4, 2))),
    "knapsack": lambda rng: certus.Knapsack(whole(rng, 5), rng.integers(0, 5, 5), int(rng.integers(0, 9))),
    "set cover": lambda rng: certus.SetCover(-whole(rng, 5), [rng.choice(4, 2, replace=False) for _ in range(5)]),
    "crossing labelled automata": lambda rng: certus.CrossingLabelledAutomata(
        whole(rng, 3, 3, 2), lambda g, h, side: Counting(), root="multi"
    ),
}


def truth(problem):
    """The log-partition and marginals by all structures; None where there is none."""
    try:
        scored = [(problem.score(y), y) for y in problem.all_structures()]
    except certus.Infeasible:
        return None
    scored = [(score, y) for score, y in scored if score > -np.inf]
    if not scored:
        return None
    total = np.logaddexp.reduce([score for score, _ in scored])
    views = problem.views
    return total, {v: sum(np.exp(s - total) * problem.indicator(y, v) for s, y in scored) for v in views}


def deviations(name, count, samples, seed=0):
    """How many standard errors estimates are off, of all parts of as many problems."""
    out = []
    for k in range(count):
        problem = MADE[name](np.random.default_rng([seed, k]))
        known = truth(problem)
        if known is None:
            with pytest.raises(certus.Infeasible):
                problem.marginal_estimates(samples=samples, seed=k)
            continue
        total, marginals = known
        bounds = problem.log_partition_bounds()
        assert bounds.lower <= total <= bounds.upper
        found = problem.marginal_estimates(samples=samples, seed=k)
        assert found.marginals.keys() == problem.views.keys()
        assert found.effective_sample_size >= 1.0
        if found.samples:
            assert found.effective_sample_size <= found.samples
        for view, exact in marginals.items():
            estimate, error = found.marginals[view], found.standard_error[view]
            assert estimate.shape == error.shape == problem.views[view]
            assert ((estimate >= 0.0) & (estimate <= 1.0)).all()
            assert np.isfinite(error).all()
            out.append((np.abs(estimate - exact) / np.maximum(error, 1e-9)).ravel())
    return np.concatenate(out)


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_estimates_are_within_their_errors(name):
    off = deviations(name, 6, 200)
    assert (off <= 5.0).mean() >= 0.99
    assert (off <= 2.0).mean() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_chains_come_to_the_same(name, monkeypatch):
    """Where all samples are by chains, whatever their weights."""
    monkeypatch.setattr(estimates, "SHARE", 2.0)
    off = deviations(name, 2, 48, seed=1)
    assert (off <= 6.0).mean() >= 0.98


def test_the_same_seed_gives_the_same_and_without_one_it_is_told():
    problem = constrained(np.random.default_rng(1))
    first, again = (problem.marginal_estimates(samples=50, seed=7) for _ in range(2))
    assert (first.marginals["tags"] == again.marginals["tags"]).all()
    assert (first.log_partition, first.seed, first.samples) == (again.log_partition, 7, 50)
    drawn = problem.marginal_estimates(samples=5)
    assert problem.marginal_estimates(samples=5, seed=drawn.seed).log_partition == drawn.log_partition
    with pytest.raises(certus.InvalidInput, match="samples"):
        problem.marginal_estimates(samples=0)


def test_one_structure_is_all_there_is():
    """Each pair of an assignment forbidden but one, and a budget that leaves an item out: nothing is left open."""
    found = certus.Knapsack([1.0, 5.0], [1, 3], 2).subject_to(constraints.require("items", (0,))).marginal_estimates()
    assert found.marginals["items"].tolist() == [1.0, 0.0]
    assert found.log_partition == pytest.approx(1.0)
    assert found.effective_sample_size == pytest.approx(found.samples)
    assert (found.standard_error["items"] < 0.002).all()
    only = certus.Tagging([[0.0, -np.inf]]).subject_to(constraints.at_least(1, "tags", [(0, 0), (0, 1)]))
    assert only.marginal_estimates(seed=1).standard_error["tags"].tolist() == [[0.0, 0.0]]


def test_nothing_to_choose():
    for problem in (certus.Assignment(np.zeros((0, 3))), certus.Knapsack([], [], 1), certus.SetCover([], [])):
        found = problem.marginal_estimates(samples=10, seed=1)
        assert (found.log_partition, found.effective_sample_size) == (pytest.approx(0.0), 10.0)


def test_no_structure_is_infeasible_and_none_drawn_is_said():
    pairs = certus.Tagging(np.zeros((2, 2))).subject_to(
        constraints.exactly(1, "tags", [(0, 0), (1, 0)]), constraints.exactly(2, "tags", [(0, 0), (1, 0)])
    )
    with pytest.raises(certus.Infeasible):
        pairs.marginal_estimates(samples=20, seed=1)
    hidden = np.full((2, 2), -np.inf)
    hidden[0, 1] = hidden[1, 0] = 0.0
    alternating = certus.Joint(
        certus.Tagging(np.zeros((24, 2))), certus.Tagging(np.zeros((24, 2)), bigram=hidden), on="tags", merge=False
    )
    with pytest.raises(certus.LimitReached, match="none of the 3 structures drawn is one"):
        alternating.marginal_estimates(samples=3, seed=1)


def test_scores_beyond_float64_are_refused_and_masks_are_not():
    rows = [constraints.at_most(1, "tags", [(0, 0), (1, 0)])]
    masked = certus.Tagging([[0.0, -1e6, 1.0], [-3e38, 0.0, 1.0]]).subject_to(*rows)
    allowed = certus.Tagging([[0.0, -np.inf, 1.0], [-np.inf, 0.0, 1.0]]).subject_to(*rows)
    a, b = (problem.marginal_estimates(samples=200, seed=1).marginals["tags"] for problem in (masked, allowed))
    assert np.allclose(a, b, atol=0.15)
    assert a[0, 1] == a[1, 0] == 0.0
    with pytest.raises(certus.InvalidInput, match="scores as large as"):
        certus.Tagging([[1e15, 0.0], [0.0, 0.0]]).subject_to(*rows).marginal_estimates()


def test_draws_within_budgets_miss_none():
    """All that is drawn fits, with the probability that it tells."""
    problem = certus.Knapsack(np.full(6, 2.0), [1, 2, 3, 1, 2, 3], 6)._free
    plain = law_of(problem, Asked(1.0, {}, 1.0))
    law = plain.within([Budget([("items", np.arange(6), np.array([1.0, 2, 3, 1, 2, 3]))], 6.0)])
    assert isinstance(law, ForestLaw)
    drawn = law.draws(400, np.random.default_rng(1))
    cost = np.array([1, 2, 3, 1, 2, 3])
    assert all(y is not None and cost[y.cells["items"]].sum() <= 6 for y in drawn)
    different = {y.key: y for y in drawn}
    assert np.exp([law.log_probability(y) for y in different.values()]).sum() == pytest.approx(1.0, abs=0.1)
    assert any(y is not None and cost[y.cells["items"]].sum() > 6 for y in plain.draws(50, np.random.default_rng(1)))
    assert {law.log_probability(y) for y in plain.draws(50, np.random.default_rng(1))} & {-np.inf}


def test_laws_of_trees_draw_what_they_add_up():
    rng = np.random.default_rng(2)
    problem = certus.LabelledDependency(rng.normal(size=(4, 4, 2)))
    law = law_of(problem, Asked(1.0, {"arcs": np.zeros((4, 4)), "labels": rng.normal(size=(4, 4, 2))}, 0.5))
    assert isinstance(law, TreeLaw)
    every = {}
    for y in law.draws(3000, rng):
        every.setdefault(y.key, []).append(y)
    assert all(abs(len(y) / 3000 - np.exp(law.log_probability(y[0]))) < 0.06 for y in every.values())
    heads, labels = law.structure(next(iter(every.values()))[0])
    assert heads[0] == labels[0] == -1
    used = sum(len(y) / 3000 * np.bincount(y[0].cells["labels"], minlength=32) for y in every.values())
    assert np.abs(law.expected("labels", (4, 4, 2)).ravel() - used).max() < 0.06
    with pytest.raises(certus.NotSupported, match="sums are not known"):
        law_of(certus.SpanningTree(np.zeros((3, 3))), Asked(1.0, {}, 1.0))


def test_what_nobody_uses_has_an_error_unless_it_is_decided():
    uses = Uses((3,), np.array([0, 1]), np.array([0, 0]), np.ones(2), np.array([False, False, True]))
    found = weighted(np.zeros(2), {"v": uses}, (2, 1))
    assert found.marginals["v"].tolist() == [1.0, 0.0, 0.0]
    assert (found.standard_error["v"][:2] > 0.1).all()
    assert found.standard_error["v"][2] == 0.0
    again = chained({"v": uses}, 0.0, (2, 1), 2)
    assert (again.method, again.effective_sample_size) == ("Markov chains", 1.0)
    assert effective_size(np.array([-np.inf, 0.0, 0.0])) == pytest.approx(2.0)
    assert effective_size(np.full(2, -np.inf)) == 0.0


def test_moves_free_some_lines_of_a_view():
    def moves(exclusive, shape):
        cells = slice(0, int(np.prod(shape)))
        parts = SimpleNamespace(slices=[[("v", cells, shape)]], subproblems=[SimpleNamespace(exclusive=exclusive)])
        return Moves(SimpleNamespace(relaxation=parts, order=(0,)))

    rng = np.random.default_rng(1)
    lines = moves({"v": 1}, (5, 3))
    for _ in range(50):
        power, kept = lines.drawn(lines.likely, rng)
        rows = kept.reshape(5, 3)
        assert (rows == rows[:, :1]).all()
        assert (~rows[:, 0]).sum() == 2**power
    one = moves({"v": 0}, (3,))
    assert one.drawn(one.likely, rng)[1].tolist() == [False] * 3
    none = moves({}, (0, 2))
    assert none.drawn(none.likely, rng)[1].shape == (0,)


def test_chains_are_as_many_as_samples_allow():
    problem = MADE["wide factor graph"](np.random.default_rng(4))
    sampler = estimates._sampler(problem, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    alive = [s for s in sampler.draws(20, rng) if s is not None and s.log_weight > -np.inf]
    for count, chains, each in ((1, 4, 1), (64, 8, 8), (1000, 32, 32)):
        made = Chains(sampler, alive, count, rng)
        assert (len(made.states), made.each) == (chains, each)
