"""Batches of sentences tagged by a linear model of hashed features, and its training.

A sentence is a run of rows: rows[first - 2 .. last + 2], with two pad rows on each side; value[row] holds the hashed
attributes of a word. A template is a list of components (offset, column); its feature is a hash of the values found
there, and names a place in the weights: the weight of feature f with tag t is weight[f + t]. The tags before are
features like any other, with tag T standing for both boundaries:

    score(tags) = sum_i  sum_f weight[f_i + t_i] + weight[h(t_{i-1}) + t_i] + weight[h(t_{i-1}, word_i) + t_i]
                         + weight[h(t_{i-2}, t_{i-1}) + t_i]                      for i = 0 .. n, where t_n = T

A word takes the tags of its set, allowed[set_ptr[s] : set_ptr[s + 1]]; in set 0, which is empty, it takes those of all
tags whose features alone score best. Viterbi over pairs of tags; ties go to the smallest tags.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from certus.kernels.averaging import move, nudge
from certus.kernels.compiling import njit

_MIX = uint64(0x9E3779B97F4A7C15)
_FINISH = uint64(0xD6E8FEB86659FD93)
_ONE, _TWO, _WORD = uint64(0x1D8E4E27C47D124F), uint64(0xA0761D6478BD642F), uint64(0x8EBC6AF09C88C6E3)


class Words(NamedTuple):
    """A batch of sentences, and what is known of the words they are made of."""

    first: np.ndarray  # of each sentence, the place of its first word in rows
    length: np.ndarray
    rows: np.ndarray
    value: np.ndarray  # (rows, attributes)
    set_of: np.ndarray  # of each row, its set of tags


class Templates(NamedTuple):
    """Components ptr[f] .. ptr[f + 1] - 1 are those of template f."""

    ptr: np.ndarray
    offset: np.ndarray
    column: np.ndarray
    seed: np.ndarray


class Model(NamedTuple):
    """What a tagger looks at, and which tags there are."""

    templates: Templates
    word: int  # the column of the attribute that the tag before is paired with
    set_ptr: np.ndarray
    allowed: np.ndarray
    bits: int
    tags: int  # T
    width: int  # the most tags that a word may take


class Room(NamedTuple):
    """Room for one sentence."""

    place: np.ndarray  # [i, f]: where the weights of feature f of word i begin
    tag: np.ndarray  # [i, :count[i]]: the tags that word i may take, rising
    count: np.ndarray
    unary: np.ndarray  # [i, k]: what they score by features alone
    whole: np.ndarray
    chart: np.ndarray
    back: np.ndarray
    best: np.ndarray


@njit(cache=True, nogil=True)
def _room(words, model):
    """Room for the longest sentence."""
    longest = 0
    for s in range(words.length.shape[0]):
        longest = max(longest, words.length[s])
    width = model.width
    return Room(
        np.empty((longest, model.templates.seed.shape[0]), dtype=np.uint64),
        np.empty((longest, width), dtype=np.int64),
        np.empty(longest, dtype=np.int64),
        np.empty((longest, width)),
        np.empty(model.tags),
        np.empty((2, width, width)),
        np.empty((longest + 1, width, width), dtype=np.int16),
        np.empty(longest, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def _place(seed, first, second, shift):
    """Where the weights of a feature of two values begin."""
    code = (seed ^ first) * _MIX
    code ^= code >> uint64(29)
    code = (code ^ second) * _MIX
    code ^= code >> uint64(29)
    return (code * _FINISH) >> shift


@njit(cache=True, nogil=True)
def _features(n, at, words, model, place):
    """place[i, f] <- where the weights of feature f of word i begin."""
    rows, value = words.rows, words.value
    ptr, offset, column, seed = model.templates
    shift = uint64(64 - model.bits)
    for i in range(n):
        for f in range(seed.shape[0]):
            code = seed[f]
            for c in range(ptr[f], ptr[f + 1]):
                code = (code ^ value[rows[at + i + offset[c]], column[c]]) * _MIX
                code ^= code >> uint64(29)
            place[i, f] = (code * _FINISH) >> shift


@njit(cache=True, nogil=True)
def _candidates(n, at, words, model, weight, required, room):
    """Fills the tags that words may take with their unary scores; required[i], unless -1, is one of them."""
    place, tag, count, unary, whole = room.place, room.tag, room.count, room.unary, room.whole
    set_ptr, allowed = model.set_ptr, model.allowed
    for i in range(n):
        s = words.set_of[words.rows[at + i]]
        size = set_ptr[s + 1] - set_ptr[s]
        if size > 0:
            count[i] = size
            for k in range(size):
                tag[i, k] = allowed[set_ptr[s] + k]
                unary[i, k] = 0.0
            for f in range(place.shape[1]):
                for k in range(size):
                    unary[i, k] += weight[place[i, f] + uint64(tag[i, k])]
            continue
        whole[:] = 0.0
        for f in range(place.shape[1]):
            p = place[i, f]
            for t in range(whole.shape[0]):
                whole[t] += weight[p + uint64(t)]
        count[i] = _best_few(whole, required[i], tag[i])
        for k in range(count[i]):
            unary[i, k] = whole[tag[i, k]]


@njit(cache=True, nogil=True)
def _best_few(score, required, tag):
    """tag <- as many of the tags that score best as it holds, rising; required, unless -1, is one. Returns how many."""
    width = tag.shape[0]
    kept = 0  # an insertion sort by falling score; equal scores stay in order
    for t in range(score.shape[0]):
        k = min(kept, width - 1)
        if kept == width and not score[t] > score[tag[k]]:
            continue
        while k > 0 and score[t] > score[tag[k - 1]]:
            tag[k] = tag[k - 1]
            k -= 1
        tag[k] = t
        kept = min(kept + 1, width)
    if required >= 0:
        k = 0
        while k < kept - 1 and tag[k] != required:
            k += 1
        tag[k] = required
    for k in range(1, kept):  # another one, by tag
        t, j = tag[k], k
        while j > 0 and tag[j - 1] > t:
            tag[j] = tag[j - 1]
            j -= 1
        tag[j] = t
    return kept


@njit(cache=True, nogil=True)
def _viterbi(n, at, words, model, weight, room):
    """room.best[:n] <- the tags of the highest score, which is returned."""
    tag, count, unary, chart, back = room.tag, room.count, room.unary, room.chart, room.back
    rows, value, word, T = words.rows, words.value, model.word, model.tags
    shift = uint64(64 - model.bits)
    zero = uint64(0)
    chart[0, 0, 0] = 0.0
    for i in range(n + 1):
        old, new = chart[i % 2], chart[(i + 1) % 2]
        first = count[i - 2] if i > 1 else 1
        middle = count[i - 1] if i > 0 else 1
        last = count[i] if i < n else 1
        for kb in range(middle):
            b = uint64(tag[i - 1, kb] if i > 0 else T)
            after = _place(_ONE, b, zero, shift)
            beside = _place(_WORD, b, value[rows[at + i], word], shift)
            for kc in range(last):
                new[kb, kc] = -np.inf
            for ka in range(first):
                a = uint64(tag[i - 2, ka] if i > 1 else T)
                pair = _place(_TWO, a, b, shift)
                for kc in range(last):
                    score = old[ka, kb] + weight[pair + uint64(tag[i, kc] if i < n else T)]
                    if score > new[kb, kc]:
                        new[kb, kc] = score
                        back[i, kb, kc] = ka
            for kc in range(last):
                c = uint64(tag[i, kc] if i < n else T)
                new[kb, kc] += weight[after + c]
                new[kb, kc] += weight[beside + c]
                if i < n:
                    new[kb, kc] += unary[i, kc]
    final = chart[(n + 1) % 2]
    kb = 0
    for k in range(count[n - 1] if n > 0 else 1):
        if final[k, 0] > final[kb, 0]:
            kb = k
    score = final[kb, 0]
    kc = 0
    for i in range(n, 0, -1):
        room.best[i - 1] = tag[i - 1, kb]
        kb, kc = back[i, kb, kc], kb
    return score


@njit(cache=True, nogil=True)
def tag_batch(words, model, weight, out, best_score):
    """out[first[s] + i] <- tag of word i of sentence s, best_score[s] <- their score."""
    room = _room(words, model)
    free = np.full(room.best.shape[0], -1, dtype=np.int64)
    for s in range(words.length.shape[0]):
        n, at = words.length[s], words.first[s]
        _features(n, at, words, model, room.place)
        _candidates(n, at, words, model, weight, free, room)
        best_score[s] = _viterbi(n, at, words, model, weight, room)
        for i in range(n):
            out[at + i] = room.best[i]


@njit(cache=True, nogil=True)
def local_scores(words, model, weight, unary, bigram):
    """Of a single sentence, unary[i, t] <- score of the features of word i with tag t, -inf where it may not take it;
    bigram[i, b, t] <- what the tag b before adds, for i = 0 .. n."""
    n, at, T = words.length[0], words.first[0], model.tags
    room = _room(words, model)
    _features(n, at, words, model, room.place)
    _candidates(n, at, words, model, weight, np.full(n, -1, dtype=np.int64), room)
    unary[:] = -np.inf
    for i in range(n):
        for k in range(room.count[i]):
            unary[i, room.tag[i, k]] = room.unary[i, k]
    for i in range(n + 1):
        for b in range(T + 1):
            after, beside, _ = _contexts(at + i, T, b, words, model)
            for t in range(T + 1):
                bigram[i, b, t] = float(weight[after + uint64(t)]) + weight[beside + uint64(t)]


@njit(cache=True, nogil=True)
def pair_scores(model, weight, trigram):
    """trigram[a, b, t] <- what tags a, b before add to tag t."""
    shift = uint64(64 - model.bits)
    for a in range(model.tags + 1):
        for b in range(model.tags + 1):
            pair = _place(_TWO, uint64(a), uint64(b), shift)
            for t in range(model.tags + 1):
                trigram[a, b, t] = weight[pair + uint64(t)]


@njit(cache=True, nogil=True)
def _contexts(at, a, b, words, model):
    """Where the weights begin of tag b before, of b with the word, and of tags a and b before."""
    shift = uint64(64 - model.bits)
    after = _place(_ONE, uint64(b), uint64(0), shift)
    beside = _place(_WORD, uint64(b), words.value[words.rows[at], model.word], shift)
    return after, beside, _place(_TWO, uint64(a), uint64(b), shift)


@njit(cache=True, nogil=True)
def _differences(n, at, words, model, place, tags, other, out):
    """out <- the weights of tags where they differ from other; returns how many."""
    T = model.tags
    b, a = T, T
    other_b, other_a = T, T
    size = 0
    for i in range(n + 1):
        c = tags[i] if i < n else T
        other_c = other[i] if i < n else T
        after, beside, pair = _contexts(at + i, a, b, words, model)
        if c != other_c:
            for f in range(place.shape[1]):
                out[size + f] = place[i, f] + uint64(c)
            size += place.shape[1]
        if c != other_c or b != other_b:
            out[size] = after + uint64(c)
            out[size + 1] = beside + uint64(c)
            size += 2
        if c != other_c or b != other_b or a != other_a:
            out[size] = pair + uint64(c)
            size += 1
        a, b = b, c
        other_a, other_b = other_b, other_c
    return size


@njit(cache=True, nogil=True)
def _score(n, at, words, model, weight, room, tags):
    """Score of given tags, each among the candidates of its word."""
    a, b = model.tags, model.tags
    score = 0.0
    for i in range(n + 1):
        c = tags[i] if i < n else model.tags
        after, beside, pair = _contexts(at + i, a, b, words, model)
        score += weight[pair + uint64(c)]
        score += weight[after + uint64(c)]
        score += weight[beside + uint64(c)]
        if i < n:
            k = 0
            while room.tag[i, k] != c:
                k += 1
            score += room.unary[i, k]
        a, b = b, c
    return score


@njit(cache=True, nogil=True)
def train_epoch(order, words, gold, model, learner, clock, weights):
    """One pass over the sentences in the given order; returns (loss, wrong tags).

    Each sentence is decoded, by a learner with a margin with 1 added for each wrong tag; where what was found is wrong,
    the weights move towards the gold tags by the step of the learner. With a rate every feature of every word takes its
    own step, those of the gold tags first: subgradient steps on the hinge loss with Hamming cost. clock counts the
    sentences seen before.
    """
    weight = weights.value
    room = _room(words, model)
    most = (room.best.shape[0] + 1) * (room.place.shape[1] + 3)
    plus, minus = np.empty(most, dtype=np.uint64), np.empty(most, dtype=np.uint64)
    loss = 0.0
    wrong = 0
    for s in order:
        n, at = words.length[s], words.first[s]
        target = gold[at : at + n]
        _features(n, at, words, model, room.place)
        _candidates(n, at, words, model, weight, target, room)
        reference = _score(n, at, words, model, weight, room, target)
        for i in range(n if learner.margin else 0):
            for k in range(room.count[i]):
                if room.tag[i, k] != target[i]:
                    room.unary[i, k] += 1.0
        found = _viterbi(n, at, words, model, weight, room)
        clock += 1.0
        mistakes = 0
        for i in range(n):
            mistakes += room.best[i] != target[i]
        if mistakes == 0:
            continue
        wrong += mistakes
        loss += max(found - reference, 0.0)
        ahead = _differences(n, at, words, model, room.place, target, room.best, plus)
        behind = _differences(n, at, words, model, room.place, room.best, target, minus)
        if learner.rate > 0.0:
            for k in range(ahead):
                nudge(plus[k], 1.0, learner.cap, learner.rate, clock, weights)
            for k in range(behind):
                nudge(minus[k], -1.0, learner.cap, learner.rate, clock, weights)
        else:
            cost = float(mistakes) if learner.margin else np.inf
            move(plus[:ahead], minus[:behind], cost, learner, clock, weights)
    return loss, wrong
