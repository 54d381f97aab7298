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


class Nodes(NamedTuple):
    """Nodes in the order they were found; those that cover as many words are chained by ``link``, -1 at the end."""

    count: np.ndarray
    a: np.ndarray
    window: np.ndarray
    last: np.ndarray
    link: np.ndarray


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
def _slot(table, nodes, a, window, last):
    """Where a node is in an open-addressing table of numbers, or the free slot for it."""
    mask = uint64(table.shape[0] - 1)
    h = (window * MIX) ^ (uint64(a * 4099 + last) * OTHER)
    h = (h ^ (h >> SHIFT)) * MIX
    k = (h >> SHIFT) & mask
    y = np.int64(table[k])
    while y >= 0 and not (nodes.window[y] == window and nodes.a[y] == a and nodes.last[y] == last):
        k = (k + ONE) & mask
        y = np.int64(table[k])
    return k


@njit(cache=True, nogil=True)
def _add(nodes, first, table, y, count, a, window, last):
    """(nodes, table): with node y added to both; first (n + 1,) heads the chain of each number of words covered."""
    if y == nodes.count.shape[0]:
        nodes = Nodes(
            longer(nodes.count), longer(nodes.a), longer(nodes.window), longer(nodes.last), longer(nodes.link)
        )
    nodes.count[y], nodes.a[y], nodes.window[y], nodes.last[y] = count, a, window, last
    nodes.link[y] = first[count]
    first[count] = y
    if 2 * (y + 1) > table.shape[0]:
        table = np.full(2 * table.shape[0], -1, dtype=np.int32)
        for q in range(y):
            table[_slot(table, nodes, np.int64(nodes.a[q]), nodes.window[q], np.int64(nodes.last[q]))] = q
    table[_slot(table, nodes, a, window, last)] = y
    return nodes, table


@njit(cache=True, nogil=True)
def _completed(full, n, nodes, order, edge_ptr, edge_span, edge_to):
    """The lattice of the nodes from which the end, n words covered, is reached, numbered as ``order`` has them."""
    number = np.full(order.shape[0], -1, dtype=np.int32)
    kept = 0
    for k in range(order.shape[0] - 1, -1, -1):
        x = order[k]
        reached = nodes.count[x] == n
        for e in range(edge_ptr[k], edge_ptr[k + 1]):
            reached = reached or number[edge_to[e]] >= 0
        if reached:
            number[x] = kept  # counted from the last, turned round below
            kept += 1
    places = np.empty((3, kept), dtype=np.int32)
    out = Lattice(
        full, places[0], places[1], np.empty(kept, dtype=np.uint64), places[2], np.zeros(kept + 1, dtype=np.int32),
        np.empty(edge_to.shape[0], dtype=np.int32), np.empty(edge_to.shape[0], dtype=np.int32),
    )  # fmt: skip
    m = 0
    for k in range(order.shape[0]):
        x = order[k]
        if number[x] < 0:
            continue
        z = kept - 1 - number[x]
        out.count[z], out.a[z], out.window[z], out.last[z] = nodes.count[x], nodes.a[x], nodes.window[x], nodes.last[x]
        for e in range(edge_ptr[k], edge_ptr[k + 1]):
            y = number[edge_to[e]]
            if y >= 0:
                out.edge_to[m], out.edge_span[m] = kept - 1 - y, edge_span[e]
                m += 1
        out.edge_ptr[z + 1] = m
    return out


@njit(cache=True, nogil=True)
def build(phrases, limit, gap, full, track, max_nodes):
    """The lattice, or one without nodes if it would have more than max_nodes, or if nothing can be completed.

    ``phrases`` is a PhraseArrays (certus/translation/phrases.py). track (n,): bit of each tracked word, -1 for the
    others; not read in full. A full lattice needs limit <= 63 and gap, or n <= 64, for its window.
    """
    n, span_end, start_ptr = phrases.n, phrases.span_end, phrases.start_ptr
    first = np.full(n + 1, -1, dtype=np.int32)
    room = np.empty((6, 256), np.int32)
    zero = np.int64(0)
    nodes = Nodes(room[0], room[1], np.empty(256, np.uint64), room[2], room[3])
    nodes, table = _add(nodes, first, np.full(1024, -1, np.int32), zero, zero, zero, uint64(0), np.int64(-1))
    n_nodes, n_ordered, n_edges = np.int64(1), 0, 0
    order, edge_ptr = room[4], room[5]
    edge_span, edge_to = np.empty(1024, np.int32), np.empty(1024, np.int32)
    bits = np.zeros(n, dtype=np.uint64)
    everything = uint64(0)
    for i in range(n):
        if not full and track[i] >= 0:
            bits[i] = ONE << uint64(track[i])
            everything |= bits[i]
    for c in range(n + 1):
        x = np.int64(first[c])
        while x >= 0:
            if n_ordered == order.shape[0]:
                order, edge_ptr = longer(order), longer(edge_ptr)
            order[n_ordered], edge_ptr[n_ordered] = x, n_edges
            n_ordered += 1
            ax, wx, lx = np.int64(nodes.a[x]), nodes.window[x], np.int64(nodes.last[x])
            # g lies in low .. high: known in full, bounded by what is tracked otherwise
            low, high = ax, ax
            if not full:
                low = max(0, c - max(limit - 1, 0)) if gap else 0  # at most limit - 1 words after g are covered
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
                    y = np.int64(table[_slot(table, nodes, a2, w2, stop)])
                    if y < 0:
                        if n_nodes == max_nodes:
                            return _completed(full, n, nodes, order[:0], edge_ptr, edge_span[:0], edge_to[:0])
                        y = n_nodes
                        nodes, table = _add(nodes, first, table, y, c + stop - i + 1, a2, w2, stop)
                        n_nodes += 1
                    if n_edges == edge_to.shape[0]:
                        edge_to, edge_span = longer(edge_to), longer(edge_span)
                    edge_to[n_edges], edge_span[n_edges] = y, s
                    n_edges += 1
            x = np.int64(nodes.link[x])
    if n_ordered == edge_ptr.shape[0]:
        edge_ptr = longer(edge_ptr)
    edge_ptr[n_ordered] = n_edges
    return _completed(full, n, nodes, order[:n_ordered], edge_ptr, edge_span[:n_edges], edge_to[:n_edges])
