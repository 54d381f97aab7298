"""One loop for Lagrangian relaxation and dual decomposition: ask, compare, stop with a proof, or move (LR 3, app. A).

Every round asks an oracle at the present multipliers. Its value bounds every structure; what it found gives candidates,
scored on the original problem. The loop ends when the two meet, when progress stalls, or at a limit.

How a client plugs in. It writes an Oracle: ``ask`` at least; ``error``, if bounds are rounded; ``burst`` and
``bursts = True``, if a kernel makes many steps in one call. Then, within a Run,

    run = Run(max_iterations=max_iterations, time_limit=time_limit)
    descent = descend(run, oracle, u, rule, max_iterations=max_iterations, window=15)

leaves the best structure in ``run`` and the least dual value with its multipliers in ``descent``. Two hooks:

    search(descent)    after every round that proves nothing: look for structures under the bounds of the round, remove
                       what they show to be of no use, or set ``run.proof``, which ends the loop
    tighten(descent)   when progress stalls or the subgradient vanishes without a proof: a tighter oracle and where to
                       start from, or the same one to go on with; None ends the loop

A search that alternates with rounds is the first hook, a relaxation that is refined where it is loose the second. What
is still open then goes to ``certus.relax.search``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats
from certus.errors import InvalidInput
from certus.relax.quasi_newton import dot
from certus.relax.run import Run
from certus.relax.steps import StepRule

if TYPE_CHECKING:
    from certus.kernels.steps import Rule

STALL = 0.1  # a window of rounds that closes less than this share of the gap is a stall
BURST = 40  # steps that a kernel makes between two looks at the clock


class Round(NamedTuple):
    """What an oracle finds at multipliers: the dual value, A y - b of its argmax y, and structures with their scores.

    The residual is the subgradient: the multipliers move against it.
    """

    value: float
    residual: Floats
    candidates: Sequence[tuple[Any, float]] = ()


class Burst(NamedTuple):
    """What an oracle did in several steps: rows (k, 5) for the log, in the order of Trace; state of the step rule."""

    rows: Floats
    state: Any
    agreed: bool  # the subgradient vanished


class Oracle(ABC):
    """What is relaxed, seen from its multipliers: u -> dual value, residual, candidates.

    ``scale`` is the largest absolute score; ``rows`` the number of constraints that the multipliers are on, of which
    those in ``inequality``, if not None, are <= constraints with multipliers of at most 0; no structure scores less
    than ``lowest``. Multipliers beyond the ``box``, if there is one, are of no use.
    """

    scale: float = 1.0
    rows: int = 0
    inequality: NDArray[np.bool_] | None = None
    box: tuple[Floats, Floats] | None = None
    lowest: float = -inf
    bursts: bool = False

    @abstractmethod
    def ask(self, u: Floats) -> Round | None:
        """The best of the relaxation at multipliers u; Infeasible if there is nothing.

        An oracle that leaves out what is worse than the incumbent returns None once that is all there is.
        """

    def error(self, u: Floats) -> float:
        """How far rounding may take the value at u from the truth."""
        return 0.0

    def moved(self, step: float) -> None:
        """The round that was asked for last ends with a step of this size."""
        return None

    def burst(self, at: "Descent[Any]", rule: "Rule", count: int) -> Burst:
        """Up to ``count`` steps in one call: moves at.u and fills at.best_u in place, and offers what it finds."""
        raise NotImplementedError(f"{type(self).__name__} says that it makes bursts of steps; write burst().")


T = TypeVar("T", bound=Oracle)


class Descent(Generic[T]):
    """A run of the loop: the last round, the least dual value ``best`` and its multipliers ``best_u``."""

    def __init__(self, run: Run[Any], oracle: T, u: Floats, rule: StepRule[Any]) -> None:
        self.run, self.rule = run, rule
        self.rounds = 0
        self.closed = False
        self.best, self.best_u = inf, u
        self.restart(oracle, u)

    def restart(self, oracle: T, u: Floats) -> None:
        """Go on with a tighter oracle: bounds so far hold, the step rule begins anew."""
        self.oracle, self.u = oracle, u
        self.state = self.rule.init(oracle.scale)
        self.value, self.norm2, self.residual = inf, 0.0, np.empty(0)
        self._direction: Floats | None = None  # of the last step
        self._step = 0.0
        self._first, self._mark, self._marked = inf, inf, self.rounds  # dual values: the first, and that a window ago

    def ask(self, search: "Callable[[Descent[T]], object] | None", log: bool) -> bool:
        """One round; returns whether nothing is left to do."""
        run, oracle = self.run, self.oracle
        found = oracle.ask(self.u)
        if found is None:
            self.closed = True
            return True
        self.rounds += 1
        run.iterations += 1
        self.value, self.residual = found.value, found.residual
        self._first = found.value if self._first == inf else self._first
        if found.value < self.best:
            self.best, self.best_u = found.value, self.u
        for structure, score in found.candidates:
            run.offer(structure, score)
        direction = self._turned(found.residual)
        self.norm2 = dot(direction, direction)
        if not self.close() and search is not None:
            search(self)
            self.close()
        ended = self.closed or run.proof is not None or self.norm2 == 0.0
        if not ended:
            self._step, self.state = self.rule.update(self.state, found.value, run.score, self.norm2)
            u = self.u - self._step * direction
            u = u if oracle.inequality is None else np.where(oracle.inequality, np.minimum(u, 0.0), u)
            self.u = u if oracle.box is None else np.clip(u, *oracle.box)
        oracle.moved(self._step)
        if log:
            best = max((score for _, score in found.candidates), default=-inf)
            run.log.add(found.value, run.score, 0.0 if ended else self._step, oracle.rows, best)
        return ended

    def burst(self, rule: "Rule", count: int, log: bool) -> bool:
        """Several rounds in one call of the oracle; returns whether nothing is left to do."""
        if self.best_u is self.u:
            self.u, self.best_u = self.u.copy(), self.u.copy()
        rows, self.state, agreed = self.oracle.burst(self, rule, count)
        self.rounds += len(rows)
        self.run.iterations += len(rows)
        self._first = float(rows[0, 0]) if self._first == inf else self._first
        self.best = min(self.best, float(rows[:, 0].min()))
        self.value, self.norm2 = float(rows[-1, 0]), 0.0 if agreed else inf
        self.close()
        if log:
            self.run.log.extend(rows)
        return self.closed or agreed

    def close(self) -> bool:
        """Whether the least dual value shows that nothing better than the incumbent is left."""
        oracle = self.oracle
        self.closed = self.run.closes(self.best, lambda: oracle.error(self.best_u), oracle.lowest)
        return self.closed

    def _turned(self, residual: Floats) -> Floats:
        """The direction to move against: the subgradient, deflected if the rule says so."""
        inequality, before = self.oracle.inequality, self._direction
        # Rows that are slack at multiplier zero stay there: they are no part of the subgradient.
        direction = (
            residual if inequality is None else np.where(inequality & (self.u == 0) & (residual < 0), 0.0, residual)
        )
        if self.oracle.box is not None:  # nor are those that would leave the box
            low, high = self.oracle.box
            direction = np.where(np.where(residual > 0, self.u <= low, self.u >= high), 0.0, direction)
        if not self.rule.deflection:
            return direction
        if before is not None and (along := dot(direction, before)) < 0:
            turned = direction - self.rule.deflection * along / dot(before, before) * before
            direction = turned if turned.any() else direction
        self._direction = direction if direction.any() else before
        return direction

    def stalled(self, window: int | None) -> bool:
        """Whether the last window of rounds closed too little of the gap; looked at once a window.

        Before there is a gap to close, progress is measured against what was made so far.
        """
        if window is None or self.rounds - self._marked < window:
            return False
        ahead = self._first - self._mark if self.run.structure is None else self._mark - self.run.score
        stalled = self._mark < inf and self._mark - self.best <= STALL * ahead
        self._mark, self._marked = self.best, self.rounds
        return stalled


def descend(
    run: Run[Any],
    oracle: T,
    u: Floats,
    rule: StepRule[Any],
    *,
    max_iterations: int,
    window: int | None = None,
    log: bool = True,
    search: Callable[[Descent[T]], object] | None = None,
    tighten: Callable[[Descent[T]], tuple[T, Floats] | None] | None = None,
) -> Descent[T]:
    """Lower the dual value from multipliers u on, until it meets the incumbent, stalls, or reaches a limit.

    Stalls are looked for only when ``window``, a number of rounds, is given. Without ``log`` the rounds are not
    written down. See the head of the file for the hooks. Raises Infeasible when the oracle has nothing at all.
    """
    if not isinstance(rule, StepRule):
        raise InvalidInput(f"step is {rule!r}; expected a rule of certus.relax.steps, such as polyak().")
    if not isinstance(max_iterations, int):
        raise InvalidInput(f"max_iterations is {max_iterations!r}; expected a whole number of at least 1.")
    at = Descent(run, oracle, u, rule)
    while at.rounds < max_iterations:
        if at.oracle.bursts and rule.numbers is not None and search is None:
            ended = at.burst(rule.numbers, min(BURST, max_iterations - at.rounds), log)
        else:
            ended = at.ask(search, log)
        if at.closed or run.proof is not None or run.out_of_time:
            break
        if at.stalled(window) or ended:
            tighter = None if tighten is None else tighten(at)
            if tighter is None:
                break
            if tighter[0] is not at.oracle:
                at.restart(*tighter)
    return at
