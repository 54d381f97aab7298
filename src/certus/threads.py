"""Work on threads, answers in order; and long calls that Ctrl-C can end."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from certus.checks import as_positive_int
from certus.clock import add_preparation, preparation

Item = TypeVar("Item")
Answer = TypeVar("Answer")
LONG = 1e8  # elementary steps of a kernel, about a tenth of a second; a thread costs a tenth of a millisecond


def thread_count(workers: int | None) -> int:
    """How many threads to use: as many as asked for, or one for each processor."""
    return (os.cpu_count() or 1) if workers is None else as_positive_int("workers", workers)


def in_order(function: Callable[[Item], Answer], items: Iterable[Item], threads: int) -> Iterator[Answer]:
    """``function`` of every item, in order. Items are drawn, in the caller's thread, only as fast as they are done.

    The threads are daemons: an interrupt, in this thread, does not wait for what they are at.
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
                threading.Thread(target=work, daemon=True).start()
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
    """``function(*arguments)``, on a thread of its own while the main thread waits for it, or for Ctrl-C.

    Python answers signals in the main thread, between two of its instructions: a kernel there would have to end first.
    After a KeyboardInterrupt the thread is left to itself; it ends when the kernel does, or with the process.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    future: Future[tuple[Answer, float]] = Future()
    context = copy_context()

    def call() -> tuple[Answer, float]:
        return context.run(function, *arguments), preparation()

    threading.Thread(target=_settle, args=(future, call), daemon=True).start()
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
