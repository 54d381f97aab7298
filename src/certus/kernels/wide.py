"""Several float64 numbers side by side as one value: the same step on LANES independent problems at once.

The compiler's own vectoriser gives up on short inner loops. A kernel that lays out LANES problems interleaved, number i
of lane l at ``w[i * LANES + l]``, may instead ``load`` the lanes of a number, add, multiply and divide them, and
``store`` them: each is one machine operation, or a few where registers are narrower. Every lane rounds as a lone number
would (no fused multiply-add), and a division by zero gives inf or nan. Interpreted, a value is an array of LANES cells.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

LANES = 8

VECTOR = ir.VectorType(ir.DoubleType(), LANES)


def load(w, i):
    """w[i], ..., w[i + LANES - 1] as one value; w is a contiguous float64 array. Bounds are not checked."""
    return w[int(i) : int(i) + LANES].copy()


def store(w, i, x):
    """w[i], ..., w[i + LANES - 1] <- x."""
    w[int(i) : int(i) + LANES] = x


def spread(x):
    """The number x in every lane."""
    return np.full(LANES, x)


class Lanes(types.Type):
    """Type of a value of LANES numbers inside compiled code."""


LANES_TYPE = Lanes("Lanes")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR)


def _address(context, builder, signature, arguments):
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), VECTOR.as_pointer())


@intrinsic
def _load(typing, w, i):
    def generate(context, builder, signature, arguments):
        return builder.load(_address(context, builder, signature, arguments), align=8)

    return LANES_TYPE(w, i), generate


@intrinsic
def _store(typing, w, i, x):
    def generate(context, builder, signature, arguments):
        builder.store(arguments[2], _address(context, builder, signature, arguments), align=8)
        return context.get_dummy_value()

    return types.void(w, i, x), generate


@intrinsic
def _spread(typing, x):
    def generate(context, builder, signature, arguments):
        value = ir.Constant(VECTOR, ir.Undefined)
        for lane in range(LANES):
            value = builder.insert_element(value, arguments[0], ir.Constant(ir.IntType(32), lane))
        return value

    return LANES_TYPE(types.float64), generate


@intrinsic
def _add(typing, a, b):
    return LANES_TYPE(a, b), lambda context, builder, signature, arguments: builder.fadd(*arguments)


@intrinsic
def _multiply(typing, a, b):
    return LANES_TYPE(a, b), lambda context, builder, signature, arguments: builder.fmul(*arguments)


@intrinsic
def _divide(typing, a, b):
    return LANES_TYPE(a, b), lambda context, builder, signature, arguments: builder.fdiv(*arguments)


def _both_lanes(a, b):
    return isinstance(a, Lanes) and isinstance(b, Lanes)


@overload(load)
def _compiled_load(w, i):
    return lambda w, i: _load(w, i)


@overload(store)
def _compiled_store(w, i, x):
    return lambda w, i, x: _store(w, i, x)


@overload(spread)
def _compiled_spread(x):
    return lambda x: _spread(x)


@overload(operator.add)
def _compiled_add(a, b):
    return (lambda a, b: _add(a, b)) if _both_lanes(a, b) else None


@overload(operator.mul)
def _compiled_multiply(a, b):
    return (lambda a, b: _multiply(a, b)) if _both_lanes(a, b) else None


@overload(operator.truediv)
def _compiled_divide(a, b):
    return (lambda a, b: _divide(a, b)) if _both_lanes(a, b) else None
