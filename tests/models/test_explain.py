"""Features in words, shared weights, and what a cascade says of itself."""

from dataclasses import replace

import numpy as np
import pytest

from certus.errors import InvalidInput
from certus.models.cascade import stages
from certus.models.explain import arc_features, shared_weights
from certus.models.parser import Parser
from certus.models.training import train_parser
from tests.models.test_parser import SMALL, treebank

pytestmark = pytest.mark.compiled  # trains parsers


@pytest.fixture(scope="module")
def parser():
    return train_parser(treebank(30, 1), settings=replace(SMALL, order=2, epochs=2, bits=20))


def test_features_of_an_arc_add_up_to_its_score(parser):
    sentence = treebank(1, 4)[0]
    for token in sentence:
        features = arc_features(parser, sentence, token.head, token.id)
        assert len({feature.text for feature in features}) == len(features)
        problem = parser.problem(sentence)
        arcs = [abs(feature.weight) for feature in features]
        assert arcs == sorted(arcs, reverse=True)
        assert sum(f.weight for f in features) == pytest.approx(problem.arc[token.head, token.id], abs=1e-4)


def test_an_arc_that_cannot_be_is_refused(parser):
    with pytest.raises(InvalidInput, match="no arc 1 -> 1"):
        arc_features(parser, treebank(1, 4)[0], 1, 1)


def test_few_features_share_a_weight(parser):
    few, many = (
        shared_weights(parser, treebank(20, 2)),
        shared_weights(replace(parser, settings=replace(parser.settings, bits=6)), treebank(20, 2)),
    )
    assert 0.0 <= few < 0.02 < many <= 1.0


def test_each_stage_of_a_cascade_leaves_less(parser):
    gold = treebank(10, 3)
    found = stages(parser.cascade, parser.encoder.encode(gold), [s.heads for s in gold])
    assert [stage.name for stage in found] == ["dictionary", "first filter", "second filter"]
    assert np.all(np.diff([stage.heads for stage in found]) <= 0)
    assert all(stage.oracle == 1.0 and stage.speed > 0 and 0 <= stage.pruned < 1 for stage in found)


def test_a_first_order_parser_has_one_filter(tmp_path):
    parser = train_parser(treebank(10, 1), settings=replace(SMALL, epochs=1, label_epochs=1))
    parser.save(tmp_path / "parser")
    for one in (parser, Parser.load(tmp_path / "parser")):
        assert list(one.cascade.prefixes()) == ["dictionary", "first filter"]
