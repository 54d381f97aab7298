"""The wheel with compiled kernels, installed into an environment of its own: make wheel."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PYTHON = os.environ.get("CERTUS_WHEEL_PYTHON", "")
FIRST = 2.0  # seconds that a first parse may take
TREE = ["2", "0", "5", "5", "2"]

pytestmark = [
    pytest.mark.wheel,
    pytest.mark.skipif(
        not PYTHON, reason="CERTUS_WHEEL_PYTHON does not name the Python that the wheel is installed for"
    ),
]


def run(*arguments, **variables):
    """A command of the installed certus, in an empty folder: seconds of the processor, output, messages."""
    dropped = ("NUMBA_", "CERTUS_", "PYTHON")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(dropped)} | variables
    before = os.times()
    done = subprocess.run(
        [PYTHON, "-m", "certus", *arguments], env=environment, capture_output=True, text=True, check=True, cwd="/"
    )
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, done.stdout, done.stderr


def heads(text):
    return [line.split("\t")[6] for line in text.splitlines() if line]


@pytest.fixture(scope="module")
def installed():
    code = "import certus; print(certus.__path__[0])"
    return Path(
        subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True, cwd="/").stdout.strip()
    )


def test_it_is_what_was_built_and_not_the_sources(installed):
    assert installed.parent.name == "site-packages"
    assert (installed / "kernels" / "compiled" / "manifest.json").is_file()
    assert not any(path.stat().st_mode & 0o022 for path in (installed / "kernels" / "compiled").rglob("*"))


@pytest.mark.parametrize(
    "arguments",
    [("parse", "Red flies some large jet"), ("tag", "The dog barks."), ("warmup", "--workers", "1", "--json")],
)
def test_nothing_is_compiled_at_the_first_use(arguments, tmp_path):
    _, out, err = run(*arguments, NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiling" not in err
    assert not list(tmp_path.rglob("*.nbc")), "something was compiled"
    if arguments[0] == "parse":
        assert heads(out) == TREE


def test_a_first_parse_takes_two_seconds_of_the_processor(tmp_path):
    run("parse", "A word", NUMBA_CACHE_DIR=str(tmp_path))  # writes .pyc files, if pip has not
    best = min(run("parse", "Red flies some large jet", NUMBA_CACHE_DIR=str(tmp_path / str(k)))[0] for k in range(3))
    assert best <= FIRST


def test_code_for_the_common_processor_gives_what_code_for_this_one_gives(tmp_path):
    text = "The old man the boat . Time flies like an arrow ; fruit flies like a banana , said Groucho ."
    _, shipped, _ = run("parse", "--certificates", text, NUMBA_CACHE_DIR=str(tmp_path))
    _, compiled, err = run("parse", "--certificates", text, NUMBA_CACHE_DIR=str(tmp_path), CERTUS_COMPILED="0")
    assert "compiling" in err
    assert shipped == compiled


def test_a_damaged_file_of_the_installation_falls_back(installed, tmp_path):
    copy = tmp_path / "certus"
    shutil.copytree(installed, copy)
    for damaged in (copy / "kernels" / "compiled").glob("tagging-*/*"):
        damaged.write_bytes(damaged.read_bytes()[:100])
    code = "import certus; print(certus.Tagging([[0.0, 1.0], [1.0, 0.0]], bigram=[[0.0] * 3] * 3).decode().score)"
    done = subprocess.run(
        [PYTHON, "-c", code],
        env={"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"], "NUMBA_CACHE_DIR": str(tmp_path / "kept")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "2.0"
    assert "compiling" in done.stderr
