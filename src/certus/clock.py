"""Time limits and the seconds that results report: one clock, which stands still while kernels are being compiled."""

import sys
from dataclasses import dataclass, field
from time import perf_counter


def preparation() -> float:
    """Seconds that this thread has spent so far on compiling kernels or loading compiled ones, not on running them."""
    compiling = sys.modules.get("certus.kernels.compiling")
    return 0.0 if compiling is None or not hasattr(compiling, "preparation") else float(compiling.preparation.seconds)


def add_preparation(seconds: float) -> None:
    """Count what another thread has spent on kernels that this one was waiting for."""
    if "certus.kernels.compiling" in sys.modules:
        sys.modules["certus.kernels.compiling"].preparation.seconds += seconds


def _now() -> float:
    return perf_counter() - preparation()


@dataclass
class Clock:
    """Seconds since it was made, and whether a limit is over. For use in one thread."""

    limit: float | None = None
    start: float = field(default_factory=_now)

    @property
    def seconds(self) -> float:
        """Seconds gone by, without those in which kernels were compiled."""
        return _now() - self.start

    @property
    def left(self) -> float | None:
        """Seconds until the limit, 0 if it is over; None if there is none."""
        return None if self.limit is None else max(self.limit - self.seconds, 0.0)

    @property
    def out_of_time(self) -> bool:
        """Whether the limit is over."""
        return self.limit is not None and self.seconds >= self.limit
