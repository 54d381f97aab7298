"""Ray: actors on the machines of a cluster, or on this one, each of which holds a started task."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from certus.engines.engine import AHEAD, ATTEMPTS, Answer, Item, Task, WorkerLost
from certus.errors import InvalidInput
from certus.threads import thread_count

CPUS = 0.9  # of an actor: what is left of a processor is for Ray's own work


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise InvalidInput("the engine ray needs Ray: pip install 'certus[ray]'.") from None
    return ray


class _Actor:
    """A task in a worker process, started anew by Ray if the process has to be replaced."""

    def __init__(self, task: Task[Any, Any]) -> None:
        self.task, self.started = task, False

    def do(self, item: Any) -> Any:
        """The answer, or the exception, which is no reason to try again."""
        try:
            if not self.started:
                self.task.start(1)
                self.started = True
            return self.task(item)
        except Exception as error:
            return error


class Ray:
    """Actors of Ray: by default one for each processor of the cluster.

    Each is given a few items ahead, no more; one that dies is replaced by Ray, which has it do again what it was at;
    what is lost all the same is done once more by itself, so that only what kills its actor is given up.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self.workers, self.address = workers, address

    def run(self, task: Task[Item, Answer], items: Iterable[Item]) -> Generator[tuple[Item, Answer | Exception]]:
        """Each item with what became of it, in the order in which they are done."""
        ray = _ray()
        with _cluster(ray, self.address, self.workers):
            workers = self.workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
            kind = ray.remote(num_cpus=CPUS, max_restarts=-1, max_task_retries=ATTEMPTS - 1)(_Actor)
            actors = [kind.remote(task) for _ in range(workers)]
            try:
                yield from _answers(ray, actors, items)
            finally:
                for actor in actors:
                    ray.kill(actor)


def _answers(ray: Any, actors: list[Any], items: Iterable[Item]) -> Iterator[tuple[Item, Any]]:
    stream = iter(items)
    running: dict[Any, tuple[Item, Any]] = {}  # what is under way, with its actor
    suspects: deque[Item] = deque()  # lost with an actor that had others too: done again when nothing else is
    free = actors * AHEAD
    while True:
        alone = bool(suspects) and not running
        for item in [suspects.popleft()] if alone else islice(stream, 0 if suspects else len(free)):
            actor = free.pop()
            running[actor.do.remote(item)] = item, actor
        if not running:
            break
        (done,), _ = ray.wait(list(running), num_returns=1)
        item, actor = running.pop(done)
        free.append(actor)
        try:
            answer = ray.get(done)
        except ray.exceptions.RayActorError:
            if not alone:
                suspects.append(item)
                continue
            answer = WorkerLost(f"{item}: the worker that was at it died, {ATTEMPTS} times.")
        yield item, answer


@contextmanager
def _cluster(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """Ray, that which runs already if there is one: a cluster at an address, or this machine for the time being."""
    if ray.is_initialized():
        yield
        return
    quiet = {"log_to_driver": False, "include_dashboard": False, "logging_level": "error"}
    if address is None:
        ray.init(num_cpus=thread_count(workers), **quiet)
    else:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except (ConnectionError, ValueError) as error:
            raise InvalidInput(f"there is no Ray cluster at {address}: {error}") from None
    try:
        yield
    finally:
        ray.shutdown()
