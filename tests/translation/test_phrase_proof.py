"""Closed forms of phrase-based translations hold every translation above a bound, whatever the witness says."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import InvalidInput, PhraseOption, PhraseTranslation
from certus.certificates.normal import Graph, NormalForm
from certus.certificates.standalone import NEVER, closed_phrases, exact
from tests.translation.phrase_cases import phrase_problems
from tests.translation.test_phrase_problem import model, words


def derivations(graph: Graph) -> list[list[int]]:
    """The parts of every path."""
    found: list[list[list[int]]] = []
    for v in range(len(graph.in_ptr) - 1):
        found.append([])
        for e in range(graph.in_ptr[v], graph.in_ptr[v + 1]):
            own = list(graph.part[graph.part_ptr[e] : graph.part_ptr[e + 1]])
            tails = graph.tail[graph.tail_ptr[e] : graph.tail_ptr[e + 1]]
            assert len(tails) <= 1
            assert all(u < v for u in tails)
            found[v] += [[*parts, *own] for parts in (found[tails[0]] if len(tails) else [[]])]
    return found[-1]


def listed(problem: PhraseTranslation, scores, graph: Graph) -> dict[tuple[int, ...], list[float]]:
    """Translations of a graph, with the scores of their parts, falling."""
    out = {}
    for parts in derivations(graph):
        structure = tuple(int(p) for p in parts if p < len(problem.options))
        assert structure not in out
        out[structure] = sorted(float(scores[p]) for p in parts)
    return out


def exact_scores(problem: PhraseTranslation, penalty=None) -> dict[tuple[int, ...], Fraction]:
    """Of every translation that is not forbidden, as the sum of its terms without rounding."""
    out = {}
    for structure in problem.all_structures():
        terms = problem.terms(structure) + ([] if penalty is None else [float(penalty[k]) for k in structure])
        if -np.inf not in terms:
            out[structure] = sum(map(Fraction, terms))
    return out


@st.composite
def bounds(draw, scores):
    """A number below, at or above the best scores."""
    best = sorted(map(float, scores.values()), reverse=True)[:3]
    return draw(st.sampled_from([-np.inf, -40.0, 0.0, *best, *(x - 0.5 for x in best), 1e9, np.inf]))


def witnesses(n: int):
    tracked = st.sets(st.integers(0, n - 1)) if n else st.just(set())
    prices = st.lists(st.one_of(st.integers(-6, 6), st.floats(-1e12, 1e12)), min_size=n, max_size=n)
    made = st.tuples(tracked, prices)
    return made.map(lambda x: {"tracked": np.array(sorted(x[0]), dtype=np.int64), "multipliers": np.array(x[1])})


@given(phrase_problems(), st.data())
@settings(max_examples=60)
def test_any_witness_leaves_every_translation_above_the_bound(problem, data):
    penalty = data.draw(
        st.none() | st.lists(st.sampled_from([0.0, 0.0, 1.5, -2.0, -np.inf]), min_size=len(problem.options))
    )
    penalty = None if penalty is None else np.array(penalty[: len(problem.options)])
    scores = exact_scores(problem, penalty)
    above = data.draw(bounds(scores))
    witness = data.draw(witnesses(problem.n))
    closed = problem.closed_form(above, witness, None if penalty is None else {"options": penalty})
    form = closed.form
    found = listed(problem, form.scores, form.spaces[0])
    assert {y for y, score in scores.items() if score > above} <= set(found) <= set(exact_scores(problem))
    for structure, terms in found.items():
        assert terms == sorted(problem.terms(structure))
        edges = closed.structure(structure)
        assert derivation_of(form, edges) == structure
    if not any(score > above - 1e-6 for score in scores.values()):
        assert not found
    if np.isfinite(above):  # and where all scores count twice, in the standalone checker
        added = [0.0] * len(problem.options) if penalty is None else penalty.tolist()
        prices = [NEVER if x == -np.inf else 2 * exact(x) for x in added]
        plain = {name: array.tolist() for name, array in witness.items()}
        graph = closed_phrases(problem.to_json(), 2.0, prices, plain, 2 * exact(above))[1]
        kept = listed(problem, [0.0] * (max(graph["part"], default=0) + 1), Graph(**graph_arrays(graph)))
        assert {y for y, score in scores.items() if score > above + 1e-9} <= set(kept)


def graph_arrays(graph):
    return {name: value for name, value in graph.items() if name != "kind"}


def derivation_of(form: NormalForm, edges: list[int]) -> tuple[int, ...]:
    """The options of a path given by its edges, the last first."""
    graph, chosen = form.spaces[0], []
    for e in reversed(edges):
        chosen += graph.part[graph.part_ptr[e] : graph.part_ptr[e + 1]].tolist()
    return tuple(p for p in chosen if p < len(form.cells["options"]))


@given(phrase_problems(max_words=3), st.data())
@settings(max_examples=25)
def test_made_witnesses_prove_what_is_true_and_the_standalone_check_agrees(problem, data):
    scores = exact_scores(problem)
    above = data.draw(bounds(scores))
    witness = problem.make_witness(above)
    form = problem.closed_form(above, witness).form
    again = PhraseTranslation.from_json(problem.to_json())
    if not np.isinf(above):
        plain = {name: array.tolist() for name, array in data.draw(witnesses(problem.n)).items()}
        parts, graph = closed_phrases(problem.to_json(), 1.0, [0] * len(problem.options), plain, exact(above))
        kept = listed(problem, parts, Graph(**graph_arrays(graph)))
        assert {y for y, score in scores.items() if score > above + 1e-9} <= set(kept) <= set(scores)
    assert {y for y, score in scores.items() if score > above} <= set(listed(problem, form.scores, form.spaces[0]))
    form = again.closed_form(above, witness).form  # its model is cut down, and has other states
    assert {y for y, s in scores.items() if s > above + 1e-9} <= set(listed(again, form.scores, form.spaces[0]))


HOSTILE = [
    None,
    [],
    {},
    {"tracked": [], "multipliers": [0.0, 0.0]},
    {"tracked": [], "multipliers": [0.0, 0.0, np.nan, 0.0]},
    {"tracked": [], "multipliers": [0.0, 0.0, np.inf, 0.0]},
    {"tracked": [], "multipliers": [[0.0] * 4]},
    {"tracked": [], "multipliers": "abcd"},
    {"tracked": [0, 0], "multipliers": [0.0] * 4},
    {"tracked": [2, 1], "multipliers": [0.0] * 4},
    {"tracked": [-1], "multipliers": [0.0] * 4},
    {"tracked": [4], "multipliers": [0.0] * 4},
    {"tracked": [0.5], "multipliers": [0.0] * 4},
    {"tracked": [[0]], "multipliers": [0.0] * 4},
    {"tracked": [0], "multipliers": [0.0] * 4, "states": []},
]


@pytest.mark.parametrize("witness", HOSTILE, ids=range(len(HOSTILE)))
def test_witnesses_that_do_not_fit_are_refused(witness):
    problem = words(4)
    result = problem.decode()
    with pytest.raises(InvalidInput):
        problem.closed_form(result.score, witness)
    if witness is not None:
        with pytest.raises(certus.VerificationError, match="does not fit"):
            certus.verify(problem, replace(result, certificate=replace(result.certificate, witness=witness)))


def test_a_bound_below_the_best_is_refused_whatever_the_witness():
    problem = words(5, distortion_limit=None)
    result = problem.decode()
    for tracked in ([], [1, 3], [0, 1, 2, 3, 4]):
        witness = {"tracked": np.array(tracked, dtype=np.int64), "multipliers": np.array([1.0, -2.0, 0.5, 0.0, 9.0])}
        c = replace(result.certificate, witness=witness)
        certus.verify(problem, replace(result, certificate=c))
        worse = problem.kbest(2)[1]
        claim = replace(c, score=worse.score, bound=worse.score)
        with pytest.raises(certus.VerificationError, match="bound"):
            certus.verify(problem, certus.Result(worse.structure, worse.score, claim))


def test_the_kth_best_is_proved_by_naming_the_others():
    problem = words(5, distortion_limit=2)
    for result in problem.kbest(6):
        certus.verify(problem, result)


@pytest.mark.parametrize("n", [0, 1, 2, 70])
def test_short_and_long_sentences(n):
    problem = words(n, distortion_limit=2)
    result = problem.decode()
    certus.verify(problem, result)
    form = problem.closed_form(result.score - 1e-3, problem.make_witness(result.score - 1e-3)).form
    assert result.structure in listed(problem, form.scores, form.spaces[0])


def test_masks_do_not_spoil_the_steps():
    options = [PhraseOption(0, 0, ("a",), 1.0), PhraseOption(1, 1, ("b",), 0.25), PhraseOption(1, 1, ("c",), -1e250)]
    problem = PhraseTranslation(options, model("-0.1 a b"), source=["x", "y"])
    result = problem.decode()
    certus.verify(problem, result)
    everything = problem.closed_form(-np.inf, problem.make_witness(-np.inf)).form
    assert set(listed(problem, everything.scores, everything.spaces[0])) == set(problem.all_structures())


def test_multipliers_are_made_where_coverages_are_too_many():
    rng = np.random.default_rng(1)
    options = [PhraseOption(k // 2, k // 2, (str(rng.choice(list("abc"))),), float(rng.normal())) for k in range(24)]
    lm = model("-0.1 a b", "-0.2 b c", "-0.1 c a")
    problem = PhraseTranslation(options, lm, source=["w"] * 12, distortion=0.4, distortion_limit=None)
    result = problem.decode()
    witness = problem.make_witness(result.certificate.bound + result.certificate.tolerance)
    assert len(witness["tracked"]) < 12
    certus.verify(problem, replace(result, certificate=replace(result.certificate, witness=witness)))
