"""Bracketed trees: streaming, cleaning, and errors that name the line."""

import gzip

import pytest
from hypothesis import given

from certus import FormatError
from certus.io.brackets import clean_tree, parse_tree, parse_trees, read_trees, write_trees
from tests.constituency.strategies import trees
from tests.data import shared_data


def test_outer_bracket_without_label_and_several_lines(tmp_path):
    path = tmp_path / "trees.mrg"
    path.write_text("( (S (NP (N dogs))\n   (VP\n (V bark))) )\n\n(TOP (S (N a)))((X b))")
    found = list(read_trees(path))
    assert [str(tree) for tree in found] == ["(TOP (S (NP (N dogs)) (VP (V bark))))", "(TOP (S (N a)))", "(TOP (X b))"]
    assert [tree.label for tree in read_trees(path, root="ROOT")] == ["ROOT", "TOP", "ROOT"]


def test_gzip_and_writing(tmp_path):
    tree = parse_tree("(S (N a) (V b))")
    packed = tmp_path / "trees.mrg.gz"
    packed.write_bytes(gzip.compress(f"{tree}\n{tree}".encode()))
    assert list(read_trees(packed)) == [tree, tree]
    write_trees(tmp_path / "out.mrg", [tree, tree])
    assert (tmp_path / "out.mrg").read_text() == "(S (N a) (V b))\n(S (N a) (V b))\n"


def test_streams():
    lines = iter(["(A (B b))", "(broken"])
    assert str(next(parse_trees(lines))) == "(A (B b))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (N a)\n\n", "f:2: the file ends inside a tree: the bracket opened on line 1 is never closed"),
        ("(S (N a))\n)", r'f:2: "\)" without an opening bracket'),
        ("\nword", 'f:2: "word" stands outside all brackets'),
        ("(S (N a b))", 'f:1: the word "b" is not the only child'),
        ("(S\n(N))", r"f:2: \(N\) has no children"),
        ("()", r"f:1: empty bracket \(\)"),
        ("(S ((N a)))", "f:1: a bracket inside a tree has no label"),
        ("(S (N a (M b)))", r'f:1: "\(" after the word "a"'),
        ("((N a) b)", 'f:1: the word "b" follows a tree'),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(FormatError, match=message):
        list(parse_trees(text.splitlines(), path="f"))


def test_unreadable_files(tmp_path):
    with pytest.raises(FormatError, match="cannot be read"):
        list(read_trees(tmp_path / "missing"))
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"(A (B b))" * 100)[:-9])
    with pytest.raises(FormatError, match="damaged or cut short"):
        list(read_trees(cut))
    latin = tmp_path / "latin"
    latin.write_bytes(b"(A (B \xff))")
    with pytest.raises(FormatError, match="not UTF-8"):
        list(read_trees(latin))
    with pytest.raises(FormatError, match="holds 2 trees"):
        parse_tree("(A a)(B b)")


def test_cleaning():
    tree = parse_tree(
        "( (S-TPC-1 (NP-SBJ (-NONE- *T*-1)) (VP (V see) (NP=2 (-LRB- -LRB-) (N-X x)) (X (-NONE- 0) (S (-NONE- *))))))"
    )
    assert str(clean_tree(tree)) == "(TOP (S (VP (V see) (NP (-LRB- -LRB-) (N-X x)))))"
    assert clean_tree(parse_tree("( (S (NP (-NONE- *))))")) is None


@given(trees())
def test_text_round_trip(tree):
    assert parse_tree(str(tree)) == tree
    assert parse_tree(tree.pretty(width=20)) == tree


def test_penn_sample():
    path = shared_data("ptb-sample", "dev.mrg.gz")
    cleaned = list(read_trees(path, clean=True))
    assert len(cleaned) == 276
    assert sum(len(tree.words) for tree in cleaned) == 6368
    assert sum(len(tree.words) for tree in read_trees(path)) == 6816
