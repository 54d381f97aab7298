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

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit

_MIX = uint64(0x9E3779B97F4A7C15)
_FINISH = uint64(0xD6E8FEB86659FD93)
_ONE, _TWO, _WORD = uint64(0x1D8E4E27C47D124F), uint64(0xA0761D6478BD642F), uint64(0x8EBC6AF09C88C6E3)


@njit(cache=True, nogil=True)
def _place(seed, first, second, shift):
    """Where the weights of a feature of two values begin."""
    code = (seed ^ first) * _MIX
    code ^= code >> uint64(29)
    code = (code ^ second) * _MIX
    code ^= code >> uint64(29)
    return (code * _FINISH) >> shift


@njit(cache=True, nogil=True)
def _features(n, at, rows, value, ptr, offset, column, seed, shift, place):
    """place[i, f] <- where the weights of feature f of word i begin."""
    for i in range(n):
        for f in range(seed.shape[0]):
            code = seed[f]
            for c in range(ptr[f], ptr[f + 1]):
                code = (code ^ value[rows[at + i + offset[c]], column[c]]) * _MIX
                code ^= code >> uint64(29)
            place[i, f] = (code * _FINISH) >> shift


@njit(cache=True, nogil=True)
def _candidates(n, at, rows, set_of, set_ptr, allowed, T, weight, place, must, tag, count, unary, whole):
    """tag[i, :count[i]] <- the tags word i may take, rising, with their unary scores; must[i], unless -1, is one."""
    most = tag.shape[1]
    for i in range(n):
        s = set_of[rows[at + i]]
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
        whole[:T] = 0.0
        for f in range(place.shape[1]):
            p = place[i, f]
            for t in range(T):
                whole[t] += weight[p + uint64(t)]
        kept = 0  # an insertion sort by falling score; equal scores stay in order
        for t in range(T):
            k = min(kept, most - 1)
            if kept == most and not whole[t] > whole[tag[i, k]]:
                continue
            while k > 0 and whole[t] > whole[tag[i, k - 1]]:
                tag[i, k] = tag[i, k - 1]
                k -= 1
            tag[i, k] = t
            kept = min(kept + 1, most)
        if must[i] >= 0:
            k = 0
            while k < kept - 1 and tag[i, k] != must[i]:
                k += 1
            tag[i, k] = must[i]
        for k in range(1, kept):  # another one, by tag
            t, j = tag[i, k], k
            while j > 0 and tag[i, j - 1] > t:
                tag[i, j] = tag[i, j - 1]
                j -= 1
            tag[i, j] = t
        count[i] = kept
        for k in range(kept):
            unary[i, k] = whole[tag[i, k]]


@njit(cache=True, nogil=True)
def _viterbi(n, at, rows, value, word, T, weight, shift, tag, count, unary, chart, back, best):
    """best[:n] <- the tags of the highest score, which is returned. chart (2, K, K), back (n + 1, K, K)."""
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
        best[i - 1] = tag[i - 1, kb]
        kb, kc = back[i, kb, kc], kb
    return score


@njit(cache=True, nogil=True)
def tag_batch(first, length, rows, value, word, set_of, set_ptr, allowed, ptr, offset, column, seed, bits,
              T, K, weight, out, best_score):  # fmt: skip
    """out[first[s] + i] <- tag of word i of sentence s, best_score[s] <- their score. K: the most tags of a word."""
    shift = uint64(64 - bits)
    longest = 0
    for s in range(length.shape[0]):
        longest = max(longest, length[s])
    place = np.empty((longest, seed.shape[0]), dtype=np.uint64)
    tag = np.empty((longest, K), dtype=np.int64)
    count = np.empty(longest, dtype=np.int64)
    unary = np.empty((longest, K))
    whole = np.empty(T)
    chart = np.empty((2, K, K))
    back = np.empty((longest + 1, K, K), dtype=np.int16)
    free = np.full(longest, -1, dtype=np.int64)
    best = np.empty(longest, dtype=np.int64)
    for s in range(length.shape[0]):
        n, at = length[s], first[s]
        _features(n, at, rows, value, ptr, offset, column, seed, shift, place)
        _candidates(n, at, rows, set_of, set_ptr, allowed, T, weight, place, free, tag, count, unary, whole)
        best_score[s] = _viterbi(n, at, rows, value, word, T, weight, shift, tag, count, unary, chart, back, best)
        for i in range(n):
            out[at + i] = best[i]


@njit(cache=True, nogil=True)
def local_scores(n, at, rows, value, word, set_of, set_ptr, allowed, ptr, offset, column, seed, bits,
                 T, K, weight, unary, bigram):  # fmt: skip
    """unary[i, t] <- score of the features of word i with tag t, -inf where it may not take it;
    bigram[i, b, t] <- what the tag b before adds, for i = 0 .. n."""
    shift = uint64(64 - bits)
    place = np.empty((n, seed.shape[0]), dtype=np.uint64)
    tag = np.empty((n, K), dtype=np.int64)
    count = np.empty(n, dtype=np.int64)
    score = np.empty((n, K))
    free = np.full(n, -1, dtype=np.int64)
    _features(n, at, rows, value, ptr, offset, column, seed, shift, place)
    _candidates(n, at, rows, set_of, set_ptr, allowed, T, weight, place, free, tag, count, score, np.empty(T))
    unary[:] = -np.inf
    for i in range(n):
        for k in range(count[i]):
            unary[i, tag[i, k]] = score[i, k]
    for i in range(n + 1):
        for b in range(T + 1):
            after = _place(_ONE, uint64(b), uint64(0), shift)
            beside = _place(_WORD, uint64(b), value[rows[at + i], word], shift)
            for t in range(T + 1):
                bigram[i, b, t] = float(weight[after + uint64(t)]) + weight[beside + uint64(t)]


