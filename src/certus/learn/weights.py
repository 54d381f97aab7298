"""The weights of a linear model over hashed features, averaged over training, and the steps that move them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from certus import kernels
from certus.checks import Floats, Ints
from certus.errors import InvalidInput

Float32 = NDArray[np.float32]


class Step(NamedTuple):
    """How far an online learner goes: its largest step; whether a wrong guess must lose by its errors; a rate.

    MIRA (LR 8.4.3) takes the smallest step that satisfies the margin, up to ``cap``; the perceptron always a step of 1;
    AdaGrad, on the same margin, a step for each weight that shrinks as the weight changes.
    """

    cap: float
    margin: bool = False
    rate: float = 0.0

    def times(self, factor: float) -> "Step":
        """A step so many times as large."""
        return self._replace(cap=self.cap * factor, rate=self.rate * factor)


class Weights:
    """2**bits weights, and some ``beyond`` them, that remember the sum of all their past values.

    After T updates the average of the values after each of them is value - total / clock, where total adds up
    clock times every change: so averaging costs nothing until it is asked for (DEP 2.4).
    """

    def __init__(self, bits: int, *, beyond: int = 0, dtype: DTypeLike = np.float32) -> None:
        if not 1 <= bits <= 30:
            raise InvalidInput(f"bits is {bits}; expected 1 to 30, for that power of two of weights.")
        self.bits = bits
        size = (1 << bits) + beyond
        self.value: NDArray[Any] = np.zeros(size, dtype=dtype)
        self.total: NDArray[np.float64] = np.zeros(size)
        self.squares: NDArray[Any] = np.zeros(size, dtype=dtype)  # sum of squared changes, for AdaGrad
        self.clock = 1.0
        self.extra: dict[str, NDArray[np.float64]] = {}  # what else a learner must remember to go on

    @property
    def arrays(self) -> Any:
        """As the kernels take them."""
        return kernels.averaging.Averaged(self.value, self.total, self.squares)

    def move(self, plus: Any, minus: Any, cost: float, step: Step) -> float:
        """Move towards the features of plus, away from those of minus; the loss of a guess that errs by ``cost``."""
        return float(kernels.averaging.move(plus, minus, cost, step, self.clock, self.arrays))

    def move_along(self, touched: Ints, vector: Floats, step: Step) -> None:
        """Move along a vector that is zero but where touched, and clear it."""
        kernels.learning.move_along(touched, vector, step, self.clock, self.arrays)

    def averaged(self) -> Float32:
        """The average of the weights over all steps so far, or since ``average_from_here``."""
        return (self.value - self.total / self.clock).astype(np.float32)

    def average_from_here(self) -> None:
        """Forget the past values: the average is over the steps from now on."""
        self.total[:] = 0.0
        self.clock = 1.0


@dataclass(frozen=True)
class Packed:
    """Weights in one byte each, ``value`` times ``unit``: four times as many fit the caches of the processor."""

    value: NDArray[np.int8]
    unit: float

    def __post_init__(self) -> None:
        """Move the weights to where a line of the cache begins, and to large pages of memory if there are such."""
        given = self.value
        room = np.empty(len(given) + 64, dtype=np.int8)
        first = -room.ctypes.data % 64
        object.__setattr__(self, "value", room[first : first + len(given)])
        self.value[:] = given

    @classmethod
    def of(cls, weight: Float32) -> "Packed":
        """The weights to within half a unit; the largest becomes 127 units."""
        unit = float(np.float32(np.abs(weight).max(initial=0.0) / 127.0)) or 1.0
        return cls(np.rint(weight / unit).astype(np.int8), unit)

    @cached_property
    def floats(self) -> Float32:
        """The weights as numbers."""
        return self.value.astype(np.float32) * np.float32(self.unit)
