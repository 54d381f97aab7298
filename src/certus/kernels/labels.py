"""Labels of the arcs of a tree, each chosen on its own by a linear model over the finished tree.

The part of word m has the roles "hmglr": head, modifier, the head's head, and the leftmost and rightmost modifiers of
m; ABSENT where there is none. A feature and a label share a weight with other pairs by hashing. seen[right, coarse tag
of h, coarse tag of m, label] says which labels come into question; all do where none was seen.
"""

import numpy as np
from numba import njit, uint64

from certus.kernels.features import ABSENT, part_features

_MIX = uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def label_parts(heads, part):
    """part[m] (n + 1, 5) <- the nodes that the label of word m is chosen by."""
    n = heads.shape[0] - 1
    for m in range(1, n + 1):
        h = heads[m]
        part[m, 0] = h
        part[m, 1] = m
        part[m, 2] = heads[h] if h > 0 else ABSENT
        part[m, 3] = ABSENT
        part[m, 4] = ABSENT
    for m in range(1, n + 1):
        h = heads[m]
        if h > 0:
            if part[h, 3] == ABSENT:
                part[h, 3] = m
            part[h, 4] = m


@njit(cache=True, nogil=True)
def best_label(index, count, bits, allowed, gold, weight, score):
    """Best label by the features in index[:count]; with gold >= 0, every other label gets a cost of 1 on top."""
    mask = uint64((1 << bits) - 1)
    any_allowed = False
    for label in range(allowed.shape[0]):
        any_allowed = any_allowed or allowed[label]
    best = -1
    for label in range(allowed.shape[0]):
        if any_allowed and not allowed[label] and label != gold:
            continue
        shift = uint64(label + 1) * _MIX
        total = 1.0 if gold >= 0 and label != gold else 0.0
        for k in range(count):
            total += weight[(index[k] + shift) & mask]
        score[label] = total
        if best < 0 or total > score[best]:
            best = label
    return best


@njit(cache=True, nogil=True)
def label_trees(attribute, coarse, base, length, start, heads, seen, templates, bits, weight, index, labels):
    """Labels of all words of a batch; heads and labels of sentence s begin at start[s], its node 0 included."""
    score = np.empty(seen.shape[3])
    for s in range(length.shape[0]):
        n = length[s]
        own = heads[start[s] : start[s] + n + 1]
        part = np.empty((n + 1, 5), dtype=np.int64)
        label_parts(own, part)
        labels[start[s]] = -1
        for m in range(1, n + 1):
            count = part_features(attribute, coarse, base[s], part, m, *templates, bits, index)
            allowed = seen[int(own[m] < m), coarse[base[s] + own[m]], coarse[base[s] + m]]
            labels[start[s] + m] = best_label(index, count, bits, allowed, -1, weight, score)


@njit(cache=True, nogil=True)
def learn_labels(attribute, coarse, base, n, heads, gold, seen, templates, bits, cap, clock, weight, total, index):
    """One passive-aggressive step per word of a sentence; returns the number of wrong labels."""
    mask = uint64((1 << bits) - 1)
    score = np.empty(seen.shape[3])
    part = np.empty((n + 1, 5), dtype=np.int64)
    label_parts(heads, part)
    wrong = 0
    for m in range(1, n + 1):
        count = part_features(attribute, coarse, base, part, m, *templates, bits, index)
        allowed = seen[int(heads[m] < m), coarse[base + heads[m]], coarse[base + m]]
        guess = best_label(index, count, bits, allowed, gold[m], weight, score)
        if guess == gold[m]:
            continue
        wrong += score[guess] - 1.0 >= score[gold[m]]
        step = min(cap, (score[guess] - score[gold[m]]) / (2.0 * count))
        right, left = uint64(gold[m] + 1) * _MIX, uint64(guess + 1) * _MIX
        for k in range(count):
            i, j = (index[k] + right) & mask, (index[k] + left) & mask
            weight[i] += step
            total[i] += clock * step
            weight[j] -= step
            total[j] -= clock * step
    return wrong
