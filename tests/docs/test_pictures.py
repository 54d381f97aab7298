"""Names in the pictures of the design notes are names in the code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "certus"


def words(name):
    """The texts of a picture, blank-separated."""
    picture = (ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
    return " ".join(re.sub(r"<[^>]+>", "", text) for text in re.findall(r"<text[^>]*>.*?</text>", picture, re.DOTALL))


@pytest.mark.parametrize("name", ["parse", "relaxation", "verify"])
def test_files_kernels_and_methods_are_there(name):
    text = words(name)
    files = re.findall(r"\b[a-z_]+(?:/[a-z_]+)*\.py\b", text)
    kernels = re.findall(r"\bkernels\.([a-z_]+)", text)
    assert files
    for path in [*files, *(f"kernels/{kernel}.py" for kernel in kernels)]:
        assert (SOURCE / path).is_file(), path
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    for kind, method in re.findall(r"\b([A-Z][A-Za-z]+)\.([a-z_]+)\b", text):
        assert re.search(rf"^class {kind}\b", code, re.MULTILINE), kind
        assert re.search(rf"^ +def {method}\(", code, re.MULTILINE), f"{kind}.{method}"
    for function in re.findall(r"\b([a-z_]+)\(", text):
        assert re.search(rf"^ *def {function}\(", code, re.MULTILINE), function
