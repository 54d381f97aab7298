"""One run spread over processes: worker w of N tries the cases w, w + N, w + 2N and so on; the parts are added up."""

import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.runner import Run, Tally, say
from tests.fuzz.targets import target


def spread(
    name: str,
    seed: int,
    folder: Path | None = None,
    *,
    workers: int,
    seconds: float | None = None,
    count: int | None = None,
    first: int = 0,
) -> Run:
    """The run of a target that ``Run(...).go(...)`` makes, of the same cases; Ctrl-C gives what was tried so far."""
    whole = Run(target(name), seed, folder)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        parts = [
            pool.submit(_part, name, seed, folder, seconds, _share(count, workers, w), first + w, workers)
            for w in range(workers)
        ]
        for part in parts:
            while True:
                try:
                    whole.add(*part.result())
                    break
                except KeyboardInterrupt:  # the workers got it too, and give what they have
                    say("stopping")
    return whole


def _share(count: int | None, workers: int, w: int) -> int | None:
    """How many of ``count`` cases are those of worker w."""
    return None if count is None else len(range(w, count, workers))


def _part(
    name: str, seed: int, folder: Path | None, seconds: float | None, count: int | None, first: int, step: int
) -> tuple[Tally, Counter[str], int, float]:
    """What one worker tries; without the target, which need not travel."""
    warnings.simplefilter("ignore", RuntimeWarning)
    run = Run(target(name), seed, folder)
    try:
        run.go(seconds=seconds, count=count, first=first, step=step)
    except KeyboardInterrupt:
        say(f"{name}: stopped after {run.cases} cases")
    return run.tally, run.failed, run.cases, run.seconds
