"""The engines, by name: how a task is run over many items."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from typing import Any, Generic, Protocol, TypeVar

from certus.checks import one_of
from certus.errors import CertusError
from certus.threads import in_order, thread_count

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Got = TypeVar("Got", covariant=True)
Given = TypeVar("Given", contravariant=True)
ATTEMPTS = 3  # at an item, before it is given up: it may be what kills the workers
AHEAD = 2  # items for each worker that are drawn before they can be done


class WorkerLost(CertusError):
    """The worker that was at an item died, and so did those that tried again."""


class Task(Protocol[Given, Got]):
    """What is done with an item. It is pickled, and started once by each worker."""

    def start(self, threads: int) -> None:
        """Make ready, in the worker, which has so many threads to itself."""

    def __call__(self, item: Given) -> Got:
        """What becomes of one item; an exception is the answer of the worker too, and not tried again."""


class Engine(Protocol):
    """Runs tasks."""

    def run(self, task: Task[Item, Answer], items: Iterable[Item]) -> Generator[tuple[Item, Answer | Exception]]:
        """Each item with what became of it, in the order in which they are done."""


class Threads:
    """Threads of this process, which share what the task has loaded.

    With ``each`` items are done one after the other, each by a task that has all threads; otherwise as many at a time.
    """

    def __init__(self, workers: int | None = None, *, each: bool = True) -> None:
        self.workers, self.each = thread_count(workers), each

    def run(self, task: Task[Item, Answer], items: Iterable[Item]) -> Generator[tuple[Item, Answer | Exception]]:
        """Each item with what became of it, in order."""
        task.start(self.workers if self.each else 1)
        yield from in_order(lambda item: (item, _tried(task, item)), items, 1 if self.each else self.workers)


_task: Any = None  # of a worker process


_started = False


def _take(task: Task[Any, Any]) -> None:
    global _task
    _task = task


def _do(item: Any) -> Any:
    global _started
    if not _started:
        try:
            _task.start(1)
        except Exception as error:
            return error
        _started = True
    return _tried(_task, item)


def _tried(task: Task[Item, Answer], item: Item) -> Answer | Exception:
    try:
        return task(item)
    except Exception as error:
        return error


@dataclass(eq=False)
class Try(Generic[Item]):
    """An item; whether a worker was lost while it was being done, and how often by it alone."""

    item: Item
    suspect: bool = False
    lost: int = 0


class Processes:
    """Processes of this machine. If one dies, all are started anew, and do what they were at again, one by one."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = thread_count(workers)

    def run(self, task: Task[Item, Answer], items: Iterable[Item]) -> Generator[tuple[Item, Answer | Exception]]:
        """Each item with what became of it, in the order in which they are done."""
        stream = iter(items)
        again: deque[Try[Item]] = deque()
        ended = False
        while again or not ended:
            running: dict[Future[Any], Try[Item]] = {}
            context = get_context("spawn")  # threads and Ray do not survive a fork
            with ProcessPoolExecutor(self.workers, mp_context=context, initializer=_take, initargs=(task,)) as pool:
                try:
                    while True:
                        while len(running) < self._room(running, again) and not (ended and not again):
                            if again:
                                one = again.popleft()
                            else:
                                try:
                                    one = Try(next(stream))
                                except StopIteration:
                                    ended = True
                                    continue
                            running[pool.submit(_do, one.item)] = one
                        if not running:
                            break
                        for future in wait(running, return_when=FIRST_COMPLETED).done:
                            answer = future.result()
                            yield running.pop(future).item, answer
                except BrokenProcessPool:
                    yield from self._after_a_loss(running, again)

    def _room(self, running: dict[Future[Any], Try[Item]], again: deque[Try[Item]]) -> int:
        """How many items may be under way: one, as long as it is not known over which a worker was lost."""
        return 1 if again or any(one.suspect for one in running.values()) else AHEAD * self.workers

    def _after_a_loss(
        self, running: dict[Future[Any], Try[Item]], again: deque[Try[Item]]
    ) -> Generator[tuple[Item, Answer | Exception]]:
        """What was done before a worker died; the rest is done again, unless it was lost too often by itself."""
        for future, one in running.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                yield one.item, future.result()
                continue
            one.suspect = True
            one.lost += len(running) == 1
            if one.lost < ATTEMPTS:
                again.append(one)
            else:
                yield one.item, WorkerLost(f"{one.item}: the process that was at it died, {ATTEMPTS} times.")


def _ray(workers: int | None, address: str | None) -> Engine:
    found: Engine = import_module("certus.engines.ray").Ray(workers, address)
    return found


# What there is, by the name that commands and functions take.
ENGINES: dict[str, Callable[[int | None, str | None], Engine]] = {
    "threads": lambda workers, address: Threads(workers),
    "processes": lambda workers, address: Processes(workers),
    "ray": _ray,
}


def engine_of(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine of a name; ``address`` is that of a Ray cluster, which is otherwise started on this machine."""
    one_of("engine", name, tuple(ENGINES))
    return ENGINES[name](workers, address)


class _Decode:
    """Decodes problems."""

    def __init__(self, limits: dict[str, Any]) -> None:
        self.limits = limits

    def start(self, threads: int) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", "1")

    def __call__(self, item: tuple[int, Any]) -> Any:
        return item[1].decode(**self.limits)


def decoded(
    problems: Iterable[Any], engine: str, workers: int | None, address: str | None, limits: dict[str, Any]
) -> Generator[Any]:
    """Results, or errors, of problems, in order: what ``certus.decode_all`` asks for by name."""
    return _due(engine_of(engine, workers, address).run(_Decode(limits), enumerate(problems)))


def _due(answers: Generator[tuple[tuple[int, Any], Any]]) -> Generator[Any]:
    """Answers in the order of the numbers of their items."""
    waiting: dict[int, Any] = {}
    due = 0
    with closing(answers) as run:
        for (number, _), answer in run:
            waiting[number] = answer
            while due in waiting:
                yield waiting.pop(due)
                due += 1
