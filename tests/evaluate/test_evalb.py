"""Bracket scores on cases counted by hand."""

import pytest

from certus import InvalidInput
from certus.evaluate.evalb import BracketScores
from certus.io.brackets import parse_tree


def scores(gold: str, found: str):
    return BracketScores.of([(parse_tree(gold), parse_tree(found))])


def test_same_tree():
    tree = "(TOP (S (NP (N dogs)) (VP (V bark)) (. .)))"
    result = scores(tree, tree)
    assert (result.matched, result.gold, result.predicted) == (3, 3, 3)
    assert result.f1 == result.precision == result.recall == result.exact == result.tag_accuracy == 100.0
    assert result.words == 2  # the full stop is not counted


def test_attachment():
    gold = "(TOP (S (NP (N a)) (VP (V b) (NP (NP (N c)) (PP (P d) (NP (N e)))))))"
    found = "(TOP (S (NP (N a)) (VP (V b) (NP (N c)) (PP (P d) (NP (N e))))))"
    result = scores(gold, found)
    assert (result.matched, result.gold, result.predicted) == (6, 7, 6)
    assert result.precision == 100.0
    assert result.recall == pytest.approx(600 / 7)
    assert result.f1 == pytest.approx(1200 / 13)
    assert result.exact == 0.0
    assert result.crossing == 0


def test_crossing_brackets():
    result = scores("(TOP (S (X (A a) (B b)) (C c)))", "(TOP (S (A a) (X (B b) (C c))))")
    assert (result.matched, result.crossing, result.crossing_per_sentence) == (1, 1, 1.0)


def test_punctuation_does_not_move_brackets():
    gold = "(TOP (S (NP (N a) (, ,)) (VP (V b)) (. .)))"
    found = "(TOP (S (NP (N a)) (, ,) (VP (V b) (. .))))"
    assert scores(gold, found).f1 == 100.0
    assert scores("(TOP (S (N a) (X (. .))))", "(TOP (S (N a) (. .)))").f1 == 100.0


def test_particles_count_as_adverbs():
    assert scores("(TOP (VP (V a) (PRT (RP b))))", "(TOP (VP (V a) (ADVP (RP b))))").f1 == 100.0


def test_repeated_brackets_serve_once():
    result = scores("(TOP (NP (NP (N a) (N b))))", "(TOP (NP (N a) (N b)))")
    assert (result.matched, result.gold, result.predicted) == (1, 2, 1)


def test_tags():
    result = scores("(TOP (S (A a) (B b)))", "(TOP (S (A a) (C b)))")
    assert result.tag_accuracy == 50.0
    assert result.exact == 100.0


def test_corpus_sums_counts():
    one = parse_tree("(TOP (S (A a) (B b)))")
    two = parse_tree("(TOP (X (A a) (B b)))")
    result = BracketScores.of([(one, one), (one, two)])
    assert (result.f1, result.exact, result.sentences) == (50.0, 50.0, 2)
    assert BracketScores.of([]).f1 == 0.0


def test_other_words():
    with pytest.raises(InvalidInput, match="sentence 1: the two trees are not over the same words"):
        scores("(S (A a))", "(S (A b))")
