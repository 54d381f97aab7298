"""The features in which two trees differ, along which a learner moves the weights of a linear model.

Parts, templates and names of arcs are those of kernels.parser.
"""

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT, role_codes, summed_features
from certus.kernels.parser import names_of


@njit(cache=True, nogil=True)
def neighbours(heads, inner, second):
    """inner[m] <- the modifier of m's head next inside m on its side, ABSENT if none; second[m] the one inside that."""
    n = heads.shape[0] - 1
    for m in range(1, n + 1):
        h = heads[m]
        step = 1 if h > m else -1
        inner[m] = ABSENT
        second[m] = ABSENT
        v = m + step
        while v != h:
            if heads[v] == h:
                if inner[m] == ABSENT:
                    inner[m] = v
                else:
                    second[m] = v
                    break
            v += step


@njit(cache=True, nogil=True)
def append_features(codes, coarse, base, part, names, templates, bits, index, out, count):
    """Append the features of a part to out; returns the new count."""
    found = summed_features(codes, coarse, base, part, names, templates, bits, index)
    for k in range(found):
        out[count + k] = index[k]
    return count + np.int64(found)


@njit(cache=True, nogil=True)
def differences(attribute, coarse, base, name, gold, guess, templates, bits, index, plus, minus):
    """Features of the parts of one tree that the other lacks: into plus those of gold, into minus those of guess.

    name (n + 1, n + 1) are the names of arcs, 0 for none.
    """
    n = gold.shape[0] - 1
    arc, sibling, grandparent, grandsibling, trisibling = templates
    codes = role_codes(attribute, base, n, arc)
    s_codes = role_codes(attribute, base, n, sibling)
    g_codes = role_codes(attribute, base, n, grandparent)
    gs_codes = role_codes(attribute, base, n, grandsibling)
    ts_codes = role_codes(attribute, base, n, trisibling)
    inner = np.empty((2, n + 1), dtype=np.int64)
    second = np.empty((2, n + 1), dtype=np.int64)
    neighbours(gold, inner[0], second[0])
    neighbours(guess, inner[1], second[1])
    two = np.empty(2, dtype=np.int64)
    three = np.empty(3, dtype=np.int64)
    four = np.empty(4, dtype=np.int64)
    count = np.zeros(2, dtype=np.int64)
    for m in range(1, n + 1):
        head = gold[m] != guess[m]
        above = head or gold[gold[m]] != guess[guess[m]]
        beside = head or inner[0, m] != inner[1, m]
        beyond = beside or second[0, m] != second[1, m]
        for which in range(2):
            tree, out = (gold, plus) if which == 0 else (guess, minus)
            h, s, t, k = tree[m], inner[which, m], second[which, m], count[which]
            if head:
                two[0], two[1] = h, m
                k = append_features(codes, coarse, base, two, name[h, m], arc, bits, index, out, k)
            if beside:
                three[0], three[1], three[2] = h, m, s
                names = names_of(name, h, m, s, ABSENT, ABSENT)
                k = append_features(s_codes, coarse, base, three, names, sibling, bits, index, out, k)
            if above and h > 0:
                three[0], three[1], three[2] = h, m, tree[h]
                names = names_of(name, h, m, ABSENT, ABSENT, tree[h])
                k = append_features(g_codes, coarse, base, three, names, grandparent, bits, index, out, k)
            if (above or beside) and h > 0:
                four[0], four[1], four[2], four[3] = h, m, s, tree[h]
                names = names_of(name, h, m, s, ABSENT, tree[h])
                k = append_features(gs_codes, coarse, base, four, names, grandsibling, bits, index, out, k)
            if beyond and s != ABSENT:
                four[0], four[1], four[2], four[3] = h, m, s, t
                names = names_of(name, h, m, s, t, ABSENT)
                k = append_features(ts_codes, coarse, base, four, names, trisibling, bits, index, out, k)
            count[which] = k
    return count[0], count[1]
