"""Grammars in normal form with rules for every sentence: best trees, their max-marginals, and samples.

A phrases come before P tags, S = A + P symbols in all. rule (A, S, S) has the scores of a phrase over two symbols, cell
(n + 1, n + 1, S) those of a symbol over words i .. j - 1, -inf for tags over more than one word and for phrases over
one. chart[i, j, s] is the best score of a tree with symbol s at the top, its cell included. The splits of a span are
gathered for all pairs of symbols before the rules are looked at: O(n^3 S^2 + n^2 A S^2).
"""

from math import exp

import numpy as np

from certus.kernels.compiling import njit

U = np.uint64


@njit(cache=True, nogil=True)
def _symbols(n_phrases, n_symbols, width):
    """The symbols that a span of so many words may have: the first, and that after the last."""
    return (n_phrases, n_symbols) if width == 1 else (0, n_phrases)


@njit(cache=True, nogil=True)
def _raise(best, more, scores):
    """best[c] <- max(best[c], more + scores[c])."""
    for c in range(U(best.shape[0])):
        value = more + scores[c]
        best[c] = value if value > best[c] else best[c]


@njit(cache=True, nogil=True)
def _raise_sums(best, left, right):
    """best[c] <- max(best[c], left[c] + right[c])."""
    for c in range(U(best.shape[0])):
        value = left[c] + right[c]
        best[c] = value if value > best[c] else best[c]


@njit(cache=True, nogil=True)
def _gather(chart, n_phrases, i, j, pairs):
    """pairs[b, c] <- max_k chart[i, k, b] + chart[k, j, c]."""
    size = chart.shape[2]
    pairs[:] = -np.inf
    for k in range(i + 1, j):
        first, last = _symbols(n_phrases, size, k - i)
        low, high = _symbols(n_phrases, size, j - k)
        right = chart[k, j]
        for b in range(first, last):
            left = chart[i, k, b]
            if left > -np.inf:
                _raise(pairs[b, low:high], left, right[low:high])


@njit(cache=True, nogil=True)
def inside(rule, cell, chart):
    """Fill chart (n + 1, n + 1, S)."""
    n, size, n_phrases = chart.shape[0] - 1, chart.shape[2], rule.shape[0]
    pairs, best = np.empty((size, size)), np.empty(size)
    chart[:] = -np.inf
    for i in range(n):
        chart[i, i + 1, n_phrases:] = cell[i, i + 1, n_phrases:]
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width
            _gather(chart, n_phrases, i, j, pairs)
            for a in range(n_phrases):
                if cell[i, j, a] == -np.inf:
                    continue
                best[:] = -np.inf
                for b in range(size):
                    _raise_sums(best, rule[a, b], pairs[b])
                chart[i, j, a] = cell[i, j, a] + best.max()


@njit(cache=True, nogil=True)
def outside(rule, cell, root, chart, out):
    """out[i, j, s] <- the best score of what is around a symbol over words i .. j - 1, its cell left out."""
    n, size, n_phrases = chart.shape[0] - 1, chart.shape[2], rule.shape[0]
    pairs = np.empty((size, size))
    out[:] = -np.inf
    out[0, n, :n_phrases] = root
    for width in range(n, 1, -1):
        for i in range(n - width + 1):
            j = i + width
            pairs[:] = -np.inf
            for a in range(n_phrases):
                above = out[i, j, a] + cell[i, j, a]
                if above > -np.inf:
                    for b in range(size):
                        _raise(pairs[b], above, rule[a, b])
            for k in range(i + 1, j):
                first, last = _symbols(n_phrases, size, k - i)
                low, high = _symbols(n_phrases, size, j - k)
                for b in range(first, last):
                    _raise(out[k, j, low:high], chart[i, k, b], pairs[b, low:high])
                    best = out[i, k, b]
                    for c in range(low, high):
                        best = max(best, pairs[b, c] + chart[k, j, c])
                    out[i, k, b] = best


@njit(cache=True, nogil=True)
def best_derivation(rule, cell, root, chart, tree):
    """tree (2 n - 1, 3) <- spans and symbols of a best tree, if there is one; returns its score. n is 2 or more."""
    n, size, n_phrases = chart.shape[0] - 1, chart.shape[2], rule.shape[0]
    value, top = -np.inf, -1
    for a in range(n_phrases):
        if root[a] + chart[0, n, a] > value:
            value, top = root[a] + chart[0, n, a], a
    if top < 0:
        return value
    pairs = np.empty((size, size))
    stack = np.empty((n + 1, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, top
    depth, found = 1, 0
    while depth > 0:
        depth -= 1
        i, j, a = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        tree[found, 0], tree[found, 1], tree[found, 2] = i, j, a
        found += 1
        if j - i == 1:
            continue
        _gather(chart, n_phrases, i, j, pairs)
        most, left, right = -np.inf, -1, -1
        for b in range(size):
            for c in range(size):
                if rule[a, b, c] + pairs[b, c] > most:
                    most, left, right = rule[a, b, c] + pairs[b, c], b, c
        split = i + 1
        while chart[i, split, left] + chart[split, j, right] < pairs[left, right]:
            split += 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = split, j, right
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = i, split, left
        depth += 2
    return value


@njit(cache=True, nogil=True)
def _draw_index(weight, rng):
    """An index drawn in proportion to weights, of which some are not 0."""
    total = weight.sum()
    x = total
    while x >= total:
        x = rng.random() * total
    chosen = -1
    for k in range(weight.shape[0]):
        if weight[k] > 0.0:
            chosen = k
            x -= weight[k]
            if x < 0.0:
                break
    return chosen


@njit(cache=True, nogil=True)
def draw(rule, root, chart, rng, trees):
    """trees (k, 2 n - 1, 3) <- trees drawn in proportion to exp(score); chart has logs of sums, and some tree."""
    n, size, n_phrases = chart.shape[0] - 1, chart.shape[2], rule.shape[0]
    stack, top = np.empty((n + 1, 3), np.int64), root + chart[0, n, :n_phrases]
    top = np.exp(top - top.max())
    weight = np.empty(n * size * size)
    for t in range(trees.shape[0]):
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, _draw_index(top, rng)
        depth, found = 1, 0
        while depth > 0:
            depth -= 1
            i, j, a = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            trees[t, found, 0], trees[t, found, 1], trees[t, found, 2] = i, j, a
            found += 1
            if j - i == 1:
                continue
            most, used = -np.inf, (j - i - 1) * size * size
            weight[:used] = -np.inf
            for k in range(i + 1, j):
                first, last = _symbols(n_phrases, size, k - i)
                low, high = _symbols(n_phrases, size, j - k)
                for b in range(first, last):
                    at = ((k - i - 1) * size + b) * size
                    for c in range(low, high):
                        weight[at + c] = rule[a, b, c] + chart[i, k, b] + chart[k, j, c]
                        most = max(most, weight[at + c])
            for e in range(used):
                weight[e] = exp(weight[e] - most) if weight[e] > -np.inf else 0.0
            chosen = _draw_index(weight[:used], rng)
            split, pair = i + 1 + chosen // (size * size), chosen % (size * size)
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = split, j, pair % size
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = i, split, pair // size
            depth += 2
