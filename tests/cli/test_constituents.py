"""certus constituents."""

import json
import os

import pytest

import certus as library
from certus.io.brackets import parse_tree

JET = "(TOP (S (NP (PROPN Red)) (VP (VERB flies) (NP (DET some) (NBAR (ADJ large) (NBAR (NOUN jet)))))))"
GRAMMAR = '1 S -> N V\n0.5 N -> "dogs"\n2 V -> "bark"\n'


def test_parser_and_tagger_agree_on_what_the_parser_alone_gets_wrong(certus):
    assert certus("constituents", "Red flies some large jet").out == JET + "\n"
    assert certus("constituents", "--no-joint", "Red flies some large jet").out != JET + "\n"


def test_an_empty_line_gives_an_empty_line(certus):
    ran = certus("constituents", stdin="Red flies some large jet\n\n   \nRed flies some large jet")
    assert (ran.code, ran.out) == (0, f"{JET}\n\n\n{JET}\n")


def test_text_is_tokenised_unless_it_is_already(certus):
    assert "(AUX did) (PART n't)" in certus("constituents", "The dog didn't bark.").out
    assert "didn't)" in certus("constituents", "--tokenised", "The dog didn't bark .").out


def test_brackets_in_the_text_do_not_break_the_tree(certus):
    tree = parse_tree(certus("constituents", "the dog (a big dog) barks").out)
    assert tree.words == ["the", "dog", "-LRB-", "a", "big", "dog", "-RRB-", "barks"]


def test_json_has_the_certificate(certus):
    ran = certus("constituents", "--json", "the old man the boats in the river .", "")
    first, second = ran.out.split("\n")[:2]
    answer = json.loads(first)
    assert answer["exact"] is True
    assert answer["kind"] == "dual"
    assert answer["iterations"] > 1
    assert 0 <= answer["bound"] - answer["score"] < 1e-9
    assert answer["tags"] == ["DET", "NOUN", "VERB", "DET", "NOUN", "ADP", "DET", "NOUN", "PUNCT"]
    assert second == ""


def test_tree_format_is_indented(certus):
    ran = certus("constituents", "--format", "tree", "the old man the boats in the river with a large telescope .")
    assert ran.out.startswith("(TOP\n  (S\n")
    assert ran.out.endswith("\n\n")


def test_unknown_words_are_parsed(certus):
    ran = certus("constituents", "the blorp zorked some glimmy snarks .")
    assert ran.code == 0
    assert "(VERB zorked)" in ran.out


def test_a_word_that_a_grammar_does_not_know_is_named(certus, tmp_path):
    path = tmp_path / "g.txt"
    path.write_text(GRAMMAR)
    ran = certus("constituents", "--no-joint", "--grammar", path, stdin="dogs bark\ndogs meow\ndogs bark\n")
    assert "stdin:2" in ran.complaint
    assert '"meow"' in ran.complaint
    assert ran.out == "(S (N dogs) (V bark))\n\n(S (N dogs) (V bark))\n"  # the others are parsed, lines stay aligned


def test_a_sentence_without_a_tree_says_how_far_the_parser_got(certus):
    ran = certus("constituents", "--json", stdin="the the of\nthe dog barks\n")
    assert "stdin:1" in ran.complaint
    assert '"the"' in ran.complaint
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert "error" in lines[0]
    assert "tree" in lines[1]


def test_a_sentence_of_200_words(certus):
    words = ("the dog and the cat saw a fish in the river with " * 20).split()[:200]
    words[-1] = "fish"
    answer = json.loads(certus("constituents", "--json", "--tokenised", " ".join(words)).out)
    assert answer["words"] == words
    assert answer["bound"] >= answer["score"] - 1e-9


def test_a_tagger_with_other_tags_than_the_grammar_is_refused(certus, tmp_path):
    path = tmp_path / "g.txt"
    path.write_text(GRAMMAR)
    assert "tags" in certus("constituents", "--grammar", path, "dogs bark").complaint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 S -> N V\noops\n", ":2: "),
        ("nan S -> N\n", ":1: "),
        ("", "no rules"),
        ('{"format": "certus gram', ":1: not valid JSON"),
        ('{"format": "something else"}', "not a certus grammar"),
        ("1 A -> B\n1 B -> A\n", "cycle"),
    ],
)
def test_a_damaged_grammar_is_refused(certus, tmp_path, text, says):
    path = tmp_path / "g"
    path.write_text(text)
    ran = certus("constituents", "--grammar", path, "dogs bark")
    assert says in ran.complaint
    assert str(path) in ran.complaint
    assert ran.out == ""


def test_missing_files_and_garbage(certus, tmp_path):
    assert "missing" in certus("constituents", "--grammar", tmp_path / "missing", "a").complaint
    assert "missing" in certus("constituents", "--tagger", tmp_path / "missing", "a").complaint
    assert "missing.txt" in certus("constituents", tmp_path / "missing.txt").complaint
    garbage = tmp_path / "garbage"
    garbage.write_bytes(bytes(range(256)))
    assert "garbage" in certus("constituents", garbage).complaint
    assert "garbage" in certus("constituents", "--grammar", garbage, "a").complaint
    assert "garbage" in certus("constituents", "--tagger", garbage, "a").complaint
    assert "stdin:1" in certus("constituents", stdin=b"\xff\xfe").complaint


def test_a_limit_is_said_and_the_gap_is_honest(certus):
    ran = certus(
        "constituents",
        "--json",
        "--max-iterations",
        1,
        "--time-limit",
        0,
        "the old man the boats in the river .",
    )
    if ran.code == 0:
        answer = json.loads(ran.out)
        assert answer["exact"] or "not proved optimal" in ran.err


def test_save_result_takes_one_sentence_and_leaves_nothing_otherwise(certus, tmp_path):
    path = tmp_path / "r.json"
    assert (
        "second sentence"
        in certus("constituents", "--save-result", path, stdin="the dog barks\nthe cat sleeps\n").complaint
    )
    assert "nothing to save" in certus("constituents", "--save-result", path, stdin="\n").complaint
    assert os.listdir(tmp_path) == []
    assert certus("constituents", "--save-result", path, "the dog barks").code == 0
    assert os.listdir(tmp_path) == ["r.json"]


@pytest.mark.parametrize("options", [(), ("--no-joint",)])
def test_the_result_that_is_saved_is_the_one_that_is_printed(certus, tmp_path, monkeypatch, options):
    decoded = []
    for kind in (library.Constituency, library.Joint):
        monkeypatch.setattr(kind, "decode", watched(kind.decode, decoded))
    path = tmp_path / "r.json"
    text = "the old man the boats in the river ."
    ran = certus("constituents", "--json", *options, "--save-result", path, text)
    problem, saved = library.load_result(path)
    answer = json.loads(ran.out)
    trees = saved.structure if options else saved.structure[0]
    assert str(trees) == answer["tree"]
    assert (saved.score, saved.certificate.bound) == (answer["score"], answer["bound"])
    assert problem.score(saved.structure) == answer["score"]
    assert len(decoded) == 1


def watched(decode, calls):
    """The method, noting each call."""

    def called(self, **options):
        calls.append(self)
        return decode(self, **options)

    return called


def test_a_result_that_cannot_be_written_leaves_nothing(certus, tmp_path):
    (tmp_path / "taken").mkdir()
    assert certus("constituents", "--save-result", tmp_path / "no" / "r.json", "the dog barks").complaint
    assert certus("constituents", "--save-result", tmp_path / "taken", "the dog barks").complaint
    assert os.listdir(tmp_path) == ["taken"]
    assert os.listdir(tmp_path / "taken") == []
