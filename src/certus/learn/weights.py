"""The weights of a linear model over hashed features, averaged over training."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from certus.errors import InvalidInput

Float32 = NDArray[np.float32]


class Weights:
    """2**bits weights that remember the sum of all their past values.

    After T updates the average of the values after each of them is value - total / clock, where total adds up
    clock times every change: so averaging costs nothing until it is asked for (DEP 2.4).
    """

    def __init__(self, bits: int, *, dtype: DTypeLike = np.float32) -> None:
        if not 1 <= bits <= 30:
            raise InvalidInput(f"bits is {bits}; expected 1 to 30, for that power of two of weights.")
        self.bits = bits
        self.value: NDArray[Any] = np.zeros(1 << bits, dtype=dtype)
        self.total: NDArray[np.float64] = np.zeros(1 << bits)
        self.squares: NDArray[Any] = np.zeros(1 << bits, dtype=dtype)  # sum of squared changes, for AdaGrad
        self.clock = 1.0
        self.extra: dict[str, NDArray[np.float64]] = {}  # what else a learner must remember to go on

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
