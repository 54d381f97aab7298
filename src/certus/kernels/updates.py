"""The update of a linear model: a step towards the features of what is right, and away from those of a guess."""

import numpy as np

from certus.kernels.compiling import njit


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
def move(plus, minus, cost, cap, rate, clock, weight, total, squares):
    """Move the weights towards plus and away from minus if the guess does not lose by its cost; returns the loss.

    plus and minus list feature indices, with repetitions. With rate 0 the step is the smallest that makes the loss
    zero, at most cap (passive-aggressive). Otherwise each weight has a step of its own, rate over the root of the sum
    of its squared changes so far, which squares holds (AdaGrad). total adds up clock times every change, for averaging.
    """
    size = plus.shape[0] + minus.shape[0]
    feature = np.empty(size + 1, dtype=np.int64)
    net = np.empty(size + 1, dtype=np.int64)
    kept = net_counts(plus, minus, feature, net)
    norm = margin = 0.0
    for k in range(kept):
        norm += net[k] * net[k]
        margin += net[k] * weight[feature[k]]
    loss = cost - margin
    if loss <= 0.0 or norm == 0.0:
        return max(loss, 0.0)
    step = min(cap, loss / norm)
    for k in range(kept):
        f = feature[k]
        if rate > 0.0:
            squares[f] += net[k] * net[k]
            step = rate / np.sqrt(squares[f])
        weight[f] += step * net[k]
        total[f] += clock * step * net[k]
    return loss
