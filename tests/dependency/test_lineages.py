"""Lineages: every choice of every word enumerated, trees as choices, and the normal form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Infeasible
from certus.dependency.lineages import Lineages
from certus.dependency.parts import DenseScores
from tests.dependency.cases import whole_scores
from tests.oracles import normal
from tests.oracles.references import best_lineages_value
from tests.oracles.trees import all_trees


def draw_lineages(rng, n):
    allowed = rng.random((n + 1, n + 1)) < 0.85
    allowed[:, 0] = False
    np.fill_diagonal(allowed, False)
    return Lineages(allowed, DenseScores(whole_scores(rng, (n + 1,) * 4, 0.1)))


def draw_penalties(rng, lineages):
    return {view: whole_scores(rng, shape, 0.1) for view, shape in lineages.views.items()}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2))
def test_solve_equals_enumeration(seed, n):
    rng = np.random.default_rng(seed)
    lineages = draw_lineages(rng, n)
    penalties = draw_penalties(rng, lineages)

    def value(structure):
        uses = ((penalty, lineages.indicator(structure, view)) for view, penalty in penalties.items())
        return lineages.score(structure) + sum((penalty[used > 0] * used[used > 0]).sum() for penalty, used in uses)

    values = [(value(structure), structure) for structure in lineages.all_structures()]
    best = max((found for found, _ in values), default=-np.inf)
    assert best_lineages_value(lineages, penalties) == best
    if best == -np.inf:
        with pytest.raises(Infeasible):
            lineages.solve(penalties)
        return
    solution = lineages.solve(penalties)
    assert solution.value == best == value(solution.structure)
    for view, marginal in lineages.max_marginals(penalties).items():
        expected = np.full(marginal.shape, -np.inf)
        for found, structure in values:
            expected = np.maximum(expected, np.where(lineages.indicator(structure, view) > 0, found, -np.inf))
        np.testing.assert_array_equal(marginal, expected)
    normal.check(lineages)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 6))
def test_solve_equals_the_plain_reference_beyond_enumeration(seed, n):
    rng = np.random.default_rng(seed)
    lineages = draw_lineages(rng, n)
    penalties = draw_penalties(rng, lineages)
    expected = best_lineages_value(lineages, penalties)
    if expected == -np.inf:
        with pytest.raises(Infeasible):
            lineages.solve(penalties)
    else:
        assert lineages.solve(penalties).value == expected


def test_a_tree_uses_its_arcs_in_every_view():
    n = 4
    allowed = ~np.eye(n + 1, dtype=bool)
    allowed[:, 0] = False
    score = np.arange((n + 1) ** 4).reshape((n + 1,) * 4)
    lineages = Lineages(allowed, DenseScores(score.astype(float)))
    for heads in all_trees(n, "multi"):
        structure = lineages.of_tree(np.array(heads))
        arcs = np.zeros((n + 1, n + 1))
        arcs[heads[1:], np.arange(1, n + 1)] = 1.0
        assert np.array_equal(lineages.indicator(structure, "above"), arcs)
        assert np.array_equal(lineages.indicator(structure, "arcs"), arcs)
        assert np.array_equal(lineages.indicator(structure, "below")[1:], arcs[1:])
        chains = [(heads[heads[heads[m]]], heads[heads[m]], heads[m], m) for m in range(1, n + 1) if heads[m]]
        assert lineages.score(structure) == sum(score[chain] for chain in chains if chain[0] >= 0 and chain[1])
