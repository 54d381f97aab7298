"""Labels of the arcs of a finished tree, by a linear model.

A label is scored by the part of its word m, with the roles "hmglr": head, modifier, the head's head, and the leftmost
and rightmost modifiers of m, ABSENT where there is none; and together with the label of the modifier of the same head
before it, by the part "hms". The weights of a feature with each label stand in a row, label by label, which may begin
at any weight: rows overlap, so that a feature shares weights with others by hashing as it would if each label were
hashed, and all labels of a feature are read at once. seen[right, coarse tag of h, coarse tag of m, label] says which
labels come into question; all do where none was seen.
"""

import numpy as np
from numba import uint32, uint64

from certus.kernels.averaging import nudge
from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT, role_codes, summed_features
from certus.kernels.tuples import Sentence

_BEFORE = uint64(0xD6E8FEB86659FD93)
_FAR = 1 << 30  # more than any sum of weights of a byte
_LANES = 16  # rows are read in steps of so many labels


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


@njit(cache=True, nogil=True)
def row_room(n_labels, size):
    """How many weights of a row are read, of ``size`` in all."""
    return min((n_labels + _LANES - 1) // _LANES * _LANES, size)


@njit(cache=True, nogil=True)
def row_start(feature, before, room, size):
    """Where the row of a feature begins, or of a feature and the label before."""
    return min((uint64(feature) + uint64(before + 1) * _BEFORE) & uint64(size - 1), uint64(size - room))


@njit(cache=True, nogil=True)
def add_rows(index, count, before, weight, total):
    """total[label] <- the sum of the weights of the features in index[:count] with each label.

    before is the label before, or -1. total has room for what rows have beyond the labels, and sums as wide as the
    weights need: int32 for bytes.
    """
    room, size = total.shape[0], weight.shape[0]
    for label in range(uint64(room)):
        total[label] = 0
    one, k = uint64(1), uint64(0)
    while k + one < uint64(count):  # two rows at a time: a sum waits for the one before it
        a = row_start(index[k], before, room, size)
        b = row_start(index[k + one], before, room, size)
        for label in range(uint64(room)):
            total[label] = total[label] + weight[a + label] + weight[b + label]  # never a byte and a byte alone
        k += one + one
    if k < uint64(count):
        a = row_start(index[k], before, room, size)
        for label in range(uint64(room)):
            total[label] += weight[a + label]


@njit(cache=True, nogil=True)
def best_label(total, allowed):
    """The label with the largest total, a whole number, among those allowed, or among all if none is.

    The smallest of several.
    """
    most = np.int64(-_FAR) - _FAR
    for label in range(uint64(allowed.shape[0])):
        most = max(most, total[label] - (0 if allowed[label] else _FAR))
    for label in range(uint64(allowed.shape[0])):
        if total[label] - (0 if allowed[label] else _FAR) == most:
            return np.int64(label)
    return np.int64(-1)


@njit(cache=True, nogil=True, inline="always")
def label_scores(sentence, heads, gold, alone, labeller, feature, total, score):
    """score[m, label] <- what the label of each word scores by itself, -inf if it does not come into question.

    feature[m] are the indices of the word's features, without the label; returns how many each word has. With gold,
    every other label than gold[m] gets a cost of 1 on top; with ``alone`` an arc is seen without the rest of the tree.
    total is room for add_rows.
    """
    n = heads.shape[0] - 1
    templates, bits, weight = labeller.model
    coarse, base = sentence.coarse, sentence.base
    part = np.empty((n + 1, 5), dtype=np.int64)
    label_parts(heads, alone, part)
    count = np.zeros(n + 1, dtype=np.int64)
    codes = role_codes(sentence, templates)
    for m in range(1, n + 1):
        count[m] = summed_features(codes, sentence, part[m], uint32(0), templates, bits, feature[m])
        allowed = labeller.seen[int(heads[m] < m), coarse[base + heads[m]], coarse[base + m]]
        add_rows(feature[m], count[m], -1, weight, total)
        any_allowed = False
        for label in range(score.shape[1]):
            any_allowed = any_allowed or allowed[label]
        for label in range(score.shape[1]):
            score[m, label] = total[label] + (1.0 if gold[m] >= 0 and label != gold[m] else 0.0)
            if any_allowed and not allowed[label] and label != gold[m]:
                score[m, label] = -np.inf
    return count


@njit(cache=True, nogil=True)
def pair_features(codes, sentence, labeller, part, index):
    """Features of two modifiers next to each other, without their labels, into index; returns how many.

    part (3,) is their head, the second of them, and the first.
    """
    return summed_features(codes, sentence, part, uint32(0), labeller.pairs, labeller.model.bits, index)


@njit(cache=True, nogil=True, inline="always")
def best_labels(sentence, heads, labeller, score, room, labels):
    """The labels of a tree with the best sum of score and of the pairs of labels of neighbouring modifiers of a head.

    Viterbi along the modifiers of each head. Ties go to the smallest label. room is for add_rows.
    """
    n = heads.shape[0] - 1
    n_labels = score.shape[1]
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
        own, own_back = total[m], back[m]
        for label in range(n_labels):
            own[label] = -np.inf
        for other in range(n_labels):
            known = total[p, other]
            if known == -np.inf:
                continue
            add_rows(index, count, other, labeller.model.weight, room)
            for label in range(n_labels):
                value = known + room[label]
                own_back[label] = other if value > own[label] else own_back[label]
                own[label] = max(value, own[label])
        for label in range(n_labels):
            own[label] += score[m, label]
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
def label_trees(batch, start, heads, labeller, more, labels):
    """labels <- the best of all words of a batch.

    Heads and labels of sentence s begin at start[s], its node 0 included. Unless it is None, more[k, label] is added
    for node k of the batch, in units of the labeller.
    """
    for s in range(batch.length.shape[0]):
        n = batch.length[s]
        sentence = Sentence(batch.attribute, batch.coarse, batch.base[s], n)
        own = heads[start[s] : start[s] + n + 1]
        feature = np.empty((n + 1, labeller.model.templates.max_features), dtype=np.uint32)
        score = np.empty((n + 1, labeller.seen.shape[3]))
        room = np.empty(row_room(labeller.seen.shape[3], labeller.model.weight.shape[0]), dtype=np.int32)
        none = np.full(n + 1, -1, dtype=np.int64)
        label_scores(sentence, own, none, False, labeller, feature, room, score)
        if more is not None:
            for m in range(1, n + 1):
                for label in range(score.shape[1]):
                    score[m, label] += more[start[s] + m, label]
        best_labels(sentence, own, labeller, score, room, labels[start[s] : start[s] + n + 1])


@njit(cache=True, nogil=True)
def shift_weights(features, right, left, room, step, rate, clock, weights):
    """Move the weights of features towards a label and away from another; each with the label before it, or -1."""
    size = weights.value.shape[0]
    for feature in features:
        nudge(row_start(feature, right[0], room, size) + uint64(right[1]), 1.0, step, rate, clock, weights)
        nudge(row_start(feature, left[0], room, size) + uint64(left[1]), -1.0, step, rate, clock, weights)


@njit(cache=True, nogil=True)
def learn_labels(sentence, heads, gold, alone, labeller, learner, clock, weights):
    """A step of the learner for the modifiers of each head; returns how many labels are wrong, or do not win by 1.

    With ``alone`` every word is by itself: there are no pairs, and its arc is seen without the rest of the tree.
    """
    n = heads.shape[0] - 1
    weight = labeller.model.weight
    total = np.empty(row_room(labeller.seen.shape[3], weight.shape[0]))
    room = total.shape[0]
    index = np.empty(labeller.pairs.max_features, dtype=np.uint32)
    feature = np.empty((n + 1, labeller.model.templates.max_features), dtype=np.uint32)
    score = np.empty((n + 1, labeller.seen.shape[3]))
    guess = np.empty(n + 1, dtype=np.int64)
    costly = gold if learner.margin else np.full(n + 1, -1, dtype=np.int64)
    count = label_scores(sentence, heads, costly, alone, labeller, feature, total, score)
    best_labels(sentence, heads, labeller, score, total, guess)
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
                    shift_weights(own, (-1, right), (-1, left), room, step, learner.rate, clock, weights)
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
                    shift_weights(found, ahead, behind, room, step, learner.rate, clock, weights)
                else:
                    norm[h] += 2.0 * size
                    add_rows(index, size, behind[0], weight, total)
                    loss[h] += total[left]
                    add_rows(index, size, ahead[0], weight, total)
                    loss[h] -= total[right]
    return wrong
