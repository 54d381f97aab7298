"""Translation of forests with a language model: every method against listing all derivations; k-best; questions."""

import dataclasses
import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import (
    ForestTranslation,
    Infeasible,
    InvalidInput,
    LanguageModel,
    NotSupported,
    TranslationForest,
    VerificationError,
    kernels,
    verify,
)
from certus.io.arpa import parse_arpa
from certus.relax.run import Run
from certus.relax.steps import constant, deflected, per_increase
from certus.translation import bigram_relaxation, leaf_graph, leaf_program, scored_forest
from certus.translation.bigram_relaxation import BEAM, WIDEST, BoundedSearch
from certus.translation.cube_pruning import cube_pruning
from certus.translation.leaf_program import solve_lp
from tests.data import shared_data
from tests.oracles import closed
from tests.oracles.questions import answer
from tests.translation.cases import arpas, forests

CLOSE = 1e-9
LM_WEIGHTS = st.sampled_from([1.0, 0.5, 0.0, -1.0])

# Two orders of the same words; bigrams prefer the second edge of the root.
FOREST = """3 5
2
dog ||| w=1
cat ||| w=1
1
barks ||| w=1
2
[0] [1] ||| w=2
[1] the [0] ||| w=1
"""
LM = """\\data\\
ngram 1=6
ngram 2=3
ngram 3=1

\\1-grams:
-2 <unk>
0 <s> -1
-1 </s>
-1 dog -0.5
-1 barks -0.5
-1 the

\\2-grams:
-0.1 <s> barks -0.2
-0.1 barks the
-0.5 the dog

\\3-grams:
-0.05 barks the dog

\\end\\
"""


def small() -> ForestTranslation:
    forest = TranslationForest.from_text(FOREST).weighted({"w": 1.0})
    return ForestTranslation(forest, LanguageModel(parse_arpa(LM)), 2.0)


def scored(problem):
    """Every derivation that is not forbidden, with its score, best first."""
    pairs = [(problem.score(y), tuple(y.tolist())) for y in problem.all_structures()]
    return sorted((pair for pair in pairs if pair[0] > -math.inf), key=lambda pair: -pair[0])


@settings(max_examples=60)
@given(forests(), arpas(max_order=6), LM_WEIGHTS)
def test_decoding_finds_the_best_derivation_and_proves_it(forest, arpa, lm_weight):
    problem = ForestTranslation(forest, LanguageModel(arpa), lm_weight)
    every = scored(problem)
    if not every:
        for method in ("search", "beam", "intersection"):
            with pytest.raises(Infeasible):
                problem.decode(method=method)
        assert not closed.left(problem, -1e6)[1]
        return
    left = closed.left(problem, every[0][0] - 1.0)[1]
    assert max(left.values()) == pytest.approx(every[0][0], abs=CLOSE)
    for method in ("search", "beam", "intersection", "cube"):
        result = problem.decode(method=method)
        assert result.score == problem.score(result.structure)
        assert tuple(result.structure.tolist()) in {y: s for s, y in every}
        assert result.certificate.bound >= every[0][0] - CLOSE
        if method != "cube":
            assert result.certificate.exact or not any(problem.terms(result.structure))
            assert result.score == pytest.approx(every[0][0], abs=CLOSE)


@settings(max_examples=40)
@given(forests(limit=60), arpas(max_order=5), st.sampled_from([1.0, -1.0]), st.data())
def test_copies_of_words_and_steps_on_parts_change_no_result(forest, arpa, lm_weight, data):
    """Words of other spans are other copies here, and what is left of any forest is large."""
    places = data.draw(st.lists(st.integers(0, 4), min_size=forest.graph.n_vertices, max_size=forest.graph.n_vertices))
    forest.spans = np.array([(i, i + 2) for i in places], dtype=np.int32)
    problem = ForestTranslation(forest, LanguageModel(arpa), lm_weight)
    every = scored(problem)
    if not every:
        return
    with (
        patch.object(scored_forest, "BLOCK", 1),
        patch.object(bigram_relaxation, "LARGE", data.draw(st.integers(-1, 9))),
    ):
        result = problem.decode()
        assert result.score == pytest.approx(every[0][0], abs=CLOSE)
        if result.certificate.exact:
            verify(problem, result)
        assert [r.score for r in problem.kbest(3)] == pytest.approx([s for s, _ in every[:3]], abs=CLOSE)
        left = closed.left(problem, every[0][0] - 1.0)[1]
        assert max(left.values()) == pytest.approx(every[0][0], abs=CLOSE)


