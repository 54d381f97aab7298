"""Every script in examples/ runs from a clean process."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
WITH_MARKS = [
    pytest.param(path, marks=pytest.mark.torch) if "import torch\n" in path.read_text(encoding="utf-8") else path
    for path in EXAMPLES
]


@pytest.mark.parametrize("path", WITH_MARKS, ids=lambda p: p.name)
def test_example_runs(path, tmp_path):
    if "import torch\n" in path.read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="torch is not installed")
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_is_an_example_of_joint_parsing():
    assert "joint_parsing.py" in {path.name for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_example_is_listed(path):
    assert f"`{path.name}`" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
