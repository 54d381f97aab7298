"""Work on threads, answers in order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from certus.checks import as_positive_int

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def thread_count(workers: int | None) -> int:
    """How many threads to use: as many as asked for, or one for each processor."""
    return (os.cpu_count() or 1) if workers is None else as_positive_int("workers", workers)


def in_order(function: Callable[[Item], Answer], items: Iterable[Item], threads: int) -> Iterator[Answer]:
    """``function`` of every item, in order. Items are drawn, in the caller's thread, only as fast as they are done."""
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Answer]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 4 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
