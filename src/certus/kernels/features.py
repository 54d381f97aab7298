"""Hashed features of the parts of a dependency tree.

A part is an array of nodes, one for each role: head and modifier, then sibling, grandparent, ... as its templates name
them; ABSENT stands for a role that is not filled. A template is a list of components (role, offset, attribute). Its
code is the sum of what its components see, each times an odd number of its own, so that the share of every node in
every template can be computed once a sentence (role_codes), and a part only adds up rows. A template of an arc, or of
an arc to be labelled, gives two features: its code, and its code with the arc's shape, that is its direction and
length. One of a part of several arcs gives one, with the shape that says on which side of the head each node lies.
Templates come in four groups: plain ones; those whose code takes in the names of the part's arcs,
that is the labels they would likely have; those that count the words between head and modifier that have the coarse
tag of either; and those that give features for each coarse tag that occurs between.

Arrays: attribute (rows, A) uint64 holds a row of hashed attribute values for each node, with PAD rows on both sides of
every sentence; node v of a sentence is row base + v. Coarse tags in [0, 64) stand in coarse (rows,) int64, -1 in pads.
A sentence and templates are named tuples of kernels.tuples; ptr (T + 1,), seed (T,) uint64.
Codes are 32 bits wide: more than any model has weights, and twice as many fit a register of the processor.
"""

import numpy as np
from numba import uint32, uint64

from certus.kernels.compiling import njit

PAD = 4
ABSENT = -2  # the pad row that stands for no node: with offsets of -1 to +1 it meets only its like and the root
_MIX = uint64(0x9E3779B97F4A7C15)
_FINISH = uint64(0xD6E8FEB86659FD93)
_SPREAD = uint32(0x9E3779B1)
_SHAPE = uint32(0x85EBCA6B)
_FOLD = uint32(15)
_HALF = uint64(32)


@njit(cache=True, nogil=True)
def distance_bin(d):
    """1, 2, 3, 4, 5-6, 7-10, 11-15, 16-20, 21-30, over 30 -> 0 .. 9."""
    if d <= 4:
        return d - 1
    if d <= 6:
        return 4
    if d <= 10:
        return 5
    if d <= 15:
        return 6
    if d <= 20:
        return 7
    if d <= 30:
        return 8
    return 9


@njit(cache=True, nogil=True)
def side(v, low, high):
    """Where a node lies: 0 absent, 1 before the arc, 2 under it, 3 behind."""
    return 0 if v == ABSENT else 1 if v < low else 2 if v < high else 3


@njit(cache=True, nogil=True)
def shape_code(shape):
    """The shape of a part as a number that is added to its codes."""
    return uint32((shape + 1) * _SHAPE)


@njit(cache=True, nogil=True)
def arc_shape(distance, right):
    """shape_code of the direction and length of an arc."""
    return shape_code(distance_bin(distance) * 2 + right)


@njit(cache=True, nogil=True)
def count_code(like_head, like_modifier):
    """How many words between head and modifier have the coarse tag of either, as a number that is added to codes."""
    return uint32((1 + 4 * min(like_head, 3) + min(like_modifier, 3)) * _SPREAD)


@njit(cache=True, nogil=True)
def hash_codes(code, n_codes, shape, bits, index, at):
    """Features of the first n_codes codes with a shape into index, from place ``at`` on."""
    shift = uint32(32 - bits)
    for t in range(n_codes):
        mixed = uint32(code[t] + shape)
        mixed = uint32(uint32(mixed ^ uint32(mixed >> _FOLD)) * _SPREAD)
        index[at + t] = mixed >> shift


@njit(cache=True, nogil=True)
def hash_between(code, first, n_codes, tag, shape, bits, index, count):
    """Features of the codes first .. n_codes - 1 with a tag between into index[count:]; returns the new count."""
    shift = uint32(32 - bits)
    between = uint32((tag + 1) * _SPREAD)
    for t in range(first, n_codes):
        mixed = uint32(code[t] + between)
        shaped = uint32(mixed + shape)
        mixed = uint32(uint32(mixed ^ uint32(mixed >> _FOLD)) * _SPREAD)
        shaped = uint32(uint32(shaped ^ uint32(shaped >> _FOLD)) * _SPREAD)
        index[count] = mixed >> shift
        index[count + uint64(1)] = shaped >> shift
        count += uint64(2)
    return count


