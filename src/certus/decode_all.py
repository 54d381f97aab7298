"""Decode many problems of any kind on threads, in order."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from certus.checks import as_positive_int, one_of
from certus.errors import CertusError
from certus.problem import Problem
from certus.result import Result


def decode_all(
    problems: Iterable[Problem[Any]],
    *,
    workers: int | None = None,
    progress: Callable[[int], object] | None = None,
    errors: str = "raise",
    **limits: Any,
) -> Iterator[Result[Any] | CertusError]:
    """Decode problems of mixed kind and length on threads; yields their results in order, as they come.

    Problems are drawn only as fast as they are decoded, so an endless stream of them is fine. The kernels run without
    the GIL; the answers do not depend on the number of threads.

    Parameters
    ----------
    problems : iterable of Problem
    workers : int, optional
        Threads; by default as many as there are processors.
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
    threads = (os.cpu_count() or 1) if workers is None else as_positive_int("workers", workers)
    one_of("errors", errors, ("raise", "yield"))
    return _decode_all(iter(problems), threads, progress, errors, limits)


def _decode_all(
    problems: Iterator[Problem[Any]],
    threads: int,
    progress: Callable[[int], object] | None,
    errors: str,
    limits: dict[str, Any],
) -> Iterator[Result[Any] | CertusError]:
    def decode(problem: Problem[Any]) -> Result[Any] | CertusError:
        try:
            return problem.decode(**limits)
        except CertusError as error:
            if errors == "raise":
                raise
            return error

    waiting: list[Future[Result[Any] | CertusError]] = []
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        try:
            for problem in problems:
                waiting.append(pool.submit(decode, problem))
                if len(waiting) > 4 * threads:
                    yield waiting.pop(0).result()
                    done += 1
                    if progress:
                        progress(done)
            while waiting:
                yield waiting.pop(0).result()
                done += 1
                if progress:
                    progress(done)
        finally:
            for future in waiting:
                future.cancel()
