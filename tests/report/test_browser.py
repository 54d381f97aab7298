"""Pages in a real browser: no errors, nothing wider than the window, clicks and sliders do what they should."""

import numpy as np
import pytest

import certus
from certus.data import demo_grammar, demo_tagger
from certus.report.comparison import compare_parses
from certus.report.explanation import explain_parse, explain_result
from certus.report.page import figures
from certus.text import Sentence
from certus.translation.kneser_ney import estimate_kneser_ney
from tests.report.browser import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]
HOSTILE = "<script>alert(1)</script>"
WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pipeline():
    return certus.load()


def click(browser, selector: str) -> None:
    browser.evaluate(f"document.querySelector({selector!r}).dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")


def text(browser, selector: str) -> str:
    return browser.evaluate(f"document.querySelector({selector!r}).textContent")


def checked(browser, path, width, dark=False) -> None:
    browser.open(path, width=width, dark=dark)
    assert not browser.errors
    assert browser.overflow() == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_a_parse_is_explained(browser, pipeline, tmp_path, width):
    words = ["I", "saw", "a", "man", "with", HOSTILE, "&amp;", "</script>", "."]
    path = tmp_path / "page.html"
    path.write_text(explain_parse(pipeline, Sentence.from_words(words)), encoding="utf-8")
    checked(browser, path, width, dark=width == 390)
    click(browser, "#tree [data-word='6']")
    assert HOSTILE in text(browser, "#word h3")
    assert browser.evaluate("document.querySelectorAll('.word.chosen').length") == 1
    click(browser, "#after")
    assert text(browser, "#rank") == "2 of 5"
    assert "less than the best" in text(browser, "#rank-said")
    click(browser, "#tree [data-word='2']")
    assert "“saw” has the head" in text(browser, "#word h3")
    browser.evaluate("explain(data.first)")  # the word with the closest rival
    click(browser, "#word summary")
    assert browser.overflow() == 0
    assert browser.evaluate("document.scripts.length") == 2
    assert not browser.errors


def joint():
    words = ["Red", "flies", "some", "large", "jet"]
    return certus.Joint(certus.Constituency(demo_grammar(), words), demo_tagger().tagging(words), on="tags")


def crossing():
    rng = np.random.default_rng(3)
    arc, sibling = rng.normal(size=(9, 9)), rng.normal(size=(9, 9, 9))
    return certus.Dependency(arc, sibling=3 * sibling, projective=False)


def translation():
    text = ["we must take this criticism seriously", "we must see this", "take this seriously", HOSTILE]
    lm = certus.LanguageModel(estimate_kneser_ney([line.split() for line in text], order=3).arpa)
    made = [(0, 1, "we must", -0.5), (2, 2, "this", 0.5), (3, 3, HOSTILE, 0.3), (4, 4, "seriously", -0.7)]
    options = [certus.PhraseOption(a, b, tuple(words.split()), score) for a, b, words, score in made]
    options.append(certus.PhraseOption(5, 5, ("take",), -6.0))
    return certus.PhraseTranslation(options, lm, source=["wir", "müssen", "diese", HOSTILE, "ernst", "nehmen"])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("make", [joint, crossing, translation])
def test_the_proof_is_a_film(browser, tmp_path, make, width):
    problem = make()
    path = tmp_path / "page.html"
    path.write_text(explain_result(problem, problem.decode(), kbest=1), encoding="utf-8")
    checked(browser, path, width)
    last = int(browser.evaluate("document.getElementById('round').max"))
    first = text(browser, "#dual")
    assert last > 0
    if make is not translation:  # whose words say how often they are translated
        assert browser.evaluate("document.querySelectorAll('.apart').length") > 0
    browser.evaluate(f"r = document.getElementById('round'), r.value = {last}, r.dispatchEvent(new Event('input'))")
    assert text(browser, "#round-number") == f"Round {last + 1} of {last + 1}"
    assert text(browser, "#dual") != first
    assert float(text(browser, "#dual")) >= float(text(browser, "#primal")) - 1e-6
    click(browser, "#play")
    assert text(browser, "#round-number") == f"Round 1 of {last + 1}"
    browser.evaluate("new Promise(done => setTimeout(done, 900))")
    assert text(browser, "#round-number") == f"Round 2 of {last + 1}"
    assert browser.overflow() == 0
    assert not browser.errors


@pytest.mark.parametrize("width", WIDTHS)
def test_parses_are_compared(browser, pipeline, tmp_path, width):
    (a,) = pipeline.parse([Sentence.from_words(["I", "saw", HOSTILE, "with", "a", "telescope", "."])])
    (b,) = pipeline.parse([Sentence.from_words(a.words)])
    b.tokens[2].head = 0 if a.tokens[2].head else 2
    b.tokens[4].deprel = "other"
    path = tmp_path / "page.html"
    path.write_text(compare_parses([(a, b)], ("gold", HOSTILE)), encoding="utf-8")
    checked(browser, path, width)
    assert text(browser, "#found") == "2 words in 1 sentences"
    browser.evaluate("k = document.getElementById('kind'), k.value = 'label', k.dispatchEvent(new Event('input'))")
    assert text(browser, "#found") == "1 words in 1 sentences"
    browser.evaluate("k = document.getElementById('form'), k.value = 'nothing', k.dispatchEvent(new Event('input'))")
    assert text(browser, "#found") == "0 words in 0 sentences"
    assert not browser.errors


def test_long_sentences_scroll_inside_the_page(browser, pipeline, tmp_path):
    (long,) = pipeline.parse([Sentence.from_words(["supercalifragilistic"] * 80)])
    path = tmp_path / "page.html"
    path.write_text(figures("Long", [(long.picture(), "long")]), encoding="utf-8")
    for width in WIDTHS:
        checked(browser, path, width)
