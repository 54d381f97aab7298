"""Compiled kernels are kept, and never met by other sources than theirs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import certus.kernels
from certus.kernels import cache, compiling

INNER = """
from certus.kernels.compiling import njit

@njit(cache=True)
def inner():
    return {}
"""
OUTER = """
from certus.kernels.compiling import njit
from certus.kernels.inner import inner

@njit(cache=True)
def outer():
    return inner()
"""


def answer(folder, **variables):
    """What outer returns in a process of its own, and whether something was compiled for it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")} | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", "from certus.kernels.outer import outer; print(outer())"]
    run = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=True)
    return int(run.stdout), "compiling" in run.stderr


@pytest.fixture
def kernels(tmp_path):
    """The folder of a package with two kernels."""
    kernels = tmp_path / "certus" / "kernels"
    kernels.mkdir(parents=True)
    (tmp_path / "certus" / "__init__.py").touch()
    for module in (certus.kernels, cache, compiling):
        shutil.copy(module.__file__, kernels)
    (kernels / "outer.py").write_text(OUTER)
    (kernels / "inner.py").write_text(INNER.format(1))
    return kernels


@pytest.mark.slow
def test_a_change_in_a_kernel_reaches_those_that_call_it(tmp_path, kernels):
    assert [answer(tmp_path), answer(tmp_path)] == [(1, True), (1, False)]
    (kernels / "inner.py").write_text(INNER.format(2))
    assert [answer(tmp_path), answer(tmp_path)] == [(2, True), (2, False)]


def test_the_cache_is_ours_alone(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "theirs")
    kernel = compiling.njit(cache=True)(answer)
    assert numba.config.CACHE_DIR == "theirs"
    if not numba.config.DISABLE_JIT:
        assert Path(kernel.stats.cache_path).is_relative_to(cache.FOLDER)


@pytest.mark.slow
def test_where_no_folder_can_be_written_kernels_run_uncached(tmp_path, kernels):
    """Files where folders should be: unlike permissions, they stop root too."""
    (kernels / "__pycache__").touch()
    assert answer(tmp_path, HOME=os.devnull, XDG_CACHE_HOME=str(kernels / "inner.py")) == (1, True)
    assert {path.name for path in kernels.iterdir()} == {
        "__init__.py",
        "__pycache__",
        "cache.py",
        "compiling.py",
        "inner.py",
        "outer.py",
    }


def test_the_cache_is_in_the_first_folder_that_can_be_written(tmp_path, kernels, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(cache, "__file__", str(kernels / "cache.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert Path(cache.user_folder()).parent == kernels / "__pycache__"
    shutil.rmtree(kernels / "__pycache__")
    (kernels / "__pycache__").touch()
    assert Path(cache.user_folder()).parent == tmp_path / "user" / "certus"
    monkeypatch.setenv("XDG_CACHE_HOME", "~/.cache")  # as it is for a user without a home
    assert cache.user_folder() is None
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "own"))
    assert Path(cache.user_folder()).parent == tmp_path / "own"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(kernels / "inner.py" / "own"))
    assert cache.user_folder() is None


def test_a_full_disk_does_not_stop_a_kernel_and_leftovers_go(tmp_path, monkeypatch):
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    monkeypatch.setattr(cache, "FOLDER", str(tmp_path))
    kernel = compiling.njit(cache=True)(half)
    folder = Path(kernel.stats.cache_path)
    assert folder.is_relative_to(tmp_path)
    folder.mkdir()
    stale, young, other = (folder / name for name in ("a-1.nbi.tmp.00ff", "b-1.nbc.tmp.00ff", "c-1.nbc"))
    for path in (stale, young, other):
        path.touch()
    for path in (stale, other):
        os.utime(path, (0, 0))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel._cache._cache_file, "save", full)
    assert kernel(4.0) == 2.0
    assert set(folder.iterdir()) == {young, other}


def half(x):
    return x / 2
