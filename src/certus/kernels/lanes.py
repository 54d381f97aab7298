"""Several float64 numbers side by side as one value: the same step on all of them at once.

The compiler's own vectoriser gives up on short inner loops: their tests and remainders cost more than their steps. A
kernel may instead ``load`` the neighbours of a flat array as one value, add, multiply and divide such values, and
``store`` them: each is one machine operation, or a few where registers are narrower. Every lane rounds as a lone number
would (``add_product`` once or twice, as the machine has it, for one number as for many), and a division by zero gives
inf or nan. Bounds are not checked.

There are two widths. LANES is for as many independent problems that are laid out interleaved, number i of problem l at
``w[i * LANES + l]``; FEW is for neighbours in rows that are padded to whole lanes, which costs more the wider they are.
Interpreted, a value is an array.

Scores as integers: without its sign bit a float orders as its bits do, nan above inf, and unlike floats integers have a
largest one. ``watch`` keeps the largest magnitude of the scores that went by, as such bits.
"""

import math
import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

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
    """w[i], ..., w[i + LANES - 1] as one value; w is a contiguous float64 array."""
    return w[int(i) : int(i) + LANES].copy()


def load_few(w, i):
    """w[i], ..., w[i + FEW - 1] as one value."""
    return w[int(i) : int(i) + FEW].copy()


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


def _loading(kind, w, i):
    def generate(context, builder, signature, arguments):
        w = _data(context, builder, signature, arguments, 0)
        return builder.load(_lanes_at(builder, builder.gep(w, [arguments[1]]), kind.vector), align=8)

    return kind(w, i), generate


def _packing(kind, *numbers):
    """One value of the numbers given, or of one number in every lane."""

    def generate(context, builder, signature, arguments):
        value = ir.Constant(kind.vector, ir.Undefined)
        for lane in range(kind.width):
            number = arguments[lane % len(arguments)]
            value = builder.insert_element(value, number, ir.Constant(ir.IntType(32), lane))
        return value

    return kind(*[types.float64] * len(numbers)), generate


@intrinsic
def _load(typing, w, i):
    return _loading(LANES_TYPE, w, i)


@intrinsic
def _load_few(typing, w, i):
    return _loading(FEW_TYPE, w, i)


@intrinsic
def _store(typing, w, i, x):
    def generate(context, builder, signature, arguments):
        w = _data(context, builder, signature, arguments, 0)
        builder.store(arguments[2], _lanes_at(builder, builder.gep(w, [arguments[1]]), arguments[2].type), align=8)
        return context.get_dummy_value()

    return types.void(w, i, x), generate


@intrinsic
def _spread(typing, x):
    return _packing(LANES_TYPE, x)


@intrinsic
def _spread_few(typing, x):
    return _packing(FEW_TYPE, x)


@intrinsic
def _pack_few(typing, a, b, c, d):
    return _packing(FEW_TYPE, a, b, c, d)


@intrinsic
def _lane(typing, x, k):
    def generate(context, builder, signature, arguments):
        return builder.extract_element(*arguments)

    return types.float64(x, types.int32), generate


@intrinsic
def _add(typing, a, b):
    return a(a, b), lambda context, builder, signature, arguments: builder.fadd(*arguments)


@intrinsic
def _multiply(typing, a, b):
    return a(a, b), lambda context, builder, signature, arguments: builder.fmul(*arguments)


@intrinsic
def _divide(typing, a, b):
    return a(a, b), lambda context, builder, signature, arguments: builder.fdiv(*arguments)


@intrinsic
def _where_larger(typing, a, b, x, y):
    def generate(context, builder, signature, arguments):
        a, b, x, y = arguments
        return builder.select(builder.fcmp_ordered(">", a, b), x, y)

    return x(a, b, x, y), generate


@intrinsic
def _maximum(typing, a, b):
    def generate(context, builder, signature, arguments):
        vector = signature.args[0].vector
        kind, name = ir.FunctionType(vector, [vector, vector]), f"llvm.maxnum.v{vector.count}f64"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, arguments, fastmath=("nnan", "nsz"))

    return a(a, b), generate


def _multiply_add(builder, a, b, x):
    """a b + x, in one step if the machine has it."""
    name = f"llvm.fmuladd.v{x.type.count}f64" if isinstance(x.type, ir.VectorType) else "llvm.fmuladd.f64"
    kind = ir.FunctionType(x.type, [x.type] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [a, b, x])


@intrinsic
def _add_product(typing, x, a, b):
    def generate(context, builder, signature, arguments):
        x, a, b = arguments
        return _multiply_add(builder, a, b, x)

    return x(x, a, b), generate


