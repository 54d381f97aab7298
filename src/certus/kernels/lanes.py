"""Semiring operations on LANES neighbouring cells of flat arrays at once, as single vector instructions.

    push(sr, to, t, w, x, a)               to[t + v] (+)= w (x) x[a + v]                           v < LANES
    push2(sr, to, t, w, x, a, y, b)        to[t + v] (+)= w (x) x[a + v] (x) y[b + v]
    push3(sr, to, t, w, x, a, y, b, z, c)  to[t + v] (+)= w (x) x[a + v] (x) y[b + v] (x) z[c + v]

Loops over short rows lose most of their time to the tests and the remainders that a vectorising compiler puts around
them; rows that are padded to whole lanes need neither. `to` may be one of the sources, at cells that are the same or do
not overlap. No cell may be nan, unless nothing depends on it. LogPlus, which has no vector instruction, goes cell by
cell, and so does interpreted code.
"""

from llvmlite import ir
from numba import types, uint64
from numba.core import cgutils
from numba.extending import intrinsic, overload

from certus.kernels.hypergraph import Counting, MaxPlus, plus, times

LANES = 4


def push(sr, to, t, w, x, a):
    """to (+)= w (x) x"""
    for v in range(uint64(LANES)):
        to[t + v] = plus(sr, to[t + v], times(sr, w, x[a + v]))


def push2(sr, to, t, w, x, a, y, b):
    """to (+)= w (x) x (x) y"""
    for v in range(uint64(LANES)):
        to[t + v] = plus(sr, to[t + v], times(sr, times(sr, w, x[a + v]), y[b + v]))


def push3(sr, to, t, w, x, a, y, b, z, c):
    """to (+)= w (x) x (x) y (x) z"""
    for v in range(uint64(LANES)):
        to[t + v] = plus(sr, to[t + v], times(sr, times(sr, times(sr, w, x[a + v]), y[b + v]), z[c + v]))


def _emit(context, builder, signature, args):
    """Instructions for arguments (sr, to, t, w, source, at, source, at, ...)."""
    vector = ir.VectorType(ir.DoubleType(), LANES)
    largest = signature.args[0].instance_class is MaxPlus

    def pointer(k):
        array = context.make_array(signature.args[k])(context, builder, args[k])
        return builder.bitcast(builder.gep(array.data, [args[k + 1]]), vector.as_pointer())

    value = ir.Constant(vector, ir.Undefined)
    for v in range(LANES):
        value = builder.insert_element(value, args[3], ir.Constant(ir.IntType(32), v))
    for k in range(4, len(args), 2):
        source = builder.load(pointer(k), align=8)
        value = builder.fadd(value, source) if largest else builder.fmul(value, source)
    target = pointer(1)
    old = builder.load(target, align=8)
    if largest:
        kind = ir.FunctionType(vector, [vector, vector])
        maximum = cgutils.get_or_insert_function(builder.module, kind, f"llvm.maxnum.v{LANES}f64")
        value = builder.call(maximum, [value, old], fastmath=("nnan", "nsz"))
    else:
        value = builder.fadd(old, value)
    builder.store(value, target, align=8)
    return context.get_dummy_value()


@intrinsic
def _push(typing_context, sr, to, t, w, x, a):
    return types.void(sr, to, t, w, x, a), _emit


@intrinsic
def _push2(typing_context, sr, to, t, w, x, a, y, b):
    return types.void(sr, to, t, w, x, a, y, b), _emit


@intrinsic
def _push3(typing_context, sr, to, t, w, x, a, y, b, z, c):
    return types.void(sr, to, t, w, x, a, y, b, z, c), _emit


def _has_instruction(sr):
    return getattr(sr, "instance_class", None) in (MaxPlus, Counting)


@overload(push)
def _overload_push(sr, to, t, w, x, a):
    if _has_instruction(sr):
        return lambda sr, to, t, w, x, a: _push(sr, to, t, w, x, a)
    return push


@overload(push2)
def _overload_push2(sr, to, t, w, x, a, y, b):
    if _has_instruction(sr):
        return lambda sr, to, t, w, x, a, y, b: _push2(sr, to, t, w, x, a, y, b)
    return push2


@overload(push3)
def _overload_push3(sr, to, t, w, x, a, y, b, z, c):
    if _has_instruction(sr):
        return lambda sr, to, t, w, x, a, y, b, z, c: _push3(sr, to, t, w, x, a, y, b, z, c)
    return push3


__all__ = ["LANES", "push", "push2", "push3"]
