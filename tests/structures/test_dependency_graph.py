"""Graphs with several kinds of pairs: what is left out, how far rounding goes, and that no claim is false."""

import json
from fractions import Fraction
from itertools import pairwise
from math import inf, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import saved
from certus.errors import InvalidInput
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.system import Relaxation, Until
from tests.oracles import structures as oracle

HIGHER = ("sibling", "coparent", "grandparent")


def drawn(seed, n, scale, kinds=HIGHER, heads=None):
    """A problem with ordinary scores; with ``heads`` each word has so many candidates."""
    rng = np.random.default_rng(seed)
    arc = 2.0 * rng.normal(size=(n + 1, n + 1)) - 2.0
    if heads is not None:
        for m in range(1, n + 1):
            arc[rng.permutation(n + 1)[heads:], m] = -inf
    return certus.DependencyGraph(arc, **{name: scale * rng.normal(size=(n + 1,) * 3) for name in kinds})


def exact_best(problem):
    """The best score of all graphs, in exact arithmetic; arrays of a small problem."""
    totals = []
    for _, parts in oracle.dependency_graphs(**problem.arrays):
        if -inf not in parts:
            totals.append(sum(map(Fraction, parts)))
    return max(totals)


cells = st.sampled_from([0.0, 1.0, -1.0, 2.0, -3.0, 0.1, -0.7, 1e-9, 3.3e5, -inf, -3e38, -1e20])


@given(st.integers(0, 2), st.data())
@settings(max_examples=60, deadline=None)
def test_no_claim_is_false(n, data):
    size = n + 1
    shapes = {"arc": (size, size)} | dict.fromkeys(HIGHER, (size,) * 3)
    arrays = {
        name: np.array(data.draw(st.lists(cells, min_size=prod(shape), max_size=prod(shape)))).reshape(shape)
        for name, shape in shapes.items()
    }
    problem = certus.DependencyGraph(**arrays)
    result, best = problem.decode(), exact_best(problem)
    assert Fraction(result.certificate.bound) + Fraction(result.certificate.tolerance) >= best
    if result.certificate.exact:
        assert best - Fraction(result.score) <= Fraction(result.certificate.tolerance)
        certus.verify(problem, result)


@pytest.mark.parametrize("kinds", [("grandparent",), HIGHER])
@pytest.mark.parametrize("heads", [None, 2])
def test_three_words_are_those_of_enumeration(kinds, heads):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        arc = rng.integers(-3, 3, size=(4, 4)).astype(float)
        if heads is not None:
            for m in range(1, 4):
                arc[rng.permutation(4)[heads:], m] = -inf
        problem = certus.DependencyGraph(arc, **{k: rng.integers(-3, 4, size=(4,) * 3).astype(float) for k in kinds})
        result = problem.decode()
        assert result.certificate.exact
        assert result.score == exact_best(problem)
        certus.verify(problem, result)


def exact_dual(problem, relaxation, u):
    """The dual value in exact arithmetic, of problems of one word or two: a best value for each subproblem."""
    penalty = [Fraction(0)] * relaxation.n_cells
    entries = relaxation.matrix.tocoo()
    for row, cell, value in zip(entries.row, entries.col, entries.data, strict=True):
        penalty[cell] += Fraction(float(value)) * Fraction(float(u[row]))
    total = Fraction(0)
    for i, program in enumerate(relaxation.subproblems):
        (_, where, _), best = relaxation.slices[i][0], None
        for structure in program.all_structures():
            parts = program.terms(structure)
            if -inf in parts:
                continue
            used = np.flatnonzero(program.indicator(structure, relaxation.slices[i][0][0]))
            value = sum(map(Fraction, parts)) + sum(penalty[where.start + k] for k in used)
            best = value if best is None else max(best, value)
        total += best
    return total


@pytest.mark.parametrize("size", [1.0, 1e9])
def test_dual_values_are_as_close_as_their_error_says(size):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        pairs = {k: rng.normal(size=(3, 3, 3)) for k in HIGHER}
        problem = certus.DependencyGraph(rng.normal(size=(3, 3)), **pairs)
        relaxation = Relaxation.of(problem)
        u = size * rng.normal(size=relaxation.n_rows)
        subproblems = Subproblems(relaxation)
        value = Lagrangian(subproblems, subproblems.initial).ask(u).value
        error = relaxation.error(u, subproblems.initial)
        assert abs(Fraction(value) - exact_dual(problem, relaxation, u)) <= Fraction(error)
        assert error < 1e-12 * size


def test_ordinary_scores_of_grandparents_are_proved():
    for seed in range(3):
        problem = drawn(seed, 10, 0.2, ("grandparent",))
        result = problem.decode()
        assert result.certificate.exact, result
        certus.verify(problem, result)


def test_pairs_that_cannot_matter_are_left_out():
    arc = np.ones((4, 4))
    arc[1, 2] = -inf
    grandparent = np.zeros((4, 4, 4))
    grandparent[0, 1, 3], grandparent[0, 1, 2], grandparent[3, 3, 1] = 2.0, 5.0, 7.0  # the last is no pair of arcs
    problem = certus.DependencyGraph(arc, grandparent=grandparent)
    assert [p.shape for p in problem.relaxation().subproblems] == [(4, 4), (2, 1)]
    result = problem.decode()
    assert result.certificate.exact
    assert result.score == 8 + 2
    certus.verify(problem, result)


