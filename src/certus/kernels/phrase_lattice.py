"""The lattice of a phrase-based translation: which source words are covered, and where the last phrase ended.

Words are 0 .. n - 1; ``last`` is the last word of the last phrase, -1 before the first. A span s holds the words
span_start[s] .. span_end[s]; the spans that start at word i are start_ptr[i] .. start_ptr[i + 1] - 1, by rising end.
A phrase may follow if |start - last - 1| <= limit. With ``gap``, one that does not start at the first uncovered word g
must also end at g + limit - 1 or before.

A node keeps (a, window, last). In full, a is g and bit k of the window is word g + 1 + k, so that the node is the
coverage. Otherwise a is the number of words covered and bit k of the window is the k-th tracked word: the other words
may be covered any number of times, and paths are a superset of the translations. Nodes are numbered by words covered;
those that cannot be completed are left out.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from certus.kernels.arrays import longer
from certus.kernels.compiling import njit

ONE = np.uint64(1)
MIX = np.uint64(0x9E3779B97F4A7C15)
OTHER = np.uint64(0xC2B2AE3D27D4EB4F)
SHIFT = np.uint64(29)


class Lattice(NamedTuple):
    """Arrays over nodes, and the edges leaving node x: edge_ptr[x] .. edge_ptr[x + 1] - 1. Node 0 is the start."""

    full: int
    count: np.ndarray  # (X,) words covered
    a: np.ndarray  # (X,) first uncovered word, or words covered
    window: np.ndarray  # (X,) uint64
    last: np.ndarray  # (X,)
    edge_ptr: np.ndarray  # (X + 1,)
    edge_span: np.ndarray  # (E,)
    edge_to: np.ndarray  # (E,)


@njit(cache=True, nogil=True)
def cover(n, g, window, i, j):
    """(g, window) once the words i .. j are covered too; at the end g is n. i is at least g and i .. j are free."""
    if i > g:
        return g, window | (((ONE << uint64(j - i + 1)) - ONE) << uint64(i - g - 1))
    window = window >> uint64(j - g)
    g = j + 1
    while window & ONE:
        window = window >> ONE
        g += 1
    return (n, uint64(0)) if g >= n else (g, window >> ONE)


@njit(cache=True, nogil=True)
def build(n, span_start, span_end, start_ptr, limit, gap, full, track, max_nodes):
    """The lattice, or one without nodes if it would have more than max_nodes, or if nothing can be completed.

    track (n,): bit of each tracked word, -1 for the others; not read in full. Spans of one word or more. A full lattice
    needs limit <= 63 and gap, or n <= 64, for its window.
    """
    size = 256
    count = np.empty(size, dtype=np.int32)
    a = np.empty(size, dtype=np.int32)
    window = np.empty(size, dtype=np.uint64)
    last = np.empty(size, dtype=np.int32)
    link = np.empty(size, dtype=np.int32)
    first = np.full(n + 1, -1, dtype=np.int32)  # first node of each number of words covered, chained by link
    table = np.full(1024, -1, dtype=np.int32)
    mask = uint64(1023)
    edge_span = np.empty(1024, dtype=np.int32)
    edge_to = np.empty(1024, dtype=np.int32)
    order = np.empty(size, dtype=np.int32)
    edge_ptr = np.empty(size + 1, dtype=np.int32)
    n_edges = 0
    n_ordered = 0
    n_nodes = 1
    count[0], a[0], window[0], last[0], link[0] = 0, 0, 0, -1, -1
    first[0] = 0
    bits = np.zeros(n, dtype=np.uint64)
    everything = uint64(0)
    for i in range(n):
        if not full and track[i] >= 0:
            bits[i] = ONE << uint64(track[i])
            everything |= bits[i]
    for c in range(n + 1):
        x = first[c]
        while x >= 0:
            order[n_ordered] = x
            edge_ptr[n_ordered] = n_edges
            n_ordered += 1
            ax, wx, lx = np.int64(a[x]), window[x], np.int64(last[x])
            # g lies in low .. high: known in full, bounded by what is tracked otherwise
            low, high = ax, ax
            if not full:
                low = (
                    max(0, c - max(limit - 1, 0)) if gap else 0
                )  # the words after g that are covered: limit - 1 at most
                for i in range(min(c, n)):
                    if bits[i] and not wx & bits[i]:
                        high = i
                        break
            begin, end = max(low, lx + 1 - limit), min(n - 1, lx + 1 + limit)
            for i in range(begin, end + 1 if c < n else begin):
                if full and i > ax and (wx >> uint64(i - ax - 1)) & ONE:
                    continue
                covered = uint64(0)
                j = i - 1
                for s in range(start_ptr[i], start_ptr[i + 1]):
                    stop = np.int64(span_end[s])
                    if (gap and i > high and stop + 1 - high > limit) or c + stop - i + 1 > n or i <= lx <= stop:
                        break
                    if full:
                        if stop > i and (wx >> uint64(i - ax)) & ((ONE << uint64(stop - i)) - ONE):
                            break
                        a2, w2 = cover(n, ax, wx, i, stop)
                    else:
                        while j < stop:
                            j += 1
                            covered |= bits[j]
                        if wx & covered:
                            break
                        a2, w2 = c + stop - i + 1, wx | covered
                        if a2 == n and w2 != everything:
                            continue
                    h = (w2 * MIX) ^ (uint64(a2 * 4099 + stop) * OTHER)
                    h = (h ^ (h >> SHIFT)) * MIX
                    k = (h >> SHIFT) & mask
                    y = np.int64(table[k])
                    while y >= 0 and not (window[y] == w2 and a[y] == a2 and last[y] == stop):
                        k = (k + ONE) & mask
                        y = np.int64(table[k])
                    if y < 0:
                        if n_nodes == max_nodes:
                            empty = np.empty(0, dtype=np.int32)
                            none = np.empty(0, dtype=np.uint64)
                            return Lattice(full, empty, empty, none, empty, np.zeros(1, dtype=np.int32), empty, empty)
                        if n_nodes == size:
                            size *= 2
                            count, a, window, last = longer(count), longer(a), longer(window), longer(last)
                            link, order, edge_ptr = longer(link), longer(order), longer(edge_ptr)
                        y = np.int64(n_nodes)
                        c2 = c + stop - i + 1
                        count[y], a[y], window[y], last[y] = c2, a2, w2, stop
                        link[y] = first[c2]
                        first[c2] = y
                        table[k] = y
                        n_nodes += 1
                        if 2 * n_nodes > table.shape[0]:
                            table = np.full(2 * table.shape[0], -1, dtype=np.int32)
                            mask = uint64(table.shape[0] - 1)
                            for q in range(1, n_nodes):
                                h = (window[q] * MIX) ^ (uint64(np.int64(a[q]) * 4099 + np.int64(last[q])) * OTHER)
                                h = (h ^ (h >> SHIFT)) * MIX
                                k = (h >> SHIFT) & mask
                                while table[k] >= 0:
                                    k = (k + ONE) & mask
                                table[k] = q
                    if n_edges == edge_to.shape[0]:
                        edge_to, edge_span = longer(edge_to), longer(edge_span)
                    edge_to[n_edges], edge_span[n_edges] = y, s
                    n_edges += 1
            x = link[x]
    edge_ptr[n_ordered] = n_edges
    # backwards: what can be completed; then numbered in order of words covered
    alive = np.zeros(n_nodes, dtype=np.bool_)
    for k in range(n_ordered - 1, -1, -1):
        x = order[k]
        alive[x] = count[x] == n
        for e in range(edge_ptr[k], edge_ptr[k + 1]):
            if alive[edge_to[e]]:
                alive[x] = True
                break
    number = np.full(n_nodes, -1, dtype=np.int32)
    kept = 0
    for k in range(n_ordered):
        if alive[order[k]]:
            number[order[k]] = kept
            kept += 1
    out = Lattice(
        full,
        np.empty(kept, dtype=np.int32),
        np.empty(kept, dtype=np.int32),
        np.empty(kept, dtype=np.uint64),
        np.empty(kept, dtype=np.int32),
        np.zeros(kept + 1, dtype=np.int32),
        np.empty(n_edges, dtype=np.int32),
        np.empty(n_edges, dtype=np.int32),
    )
    m = 0
    for k in range(n_ordered):
        x = order[k]
        if number[x] < 0:
            continue
        z = number[x]
        out.count[z], out.a[z], out.window[z], out.last[z] = count[x], a[x], window[x], last[x]
        for e in range(edge_ptr[k], edge_ptr[k + 1]):
            y = number[edge_to[e]]
            if y >= 0:
                out.edge_to[m], out.edge_span[m] = y, edge_span[e]
                m += 1
        out.edge_ptr[z + 1] = m
    return out
