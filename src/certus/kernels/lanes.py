"""Several float64 numbers side by side as one value: the same step on all of them at once.

The compiler's own vectoriser gives up on short inner loops: their tests and remainders cost more than their steps. A
kernel may instead ``load`` the neighbours of a flat array as one value, add, multiply and divide such values, and
``store`` them: each is one machine operation, or a few where registers are narrower. Every lane rounds as a lone number
would (``add_product`` once or twice, as the machine has it, for one number as for many), and a division by zero gives
inf or nan. Bounds are not checked.

There are two widths. LANES is for as many independent problems that are laid out interleaved, number i of problem l at
``w[i * LANES + l]``; FEW is for neighbours in rows that are padded to whole lanes, which costs more the wider they are.
Interpreted, a value is an array. Arrays are of float64, or of float32, which values are read from and rounded to.

Scores as integers: without its sign bit a float orders as its bits do, nan above inf, and unlike floats integers have a
largest one. ``watch`` keeps the largest magnitude of the scores that went by, as such bits.
"""

import math
import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable

from certus.kernels.compiling import njit

LANES = 8
FEW = 4

# Bits of inf, of -inf, and all but the sign. Magnitudes from BAD on are of inf and nan.
BAD = 0x7FF0000000000000
FORBIDDEN = -0x0010000000000000
UNSIGNED = 0x7FFFFFFFFFFFFFFF

LOG2_E = 1.4426950408889634
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")  # times a small whole number, it is exact
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")

VECTOR = ir.VectorType(ir.DoubleType(), LANES)
INTEGERS = ir.VectorType(ir.IntType(64), LANES)
SIZES = {ir.DoubleType(): 8, ir.FloatType(): 4}  # in bytes, of the numbers in arrays


@njit(cache=True, nogil=True)
def magnitude(bits):
    """Bits of the absolute value of a score, 0 for -inf, BAD or more for inf and nan."""
    return 0 if bits == FORBIDDEN else bits & UNSIGNED


@njit(cache=True, nogil=True)
def as_float(bits):
    """The float with these bits."""
    return np.array([bits]).view(np.float64)[0]


@njit(cache=True, nogil=True)
def aligned(size):
    """An empty array that starts at a whole number of lanes: loads that straddle cache lines take twice as long."""
    room = np.empty(size + LANES)
    first = -(room.ctypes.data // 8) % LANES
    return room[first : first + size]


def load(w, i):
    """w[i], ..., w[i + LANES - 1] as one value; w is a contiguous array."""
    return w[int(i) : int(i) + LANES].astype(np.float64)


def load_few(w, i):
    """w[i], ..., w[i + FEW - 1] as one value."""
    return w[int(i) : int(i) + FEW].astype(np.float64)


def store(w, i, x):
    """w[i], w[i + 1], ... <- the numbers of x."""
    w[int(i) : int(i) + len(x)] = x


def spread(x):
    """The number x in each of LANES lanes."""
    return np.full(LANES, x)


def spread_few(x):
    """The number x in each of FEW lanes."""
    return np.full(FEW, x)


def pack_few(a, b, c, d):
    """FEW numbers as one value."""
    return np.array([a, b, c, d])


def lane(x, k):
    """Number k of x."""
    return x[k]


def larger(a, b):
    """The larger number of each lane; neither is nan, unless nothing depends on it."""
    return np.where(a > b, a, b)


def maximum(a, b):
    """The larger number of each lane, as the machine has it; neither is nan, and zeros have no sign."""
    return np.where(a > b, a, b)


def where_larger(a, b, x, y):
    """The number of x in the lanes where a > b, that of y in the others."""
    return np.where(a > b, x, y)


def add_product(x, a, b):
    """x + a b, of lanes or of plain numbers."""
    return x + a * b


def exponential(x):
    """exp(x) for x <= 0, 0 below -700; within a few units in the last place."""
    return np.where(x > -700.0, np.exp(np.minimum(x, 0.0)), 0.0)


def watch(top, x, mask):
    """The larger of top and the magnitude of x, as bits; mask has the bits UNSIGNED, or none where x is no score."""
    bits = x.view(np.int64)
    size = np.where(bits == FORBIDDEN, 0, bits & mask.view(np.int64))
    return np.maximum(top.view(np.int64), size).view(np.float64)


def interleave(w, starts, at, out, to, gap):
    """out[to + v * gap + l] <- w[starts[l] + at + v] for v, l < LANES: LANES cells of LANES problems. Unchecked."""
    for v in range(LANES):
        for lane in range(LANES):
            out[int(to) + v * int(gap) + lane] = w[int(starts[lane]) + int(at) + v]


def fetch(w, starts, at):
    """Have the cache lines of w[starts[l] + at] brought near while other work goes on."""


class Lanes(types.Type):
    """Type of a value of several numbers inside compiled code."""

    def __init__(self, width):
        super().__init__(f"Lanes({width})")
        self.width = width
        self.vector = ir.VectorType(ir.DoubleType(), width)


LANES_TYPE, FEW_TYPE = Lanes(LANES), Lanes(FEW)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, kind.vector)


