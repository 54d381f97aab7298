"""Phrase-based translation against all orders of all segmentations."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Infeasible, InvalidInput, LanguageModel, LimitReached, PhraseOption, PhraseTranslation
from certus.io.arpa import parse_arpa
from certus.relax.steps import constant, deflected, halving
from certus.translation.phrase_decoding import METHODS
from certus.translation.phrase_relaxation import Sentence
from tests.oracles.questions import answer
from tests.translation.phrase_cases import every_score, phrase_problems

EXACT = [m for m in METHODS if m not in ("beam", "stack")]
CLOSE = 1e-9


def model(*bigrams: str) -> LanguageModel:
    """Words a, b and c, each with a probability of a tenth, and bigrams "log10 word word"."""
    words = ["<unk>", "<s>", "</s>", "a", "b", "c"]
    lines = [
        "\\data\\",
        f"ngram 1={len(words)}",
        f"ngram 2={len(bigrams)}",
        "\\1-grams:",
        *(f"-1 {w} 0" for w in words),
    ]
    return LanguageModel(parse_arpa("\n".join([*lines, "\\2-grams:", *bigrams, "\\end\\"])))


def words(n: int, **given) -> PhraseTranslation:
    """n words, each translated by one word, alternately a and b."""
    options = [PhraseOption(i, i, ("ab"[i % 2],), 1.0) for i in range(n)]
    return PhraseTranslation(options, model("-0.1 a b"), source=["w"] * n, **{"distortion": 1.0, **given})


@given(phrase_problems(), st.sampled_from(EXACT))
@settings(max_examples=60)
def test_exact_methods_find_the_best_of_all_translations(problem, method):
    scores = every_score(problem)
    result = answer(scores, problem.decode, method=method)
    if result is None:
        return
    assert result.score == pytest.approx(scores[0], abs=CLOSE)
    assert result.certificate.exact or not any(problem.terms(result.structure))
    assert result.certificate.bound >= scores[0] - CLOSE
    certus.verify(problem, result)


@given(phrase_problems(), st.sampled_from(["beam", "stack"]), st.integers(1, 3))
@settings(max_examples=40)
def test_heuristics_claim_no_more_than_they_know(problem, method, width):
    scores = every_score(problem)
    try:
        result = problem.decode(method=method, width=width)
    except (Infeasible, LimitReached):
        return
    assert result.score <= scores[0] + CLOSE
    assert result.certificate.bound >= scores[0] - CLOSE
    if result.certificate.exact:
        assert result.score == pytest.approx(scores[0], abs=CLOSE)
    certus.verify(problem, result)


@given(phrase_problems(max_words=3), st.integers(1, 12))
@settings(max_examples=30)
def test_kbest_lists_the_best_translations_once_each(problem, k):
    scores = every_score(problem)
    results = answer(scores, problem.kbest, k)
    if results is None:
        return
    assert [r.score for r in results] == pytest.approx(scores[:k], abs=CLOSE)
    assert len({r.structure for r in results}) == len(results)
    assert [r.certificate.rank for r in results] == list(range(1, len(results) + 1))
    certus.verify(problem, results[-1])


@given(phrase_problems(max_words=3))
@settings(max_examples=20)
def test_saved_problems_come_back_with_the_words_they_need(problem):
    again = PhraseTranslation.from_json(problem.to_json())
    assert again.n == problem.n
    for structure in problem.all_structures():
        assert again.score(structure) == pytest.approx(problem.score(structure), abs=CLOSE)


def test_a_saved_result_is_verified_elsewhere(tmp_path):
    problem = words(4)
    certus.save_result(tmp_path / "r.json", problem, problem.decode(method="alternating"))
    certus.verify(*certus.load_result(tmp_path / "r.json"))


@pytest.mark.parametrize("method", EXACT)
def test_altered_results_are_refused(method):
    problem = words(4)
    result = problem.decode(method=method)
    certus.verify(problem, result)
    c = result.certificate
    altered = [
        replace(result, score=result.score + 1),
        replace(result, structure=result.structure[::-1]),
        replace(result, certificate=replace(c, bound=c.bound - 1)),
        replace(result, certificate=replace(c, bound=c.bound - 1, score=c.score - 1), score=result.score - 1),
    ]
    for wrong in altered:
        with pytest.raises(certus.VerificationError):
            certus.verify(problem, wrong)


def orders(problem: PhraseTranslation) -> set[tuple[int, ...]]:
    return set(problem.all_structures())


def test_the_limit_counts_jumps_and_keeps_the_first_gap_in_reach():
    jumps = {
        p for p in permutations(range(4)) if all(abs(b - a - 1) <= 2 for a, b in zip((-1, *p[:-1]), p, strict=True))
    }
    assert orders(words(4, distortion_limit=2, window=False)) == jumps
    kept = set()
    for p in jumps:
        covered: set[int] = set()
        ok = True
        for word in p:
            g = min(set(range(4)) - covered)
            ok = ok and (word == g or word + 1 - g <= 2)
            covered.add(word)
        if ok:
            kept.add(p)
    assert orders(words(4, distortion_limit=2)) == kept
    assert kept < jumps
    assert len(orders(words(4, distortion_limit=None))) == 24
    assert orders(words(4, distortion_limit=0)) == {(0, 1, 2, 3)}


@pytest.mark.parametrize("method", METHODS)
def test_no_words_one_word_and_two(method):
    assert words(0).decode(method=method).structure == ()
    assert words(1).decode(method=method).structure == (0,)
    assert words(2).decode(method=method, width=50).structure == (0, 1)


def test_a_wide_stack_finds_what_a_narrow_one_misses():
    # After "c" for word 0 the bigram "c b" is likely, but "c" alone is worse than "a".
    options = [
        PhraseOption(0, 0, ("a",), 1.0),
        PhraseOption(0, 0, ("c",), 0.0),
        PhraseOption(1, 1, ("b",), 0.0),
    ]
    problem = PhraseTranslation(options, model("-0.0001 c b", "-5 a b"), source=["x", "y"], distortion=9.0)
    assert problem.words(problem.decode(method="stack", width=1).structure) == ["a", "b"]
    assert problem.words(problem.decode(method="stack", width=5).structure) == ["c", "b"]
    assert problem.words(problem.decode().structure) == ["c", "b"]
    assert not problem.decode(method="stack", width=1).certificate.exact


@pytest.mark.parametrize("method", ["alternating", "staged", "tight"])
@pytest.mark.parametrize("rule", [constant(0.25), halving(1.0), deflected()], ids=repr)
def test_multipliers_move_by_any_step_rule(method, rule):
    problem = words(5, distortion_limit=2)
    best = every_score(problem)[0]
    result = problem.decode(method=method, step=rule, max_iterations=60)
    trace = result.trace
    assert len(trace) == len(trace.primal) == len(trace.step) == len(trace.active) > 0
    assert (trace.dual[trace.active == problem.n] >= best - CLOSE).all()
    if rule.name == "constant(0.25)":
        assert set(trace.step.tolist()) <= {0.0, 0.25}
    assert result.certificate.bound >= best - CLOSE
    assert result.score <= best + CLOSE


def test_constraints_on_options():
    problem = words(3)
    free = problem.decode()
    bound = problem.subject_to(certus.constraints.forbid("options", (free.structure[0],)))
    with pytest.raises(Infeasible):
        bound.decode()
    more = PhraseTranslation(
        [*problem.options, PhraseOption(0, 0, ("c",), 0.5)], problem.lm, source=problem.source, distortion=1.0
    )
    assert 3 in more.subject_to(certus.constraints.forbid("options", (0,))).decode().structure
    assert 3 in more.with_fixed("options", (3,), 1).decode().structure


def test_a_time_limit_returns_the_best_so_far():
    problem = words(8, distortion_limit=None)
    result = problem.decode(time_limit=1e-9, method="alternating")
    assert result.score <= problem.decode().score
    certus.verify(problem, result)


@pytest.mark.compiled
@pytest.mark.parametrize("limit", [None, 3])
def test_too_many_coverages_are_relaxed_by_multipliers(monkeypatch, limit):
    rng = np.random.default_rng(0)
    targets = [(str(rng.choice(list("abc"))), float(rng.normal())) for _ in range(14)]
    options = [PhraseOption(k // 2, k // 2, (word,), score) for k, (word, score) in enumerate(targets)]
    lm = model("-0.1 a b", "-0.2 b c", "-0.1 c a")
    problem = PhraseTranslation(
        options, lm, source=["w"] * 7, distortion=0.4, distortion_limit=limit, window=limit is not None
    )
    best = problem.decode()
    monkeypatch.setattr(Sentence, "lattice", without_coverages)
    result = afresh(problem).decode()
    assert result.info["iterations"] > 0
    assert result.certificate.exact
    assert result.score == pytest.approx(best.score, abs=CLOSE)
    with pytest.raises(certus.NotSupported, match="set a distortion limit"):
        afresh(problem).kbest(2)


real_lattice = Sentence.lattice


def without_coverages(sentence, tracked, most=1000):
    """A lattice of coverages is too large; others are made."""
    return None if tracked is None else real_lattice(sentence, tracked)


def afresh(problem: PhraseTranslation) -> PhraseTranslation:
    """The same problem with nothing remembered."""
    return PhraseTranslation.from_json(problem.to_json())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ([PhraseOption(0, 0, ("a",), 0.0)], Infeasible, "no option covers source word 1 \\('y'\\)"),
        ([PhraseOption(0, 1, ("a",), 0.0), PhraseOption(1, 2, ("b",), 0.0)], Infeasible, "without overlap"),
        ([PhraseOption(0, 3, ("a",), 0.0)], InvalidInput, "options\\[0\\].end is 3; source words are 0..2"),
        ([PhraseOption(1, 0, ("a",), 0.0)], InvalidInput, "starts after its end"),
        ([PhraseOption(0, 0, "ab", 0.0)], InvalidInput, "tuple of words"),
        ([PhraseOption(0, 0, ("a",), float("nan"))], InvalidInput, "score is nan"),
        (["x"], InvalidInput, "expected a certus.translation.PhraseOption"),
    ],
)
def test_errors_say_what_is_wrong(options, error, message):
    with pytest.raises(error, match=message):
        PhraseTranslation(options, model(), source=["x", "y", "z"]).decode()


def test_long_sentences_need_a_limit():
    with pytest.raises(certus.NotSupported, match="with 65 source words"):
        words(65, distortion_limit=None).decode()
    with pytest.raises(certus.NotSupported, match="window=True"):
        words(65, window=False).decode()
    assert words(70, distortion_limit=2).decode().structure == tuple(range(70))


def test_more_errors():
    with pytest.raises(InvalidInput, match="no phrase satisfies a limit below 0"):
        words(2, distortion_limit=-1)
    with pytest.raises(InvalidInput, match="lm_weight is nan"):
        words(2, lm_weight=float("nan"))
    with pytest.raises(InvalidInput, match="split it first"):
        PhraseTranslation([], model(), source="x y")
    with pytest.raises(InvalidInput, match="method is 'magic'"):
        words(2).decode(method="magic")
    for structure, message in [((0,), "word 1"), ((0, 0), "covered already"), ((0, 7), "options are 0..1")]:
        with pytest.raises(InvalidInput, match=message):
            words(2).score(structure)
    with pytest.raises(InvalidInput, match="jumps further"):
        words(4, distortion_limit=1).score((3, 2, 1, 0))
    with pytest.raises(InvalidInput, match="out of reach"):
        words(4, distortion_limit=2).score((2, 0, 1, 3))


@pytest.mark.parametrize("source", [[[("a", 0.5, 1)], [("b", 0.5, 1)]], {"edges": [["a", 0, 1]]}, 7])
def test_a_lattice_is_refused_with_a_word_of_what_is_read(source):
    with pytest.raises(InvalidInput, match="expected a list of words"):
        PhraseTranslation([], model(), source=source)
