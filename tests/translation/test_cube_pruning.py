"""Cube pruning: never above the optimum, and equal to it when nothing is cut off."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Hypergraph, Infeasible, InvalidInput, LanguageModel, TranslationForest
from certus.io.arpa import Arpa, Ngrams
from certus.translation import cube_pruning
from tests.data import shared_data
from tests.translation.cases import arpas, best_score, forests

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # of hashes, when kernels are interpreted


@settings(max_examples=60)
@given(forests(), arpas(), st.sampled_from([0.0, 0.5, 2.0]))
def test_wide_beams_find_the_optimum(forest, arpa, lm_weight):
    lm = LanguageModel(arpa)
    best = best_score(forest, lm, lm_weight)
    if best == -np.inf:
        with pytest.raises(Infeasible):
            cube_pruning(forest, lm, lm_weight)
        return
    found = cube_pruning(forest, lm, lm_weight, pops=400)
    assert found.score == pytest.approx(best, abs=1e-9)
    assert found.words == forest.yields(found.edges)
    assert found.score == forest.score(found.edges) + lm_weight * lm.score(found.words)
    narrow = cube_pruning(forest, lm, lm_weight, pops=1)
    assert narrow.score <= best + 1e-9


def test_a_weight_that_is_no_number_is_refused():
    unigrams = Ngrams(np.arange(3, dtype=np.int32)[:, None], np.full(3, -1.0), np.zeros(3))
    lm = LanguageModel(Arpa(["<unk>", "<s>", "</s>"], [unigrams]))
    forest = TranslationForest(Hypergraph([0, 1], [0, 0], np.empty(0, dtype=np.int32)), [0, 1], [0], ["a"])
    assert cube_pruning(forest, lm).words == ["a"]
    with pytest.raises(InvalidInput, match="lm_weight is nan"):
        cube_pruning(forest, lm, np.nan)


@pytest.mark.slow
@pytest.mark.compiled
def test_scores_are_those_of_another_decoder():
    from certus.io.hiero import read_weights

    weights = read_weights(shared_data("mt", "weights.json"))
    lm = LanguageModel.read(shared_data("mt", "lm.en.3gram.arpa.gz"))
    peer = json.loads(shared_data("mt", "peers", "cdec.3gram.cube1000.json").read_text())["sentences"]
    total = 0.0
    for k in (1, 4, 8, 14):
        forest = TranslationForest.read(shared_data("mt", "forests", f"test{k:03}.hg.gz")).weighted(weights)
        found = cube_pruning(forest, lm, weights["LM"], pops=200)
        total += found.score - peer[k]["model_score"]
        if " ".join(found.words) == peer[k]["translation"]:
            assert found.score == pytest.approx(peer[k]["model_score"], abs=1e-3)
    assert total > -0.01