@settings(max_examples=40)
@given(forests(limit=60), arpas(max_order=5), LM_WEIGHTS, st.integers(1, 12))
def test_k_best_lists_are_complete_and_distinct(forest, arpa, lm_weight, k):
    problem = ForestTranslation(forest, LanguageModel(arpa), lm_weight)
    every = scored(problem)
    if not every:
        return
    found = problem.kbest(k)
    assert [r.score for r in found] == pytest.approx([s for s, _ in every[:k]], abs=CLOSE)
    assert len({tuple(r.structure.tolist()) for r in found}) == len(found) == min(k, len(every))
    assert [r.certificate.rank for r in found] == list(range(1, len(found) + 1))
    assert all(r.certificate.exact or not any(problem.terms(r.structure)) for r in found)


def test_k_best_lists_of_all_derivations_leave_out_what_cannot_be_completed():
    problem = small()
    assert [r.score for r in problem.kbest(99)] == pytest.approx([s for s, _ in scored(problem)], abs=CLOSE)


@settings(max_examples=25)
@given(forests(limit=40), arpas(max_order=3), st.data())
def test_penalties_and_forbidden_edges(forest, arpa, data):
    problem = ForestTranslation(forest, LanguageModel(arpa), 1.0)
    n_edges = forest.graph.n_edges
    penalty = np.array(data.draw(st.lists(st.integers(-4, 4), min_size=n_edges, max_size=n_edges)), dtype=float)
    gone = data.draw(st.integers(0, n_edges - 1))
    problem = problem.with_fixed("edges", (gone,), 0)
    every = [(s + sum(penalty[e] for e in y), y) for s, y in scored(problem)]
    assert all(gone not in y for _, y in every)
    solution = answer(every, problem.solve, {"edges": penalty})
    if solution is None:
        return
    assert solution.value == pytest.approx(max(every)[0], abs=CLOSE)
    left = closed.left(problem, max(every)[0] - 2.0, {"edges": penalty})[1]
    wanted = sorted(s for s, _ in every if s > max(every)[0] - 2.0 + CLOSE)
    assert sorted(left.values())[len(left) - len(wanted) :] == pytest.approx(wanted, abs=CLOSE)


@settings(max_examples=25)
@given(forests(max_vertices=4, limit=30), arpas(max_order=4), st.data())
def test_relaxations_on_leaves_bound_the_optimum_and_partitions_reach_it(forest, arpa, data):
    problem = ForestTranslation(forest, LanguageModel(arpa), 1.0)
    every = scored(problem)
    if not every:
        return
    best = every[0][0]
    for method in ("simple", "paths", "partitions"):
        try:
            result = problem.decode(method=method, max_iterations=400)
        except NotSupported:  # empty target sides; "simple" beyond bigrams
            assert method == "simple" or (np.diff(forest.token_ptr) == 0).any()
            continue
        assert (result.trace.dual >= best - CLOSE).all()
        assert result.certificate.bound >= best - CLOSE
        if method == "partitions" or result.certificate.exact:
            assert result.score == pytest.approx(best, abs=CLOSE)


@settings(max_examples=20)
@given(forests(max_vertices=3, limit=20), arpas(max_order=3))
def test_programs_agree_with_the_relaxation_they_are_dual_to(forest, arpa):
    problem = ForestTranslation(forest, LanguageModel(arpa), 1.0)
    every = scored(problem)
    if not every or (np.diff(forest.token_ptr) == 0).any():
        return
    best = every[0][0]
    assert problem.decode(method="ilp").score == pytest.approx(best, abs=1e-5)
    value = solve_lp(problem).value
    paths = problem.decode(method="paths", max_iterations=400).certificate.bound
    assert best - 1e-5 <= value <= paths + 1e-5


def test_the_relaxation_alone_is_not_always_enough_but_partitions_are():
    # "a" can follow two words; each copy of it may choose the other's history, and the numbers still agree.
    rng = np.random.default_rng(0)
    needed = 0
    for _ in range(4):
        problem = swapped(rng)
        best = scored(problem)[0][0]
        alone = problem.decode(method="paths")
        tightened = problem.decode(method="partitions", max_iterations=400)
        assert alone.certificate.bound >= best - CLOSE
        assert tightened.certificate.exact
        assert tightened.score == pytest.approx(best, abs=CLOSE)
        needed += tightened.info["partitions"] > 1
    assert needed > 0


