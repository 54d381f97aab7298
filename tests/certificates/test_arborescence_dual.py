"""Laminar duals of spanning trees against all trees, one by one; bounds hold whatever numbers they are made of."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certus.certificates.arborescence_dual import LaminarDual, dual_bound, laminar_dual
from tests.oracles.trees import all_trees
from tests.strategies import arc_scores


def best_with(arc, root):
    """The best score of any tree, and of a tree with each arc."""
    trees, words = np.array(all_trees(len(arc) - 1, root))[:, 1:], np.arange(1, len(arc))
    scores, through = arc[trees, words].sum(axis=1), np.full(arc.shape, -np.inf)
    np.maximum.at(through, (trees, words), scores[:, None])
    return scores.max(), through


@given(arc=arc_scores(), root=st.sampled_from(["single", "multi"]))
def test_the_dual_attains_the_best_tree_in_whole_numbers(arc, root):
    best, through = best_with(arc, root)
    dual = laminar_dual(arc, root == "single")
    assert all(np.array_equal(x, np.round(x)) for x in (dual.alpha, dual.beta, dual.gamma))
    assert (dual.beta >= 0).all()
    assert dual.gamma >= 0
    for a in map(set, dual.sets):
        assert all(a <= b or b <= a or not a & b for b in map(set, dual.sets))
    bound, slack = dual_bound(arc, root == "single", dual)
    assert bound == best
    assert (slack >= 0).all()
    assert (through <= bound - slack).all()
    if best > -np.inf:
        assert dual.alpha.sum() - dual.beta.sum() + dual.gamma == best


@st.composite
def any_numbers(draw, n):
    whole = st.integers(-9, 9)
    sets = draw(st.lists(st.sets(st.integers(1, n), min_size=1), max_size=3)) if n else []
    alpha = np.array([0, *(draw(whole) for _ in range(n))], dtype=np.float64)
    beta = np.array([draw(whole) for _ in sets], dtype=np.float64)
    return LaminarDual(alpha, [np.array(sorted(s), dtype=np.int64) for s in sets], beta, float(draw(whole)))


@given(data=st.data(), arc=arc_scores(max_words=4), root=st.sampled_from(["single", "multi"]))
def test_any_numbers_give_a_bound(data, arc, root):
    best, through = best_with(arc, root)
    bound, slack = dual_bound(arc, root == "single", data.draw(any_numbers(len(arc) - 1)))
    assert bound >= best
    assert (bound > -np.inf) == (best > -np.inf)
    assert (slack >= 0).all()
    assert (through <= bound - slack).all()


@pytest.mark.parametrize("single", [True, False])
def test_real_weights_and_masks_up_to_rounding(single):
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(5, 5))
    weight[rng.random(weight.shape) < 0.2] = -1e6
    best, _ = best_with(weight, "single" if single else "multi")
    bound, _ = dual_bound(weight, single, laminar_dual(weight, single))
    assert bound == pytest.approx(best, abs=1e-9)


@given(arc=arc_scores(max_words=3), single=st.booleans(), scale=st.sampled_from([1.0, 0.1, 2.0**50]))
def test_bounds_hold_in_exact_arithmetic_for_any_numbers(arc, single, scale):
    """Sums of masks and of numbers that are not whole are rounded, and never to the side of a false bound."""
    weight = np.where(arc == 8, -(2.0**53), arc) * scale + np.maximum(arc, 0.0) / 7
    bound, slack = dual_bound(weight, single, laminar_dual(weight, single))
    for heads in all_trees(len(arc) - 1, "single" if single else "multi"):
        arcs = [(h, m) for m, h in enumerate(heads) if m]
        if all(weight[a] > -np.inf for a in arcs):
            total = sum((Fraction(weight[a]) for a in arcs), Fraction(0))
            assert all(total <= Fraction(bound) - Fraction(slack[a]) for a in arcs)
            assert total <= bound
