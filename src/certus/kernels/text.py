"""Numbers for the words of a text, so that large tables are read with array operations.

Bytes 0x09 to 0x0d and 0x20 are blanks, 0x0a ends a line. Equal words get equal numbers, in the order of their first
appearance. Words are looked up in an open-addressing hash table that doubles when it is half full.
"""

import numpy as np

from certus.kernels.compiling import njit

BYTE, WORD, LINE, NUMBER = range(4)  # how far number_some has come: bytes, words and lines read, numbers given


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
def number_some(data, word, line_ptr, table, start, pool, position):
    """``number_words`` from ``position`` (4,) until done or out of room."""
    size = table.shape[0] // 2
    i, w, line, known = position[BYTE], position[WORD], position[LINE], position[NUMBER]
    n = data.shape[0]
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
            if table[2 * slot] == h and start[k + 1] - start[k] == i - begin:
                first, j = start[k], 0
                while begin + j < i and pool[first + j] == data[begin + j]:
                    j += 1
                if begin + j == i:
                    break
            slot = (slot + 1) & (size - 1)
        if k < 0:
            first = start[known]
            if 2 * known >= size or first + i - begin > pool.shape[0]:
                i = begin
                break
            for j in range(i - begin):
                pool[first + j] = data[begin + j]
            start[known + 1] = first + i - begin
            table[2 * slot], table[2 * slot + 1] = h, known
            k = np.int64(known)
            known += 1
        word[w] = k
        w += 1
    position[BYTE], position[WORD], position[LINE], position[NUMBER] = i, w, line, known


@njit(cache=True, nogil=True)
def number_words(data, word, line_ptr):
    """Fills word (W,) with numbers and line_ptr (lines + 2,) with offsets; returns (pool, start).

    Number k is the word pool[start[k]:start[k + 1]]. Room is made here, not in the loop: arrays that may be replaced
    are slow to use.
    """
    size = 1 << 16
    table = np.full(2 * size, -1, dtype=np.int64)  # pairs: hash, number
    start = np.zeros(size, dtype=np.int64)
    pool = np.empty(16 * size, dtype=np.uint8)
    position = np.zeros(4, dtype=np.int64)
    line_ptr[0] = 0
    while True:
        number_some(data, word, line_ptr, table, start, pool, position)
        if position[BYTE] == data.shape[0]:
            break
        old = table
        size *= 2
        table = np.full(2 * size, -1, dtype=np.int64)
        for q in range(0, old.shape[0], 2):
            if old[q + 1] >= 0:
                slot = old[q] & (size - 1)
                while table[2 * slot + 1] >= 0:
                    slot = (slot + 1) & (size - 1)
                table[2 * slot], table[2 * slot + 1] = old[q], old[q + 1]
        start = np.concatenate((start, np.zeros_like(start)))
        pool = np.concatenate((pool, np.empty_like(pool)))
    line_ptr[position[LINE] + 1] = position[WORD]
    known = position[NUMBER]
    return pool[: start[known]], start[: known + 1]


@njit(cache=True, nogil=True)
def split_fields(word, line_ptr, bar, bars, field_ptr, field_word, field_row):
    """Sorts the words of lines into fields, which the word ``bar`` separates; what is in none of them is left out.

    Fills bars (R,) with the bars of each line that is not blank, field_ptr (F + 1,) with offsets, and, field by field,
    field_word and field_row (both as long as word) with the words and the number of their line among these R.
    """
    n_fields = field_ptr.shape[0] - 1
    at = np.zeros(n_fields + 1, dtype=np.int64)
    for fill in range(2):  # first the sizes, then the words
        row = -1
        for line in range(line_ptr.shape[0] - 1):
            if line_ptr[line] == line_ptr[line + 1]:
                continue
            row += 1
            field = 0
            for k in range(line_ptr[line], line_ptr[line + 1]):
                if word[k] == bar:
                    field += 1
                elif field < n_fields:
                    if fill:
                        field_word[at[field]], field_row[at[field]] = word[k], row
                        at[field] += 1
                    else:
                        at[field + 1] += 1
            bars[row] = field
        if not fill:
            for field in range(n_fields):
                at[field + 1] += at[field]
            for field in range(n_fields + 1):
                field_ptr[field] = at[field]
