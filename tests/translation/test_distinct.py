"""Lists of distinct translations: against listing all derivations, and what is claimed of each rank."""

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import (
    ForestTranslation,
    InvalidInput,
    LanguageModel,
    TranslationForest,
    VerificationError,
    load_result,
    save_result,
    verify,
)
from certus.certificates import standalone
from certus.io.arpa import parse_arpa
from certus.proof_file import proof_to_json
from certus.translation import distinct
from tests.translation.cases import arpas, forests
from tests.translation.test_forest_problem import LM, LM_WEIGHTS, scored

# "a b" in three ways, all of them better than "b b".
AMBIGUOUS = """3 6
2
a ||| w=1
b ||| w=-5
1
b ||| w=2
3
[0] [1] ||| w=3
a b ||| w=4
a [1] ||| w=1
"""


def strings(problem):
    """The best score of every string, best first."""
    best = {}
    for score, y in scored(problem):
        words = tuple(problem.words(np.array(y)))
        best[words] = max(score, best.get(words, -math.inf))
    return sorted(best.values(), reverse=True), best


@settings(max_examples=60)
@given(forests(limit=60), arpas(max_order=5), LM_WEIGHTS, st.integers(1, 8), st.booleans())
def test_distinct_lists_are_the_best_of_all_strings(forest, arpa, lm_weight, k, at_once):
    problem = ForestTranslation(forest, LanguageModel(arpa), lm_weight)
    values, best = strings(problem)
    if not values:
        return
    with pytest.MonkeyPatch.context() as patch:
        if not at_once:  # by margins, as in large forests
            patch.setattr(distinct, "FEW", 0)
        found = problem.kbest(k, distinct=True)
    assert len(found) == min(k, len(values))
    words = [tuple(problem.words(r.structure)) for r in found]
    assert len(set(words)) == len(words)
    for r, own, value in zip(found, words, values, strict=False):
        assert r.score == pytest.approx(value, abs=1e-9)
        assert r.score == pytest.approx(best[own], abs=1e-9)
        assert r.certificate.gap <= 1e-9
        assert r.certificate.exact or not any(problem.terms(r.structure))  # of nothing but zeros rounding has no share
    if found[-1].certificate.exact:
        verify(problem, found[-1])
        if len(found) < 4:  # alone it takes longer
            standalone.check(written(problem, found[-1]))


def written(problem, result):
    """A proof as another program would read it."""
    return json.loads(json.dumps(proof_to_json(problem, result)))


def small() -> ForestTranslation:
    forest = TranslationForest.from_text(AMBIGUOUS).weighted({"w": 1.0})
    return ForestTranslation(forest, LanguageModel(parse_arpa(LM)), 1.0)


def test_a_string_counts_once_however_many_derivations_it_has(tmp_path):
    problem = small()
    found = problem.kbest(10, distinct=True)
    assert sorted(" ".join(problem.words(r.structure)) for r in found) == ["a b", "b b"]
    assert len(problem.kbest(10)) == 4
    for r in found:
        verify(problem, r)
        save_result(tmp_path / "one.json", problem, r)
        again, loaded = load_result(tmp_path / "one.json")
        assert loaded.certificate.distinct
        verify(again, loaded)
        assert "distinct" in standalone.check(written(problem, r))


def test_false_ranks_among_strings_are_refused():
    problem = small()
    first, second = problem.kbest(2, distinct=True)
    claim = second.certificate
    with pytest.raises(VerificationError):  # as a rank among derivations: others of the first string come before it
        verify(problem, dataclasses.replace(second, certificate=dataclasses.replace(claim, distinct=False)))
    with pytest.raises(VerificationError):  # not the best
        verify(problem, dataclasses.replace(second, certificate=dataclasses.replace(claim, rank=1, better=())))
    same = next(r.structure for r in problem.kbest(4)[1:] if problem.yielded(r.structure) == ("a", "b"))
    twice = dataclasses.replace(claim, rank=3, better=(first.structure, same))
    with pytest.raises(VerificationError, match="twice"):
        verify(problem, dataclasses.replace(second, certificate=twice))
    data = written(problem, second)
    told = {**data["claim"], "distinct": False}
    listed = written(problem, problem.kbest(2)[1])["structure"]  # the first string once more
    for forged in (
        data | {"claim": told},
        data | {"claim": data["claim"] | {"rank": 1}, "better": []},
        data | {"claim": data["claim"] | {"rank": 3}, "better": [*data["better"], listed]},
        data | {"claim": told, "sides": [[[]] * 99]},
        data | {"better": [data["structure"]]},
    ):
        with pytest.raises((standalone.Refused, *standalone.MALFORMED)):
            standalone.check(forged)
    with pytest.raises(InvalidInput):
        problem.kbest(0, distinct=True)
