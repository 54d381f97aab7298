"""CoNLL-U as bytes: where its sentences and columns lie, which words it holds, and the same bytes with other trees.

A text is bytes (uint8) of whole sentences. A word is a line of ten columns whose ID is the next number; lines of
multiword tokens, empty nodes and comments are left as they are. A sentence in which anything is out of the ordinary is
marked odd and left to the reader that takes it line by line, which says what is wrong, if anything is.
"""

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit

_TAB, _END, _HASH, _DOT, _DASH, _NONE, _ZERO = 9, 10, 35, 46, 45, 95, 48
_DIGITS = 6  # of a number at most
_BASIS, _PRIME = uint64(0xCBF29CE484222325), uint64(0x100000001B3)


@njit(cache=True, nogil=True)
def number_at(text, i, end):
    """The number that begins at i, without leading zeros, and where it ends; -1 if there is none, or a long one."""
    value, j = 0, i
    while j < end and _ZERO <= text[j] < _ZERO + 10 and j - i <= _DIGITS:
        value = 10 * value + np.int64(text[j]) - _ZERO
        j += 1
    return (value if 0 < j - i <= _DIGITS and (text[i] != _ZERO or j == i + 1) else -1), j


@njit(cache=True, nogil=True)
def columns_of(text, begin, end, tab):
    """tab (9,) <- the tabs of a line; whether it has ten columns and none is empty."""
    count, before = 0, begin - 1
    for i in range(begin, end):
        if text[i] == _TAB:
            if count == 9 or i == before + 1:
                return False
            tab[count] = before = i
            count += 1
    return count == 9 and before + 1 < end


@njit(cache=True, nogil=True)
def has_cycle(heads, n, seen):
    """Whether heads (1 .. n; 0 for the root, -1 for none) lead back to where they began."""
    for m in range(1, n + 1):
        seen[m] = 0
    for m in range(1, n + 1):
        v = m
        while v > 0 and seen[v] == 0:
            seen[v] = m
            v = heads[v]
        if v > 0 and seen[v] == m:
            return True
    return False


@njit(cache=True, nogil=True)
def lay_out(text, most, layout):
    """Fills the layout of a text, of sentences of at most so many words; returns how many there are.

    Odd are those with another line than described, with words that have no coarse tag, no words or more words, and
    those whose heads are no tree.
    """
    size = text.shape[0]
    start, end, line, odd, word, form, feats, head, tail = layout
    tab = np.empty(9, dtype=np.int64)
    heads, seen = np.empty(most + 1, dtype=np.int64), np.empty(most + 1, dtype=np.int64)
    s = w = i = lines = 0
    word[0] = 0
    n = last = 0  # words of the sentence, and the last one that a multiword token covers
    begun = strange = others = False
    while i <= size:
        j = i
        while j < size and text[j] != _END:
            j += 1
        if i == j:  # an empty line, or the end
            if begun:
                for m in range(1, n + 1):
                    strange = strange or heads[m] > n
                odd[s] = strange or n == 0 or last > n or has_cycle(heads, n, seen)
                end[s] = min(i, size)
                s += 1
                word[s] = w
                begun = False
        else:
            if not begun:
                begun, strange, others = True, False, False
                n = last = 0
                start[s], line[s] = i, lines
            if text[i] == _HASH:
                strange = strange or n > 0 or others
            elif not columns_of(text, i, j, tab):
                strange = True
            elif not strange:
                identity, stop = number_at(text, i, tab[0])
                value, after = number_at(text, tab[5] + 1, tab[6])
                if stop == tab[0] and identity == n + 1 and n < most:
                    n += 1
                    form[w], feats[w], head[w], tail[w] = tab[0] + 1, tab[5], tab[5] + 1, tab[7]
                    none = tab[6] == tab[5] + 2 and text[tab[5] + 1] == _NONE
                    heads[n] = -1 if none else value
                    strange = not none and (value < 0 or after != tab[6])
                    strange = strange or (tab[3] == tab[2] + 2 and text[tab[2] + 1] == _NONE)
                    w += 1
                else:
                    other, after = number_at(text, stop + 1, tab[0])
                    range_of = text[stop] == _DASH and identity == n + 1 and other >= identity
                    empty = text[stop] == _DOT and identity == n and other >= 1
                    strange = after != tab[0] or not (range_of or empty)
                    others = True
                    if range_of:
                        last = max(last, other)
        i = j + 1
        lines += 1
    return s


@njit(cache=True, nogil=True)
def find_key(text, begin, end, table):
    """The slot of a key text[begin:end] in a table, or the empty one where it would be."""
    code = _BASIS
    for i in range(begin, end):
        code = (code ^ uint64(text[i])) * _PRIME
    mask = uint64(table.slot.shape[0] - 1)
    at = (code ^ (code >> uint64(32))) & mask
    while table.slot[at] >= 0:
        key = table.slot[at]
        first = table.ptr[key]
        same = table.ptr[key + 1] - first == end - begin
        k = 0
        while same and k < end - begin:
            same = table.bytes[first + k] == text[begin + k]
            k += 1
        if same:
            return at
        at = (at + uint64(1)) & mask
    return at


@njit(cache=True, nogil=True)
def find_rows(text, begin, end, table, rows):
    """rows[k] <- the row of the key text[begin[k] : end[k]], -1 for one that the table does not have."""
    for k in range(rows.shape[0]):
        key = table.slot[find_key(text, begin[k], end[k], table)]
        rows[k] = table.row[key] if key >= 0 else -1


@njit(cache=True, nogil=True)
def put_keys(keys, table):
    """Put the keys with these numbers, which the table has room for, into their slots."""
    for key in keys:
        table.slot[find_key(table.bytes, table.ptr[key], table.ptr[key + 1], table)] = key


@njit(cache=True, nogil=True)
def copied(text, begin, end, out, at):
    """out[at:] <- text[begin:end]; returns where it ends."""
    for i in range(begin, end):
        out[at + i - begin] = text[i]
    return at + end - begin


@njit(cache=True, nogil=True)
def write_number(value, out, at):
    """out[at:] <- a number in decimal; returns where it ends."""
    place = 1
    while place <= value // 10:
        place *= 10
    while place > 0:
        out[at] = _ZERO + value // place % 10
        at += 1
        place //= 10
    return at


@njit(cache=True, nogil=True)
def write_trees(text, layout, chosen, trees, names, ends, out):
    """out <- the chosen sentences with their trees, one after the other, a blank line after each.

    Sentence k of them is out[ends[k] : ends[k + 1]].

    trees is (start, heads, labels), of which those of sentence k of the chosen begin at start[k], its node 0 included;
    names is (ptr, bytes) of the labels.
    """
    begin, heads, labels = trees
    ptr, name = names
    at = 0
    for k in range(chosen.shape[0]):
        s = chosen[k]
        i = layout.start[s]
        node = begin[k]
        for w in range(layout.word[s], layout.word[s + 1]):
            node += 1
            at = copied(text, i, layout.head[w], out, at)
            at = write_number(heads[node], out, at)
            out[at] = _TAB
            at = copied(name, ptr[labels[node]], ptr[labels[node] + 1], out, at + 1)
            i = layout.tail[w]
        at = copied(text, i, layout.end[s], out, at)
        out[at] = _END
        at += 1
        ends[k + 1] = at
