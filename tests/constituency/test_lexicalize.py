"""Head rules, and lexicalised trees to dependencies, to spines, and back without loss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import FormatError, InvalidInput, LexicalizedTree, Tree
from certus.constituency import HeadRules
from certus.constituency.lexicalize import from_spines, lexicalized, spines, to_sentence
from certus.io.brackets import parse_tree, read_trees
from tests.constituency.strategies import trees
from tests.data import shared_data

SENTENCE = "(TOP (S (NP (DT the) (NN dog)) (, ,) (VP (VBD saw) (NP (NP (NNS cats)) (CC and) (NP (NNS mice)))) (. .)))"


@pytest.mark.parametrize(
    ("phrase", "children", "head"),
    [
        ("S", "NP VP .", 1),
        ("VP", "MD RB VP", 0),
        ("VP", "TO VP", 0),
        ("NP", "DT JJ NN NN", 3),
        ("NP", "NP PP", 0),
        ("NP", "NNP POS", 1),
        ("NP", "NP , NP", 0),
        ("NP", "NP CC NP", 0),
        ("NP", "NN CC NN", 0),
        ("NP", ", CC NN", 2),
        ("PP", "IN NP", 0),
        ("SBAR", "WHNP S", 0),
        ("QP", "IN $ CD", 1),
        ("UCP", "NP CC ADJP", 0),
        ("X", ", NN", 1),
        ("X", ", ,", 0),
        ("WHATEVER", "A B", 0),
        ("FRAG", "A B .", 1),
    ],
)
def test_heads_of_penn_phrases(phrase, children, head):
    assert HeadRules.penn().head(phrase, children.split()) == head


def test_rules_from_text():
    rules = HeadRules.from_text("A left X Y\nA right Z|W\n* right\nconjunctions and\n# nothing\n")
    assert rules.head("A", ["W", "Y", "X"]) == 2
    assert rules.head("A", ["Z", "W", "Q"]) == 1
    assert rules.head("A", ["Q", "R"]) == 1
    assert rules.head("B", ["Q", "and"]) == 0
    assert rules.head("B", ["Q", "and", "R"]) == 0
    with pytest.raises(FormatError, match=r'rules:2: after "B" stands "up"'):
        HeadRules.from_text("A left\nB up X\n", path="rules")
    with pytest.raises(FormatError, match="cannot be read"):
        HeadRules.load("nowhere")


def test_a_sentence():
    tree = lexicalized(parse_tree(SENTENCE))
    assert tree.heads == (-1, 2, 4, 4, 0, 4, 5, 5, 4)
    parts = spines(tree)
    assert parts.spine[4] == ("VBD", "VP", "S", "TOP")
    assert parts.spine[5] == ("NNS", "NP", "NP")
    assert parts.level[1:] == (1, 2, 2, 0, 1, 2, 2, 2)
    sentence = to_sentence(tree)
    assert [token.deprel for token in sentence][:3] == ["DT|NP", "NP|S", ",|S"]
    assert np.array_equal(sentence.heads, tree.dependencies)


@settings(max_examples=50)
@given(trees(), st.randoms(use_true_random=False))
def test_no_bracket_is_lost(tree, random):
    class AnyRules(HeadRules):
        def head(self, phrase, children):
            return random.randrange(len(children))

    for rules in (None, AnyRules({})):
        lexical = lexicalized(tree, rules)
        assert lexical.tree == tree
        assert from_spines(spines(lexical)) == lexical


def test_heads_that_do_not_fit():
    tree = parse_tree("(S (NP (N a) (N b)) (V c))")
    assert spines(LexicalizedTree(tree, (-1, 2, 3, 0))).level == (0, 1, 1, 0)
    with pytest.raises(InvalidInput, match=r"\(NP ...\) joins words \[1, 2\]"):
        spines(LexicalizedTree(tree, (-1, 3, 3, 0)))
    with pytest.raises(InvalidInput, match="expected -1 and the heads"):
        spines(LexicalizedTree(tree, (-1, 2, 0)))
    with pytest.raises(InvalidInput, match="whose head is not 0"):
        spines(LexicalizedTree(Tree("N", "a"), (-1, 1)))


@pytest.mark.slow
def test_no_bracket_of_a_treebank_is_lost():
    for tree in read_trees(shared_data("ptb-sample", "dev.mrg.gz"), clean=True):
        lexical = lexicalized(tree)
        assert from_spines(spines(lexical)).tree == tree
