"""Projective trees of a batch, drawn in proportion to exp(score): one chart for each sentence, trees drawn from it.

The chart has sums of weights exp(score less the best score into the same word). right[s, t] and left[s, t] are of trees
over words s .. t with the head s or t; both[s, t] of two such trees side by side, heads s and t, that an arc between s
and t joins. Every projective tree is made in one way.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit

BOTH, RIGHT, LEFT = 0, 1, 2
LEAST, MOST = 1e-200, 1e200  # of a sum in which nothing that counts was lost


class Chart(NamedTuple):
    """Tables of (n + 1, n + 1), and the weights of arcs."""

    weight: np.ndarray
    both: np.ndarray
    right: np.ndarray
    left: np.ndarray


@njit(cache=True, nogil=True)
def _fill(arc, n, first, chart):
    """The chart over nodes ``first`` .. n; node 0 takes part with any number of roots alone."""
    for m in range(1, n + 1):
        most = -np.inf
        for h in range(n + 1):
            if h != m:
                most = max(most, arc[h, m])
        for h in range(n + 1):
            chart.weight[h, m] = np.exp(arc[h, m] - most) if h != m and arc[h, m] > -np.inf else 0.0
    chart.weight[:, 0] = 0.0
    for s in range(first, n + 1):
        chart.right[s, s] = chart.left[s, s] = 1.0
    for width in range(1, n + 1 - first):
        for s in range(first, n + 1 - width):
            t = s + width
            total = 0.0
            for r in range(s, t):
                total += chart.right[s, r] * chart.left[r + 1, t]
            chart.both[s, t] = total
            total = 0.0
            for r in range(s + 1, t + 1):
                total += chart.weight[s, r] * chart.both[s, r] * chart.right[r, t]
            chart.right[s, t] = total
            total = 0.0
            for r in range(s, t):
                total += chart.left[s, r] * chart.weight[t, r] * chart.both[r, t]
            chart.left[s, t] = total


@njit(cache=True, nogil=True)
def _way(chart, kind, s, t, r):
    """The weight of the way to make an item at the place r."""
    if kind == BOTH:
        return chart.right[s, r] * chart.left[r + 1, t]
    if kind == RIGHT:
        return chart.weight[s, r] * chart.both[s, r] * chart.right[r, t]
    return chart.left[s, r] * chart.weight[t, r] * chart.both[r, t]


@njit(cache=True, nogil=True)
def _draw_place(chart, kind, s, t, rng):
    """A place at which an item is made, in proportion to its weight."""
    begin = s + 1 if kind == RIGHT else s
    end = t + 1 if kind == RIGHT else t
    total = chart.both[s, t] if kind == BOTH else (chart.right[s, t] if kind == RIGHT else chart.left[s, t])
    x = rng.random() * total
    chosen = -1
    for r in range(begin, end):
        way = _way(chart, kind, s, t, r)
        if way > 0.0:
            chosen = r
            x -= way
            if x < 0.0:
                break
    return chosen


@njit(cache=True, nogil=True)
def _draw_tree(chart, n, single, rng, stack, heads):
    """heads (N,) <- a tree."""
    depth = 1
    stack[0, 0], stack[0, 1], stack[0, 2] = RIGHT, 0, n
    if single:
        total = 0.0
        for r in range(1, n + 1):
            total += chart.weight[0, r] * chart.left[1, r] * chart.right[r, n]
        x = rng.random() * total
        top = -1
        for r in range(1, n + 1):
            way = chart.weight[0, r] * chart.left[1, r] * chart.right[r, n]
            if way > 0.0:
                top = r
                x -= way
                if x < 0.0:
                    break
        heads[top] = 0
        stack[0, 0], stack[0, 1], stack[0, 2] = LEFT, 1, top
        stack[1, 0], stack[1, 1], stack[1, 2] = RIGHT, top, n
        depth = 2
    while depth > 0:
        depth -= 1
        kind, s, t = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if s == t:
            continue
        r = _draw_place(chart, kind, s, t, rng)
        if kind == BOTH:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = RIGHT, s, r
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = LEFT, r + 1, t
        elif kind == RIGHT:
            heads[r] = s
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = BOTH, s, r
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = RIGHT, r, t
        else:
            heads[r] = t
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = LEFT, s, r
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = BOTH, r, t
        depth += 2


@njit(cache=True, nogil=True)
def draw(arc, lengths, single, rng, heads, drawn):
    """heads (B, k, N) <- trees of each sentence, -1 at node 0 and in the padding; drawn[b] says if nothing was lost."""
    size = arc.shape[1]
    table = np.zeros((4, size, size))
    chart = Chart(table[0], table[1], table[2], table[3])
    stack = np.empty((2 * size + 2, 3), np.int64)
    heads[:] = -1
    for b in range(arc.shape[0]):
        n = lengths[b]
        drawn[b] = n == 0
        if n == 0:
            continue
        _fill(arc[b], n, 1 if single else 0, chart)
        total = chart.right[0, n]
        if single:
            total = 0.0
            for r in range(1, n + 1):
                total += chart.weight[0, r] * chart.left[1, r] * chart.right[r, n]
        drawn[b] = LEAST < total < MOST
        if drawn[b]:
            for i in range(heads.shape[1]):
                _draw_tree(chart, n, single, rng, stack, heads[b, i])
