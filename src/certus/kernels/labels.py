"""Labels of the arcs of a finished tree, by a linear model; and names of arcs, their likely labels before there is one.

A label is scored by the part of its word m, with the roles "hmglr": head, modifier, the head's head, and the leftmost
and rightmost modifiers of m, ABSENT where there is none; and together with the label of the modifier of the same head
before it, by the part "hms". The weights of a feature with all labels stand side by side, in a row that begins at a
place found by hashing, and overlap with those of other features: one look at the memory a feature, not one a label.
seen[right, coarse tag of h, coarse tag of m, label] says which labels come into question; all do where none was seen.
The name of an arc is the label that it would likely have, by its two words alone, as a number that is added to the
codes of features.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import uint32, uint64

from certus.kernels.averaging import nudge
from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT, role_codes, summed_features
from certus.kernels.tuples import Sentence

LANES = 8  # rows are as wide as whole registers: the number of labels, rounded up
_BEFORE = uint64(0xD6E8FEB86659FD93)
NAME = uint32(0x9E3779B1)  # times the number of a label and one: the name of an arc


@njit(cache=True, nogil=True)
def label_parts(heads, alone, part):
    """part[m] (n + 1, 5) <- the nodes that the label of word m is chosen by; head and modifier only if alone."""
    n = heads.shape[0] - 1
    for m in range(1, n + 1):
        h = heads[m]
        part[m, 0] = h
        part[m, 1] = m
        part[m, 2] = heads[h] if h > 0 and not alone else ABSENT
        part[m, 3] = ABSENT
        part[m, 4] = ABSENT
    for m in range(1, n + 1):
        h = heads[m]
        if h > 0 and not alone:
            if part[h, 3] == ABSENT:
                part[h, 3] = m
            part[h, 4] = m


class Rows(NamedTuple):
    """2**bits weights, in which the row of a feature is ``width`` wide; ``total`` is room for a sum of rows."""

    weight: Any
    bits: Any
    width: Any
    total: Any


@njit(cache=True, nogil=True)
def rows_of(labeller):
    """The weights of a labeller; there are at least as many as a row is wide."""
    width = (labeller.seen.shape[3] + LANES - 1) // LANES * LANES
    return Rows(labeller.model.weight, labeller.model.bits, uint64(width), np.empty(width))


@njit(cache=True, nogil=True)
def row_start(feature, before, rows):
    """Where the row of a feature begins, with the label of the modifier before; -1 for a feature without one."""
    size = uint64(1) << uint64(rows.bits)
    start = (uint64(feature) + uint64(before + 1) * _BEFORE) & (size - uint64(1))
    return start if start + rows.width <= size else start - rows.width


@njit(cache=True, nogil=True)
def add_rows(index, count, before, rows, first):
    """rows.total <- first, plus the rows of the features index[:count]."""
    weight, width, total = rows.weight, rows.width, rows.total
    for label in range(width):
        total[label] = first
    for k in range(count):
        start = row_start(index[k], before, rows)
        for label in range(width):
            total[label] += weight[start + label]


@njit(cache=True, nogil=True)
def best_label(index, count, allowed, gold, rows, score):
    """Best label by the features in index[:count]; with gold >= 0, every other label gets a cost of 1 on top."""
    add_rows(index, count, np.int64(-1), rows, 0.0)
    any_allowed = False
    for label in range(allowed.shape[0]):
        any_allowed = any_allowed or allowed[label]
    best = -1
    for label in range(allowed.shape[0]):
        if any_allowed and not allowed[label] and label != gold:
            continue
        score[label] = rows.total[label] + (1.0 if gold >= 0 and label != gold else 0.0)
        if best < 0 or score[label] > score[best]:
            best = label
    return best


@njit(cache=True, nogil=True, inline="always")
def label_scores(sentence, heads, gold, alone, labeller, feature, score):
    """score[m, label] <- what the label of each word scores by itself, -inf if it does not come into question.

    feature[m] are the indices of the word's features, without the label; returns how many each word has. With gold,
    every other label than gold[m] gets a cost of 1 on top; with ``alone`` an arc is seen without the rest of the tree.
    """
    n = heads.shape[0] - 1
    templates, bits, _ = labeller.model
    coarse, base = sentence.coarse, sentence.base
    rows = rows_of(labeller)
    part = np.empty((n + 1, 5), dtype=np.int64)
    label_parts(heads, alone, part)
    count = np.zeros(n + 1, dtype=np.int64)
    codes = role_codes(sentence, templates)
    for m in range(1, n + 1):
        count[m] = summed_features(codes, sentence, part[m], uint32(0), templates, bits, feature[m])
        allowed = labeller.seen[int(heads[m] < m), coarse[base + heads[m]], coarse[base + m]]
        for label in range(score.shape[1]):
            score[m, label] = -np.inf
        best_label(feature[m], count[m], allowed, gold[m], rows, score[m])
    return count


@njit(cache=True, nogil=True)
def pair_features(codes, sentence, labeller, part, index):
    """Features of two modifiers next to each other, without their labels, into index; returns how many.

    part (3,) is their head, the second of them, and the first.
    """
    return summed_features(codes, sentence, part, uint32(0), labeller.pairs, labeller.model.bits, index)


@njit(cache=True, nogil=True, inline="always")
def best_labels(sentence, heads, labeller, score, labels):
    """The labels of a tree with the best sum of score and of the pairs of labels of neighbouring modifiers of a head.

    Viterbi along the modifiers of each head. Ties go to the smallest label.
    """
    n = heads.shape[0] - 1
    n_labels = score.shape[1]
    rows = rows_of(labeller)
    codes = role_codes(sentence, labeller.pairs)
    index = np.empty(labeller.pairs.max_features, dtype=np.uint32)
    part = np.empty(3, dtype=np.int64)
    last = np.full(n + 1, -1, dtype=np.int64)  # of each head, the modifier seen last
    before = np.full(n + 1, -1, dtype=np.int64)  # of each word, the modifier of its head before it
    total = np.empty((n + 1, n_labels))
    back = np.empty((n + 1, n_labels), dtype=np.int64)
    labels[0] = -1
    for m in range(1, n + 1):
        h = heads[m]
        p = before[m] = last[h]
        last[h] = m
        if p < 0:
            for label in range(n_labels):
                total[m, label] = score[m, label]
            continue
        part[0], part[1], part[2] = h, m, p
        count = pair_features(codes, sentence, labeller, part, index)
        for label in range(n_labels):
            total[m, label] = -np.inf
        for other in range(n_labels):
            if total[p, other] == -np.inf:
                continue
            add_rows(index, count, other, rows, total[p, other])
            for label in range(n_labels):
                value = rows.total[label] + score[m, label]
                if value > total[m, label]:
                    total[m, label] = value
                    back[m, label] = other
    for h in range(n + 1):
        m = last[h]
        if m >= 0:
            label = 0
            for other in range(1, n_labels):
                if total[m, other] > total[m, label]:
                    label = other
            while m >= 0:
                labels[m] = label
                if before[m] >= 0:
                    label = back[m, label]
                m = before[m]


@njit(cache=True, nogil=True)
def label_trees(batch, start, heads, labeller, labels):
    """Labels of all words of a batch; heads and labels of sentence s begin at start[s], its node 0 included."""
    for s in range(batch.length.shape[0]):
        n = batch.length[s]
        sentence = Sentence(batch.attribute, batch.coarse, batch.base[s], n)
        own = heads[start[s] : start[s] + n + 1]
        feature = np.empty((n + 1, labeller.model.templates.max_features), dtype=np.uint32)
        score = np.empty((n + 1, labeller.seen.shape[3]))
        none = np.full(n + 1, -1, dtype=np.int64)
        label_scores(sentence, own, none, False, labeller, feature, score)
        best_labels(sentence, own, labeller, score, labels[start[s] : start[s] + n + 1])


@njit(cache=True, nogil=True)
def shift_weights(features, right, left, rows, step, rate, clock, weights):
    """Move the weights of features towards ``right`` and away from ``left``, each the label before and the label."""
    for feature in features:
        nudge(row_start(feature, right[0], rows) + uint64(right[1]), 1.0, step, rate, clock, weights)
        nudge(row_start(feature, left[0], rows) + uint64(left[1]), -1.0, step, rate, clock, weights)


@njit(cache=True, nogil=True)
def learn_labels(sentence, heads, gold, alone, labeller, learner, clock, weights):
    """A step of the learner for the modifiers of each head; returns how many labels are wrong, or do not win by 1.

    With ``alone`` every word is by itself: there are no pairs, and its arc is seen without the rest of the tree.
    """
    n = heads.shape[0] - 1
    weight, none = labeller.model.weight, np.int64(-1)
    rows = rows_of(labeller)
    index = np.empty(labeller.pairs.max_features, dtype=np.uint32)
    feature = np.empty((n + 1, labeller.model.templates.max_features), dtype=np.uint32)
    score = np.empty((n + 1, labeller.seen.shape[3]))
    guess = np.empty(n + 1, dtype=np.int64)
    costly = gold if learner.margin else np.full(n + 1, -1, dtype=np.int64)
    count = label_scores(sentence, heads, costly, alone, labeller, feature, score)
    best_labels(sentence, heads, labeller, score, guess)
    codes = role_codes(sentence, labeller.pairs)
    part = np.empty(3, dtype=np.int64)
    last = np.empty(n + 1, dtype=np.int64)
    loss = np.full(n + 1, 0.0 if learner.margin else np.inf)
    norm = np.zeros(n + 1)
    wrong = 0
    for move in range(2):  # first what every head loses, then the steps
        last[:] = -1
        for m in range(1, n + 1):
            h = m if alone else heads[m]
            p = last[h]
            last[h] = m
            right, left = gold[m], guess[m]
            step = min(learner.cap, loss[h] / norm[h]) if move and norm[h] > 0.0 else 0.0
            if left != right:
                if move:
                    own = feature[m, : count[m]]
                    shift_weights(own, (none, right), (none, left), rows, step, learner.rate, clock, weights)
                else:
                    loss[h] += score[m, left] - score[m, right]
                    norm[h] += 2.0 * count[m]
                    wrong += 1
            if p >= 0 and (left != right or guess[p] != gold[p]):
                part[0], part[1], part[2] = h, m, p
                size = pair_features(codes, sentence, labeller, part, index)
                ahead, behind = (gold[p], right), (guess[p], left)
                if move:
                    found = index[: np.int64(size)]
                    shift_weights(found, ahead, behind, rows, step, learner.rate, clock, weights)
                else:
                    norm[h] += 2.0 * size
                    for k in range(size):
                        loss[h] += weight[row_start(index[k], behind[0], rows) + uint64(left)]
                        loss[h] -= weight[row_start(index[k], ahead[0], rows) + uint64(right)]
    return wrong


@njit(cache=True, nogil=True)
def name_arcs(sentence, allowed, namer, names):
    """names[h, m] <- the name of each allowed arc, uint32, 0 elsewhere; nothing is named without templates."""
    n = allowed.shape[0] - 1
    templates, bits, _ = namer.model
    coarse, base = sentence.coarse, sentence.base
    names[:] = 0
    if templates.seed.shape[0] == 0:
        return
    index = np.empty(templates.max_features, dtype=np.uint32)
    rows, score = rows_of(namer), np.empty(namer.seen.shape[3])
    part = np.full(5, ABSENT, dtype=np.int64)
    codes = role_codes(sentence, templates)
    for h in range(n + 1):
        for m in range(1, n + 1):
            if allowed[h, m]:
                part[0] = h
                part[1] = m
                count = summed_features(codes, sentence, part, uint32(0), templates, bits, index)
                likely = namer.seen[int(h < m), coarse[base + h], coarse[base + m]]
                label = best_label(index, np.int64(count), likely, np.int64(-1), rows, score)
                names[h, m] = uint32((label + 1) * NAME)