# -- how each is compiled ----------------------------------------------------------------------------------------------


def _compiled(function, kind, *arguments):
    """Have calls of a function compiled to what the decorated one builds.

    ``kind`` has the types of the arguments and returns that of the value, or None if the call is not for it;
    ``arguments`` are the classes of their types where the function is not ours alone.
    """

    def register(build):
        type_callable(function)(lambda context: kind)
        lower_builtin(function, *(arguments or [types.VarArg(types.Any)]))(build)
        return build

    return register


def _alike(*kinds):
    """The type that all are of, if they are."""
    return kinds[0] if len(set(kinds)) == 1 else None


@_compiled(load, lambda w, i: LANES_TYPE if w.layout == "C" else None)
@_compiled(load_few, lambda w, i: FEW_TYPE if w.layout == "C" else None)
def _load(context, builder, signature, arguments):
    w = _data(context, builder, signature, arguments, 0)
    return _read(builder, builder.gep(w, [arguments[1]]), signature.return_type.width)


@_compiled(store, lambda w, i, x: types.none if w.layout == "C" else None)
def _store(context, builder, signature, arguments):
    w = _data(context, builder, signature, arguments, 0)
    _write(builder, builder.gep(w, [arguments[1]]), arguments[2])
    return context.get_dummy_value()


@_compiled(spread, lambda x: LANES_TYPE if x == types.float64 else None)
@_compiled(spread_few, lambda x: FEW_TYPE if x == types.float64 else None)
@_compiled(pack_few, lambda a, b, c, d: FEW_TYPE if _alike(a, b, c, d) == types.float64 else None)
def _pack(context, builder, signature, arguments):
    """One value of the numbers given, or of one number in every lane."""
    value = ir.Constant(signature.return_type.vector, ir.Undefined)
    for lane in range(signature.return_type.width):
        number = arguments[lane % len(arguments)]
        value = builder.insert_element(value, number, ir.Constant(ir.IntType(32), lane))
    return value


@_compiled(lane, lambda x, k: types.float64)
def _lane(context, builder, signature, arguments):
    return builder.extract_element(*arguments)


@_compiled(operator.add, lambda a, b: a if isinstance(a, Lanes) and a == b else None, Lanes, Lanes)
def _add(context, builder, signature, arguments):
    return builder.fadd(*arguments)


@_compiled(operator.mul, lambda a, b: a if isinstance(a, Lanes) and a == b else None, Lanes, Lanes)
def _multiply(context, builder, signature, arguments):
    return builder.fmul(*arguments)


@_compiled(operator.truediv, lambda a, b: a if isinstance(a, Lanes) and a == b else None, Lanes, Lanes)
def _divide(context, builder, signature, arguments):
    return builder.fdiv(*arguments)


@_compiled(larger, lambda a, b: _alike(a, b))
@_compiled(where_larger, lambda a, b, x, y: _alike(a, b, x, y))
def _where_larger(context, builder, signature, arguments):
    a, b, *chosen = arguments
    return builder.select(builder.fcmp_ordered(">", a, b), *(chosen or (a, b)))


@_compiled(maximum, lambda a, b: _alike(a, b))
def _maximum(context, builder, signature, arguments):
    vector = signature.return_type.vector
    kind, name = ir.FunctionType(vector, [vector, vector]), f"llvm.maxnum.v{vector.count}f64"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, arguments, fastmath=("nnan", "nsz"))


def _multiply_add(builder, a, b, x):
    """a b + x, in one step if the machine has it."""
    name = f"llvm.fmuladd.v{x.type.count}f64" if isinstance(x.type, ir.VectorType) else "llvm.fmuladd.f64"
    kind = ir.FunctionType(x.type, [x.type] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [a, b, x])


@_compiled(add_product, lambda x, a, b: _alike(x, a, b))
def _add_product(context, builder, signature, arguments):
    x, a, b = arguments
    return _multiply_add(builder, a, b, x)


