"""What the pages and the sources refer to exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIB_KEYS = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "docs/references.bib").read_text(encoding="utf-8"), re.MULTILINE))
CITATION = re.compile(r"(?<!\w)\[([A-Z][A-Za-z]+\d\d)\]")


def test_the_page_of_references_lists_the_bibliography():
    page = (ROOT / "docs/references.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\*\*\[(\w+)\]\*\*", page, re.MULTILINE)) == BIB_KEYS


@pytest.mark.parametrize("folder", ["src", "docs", "examples", "tests"])
def test_every_citation_is_in_the_bibliography(folder):
    for path in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.md")]:
        cited = set(CITATION.findall(path.read_text(encoding="utf-8")))
        assert cited <= BIB_KEYS, f"{path.relative_to(ROOT)} cites {sorted(cited - BIB_KEYS)}"


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r":\s+([\w/]+\.md)\s*$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    pages |= {path.relative_to(ROOT / "docs").with_suffix(".md") for path in (ROOT / "docs/tutorials").glob("*.py")}
    assert listed == {path.as_posix() for path in pages}


def test_every_public_name_is_in_the_api():
    import certus

    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/api").glob("*.md"))
    assert set(re.findall(r"^::: certus\.(\w+)$", text, re.MULTILINE)) == set(certus.__all__)


def test_the_version_is_the_same_everywhere():
    import tomllib

    import certus

    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert certus.__version__ == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
