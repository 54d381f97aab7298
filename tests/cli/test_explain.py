"""certus explain."""

import json

import pytest

SENTENCE = "Red flies some large jet"


def test_every_word_has_a_line_with_its_head_and_the_next_best(certus):
    ran = certus("explain", SENTENCE)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4", "5"]
    assert lines[1].startswith("2 flies <- 0 root (root), not ")
    assert all(float(line.rpartition(": ")[2]) > 0 for line in lines)


def test_features_of_one_word_add_up_to_the_margin(certus):
    whole = json.loads(certus("explain", SENTENCE, "--word", "3", "--instead", "2", "--json").out)
    assert (whole["form"], whole["head"], whole["instead"]) == ("some", 5, 2)
    assert whole["other_heads"][2] == 2
    assert sum(feature["weight"] for feature in whole["features"]) == pytest.approx(whole["margin"])
    shown = certus("explain", SENTENCE, "--word", "3", "--instead", "2", "--features", "4").out.splitlines()
    assert shown[0] == f"3 some <- 5 jet (det), not 2 flies: {whole['margin']:+.4f}"
    groups = [line.split() for line in shown[1:] if line.split()[0] != "then" and not line.startswith("     ")]
    assert sum(float(row[0]) for row in groups) == pytest.approx(whole["margin"], abs=1e-3)
    assert ["Sister", "modifiers"] in [row[1:] for row in groups]
    strongest = [line for line in shown if line.startswith("      ")]
    assert len(strongest) == 4
    assert not any("=" in line for line in strongest)


def test_a_sentence_of_a_file_is_chosen(certus, tmp_path):
    (tmp_path / "two.txt").write_text("Dogs bark. Red flies some large jet.")
    assert "5 jet <- 2 flies" in certus("explain", tmp_path / "two.txt", "--sentence", "2").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((SENTENCE, "--instead", "2"), "say which with --word"),
        ((SENTENCE, "--sentence", "2"), "fewer than 2 sentences"),
        ((SENTENCE, "--word", "9"), "no word 9"),
        ((SENTENCE, "--word", "1", "--instead", "1"), "not the word itself"),
        (("Yes",), "1 words and one tree"),
    ],
)
def test_what_cannot_be_explained_is_refused(certus, arguments, says):
    assert says in certus("explain", *arguments).complaint
