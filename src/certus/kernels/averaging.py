"""The one update of a linear model: a step along a sparse vector, remembered for averaging.

Every learner adds step * amount to the weights of some features. total adds up clock times every change: then the
average of the weights over all steps is value - total / clock, and costs nothing until it is asked for (DEP 2.4). A
learner has one step for all weights, at most ``cap``, or with a ``rate`` a step for each weight, which shrinks as the
weight changes (AdaGrad).
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit


class Averaged(NamedTuple):
    """Weights and what their average is made of, arrays of one length."""

    value: np.ndarray
    total: np.ndarray  # clock times every change, float64
    squares: np.ndarray  # squared changes before their steps, for AdaGrad


@njit(cache=True, nogil=True)
def nudge(f, amount, step, rate, clock, weights):
    """Move weight f by step * amount; with a rate, by a step of its own."""
    if rate > 0.0:
        weights.squares[f] += amount * amount
        step = rate / np.sqrt(weights.squares[f]) if weights.squares[f] > 0.0 else 0.0
    weights.value[f] += step * amount
    weights.total[f] += clock * step * amount


@njit(cache=True, nogil=True)
def net_counts(plus, minus, feature, net):
    """Features of plus less those of minus, each once with its count, those that cancel left out; returns how many."""
    size = plus.shape[0] + minus.shape[0]
    code = np.empty(size, dtype=np.int64)
    for k in range(plus.shape[0]):
        code[k] = np.int64(plus[k]) * 2 + 1
    for k in range(minus.shape[0]):
        code[plus.shape[0] + k] = np.int64(minus[k]) * 2
    code.sort()
    k = 0
    kept = 0
    while k < size:
        feature[kept] = code[k] >> 1
        net[kept] = 0
        while k < size and code[k] >> 1 == feature[kept]:
            net[kept] += 1 if code[k] & 1 else -1
            k += 1
        if net[kept] != 0:
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def move(plus, minus, cost, learner, clock, weights):
    """Move the weights towards plus and away from minus if the guess does not lose by its cost; returns the loss.

    plus and minus list features, with repetitions. Without a rate the step is the smallest that makes the loss zero, at
    most the cap (passive-aggressive).
    """
    size = plus.shape[0] + minus.shape[0]
    feature = np.empty(size + 1, dtype=np.int64)
    net = np.empty(size + 1, dtype=np.int64)
    kept = net_counts(plus, minus, feature, net)
    norm = margin = 0.0
    for k in range(kept):
        norm += net[k] * net[k]
        margin += net[k] * weights.value[feature[k]]
    loss = cost - margin
    if loss <= 0.0 or norm == 0.0:
        return max(loss, 0.0)
    step = min(learner.cap, loss / norm)
    for k in range(kept):
        nudge(feature[k], net[k], step, learner.rate, clock, weights)
    return loss
