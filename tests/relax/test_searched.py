"""Joint problems with parts that are searched, not spelt out: their bounds hold, and nothing less is proved."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import ForestTranslation, Hyperpath, Joint, LanguageModel
from certus.certificates.normal import Searched
from certus.relax.normal_form import RelaxedForm
from certus.relax.system import Relaxation
from tests.translation.cases import arpas, forests


def accepted(problem, values):
    """The optimum is found and proved; that it is less is not."""
    result = problem.decode()
    best = max(values)
    assert result.score == pytest.approx(best, abs=1e-9)
    certus.verify(problem, result)
    claim = replace(result.certificate, bound=result.certificate.bound - 1e-4, score=result.score)
    with pytest.raises(certus.VerificationError):
        certus.verify(problem, replace(result, certificate=claim))


@settings(max_examples=15)
@given(forests(max_vertices=4, limit=20), arpas(max_order=3), arpas(max_order=3), st.sampled_from([0.3, 1.0, 4.0]))
def test_two_models_of_one_forest(forest, arpa, other, weight):
    a = ForestTranslation(forest, LanguageModel(arpa))
    b = ForestTranslation(forest, LanguageModel(other))
    values = [a.score(y) + weight * b.score(y) for y in a.all_structures()]
    values = [value for value in values if value > -np.inf]
    problem = Joint(a, b, on="edges", weight=weight)
    spaces = RelaxedForm.of(Relaxation.of(problem)).form.spaces
    assert [type(space) for space in spaces] == [Searched, Searched]
    if values:
        accepted(problem, values)


@settings(max_examples=15)
@given(forests(max_vertices=4, limit=20), arpas(max_order=3), st.integers(0, 10**6))
def test_a_forest_and_paths_of_its_graph(forest, arpa, seed):
    a = ForestTranslation(forest, LanguageModel(arpa))
    weights = np.random.default_rng(seed).integers(-4, 5, forest.graph.n_edges).astype(float)
    b = Hyperpath(forest.graph, weights)
    values = [a.score(y) + float(weights[y].sum()) for y in a.all_structures()]
    values = [value for value in values if value > -np.inf]
    if values:
        accepted(Joint(a, b, on="edges"), values)
        accepted(Joint(b, a, on="edges"), values)
