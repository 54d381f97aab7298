"""Features in words, shared weights, and what a cascade says of itself."""

from dataclasses import replace

import numpy as np
import pytest

from certus.errors import InvalidInput
from certus.models.cascade import Cascade, stages
from certus.models.explain import arc_features, head_choice, shared_weights
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


KINDS = {
    "arcs": replace(SMALL, epochs=1),
    "third order": replace(SMALL, order=3, trisiblings=True, epochs=1, bits=22),
    "crossing": replace(SMALL, order=2, projective=False, epochs=1, bits=22),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_is_between_the_best_tree_and_the_best_with_another_head(kind):
    parser = train_parser(treebank(20, 1), settings=KINDS[kind])
    dictionary, *filters = parser.cascade.filters
    open_ = (replace(dictionary, longest=np.full_like(dictionary.longest, 99)),
             *(replace(stage, threshold=-np.inf, heads=99) for stage in filters))  # fmt: skip
    parser = replace(parser, cascade=Cascade(open_))
    for sentence in [s for s in treebank(20, 5) if len(s) in (3, 4, 5)][:3]:
        problem, n = parser.problem(sentence), len(sentence)
        best, through = -np.inf, np.full((n + 1, n + 1), -np.inf)
        for tree in problem.all_structures():
            score = problem.score(tree)
            best = max(best, score)
            for m in range(1, n + 1):
                through[tree[m], m] = max(through[tree[m], m], score)
        for word in range(1, n + 1):
            choice = head_choice(parser, sentence, word)
            assert choice.tree.tolist() == problem.decode().structure.tolist()
            assert choice.head == choice.tree[word] != choice.instead == choice.other[word]
            assert choice.margin >= 0
            assert choice.margin == pytest.approx(sum(feature.weight for feature in choice.features))
            assert len({feature.text for feature in choice.features}) == len(choice.features)
            others = [h for h in range(n + 1) if h not in (word, choice.head)]
            assert choice.margin == pytest.approx(best - max(through[h, word] for h in others), abs=1e-4)
            for h in others:
                if through[h, word] > -np.inf:
                    margin = head_choice(parser, sentence, word, instead=h).margin
                    assert margin == pytest.approx(best - through[h, word], abs=1e-4)


def test_heads_that_the_filters_removed_can_be_asked_for(parser):
    dictionary, *filters = parser.cascade.filters
    sharp = replace(parser, cascade=Cascade((dictionary, *(replace(stage, heads=1) for stage in filters))))
    sentence = treebank(1, 6)[0]
    for word in range(1, len(sentence) + 1):
        choice = head_choice(sharp, sentence, word)
        assert choice.other[word] != choice.head
        assert choice.margin == pytest.approx(sum(feature.weight for feature in choice.features))


def test_choices_that_cannot_be_are_refused(parser):
    sentence = treebank(1, 4)[0]
    head = sentence.tokens[0].head
    for word, instead, says in (
        (0, None, "word is 0; expected a whole number of at least 1"),
        (99, None, "no word 99"),
        (1, 99, "heads are 0 to"),
        (1, 1, "not the word itself"),
        (1, head, "has that head"),
    ):
        with pytest.raises(InvalidInput, match=says):
            head_choice(parser, sentence, word, instead=instead)
    with pytest.raises(InvalidInput, match="word 1 can have no head but 0"):
        head_choice(parser, replace(sentence, tokens=sentence.tokens[:1]), 1)


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
    assert [stage.name for stage in found] == ["length dictionary", "first filter", "second filter"]
    assert np.all(np.diff([stage.heads for stage in found]) <= 0)
    assert all(stage.oracle == 1.0 and stage.speed > 0 and 0 <= stage.pruned < 1 for stage in found)


def test_a_first_order_parser_has_one_filter(tmp_path):
    parser = train_parser(treebank(10, 1), settings=replace(SMALL, epochs=1, label_epochs=1))
    parser.save(tmp_path / "parser")
    for one in (parser, Parser.load(tmp_path / "parser")):
        assert list(one.cascade.prefixes()) == ["length dictionary", "first filter"]