@pytest.mark.compiled
def test_relaxations_on_leaves_agree_with_search_beyond_small_forests():
    problem = chart(8)
    best = problem.decode()
    assert best.certificate.exact
    value = solve_lp(problem)
    for method in ("paths", "partitions", "ilp"):
        result = problem.decode(method=method, max_iterations=400)
        assert result.score == pytest.approx(best.score, abs=1e-6)
        assert result.certificate.bound >= best.score - CLOSE
        if method == "paths":
            assert result.info["leaves"] > 157
            assert result.certificate.bound >= value.value - 1e-5
            alone = result.certificate.exact
        if method == "partitions":
            assert result.certificate.exact
            assert 1 <= result.info["partitions"] <= 12
            assert not alone or result.info["partitions"] == 1
            verify(problem, result)
    assert value.value >= best.score - 1e-5


def test_relaxations_on_leaves_refuse_what_takes_too_much_memory(monkeypatch):
    problem = chart(4)
    monkeypatch.setattr(leaf_program, "MOST_VARIABLES", 100)
    with pytest.raises(NotSupported, match="more than 100 variables"):
        problem.decode(method="ilp")
    monkeypatch.setattr(leaf_graph, "MOST_LINKS", 100)
    with pytest.raises(NotSupported, match="more than 100 links of chains of 3"):
        problem.decode(method="partitions")


def chart(n: int) -> ForestTranslation:
    """All binary trees over n words, in order and swapped, with words of their own, under a random trigram model."""
    rng, words = np.random.default_rng(n), list("abcdef")
    builder, number = [], {}
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            number[i, i + length] = len(number)
            rules = [f"{rng.choice(words)} {rng.choice(words)} ||| w={rng.integers(-9, 0)}" for _ in range(3)]
            for k in range(i + 1, i + length):
                a, b, word = number[i, k], number[k, i + length], rng.choice(words)
                rules += [f"[{a}] {word} [{b}] ||| w={rng.integers(-4, 0)}", f"[{b}] [{a}] ||| w={rng.integers(-4, 0)}"]
            builder += [str(len(rules)), *rules]
    edges = sum("|||" in line for line in builder)
    forest = TranslationForest.from_text("\n".join([f"{len(number)} {edges}", *builder])).weighted({"w": 1.0})
    return ForestTranslation(forest, swapped(rng).lm, 3.0)


def swapped(rng) -> ForestTranslation:
    """A forest with reordering under a random dense trigram model."""
    words = ["a", "b", "c"]
    lines = ["4 9", "3", *(f"{w} ||| " for w in words), "3", *(f"{w} ||| " for w in words), "2", "[0] a [1] ||| "]
    lines += ["[1] a [0] ||| ", "1", "[2] a ||| "]
    names = ["<unk>", "<s>", "</s>", *words]
    grams = [f"{-3 * rng.random():.3f} {x} {y} {z}" for x in names[3:] for y in names[3:] for z in names[2:]]
    pairs = [f"-1 {x} {y}" for x in ["<s>", *words] for y in names[2:]]
    text = ["\\data\\", f"ngram 1={len(names)}", f"ngram 2={len(pairs)}", f"ngram 3={len(grams)}", "\\1-grams:"]
    text += [f"-1 {w}" for w in names] + ["\\2-grams:", *pairs, "\\3-grams:", *grams, "\\end\\"]
    return ForestTranslation(
        TranslationForest.from_text("\n".join(lines)), LanguageModel(parse_arpa("\n".join(text))), 3.0
    )


def test_questions_about_all_derivations_are_answered_on_small_forests():
    problem = small()
    scores = np.array([s for s, _ in scored(problem)])
    assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(scores))
    assert problem.marginals()["edges"][:2].sum() == pytest.approx(1.0)
    assert problem.max_marginals()["edges"].max() == pytest.approx(scores.max())
    assert len(problem.sample(5, seed=0)) == 5
    assert problem.words(problem.decode().structure) == ["barks", "the", "dog"]


@pytest.mark.parametrize("method", ["search", "beam", "intersection", "partitions", "ilp"])
def test_results_verify_and_altered_ones_do_not(method):
    problem = small()
    result = problem.decode(method=method)
    verify(problem, result)
    worse = next(np.array(y) for s, y in scored(problem) if s < result.score)
    for changed in (
        dataclasses.replace(result, structure=worse),
        dataclasses.replace(result, score=result.score + 1.0),
        dataclasses.replace(result, certificate=dataclasses.replace(result.certificate, bound=result.score - 1.0)),
    ):
        with pytest.raises(VerificationError):
            verify(problem, changed)


