"""Posteriors over what a margin keeps: masses, n-grams, samples and minimum risk, against all derivations."""

from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from certus import ForestTranslation, Infeasible, InvalidInput, LanguageModel
from certus.constraints import contains
from certus.translation import PrunedPosterior
from tests.translation.cases import arpas, forests
from tests.translation.phrase_cases import phrase_problems

MARGINS, SCALES = st.sampled_from([0.5, 2.0, 10.0, 1000.0]), st.sampled_from([1.0, 0.25])


def check(problem, margin, scale, order=3):
    every = [(problem.score(y), tuple(problem.words(y))) for y in problem.all_structures()]
    every = [row for row in every if row[0] > -np.inf]
    assume(every)
    top = max(s for s, _ in every)
    posterior = PrunedPosterior(problem, margin=margin, scale=scale)
    mass = np.logaddexp.reduce([scale * s for s, _ in every])
    assert posterior.count >= sum(s > top - margin + 1e-9 for s, _ in every)
    assert 0.0 <= posterior.left_out <= 1.0
    assert 1.0 - np.exp(posterior.log_mass - mass) <= posterior.left_out + 1e-9
    if posterior.count < len(every):
        return  # what is kept beside the margin is not known here
    assert posterior.log_mass == pytest.approx(mass, abs=1e-9)
    expected = Counter()
    for s, words in every:
        for n in range(1, order + 1):
            for i in range(len(words) - n + 1):
                expected[words[i : i + n]] += np.exp(scale * s - mass)
    found = posterior.ngram_expectations(order)
    assert found == pytest.approx(dict(expected), abs=1e-9)
    factor = [1.0 / (order * 0.85 * 0.72**n) for n in range(order)]

    def gain(words):
        grams = [words[i : i + n] for n in range(1, order + 1) for i in range(len(words) - n + 1)]
        return -len(words) + sum(factor[len(g) - 1] * expected[g] for g in grams)

    decided = posterior.minimum_risk(order=order)
    assert decided.gain == pytest.approx(max(gain(words) for _, words in every), abs=1e-9)
    assert gain(tuple(decided.words)) == pytest.approx(decided.gain, abs=1e-9)
    assert {tuple(words) for words in posterior.sample(5, seed=1)} <= {words for _, words in every}


@given(forests(limit=60), arpas(max_order=4), MARGINS, SCALES)
@settings(max_examples=20)
def test_forests(forest, arpa, margin, scale):
    check(ForestTranslation(forest, LanguageModel(arpa), 0.5), margin, scale)


@given(phrase_problems(max_words=3), MARGINS, SCALES)
@settings(max_examples=20)
def test_phrases(problem, margin, scale):
    check(problem, margin, scale)


@given(forests(limit=60), arpas(max_order=3), phrase_problems(max_words=3))
@settings(max_examples=8)
def test_under_constraints(forest, arpa, phrases):
    for problem in (ForestTranslation(forest, LanguageModel(arpa), 0.5), phrases):
        with suppress(Infeasible):
            check(problem.subject_to(contains(["a"])), 3.0, 1.0)


def test_margins_that_are_none_are_refused():
    with pytest.raises(InvalidInput, match="margin is 0"):
        PrunedPosterior(None, margin=0.0)
    with pytest.raises(InvalidInput, match="scale is -1"):
        PrunedPosterior(None, scale=-1.0)
