"""Decode many problems of any kind on threads, processes or Ray, in order."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from importlib import import_module
from typing import Any

from certus.checks import of_kind, one_of
from certus.errors import CertusError
from certus.problem import Problem
from certus.result import Result
from certus.threads import in_order, thread_count


def decode_all(
    problems: Iterable[Problem[Any]],
    *,
    workers: int | None = None,
    engine: str = "threads",
    address: str | None = None,
    progress: Callable[[int], object] | None = None,
    errors: str = "raise",
    **limits: Any,
) -> Iterator[Result[Any] | CertusError]:
    """Decode problems of mixed kind and length; yields their results in order, as they come.

    Problems are drawn only as fast as they are decoded, so an endless stream of them is fine. The kernels run without
    the GIL; the answers do not depend on the number of threads.

    Parameters
    ----------
    problems : iterable of Problem
    workers : int, optional
        Threads, or processes; by default as many as there are processors.
    engine : "threads", "processes" or "ray"
        Where they are decoded. Processes, of this machine or of a Ray cluster, pay for problems of more than some
        milliseconds whose work is Python's; problems and results travel to them and back.
    address : str, optional
        Of a Ray cluster; without it Ray is started on this machine.
    progress : function of the number of problems done, optional
        Called after each result, in order, from the caller's thread.
    errors : "raise" or "yield"
        What to do with a problem that cannot be decoded (Infeasible, say): raise when its turn comes, or yield the
        error in place of its result.
    **limits
        Passed to every ``decode``: ``max_iterations``, ``time_limit``, ``exact``.

    Examples
    --------
    >>> import certus
    >>> problems = [certus.Dependency([[0, s], [0, 0]], projective=True) for s in (3.0, 4.0)]
    >>> [r.score for r in decode_all(problems)]
    [3.0, 4.0]
    """
    one_of("errors", errors, ("raise", "yield"))
    given = _checked(of_kind("problems", problems, Iterable, "problems to be decoded, in a list or a stream"))
    if engine != "threads":  # engines stand above problems, and are found by name
        found = import_module("certus.engines.engine").decoded(given, engine, workers, address, limits)
        return _told(_raised(found, errors), progress)
    threads = thread_count(workers)

    def decode(problem: Problem[Any]) -> Result[Any] | CertusError:
        try:
            return problem.decode(**limits)
        except CertusError as error:
            if errors == "raise":
                raise
            return error

    return _told(in_order(decode, given, threads), progress)


def _checked(problems: Iterable[Problem[Any]]) -> Iterator[Problem[Any]]:
    for k, problem in enumerate(problems):
        yield of_kind(f"problems[{k}]", problem, Problem, "a problem, such as certus.Dependency(...)")


def _raised(found: Generator[Any], errors: str) -> Iterator[Result[Any] | CertusError]:
    """The answers of workers, of which an error is one; the workers end with it."""
    with closing(found):
        for answer in found:
            if isinstance(answer, Exception) and not (errors == "yield" and isinstance(answer, CertusError)):
                raise answer
            yield answer


def _told(
    results: Iterator[Result[Any] | CertusError], progress: Callable[[int], object] | None
) -> Iterator[Result[Any] | CertusError]:
    for done, result in enumerate(results, start=1):
        yield result
        if progress:
            progress(done)
