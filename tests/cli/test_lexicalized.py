"""certus train grammar --lexicalized, and certus constituents with what it makes, alone and jointly."""

import json

import pytest

TREES = [
    "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))) (. .)))",
    "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ barks)) (. .)))",
    "(TOP (S (NP (NP (DT a) (NN man)) (PP (IN with) (NP (DT a) (NN dog)))) (VP (VBZ sees) (NP (NN cat))) (. .)))",
]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "trees.mrg").write_text("\n".join(TREES) + "\n")
    (tmp_path / "text").write_text(
        "\n".join(" ".join(w.rstrip(")") for w in t.split() if ")" in w) for t in TREES) + "\n"
    )
    return tmp_path


def test_grammar_and_tagger_jointly(certus, files):
    grammar, tagger = files / "g.json", files / "t.json"
    ran = certus("train", "grammar", "--lexicalized", "--treebank", files / "trees.mrg", "--output", grammar)
    assert ran.code == 0
    assert "LexicalizedGrammar" in ran.err
    alone = certus("constituents", "--grammar", grammar, "--tokenised", files / "text")
    assert alone.out.splitlines() == TREES
    assert certus("train", "tagger", "--hmm", "--train", files / "trees.mrg", "--output", tagger).code == 0
    ran = certus(
        "constituents",
        "--grammar",
        grammar,
        "--tagger",
        tagger,
        "--tagger-weight",
        "0.5",
        "--tokenised",
        "--json",
        files / "text",
    )
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [a["tree"] for a in answers] == TREES
    assert all(a["exact"] for a in answers)
    (files / "out.mrg").write_text(alone.out)
    assert json.loads(certus("evaluate", files / "trees.mrg", files / "out.mrg", "--json").out)["F1"] == 100.0
    assert "--weight is for a lexicalised" in certus("constituents", "--format", "tree", "--weight", "2", "a").complaint
    assert (
        "leave out --tagger"
        in certus("constituents", "--no-joint", "--grammar", grammar, "--tagger", tagger, "a").complaint
    )


def test_head_rules_of_ones_own(certus, files):
    (files / "heads").write_text("* right\n")
    grammar = files / "g.json"
    command = "train", "grammar", "--lexicalized", "--treebank", files / "trees.mrg", "--output", grammar
    assert certus(*command, "--heads", files / "heads").code == 0
    assert certus("constituents", "--grammar", grammar, "the cat barks .").out == TREES[1] + "\n"
    (files / "heads").write_text("S middle\n")
    assert "heads:1" in certus(*command, "--heads", files / "heads").complaint


@pytest.mark.slow
def test_a_dependency_parser_from_brackets_agrees_with_the_grammar(certus, files):
    grammar, model, result = files / "g.json", files / "model", files / "result.json"
    trees = files / "trees.mrg"
    assert certus("train", "grammar", "--lexicalized", "--treebank", trees, "--output", grammar).code == 0
    small = "--order", "2", "--epochs", "3", "--bits", "12", "--tagger"
    assert certus("train", "parser", "--train", trees, "--output", model, *small).code == 0
    ran = certus("constituents", "--grammar", grammar, "--model", model, "--weight", "1", "--tokenised", files / "text")
    assert ran.out.splitlines() == TREES
    one = "constituents", "--grammar", grammar, "--model", model, "the cat barks .", "--save-result", result
    assert certus(*one).out == TREES[1] + "\n"
    assert certus("verify", result).code == 0
