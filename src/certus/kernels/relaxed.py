"""Modifiers and a head chosen for each word on its own: the relaxed set Z of LR 6.4, 6.6, over lists of parts.

Parts are rows as in kernels.learning, up to grand-siblings. Arc a, in order of (h, m), is row a. The modifiers of h on
one side are numbered outwards from 0. If m is number j, then

    at[a, 0]   begins its j + 1 siblings: none first, then modifiers 0 .. j - 1
    at[a, 1]   begins its grandparents, one for each head of h other than m
    at[a, 2]   begins its grand-siblings, j + 1 for each of those heads

A kind that is not wanted, or for which h has no head, has no rows.
"""

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT
from certus.kernels.projective_forest import index_arcs

SIBLING, GRANDPARENT, GRANDSIBLING = 1, 2, 3


@njit(cache=True, nogil=True)
def parts(allowed, kinds):
    """(rows, at, out_ptr, out, into_ptr, into): the parts of the kinds (5,) wanted over the allowed arcs."""
    n = allowed.shape[0] - 1
    _, out_ptr, out, into_ptr, into = index_arcs(allowed)
    n_arcs = out.shape[0]
    at = np.zeros((n_arcs, 3), dtype=np.int64)
    rows = np.empty((n_arcs, 5), dtype=np.int32)
    for filling in range(2):
        count = n_arcs
        for h in range(n + 1):
            for a in range(out_ptr[h], out_ptr[h + 1]):
                m = out[a]
                if filling:
                    rows[a, 0], rows[a, 1], rows[a, 2], rows[a, 3], rows[a, 4] = 0, h, m, ABSENT, ABSENT
                first, step, _ = side_of(out_ptr, out, h, m > h)
                inner = (a - first) * step
                for kind in range(SIBLING, GRANDSIBLING + 1):
                    at[a, kind - 1] = count
                    if not kinds[kind] or (kind != SIBLING and h == 0):
                        continue
                    for w in range(1 if kind == SIBLING else into_ptr[h + 1] - into_ptr[h]):
                        g = ABSENT if kind == SIBLING else into[into_ptr[h] + w]
                        if g == m:
                            continue
                        for i in range(1 if kind == GRANDPARENT else inner + 1):
                            if filling:
                                x = ABSENT if i == 0 else out[first + (i - 1) * step]
                                rows[count, 0], rows[count, 1], rows[count, 2] = kind, h, m
                                rows[count, 3] = g if kind == GRANDPARENT else x
                                rows[count, 4] = g if kind == GRANDSIBLING else ABSENT
                            count += 1
        if not filling:
            rows = np.empty((count, 5), dtype=np.int32)
    return rows, at, out_ptr, out, into_ptr, into


@njit(cache=True, nogil=True)
def side_of(out_ptr, out, h, right):
    """The modifiers of h on one side: where the nearest stands in out, the step to the next one, how many they are."""
    split = out_ptr[h]
    while split < out_ptr[h + 1] and out[split] < h:
        split += 1
    return (split, 1, out_ptr[h + 1] - split) if right else (split - 1, -1, split - out_ptr[h])


@njit(cache=True, nogil=True)
def best_choice(at, out_ptr, out, into_ptr, into, kinds, single, score, best):
    """best (P,) <- 1 for the parts of the best modifiers, and head, of each word on its own; returns its value.

    -inf if a word has no head to choose. A word may be claimed by many heads or by none. Node 0 claims exactly one if
    single. One chain of modifiers outwards for each word, side and head of it. Ties go to the smallest index and to
    fewer modifiers.
    """
    n = out_ptr.shape[0] - 2
    chain = np.empty(out.shape[0])
    back = np.empty(out.shape[0], dtype=np.int64)
    best[:] = 0.0
    total = 0.0
    for h in range(n + 1):
        above = h > 0 and (kinds[GRANDPARENT] or kinds[GRANDSIBLING])
        one = single and h == 0
        ways = into_ptr[h + 1] - into_ptr[h] if above else 1
        if ways == 0:
            return -np.inf
        top, chosen = -np.inf, -1
        # Once for every head above, and again for the best of them, which is then read off.
        for w in range(ways + 1):
            reading = w == ways
            way = chosen if reading else w
            g = into[into_ptr[h] + way] if above else ABSENT
            value = 0.0
            for right in range(2):
                first, step, degree = side_of(out_ptr, out, h, right == 1)
                end, last = -np.inf if one and right else 0.0, -1
                for j in range(degree):
                    a = first + j * step
                    if out[a] == g:
                        chain[a] = -np.inf
                        continue
                    place = place_of(into_ptr, into, h, way, out[a])
                    here = score[a]
                    if above and kinds[GRANDPARENT]:
                        here += score[at[a, 1] + place]
                    chain[a] = -np.inf
                    for i in range(1 if one else j + 1):
                        reach = here + chain[first + (i - 1) * step] if i else here
                        if kinds[SIBLING]:
                            reach += score[at[a, 0] + i]
                        if above and kinds[GRANDSIBLING]:
                            reach += score[at[a, 2] + place * (j + 1) + i]
                        if reach > chain[a]:
                            chain[a] = reach
                            back[a] = i
                    if chain[a] > end:
                        end, last = chain[a], j
                value += end
                while reading and last >= 0:
                    a = first + last * step
                    place = place_of(into_ptr, into, h, way, out[a])
                    best[a] = 1.0
                    if kinds[SIBLING]:
                        best[at[a, 0] + back[a]] = 1.0
                    if above and kinds[GRANDPARENT]:
                        best[at[a, 1] + place] = 1.0
                    if above and kinds[GRANDSIBLING]:
                        best[at[a, 2] + place * (last + 1) + back[a]] = 1.0
                    last = back[a] - 1
            if not reading and value > top:
                top, chosen = value, w
        total += top
    return total


@njit(cache=True, nogil=True)
def place_of(into_ptr, into, h, way, m):
    """Place of head number ``way`` of h among those other than m."""
    place = way
    for w in range(way):
        if into[into_ptr[h] + w] == m:
            place -= 1
    return place