def test_pairs_survive_what_is_done_to_scores():
    problem = drawn(0, 4, 0.2, ("grandparent",))
    assert "pairs" not in problem.to_json()
    for other in (problem.with_scores_rounded_up(0.25), problem.without_scores_below(-1.0)):
        assert other.relaxation().n_rows == problem.relaxation().n_rows
        again = certus.DependencyGraph.from_json(json.loads(json.dumps(other.to_json())))
        assert again.relaxation().n_rows == problem.relaxation().n_rows
        assert again.decode().score == other.decode().score
    data = other.to_json()
    data["pairs"] = data["pairs"][:1]
    with pytest.raises(InvalidInput, match="pairs lists the cells of grandparent that matter"):
        certus.DependencyGraph.from_json(data)


def test_saved_results_are_accepted(tmp_path):
    problem = drawn(3, 8, 0.3)
    result = problem.decode()
    assert result.certificate.exact
    path = tmp_path / "graph.json"
    saved.save_result(path, problem, result)
    certus.verify(*saved.load_result(path))


def test_no_pairs_at_all():
    problem = certus.DependencyGraph(np.ones((3, 3)), grandparent=np.zeros((3, 3, 3)))
    result = problem.decode()
    assert result.certificate.exact
    assert result.score == 4.0
    certus.verify(problem, result)
    assert certus.DependencyGraph(np.zeros((1, 1)), grandparent=np.zeros((1, 1, 1))).decode().score == 0.0


def test_messages_never_raise_the_bound_and_keep_what_arcs_have():
    for seed, kinds, heads in ((0, HIGHER, None), (1, ("grandparent",), 3), (2, ("sibling", "coparent"), None)):
        problem = drawn(seed, 6, 0.5, kinds, heads)
        relaxation = Relaxation.of(problem)
        subproblems = Subproblems(relaxation)
        fixings = subproblems.initial
        u, bounds = np.zeros(relaxation.n_rows), list[float]()
        for rounds in (0, 1, 2, 8, 40):
            found = relaxation.lower(relaxation, u, fixings, -inf, Until(rounds))
            bounds.append(Lagrangian(subproblems, fixings).ask(found.multipliers).value)
            assert problem.score(found.structure) <= bounds[-1] + 1e-9
        assert all(b <= a + 1e-9 for a, b in pairwise(bounds))
        assert bounds[-1] < Lagrangian(subproblems, fixings).ask(u).value - 0.5


@pytest.mark.parametrize("kinds", [("grandparent",), ("coparent", "grandparent"), HIGHER])
def test_what_is_decided_is_decided_in_messages(kinds):
    problem = drawn(4, 3, 1.0, kinds)
    relaxation = Relaxation.of(problem)
    subproblems = Subproblems(relaxation)
    rng = np.random.default_rng(0)
    graphs = [y for y, _ in oracle.dependency_graphs(np.zeros((4, 4)))]
    for graph in rng.permutation(len(graphs))[:20]:
        fixings = subproblems.initial
        for cell in np.flatnonzero(relaxation.subproblems[0].arrays["arc"] > -inf):
            fixings = relaxation.fix(fixings, "arcs", int(cell), int(graphs[graph].reshape(-1)[cell]))
        found = relaxation.lower(relaxation, rng.normal(size=relaxation.n_rows), fixings, -inf, Until(1))
        assert (found.structure == graphs[graph]).all()
        value = Lagrangian(subproblems, fixings).ask(found.multipliers).value
        assert value == pytest.approx(problem.score(graphs[graph]))


def test_messages_end_when_time_is_over():
    problem = drawn(0, 6, 0.5, HIGHER)
    relaxation = Relaxation.of(problem)
    u, fixings = np.zeros(relaxation.n_rows), Subproblems(relaxation).initial

    def lowered(until):
        return relaxation.lower(relaxation, u, fixings, -inf, until).multipliers

    assert (lowered(Until(100, 0.0)) == lowered(Until(0))).all()
    assert (lowered(Until(100, 1e6)) == lowered(Until(100))).all()
    assert not (lowered(Until(100)) == lowered(Until(0))).all()


def test_branching_proves_what_the_relaxation_leaves_open():
    problem = drawn(2, 10, 0.3, ("grandparent",))
    result = problem.decode()
    assert result.info["nodes"] > 1
    assert result.certificate.exact
    certus.verify(problem, result)


def test_constraints_on_graphs_are_lowered_too():
    problem = drawn(0, 7, 0.2)
    best = problem.decode()
    used = [tuple(map(int, cell)) for cell in np.argwhere(best.structure)]
    held = problem.subject_to(certus.constraints.at_most(len(used) - 2, "arcs", used))
    result = held.decode()
    assert result.certificate.exact
    assert result.score < best.score
    certus.verify(held, result)
