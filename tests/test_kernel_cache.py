"""Compiled kernels are kept, and never met by other sources than theirs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import certus.kernels

INNER = """
from certus.kernels import njit

@njit(cache=True)
def inner():
    return {}
"""
OUTER = """
from certus.kernels import njit
from certus.kernels.inner import inner

@njit(cache=True)
def outer():
    return inner()
"""


def answer(folder):
    """What outer returns in a process of its own, and whether something was compiled for it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")} | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", "from certus.kernels.outer import outer; print(outer())"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(run.stdout), "compiling" in run.stderr


@pytest.mark.slow
def test_a_change_in_a_kernel_reaches_those_that_call_it(tmp_path):
    kernels = tmp_path / "certus" / "kernels"
    kernels.mkdir(parents=True)
    (tmp_path / "certus" / "__init__.py").touch()
    shutil.copy(certus.kernels.__file__, kernels)
    (kernels / "outer.py").write_text(OUTER)
    (kernels / "inner.py").write_text(INNER.format(1))
    assert [answer(tmp_path), answer(tmp_path)] == [(1, True), (1, False)]
    (kernels / "inner.py").write_text(INNER.format(2))
    assert [answer(tmp_path), answer(tmp_path)] == [(2, True), (2, False)]


def test_the_cache_is_ours_alone(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "theirs")
    kernel = certus.kernels.njit(cache=True)(answer)
    assert numba.config.CACHE_DIR == "theirs"
    if not numba.config.DISABLE_JIT:
        assert Path(kernel.stats.cache_path).is_relative_to(certus.kernels.CACHE)
