"""Scores of many parts of one kind at once: the fast path of ``parts.score_parts``.

A part is listed as a row (h, m, x, y, sides, names, place): its nodes in the order of its roles, ABSENT for those that
it does not have; its shape as a number, whether h is left of m, then two bits for the side of each node beyond
(``side``); the number of its arcs' names; and where its score goes. All parts of a sentence are listed first, and then
scored in one loop that calls nothing which counts references.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import uint32, uint64

from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT, hash_codes, role_codes, shape_code, side, total_weight
from certus.kernels.parts import names_of

COLUMNS = 7


class Cells(NamedTuple):
    """Where the scores of parts stand; ``places`` of a head are its modifiers, in order, from 0 on.

    The sibling m, s of h stands at pair[h] + low * degree + high, the lower and the higher of their places; before all
    of these stand arcs whose modifiers are innermost. A grandparent stands at above[slot] + the place of m, where slot
    is the arc (g, h); a grand-sibling at both[slot] + the place of m times (degree + 1) + the place of s and 1, 0 for
    none; a tri-sibling likewise at three[arc (h, m)] + that of s times (degree + 1) + that of t. There is one more
    slot, for node 0.
    """

    pair: Any
    above: Any
    both: Any
    three: Any


@njit(cache=True, nogil=True)
def part_cells(arcs):
    """The Cells of Arcs."""
    _, out_ptr, out, _, _ = arcs
    size, n_arcs = out_ptr.shape[0] - 1, out.shape[0]
    pair = np.full(size + 1, n_arcs, dtype=np.int64)
    above, both = np.zeros(n_arcs + 2, dtype=np.int64), np.zeros(n_arcs + 2, dtype=np.int64)
    three = np.zeros(n_arcs + 1, dtype=np.int64)
    for h in range(size):
        degree = np.int64(out_ptr[h + 1] - out_ptr[h])
        pair[h + 1] = pair[h] + degree * degree
        for a in range(out_ptr[h], out_ptr[h + 1]):
            three[a + 1] = three[a] + degree * (degree + 1)
    for slot in range(n_arcs + 1):
        h = out[slot] if slot < n_arcs else 0
        degree = np.int64(out_ptr[h + 1] - out_ptr[h])
        above[slot + 1] = above[slot] + degree
        both[slot + 1] = both[slot] + degree * (degree + 1)
    return Cells(pair, above, both, three)


@njit(cache=True, nogil=True)
def put(rows, k, part, sides, names, place):
    """rows[k] <- a part of four nodes; returns k + 1."""
    for c in range(4):
        rows[k, c] = part[c]
    rows[k, 4], rows[k, 5], rows[k, 6] = sides, np.int64(names), place
    return k + 1


@njit(cache=True, nogil=True)
def list_projective(arcs, names, cells, wanted):
    """Rows of the siblings, grandparents, grand-siblings and tri-siblings wanted (4,) that projective trees have."""
    arc_id, out_ptr, out, into_ptr, into = arcs
    none = np.int64(ABSENT)
    pair_at, above_at, both_at, three_at = cells
    beside = np.empty((pair_at[-1] if wanted[0] else 0, COLUMNS), dtype=np.int64)
    above = np.empty((above_at[-1] if wanted[1] else 0, COLUMNS), dtype=np.int64)
    both = np.empty((both_at[-1] if wanted[2] else 0, COLUMNS), dtype=np.int64)
    three = np.empty((three_at[-1] if wanted[3] else 0, COLUMNS), dtype=np.int64)
    n_beside = n_above = n_both = n_three = 0
    for h in range(out_ptr.shape[0] - 1):
        start, end = np.int64(out_ptr[h]), np.int64(out_ptr[h + 1])
        degree = end - start
        middle = start
        while middle < end and out[middle] < h:
            middle += 1
        for a in range(start, end):
            m = np.int64(out[a])
            low, high, right = min(h, m), max(h, m), int(h < m)
            first, last = (middle, a) if right else (a + 1, middle)  # the modifiers inside m
            if wanted[0]:
                named = names_of(names, h, m, none, none, none)
                n_beside = put(beside, n_beside, (h, m, none, none), right * 4, named, a)
                for b in range(first, last):
                    s = np.int64(out[b])
                    named = names_of(names, h, m, s, none, none)
                    cell = pair_at[h] + (min(a, b) - start) * degree + max(a, b) - start
                    n_beside = put(beside, n_beside, (h, m, s, none), right * 4 + 2, named, cell)
            if wanted[3]:
                for b in range(first, last):
                    s = np.int64(out[b])
                    cell = three_at[a] + (b - start) * (degree + 1)
                    named = names_of(names, h, m, s, none, none)
                    n_three = put(three, n_three, (h, m, s, none), right * 16 + 8, named, cell)
                    for c in range(middle if right else b + 1, b if right else middle):
                        t = np.int64(out[c])
                        named = names_of(names, h, m, s, t, none)
                        n_three = put(three, n_three, (h, m, s, t), right * 16 + 10, named, cell + 1 + c - start)
            if h == 0 or not (wanted[1] or wanted[2]):
                continue
            for w in range(into_ptr[h], into_ptr[h + 1]):
                g = np.int64(into[w])
                if low <= g and g <= high:
                    continue
                slot, where = arc_id[g, h], side(g, low, high)
                if wanted[1]:
                    named = names_of(names, h, m, none, none, g)
                    cell = above_at[slot] + a - start
                    n_above = put(above, n_above, (h, m, g, none), right * 4 + where, named, cell)
                if wanted[2]:
                    cell = both_at[slot] + (a - start) * (degree + 1)
                    named = names_of(names, h, m, none, none, g)
                    n_both = put(both, n_both, (h, m, none, g), right * 16 + where, named, cell)
                    for b in range(first, last):
                        s = np.int64(out[b])
                        named = names_of(names, h, m, s, none, g)
                        n_both = put(both, n_both, (h, m, s, g), right * 16 + 8 + where, named, cell + 1 + b - start)
    return beside[:n_beside], above[:n_above], both[:n_both], three[:n_three]


@njit(cache=True, nogil=True)
def score_rows(sentence, templates, bits, weight, rows, out):
    """out[place] <- sum of the weights of the features of each part listed, by templates of its kind."""
    if rows.shape[0] == 0:
        return
    codes = role_codes(sentence, templates)
    flat = codes.reshape(codes.size)
    stride, size, width = sentence.n + 3, uint64(templates.seed.shape[0]), uint64(codes.shape[1])
    named, named_end = uint64(templates.plain), uint64(templates.named)
    second, third, fourth = stride + 2, 0, 0
    if templates.roles > 2:
        third = 2 * stride + 2
    if templates.roles > 3:
        fourth = 3 * stride + 2
    code = np.empty(width, dtype=np.uint32)
    for k in range(rows.shape[0]):
        a, b = uint64(rows[k, 0] + 2) * width, uint64(rows[k, 1] + second) * width
        c, d = uint64(rows[k, 2] + third) * width, uint64(rows[k, 3] + fourth) * width
        if fourth > 0:
            for t in range(width):
                code[t] = flat[a + t] + flat[b + t] + flat[c + t] + flat[d + t]
        else:
            for t in range(width):
                code[t] = flat[a + t] + flat[b + t] + flat[c + t]
        names = uint32(rows[k, 5])
        for t in range(named, named_end):
            code[t] += names
        hash_codes(code, width, shape_code(rows[k, 4]), bits, code, uint64(0))
        out[rows[k, 6]] = total_weight(weight, code, size)
