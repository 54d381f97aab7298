"""Translations under constraints on their words, forests and phrases, against all translations that satisfy them."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import ForestTranslation, LanguageModel
from certus.certificates import standalone
from certus.constraints import accepted, avoids, contains, count, in_order, length, starts_with
from certus.io.arpa import parse_arpa
from tests.oracles.questions import answer
from tests.translation.cases import arpas, forests
from tests.translation.phrase_cases import every_score, phrase_problems

ARPA = ["\\data\\", "ngram 1=4", "\\1-grams:", "-1 <unk>", "0 <s>", "-1 </s>", "-1 a", "\\end\\"]
WORDS = ("a", "b", "d", "z")


def inside(words, phrase):
    return any(words[i : i + len(phrase)] == phrase for i in range(len(words) - len(phrase) + 1))


def ordered(words, order):
    places = [order.index(w) for w in words if w in order]
    return places == sorted(places)


@st.composite
def constraints(draw):
    """A constraint, and what it says of a list of words, in plain Python."""
    phrase = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
    least, more = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    kind = draw(st.sampled_from(["contains", "avoids", "order", "count", "length", "prefix", "automaton"]))
    match kind:
        case "contains":
            return contains(phrase), lambda words: inside(words, phrase)
        case "avoids":
            return avoids(phrase), lambda words: not inside(words, phrase)
        case "order":
            order = list(dict.fromkeys(phrase))
            return in_order(*order), lambda words: ordered(words, order)
        case "count":
            of = set(phrase)
            return count(
                sorted(of), least, least + more
            ), lambda words: least <= sum(w in of for w in words) <= least + more
        case "length":
            return length(least, least + more), lambda words: least <= len(words) <= least + more
        case "prefix":
            return starts_with(phrase), lambda words: words[: len(phrase)] == phrase
    even = certus.Automaton([[1, 0], [0, 1]], finals=[0], symbols=["a", "b"])
    return accepted(even), lambda words: set(words) <= {"a", "b"} and words.count("a") % 2 == 0


def kept(problem, *tests):
    return [y for y in problem.all_structures() if all(t(problem.words(y)) for t in tests)]


@given(forests(limit=80), arpas(max_order=4), constraints(), st.one_of(st.none(), constraints()))
@settings(max_examples=80)
def test_forests_under_constraints_equal_enumeration(forest, arpa, one, other):
    given_ones = [one] if other is None else [one, other]
    problem = ForestTranslation(forest, LanguageModel(arpa), 0.5)
    restricted = problem.subject_to(*(c for c, _ in given_ones))
    found = kept(problem, *(t for _, t in given_ones))
    scores = sorted((s for s in map(problem.score, found) if s > -np.inf), reverse=True)
    assert len(list(restricted.all_structures())) == len(found)
    result = answer(scores, restricted.decode)
    if result is None:
        return
    assert result.score == pytest.approx(scores[0], abs=1e-9)
    assert result.certificate.exact or not any(problem.terms(result.structure))
    certus.verify(restricted, result)
    ranked = restricted.kbest(4)
    assert [r.score for r in ranked] == pytest.approx(scores[:4], abs=1e-9)
    certus.verify(restricted, ranked[-1])
    held = type(restricted).from_json(restricted.to_json())
    certus.verify(held, result)
    assert restricted.log_partition() == pytest.approx(np.logaddexp.reduce(scores), abs=1e-6)


@given(phrase_problems(max_words=3), constraints(), st.one_of(st.none(), constraints()))
@settings(max_examples=80)
def test_phrases_under_constraints_equal_enumeration(problem, one, other):
    given_ones = [one] if other is None else [one, other]
    restricted = problem.subject_to(*(c for c, _ in given_ones))
    found = set(kept(problem, *(t for _, t in given_ones)))
    assert set(restricted.all_structures()) == found
    scores = every_score(restricted)
    result = answer(scores, restricted.decode)
    if result is None:
        return
    assert result.score == pytest.approx(scores[0], abs=1e-9)
    assert result.certificate.exact or not any(problem.terms(result.structure))
    certus.verify(restricted, result)
    ranked = restricted.kbest(4)
    assert [r.score for r in ranked] == pytest.approx(scores[:4], abs=1e-9)
    certus.verify(restricted, ranked[-1])
    held = type(restricted).from_json(restricted.to_json())
    certus.verify(held, result)


@given(forests(limit=30), arpas(max_order=3), constraints())
@settings(max_examples=6)
def test_the_standalone_checker_believes_what_is_proved_of_forests(forest, arpa, one):
    checked_alone(ForestTranslation(forest, LanguageModel(arpa), 0.5).subject_to(one[0]))


@given(phrase_problems(max_words=3), constraints())
@settings(max_examples=12)
def test_the_standalone_checker_believes_what_is_proved_of_phrases(problem, one):
    checked_alone(problem.subject_to(one[0]))


def checked_alone(restricted):
    try:
        result = restricted.decode()
    except certus.Infeasible:
        return
    with TemporaryDirectory() as folder:
        certus.save_proof(Path(folder) / "proof.json", restricted, result)
        data = json.loads((Path(folder) / "proof.json").read_text())
    standalone.check(data)


def test_a_model_and_an_automaton_of_one_state_each_refuse_a_word_without_a_bare_error():
    options = [certus.PhraseOption(0, 0, (word,), 0.0) for word in ("a", "b")]
    problem = certus.PhraseTranslation(options, LanguageModel(parse_arpa("\n".join(ARPA))), source=["x"])
    restricted = problem.subject_to(avoids(["a"]), avoids(["a"]))
    assert restricted.reader.n_states == problem.lm.n_states == 1
    result = restricted.decode()
    assert restricted.words(result.structure) == ["b"]
    certus.verify(restricted, result)


def test_what_no_translation_satisfies_is_infeasible():
    forest = certus.TranslationForest.from_text("1 2\n2\na ||| \nb ||| ")
    lm = LanguageModel(parse_arpa("\n".join(ARPA)))
    with pytest.raises(certus.Infeasible, match="no derivation of the forest satisfies the constraints"):
        ForestTranslation(forest, lm).subject_to(contains(["c"])).decode()
    options = [certus.PhraseOption(0, 0, ("a",), 0.0)]
    with pytest.raises(certus.Infeasible, match="no translation satisfies the constraints"):
        certus.PhraseTranslation(options, lm, source=["x"]).subject_to(length(2, 3)).decode()
    with pytest.raises(certus.Infeasible, match="no translation satisfies the constraints"):
        certus.PhraseTranslation([], lm, source=[]).subject_to(length(1)).decode()
    with pytest.raises(certus.NotSupported, match="integer program reads no constraints"):
        certus.PhraseTranslation(options, lm, source=["x"]).subject_to(length(1)).decode(method="ilp")


@pytest.mark.parametrize(
    ("constraint", "what"),
    [
        (contains(["a"], symbols=["a", "b"]), "leave symbols and view out"),
        (contains([1]), "1 is no word"),
        (accepted(certus.Automaton([[0]], [[1.0]], symbols=["a"])), "the automaton has weights"),
    ],
)
def test_what_does_not_read_words_is_refused(constraint, what):
    problem = certus.PhraseTranslation(
        [certus.PhraseOption(0, 0, ("a",), 0.0)], LanguageModel(parse_arpa("\n".join(ARPA))), source=["x"]
    )
    with pytest.raises(certus.InvalidInput, match=what):
        problem.subject_to(constraint)
