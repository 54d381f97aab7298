"""The site that was built last, page by page in a browser: no errors, nothing clipped or wider than the window."""

from pathlib import Path

import pytest

from tests.report.browser import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SITE = Path(__file__).resolve().parents[2] / ".cache" / "site"
CLIPPED = """
[...document.querySelectorAll('.md-content pre, .md-content pre > code')]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 60))
"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


def pages() -> list[Path]:
    return [path for path in sorted(SITE.rglob("*.html")) if path.name != "404.html"]


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_of_the_site(browser, width):
    if not pages():
        pytest.skip("there is no site: make docs or make site builds it")
    for page in pages():
        browser.open(page, width=width, dark=width == 390)
        assert browser.overflow() <= 0, page
        assert browser.evaluate(CLIPPED) == [], page
        assert not browser.errors, (page, browser.errors)
        broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        assert browser.evaluate(broken) == [], page


def test_formulas_are_drawn_by_the_browser_itself(browser):
    page = SITE / "relaxation.html"
    if not page.exists():
        pytest.skip("there is no site: make docs or make site builds it")
    browser.open(page)
    assert (
        browser.evaluate(
            "[...document.querySelectorAll('math')].filter(m => m.getBoundingClientRect().width > 5).length"
        )
        > 4
    )


def test_every_question_is_under_its_problem(browser):
    page = SITE / "api" / "tagging.html"
    if not page.exists():
        pytest.skip("there is no site: make docs or make site builds it")
    browser.open(page)
    for question in (
        "decode",
        "kbest",
        "sample",
        "log_partition",
        "marginals",
        "max_marginals",
        "entropy",
        "subject_to",
    ):
        assert browser.evaluate(f"document.getElementById('certus.Tagging.{question}') !== null"), question