@_compiled(exponential, lambda x: LANES_TYPE)
def _exponential(context, builder, signature, arguments):
    """2^k times the series of exp(r), where x = k log 2 + r and k is whole, |r| <= log(2) / 2.

    The terms from r^2 on are added up in pairs, pairs of pairs and so on, which is a shorter way than one after the
    other: a processor that runs ahead gets to more of the numbers that follow.
    """

    def every(number):
        return ir.Constant(VECTOR, [number] * LANES)

    def product(a, b, x):
        return _multiply_add(builder, a, b, x)

    (x,) = arguments
    whole = every(1.5 * 2.0**52)  # added, it leaves a whole number, in the last bits
    shifted = product(x, every(LOG2_E), whole)
    k = builder.fsub(shifted, whole)
    r = product(k, every(-LN2_LOW), product(k, every(-LN2_HIGH), x))
    terms = [every(1.0 / math.factorial(power)) for power in range(2, 13)]
    power = r
    while len(terms) > 1:
        odd = terms[-1:] if len(terms) % 2 else []
        terms = [product(b, power, a) for a, b in zip(terms[::2], terms[1::2], strict=False)] + odd
        power = builder.fmul(power, power)
    value = product(product(terms[0], r, every(1.0)), r, every(1.0))
    exponent = builder.shl(builder.bitcast(shifted, INTEGERS), ir.Constant(INTEGERS, [52] * LANES))
    value = builder.bitcast(builder.add(builder.bitcast(value, INTEGERS), exponent), VECTOR)
    return builder.select(builder.fcmp_ordered(">", x, every(-700.0)), value, every(0.0))


@_compiled(watch, lambda top, x, mask: LANES_TYPE)
def _watch(context, builder, signature, arguments):
    top, x, mask = (builder.bitcast(value, INTEGERS) for value in arguments)
    forbidden = builder.icmp_signed("==", x, ir.Constant(INTEGERS, [FORBIDDEN] * LANES))
    size = builder.select(forbidden, ir.Constant(INTEGERS, [0] * LANES), builder.and_(x, mask))
    return builder.bitcast(builder.select(builder.icmp_signed(">", size, top), size, top), VECTOR)


def _transposed(builder, rows):
    """LANES values of LANES numbers, with rows and columns exchanged."""
    rows = list(rows)
    d = 1
    while d < LANES:  # swap the corners of blocks of 2 d x 2 d
        corners = (
            [v + LANES - d if v & d else v for v in range(LANES)],
            [v + LANES if v & d else v + d for v in range(LANES)],
        )
        for k in range(LANES):
            if not k & d:
                p, q = rows[k], rows[k + d]
                for at, cells in zip((k, k + d), corners, strict=True):
                    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), cells)
                    rows[at] = builder.shuffle_vector(p, q, mask)
        d *= 2
    return rows


def _data(context, builder, signature, arguments, k):
    """Where the array that is argument k begins."""
    return context.make_array(signature.args[k])(context, builder, arguments[k]).data


def _addresses(builder, array, starts, at):
    """Of array[starts[l] + at], lane by lane."""
    for lane in range(LANES):
        start = builder.load(builder.gep(starts, [ir.Constant(ir.IntType(64), lane)]))
        yield builder.gep(array, [builder.add(start, at)])


def _read(builder, address, width=LANES):
    """The value of the numbers from an address on."""
    kind, value = address.type.pointee, ir.VectorType(ir.DoubleType(), width)
    own = ir.VectorType(kind, width)
    found = builder.load(builder.bitcast(address, own.as_pointer()), align=SIZES[kind])
    return found if own == value else builder.fpext(found, value)


def _write(builder, address, value):
    """The numbers from an address on <- those of a value."""
    kind = address.type.pointee
    own = ir.VectorType(kind, value.type.count)
    given = value if own == value.type else builder.fptrunc(value, own)
    builder.store(given, builder.bitcast(address, own.as_pointer()), align=SIZES[kind])


@_compiled(interleave, lambda w, starts, at, out, to, gap: types.none)
def _interleave(context, builder, signature, arguments):
    _, _, at, _, to, gap = arguments
    w, starts, out = (_data(context, builder, signature, arguments, k) for k in (0, 1, 3))
    rows = [_read(builder, x) for x in _addresses(builder, w, starts, at)]
    for row in _transposed(builder, rows):
        _write(builder, builder.gep(out, [to]), row)
        to = builder.add(to, gap)
    return context.get_dummy_value()


@_compiled(fetch, lambda w, starts, at: types.none)
def _fetch(context, builder, signature, arguments):
    w, starts = (_data(context, builder, signature, arguments, k) for k in (0, 1))
    flag, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    for address in _addresses(builder, w, starts, arguments[2]):  # to read, into the second cache, data
        builder.call(prefetch, [builder.bitcast(address, pointer), flag(0), flag(2), flag(1)])
    return context.get_dummy_value()


# -- numbers of a value put together ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def highest(x):
    """The largest number of a value of LANES."""
    most = lane(x, 0)
    for k in range(1, LANES):
        most = max(most, lane(x, k))
    return most


@njit(cache=True, nogil=True, inline="always")
def added(x):
    """The sum of the numbers of a value of LANES."""
    total = lane(x, 0)
    for k in range(1, LANES):
        total += lane(x, k)
    return total
