"""Sums of products over rows of cells, several at a time, for the elimination of words in ``matrix_tree``.

Blocks of several lanes are larger than the first cache: what is loaded of one is used for as many sums as registers
hold. Every sum adds its products in order, one after the other, however many are found together.
"""

from typing import NamedTuple

from certus.kernels.algebra import U, get, plus_product, put
from certus.kernels.compiling import njit


class Cells(NamedTuple):
    """Where a row of sums is in an array: what is given, where the result goes, the first factor, the step to the next
    one; and the gap from one sum to the next, in all three of them.
    """

    given: int
    out: int
    factor: int
    step: int
    gap: int


class Shared(NamedTuple):
    """Where the other factors are, which neighbours share: the first, and the step from one to the next."""

    at: int
    step: int


class Apart(NamedTuple):
    """How far the given, the result and the other factors of one row of sums are from those of the next."""

    given: int
    out: int
    shared: int


@njit(cache=True, nogil=True, inline="always")
def settle(sr, run, count, a, cells, b, others):
    """a[out] <- a[given] + sum over i < count of b[at + i * step] a[factor + i * step]

    for ``run`` neighbours, of which four at a time share what is loaded of b.
    """
    given, out, factor, factor_step, gap = cells
    shared, shared_step = others
    while run >= 4:
        x0 = get(sr, a, given)
        x1 = get(sr, a, given + gap)
        x2 = get(sr, a, given + U(2) * gap)
        x3 = get(sr, a, given + U(3) * gap)
        i, j = factor, shared
        for _ in range(count):
            y = get(sr, b, j)
            x0 = plus_product(sr, x0, y, get(sr, a, i))
            x1 = plus_product(sr, x1, y, get(sr, a, i + gap))
            x2 = plus_product(sr, x2, y, get(sr, a, i + U(2) * gap))
            x3 = plus_product(sr, x3, y, get(sr, a, i + U(3) * gap))
            i += factor_step
            j += shared_step
        put(sr, a, out, x0)
        put(sr, a, out + gap, x1)
        put(sr, a, out + U(2) * gap, x2)
        put(sr, a, out + U(3) * gap, x3)
        given += U(4) * gap
        out += U(4) * gap
        factor += U(4) * gap
        run -= 4
    while run > 0:
        x = get(sr, a, given)
        i, j = factor, shared
        for _ in range(count):
            x = plus_product(sr, x, get(sr, b, j), get(sr, a, i))
            i += factor_step
            j += shared_step
        put(sr, a, out, x)
        given += gap
        out += gap
        factor += gap
        run -= 1


@njit(cache=True, nogil=True, inline="always")
def settle_four(sr, run, count, a, cells, b, others, apart):
    """settle for four rows of sums, which share what is loaded of a."""
    given, out, factor, factor_step, gap = cells
    shared, shared_step = others
    given_apart, out_apart, shared_apart = apart
    while run >= 4:
        at = given
        x00 = get(sr, a, at)
        x01 = get(sr, a, at + gap)
        x02 = get(sr, a, at + U(2) * gap)
        x03 = get(sr, a, at + U(3) * gap)
        at = given + given_apart
        x10 = get(sr, a, at)
        x11 = get(sr, a, at + gap)
        x12 = get(sr, a, at + U(2) * gap)
        x13 = get(sr, a, at + U(3) * gap)
        at = given + U(2) * given_apart
        x20 = get(sr, a, at)
        x21 = get(sr, a, at + gap)
        x22 = get(sr, a, at + U(2) * gap)
        x23 = get(sr, a, at + U(3) * gap)
        at = given + U(3) * given_apart
        x30 = get(sr, a, at)
        x31 = get(sr, a, at + gap)
        x32 = get(sr, a, at + U(2) * gap)
        x33 = get(sr, a, at + U(3) * gap)
        i, j = factor, shared
        for _ in range(count):
            y0 = get(sr, b, j)
            y1 = get(sr, b, j + shared_apart)
            y2 = get(sr, b, j + U(2) * shared_apart)
            y3 = get(sr, b, j + U(3) * shared_apart)
            z = get(sr, a, i)
            x00 = plus_product(sr, x00, y0, z)
            x10 = plus_product(sr, x10, y1, z)
            x20 = plus_product(sr, x20, y2, z)
            x30 = plus_product(sr, x30, y3, z)
            z = get(sr, a, i + gap)
            x01 = plus_product(sr, x01, y0, z)
            x11 = plus_product(sr, x11, y1, z)
            x21 = plus_product(sr, x21, y2, z)
            x31 = plus_product(sr, x31, y3, z)
            z = get(sr, a, i + U(2) * gap)
            x02 = plus_product(sr, x02, y0, z)
            x12 = plus_product(sr, x12, y1, z)
            x22 = plus_product(sr, x22, y2, z)
            x32 = plus_product(sr, x32, y3, z)
            z = get(sr, a, i + U(3) * gap)
            x03 = plus_product(sr, x03, y0, z)
            x13 = plus_product(sr, x13, y1, z)
            x23 = plus_product(sr, x23, y2, z)
            x33 = plus_product(sr, x33, y3, z)
            i += factor_step
            j += shared_step
        at = out
        put(sr, a, at, x00)
        put(sr, a, at + gap, x01)
        put(sr, a, at + U(2) * gap, x02)
        put(sr, a, at + U(3) * gap, x03)
        at = out + out_apart
        put(sr, a, at, x10)
        put(sr, a, at + gap, x11)
        put(sr, a, at + U(2) * gap, x12)
        put(sr, a, at + U(3) * gap, x13)
        at = out + U(2) * out_apart
        put(sr, a, at, x20)
        put(sr, a, at + gap, x21)
        put(sr, a, at + U(2) * gap, x22)
        put(sr, a, at + U(3) * gap, x23)
        at = out + U(3) * out_apart
        put(sr, a, at, x30)
        put(sr, a, at + gap, x31)
        put(sr, a, at + U(2) * gap, x32)
        put(sr, a, at + U(3) * gap, x33)
        given += U(4) * gap
        out += U(4) * gap
        factor += U(4) * gap
        run -= 4
    while run > 0:
        x0 = get(sr, a, given)
        x1 = get(sr, a, given + given_apart)
        x2 = get(sr, a, given + U(2) * given_apart)
        x3 = get(sr, a, given + U(3) * given_apart)
        i, j = factor, shared
        for _ in range(count):
            z = get(sr, a, i)
            x0 = plus_product(sr, x0, get(sr, b, j), z)
            x1 = plus_product(sr, x1, get(sr, b, j + shared_apart), z)
            x2 = plus_product(sr, x2, get(sr, b, j + U(2) * shared_apart), z)
            x3 = plus_product(sr, x3, get(sr, b, j + U(3) * shared_apart), z)
            i += factor_step
            j += shared_step
        put(sr, a, out, x0)
        put(sr, a, out + out_apart, x1)
        put(sr, a, out + U(2) * out_apart, x2)
        put(sr, a, out + U(3) * out_apart, x3)
        given += gap
        out += gap
        factor += gap
        run -= 1
