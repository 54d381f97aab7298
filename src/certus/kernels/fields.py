"""Positive numbers as they are (REAL), LANES at a time (WIDE), or by their logarithms (LOG): one source serves all.

A field is a named tuple whose class the compiler specialises on; its cells lie in flat arrays, ``lanes(field)`` numbers
to a cell.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from certus.kernels.compiling import njit
from certus.kernels.wide import LANES, add_product, load, spread, store

U = np.uint64


class RealField(NamedTuple):
    """Numbers as they are."""

    zero: float
    one: float


class WideField(NamedTuple):
    """Numbers as they are, LANES at a time. None is ever zero, or all are."""

    zero: float
    one: float


class LogField(NamedTuple):
    """Numbers by their logarithms."""

    zero: float
    one: float


REAL = RealField(0.0, 1.0)
WIDE = WideField(0.0, 1.0)
LOG = LogField(-np.inf, 0.0)


@njit(cache=True, nogil=True)
def log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


def lanes(sr):
    """How many numbers make one."""
    return U(LANES) if isinstance(sr, WideField) else U(1)


def number(sr, x):
    return spread(x) if isinstance(sr, WideField) else x


def get(sr, w, i):
    return load(w, i) if isinstance(sr, WideField) else w[i]


def put(sr, w, i, x):
    if isinstance(sr, WideField):
        store(w, i, x)
    else:
        w[i] = x


def plus(sr, a, b):
    return log_add(a, b) if isinstance(sr, LogField) else a + b


def times(sr, a, b):
    return a + b if isinstance(sr, LogField) else a * b


def plus_product(sr, x, a, b):
    """x (+) a (x) b"""
    return log_add(x, a + b) if isinstance(sr, LogField) else add_product(x, a, b)


def over(sr, a, b):
    return a - b if isinstance(sr, LogField) else a / b


def to_plain(sr, a):
    return np.exp(a) if isinstance(sr, LogField) else a


def to_log(sr, a):
    """Logarithm of one number, of one lane."""
    return a if isinstance(sr, LogField) else np.log(a)


def is_zero(sr, a):
    return False if isinstance(sr, WideField) else a == sr.zero


def is_extreme(sr, a, limit):
    """True for numbers other than 0 that are not well inside the range of float64."""
    return a != 0.0 and not (a < limit and a * limit > 1.0) if isinstance(sr, RealField) else False


@overload(lanes)
def _lanes(sr):
    if sr.instance_class is WideField:
        return lambda sr: U(LANES)
    return lambda sr: U(1)


@overload(number)
def _number(sr, x):
    if sr.instance_class is WideField:
        return lambda sr, x: spread(x)
    return lambda sr, x: x


@overload(get)
def _get(sr, w, i):
    if sr.instance_class is WideField:
        return lambda sr, w, i: load(w, i)
    return lambda sr, w, i: w[i]


@overload(put)
def _put(sr, w, i, x):
    if sr.instance_class is WideField:
        return lambda sr, w, i, x: store(w, i, x)

    def put_one(sr, w, i, x):
        w[i] = x

    return put_one


@overload(plus)
def _plus(sr, a, b):
    if sr.instance_class is LogField:
        return lambda sr, a, b: log_add(a, b)
    return lambda sr, a, b: a + b


@overload(times)
def _times(sr, a, b):
    if sr.instance_class is LogField:
        return lambda sr, a, b: a + b
    return lambda sr, a, b: a * b


@overload(plus_product)
def _plus_product(sr, x, a, b):
    if sr.instance_class is LogField:
        return lambda sr, x, a, b: log_add(x, a + b)
    return lambda sr, x, a, b: add_product(x, a, b)


@overload(over)
def _over(sr, a, b):
    if sr.instance_class is LogField:
        return lambda sr, a, b: a - b
    return lambda sr, a, b: a / b


@overload(to_plain)
def _to_plain(sr, a):
    if sr.instance_class is LogField:
        return lambda sr, a: np.exp(a)
    return lambda sr, a: a


@overload(to_log)
def _to_log(sr, a):
    if sr.instance_class is LogField:
        return lambda sr, a: a
    return lambda sr, a: np.log(a)


@overload(is_zero)
def _is_zero(sr, a):
    if sr.instance_class is WideField:
        return lambda sr, a: False
    return lambda sr, a: a == sr.zero


@overload(is_extreme)
def _is_extreme(sr, a, limit):
    if sr.instance_class is RealField:
        return lambda sr, a, limit: a != 0.0 and not (a < limit and a * limit > 1.0)
    return lambda sr, a, limit: False
