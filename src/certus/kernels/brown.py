"""Brown clustering of words by the mutual information of adjacent classes.

With n[c, d] the number of times a word of class c stands before one of class d, l[c] and r[c] the number of times c
stands on the left and on the right of anything, and f(x) = x log x, the mutual information of adjacent classes is, but
for constants, sum_{cd} f(n[c, d]) - sum_c f(l[c]) + f(r[c]). So merging c and d changes it by

    gain[c, d] = sum_{e not in {c, d}} H(n[c, e], n[d, e]) + H(n[e, c], n[e, d])
                 + f(n[c, c] + n[c, d] + n[d, c] + n[d, d]) - f(n[c, c]) - f(n[c, d]) - f(n[d, c]) - f(n[d, d])
                 - H(l[c], l[d]) - H(r[c], r[d]),         H(x, y) = f(x + y) - f(x) - f(y),

and H(0, y) = 0: only neighbours that two classes share count. gain is kept up to date for all pairs; a merge of a and b
touches the pairs that share a or b as a neighbour, and the row of the merged class is computed anew.

Words are numbered by decreasing frequency.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit


class Classes(NamedTuple):
    """Arrays over K = C + 1 slots for classes."""

    n: np.ndarray  # (K, K) int64
    nt: np.ndarray  # its transpose
    left: np.ndarray  # (K,)
    right: np.ndarray
    alive: np.ndarray  # (K,) bool
    gain: np.ndarray  # (K, K), of which the part above the diagonal is used
    table: np.ndarray  # x log x, as far as it is looked up
    support: np.ndarray  # (K,), room for a list of classes


class Neighbours(NamedTuple):
    """The words on one side of each word, and how often: those of w are ptr[w] .. ptr[w + 1] - 1."""

    ptr: np.ndarray
    word: np.ndarray
    count: np.ndarray


@njit(cache=True, nogil=True)
def xlogx(x, table):
    """x log x, from the table when it reaches that far."""
    if x < table.shape[0]:
        return table[x]
    return x * np.log(x)


@njit(cache=True, nogil=True)
def shared(x, y, table):
    """H(x, y) = f(x + y) - f(x) - f(y); 0 if either is 0."""
    if x == 0 or y == 0:
        return 0.0
    return xlogx(x + y, table) - xlogx(x, table) - xlogx(y, table)


@njit(cache=True, nogil=True)
def fill_row(a, classes):
    """gain[a, d] (stored at the smaller index first) for every living d, from scratch."""
    n, nt, left, right, alive, gain, table, support = classes
    size = n.shape[0]
    for direction in range(2):
        m = n if direction == 0 else nt
        count = 0
        for e in range(size):
            if m[a, e] > 0 and e != a:
                support[count] = e
                count += 1
        for d in range(size):
            if d == a or not alive[d]:
                continue
            total = 0.0
            for k in range(count):
                e = support[k]
                if e != d and m[d, e] > 0:
                    total += xlogx(m[a, e] + m[d, e], table) - xlogx(m[a, e], table) - xlogx(m[d, e], table)
            lo, hi = min(a, d), max(a, d)
            if direction == 0:
                within = n[a, a] + n[a, d] + n[d, a] + n[d, d]
                total += xlogx(within, table) - xlogx(n[a, a], table) - xlogx(n[a, d], table)
                total -= xlogx(n[d, a], table) + xlogx(n[d, d], table)
                total -= shared(left[a], left[d], table) + shared(right[a], right[d], table)
                gain[lo, hi] = total
            else:
                gain[lo, hi] += total


@njit(cache=True, nogil=True)
def best_pair(alive, gain):
    """The pair whose merge loses least; ties go to the smallest indices."""
    size = alive.shape[0]
    best, first, second = -np.inf, -1, -1
    for c in range(size):
        if alive[c]:
            for d in range(c + 1, size):
                if alive[d] and gain[c, d] > best:
                    best, first, second = gain[c, d], c, d
    return first, second


@njit(cache=True, nogil=True)
def merge(a, b, classes):
    """Class b joins class a: update gain, counts and the row of a."""
    n, nt, left, right, alive, gain, table, support = classes
    size = n.shape[0]
    for direction in range(2):
        m = nt if direction == 0 else n  # m[a, c]: how often c has a as its right (left) neighbour
        few, many = b, a
        if np.count_nonzero(m[a] > 0) < np.count_nonzero(m[b] > 0):
            few, many = a, b
        count = 0
        for c in range(size):
            if c != a and c != b and alive[c] and m[few, c] + m[many, c] > 0:
                support[count] = c
                count += 1
        for i in range(count):
            c = support[i]
            if m[few, c] == 0:
                continue
            for j in range(count):
                d = support[j]
                if d == c or (m[few, d] > 0 and d < c):
                    continue
                change = shared(m[few, c] + m[many, c], m[few, d] + m[many, d], table)
                change -= shared(m[few, c], m[few, d], table) + shared(m[many, c], m[many, d], table)
                gain[min(c, d), max(c, d)] += change
    for e in range(size):
        n[a, e] += n[b, e]
        n[b, e] = 0
    for e in range(size):
        n[e, a] += n[e, b]
        n[e, b] = 0
    for e in range(size):
        nt[a, e] = n[e, a]
        nt[e, a] = n[a, e]
        nt[b, e] = 0
        nt[e, b] = 0
    left[a] += left[b]
    right[a] += right[b]
    left[b] = 0
    right[b] = 0
    alive[b] = False
    fill_row(a, classes)


@njit(cache=True, nogil=True)
def introduce(word, slot, cluster, following, preceding, classes):
    """Give a word a class of its own in a free slot. cluster[w] is the slot of each word introduced before, else -1."""
    n, nt, left, right, alive, gain, table, support = classes
    cluster[word] = slot
    for k in range(following.ptr[word], following.ptr[word + 1]):
        times = following.count[k]
        left[slot] += times
        c = cluster[following.word[k]]
        if c >= 0:
            n[slot, c] += times
            nt[c, slot] += times
    for k in range(preceding.ptr[word], preceding.ptr[word + 1]):
        times = preceding.count[k]
        right[slot] += times
        c = cluster[preceding.word[k]]
        if c >= 0 and c != slot:
            n[c, slot] += times
            nt[slot, c] += times
    alive[slot] = True
    size = n.shape[0]
    for direction in range(2):
        m = nt if direction == 0 else n
        count = 0
        for c in range(size):
            if c != slot and m[slot, c] > 0:
                support[count] = c
                count += 1
        for i in range(count):
            for j in range(i + 1, count):
                c, d = support[i], support[j]
                gain[c, d] += shared(m[slot, c], m[slot, d], table)
    fill_row(slot, classes)


@njit(cache=True, nogil=True)
def cluster_words(first, stop, following, preceding, cluster, classes, free):
    """Introduce words first .. stop - 1 in order; whenever no slot is free, merge the best pair. Returns the free slot.

    free is the slot to use next. cluster (V,) is kept up to date for all words.
    """
    alive = classes.alive
    for word in range(first, stop):
        introduce(word, free, cluster, following, preceding, classes)
        free = -1
        for c in range(alive.shape[0]):
            if not alive[c]:
                free = c
                break
        if free < 0:
            a, b = best_pair(alive, classes.gain)
            merge(a, b, classes)
            for w in range(word + 1):
                if cluster[w] == b:
                    cluster[w] = a
            free = b
    return free


@njit(cache=True, nogil=True)
def build_hierarchy(classes, merges):
    """Merge all living classes into one; merges[k] = (kept slot, slot that joined it) in order. Returns how many."""
    count = 0
    while True:
        a, b = best_pair(classes.alive, classes.gain)
        if a < 0:
            return count
        merge(a, b, classes)
        merges[count, 0] = a
        merges[count, 1] = b
        count += 1
