"""The English model that comes with the package, on the command line."""

import json


def heads(output):
    return [int(line.split("\t")[6]) for line in output.splitlines() if line and not line.startswith("#")]


def test_text_is_parsed_straight_after_installation(certus):
    ran = certus("parse", "The dog sees a big cat.")
    assert ran.code == 0
    assert heads(ran.out) == [2, 3, 0, 6, 6, 3, 3]
    assert [line.split("\t")[3] for line in ran.out.splitlines() if line] == [
        "DET", "NOUN", "VERB", "DET", "ADJ", "NOUN", "PUNCT",
    ]  # fmt: skip
    assert [line.split("\t")[7] for line in ran.out.splitlines() if line] == [
        "det", "nsubj", "root", "det", "amod", "obj", "punct",
    ]  # fmt: skip


def test_text_is_split_into_sentences(certus):
    ran = certus("parse", "--json", stdin="He isn't here. I saw\nthe man.\n\nWho?")
    words = [[token["form"] for token in json.loads(line)["tokens"]] for line in ran.out.splitlines()]
    assert words == [["He", "is", "n't", "here", "."], ["I", "saw", "the", "man", "."], ["Who", "?"]]


def test_every_tree_is_proved(certus):
    ran = certus("parse", "--json", "--certificates", "--confidences", "Red flies some large jet")
    answer = json.loads(ran.out)
    assert answer["exact"] is True
    assert [token["deprel"] for token in answer["tokens"]].count("root") == 1
    assert all(0 < token["confidence"] <= 1 for token in answer["tokens"])


def test_trees_are_saved_as_they_are_printed(certus, tmp_path):
    ran = certus("parse", "--json", "--certificates", "--save-results", tmp_path / "saved", "I saw it. He slept.")
    files = sorted((tmp_path / "saved").iterdir())
    assert [path.name for path in files] == ["000001.json", "000002.json"]
    for line, path in zip(ran.out.splitlines(), files, strict=True):
        printed, saved = json.loads(line), json.loads(path.read_text())
        assert saved["structure"] == [-1, *(token["head"] for token in printed["tokens"])]
        assert (saved["score"], saved["certificate"]["bound"]) == (printed["score"], printed["bound"])
        assert saved["digests"]["model"] == printed["model_digest"]
    checked = certus("verify", *files)
    assert checked.code == 0
    assert checked.out.count("verified, optimal") == 2


def test_words_are_tagged(certus):
    assert certus("tag", "The dog saw me.").out == "The/DET dog/NOUN saw/VERB me/PRON ./PUNCT\n"


def test_a_model_that_does_not_exist_is_named(certus):
    assert "xx: there is no parser" in certus("parse", "--model", "xx", "a dog").complaint
