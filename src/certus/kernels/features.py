"""Hashed features of the parts of a dependency tree.

A part is a row of nodes, one for each role: head and modifier, then sibling, grandparent, ... as its templates name
them; ABSENT stands for a role that is not filled. A template is a list of components (role, offset, attribute); its
feature is a hash of the attribute values found there, and a second one hashes the part's shape as well: on which side
of the head each node lies, and how far the modifier is. Templates marked ``between`` give a feature for each coarse
tag that occurs between head and modifier.

Arrays: attribute (rows, A) uint64 holds a row of hashed attribute values for each node, with PAD rows on both sides of
every sentence; node v of a sentence is row base + v. Coarse tags in [0, 64) stand in coarse (rows,) int64, -1 in pads.
Templates: ptr (T + 1,), role, offset, column of the components, seed (T,) uint64, between (T,) bool.
"""

from numba import njit, uint64

PAD = 3
ABSENT = -2  # the pad row that stands for no node: with offsets of -1 to +1 it meets only its like and the root
_MIX = uint64(0x9E3779B97F4A7C15)
_FINISH = uint64(0xD6E8FEB86659FD93)


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
def part_features(attribute, coarse, base, part, p, ptr, role, offset, column, seed, between, bits, index):
    """Write the feature indices, below 2**bits, of part p into index and return how many there are."""
    h = part[p, 0]
    m = part[p, 1]
    low, high = (h, m) if h < m else (m, h)
    shape = uint64(distance_bin(high - low) * 2 + (h < m))
    for r in range(2, part.shape[1]):
        v = part[p, r]
        shape = shape * uint64(4) + uint64(0 if v == ABSENT else 1 if v < low else 2 if v < high else 3)
    shape = (shape + uint64(1)) * _FINISH
    inside = uint64(0)
    for v in range(low + 1, high):
        inside |= uint64(1) << uint64(coarse[base + v])
    shift = uint64(64 - bits)
    count = 0
    for t in range(seed.shape[0]):
        code = seed[t]
        for c in range(ptr[t], ptr[t + 1]):
            value = attribute[base + part[p, role[c]] + offset[c], column[c]]
            code = (code ^ value) * _MIX
            code ^= code >> uint64(29)
        if between[t]:
            rest = inside
            tag = uint64(0)
            while rest:
                if rest & uint64(1):
                    mixed = (code ^ (tag + uint64(1)) * _FINISH) * _MIX
                    mixed ^= mixed >> uint64(29)
                    index[count] = (mixed * _FINISH) >> shift
                    index[count + 1] = ((mixed ^ shape) * _FINISH) >> shift
                    count += 2
                rest >>= uint64(1)
                tag += uint64(1)
        else:
            index[count] = (code * _FINISH) >> shift
            index[count + 1] = ((code ^ shape) * _FINISH) >> shift
            count += 2
    return count
