"""Estimated lexicalised grammars: probabilities, scores of trees, files."""

import json

import numpy as np
import pytest

import certus
from certus import FormatError, InvalidInput, LexicalizedConstituency, LexicalizedGrammar
from certus.constituency.lexicalize import lexicalized, spines
from certus.constituency.lexicalized_grammar import FAR, FIRST, LEFT, NEAR, RIGHT, Modifier
from certus.io.brackets import parse_tree, read_trees
from tests.data import shared_data

TREES = [
    parse_tree(text)
    for text in (
        "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))) (. .)))",
        "(TOP (S (NP (NNS dogs)) (, ,) (VP (VBP bark)) (. .)))",
        "(TOP (S (NP (NP (DT a) (NN man)) (PP (IN with) (NP (NNS dogs)))) (VP (VBZ sees) (NP (NN cat))) (. .)))",
        "(TOP (NP (NP (NNS dogs)) (CC and) (NP (NNS cats))))",
    )
]


@pytest.fixture(scope="module")
def grammar():
    return LexicalizedGrammar.from_treebank(TREES)


def test_events_of_a_tree(grammar):
    events = [e for e in grammar.events(spines(lexicalized(TREES[0]))) if isinstance(e, Modifier) and e.P == "S"]
    told = {(e.side, e.distance, e.L) for e in events}
    # "sees" heads S: its noun phrase is to the left of a VP that ends at the verb, its full stop beyond "a cat".
    assert told == {(LEFT, 0, "NP"), (LEFT, NEAR, ""), (RIGHT, NEAR, "."), (RIGHT, NEAR, "")}
    assert all(e.state == FIRST for e in events if e.L)
    assert grammar.distances(["cat", "sees", "dogs"])[0].tolist() == [0, FAR, FAR]


def test_probabilities_sum_to_one(grammar):
    for event in grammar.modifiers:
        rows = np.exp(grammar.modifier_rows(*event[:5]))
        assert rows.sum(axis=-1) == pytest.approx(1.0)
    for event in grammar.heads:
        labels = {other.H for other in grammar.heads if other.P == event.P and other.t == event.t}
        assert sum(np.exp(grammar.head_score(*event[:4], H)) for H in labels) == pytest.approx(1.0)


def test_a_tree_scores_its_log_probability(grammar):
    for tree in TREES:
        problem = LexicalizedConstituency(grammar, tree.words)
        gold = lexicalized(tree)
        assert problem.score(gold) == pytest.approx(grammar.log_probability(spines(gold)))
        best = problem.decode()
        assert best.structure.tree == tree
        assert best.score == pytest.approx(grammar.log_probability(spines(best.structure)))


def test_unknown_words_have_tags(grammar):
    best = LexicalizedConstituency(grammar, ["the", "horse", "sees", "a", "dog", "."]).decode().structure
    assert best.tags == ["DT", "NN", "VBZ", "DT", "NN", "."]


def test_what_was_seen_too_rarely_is_left_out(grammar):
    strict = LexicalizedGrammar.from_treebank(TREES, least=2)
    assert len(strict.contexts) < len(grammar.contexts)
    assert strict.log_probability(spines(lexicalized(TREES[3]))) == -np.inf
    with pytest.raises(InvalidInput, match="least is 0"):
        LexicalizedGrammar.from_treebank(TREES, least=0)
    with pytest.raises(InvalidInput, match="holds no trees"):
        LexicalizedGrammar.from_treebank([])


def test_files(grammar, tmp_path):
    path = tmp_path / "grammar.json"
    grammar.save(path)
    again = LexicalizedGrammar.load(path)
    assert again.to_json() == grammar.to_json()
    assert repr(again) == repr(grammar)
    words = TREES[2].words
    assert (
        LexicalizedConstituency(again, words).decode().score == LexicalizedConstituency(grammar, words).decode().score
    )
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"heads": [[10**6] * 6]}))
    with pytest.raises(FormatError, match="heads is a list of 1; expected rows of P, above, t, w, H"):
        LexicalizedGrammar.load(path)
    path.write_text(json.dumps(data | {"version": 9}))
    with pytest.raises(FormatError, match="version 9"):
        LexicalizedGrammar.load(path)
    path.write_text("{}")
    with pytest.raises(FormatError, match="not a certus lexicalised grammar"):
        LexicalizedGrammar.load(path)


@pytest.mark.slow
@pytest.mark.compiled
def test_sentences_of_a_treebank():
    trees = [t for t in read_trees(shared_data("ptb-sample", "dev.mrg.gz"), clean=True) if len(t.words) <= 20]
    grammar = LexicalizedGrammar.from_treebank(trees)
    for tree in trees[:3]:
        problem = LexicalizedConstituency(grammar, tree.words)
        gold = lexicalized(tree)
        result = problem.decode()
        assert problem.score(gold) == pytest.approx(grammar.log_probability(spines(gold)))
        assert result.score >= problem.score(gold)
        certus.verify(problem, result)
