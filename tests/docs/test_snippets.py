"""Every Python block in the README and the docs runs, in order, and prints what it says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = re.compile(r"#\s*->\s*(.*?)\s*$", re.MULTILINE)


def blocks(page: Path) -> list[tuple[int, str]]:
    """(line number, source) of each Python block."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)), found[1]) for found in BLOCK.finditer(text)]


def needs_torch(page: Path) -> bool:
    """Whether a block imports torch."""
    return any("import torch\n" in source for _, source in blocks(page))


RUN = [pytest.param(p, marks=pytest.mark.torch) if needs_torch(p) else p for p in PAGES if blocks(p)]


@pytest.mark.parametrize("page", RUN, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_snippets_run_and_print_what_they_say(page, tmp_path, monkeypatch):
    if needs_torch(page):
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for line, source in blocks(page):
        printed = io.StringIO()
        code = compile("\n" * line + source, str(page), "exec")  # so that a traceback shows the page's own line
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        expected = EXPECTED.findall(source)
        if expected:
            assert printed.getvalue().splitlines() == expected, f"{page.name}:{line + 1}"


def test_the_snippets_of_a_page_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n```python\nx = 1\n```\nb\n```\nnot this\n```\n```python\nprint(x)  # -> 1\n```\n")
    assert blocks(page) == [(2, "x = 1\n"), (9, "print(x)  # -> 1\n")]
