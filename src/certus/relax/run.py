"""A run of a solver: its limits, the best structure so far, the log, what is proved, and the result they make.

Every method that lowers a bound and looks for structures does so within a Run, so that limits, traces and results mean
the same whichever it is; see ``certus.relax.descent`` and ``certus.relax.search`` for the two loops that use it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from certus.checks import Floats, as_positive_int
from certus.clock import Clock
from certus.errors import Infeasible, InvalidInput, LimitReached
from certus.result import Certificate, Result, Trace

Y = TypeVar("Y")

CLOSE = 1e-5  # a gap of more than this share of the scores is no rounding: nobody needs to know how much that is


@dataclass(slots=True)
class Log:
    """The rows of a Trace while they are being written."""

    dual: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    active: list[int] = field(default_factory=list)
    round_primal: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.dual)

    def add(self, dual: float, primal: float, step: float, active: int, round_primal: float = nan) -> None:
        """One row: the best score so far and that of the round."""
        self.dual.append(dual)
        self.primal.append(primal)
        self.step.append(step)
        self.active.append(active)
        self.round_primal.append(round_primal)

    def extend(self, rows: Floats, primal: float, active: int) -> None:
        """Rows (dual, primal value of the round, step) of a burst that began with a best score of ``primal``."""
        self.dual += rows[:, 0].tolist()
        self.primal += np.maximum.accumulate(np.append(primal, rows[:, 1]))[1:].tolist()
        self.step += rows[:, 2].tolist()
        self.active += [active] * len(rows)
        self.round_primal += rows[:, 1].tolist()

    def trace(self) -> Trace:
        columns = (np.array(column) for column in (self.dual, self.primal, self.step))
        return Trace(*columns, np.array(self.active, dtype=np.int64), np.array(self.round_primal))


class Run(Generic[Y]):
    """One run: the incumbent ``structure`` with its ``score``, the ``log`` and what to report.

    ``proof`` says how the score was proved the best, None if it was not; ``error`` is the largest rounding of a bound
    by which something was left out; ``scale`` is the largest absolute score. ``info`` is reported with the result, and has one meaning of each key:

        seconds, iterations    of the whole run, searches included; iterations are questions to an oracle
        step                   the step rule
        nodes, fixed           of branch and bound; parts removed because no better structure uses them
        searches, hypotheses   searches under the bounds of a relaxation, and what they looked at
    """

    def __init__(
        self, *, max_iterations: int | None = None, time_limit: float | None = None, scale: float = 1.0
    ) -> None:
        if max_iterations is not None:
            as_positive_int("max_iterations", max_iterations)
        if time_limit is not None and not time_limit > 0:
            raise InvalidInput(f"time_limit is {time_limit!r}; expected a positive number of seconds, or None.")
        self.clock, self.scale = Clock(time_limit), scale
        self.structure: Y | None = None
        self.score = -inf
        self.proof: str | None = None
        self.error = 0.0
        self.iterations = 0
        self.log = Log()
        self.info: dict[str, Any] = {}

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit has passed."""
        return self.clock.out_of_time

    def offer(self, structure: Y, score: float) -> None:
        """A structure, kept if it is the best so far."""
        if score > self.score:
            self.structure, self.score = structure, score

    def count(self, **more: float) -> None:
        """Add to entries of the report."""
        for key, value in more.items():
            self.info[key] = self.info.get(key, 0) + value

    def allow(self, error: float) -> None:
        """Something is left out or proved by a bound that rounding may have taken so far from the truth."""
        self.error = max(self.error, error)

    def closes(self, bound: float, error: Callable[[], float], lowest: float = -inf) -> bool:
        """Whether a bound shows that nothing better than the incumbent is left, rounding aside.

        Before there is one, that nothing is left at all: no structure scores less than ``lowest``.
        """
        gap = bound - self.score if self.structure is not None else bound - lowest
        if not gap > 0:  # nan: nothing is known, and nothing is left
            return True
        return self.structure is not None and gap <= CLOSE * (self.scale + abs(self.score)) and gap <= error()

    def give_up(self, what: str, reason: str) -> NoReturn:
        """There is no structure to return: the time ran out, or it is proved that there is none, for this reason."""
        if self.out_of_time:
            raise LimitReached(
                f"no {what} found in {self.clock.limit:g} s, nor a proof that there is none: raise time_limit."
            )
        raise Infeasible(reason)

    def result(self, structure: Y, certificate: Certificate, trace: Trace | None = None) -> Result[Y]:
        """The result of the run."""
        info = {"seconds": self.clock.seconds, "iterations": self.iterations, **self.info}
        return Result(structure, certificate.score, certificate, self.log.trace() if trace is None else trace, info)
