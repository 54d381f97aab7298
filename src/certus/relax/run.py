"""A run of a solver: its limits, the best structure so far, the log, what is proved, and the result they make.

Every method that lowers a bound and looks for structures does so within a Run, so that limits, traces and results mean
the same whichever it is; see ``certus.relax.descent`` and ``certus.relax.search`` for the two loops that use it.
"""

from collections.abc import Callable
from math import inf, nan
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from certus.checks import Floats, as_positive_int, as_seconds
from certus.clock import Clock
from certus.errors import Infeasible, LimitReached
from certus.result import Certificate, Result, Trace

Y = TypeVar("Y")
Z = TypeVar("Z")

CLOSE = 1e-5  # a gap of more than this share of the scores is no rounding: nobody needs to know how much that is


class Log:
    """The rows of a Trace while they are being written: dual, best score so far, step, active, score of the round."""

    def __init__(self) -> None:
        self._blocks: list[Floats] = []
        self._rows: list[tuple[float, float, float, int, float]] = []

    def __len__(self) -> int:
        return sum(map(len, self._blocks)) + len(self._rows)

    def add(self, dual: float, primal: float, step: float, active: int, round_primal: float = nan) -> None:
        """One row."""
        self._rows.append((dual, primal, step, active, round_primal))

    def extend(self, rows: Floats) -> None:
        """The rows of a burst, (k, 5); they are not copied."""
        if self._rows:
            self._blocks.append(np.array(self._rows))
            self._rows = []
        self._blocks.append(rows)

    def trace(self) -> Trace:
        """All rows, by column."""
        blocks = [*self._blocks, np.array(self._rows)] if self._rows else self._blocks
        if not blocks:
            return Trace()
        dual, primal, step, active, of_round = (blocks[0] if len(blocks) == 1 else np.concatenate(blocks)).T
        return Trace(dual, primal, step, active.astype(np.int64), of_round)


class Run(Generic[Y]):
    """One run: the incumbent ``structure`` with its ``score``, the ``log`` and what to report.

    ``proof`` says how the score was proved the best, None if it was not; ``error`` is the largest rounding of a bound
    by which something was left out; ``scale`` is the largest absolute score. ``info`` is reported with the result, and
    has one meaning of each key:

        seconds, iterations    of the whole run, searches included; iterations are questions to an oracle
        step                   the step rule
        nodes, fixed           of branch and bound; parts removed because no better structure uses them
        programs               linear programs that HiGHS solved for multipliers
        searches, hypotheses   searches under the bounds of a relaxation, and what they looked at
    """

    def __init__(
        self, *, max_iterations: int | None = None, time_limit: float | None = None, scale: float = 1.0
    ) -> None:
        if max_iterations is not None:
            as_positive_int("max_iterations", max_iterations)
        as_seconds("time_limit", time_limit)
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

    def result(self, structure: Z, certificate: Certificate) -> Result[Z]:
        """The result of the run; the structure is the incumbent, or what is made of it."""
        info = {"seconds": self.clock.seconds, "iterations": self.iterations, **self.info}
        return Result(structure, certificate.score, certificate, self.log.trace(), info)


class HeldRun(Run[Any]):
    """A run that looks for nothing but a proof: its score stays what is to be shown, whatever structures are found."""

    def __init__(self, score: float, scale: float) -> None:
        super().__init__(scale=scale)
        self.structure, self.score = (), score

    def offer(self, structure: Any, score: float) -> None:
        return None

    def closes(self, bound: float, error: Callable[[], float], lowest: float = -inf) -> bool:
        return not bound > self.score
