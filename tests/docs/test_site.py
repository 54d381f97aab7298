"""The site that was built last, page by page in a browser: no errors, nothing clipped or wider than the window."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.report.browser import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SITE = Path(__file__).resolve().parents[2] / ".cache" / "site"
CLIPPED = """
[...document.querySelectorAll('.md-content pre, .md-content pre > code')]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 60))
"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and does not speak of it."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def site():
    """The address of the site, served from this process."""
    if not pages():
        pytest.skip("there is no site: make docs or make site builds it")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def pages() -> list[Path]:
    return [path for path in sorted(SITE.rglob("*.html")) if path.name != "404.html"]


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_of_the_site(browser, site, width):
    for page in pages():
        browser.open(f"{site}/{page.relative_to(SITE).as_posix()}", width=width, dark=width == 390)
        assert browser.overflow() <= 0, page
        assert browser.evaluate(CLIPPED) == [], page
        assert not browser.errors, (page, browser.errors)
        broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        assert browser.evaluate(broken) == [], page


def test_formulas_are_drawn_by_the_browser_itself(browser, site):
    browser.open(f"{site}/relaxation.html")
    assert (
        browser.evaluate(
            "[...document.querySelectorAll('math')].filter(m => m.getBoundingClientRect().width > 5).length"
        )
        > 4
    )


def test_every_question_is_under_its_problem(browser, site):
    browser.open(f"{site}/api/tagging.html")
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
