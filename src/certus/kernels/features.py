"""Hashed features of the parts of a dependency tree.

A part is an array of nodes, one for each role: head and modifier, then sibling, grandparent, ... as its templates name
them; ABSENT stands for a role that is not filled. A template is a list of components (role, offset, attribute). Its
code is the sum of what its components see, each times an odd number of its own, so that the share of every node in
every template can be computed once a sentence (role_codes), and a part only adds up rows. A component has the same
number in all templates, so that a node looks at each once. A template of an arc, or of an arc to be labelled, gives two
features: one of its code, and one in which the arc's shape, that is its direction and length, changes some bits of the
first. One of a part of several arcs gives a single feature, of its code with the shape that says on which side of the
head each node lies.
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
LANES = 8  # codes that fit a register
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
def arc_shape(distance, right, spread, bits):
    """The bits in which a feature with the direction and length of an arc differs from one without."""
    shape = np.int64(distance_bin(distance) * 2 + right + 1)
    return uint32(shape * spread & ((1 << bits) - 1))


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
        index[at + t] = uint32(mixed >> shift)


@njit(cache=True, nogil=True)
def hash_between(code, first, n_codes, tag, shape, bits, index, count):
    """Features of the codes first .. n_codes - 1 with a tag between into index[count:]; returns the new count."""
    shift = uint32(32 - bits)
    between = uint32((tag + 1) * _SPREAD)
    for t in range(first, n_codes):
        mixed = uint32(code[t] + between)
        mixed = uint32(uint32(uint32(mixed ^ uint32(mixed >> _FOLD)) * _SPREAD) >> shift)
        index[count] = mixed
        index[count + uint64(1)] = mixed ^ shape
        count += uint64(2)
    return count


@njit(cache=True, nogil=True)
def shape_features(n_codes, shape, index):
    """index[n_codes + t] <- the feature index[t] with the shape of an arc."""
    for t in range(n_codes):
        index[n_codes + t] = uint32(index[t]) ^ shape


@njit(cache=True, nogil=True, inline="always")
def finish(code, sentence, part, names, templates, bits, index):
    """Turn the codes of a part into feature indices below 2**bits; returns how many there are.

    code has room for more codes than there are templates; names is a number for the names of the part's arcs, 0 for
    none.
    """
    coarse, base = sentence.coarse, sentence.base
    h = part[0]
    m = part[1]
    low, high = (h, m) if h < m else (m, h)
    n_codes = uint64(templates.seed.shape[0])
    single = uint64(templates.counted)
    for t in range(uint64(templates.plain), uint64(templates.named)):
        code[t] += names
    if templates.shaped == 0:
        sides = int(h < m)
        for r in range(2, part.shape[0]):
            sides = sides * 4 + side(part[r], low, high)
        hash_codes(code, single, shape_code(sides), bits, index, uint64(0))
        return single
    shape = arc_shape(high - low, int(h < m), templates.shaped, bits)
    count = single + single
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
    hash_codes(code, single, uint32(0), bits, index, uint64(0))
    shape_features(single, shape, index)
    return count


@njit(cache=True, nogil=True)
def factor(component):
    """The odd number of a component (role, offset, column); the upper half of its product with a value is added."""
    which = uint64((component[0] * 8 + component[1] + 2) * 32 + component[2] + 1) * _MIX
    return (which ^ (which >> _HALF)) * _FINISH | uint64(1)


@njit(cache=True, nogil=True)
def named_features(sentence, part, names, templates, bits, index):
    """Write the feature indices, below 2**bits, of a part into index and return how many there are.

    names is a number for the names of the part's arcs, 0 for none.
    """
    attribute, base, component, seed = sentence.attribute, sentence.base, templates.component, templates.seed
    code = np.empty(seed.shape[0], dtype=np.uint32)
    for t in range(seed.shape[0]):
        total = seed[t] >> _HALF
        for c in range(templates.ptr[t], templates.ptr[t + 1]):
            role, offset, column = component[c, 0], component[c, 1], component[c, 2]
            total += (attribute[base + part[role] + offset, column] * factor(component[c])) >> _HALF
        code[t] = total
    return finish(code, sentence, part, names, templates, bits, index)


@njit(cache=True, nogil=True)
def role_codes(sentence, templates):
    """(roles (n + 3) + 1, width): row r * (n + 3) + v + 2 is what node v adds to each code in role r.

    Node v goes from ABSENT to n; the last row is spare. Rows are filled up with zeros to whole registers.
    """
    attribute, base, n = sentence.attribute, sentence.base, sentence.n
    plan, seed, looks = templates.plan, templates.seed, templates.looks
    size = n + 3
    width = uint64((seed.shape[0] + LANES - 1) // LANES * LANES)
    codes = np.zeros((templates.roles * size + 1, np.int64(width)), dtype=np.uint32)
    flat = codes.reshape(codes.size)
    times, value = np.empty(looks, dtype=np.uint64), np.empty(looks, dtype=np.uint32)
    for c in range(looks):
        times[c] = factor(plan[c])
    # Where in the rows of a node each look is added, and which it is.
    terms = uint64(plan.shape[0] - looks)
    place, which = np.empty(terms, dtype=np.uint32), np.empty(terms, dtype=np.uint32)
    for k in range(np.int64(terms)):
        role, template, look = plan[looks + k, 0], plan[looks + k, 1], plan[looks + k, 2]
        place[k], which[k] = role * size * np.int64(width) + template, look
    for v in range(ABSENT, n + 1):
        for c in range(looks):
            value[c] = (attribute[base + v + plan[c, 1], plan[c, 2]] * times[c]) >> _HALF
        row = uint64(v + 2) * width
        for t in range(uint64(seed.shape[0])):
            flat[row + t] = seed[t] >> _HALF
        for k in range(terms):
            flat[row + place[k]] += value[which[k]]
    return codes


@njit(cache=True, nogil=True, inline="always")
def add_codes(codes, size, part, code):
    """code <- the codes of a part out of role_codes; size is n + 3."""
    width = uint64(codes.shape[1])
    flat = codes.reshape(codes.size)
    a = uint64(part[0] + 2) * width
    b = uint64(size + part[1] + 2) * width
    for t in range(width):
        code[t] = flat[a + t] + flat[b + t]
    for r in range(2, part.shape[0]):
        a = uint64(r * size + part[r] + 2) * width
        for t in range(width):
            code[t] += flat[a + t]


@njit(cache=True, nogil=True, inline="always")
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