@njit(cache=True, nogil=True)
def finish(code, sentence, part, names, templates, bits, index):
    """Turn the codes (T,) of a part into feature indices below 2**bits; returns how many there are.

    names is a number for the names of the part's arcs, 0 for none.
    """
    coarse, base = sentence.coarse, sentence.base
    h = part[0]
    m = part[1]
    low, high = (h, m) if h < m else (m, h)
    if templates.shaped:
        shape = arc_shape(high - low, int(h < m))
    else:
        sides = int(h < m)
        for r in range(2, part.shape[0]):
            sides = sides * 4 + side(part[r], low, high)
        shape = shape_code(sides)
    n_codes = uint64(code.shape[0])
    single = uint64(templates.counted)
    count = single + single
    for t in range(uint64(templates.plain), uint64(templates.named)):
        code[t] += names
    if n_codes > uint64(templates.named):
        inside = uint64(0)
        like_head = like_modifier = np.int64(0)
        for v in range(low + 1, high):
            tag = coarse[base + v]
            inside |= uint64(1) << uint64(tag)
            like_head += tag == coarse[base + h]
            like_modifier += tag == coarse[base + m]
        counted = count_code(like_head, like_modifier)
        for t in range(uint64(templates.named), single):
            code[t] += counted
        tag = np.int64(0)
        while inside:
            if inside & uint64(1):
                count = hash_between(code, single, n_codes, tag, shape, bits, index, count)
            inside >>= uint64(1)
            tag += 1
    at = uint64(0)
    for shaped in range(0 if templates.shaped else 1, 2):
        hash_codes(code, single, shape if shaped else uint32(0), bits, index, at)
        at += single
    return count if templates.shaped else single


@njit(cache=True, nogil=True)
def named_features(sentence, part, names, templates, bits, index):
    """Write the feature indices, below 2**bits, of a part into index and return how many there are.

    names is a number for the names of the part's arcs, 0 for none.
    """
    attribute, base, component, seed = sentence.attribute, sentence.base, templates.component, templates.seed
    code = np.empty(seed.shape[0], dtype=np.uint32)
    for t in range(seed.shape[0]):
        total = seed[t] >> _HALF
        factor = _MIX
        for c in range(templates.ptr[t], templates.ptr[t + 1]):
            role, offset, column = component[c, 0], component[c, 1], component[c, 2]
            total += (attribute[base + part[role] + offset, column] * factor) >> _HALF
            factor *= _FINISH
        code[t] = total
    return finish(code, sentence, part, names, templates, bits, index)


@njit(cache=True, nogil=True)
def role_codes(sentence, templates):
    """(roles (n + 3) + 1, T): row r * (n + 3) + v + 2 is what node v adds to each code in role r; the last is spare.

    Node v goes from ABSENT to n.
    """
    attribute, base, n = sentence.attribute, sentence.base, sentence.n
    ptr, component, seed = templates.ptr, templates.component, templates.seed
    size = n + 3
    codes = np.zeros((templates.roles * size + 1, seed.shape[0]), dtype=np.uint32)
    for v in range(ABSENT, n + 1):
        for t in range(seed.shape[0]):
            codes[v + 2, t] = seed[t] >> _HALF
            factor = _MIX
            for c in range(ptr[t], ptr[t + 1]):
                role, offset, column = component[c, 0], component[c, 1], component[c, 2]
                codes[role * size + v + 2, t] += (attribute[base + v + offset, column] * factor) >> _HALF
                factor *= _FINISH
    return codes


@njit(cache=True, nogil=True)
def add_codes(codes, size, part, code):
    """code (T,) <- the codes of a part out of role_codes; size is n + 3."""
    n_codes = uint64(codes.shape[1])
    flat = codes.reshape(codes.size)
    a = uint64(part[0] + 2) * n_codes
    b = uint64(size + part[1] + 2) * n_codes
    for t in range(n_codes):
        code[t] = flat[a + t] + flat[b + t]
    for r in range(2, part.shape[0]):
        a = uint64(r * size + part[r] + 2) * n_codes
        for t in range(n_codes):
            code[t] += flat[a + t]


@njit(cache=True, nogil=True)
def summed_features(codes, sentence, part, names, templates, bits, index):
    """named_features from the codes that role_codes gave."""
    last = codes.shape[0] - 1
    code = codes[last]
    add_codes(codes, last // part.shape[0], part, code)
    return finish(code, sentence, part, names, templates, bits, index)


@njit(cache=True, nogil=True)
def total_weight(weight, index, count):
    """Sum of the weights of features, in four running sums that do not wait for each other."""
    a = b = c = d = weight[0] * np.int64(0)  # wider than a byte, where weights are bytes
    one, four = uint64(1), uint64(4)
    k = uint64(0)
    while k + four <= count:
        a += weight[index[k]]
        b += weight[index[k + one]]
        c += weight[index[k + one + one]]
        d += weight[index[k + one + one + one]]
        k += four
    while k < count:
        a += weight[index[k]]
        k += one
    return (a + b) + (c + d)