@njit(cache=True, nogil=True)
def pair_scores(bits, T, weight, trigram):
    """trigram[a, b, t] <- what tags a, b before add to tag t."""
    shift = uint64(64 - bits)
    for a in range(T + 1):
        for b in range(T + 1):
            pair = _place(_TWO, uint64(a), uint64(b), shift)
            for t in range(T + 1):
                trigram[a, b, t] = weight[pair + uint64(t)]


@njit(cache=True, nogil=True)
def _add(at, amount, clock, weight, total, moves):
    """Move a weight by amount / sqrt(how often it has been moved)."""
    moves[at] += 1.0
    amount /= np.sqrt(moves[at])
    weight[at] += amount
    total[at] += clock * amount


@njit(cache=True, nogil=True)
def _move(n, at, rows, value, word, T, shift, place, tags, other, amount, clock, weight, total, moves):
    """Add amount to the weights of tags where they differ from other."""
    b, a = T, T
    other_b, other_a = T, T
    for i in range(n + 1):
        c = tags[i] if i < n else T
        other_c = other[i] if i < n else T
        if c != other_c:
            for f in range(place.shape[1]):
                _add(place[i, f] + uint64(c), amount, clock, weight, total, moves)
        if c != other_c or b != other_b:
            after = _place(_ONE, uint64(b), uint64(0), shift)
            beside = _place(_WORD, uint64(b), value[rows[at + i], word], shift)
            _add(after + uint64(c), amount, clock, weight, total, moves)
            _add(beside + uint64(c), amount, clock, weight, total, moves)
        if c != other_c or b != other_b or a != other_a:
            pair = _place(_TWO, uint64(a), uint64(b), shift)
            _add(pair + uint64(c), amount, clock, weight, total, moves)
        a, b = b, c
        other_a, other_b = other_b, other_c


@njit(cache=True, nogil=True)
def _score(n, at, rows, value, word, T, shift, weight, tag, count, unary, tags):
    """Score of given tags, each among the candidates of its word."""
    a, b = T, T
    score = 0.0
    for i in range(n + 1):
        c = tags[i] if i < n else T
        score += weight[_place(_TWO, uint64(a), uint64(b), shift) + uint64(c)]
        score += weight[_place(_ONE, uint64(b), uint64(0), shift) + uint64(c)]
        score += weight[_place(_WORD, uint64(b), value[rows[at + i], word], shift) + uint64(c)]
        if i < n:
            k = 0
            while tag[i, k] != c:
                k += 1
            score += unary[i, k]
        a, b = b, c
    return score


@njit(cache=True, nogil=True)
def train_epoch(order, first, length, rows, value, word, set_of, set_ptr, allowed, ptr, offset, column, seed, bits,
                T, K, gold, step, clock, weight, total, moves):  # fmt: skip
    """One pass over the sentences in the given order; returns (loss, wrong tags).

    Each sentence is decoded with 1 added for each wrong tag; where what was found then beats the gold tags, weights
    move towards these, each by ``step`` / sqrt(its moves so far): subgradient steps on the hinge loss with Hamming
    cost, with a step size for each weight as in AdaGrad. clock counts the sentences seen before, for averaging: the
    average is weight - total / sentences seen. weight, total and moves have one shape.
    """
    shift = uint64(64 - bits)
    longest = 0
    for s in range(length.shape[0]):
        longest = max(longest, length[s])
    place = np.empty((longest, seed.shape[0]), dtype=np.uint64)
    tag = np.empty((longest, K), dtype=np.int64)
    count = np.empty(longest, dtype=np.int64)
    unary = np.empty((longest, K))
    whole = np.empty(T)
    chart = np.empty((2, K, K))
    back = np.empty((longest + 1, K, K), dtype=np.int16)
    best = np.empty(longest, dtype=np.int64)
    loss = 0.0
    wrong = 0
    for s in order:
        n, at = length[s], first[s]
        target = gold[at : at + n]
        _features(n, at, rows, value, ptr, offset, column, seed, shift, place)
        _candidates(n, at, rows, set_of, set_ptr, allowed, T, weight, place, target, tag, count, unary, whole)
        reference = _score(n, at, rows, value, word, T, shift, weight, tag, count, unary, target)
        for i in range(n):
            for k in range(count[i]):
                if tag[i, k] != target[i]:
                    unary[i, k] += 1.0
        found = _viterbi(n, at, rows, value, word, T, weight, shift, tag, count, unary, chart, back, best)
        clock += 1.0
        mistakes = 0
        for i in range(n):
            mistakes += best[i] != target[i]
        if mistakes == 0:
            continue
        wrong += mistakes
        loss += max(found - reference, 0.0)
        _move(n, at, rows, value, word, T, shift, place, target, best, step, clock, weight, total, moves)
        _move(n, at, rows, value, word, T, shift, place, best, target, -step, clock, weight, total, moves)
    return loss, wrong
