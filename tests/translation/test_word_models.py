"""Language models of one's own, in forests and in phrases, against all translations scored by the model itself."""

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import ForestTranslation, InvalidInput, LanguageModel, NotSupported, PhraseOption, PhraseTranslation
from certus.translation import ClassModel, FunctionModel, NgramModel, WeightedModels, WordModel, word_models
from tests.oracles.questions import answer
from tests.translation.cases import arpas, forests
from tests.translation.phrase_cases import phrase_problems


def whole(seed: int, order: int, least: int = -8, most: int = 0) -> FunctionModel:
    """Whole numbers by n-gram, which look random."""

    def score(context, word):
        return least + crc32(f"{seed} {context} {word}".encode()) % (most - least + 1)

    return FunctionModel(order, score, upper_bound=most)


@given(forests(limit=60), st.integers(0, 9), st.integers(1, 5), st.sampled_from([1.0, 0.5, -1.0]))
@settings(max_examples=40)
def test_forests_under_a_function_are_decoded_with_a_proof(forest, seed, order, weight):
    model = whole(seed, order, most=3)
    problem = ForestTranslation(forest, model, weight)
    scores = []
    for y in problem.all_structures():
        score = forest.score(y.tolist()) + weight * model.score(forest.yields(y.tolist()))
        assert problem.score(y) == score
        scores.append(score)
    scores = sorted((s for s in scores if s > -np.inf), reverse=True)
    result = answer(scores, problem.decode)
    if result is not None:
        assert result.score == scores[0]
        assert result.certificate.exact
        certus.verify(problem, result)
        assert [r.score for r in problem.kbest(5)] == scores[:5]


@given(phrase_problems(max_words=3), st.integers(0, 9), st.integers(1, 4))
@settings(max_examples=40)
def test_phrases_under_a_function_are_decoded_with_a_proof(given_problem, seed, order):
    model, p = whole(seed, order, most=2), given_problem
    limits = {"distortion": 1.0, "distortion_limit": p.distortion_limit, "window": p.window}
    problem = PhraseTranslation(p.options, model, source=p.source, lm_weight=0.5, **limits)
    scores = []
    for y in problem.all_structures():
        chosen, last, total = [problem.options[k] for k in y], -1, 0.0
        for o in chosen:
            total += o.score - abs(o.start - last - 1)
            last = o.end
        if total > -np.inf:
            scores.append(total + 0.5 * model.score([w for o in chosen for w in o.target]))
    scores.sort(reverse=True)
    result = answer(scores, problem.decode)
    if result is not None:
        assert result.score == scores[0]
        certus.verify(problem, result)


def test_saved_results_carry_the_scores_and_need_no_class(tmp_path):
    options = [PhraseOption(0, 0, ("the",), 0.5), PhraseOption(1, 1, ("old", "man"), 1.0), PhraseOption(1, 1, (), 0.0)]
    problem = PhraseTranslation(options, whole(1, 3), source=["der", "alte"], distortion=1.0)
    result = problem.decode()
    certus.save_result(tmp_path / "r.json", problem, result)
    again, held = certus.load_result(tmp_path / "r.json")
    assert isinstance(again.lm, LanguageModel)
    certus.verify(again, held)
    assert again.terms(held.structure) == problem.terms(result.structure)


@given(arpas(max_order=3))
@settings(max_examples=20)
def test_tables_of_an_ngram_model_score_as_it_does(arpa):
    lm = LanguageModel(arpa)
    options = [PhraseOption(0, 0, (w,), 0.0) for w in "abd"] + [PhraseOption(1, 1, ("a", "b", "c"), 0.0)]
    options.append(PhraseOption(2, 2, ("b",), -1.0))
    own = PhraseTranslation(options, lm, source=["x", "y", "z"])
    table = PhraseTranslation(options, NgramModel(lm), source=["x", "y", "z"])
    for y in own.all_structures():
        assert table.terms(y) == pytest.approx(own.terms(y), abs=1e-12)
    assert table.decode().score == pytest.approx(own.decode().score, abs=1e-9)


def test_classes_of_words_and_sums_of_models():
    lines = ["-1 <unk>", "0 <s> 0", "-1 </s>", "-0.5 D 0", "-0.5 N 0"]
    arpa = ["\\data\\", "ngram 1=5", "ngram 2=2", "\\1-grams:", *lines, "\\2-grams:", "-0.1 D N", "-0.2 <s> D"]
    classes = LanguageModel(certus.io.arpa.parse_arpa("\n".join([*arpa, "\\end\\"])))
    model = ClassModel(classes, {"the": "D", "a": "D", "man": "N"}, {"the": -0.5, "a": -1.0})
    assert model.score(["the", "man"]) == pytest.approx((-0.2 - 0.1 - 1.0) * np.log(10.0) - 0.5)
    both = WeightedModels((1.0, model), (2.0, FunctionModel(2, lambda c, w: -1.0 if c[-1] == w else 0.0)))
    assert both.score(["the", "the"]) == pytest.approx(model.score(["the", "the"]) - 2.0)
    options = [PhraseOption(0, 0, (w,), 0.0) for w in ("the", "a", "man")]
    options += [PhraseOption(1, 1, (w,), 0.0) for w in ("the", "a", "man", "dog")]
    problem = PhraseTranslation(options, both, source=["der", "mann"], distortion=9.0)
    result = problem.decode()
    assert problem.words(result.structure) == ["the", "man"]
    assert result.score == pytest.approx(both.score(["the", "man"]))
    certus.verify(problem, result)


class Growing(WordModel):
    """Its states are all the words so far, though it says that it looks back one word."""

    order = 2

    def begin(self):
        return ()

    def advance(self, state, word):
        return -float(len(state)), (*state, word)


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (FunctionModel(2, lambda c, w: 1.0), "above its upper_bound 0.0"),
        (FunctionModel(2, lambda c, w: float("nan")), "expected a number"),
        (FunctionModel(1, lambda c, w: -1.0, upper_bound=np.inf), "upper bound"),
        (FunctionModel(0, lambda c, w: -1.0), "order of the language model is 0"),
        (Growing(), "different states after the words"),
        (object(), "expected a certus.LanguageModel"),
    ],
)
def test_models_that_are_none_are_refused(model, what):
    options = [PhraseOption(i, i, (w,), 0.0) for i in (0, 1) for w in "ab"]
    with pytest.raises(InvalidInput, match=what):
        PhraseTranslation(options, model, source=["x", "y"])
    forest = certus.TranslationForest.from_text(
        "2 3\n2\na ||| \nb ||| \n1\n[0] a [0] ||| ".replace("[0] a [0]", "[0] a")
    )
    with pytest.raises(InvalidInput, match=what):
        ForestTranslation(forest, model)


def test_too_many_ngrams_and_marks_among_the_words_are_refused(monkeypatch):
    options = [PhraseOption(i, i, (w,), 0.0) for i in (0, 1) for w in "abc"]
    with pytest.raises(InvalidInput, match="is one of the target words"):
        PhraseTranslation([PhraseOption(0, 0, ("</s>",), 0.0)], whole(0, 2), source=["x"])
    monkeypatch.setattr(word_models, "MOST_NGRAMS", 20)
    with pytest.raises(NotSupported, match="more than 20 n-grams"):
        PhraseTranslation(options, whole(0, 3), source=["x", "y"])
