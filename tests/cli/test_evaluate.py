"""certus evaluate."""

import json

import pytest

GOLD = "(TOP (S (NP (N dogs)) (VP (V see) (NP (N cats))) (. .)))\n"
SYSTEM = "(TOP (S (NP (N dogs)) (VP (V see) (ADJP (J cats))) (. .)))\n"


def conllu(*rows):
    return (
        "".join(
            f"{i}\t{form}\t_\t{tag}\t_\t_\t{head}\t{rel}\t_\t_\n" for i, (form, tag, head, rel) in enumerate(rows, 1)
        )
        + "\n"
    )


WORDS = conllu(
    ("dogs", "NOUN", 2, "nsubj"), ("see", "VERB", 0, "root"), ("cats", "NOUN", 2, "obj"), (".", "PUNCT", 2, "punct")
)
OTHER = conllu(
    ("dogs", "NOUN", 2, "nsubj:x"), ("see", "NOUN", 0, "root"), ("cats", "NOUN", 2, "obl"), (".", "PUNCT", 3, "punct")
)


@pytest.fixture
def files(tmp_path):
    def write(name, gold, system):
        paths = tmp_path / f"gold.{name}", tmp_path / f"system.{name}"
        for path, text in zip(paths, (gold, system), strict=True):
            path.write_text(text)
        return paths

    return write


def test_brackets(certus, files):
    scores = json.loads(certus("evaluate", "--json", *files("mrg", GOLD + GOLD, GOLD + SYSTEM)).out)
    assert scores == {
        "sentences": 2,
        "words": 6,
        "precision": 87.5,
        "recall": 87.5,
        "F1": 87.5,
        "exact": 50.0,
        "tags": pytest.approx(100 * 5 / 6),
    }


def test_conllu(certus, files):
    scores = json.loads(certus("evaluate", "--json", "--by-length", *files("conllu", WORDS, OTHER)).out)
    assert scores == {
        "sentences": 1,
        "words": 4,
        "UPOS": 75.0,
        "XPOS": 100.0,
        "feats": 100.0,
        "UAS": 75.0,
        "LAS": 50.0,
        "CLAS": pytest.approx(100 * 2 / 3),
        "UAS without punctuation": 100.0,
        "LAS without punctuation": pytest.approx(100 * 2 / 3),
        "UEM": 0.0,
        "LEM": 0.0,
        "by length": {"1-10": {"sentences": 1, "words": 4, "UAS": 75.0, "LAS": 50.0, "UEM": 0.0, "LEM": 0.0}},
    }


def test_table(certus, files):
    lines = certus("evaluate", "--by-length", *files("conllu", WORDS, WORDS)).out.splitlines()
    assert "LAS                       100.00" in lines
    assert lines[-1].split() == ["1-10", "1", "4", "100.00", "100.00", "100.00", "100.00"]


@pytest.mark.parametrize(
    ("name", "gold", "system", "says"),
    [
        ("mrg", GOLD + GOLD, GOLD, "ends after 1 sentences"),
        ("mrg", GOLD, GOLD.replace("dogs", "hogs"), 'word 1 is "hogs"'),
        ("mrg", GOLD, GOLD[:-3], "system.mrg:1"),
        ("mrg", "", "", "no sentences"),
        ("conllu", WORDS, WORDS.replace("cats", "bats"), 'word 3 is "bats"'),
        ("conllu", WORDS, WORDS.replace("\t2\tobj", "\t9\tobj"), "system.conllu:3"),
        ("conllu", WORDS, "", "ends after 0 sentences"),
    ],
)
def test_files_that_do_not_match_are_refused(certus, files, name, gold, system, says):
    assert says in certus("evaluate", *files(name, gold, system)).complaint


def test_formats_must_be_the_same(certus, tmp_path):
    assert "different formats" in certus("evaluate", tmp_path / "a.conllu", tmp_path / "b.mrg").complaint


def test_missing_files_are_refused(certus, tmp_path):
    assert "a.mrg" in certus("evaluate", tmp_path / "a.mrg", tmp_path / "b.mrg").complaint
    assert "a.conllu" in certus("evaluate", tmp_path / "a.conllu", tmp_path / "b.conllu").complaint
