r"""Soft constraints: by how much a row is missed, as structures of a small dynamic program of their own.

A row  A y <= b  that costs ``penalty`` per unit of violation becomes  A y - x = b,  where x = over - under is written
in binary digits: structures choose one of the two sides, so that every number is written in one way, and each digit of
``over`` costs the penalty times what it stands for (with "==", of ``under`` too). Coefficients are multiples of a power
of two, as all float64 numbers are, so that nothing is rounded.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np

from certus.checks import Floats
from certus.errors import InvalidInput
from certus.hypergraph import Hypergraph, Hyperpath
from certus.hypergraph.graph import Int32
from certus.relax.constraints import Constraint

MOST_DIGITS = 200


class Slack:
    """What a soft constraint allows for; no structure uses a part of a view more than ``uses[view]`` times.

    ``problem`` is the dynamic program, ``value[e]`` what its edge e adds to the excess x.
    """

    def __init__(self, constraint: Constraint, uses: Mapping[str, int]) -> None:
        self.constraint = constraint
        sign = -1 if constraint.sense == ">=" else 1
        self._terms = [(sign * Fraction(c), view, index) for c, view, index in constraint.terms]
        self._bound = sign * Fraction(constraint.bound)
        self.step = Fraction(1, lcm(self._bound.denominator, *(c.denominator for c, _, _ in self._terms)))
        sizes = {sign: sign * -self._bound for sign in (1, -1)}  # of the excess, and of what is left to spare
        for c, view, _ in self._terms:
            sizes[1 if c > 0 else -1] += abs(c) * uses[view]
        self.over, self.under = (int(max(sizes[s], Fraction(0)) / self.step).bit_length() for s in (1, -1))
        if max(self.over, self.under) > MOST_DIGITS:
            raise InvalidInput(f"{constraint}: coefficients and bound of a soft constraint are too far apart in size.")

    @cached_property
    def value(self) -> Floats:
        """Of every edge: a first vertex and the digits of one side, the same of the other, and the two into the root.

        Of equally good edges the first is taken, so that those that add nothing come first. The side and the highest
        digits come first too: whoever decides on edges in order has ever fewer numbers left, one next to the other.
        """
        sides = []
        for sign, digits in ((-1, self.under), (1, self.over)):
            sides += [0.0, *(x for j in reversed(range(digits)) for x in (0.0, sign * float(self.step) * 2.0**j))]
        return np.array([*sides, 0.0, float(self.step)])

    @cached_property
    def costs(self) -> Floats:
        """What every edge scores."""
        costly = np.ones(len(self.value), dtype=bool) if self.constraint.sense == "==" else self.value > 0
        return np.where(costly & (self.value != 0.0), -self.constraint.penalty * np.abs(self.value), 0.0)

    @cached_property
    def problem(self) -> Hyperpath:
        """One structure for every excess."""
        degree, tails = list[int](), list[list[int]]()
        ends = []
        for digits in (self.under, self.over):
            first = len(degree)
            degree += [1, *[2] * digits]
            tails += [[], *([first + j] for j in range(digits) for _ in (0, 1))]
            ends.append([first + digits])
        degree.append(2)
        tails += ends
        tail_ptr = np.cumsum([0, *map(len, tails)])
        return Hyperpath(Hypergraph(np.cumsum([0, *degree]), tail_ptr, [v for tail in tails for v in tail]), self.costs)

    def excess(self, used: Mapping[str, Floats]) -> Fraction:
        """A y - b of the parts used, exactly."""
        return sum((c * Fraction(float(used[view][index])) for c, view, index in self._terms), -self._bound)

    def structure(self, used: Mapping[str, Floats]) -> Int32:
        """The structure of the excess of the parts used, head before tails."""
        steps = int(self.excess(used) / self.step)
        n_under, n_over = 1 + 2 * self.under, 1 + 2 * self.over
        number, digits, first = (steps - 1, self.over, n_under) if steps > 0 else (-steps, self.under, 0)
        if number >> digits:
            raise InvalidInput(f"{self.constraint}: a part is used more often than scores have terms.")
        chain = [first + 2 * (digits - j) - 1 + (number >> j & 1) for j in range(digits)]
        return np.array([n_under + n_over + (steps > 0), *chain, first], dtype=np.int32)

    def terms(self, used: Mapping[str, Floats]) -> list[float]:
        """What the parts used cost, as numbers that are not rounded."""
        scores: list[float] = self.costs[self.structure(used)].tolist()
        return [score for score in scores if score]