def test_limits_leave_a_structure_with_its_gap():
    problem = swapped(np.random.default_rng(1))
    best = scored(problem)[0][0]
    for options in ({"max_iterations": 1, "exact": False}, {"time_limit": 1e-9}, {"memory_limit": 0.0}):
        result = problem.decode(**options)
        assert result.score <= best + CLOSE
        assert result.certificate.bound >= best - CLOSE


@pytest.mark.parametrize("method", ["search", "beam", "paths", "partitions"])
@pytest.mark.parametrize("rule", [constant(0.1), per_increase(0.5), deflected()], ids=repr)
def test_every_relaxation_takes_a_step_rule_and_leaves_a_full_trace(method, rule):
    problem = swapped(np.random.default_rng(2))
    best = scored(problem)[0][0]
    result = problem.decode(method=method, step=rule, max_iterations=40)
    trace = result.trace
    assert len(trace) == len(trace.primal) == len(trace.step) == len(trace.active) > 0
    assert (trace.dual >= best - CLOSE).all()
    assert (np.diff(trace.primal) >= 0).all()
    assert (trace.step >= 0).all()
    if rule.name == "constant(0.1)":
        assert set(trace.step.tolist()) <= {0.0, 0.1}
    assert result.certificate.bound >= best - CLOSE


@settings(max_examples=30)
@given(forests(), arpas(), LM_WEIGHTS)
def test_decoding_returns_no_less_than_cube_pruning_where_a_gap_remains(forest, arpa, lm_weight):
    lm = LanguageModel(arpa)
    problem = ForestTranslation(forest, lm, lm_weight)
    if not scored(problem):
        return
    for method in ("search", "beam"):
        result = problem.decode(method=method, max_iterations=1, memory_limit=0.0)
        assert result.score >= cube_pruning(forest, lm, lm_weight).score - CLOSE


def test_a_beam_that_proves_nothing_stops_doubling(monkeypatch):
    widths = []

    def search(self, *, beam=0, budget):
        widths.extend([beam] * (beam > 0))  # the exact search at the end has none

    monkeypatch.setattr(BoundedSearch, "search", search)
    monkeypatch.setattr(Run, "closes", lambda *bound: False)
    swapped(np.random.default_rng(1)).decode(method="beam", max_iterations=40, step=constant(1e-9))
    assert widths[0] == BEAM
    assert max(widths) == widths[-1] == WIDEST


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: p.decode(method="magic"), InvalidInput, "method is 'magic'"),
        (lambda p: p.decode(method="simple"), NotSupported, "bigram"),
        (lambda p: p.kbest(0), InvalidInput, "k is 0"),
        (lambda p: p.score(np.array([4, 0])), InvalidInput, "not a derivation"),
        (lambda p: p.with_fixed("edges", (0,), 1), NotSupported, r"forbidden by with_fixed\(\), not required"),
        (lambda p: ForestTranslation(p.translation_forest, p.lm, math.nan), InvalidInput, "lm_weight is nan"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(small())


@pytest.mark.compiled
def test_a_real_forest_is_decoded_to_the_best_score_another_decoder_found():
    import json

    folder = shared_data("mt")
    weights = json.loads((folder / "weights.json").read_text())["hiero"]["weights"]
    peer = json.loads((folder / "peers" / "cdec.2gram.exact.json").read_text())["sentences"]
    sentence = next(s for s in peer if s["id"] < 20)
    forest = TranslationForest.read(folder / "forests" / f"test{sentence['id']:03d}.hg.gz").weighted(weights)
    result = ForestTranslation(forest, LanguageModel.read(folder / "lm.en.2gram.arpa.gz"), weights["LM"]).decode()
    assert result.certificate.exact
    assert result.score == pytest.approx(sentence["model_score"], abs=1e-3)


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([0.0, 1.0, -np.inf])), max_size=8), st.integers(1, 4))
def test_the_bound_of_so_many_items_is_that_of_sorting_them(items, k):
    table, out = np.array([float(x) for x, _ in items]), np.array([y for _, y in items])
    reaching = sorted((x + y for x, y in items if x + y >= -1.0), reverse=True)
    expected = reaching[k - 1] if len(reaching) >= k else -1.0
    assert kernels.forest_bigram.ranked(table, out, -1.0, k) == expected
