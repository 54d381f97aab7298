"""Labels of the arcs of a finished tree, by a linear model; and names of arcs, their likely labels before there is one.

A label is scored by the part of its word m, with the roles "hmglr": head, modifier, the head's head, and the leftmost
and rightmost modifiers of m, ABSENT where there is none; and together with the label of the modifier of the same head
before it, by the part "hms". A feature and a label share a weight with other pairs by hashing. seen[right, coarse tag
of h, coarse tag of m, label] says which labels come into question; all do where none was seen. The name of an arc is
the label that it would likely have, by its two words alone, as a number that is added to the codes of features.
"""

import numpy as np
from numba import uint32, uint64

from certus.kernels.averaging import nudge
from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT, role_codes, summed_features
from certus.kernels.tuples import Sentence

_MIX = uint64(0x9E3779B97F4A7C15)
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


@njit(cache=True, nogil=True, inline="always")
def label_scores(sentence, heads, gold, alone, labeller, feature, score):
    """score[m, label] <- what the label of each word scores by itself, -inf if it does not come into question.

    feature[m] are the indices of the word's features, without the label; returns how many each word has. With gold,
    every other label than gold[m] gets a cost of 1 on top; with ``alone`` an arc is seen without the rest of the tree.
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
        for label in range(score.shape[1]):
            score[m, label] = -np.inf
        best_label(feature[m], count[m], bits, allowed, gold[m], weight, score[m])
    return count


@njit(cache=True, nogil=True)
def pair_features(codes, sentence, labeller, part, index):
    """Features of two modifiers next to each other, without their labels, into index; returns how many.

    part (3,) is their head, the second of them, and the first.
    """
    return summed_features(codes, sentence, part, uint32(0), labeller.pairs, labeller.model.bits, index)


@njit(cache=True, nogil=True)
def pair_shift(before, label):
    """What two labels next to each other add to a feature."""
    return uint64(before + 1) * _BEFORE + uint64(label + 1) * _MIX


@njit(cache=True, nogil=True, inline="always")
def best_labels(sentence, heads, labeller, score, labels):
    """The labels of a tree with the best sum of score and of the pairs of labels of neighbouring modifiers of a head.

    Viterbi along the modifiers of each head. Ties go to the smallest label.
    """
    n = heads.shape[0] - 1
    n_labels = score.shape[1]
    weight = labeller.model.weight
    mask = uint64((1 << labeller.model.bits) - 1)
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
            if score[m, label] == -np.inf:
                continue
            for other in range(n_labels):
                if total[p, other] == -np.inf:
                    continue
                shift = pair_shift(other, label)
                value = total[p, other]
                for k in range(count):
                    value += weight[(index[k] + shift) & mask]
                if value + score[m, label] > total[m, label]:
                    total[m, label] = value + score[m, label]
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
        none = np.full(n + 1, -1, dtype=np.int64)
        label_scores(sentence, own, none, False, labeller, feature, score)
        if more is not None:
            for m in range(1, n + 1):
                for label in range(score.shape[1]):
                    score[m, label] += more[start[s] + m, label]
        best_labels(sentence, own, labeller, score, labels[start[s] : start[s] + n + 1])


@njit(cache=True, nogil=True)
def shift_weights(features, change, mask, step, rate, clock, weights):
    """Move the weights of features towards a label or pair of labels and away from another; change is (right, left)."""
    for feature in features:
        nudge((feature + change[0]) & mask, 1.0, step, rate, clock, weights)
        nudge((feature + change[1]) & mask, -1.0, step, rate, clock, weights)


@njit(cache=True, nogil=True)
def learn_labels(sentence, heads, gold, alone, labeller, learner, clock, weights):
    """A step of the learner for the modifiers of each head; returns how many labels are wrong, or do not win by 1.

    With ``alone`` every word is by itself: there are no pairs, and its arc is seen without the rest of the tree.
    """
    n = heads.shape[0] - 1
    weight = labeller.model.weight
    mask = uint64((1 << labeller.model.bits) - 1)
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
                    ahead, behind = uint64(right + 1) * _MIX, uint64(left + 1) * _MIX
                    shift_weights(feature[m, : count[m]], (ahead, behind), mask, step, learner.rate, clock, weights)
                else:
                    loss[h] += score[m, left] - score[m, right]
                    norm[h] += 2.0 * count[m]
                    wrong += 1
            if p >= 0 and (left != right or guess[p] != gold[p]):
                part[0], part[1], part[2] = h, m, p
                size = pair_features(codes, sentence, labeller, part, index)
                ahead, behind = pair_shift(gold[p], right), pair_shift(guess[p], left)
                if move:
                    found = index[: np.int64(size)]
                    shift_weights(found, (ahead, behind), mask, step, learner.rate, clock, weights)
                else:
                    norm[h] += 2.0 * size
                    for k in range(size):
                        loss[h] += weight[(index[k] + behind) & mask] - weight[(index[k] + ahead) & mask]
    return wrong


@njit(cache=True, nogil=True)
def name_arcs(sentence, allowed, namer, names):
    """names[h, m] <- the name of each allowed arc, uint32, 0 elsewhere; nothing is named without templates."""
    n = allowed.shape[0] - 1
    templates, bits, weight = namer.model
    coarse, base = sentence.coarse, sentence.base
    names[:] = 0
    if templates.seed.shape[0] == 0:
        return
    index = np.empty(templates.max_features, dtype=np.uint32)
    score = np.empty(namer.seen.shape[3])
    part = np.full(5, ABSENT, dtype=np.int64)
    codes = role_codes(sentence, templates)
    for h in range(n + 1):
        for m in range(1, n + 1):
            if allowed[h, m]:
                part[0] = h
                part[1] = m
                count = summed_features(codes, sentence, part, uint32(0), templates, bits, index)
                likely = namer.seen[int(h < m), coarse[base + h], coarse[base + m]]
                label = best_label(index, np.int64(count), bits, likely, np.int64(-1), weight, score)
                names[h, m] = uint32((label + 1) * NAME)
