"""Sums over tag sequences scored by tags and pairs of neighbours, one table for all, without logarithms.

Weights are exp(score less the largest of its position, or of the table), and the sums up to a position are scaled to
add up to 1. No pair is forbidden, so each such sum of an allowed tag is at least the least weight of a tag times the
least of a pair: if scores of a position, and of the table, are no more than RANGE apart, nothing is lost. Other
sequences are left to kernels.tagging.
"""

from math import inf, log

import numpy as np

from certus.kernels.compiling import njit

RANGE = 300.0


@njit(cache=True, nogil=True)
def _weights(unary, n, weight):
    """weight[i] <- exp(unary[i] - the largest); returns the sum of these, nan if scores lie too far apart."""
    shift = 0.0
    for i in range(n):
        low, high = inf, -inf
        for t in range(unary.shape[1]):
            x = unary[i, t]
            high = max(high, x)
            low = min(low, x if x > -inf else inf)
        if high == -inf:
            return -inf
        if high - low > RANGE:
            return np.nan
        for t in range(unary.shape[1]):
            weight[i, t] = np.exp(unary[i, t] - high)
        shift += high
    return shift


@njit(cache=True, nogil=True)
def _forward(power, n, weight, alpha, scale):
    """alpha[i, t] <- share of the tag t in the sum up to position i; returns the log of the whole sum."""
    size, total = power.shape[0], 0.0
    for i in range(n):
        new = alpha[i]
        if i == 0:
            new[:] = 1.0
        else:
            new[:] = 0.0
            for a in range(size):
                x = alpha[i - 1, a]
                for c in range(size):
                    new[c] += x * power[a, c]
        mass = 0.0
        for c in range(size):
            new[c] *= weight[i, c]
            mass += new[c]
        for c in range(size):
            new[c] /= mass
        scale[i] = 1.0 / mass
        total += log(mass)
    return total


@njit(cache=True, nogil=True)
def _backward(power, turned, n, weight, alpha, scale, tags, pairs):
    """tags <- the probability of each tag, pairs <- the expected uses of each pair, unless it comes empty."""
    size = power.shape[0]
    rest, beta = np.empty(size), np.ones(size)
    for i in range(n - 1, -1, -1):
        for c in range(size):
            tags[i, c] = alpha[i, c] * beta[c]
            rest[c] = weight[i, c] * beta[c] * scale[i]
        if i == 0:
            break
        beta[:] = 0.0
        for c in range(size):
            x, column = rest[c], turned[c]
            for a in range(size):
                beta[a] += x * column[a]
        if pairs.shape[0]:
            for a in range(size):
                x = alpha[i - 1, a]
                for c in range(size):
                    pairs[a, c] += x * rest[c]
    if pairs.shape[0]:
        for a in range(size):
            for c in range(size):
                pairs[a, c] *= power[a, c]


@njit(cache=True, nogil=True)
def chain_sums(power, peak, unary, lengths, value, tags, pairs):
    """value[b] <- log of the sum of exp(score) over the sequences of each item: unary (B, N, T); nan if left out.

    power (T, T) is exp(pairs of tags - peak). tags (B, N, T) <- the probability of each tag, pairs (B, T, T) <- the
    expected uses of each pair, unless it comes empty; 0 in the padding, and where there is no sequence.
    """
    positions, size = unary.shape[1], unary.shape[2]
    turned = power.T.copy()
    weight, alpha, scale = np.empty((positions, size)), np.empty((positions, size)), np.empty(positions)
    nothing = np.empty((0, 0))
    for b in range(unary.shape[0]):
        n = lengths[b]
        tags[b] = 0.0
        own = nothing
        if pairs.shape[0]:
            own = pairs[b]
            own[:] = 0.0
        value[b] = _weights(unary[b], n, weight)
        if value[b] > -inf and n > 0:
            value[b] += peak * (n - 1) + _forward(power, n, weight, alpha, scale)
            _backward(power, turned, n, weight, alpha, scale, tags[b], own)
