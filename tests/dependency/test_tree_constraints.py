"""Constraints on trees equal enumeration: by masking, and by relaxation where they tie several arcs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Dependency, Infeasible, InvalidInput
from certus.dependency import tree_constraints as trees
from tests.dependency.cases import draw_problem

seeds = st.integers(0, 2**32 - 1)
models = st.sampled_from(["first order", "siblings", "grandparents and siblings"])
roots = st.sampled_from(["single", "multi"])


def check(problem, constraints, holds):
    """Decode under the constraints; ``holds`` says of a tree, in other words, whether it satisfies them."""
    best = max((problem.score(y) for y in problem.all_structures() if holds(y.tolist())), default=-np.inf)
    restricted = problem.subject_to(*constraints)
    if best == -np.inf:
        with pytest.raises(Infeasible):
            restricted.decode()
        return
    result = restricted.decode()
    assert result.score == best
    assert holds(result.structure.tolist())
    assert result.certificate.exact
    certus.verify(restricted, result)


@settings(max_examples=40)
@given(seeds, models, st.integers(2, 4), roots, st.booleans())
def test_required_and_forbidden_arcs(seed, model, n, root, projective):
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, model, n, root, projective=projective)
    m = int(rng.integers(1, n + 1))
    h = int(rng.choice([v for v in range(n + 1) if v != m]))
    a = int(rng.integers(1, n + 1))
    b = int(rng.choice([v for v in range(n + 1) if v != a]))
    constraints = [trees.require_arc(h, m), trees.forbid_arc(b, a)]
    assert isinstance(problem.subject_to(*constraints), Dependency)  # by masking alone
    check(problem, constraints, lambda y: y[m] == h and y[a] != b)


@settings(max_examples=30)
@given(seeds, models, st.integers(1, 4), roots, st.booleans(), st.integers(0, 2))
def test_at_most_k_modifiers(seed, model, n, root, projective, k):
    problem = draw_problem(np.random.default_rng(seed), model, n, root, projective=projective)
    constraints = trees.at_most_modifiers(problem, k)
    check(problem, constraints, lambda y: all(y.count(h) <= k for h in range(1, n + 1)))


@settings(max_examples=30)
@given(seeds, models, st.integers(1, 4), roots, st.booleans())
def test_a_span_that_forms_a_subtree(seed, model, n, root, projective):
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, model, n, root, projective=projective)
    first, last = sorted(int(v) for v in rng.integers(1, n + 1, size=2))
    span = set(range(first, last + 1))

    def holds(y):
        entering = sum(y[m] not in span for m in span)
        return entering == 1 and not any(y[m] in span for m in range(1, n + 1) if m not in span)

    check(problem, trees.subtree(problem, first, last), holds)


def test_fixed_heads_complete_a_partial_tree():
    problem = draw_problem(np.random.default_rng(1), "siblings", 4, "multi", projective=False)
    check(problem, trees.fixed_heads([-1, 2, -1, -1, 3]), lambda y: y[1] == 2 and y[4] == 3)


def test_what_is_asked_is_checked():
    problem = Dependency(np.zeros((4, 4)))
    with pytest.raises(InvalidInput, match="span"):
        trees.subtree(problem, 2, 4)
    with pytest.raises(InvalidInput, match="head"):
        trees.at_most_modifiers(problem, 1, heads=[7])
    with pytest.raises(InvalidInput, match="heads"):
        trees.fixed_heads([0.5, 1.0])
