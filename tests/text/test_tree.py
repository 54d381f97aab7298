"""Trees: what they hold, how they print, and that no depth is too much."""

import copy
import pickle

import pytest

from certus import InvalidInput, Tree
from certus.io.brackets import parse_tree
from certus.text import Span

SMALL = "(S (NP (D the) (N dog)) (VP (V sees) (NP (NP (N cats)))))"


def deep(depth: int) -> Tree:
    tree = Tree("N", "x")
    for _ in range(depth):
        tree = Tree("A", [tree, Tree("N", "y")])
    return tree


def test_parts():
    tree = parse_tree(SMALL)
    assert tree.words == ["the", "dog", "sees", "cats"]
    assert tree.tags == ["D", "N", "V", "N"]
    assert tree.spans() == [
        Span("S", 0, 4),
        Span("NP", 0, 2),
        Span("VP", 2, 4),
        Span("NP", 3, 4),
        Span("NP", 3, 4),
    ]
    assert Span("V", 2, 3) in tree.spans(preterminals=True)
    assert tree.height() == 5
    assert tree.word is None
    assert tree.subtrees[0].subtrees[0].word == "the"
    assert str(tree) == SMALL
    assert repr(tree) == f"Tree({SMALL!r})"


def test_equality_and_hash():
    assert parse_tree(SMALL) == parse_tree(SMALL)
    assert hash(parse_tree(SMALL)) == hash(parse_tree(SMALL))
    assert parse_tree(SMALL) != parse_tree(SMALL.replace("dog", "cat"))
    assert parse_tree(SMALL) != parse_tree(SMALL.replace("VP", "XP"))
    assert Tree("A", [Tree("B", "b")]) != Tree("A", "b")
    assert Tree("A", "b") != "(A b)"


def test_frozen_and_copied():
    tree = parse_tree(SMALL)
    with pytest.raises(AttributeError, match="immutable"):
        tree.label = "X"
    with pytest.raises(AttributeError, match="immutable"):
        del tree.label
    assert copy.deepcopy(tree) is copy.copy(tree) is tree
    assert pickle.loads(pickle.dumps(tree)) == tree


@pytest.mark.parametrize("children", [[], ["a", "b"], [Tree("A", "a"), "b"], [3]])
def test_wrong_children(children):
    with pytest.raises(InvalidInput, match="expected one word, or one or more trees"):
        Tree("X", children)


def test_label_is_a_string():
    with pytest.raises(InvalidInput, match="label is 3"):
        Tree(3, "a")


def test_very_deep_trees():
    tree = deep(3_000)
    assert len(tree.words) == 3_001
    assert tree == deep(3_000)
    assert hash(tree) == hash(deep(3_000))
    assert parse_tree(str(tree)) == tree
    assert tree.height() == 3_001
    assert len(tree.spans()) == 3_000
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_brackets_in_words_are_escaped():
    tree = Tree("S", [Tree("(", "("), Tree("N", "f(x)")])
    assert str(tree) == "(S (-LRB- -LRB-) (N f-LRB-x-RRB-))"
    assert Tree.from_preorder(tree.preorder()) == tree


def test_pretty_reads_back():
    tree = parse_tree(SMALL)
    assert tree.pretty() == SMALL
    text = tree.pretty(width=30)
    assert text == "(S\n  (NP (D the) (N dog))\n  (VP\n    (V sees)\n    (NP (NP (N cats)))))"
    assert all(len(line) <= 30 for line in text.splitlines())
    assert parse_tree(text) == tree
