"""Sums over trees with crossing arcs and scores above arcs: intervals that hold, and estimates that say so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Dependency, kernels
from certus.dependency import AutomataDependency, HeadAutomata, average_scores, matrix_tree
from certus.dependency.part_kinds import HIGHER_KINDS
from tests.dependency.cases import MODELS, problems

HIGHER = tuple(name for name in MODELS if name != "first order")


def truth(problem):
    """Log-partition function and marginals, tree by tree."""
    trees = list(problem.all_structures())
    scores = np.array([problem.score(heads) for heads in trees])
    if not len(trees) or scores.max() == -np.inf:
        return -np.inf, np.zeros(problem.arc.shape)
    total = np.logaddexp.reduce(scores)
    return total, sum(np.exp(s - total) * problem.indicator(y, "arcs") for s, y in zip(scores, trees, strict=True))


def holds(bounds, value):
    return bounds.lower <= value + 1e-12 and value - 1e-12 <= bounds.upper and bounds.width >= 0.0


@settings(deadline=None, max_examples=25)
@given(problems(models=HIGHER, projective=False), st.sampled_from([1, 5, 30]))
def test_the_interval_holds(problem, iterations):
    assert holds(problem.log_partition_bounds(iterations=iterations), truth(problem)[0])


def drawn(rng, model, n):
    """Scores of the size that a trained model has."""
    kinds, grandparents = MODELS[model]
    scores = {kind: rng.normal(size=HIGHER_KINDS[kind].shape(n)) for kind in kinds}
    return Dependency(2.0 * rng.normal(size=(n + 1, n + 1)), **scores, grandparents=grandparents)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["siblings", "both, outermost"])
def test_more_steps_make_the_interval_narrow(model):
    rng = np.random.default_rng(3)
    found = [drawn(rng, model, 4) for _ in range(4)]
    narrow = [problem.log_partition_bounds() for problem in found]
    loose = [problem.log_partition_bounds(iterations=1) for problem in found]
    assert np.median([b.width for b in narrow]) < 4.0
    assert all(a.upper <= b.upper + 1e-9 for a, b in zip(narrow, loose, strict=True))
    assert all(holds(b, truth(p)[0]) for b, p in zip(narrow, found, strict=True))


def test_where_sums_are_exact_so_are_both():
    arc = np.arange(16.0).reshape(4, 4)
    for problem in (Dependency(arc), Dependency(arc, sibling=np.zeros((4, 4, 4)), projective=True)):
        total, marginals = truth(problem)
        bounds, estimates = problem.log_partition_bounds(), problem.marginal_estimates()
        assert holds(bounds, total)
        assert bounds.width < 1e-9
        assert repr(estimates) == "MarginalEstimates(exact)"
        assert np.allclose(estimates.marginals["arcs"], marginals, atol=1e-12)


def test_no_words_and_no_trees():
    empty = Dependency([[0.0]], sibling=np.zeros((1, 1, 1)))
    assert holds(empty.log_partition_bounds(), 0.0)
    assert empty.marginal_estimates(samples=3, seed=1).effective_sample_size == pytest.approx(3.0)
    forbidden = np.full((3, 3, 3), -np.inf)
    for problem in (Dependency(np.zeros((3, 3)), forbidden), Dependency(np.full((3, 3), -np.inf), np.zeros((3, 3, 3)))):
        bounds = problem.log_partition_bounds()
        assert (bounds.lower, bounds.upper, bounds.width) == (-np.inf, -np.inf, 0.0)
        with pytest.raises(certus.Infeasible):
            problem.marginal_estimates(samples=5, seed=1)


@pytest.mark.slow
def test_estimates_come_near_the_truth_and_again_the_same():
    rng = np.random.default_rng(5)
    for model in ("siblings", "model 1", "great-grandparents"):
        problem = drawn(rng, model, 4)
        found = problem.marginal_estimates(samples=4000, seed=7)
        total, marginals = truth(problem)
        off = np.abs(found.marginals["arcs"] - marginals)
        assert (off <= 5.0 * found.standard_error["arcs"] + 1e-3).all()
        assert abs(found.log_partition - total) < 0.1
        assert 400 < found.effective_sample_size <= 4000
        again = problem.marginal_estimates(samples=4000, seed=7)
        assert (again.marginals["arcs"] == found.marginals["arcs"]).all()
        assert "effective sample size" in repr(found)
        assert problem.marginal_estimates(samples=2).seed is not None


def test_where_every_tree_drawn_is_forbidden_there_is_no_estimate():
    """One tree is allowed, by siblings that no arc-factored distribution can tell from the rest."""
    only = np.full((5, 5, 5), -np.inf)
    heads = [-1, 0, 4, 1, 3]
    for h, s, m in ((0, 0, 1), (1, 1, 3), (3, 3, 4), (4, 4, 2)):
        only[h, s, m] = 0.0
    problem = Dependency(np.zeros((5, 5)), only)
    assert problem.decode().structure.tolist() == heads
    bounds = problem.log_partition_bounds()
    assert holds(bounds, 0.0)
    assert bounds.lower == pytest.approx(0.0, abs=1e-9)


@settings(deadline=None, max_examples=20)
@given(problems(models=HIGHER, projective=False, largest=3))
def test_the_average_score_is_that_of_all_trees(problem):
    """E_q[score] + H(q) for trees scored by arcs alone, from the probabilities of parts."""
    trees = list(problem.all_structures())
    if not trees:
        return
    tree = np.where(problem.arc > -np.inf, 0.25 * problem.arc, -np.inf)
    scores = np.array([problem.score(heads) for heads in trees])
    weight = np.array([tree[heads[1:], np.arange(1, problem.n + 1)].sum() for heads in trees])
    share = np.exp(weight - np.logaddexp.reduce(weight))
    found = average_scores.lower_bound(problem, tree, left_out=0.0)
    if (scores == -np.inf).any():
        assert found == -np.inf
    else:
        assert found == pytest.approx(share @ (scores - np.log(share)), abs=1e-9)


@settings(deadline=None, max_examples=20)
@given(problems(models=[m for m in HIGHER if m not in ("great-grandparents", "both, outermost")], projective=False))
def test_sums_and_uses_of_heads(problem):
    """Against all choices of all heads, one by one; and scores of trees by lattices against the problem's own."""
    automata = HeadAutomata.of(problem)
    lattices = automata.lattices
    cells = (lattices.arc_head, lattices.arc_mod)
    arcs = len(cells[0])
    trees = np.array(list(problem.all_structures()), dtype=np.int64).reshape(-1, problem.n + 1)
    scores = np.empty(len(trees))
    kernels.head_sums.tree_scores(lattices, problem.arc[cells], trees, scores)
    assert scores.tolist() == [problem.score(heads) for heads in trees]
    if arcs > 7:
        return
    taken, above = np.empty(arcs), np.empty(arcs)
    total, average = kernels.head_sums.head_sums(lattices, problem.arc[cells], np.zeros(arcs), 0.5, taken, above)
    choices = [(z, 0.5 * automata.score(z)) for z in automata.all_structures()]
    values = np.array([value for _, value in choices])
    if values.max(initial=-np.inf) == -np.inf:
        assert total == -np.inf
        return
    share = np.exp(values - np.logaddexp.reduce(values))
    assert total == pytest.approx(np.logaddexp.reduce(values), abs=1e-9)
    assert average == pytest.approx(share[share > 0] @ values[share > 0], abs=1e-9)
    used = {
        view: sum(p * automata.indicator(z, view) for p, (z, _) in zip(share, choices, strict=True))
        for view in automata.views
    }
    assert np.allclose(taken, used["arcs"][cells], atol=1e-9)
    if automata.by_head:
        assert np.allclose(above, used["above"][cells], atol=1e-9)


