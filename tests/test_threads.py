"""Threads that live: they are used again, they do not outlive a fork, and they are used where they pay."""

import os
import threading
import time

import numpy as np
import pytest

from certus import threads
from certus.threads import WORTH, in_order, interruptible, thread_count


def names(count):
    """The threads that served a few tasks, which wait until all of them have begun."""
    barrier = threading.Barrier(count)

    def work(_):
        barrier.wait(timeout=30)
        return threading.current_thread()

    return set(in_order(work, range(count), count))


def idle(count):
    """Wait until so many threads are out of work."""
    for _ in range(3000):
        if len(threads._idle) >= count:
            return
        time.sleep(0.01)


def test_threads_are_used_again():
    assert len(names(3)) == 3
    idle(3)
    before = threading.active_count()
    names(3)
    idle(3)
    interruptible(int)
    assert threading.active_count() == before


def test_a_task_finds_no_settings_of_the_one_before():
    def task(k):
        found = np.geterr()["divide"]
        np.seterr(divide="raise")
        return found

    idle(1)
    for _ in range(3):
        assert list(in_order(task, [0], 2)) == ["warn"]
    with np.errstate(divide="ignore"):
        assert interruptible(np.geterr)["divide"] == "ignore"


def test_a_thread_that_is_kept_busy_does_not_hold_up_others():
    release = threading.Event()
    found = in_order(lambda k: k or release.wait(60), [1, 0, 2], 2)
    assert next(found) == 1
    assert list(in_order(lambda k: k + 1, range(5), 2)) == [1, 2, 3, 4, 5]
    release.set()
    assert list(found) == [True, 2]


def test_threads_within_threads():
    def outer(k):
        return list(in_order(lambda j: j + k, range(3), 2))

    assert list(in_order(outer, range(4), 2)) == [[k, k + 1, k + 2] for k in range(4)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    names(2)
    idle(2)
    child = os.fork()
    if child == 0:
        os._exit(0 if sorted(in_order(lambda k: k * k, range(9), 2)) == [k * k for k in range(9)] else 1)
    for _ in range(600):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert (pid, status) == (child, 0)


def test_as_many_threads_as_the_work_is_worth(monkeypatch):
    monkeypatch.setattr("certus.threads._processors", lambda: 8)
    assert thread_count(None) == 8
    assert thread_count(None, 0.0) == thread_count(None, 1.9 * WORTH) == 1
    assert thread_count(None, 3.5 * WORTH) == 3
    assert thread_count(None, 100 * WORTH) == 8
    assert thread_count(5, 0.0) == 5
