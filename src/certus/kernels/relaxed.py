"""Modifiers and a head chosen for each word on its own: the relaxed set Z of LR 6.4, 6.6, over lists of parts.

Parts are those of kernels.parts.list_parts: modifier number j of h on its side, from 0 outwards, has at[a, SIBLING] + i
for the siblings none, 0 .. j - 1, at[a, GRANDPARENT] + w for head number w of h other than m, at[a, GRANDSIBLING] +
w (j + 1) + i for both, and at[a, TRISIBLING] + i (i - 1) / 2 + k where k is to sibling i - 1 what i is to j.
"""

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT
from certus.kernels.parts import GRANDPARENT, GRANDSIBLING, SIBLING, TRISIBLING, side_of


@njit(cache=True, nogil=True)
def best_choice(at, arcs, kinds, single, score, best):
    """best (P,) <- 1 for the parts of the best modifiers, and head, of each word on its own; returns its value.

    -inf if a word has no head to choose. A word may be claimed by many heads or by none. Node 0 claims exactly one if
    single. One chain of modifiers outwards for each word, side and head of it. Ties go to the smallest index and to
    fewer modifiers.
    """
    _, out_ptr, out, into_ptr, into = arcs
    n = out_ptr.shape[0] - 2
    pair = np.empty((n, n + 1))  # chains whose last modifiers are j and i - 1; i = 0: j alone
    back = np.empty((n, n + 1), dtype=np.int64)  # what i is to the last but one, -1 if there is none
    chain = np.empty(n)  # the best of a row, and where it is
    inner = np.empty(n, dtype=np.int64)
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
                    chain[j] = -np.inf
                    if out[a] == g:
                        for i in range(j + 1):
                            pair[j, i] = -np.inf
                        continue
                    place = place_of(into_ptr, into, h, way, out[a])
                    here = score[a]
                    if above and kinds[GRANDPARENT]:
                        here += score[at[a, GRANDPARENT] + place]
                    for i in range(1 if one else j + 1):
                        before, back[j, i] = 0.0, -1
                        if i > 0:
                            before, back[j, i] = chain[i - 1], inner[i - 1]
                            if kinds[TRISIBLING]:
                                before = -np.inf
                                for k in range(i):
                                    reach = pair[i - 1, k] + score[at[a, TRISIBLING] + i * (i - 1) // 2 + k]
                                    if reach > before:
                                        before, back[j, i] = reach, k
                        reach = here + before
                        if kinds[SIBLING]:
                            reach += score[at[a, SIBLING] + i]
                        if above and kinds[GRANDSIBLING]:
                            reach += score[at[a, GRANDSIBLING] + place * (j + 1) + i]
                        pair[j, i] = reach
                        if reach > chain[j]:
                            chain[j] = reach
                            inner[j] = i
                    if chain[j] > end:
                        end, last = chain[j], j
                value += end
                i = inner[last] if last >= 0 else -1
                while reading and last >= 0:
                    a = first + last * step
                    place = place_of(into_ptr, into, h, way, out[a])
                    best[a] = 1.0
                    if kinds[SIBLING]:
                        best[at[a, SIBLING] + i] = 1.0
                    if above and kinds[GRANDPARENT]:
                        best[at[a, GRANDPARENT] + place] = 1.0
                    if above and kinds[GRANDSIBLING]:
                        best[at[a, GRANDSIBLING] + place * (last + 1) + i] = 1.0
                    if i > 0 and kinds[TRISIBLING]:
                        best[at[a, TRISIBLING] + i * (i - 1) // 2 + back[last, i]] = 1.0
                    last, i = i - 1, back[last, i]
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
