"""Numbers for the words of a text, so that large tables are read with array operations.

Bytes 0x09 to 0x0d and 0x20 are blanks, 0x0a ends a line. Equal words get equal numbers, in the order of their first
appearance. Words are looked up in an open-addressing hash table that doubles when it is half full.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def count_words(data):
    """(words, newlines) in data, a uint8 array."""
    words, lines, inside = 0, 0, False
    for i in range(data.shape[0]):
        c = data[i]
        blank = c == 32 or (9 <= c <= 13)
        if c == 10:
            lines += 1
        if blank:
            inside = False
        elif not inside:
            inside = True
            words += 1
    return words, lines


@njit(cache=True, nogil=True)
def number_words(data, word, line_ptr):
    """Fills word (W,) with numbers and line_ptr (lines + 2,) with offsets; returns start and length of each number."""
    size = 1 << 16
    table = np.full(2 * size, -1, dtype=np.int64)  # pairs: hash, number
    start = np.empty(1 << 14, dtype=np.int64)
    length = np.empty(1 << 14, dtype=np.int32)
    known, w, line, n = 0, 0, 0, data.shape[0]
    line_ptr[0] = 0
    i = 0
    while i < n:
        c = data[i]
        if c == 32 or (9 <= c <= 13):
            if c == 10:
                line += 1
                line_ptr[line] = w
            i += 1
            continue
        begin = i
        mixed = np.uint64(1469598103934665603)
        while not (c == 32 or (9 <= c <= 13)):
            mixed = (mixed ^ np.uint64(c)) * np.uint64(1099511628211)
            i += 1
            if i == n:
                break
            c = data[i]
        h = np.int64(mixed ^ (mixed >> np.uint64(32)))
        slot = h & (size - 1)
        while True:
            k = table[2 * slot + 1]
            if k < 0:
                break
            if table[2 * slot] == h:
                first = start[k]
                j = 0
                while begin + j < i and data[first + j] == data[begin + j]:
                    j += 1
                if begin + j == i and length[k] == j:
                    break
            slot = (slot + 1) & (size - 1)
        if k < 0:
            if known == start.shape[0]:
                start = np.concatenate((start, np.empty_like(start)))
                length = np.concatenate((length, np.empty_like(length)))
            start[known], length[known] = begin, i - begin
            table[2 * slot], table[2 * slot + 1] = h, known
            k = np.int64(known)
            known += 1
            if 2 * known > size:
                old = table
                size *= 2
                table = np.full(2 * size, -1, dtype=np.int64)
                for q in range(0, old.shape[0], 2):
                    if old[q + 1] >= 0:
                        slot = old[q] & (size - 1)
                        while table[2 * slot + 1] >= 0:
                            slot = (slot + 1) & (size - 1)
                        table[2 * slot], table[2 * slot + 1] = old[q], old[q + 1]
        word[w] = k
        w += 1
    line_ptr[line + 1] = w
    return start[:known].copy(), length[:known].copy()
