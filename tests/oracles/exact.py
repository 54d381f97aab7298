"""Every structure of a small problem with its score in exact arithmetic, added up from the parts that it uses.

Scores are whole numbers of units of 2^-2148, so that sums and products of two floats are exact, and quick to compare.
"""

from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

BITS = 2148
UNIT = Fraction(1, 1 << BITS)
Part = float | Fraction  # what a part adds to the score; -inf for one that is forbidden


def units(value: Part) -> int:
    """A finite number in units, exactly."""
    numerator, denominator = value.as_integer_ratio()
    whole, rest = divmod(numerator << BITS, denominator)
    assert not rest, f"{value!r} is not a whole number of units"
    return whole


def shown(amount: int) -> str:
    """Units as a number to read."""
    try:
        return f"{float(amount * UNIT)!r}"
    except OverflowError:
        return f"{'-' if amount < 0 else ''}2^{abs(amount).bit_length() - BITS}"


def key(structure: Any) -> Hashable:
    """What tells one structure from another."""
    if isinstance(structure, np.ndarray):
        return key(structure.tolist())
    if isinstance(structure, tuple | list):
        return tuple([key(item) for item in structure])
    return structure


LARGEST = units(float(np.finfo(np.float64).max))
ONE, HELD = units(1.0), units(2.0**53)


class Exact:
    """The structures of a problem that use no forbidden part: ``value[k]`` and ``size[k]`` of ``structures[k]``.

    The size of a structure is the sum of the absolute scores of its parts: what its rounding is measured by. Where all
    scores are whole and a float64 holds every such sum, there is no rounding: ``whole(k)``.
    """

    def __init__(self, listed: Iterable[tuple[Any, Sequence[Part]]]) -> None:
        self.structures: list[Any] = []
        self.value: list[int] = []
        self.size: list[int] = []
        self.largest: list[Part] = []  # absolute score of any part
        self.place: dict[Hashable, int] = {}
        self.forbidden = 0
        known: dict[Part, int] = {}
        self._whole = True
        for structure, parts in listed:
            total = size = 0
            most: Part = 0.0
            for part in parts:
                if part == -inf:
                    break
                amount = known.get(part)
                if amount is None:
                    amount = known[part] = units(part)
                    self._whole &= not amount % ONE
                total += amount
                size += abs(amount)
                most = max(most, abs(part))
            else:
                assert key(structure) not in self.place, f"{structure} is listed twice"
                self.place[key(structure)] = len(self.structures)
                self.structures.append(structure)
                self.value.append(total)
                self.size.append(size)
                self.largest.append(most)
                continue
            self.forbidden += 1

    def __len__(self) -> int:
        return len(self.structures)

    def finite(self, place: int) -> bool:
        """Whether a float can hold the score of a structure."""
        return abs(self.value[place]) <= LARGEST

    def whole(self, place: int) -> bool:
        """Whether a float holds the score of a structure without rounding, in whatever order it is added up."""
        return self._whole and self.size[place] <= HELD

    def at(self, structure: Any) -> int | None:
        """Place of a structure, or None if it is none or forbidden."""
        return self.place.get(key(structure))

    @property
    def order(self) -> list[int]:
        """Places, best first."""
        return sorted(range(len(self)), key=lambda k: -self.value[k])