@intrinsic
def _exponential(typing, x):
    """2^k times the series of exp(r), where x = k log 2 + r and k is whole, |r| <= log(2) / 2."""

    def generate(context, builder, signature, arguments):
        def every(number):
            return ir.Constant(VECTOR, [number] * LANES)

        (x,) = arguments
        whole = every(1.5 * 2.0**52)  # added, it leaves a whole number, in the last bits
        shifted = builder.fadd(builder.fmul(x, every(LOG2_E)), whole)
        k = builder.fsub(shifted, whole)
        r = builder.fsub(builder.fsub(x, builder.fmul(k, every(LN2_HIGH))), builder.fmul(k, every(LN2_LOW)))
        value = every(1.0 / math.factorial(12))
        for power in range(11, -1, -1):
            value = _multiply_add(builder, value, r, every(1.0 / math.factorial(power)))
        exponent = builder.shl(builder.bitcast(shifted, INTEGERS), ir.Constant(INTEGERS, [52] * LANES))
        value = builder.bitcast(builder.add(builder.bitcast(value, INTEGERS), exponent), VECTOR)
        return builder.select(builder.fcmp_ordered(">", x, every(-700.0)), value, every(0.0))

    return LANES_TYPE(x), generate


@intrinsic
def _watch(typing, top, x, mask):
    def generate(context, builder, signature, arguments):
        top, x, mask = (builder.bitcast(value, INTEGERS) for value in arguments)
        forbidden = builder.icmp_signed("==", x, ir.Constant(INTEGERS, [FORBIDDEN] * LANES))
        size = builder.select(forbidden, ir.Constant(INTEGERS, [0] * LANES), builder.and_(x, mask))
        return builder.bitcast(builder.select(builder.icmp_signed(">", size, top), size, top), VECTOR)

    return LANES_TYPE(top, x, mask), generate


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


def _lanes_at(builder, address, vector=VECTOR):
    return builder.bitcast(address, vector.as_pointer())


@intrinsic
def _interleave(typing, w, starts, at, out, to, gap):
    def generate(context, builder, signature, arguments):
        _, _, at, _, to, gap = arguments
        w, starts, out = (_data(context, builder, signature, arguments, k) for k in (0, 1, 3))
        rows = [builder.load(_lanes_at(builder, x), align=8) for x in _addresses(builder, w, starts, at)]
        for row in _transposed(builder, rows):
            builder.store(row, _lanes_at(builder, builder.gep(out, [to])), align=8)
            to = builder.add(to, gap)
        return context.get_dummy_value()

    return types.void(w, starts, at, out, to, gap), generate


@intrinsic
def _fetch(typing, w, starts, at):
    def generate(context, builder, signature, arguments):
        w, starts = (_data(context, builder, signature, arguments, k) for k in (0, 1))
        flag, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for address in _addresses(builder, w, starts, arguments[2]):  # to read, into the second cache, data
            builder.call(prefetch, [builder.bitcast(address, pointer), flag(0), flag(2), flag(1)])
        return context.get_dummy_value()

    return types.void(w, starts, at), generate


def _both_lanes(a, b):
    return isinstance(a, Lanes) and a == b


@overload(load)
def _compiled_load(w, i):
    return (lambda w, i: _load(w, i)) if w.layout == "C" else None


@overload(load_few)
def _compiled_load_few(w, i):
    return (lambda w, i: _load_few(w, i)) if w.layout == "C" else None


@overload(store)
def _compiled_store(w, i, x):
    return (lambda w, i, x: _store(w, i, x)) if w.layout == "C" else None


@overload(spread)
def _compiled_spread(x):
    return lambda x: _spread(x)


@overload(spread_few)
def _compiled_spread_few(x):
    return lambda x: _spread_few(x)


@overload(pack_few)
def _compiled_pack_few(a, b, c, d):
    return lambda a, b, c, d: _pack_few(a, b, c, d)


@overload(lane)
def _compiled_lane(x, k):
    return lambda x, k: _lane(x, k)


@overload(larger)
def _compiled_larger(a, b):
    return lambda a, b: _where_larger(a, b, a, b)


@overload(maximum)
def _compiled_maximum(a, b):
    return lambda a, b: _maximum(a, b)


@overload(where_larger)
def _compiled_where_larger(a, b, x, y):
    return lambda a, b, x, y: _where_larger(a, b, x, y)


@overload(add_product)
def _compiled_add_product(x, a, b):
    return lambda x, a, b: _add_product(x, a, b)


@overload(exponential)
def _compiled_exponential(x):
    return lambda x: _exponential(x)


@overload(watch)
def _compiled_watch(top, x, mask):
    return lambda top, x, mask: _watch(top, x, mask)


@overload(interleave)
def _compiled_interleave(w, starts, at, out, to, gap):
    return lambda w, starts, at, out, to, gap: _interleave(w, starts, at, out, to, gap)


@overload(fetch)
def _compiled_fetch(w, starts, at):
    return lambda w, starts, at: _fetch(w, starts, at)


@overload(operator.add)
def _compiled_add(a, b):
    return (lambda a, b: _add(a, b)) if _both_lanes(a, b) else None


@overload(operator.mul)
def _compiled_multiply(a, b):
    return (lambda a, b: _multiply(a, b)) if _both_lanes(a, b) else None


@overload(operator.truediv)
def _compiled_divide(a, b):
    return (lambda a, b: _divide(a, b)) if _both_lanes(a, b) else None
