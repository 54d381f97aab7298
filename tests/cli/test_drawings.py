"""Drawings and pages from the command line: parse --format, explain --output, compare, calibrate, plot."""

from xml.etree import ElementTree

import pytest

TEXT = "Red flies some large jet."
pytestmark = pytest.mark.compiled  # the bundled parser


def test_parses_are_drawn(certus):
    assert "▶ Red" in certus("parse", "--format", "ascii", TEXT).out
    svg = ElementTree.fromstring(certus("parse", "--format", "svg", "--confidences", f"{TEXT} Dogs bark.").out)
    assert len(svg.findall("{http://www.w3.org/2000/svg}svg")) == 2
    page = certus("parse", "--format", "html", "<b>Dogs</b> bark.").out
    assert page.startswith("<!doctype html>")
    assert "<b>" not in page
    assert "Proved: it scores" in page


def test_a_sentence_is_explained_on_a_page(certus, tmp_path):
    assert certus("explain", TEXT, "--output", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Proved optimal" in page
    assert "rivals" in page
    assert "https://" not in page


def test_a_saved_result_is_explained_on_a_page(certus, tmp_path):
    saved, page = tmp_path / "r.json", tmp_path / "page.html"
    certus("constituents", "--save-result", saved, "Red flies some large jet")
    assert certus("explain", "--result", saved, "--output", page).code == 0
    assert "The proof, round by round" in page.read_text(encoding="utf-8")
    assert "say where with --output" in certus("explain", "--result", saved).complaint
    assert "another name" in certus("explain", "--result", saved, "--output", saved).complaint
    assert "--words are for --result" in certus("explain", TEXT, "--words", "a").complaint


def test_two_parses_are_compared(certus, tmp_path):
    a, b, page = tmp_path / "a.conllu", tmp_path / "b.conllu", tmp_path / "page.html"
    a.write_text(certus("parse", TEXT).out, encoding="utf-8")
    b.write_text(a.read_text(encoding="utf-8").replace("\tdet\t", "\tother\t"), encoding="utf-8")
    assert certus("compare", a, b, "--output", page).code == 0
    assert "1, of which 1 differ" in page.read_text(encoding="utf-8")
    b.write_text(b.read_text(encoding="utf-8") * 2, encoding="utf-8")
    assert "a.conllu ends before sentence 2" in certus("compare", a, b, "--output", page).complaint


def test_confidences_are_calibrated(certus, tmp_path):
    gold, fitted = tmp_path / "gold.conllu", tmp_path / "c.json"
    gold.write_text(certus("parse", f"{TEXT} Dogs bark.").out, encoding="utf-8")
    assert "0.0000 after" in certus("calibrate", gold, "--output", fitted).out
    parsed = certus("parse", gold, "--confidences", "--calibration", fitted).out
    assert parsed.count("Confidence=1.0000") == 9
    assert "gold.conllu" in certus("calibrate", gold, "--output", gold).complaint


def test_plots_say_what_they_need(certus, tmp_path):
    log = tmp_path / "log"
    log.write_text("nothing\n")
    assert "takes 2 files; 1 were given" in certus("plot", "calibration", log, "--output", tmp_path / "a.svg").complaint
    assert "no epoch with an accuracy" in certus("plot", "learning", log, "--output", tmp_path / "a.svg").complaint
    certus("constituents", "--no-joint", "--save-result", tmp_path / "r.json", "Red flies some large jet")
    said = certus("plot", "steps", tmp_path / "r.json", "--output", tmp_path / "a.svg").complaint
    assert "not of a problem that is relaxed step by step" in said


def test_plots_are_drawn(certus, tmp_path):
    pytest.importorskip("matplotlib")
    certus("constituents", "--save-result", tmp_path / "r.json", "Red flies some large jet")
    (tmp_path / "gold.conllu").write_text(certus("parse", "--confidences", TEXT).out, encoding="utf-8")
    gold = tmp_path / "gold.conllu"
    asked = {"convergence": ["r.json"], "gap": ["r.json"], "steps": ["r.json"], "lengths": [gold]}
    asked["calibration"] = [gold, gold]
    for kind, files in asked.items():
        out = tmp_path / f"{kind}.svg"
        assert certus("plot", kind, *(tmp_path / file for file in files), "--output", out).code == 0
        assert out.read_text(encoding="utf-8").startswith("<?xml")