class AtMostTwo:
    start = 0

    def step(self, state, m):
        return state + 1, 0.5 if state < 2 else -np.inf

    def stop(self, state):
        return 0.25 * state


def test_automata_of_ones_own_and_labels():
    rng = np.random.default_rng(2)
    problem = AutomataDependency(rng.normal(size=(5, 5)), lambda g, h, side: AtMostTwo())
    total, marginals = truth(problem)
    assert holds(problem.log_partition_bounds(), total)
    found = problem.marginal_estimates(samples=3000, seed=1)
    assert (np.abs(found.marginals["arcs"] - marginals) <= 5.0 * found.standard_error["arcs"] + 1e-3).all()
    labelled = certus.LabelledDependency(rng.normal(size=(4, 4, 2)), sibling=rng.normal(size=(4, 4, 4)))
    scores = [labelled.score(y) for y in labelled.all_structures()]
    assert holds(labelled.log_partition_bounds(), np.logaddexp.reduce(scores))
    estimates = labelled.marginal_estimates(samples=100, seed=1).marginals
    assert np.allclose(estimates["labels"].sum(axis=2), estimates["arcs"])


def test_rare_arcs_are_left_out_only_where_a_tree_is_left():
    tree = np.array([[0, 0, -9.0], [0, 0, 0], [0, -9.0, 0]])
    kept = average_scores.without_rare_arcs(tree, "multi", 0.01)
    assert np.isneginf(kept[0, 2])
    assert matrix_tree.log_partition(kept, "multi") > -np.inf
