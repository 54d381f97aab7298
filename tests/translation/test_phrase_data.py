"""Real phrase tables and language models, against what Moses found for the same sentences."""

import json

import pytest

from certus import PhraseModel
from tests.data import shared_data


@pytest.mark.slow
@pytest.mark.compiled
def test_sentences_are_certified_at_or_above_the_best_known_score():
    sources = [line.split() for line in shared_data("mt", "test.de").read_text(encoding="utf-8").splitlines()[:10]]
    model = PhraseModel.read(
        shared_data("mt", "phrase-table.de-en.gz"),
        shared_data("mt", "lm.en.2gram.arpa.gz"),
        shared_data("mt", "weights.json"),
        sentences=sources,
    )
    peer = json.loads(shared_data("mt", "peers", "moses.2gram.stack1000.json").read_text(encoding="utf-8"))
    for source, known in zip(sources, peer["sentences"], strict=False):
        problem = model.problem(source)
        result = problem.decode()
        assert result.certificate.exact
        assert result.score >= known["model_score"] - 1e-3
        options = {(o.start, o.end, o.target): k for k, o in enumerate(problem.options)}
        chosen = [options[(*p["source_span"], tuple(p["target"].split()))] for p in known["phrases"]]
        assert problem.score(chosen) == pytest.approx(known["model_score"], abs=1e-3)
        assert problem.words(chosen) == known["translation"].split()
