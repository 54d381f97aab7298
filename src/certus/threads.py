"""Work on threads, answers in order; and long calls that Ctrl-C can end.

Threads live as long as the process, since to start one takes longer than to decode many a sentence: one that is out of
work waits for more. They are daemons, of which nobody waits for the end. A process that is forked has none of them.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextvars import Context, copy_context
from functools import cache, partial
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, TypeVar

from certus.checks import as_positive_int
from certus.clock import add_preparation, preparation

Item = TypeVar("Item")
Answer = TypeVar("Answer")
LONG = 1e8  # elementary steps of a kernel, about a tenth of a second
WORTH = 1e6  # steps, about a millisecond, that are worth a thread of their own: to wake one takes a tenth of that


class _Worker(threading.Thread):
    """A thread that does one task after the other, each in a context of its own."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run(self) -> None:
        while True:
            task = self.tasks.get()
            Context().run(task)
            del task  # and all that it holds
            _idle.append(self)


_idle: deque[_Worker] = deque()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def _start(task: Callable[[], None]) -> None:
    """Have a task, which does not raise, done on a thread that has nothing to do."""
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
        worker.start()
    worker.tasks.put(task)


def thread_count(workers: int | None, steps: float = float("inf")) -> int:
    """How many threads to use: as many as asked for, or as many as there are processors and as the work is worth."""
    if workers is not None:
        return as_positive_int("workers", workers)
    return int(max(1, min(_processors(), steps / WORTH)))


@cache
def _processors() -> int:
    return os.cpu_count() or 1  # asks the system, which takes as long as a small batch


def in_parts(serve: Callable[[slice], None], items: int, steps: float, workers: int | None, together: int = 1) -> None:
    """Serve all items of a batch in one call, or in one per part on threads, parts of whole groups of ``together``."""
    if steps < WORTH and workers is None:
        serve(slice(0, items))
        return
    groups = -(-items // together)
    threads = thread_count(workers, steps)
    if threads == 1 or groups <= 1:
        long_call(steps, serve, slice(0, items))
        return
    parts = min(groups, 4 * threads)
    ends = [min(together * (groups * k // parts), items) for k in range(parts + 1)]
    list(in_order(serve, [slice(a, b) for a, b in pairwise(ends)], threads))


def in_order(function: Callable[[Item], Answer], items: Iterable[Item], threads: int) -> Iterator[Answer]:
    """``function`` of every item, in order. Items are drawn, in the caller's thread, only as fast as they are done.

    An interrupt, in this thread, does not wait for what the others are at.
    """
    if threads == 1:
        yield from map(function, items)
        return
    tasks: SimpleQueue[tuple[Future[Answer], Item] | None] = SimpleQueue()

    def work() -> None:
        while (task := tasks.get()) is not None:
            if task[0].set_running_or_notify_cancel():
                _settle(task[0], function, task[1])

    waiting: deque[Future[Answer]] = deque()
    started = 0
    try:
        for item in items:
            if started < threads:
                _start(work)
                started += 1
            waiting.append(Future())
            tasks.put((waiting[-1], item))
            if len(waiting) > 4 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        for _ in range(started):
            tasks.put(None)


def interruptible(function: Callable[..., Answer], *arguments: Any) -> Answer:
    """``function(*arguments)``, on another thread while the main thread waits for it, or for Ctrl-C.

    Python answers signals in the main thread, between two of its instructions: a kernel there would have to end first.
    After a KeyboardInterrupt the other thread is left to itself until the kernel ends.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    future: Future[tuple[Answer, float]] = Future()
    context = copy_context()

    def call() -> tuple[Answer, float]:
        before = preparation()
        return context.run(function, *arguments), preparation() - before

    _start(partial(_settle, future, call))
    while wait([future], timeout=0.5).not_done:
        pass
    answer, spent = future.result()
    add_preparation(spent)
    return answer


def long_call(steps: float, kernel: Callable[..., Answer], *arguments: Any) -> Answer:
    """A call of a kernel of about so many elementary steps: interruptible if it may take long, plain if it is short."""
    return kernel(*arguments) if steps < LONG else interruptible(kernel, *arguments)


def _settle(future: Future[Answer], function: Callable[..., Answer], *arguments: Any) -> None:
    """Give a future its answer, or the error."""
    try:
        future.set_result(function(*arguments))
    except BaseException as error:
        future.set_exception(error)
