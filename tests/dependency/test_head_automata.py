"""Head automata: every choice of every head enumerated; dense, listed and user-given automata agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Dependency, Infeasible, InvalidInput
from certus.dependency.automata_problem import AutomataDependency
from certus.dependency.head_automata import HeadAutomata, PartAutomaton
from tests.dependency.cases import draw_problem
from tests.oracles.references import best_choices_value

MODELS = ("siblings", "carreras", "model 0", "model 1", "model 2", "trisiblings", "ends of sides", "everything")
MODELS += ("grand-tri-siblings", "grand-tri-siblings, outermost")


def whole_penalties(rng, automata):
    """Whole numbers, some -inf, for every view."""
    out = {}
    for view, shape in automata.views.items():
        values = rng.integers(-5, 6, size=shape).astype(np.float64)
        values[rng.random(shape) < 0.1] = -np.inf
        out[view] = values
    return out


def penalised(automata, structure, penalties):
    """Score of a choice with the penalties of the parts it uses."""
    total = automata.score(structure)
    for view, penalty in penalties.items():
        total += penalty[automata.indicator(structure, view) > 0].sum()
    return total


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODELS), st.integers(0, 2), st.sampled_from(["single", "multi"]))
def test_solve_and_max_marginals_equal_enumeration(seed, model, n, root):
    rng = np.random.default_rng(seed)
    automata = HeadAutomata.of(draw_problem(rng, model, n, root, projective=False))
    penalties = whole_penalties(rng, automata)
    values = [(penalised(automata, z, penalties), z) for z in automata.all_structures()]
    best = max((v for v, _ in values), default=-np.inf)
    assert best_choices_value(automata, penalties) == best
    if best == -np.inf:
        with pytest.raises(Infeasible):
            automata.solve(penalties)
        return
    solution = automata.solve(penalties)
    assert solution.value == best == penalised(automata, solution.structure, penalties)
    for view, found in automata.max_marginals(penalties).items():
        expected = np.full(automata.arc.shape, -np.inf)
        for value, z in values:
            expected = np.maximum(expected, np.where(automata.indicator(z, view) > 0, value, -np.inf))
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODELS), st.integers(3, 6), st.sampled_from(["single", "multi"]))
def test_kernel_equals_the_plain_reference_beyond_enumeration(seed, model, n, root):
    rng = np.random.default_rng(seed)
    automata = HeadAutomata.of(draw_problem(rng, model, n, root, projective=False))
    penalties = whole_penalties(rng, automata)
    expected = best_choices_value(automata, penalties)
    if expected == -np.inf:
        with pytest.raises(Infeasible):
            automata.solve(penalties)
    else:
        assert automata.solve(penalties).value == expected


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(("siblings", "model 1", "model 2", MODELS[-1])), st.integers(0, 4))
def test_listed_parts_give_the_same_lattices_as_dense_ones(seed, model, n):
    dense = draw_problem(np.random.default_rng(seed), model, n, projective=False)
    listed = draw_problem(np.random.default_rng(seed), model, n, projective=False, listed=True)
    assert listed.listed or not listed.scores
    for a, b in zip(HeadAutomata.of(dense).lattices, HeadAutomata.of(listed).lattices, strict=True):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODELS), st.integers(0, 4), st.sampled_from(["single", "multi"]))
def test_automata_given_by_the_user_decode_like_part_scores(seed, model, n, root):
    problem = draw_problem(np.random.default_rng(seed), model, n, root, projective=False)
    given_by_hand = AutomataDependency(
        problem.arc,
        lambda g, h, side: PartAutomaton(problem, g, h, side),
        by_head=HeadAutomata.of(problem).by_head,
        root=root,
    )
    try:
        expected = problem.decode().score
    except Infeasible:
        with pytest.raises(Infeasible):
            given_by_hand.decode()
        return
    result = given_by_hand.decode()
    assert result.score == expected == problem.score(result.structure)
    assert result.certificate.exact


class Parity:
    """Scores heads by whether they have an even number of modifiers on a side: no part of a bounded order does that."""

    start = 0

    def step(self, state, m):
        return 1 - state, 0.0

    def stop(self, state):
        return 3.0 if state == 0 else 0.0


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("seed", range(8))
def test_an_automaton_with_unbounded_memory_equals_enumeration(seed, root):
    rng = np.random.default_rng(seed)
    arc = rng.integers(-8, 9, size=(5, 5)).astype(np.float64)
    problem = AutomataDependency(arc, lambda g, h, side: Parity(), root=root)
    result = problem.decode()
    assert result.score == max(problem.score(y) for y in problem.all_structures())
    assert result.certificate.exact


def test_with_fixed_and_solve_of_given_automata():
    arc = np.zeros((4, 4))
    problem = AutomataDependency(arc, lambda g, h, side: Parity())
    assert problem.with_fixed("arcs", (3, 1), 1).decode().structure[1] == 3
    assert problem.with_fixed("arcs", (0, 1), 0).decode().structure[1] != 0
    solution = problem.solve({"arcs": np.where(np.indices((4, 4))[0] == 2, 50.0, 0.0)})
    assert solution.structure.tolist() == [-1, 2, 0, 2]
    assert max(map(problem.score, problem.all_structures())) == problem.decode().score


def test_a_weight_that_is_not_a_number_is_named():
    class Broken(Parity):
        def stop(self, state):
            return float("nan")

    with pytest.raises(InvalidInput, match="nan"):
        AutomataDependency(np.zeros((2, 2)), lambda g, h, side: Broken()).decode()


def test_the_sequence_of_modifiers_of_the_worked_figure():
    # LR fig. 6-4: right modifiers of "saw" in "John saw a movie today that he liked": the path <d>, a, today, </d>.
    n, saw, a, today = 8, 2, 3, 5
    sibling = np.zeros((n + 1,) * 3)
    sibling[saw, saw, a] = sibling[saw, a, today] = 2.0
    arc = np.full((n + 1, n + 1), -1.0)
    automata = HeadAutomata.of(Dependency(arc, sibling=sibling, root="multi"))
    found = automata.solve()
    assert found.value == 2.0
    assert [tuple(cell) for cell in np.argwhere(found.structure.arcs)] == [(saw, a), (saw, today)]
