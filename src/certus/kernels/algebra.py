"""The algebras of sweeps: what (+) and (x) stand for, and how the numbers that they act on are held.

An algebra is a named tuple whose class the compiler specialises on, so that one source serves all. MAX and LOG act on
scores, REAL on numbers as they are, WIDE on LANES of them at a time, ANY on truth. ``plus`` and ``times`` also act on
values of several lanes, under MAX, LOG and REAL, so that a sweep over one problem may take a few neighbours of a row
in a step; under WIDE the neighbours belong to different problems, and a cell is ``lanes(sr)`` numbers of a flat array.
DUAL acts on positive numbers that change along two directions: a cell is the logarithm of one, its derivative along
the first, along the second, and along both. Sums of such are averages of derivatives, so nothing cancels.
"""

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
_TIMES = {MaxPlus: _add, LogPlus: _add, Real: _multiply, WideReal: _multiply, LogDual: _add, Boolean: _and}


def plus(sr, a, b):
    """a (+) b"""
    return (_PLUS_FEW if isinstance(a, np.ndarray) else _PLUS)[type(sr)](sr, a, b)


def times(sr, a, b):
    """a (x) b"""
    return _TIMES[type(sr)](sr, a, b)


@overload(plus)
def _compiled_plus(sr, a, b):
    return (_PLUS_FEW if isinstance(a, Lanes) else _PLUS)[sr.instance_class]


@overload(times)
def _compiled_times(sr, a, b):
    return _TIMES[sr.instance_class]


# -- more of LOG, REAL, WIDE and DUAL, which can divide --------------------------------------------------------------


def plus_product(sr, x, a, b):
    """x (+) a (x) b, in one step where the machine has it."""
    return plus(sr, x, a + b) if isinstance(sr, LogPlus | LogDual) else add_product(x, a, b)


def over(sr, a, b):
    """The number that times b is a."""
    if isinstance(sr, LogDual):
        return a + spread_few(-1.0) * b
    return a - b if isinstance(sr, LogPlus) else a / b


def to_plain(sr, a):
    """The number that a stands for."""
    if isinstance(sr, LogDual):
        return _dual_plain(sr, a)
    return np.exp(a) if isinstance(sr, LogPlus) else a


def to_log(sr, a):
    """Logarithm of one number, of one lane."""
    return a if isinstance(sr, LogPlus | LogDual) else np.log(a)


def is_zero(sr, a):
    """Whether a is zero; False under WIDE, where it is not to be asked."""
    if isinstance(sr, LogDual):
        return lane(a, 0) == sr.zero
    return False if isinstance(sr, WideReal) else a == sr.zero


def is_extreme(sr, a, limit):
    """True for numbers other than 0 that are not well inside the range of float64."""
    return a != 0.0 and not (a < limit and a * limit > 1.0) if isinstance(sr, Real) else False


@overload(plus_product)
def _compiled_plus_product(sr, x, a, b):
    if sr.instance_class in (LogPlus, LogDual):
        return lambda sr, x, a, b: plus(sr, x, a + b)
    return lambda sr, x, a, b: add_product(x, a, b)


@overload(over)
def _compiled_over(sr, a, b):
    if sr.instance_class is LogDual:
        return lambda sr, a, b: a + spread_few(-1.0) * b
    if sr.instance_class is LogPlus:
        return lambda sr, a, b: a - b
    return lambda sr, a, b: a / b


@overload(to_plain)
def _compiled_to_plain(sr, a):
    if sr.instance_class is LogDual:
        return _dual_plain
    if sr.instance_class is LogPlus:
        return lambda sr, a: np.exp(a)
    return lambda sr, a: a


@overload(to_log)
def _compiled_to_log(sr, a):
    if sr.instance_class in (LogPlus, LogDual):
        return lambda sr, a: a
    return lambda sr, a: np.log(a)


@overload(is_zero)
def _compiled_is_zero(sr, a):
    if sr.instance_class is WideReal:
        return lambda sr, a: False
    if sr.instance_class is LogDual:
        return lambda sr, a: lane(a, 0) == sr.zero
    return lambda sr, a: a == sr.zero


@overload(is_extreme)
def _compiled_is_extreme(sr, a, limit):
    if sr.instance_class is Real:
        return lambda sr, a, limit: a != 0.0 and not (a < limit and a * limit > 1.0)
    return lambda sr, a, limit: False


# -- cells of flat arrays --------------------------------------------------------------------------------------------


def lanes(sr):
    """How many numbers make a cell."""
    return U({WideReal: LANES, LogDual: FEW}.get(type(sr), 1))


def number(sr, x):
    """The number x as a value of a cell."""
    if isinstance(sr, LogDual):
        return pack_few(x, 0.0, 0.0, 0.0)
    return spread(x) if isinstance(sr, WideReal) else x


def get(sr, w, i):
    """The cell at w[i]."""
    if isinstance(sr, LogDual):
        return load_few(w, i)
    return load(w, i) if isinstance(sr, WideReal) else w[i]


def put(sr, w, i, x):
    """The cell at w[i] <- x."""
    if isinstance(sr, WideReal | LogDual):
        store(w, i, x)
    else:
        w[i] = x


@overload(lanes)
def _compiled_lanes(sr):
    if sr.instance_class is WideReal:
        return lambda sr: U(LANES)
    if sr.instance_class is LogDual:
        return lambda sr: U(FEW)
    return lambda sr: U(1)


@overload(number)
def _compiled_number(sr, x):
    if sr.instance_class is WideReal:
        return lambda sr, x: spread(x)
    if sr.instance_class is LogDual:
        return lambda sr, x: pack_few(x, 0.0, 0.0, 0.0)
    return lambda sr, x: x


@overload(get)
def _compiled_get(sr, w, i):
    if sr.instance_class is WideReal:
        return lambda sr, w, i: load(w, i)
    if sr.instance_class is LogDual:
        return lambda sr, w, i: load_few(w, i)
    return lambda sr, w, i: w[i]


@overload(put)
def _compiled_put(sr, w, i, x):
    if sr.instance_class in (WideReal, LogDual):
        return lambda sr, w, i, x: store(w, i, x)

    def put_one(sr, w, i, x):
        w[i] = x

    return put_one
