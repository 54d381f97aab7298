"""Closed graphs of forests against listing all derivations: nothing above the bound is lost, whatever the witness."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import (
    ForestTranslation,
    Hyperpath,
    InvalidInput,
    Joint,
    LanguageModel,
    VerificationError,
    save_result,
    verify,
)
from certus.certificates.normal import Graph
from certus.certificates.standalone import NEVER, closed_forest
from certus.certificates.standalone import exact as standalone_exact
from certus.constraints import at_most
from tests.translation.cases import arpas, forests
from tests.translation.test_forest_problem import LM_WEIGHTS, scored, small, swapped

ANY = [0.0, 1.0, -3.0, 2.5, -7.0, 1e5, -1e300, 1e300]


def paths(graph: Graph) -> list[list[int]]:
    """The edges of every derivation of a graph, head before tails."""
    found: list[list[list[int]]] = []
    for v in range(len(graph.in_ptr) - 1):
        found.append([])
        for e in range(graph.in_ptr[v], graph.in_ptr[v + 1]):
            ways = [[e]]
            for u in graph.tail[graph.tail_ptr[e] : graph.tail_ptr[e + 1]]:
                assert u < v
                ways = [[*way, *below] for way in ways for below in found[u]]
            found[v] += ways
    return found[-1]


def listed(problem, scores, edges, graph: Graph) -> dict[tuple[int, ...], list[int]]:
    """Derivations of the forest in a graph, and their paths; ``edges`` are the parts of edges. Checks all scores."""
    number, out = {int(p): e for e, p in enumerate(edges) if p >= 0}, {}
    for way in paths(graph):
        parts = [int(p) for e in way for p in graph.part[graph.part_ptr[e] : graph.part_ptr[e + 1]]]
        y = tuple(number[p] for p in parts if p in number)
        assert y not in out
        assert sorted(float(scores[p]) for p in parts) == sorted(problem.terms(np.array(y)))
        out[y] = way
    return out


@st.composite
def bounds(draw, every):
    """A number below, at or above the score of a derivation."""
    score = draw(st.sampled_from([s for s, _ in every] or [0.0]))
    return draw(st.sampled_from([-math.inf, score - 1.0, score - 1e-9, score, score + 1e-9, score + 0.5, math.inf]))


@st.composite
def witnesses(draw, problem, above, penalties=None):
    """Multipliers that are good, none, or anything."""
    if draw(st.booleans()):
        return problem.make_witness(above, penalties)
    n = len(problem.translation_forest.words)
    row = st.tuples(st.integers(-2, n), st.integers(-2, n), st.sampled_from(ANY))
    order = problem.lm.order
    context = st.tuples(*[st.integers(-3, n)] * (order - 1), st.sampled_from(ANY))
    out = {"pairs": np.array(draw(st.lists(row, max_size=6)), dtype=np.float64).reshape(-1, 3)}
    if order > 3:
        out["contexts"] = np.array(draw(st.lists(context, max_size=6)), dtype=np.float64).reshape(-1, order)
    return out


@settings(max_examples=80)
@given(forests(limit=60), arpas(max_order=5), LM_WEIGHTS, st.data())
def test_nothing_above_the_bound_is_lost(forest, arpa, lm_weight, data):
    problem = ForestTranslation(forest, LanguageModel(arpa), lm_weight)
    every = scored(problem)
    above = data.draw(bounds(every))
    witness = data.draw(witnesses(problem, above))
    closed = problem.closed_form(above, witness)
    form = closed.form
    (graph,) = form.spaces
    kept = listed(problem, form.scores, form.cells["edges"], graph)
    exact = {y: sum(map(Fraction, problem.terms(np.array(y)))) for _, y in every}
    wanted = {y for y, score in exact.items() if score > above}
    assert wanted <= set(kept) <= set(exact)
    assert not kept or max(float(exact[y]) for y in kept) > above - 1e-6
    for _, y in every:
        assert closed.structure(np.array(y)) == kept.get(y)
    if np.isfinite(above):
        plain = {"pairs": witness["pairs"].tolist()}
        saved, prices = json.loads(json.dumps(problem.to_json())), [0] * forest.graph.n_edges
        scores, alone = closed_forest(saved, 1.0, prices, plain, standalone_exact(above))
        own = Graph(*(np.array(alone[name]) for name in Graph._fields))
        assert wanted <= set(listed(problem, scores, range(forest.graph.n_edges), own)) <= set(exact)


@settings(max_examples=40)
@given(forests(limit=60), arpas(max_order=4), LM_WEIGHTS, st.data())
def test_nothing_above_the_bound_is_lost_under_penalties(forest, arpa, lm_weight, data):
    problem, n_edges = ForestTranslation(forest, LanguageModel(arpa), lm_weight), forest.graph.n_edges
    penalty = st.sampled_from([0.0, 1.0, -2.5, -math.inf, 1e-17])
    penalties = {"edges": np.array(data.draw(st.lists(penalty, min_size=n_edges, max_size=n_edges)))}
    every = [(s + float(penalties["edges"][list(y)].sum()), y) for s, y in scored(problem)]
    above = data.draw(bounds([pair for pair in every if pair[0] > -math.inf]))
    witness = data.draw(witnesses(problem, above, penalties))
    form = problem.closed_form(above, witness, penalties).form
    kept = listed(problem, form.scores, form.cells["edges"], form.spaces[0])
    assert {y for score, y in every if score > above + 1e-9} <= set(kept)
    if np.isfinite(above):  # and where all scores count twice, in the standalone checker
        saved, plain = json.loads(json.dumps(problem.to_json())), {"pairs": witness["pairs"].tolist()}
        prices = [NEVER if x == -math.inf else 2 * standalone_exact(x) for x in penalties["edges"].tolist()]
        scores, alone = closed_forest(saved, 2.0, prices, plain, 2 * standalone_exact(above))
        own = Graph(*(np.array(alone[name]) for name in Graph._fields))
        kept = listed(problem, [x / 2 for x in scores], range(n_edges), own)
        assert {y for score, y in every if score > above + 1e-9} <= set(kept)


@pytest.mark.parametrize(
    "witness",
    [
        None,
        [],
        {},
        {"bound": np.zeros(1)},
        {"pairs": np.zeros(3)},
        {"pairs": np.zeros((2, 2))},
        {"pairs": np.array([[0.0, 1.0, math.nan]])},
        {"pairs": np.array([[0.0, 1.0, math.inf]])},
        {"pairs": np.array([["a", "b", "c"]])},
    ],
)
def test_what_is_no_witness_is_refused(witness):
    with pytest.raises(InvalidInput, match="pairs"):
        small().closed_form(0.0, witness)


def test_saved_results_are_verified_without_numba(tmp_path):
    problem = small()
    best = problem.decode().structure
    fewer = problem.subject_to(at_most(len(best) - 1, "edges", [(int(e),) for e in best]))
    both = Joint(problem, Hyperpath(problem.translation_forest.graph, problem.translation_forest.weights), on="edges")
    paths = [str(tmp_path / f"{k}.json") for k in range(3)]
    for path, one, rank in zip(paths, (problem, fewer, both), (2, 2, 1), strict=True):
        save_result(path, one, one.kbest(rank)[-1])
    code = (
        "import sys; sys.modules['numba'] = None; import certus\n"
        "for path in sys.argv[1:]: certus.verify(*certus.load_result(path))"
    )
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("method", ["search", "beam", "cube", "paths", "partitions", "ilp", "intersection"])
def test_results_of_every_method_are_verified(method):
    problem = swapped(np.random.default_rng(3))
    verify(problem, problem.decode(method=method))


@settings(max_examples=25)
@given(forests(limit=60), arpas(), LM_WEIGHTS, st.integers(1, 6))
def test_ranks_are_verified_and_skipped_ones_refused(forest, arpa, lm_weight, k):
    problem = ForestTranslation(forest, LanguageModel(arpa), lm_weight)
    if not scored(problem):
        return
    found = problem.kbest(k)
    verify(problem, found[-1])
    if len(found) > 1 and found[-2].score > found[-1].score + 1e-6:
        own = found[-1].certificate
        skipped = replace(own, better=own.better[:-1], rank=own.rank - 1)
        with pytest.raises(VerificationError):
            verify(problem, replace(found[-1], certificate=skipped))


def test_constrained_forests_are_verified():
    problem = swapped(np.random.default_rng(4))
    best = problem.decode()
    other = problem.subject_to(at_most(len(best.structure) - 2, "edges", [(int(e),) for e in best.structure]))
    result = other.decode()
    assert result.structure.tolist() != best.structure.tolist()
    verify(other, result)
