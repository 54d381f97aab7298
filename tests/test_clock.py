"""The clock stands still while kernels are made ready, in the thread that waits for them."""

import threading
import time

import numpy as np
import pytest

from certus import Joint, Tagging, clock
from certus.clock import Clock
from certus.threads import interruptible

PAUSE = 0.2


def compile_something():
    """Takes PAUSE seconds, all of them in numba's compiler as far as numba says."""
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock, global_compiler_lock:
        time.sleep(PAUSE)


@pytest.mark.parametrize("run", [lambda f: f(), interruptible])
def test_compilation_does_not_count(run):
    import certus.kernels.compiling  # noqa: F401

    watch = Clock(PAUSE / 2)
    run(compile_something)
    assert watch.seconds < PAUSE / 2
    assert not watch.out_of_time
    time.sleep(PAUSE / 2)
    assert watch.out_of_time
    assert not Clock().out_of_time


def test_compilation_in_another_thread_is_its_own():
    import certus.kernels.compiling  # noqa: F401

    watch = Clock()
    other = threading.Thread(target=compile_something)
    other.start()
    other.join()
    assert watch.seconds >= PAUSE


def test_a_time_limit_leaves_room_for_compilation(monkeypatch):
    """Every reading of the time is late by the time spent compiling; decoders see none of it."""
    from certus.kernels import compiling

    spent = iter(np.arange(1e6) * 100.0)
    real = time.perf_counter

    def late():
        compiling.preparation.seconds = next(spent)
        return real() + compiling.preparation.seconds

    monkeypatch.setattr(clock, "perf_counter", late)
    before = compiling.preparation.seconds
    try:
        rng = np.random.default_rng(0)
        parts = [Tagging(rng.normal(size=(4, 3)), bigram=rng.normal(size=(3, 3))) for _ in range(2)]
        result = Joint(*parts, on="tags").decode(time_limit=30.0)
    finally:
        compiling.preparation.seconds = before
    assert result.certificate.exact
    assert result.info["seconds"] < 30
