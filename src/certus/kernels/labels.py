"""Labels of arcs, each chosen on its own by a linear model over the finished tree; and before there is one.

The part of word m has the roles "hmglr": head, modifier, the head's head, and the leftmost and rightmost modifiers of
m; ABSENT where there is none. A feature and a label share a weight with other pairs by hashing. seen[right, coarse tag
of h, coarse tag of m, label] says which labels come into question; all do where none was seen. The name of an arc is
the label that it would likely have, by its two words alone, as a number that is added to the codes of features.
"""

import numpy as np
from numba import njit, uint32, uint64

from certus.kernels.features import ABSENT, role_codes, summed_features

_MIX = uint64(0x9E3779B97F4A7C15)
_NAME = uint32(0x9E3779B1)


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
        codes = role_codes(attribute, base[s], n, 5, templates)
        for m in range(1, n + 1):
            count = summed_features(codes, coarse, base[s], part, m, uint32(0), templates, bits, index)
            allowed = seen[int(own[m] < m), coarse[base[s] + own[m]], coarse[base[s] + m]]
            labels[start[s] + m] = best_label(index, count, bits, allowed, -1, weight, score)


@njit(cache=True, nogil=True)
def learn_labels(
    attribute, coarse, base, n, heads, gold, seen, templates, bits, cap, alone, clock, weight, total, index
):
    """One passive-aggressive step per word of a sentence; returns the number of wrong labels.

    With ``alone`` an arc is seen by itself, without the rest of the tree.
    """
    mask = uint64((1 << bits) - 1)
    score = np.empty(seen.shape[3])
    part = np.empty((n + 1, 5), dtype=np.int64)
    label_parts(heads, part)
    if alone:
        part[1:, 2:] = ABSENT
    codes = role_codes(attribute, base, n, 5, templates)
    wrong = 0
    for m in range(1, n + 1):
        count = summed_features(codes, coarse, base, part, m, uint32(0), templates, bits, index)
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


@njit(cache=True, nogil=True)
def name_arcs(attribute, coarse, base, allowed, seen, templates, bits, weight, index, name):
    """name[h, m] <- the name of each allowed arc, uint32, 0 elsewhere; nothing is named without templates."""
    n = allowed.shape[0] - 1
    name[:] = 0
    if templates[4].shape[0] == 0:
        return
    score = np.empty(seen.shape[3])
    part = np.full((1, 5), ABSENT)
    codes = role_codes(attribute, base, n, 5, templates)
    for h in range(n + 1):
        for m in range(1, n + 1):
            if allowed[h, m]:
                part[0, 0] = h
                part[0, 1] = m
                count = summed_features(codes, coarse, base, part, 0, uint32(0), templates, bits, index)
                likely = seen[int(h < m), coarse[base + h], coarse[base + m]]
                label = best_label(index, count, bits, likely, -1, weight, score)
                name[h, m] = uint32((label + 1) * _NAME)
