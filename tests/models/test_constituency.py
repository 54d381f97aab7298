"""Grammars with the taggers and parsers that they must agree with; grammars and taggers from files of any kind."""

import pytest

import certus
from certus.constituency.lexicalize import LexicalizedTree
from certus.data import demo_grammar, demo_tagger
from certus.io.brackets import parse_tree
from certus.models.constituency import ConstituencyParser, tagging_problem
from certus.models.corpus import read_dependencies, read_tagged, tag_columns
from certus.models.loading import load_grammar, load_tagger

WORDS = ["Red", "flies", "some", "large", "jet"]
TREE = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"


def test_a_grammar_alone_and_with_a_tagger():
    alone, both = ConstituencyParser(demo_grammar()), ConstituencyParser(demo_grammar(), demo_tagger())
    assert isinstance(alone.problem(WORDS), certus.Constituency)
    found = both.problem(WORDS).decode()
    assert both.tree(found.structure).tags == ["PROPN", "VERB", "DET", "ADJ", "NOUN"]
    assert found.certificate.exact
    assert alone.tree(alone.problem(WORDS).decode().structure).tags != both.tree(found.structure).tags


def test_dependencies_need_heads():
    with pytest.raises(certus.InvalidInput, match="lexicalised grammar"):
        ConstituencyParser(demo_grammar(), dependencies=object())


def test_the_tree_of_any_structure():
    tree = parse_tree(TREE)
    for structure in (tree, LexicalizedTree(tree, (-1, 2, 3, 0)), ((tree, [0, 1]), [2, 3])):
        assert ConstituencyParser.tree(structure) is tree


def test_brackets_are_tagged_as_treebanks_spell_them():
    hmm = certus.HMM.estimate([[("-LRB-", "("), ("a", "X"), ("-RRB-", ")")]] * 3)
    problem = tagging_problem(hmm, ["(", "a", ")"])
    assert problem.names(problem.decode().structure) == ["(", "X", ")"]


def test_files_of_any_kind(tmp_path):
    (tmp_path / "g.txt").write_text('1 S -> N V\n0.5 N -> "dogs"\n2 V -> "bark"\n')
    demo_grammar().save(tmp_path / "g.json")
    certus.LexicalizedGrammar.from_treebank([parse_tree(f"(TOP {TREE})")]).save(tmp_path / "l.json")
    demo_tagger().save(tmp_path / "t.json")
    assert load_grammar() is demo_grammar()
    assert load_grammar(tmp_path / "g.txt").tags == ("N", "V")
    assert load_grammar(tmp_path / "g.json").tags == demo_grammar().tags
    assert isinstance(load_grammar(tmp_path / "l.json"), certus.LexicalizedGrammar)
    assert load_tagger(tmp_path / "t.json").tag(WORDS) == demo_tagger().tag(WORDS)


def test_corpora_of_either_format(tmp_path):
    (tmp_path / "a.mrg").write_text(TREE)
    (tmp_path / "a.conllu").write_text(
        "1\tdogs\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
    )
    (tagged,), (tree,) = read_tagged(tmp_path / "a.mrg"), read_dependencies(tmp_path / "a.mrg")
    assert tagged.tagged("xpos") == tagged.tagged("upos") == [("the", "DT"), ("dog", "NN"), ("barks", "VBZ")]
    assert tree.heads.tolist() == [-1, 2, 3, 0]
    assert tag_columns(read_tagged(tmp_path / "a.conllu")) == {"upos"}
    assert [s.words for s in read_dependencies(tmp_path / "a.conllu")] == [["dogs", "bark"]]
