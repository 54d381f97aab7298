"""The algebras of sweeps: what (+) and (x) stand for, and how the numbers that they act on are held.

An algebra is a named tuple whose class the compiler specialises on, so that one source serves all. MAX and LOG act on
scores, REAL on numbers as they are, WIDE on LANES of them at a time, ANY on truth. ``plus`` and ``times`` also act on
values of several lanes, under MAX, LOG and REAL, so that a sweep over one problem may take a few neighbours of a row
in a step; under WIDE the neighbours belong to different problems, and a cell is ``lanes(sr)`` numbers of a flat array.
DUAL acts on positive numbers that change along two directions: a cell is the logarithm of one, its derivative along
the first, along the second, and along both. Sums of such are averages of derivatives, so nothing cancels.
"""

from functools import wraps
from math import exp, log1p
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from certus.kernels.lanes import (
    FEW,
    LANES,
    Lanes,
    add_product,
    lane,
    load,
    load_few,
    maximum,
    pack_few,
    spread,
    spread_few,
    store,
)

U = np.uint64


class MaxPlus(NamedTuple):
    """Best score."""

    zero: float = -np.inf
    one: float = 0.0


class LogPlus(NamedTuple):
    """Log of a sum of exponentials: positive numbers by their logarithms."""

    zero: float = -np.inf
    one: float = 0.0


class Real(NamedTuple):
    """Sums of products of numbers as they are. With weights of 1, it counts: exactly up to 2^53."""

    zero: float = 0.0
    one: float = 1.0


class WideReal(NamedTuple):
    """Real, LANES at a time. None of the numbers is ever zero, or all are."""

    zero: float = 0.0
    one: float = 1.0


class LogDual(NamedTuple):
    """LogPlus, with derivatives: FEW numbers at a time."""

    zero: float = -np.inf
    one: float = 0.0


class Boolean(NamedTuple):
    """Whether there is a derivation."""

    zero: bool = False
    one: bool = True


MAX, LOG, REAL, WIDE, DUAL, ANY = MaxPlus(), LogPlus(), Real(), WideReal(), LogDual(), Boolean()


# -- plus and times --------------------------------------------------------------------------------------------------


def _max(sr, a, b):
    return b if b > a else a


def _max_few(sr, a, b):
    return maximum(b, a)


def _log_add(sr, a, b):
    high = max(a, b)
    low = min(a, b)
    return high if low == -np.inf else high + log1p(exp(low - high))


def _log_add_few(sr, a, b):
    return pack_few(
        plus(sr, lane(a, 0), lane(b, 0)),
        plus(sr, lane(a, 1), lane(b, 1)),
        plus(sr, lane(a, 2), lane(b, 2)),
        plus(sr, lane(a, 3), lane(b, 3)),
    )


def _dual_add(sr, a, b):
    if lane(b, 0) > lane(a, 0):
        a, b = b, a
    if lane(b, 0) == -np.inf:
        return a
    e = exp(lane(b, 0) - lane(a, 0))
    p, q = 1.0 / (1.0 + e), e / (1.0 + e)
    slope_u, slope_v = lane(b, 1) - lane(a, 1), lane(b, 2) - lane(a, 2)
    return pack_few(
        lane(a, 0) + log1p(e),
        lane(a, 1) + q * slope_u,
        lane(a, 2) + q * slope_v,
        lane(a, 3) + q * (lane(b, 3) - lane(a, 3)) + p * q * slope_u * slope_v,
    )


def _dual_plain(sr, a):
    x = exp(lane(a, 0))
    return pack_few(x, x * lane(a, 1), x * lane(a, 2), x * (lane(a, 1) * lane(a, 2) + lane(a, 3)))


def _add(sr, a, b):
    return a + b


def _multiply(sr, a, b):
    return a * b


def _or(sr, a, b):
    return a or b


def _and(sr, a, b):
    return a and b


_PLUS = {MaxPlus: _max, LogPlus: _log_add, Real: _add, WideReal: _add, Boolean: _or}
_PLUS_FEW = {MaxPlus: _max_few, LogPlus: _log_add_few, Real: _add, WideReal: _add, LogDual: _dual_add}


def plus(sr, a, b):
    """a (+) b"""
    return (_PLUS_FEW if isinstance(a, np.ndarray) else _PLUS)[type(sr)](sr, a, b)


@overload(plus)
def _compiled_plus(sr, a, b):
    return (_PLUS_FEW if isinstance(a, Lanes) else _PLUS)[sr.instance_class]


def by_algebra(forms, other=None):
    """A function that is, for each class of algebras, one of ``forms``, or else ``other``: compiled, that one alone."""

    def made(stub):
        @wraps(stub)
        def function(sr, *arguments):
            return forms.get(type(sr), other)(sr, *arguments)

        overload(function, strict=False)(lambda sr, *arguments: forms.get(sr.instance_class, other))
        return function

    return made


@by_algebra({Real: _multiply, WideReal: _multiply, Boolean: _and}, _add)
def times(sr, a, b):
    """a (x) b"""


# -- more of LOG, REAL, WIDE and DUAL, which can divide --------------------------------------------------------------


def _plus_sum(sr, x, a, b):
    return plus(sr, x, a + b)


@by_algebra({LogPlus: _plus_sum, LogDual: _plus_sum}, lambda sr, x, a, b: add_product(x, a, b))
def plus_product(sr, x, a, b):
    """x (+) a (x) b, in one step where the machine has it."""


@by_algebra(
    {LogDual: lambda sr, a, b: a + spread_few(-1.0) * b, LogPlus: lambda sr, a, b: a - b}, lambda sr, a, b: a / b
)
def over(sr, a, b):
    """The number that times b is a."""


@by_algebra({LogDual: _dual_plain, LogPlus: lambda sr, a: np.exp(a)}, lambda sr, a: a)
def to_plain(sr, a):
    """The number that a stands for."""


@by_algebra({LogPlus: lambda sr, a: a, LogDual: lambda sr, a: a}, lambda sr, a: np.log(a))
def to_log(sr, a):
    """Logarithm of one number, of one lane."""


@by_algebra({LogDual: lambda sr, a: lane(a, 0) == sr.zero, WideReal: lambda sr, a: False}, lambda sr, a: a == sr.zero)
def is_zero(sr, a):
    """Whether a is zero; False under WIDE, where it is not to be asked."""


@by_algebra({Real: lambda sr, a, limit: a != 0.0 and not (a < limit and a * limit > 1.0)}, lambda sr, a, limit: False)
def is_extreme(sr, a, limit):
    """True for numbers other than 0 that are not well inside the range of float64."""


# -- cells of flat arrays --------------------------------------------------------------------------------------------


def _put_lanes(sr, w, i, x):
    store(w, i, x)


def _put_one(sr, w, i, x):
    w[i] = x


@by_algebra({WideReal: lambda sr: U(LANES), LogDual: lambda sr: U(FEW)}, lambda sr: U(1))
def lanes(sr):
    """How many numbers make a cell."""


@by_algebra({WideReal: lambda sr, x: spread(x), LogDual: lambda sr, x: pack_few(x, 0.0, 0.0, 0.0)}, lambda sr, x: x)
def number(sr, x):
    """The number x as a value of a cell."""


@by_algebra({WideReal: lambda sr, w, i: load(w, i), LogDual: lambda sr, w, i: load_few(w, i)}, lambda sr, w, i: w[i])
def get(sr, w, i):
    """The cell at w[i]."""


@by_algebra({WideReal: _put_lanes, LogDual: _put_lanes}, _put_one)
def put(sr, w, i, x):
    """The cell at w[i] <- x."""
