"""Sweeps over the lattice of tag sequences: n T^3 with trigrams, n T^2 with bigrams, over the allowed tags only.

Positions run from -2 to n. Positions -2, -1 and n carry the boundary tag T; position i in 0..n-1 carries the tags
whose unary score is not -inf. The states at position i are pairs (b, c) of tags at i-1 and i when the order is 3, and
single tags c when it is 2, which is the same as a pair whose b ranges over one dummy. Both orders thus share one step,

    new[b, c] = local(i, b, c) (+)_a  old[a, b] (x) table[a, b, c]

where a ranges over the tags at i-2 (order 3) or i-1 (order 2, table[a, c]), and local is unary[i, c], plus
bigram[b, c] when the order is 3. Charts are flat: chart_ptr[i + 1] is where the states of position i begin, row b.

``layout`` says how to read the flat tables: ORDER, then for bigrams and trigrams the cells to skip per item of a batch
and per position (0 when constant), and the side: T + 1 when the boundary tag is scored, T when not, 0 without a table.
Every public kernel serves the items lo <= j < hi of a batch; unary has shape (B, N, T), lengths (B,).
"""

import numpy as np
from numba import njit

ORDER, BI_ITEM, BI_STEP, BI_SIDE, TRI_ITEM, TRI_STEP, TRI_SIDE = range(7)


@njit(cache=True, nogil=True)
def _lattice(order, n, unary, ptr, tags, chart_ptr):
    """Tags of position i are tags[ptr[i + 2] : ptr[i + 3]]; returns the number of states in all."""
    T = unary.shape[1]
    ptr[0] = 0
    filled = 0
    for i in range(-2, n + 1):
        if 0 <= i < n:
            for t in range(T):
                if unary[i, t] > -np.inf:
                    tags[filled] = t
                    filled += 1
        else:
            tags[filled] = T
            filled += 1
        ptr[i + 3] = filled
    chart_ptr[0] = 0
    for i in range(-1, n + 1):
        size = ptr[i + 3] - ptr[i + 2]
        if order == 3:
            size *= ptr[i + 2] - ptr[i + 1]
        chart_ptr[i + 2] = chart_ptr[i + 1] + size
    return chart_ptr[n + 2]


@njit(cache=True, nogil=True)
def _reading(layout, j, i, n, T):
    """Where to read at position i: (table scored?, its first cell, strides of a and b, bigram scored?, first cell)."""
    bi_side = layout[BI_SIDE]
    tri_side = layout[TRI_SIDE]
    bi_scored = bi_side == T + 1 or (bi_side == T and 1 <= i < n)
    tri_scored = tri_side == T + 1 or (tri_side == T and 2 <= i < n)
    bi_at = j * layout[BI_ITEM] + i * layout[BI_STEP]
    if layout[ORDER] == 2:
        return bi_scored, bi_at, bi_side, 0, False, 0
    return tri_scored, j * layout[TRI_ITEM] + i * layout[TRI_STEP], tri_side * tri_side, tri_side, bi_scored, bi_at


@njit(cache=True, nogil=True)
def _forward(log, layout, j, n, unary, bigram, trigram, ptr, tags, chart_ptr, chart):
    """chart[s] <- sum (log) or maximum over the paths from the start to state s, s included."""
    T = unary.shape[1]
    order = layout[ORDER]
    table = trigram if order == 3 else bigram
    widest = 0
    for i in range(-1, n + 1):
        widest = max(widest, chart_ptr[i + 2] - chart_ptr[i + 1])
    sums = np.empty(widest if log else 0)
    chart[0] = 0.0
    for i in range(n + 1):
        scored, at, stride_a, stride_b, paired, pair_at = _reading(layout, j, i, n, T)
        tags_b = tags[ptr[i + 1] : ptr[i + 2]]
        tags_c = tags[ptr[i + 2] : ptr[i + 3]]
        tags_a = tags[ptr[i] : ptr[i + 1]] if order == 3 else tags_b
        kb = len(tags_b) if order == 3 else 1
        kc = len(tags_c)
        every = kc == T and i < n
        old = chart[chart_ptr[i] : chart_ptr[i + 1]]
        new = chart[chart_ptr[i + 1] : chart_ptr[i + 2]]
        new[:] = -np.inf
        for a in range(len(tags_a)):
            for b in range(kb):
                base = old[a * kb + b]
                if base == -np.inf:
                    continue
                row = new[b * kc : (b + 1) * kc]
                if not scored:
                    for c in range(kc):
                        row[c] = max(row[c], base)
                    continue
                start = at + tags_a[a] * stride_a + tags_b[b] * stride_b
                weight = table[start : start + T + 1]
                if every:
                    for c in range(kc):
                        row[c] = max(row[c], base + weight[c])
                else:
                    for c in range(kc):
                        row[c] = max(row[c], base + weight[tags_c[c]])
        if log:
            sums[: len(new)] = 0.0
            for a in range(len(tags_a)):
                for b in range(kb):
                    base = old[a * kb + b]
                    if base == -np.inf:
                        continue
                    start = at + tags_a[a] * stride_a + tags_b[b] * stride_b
                    for c in range(kc):
                        score = base + table[start + tags_c[c]] if scored else base
                        if score > -np.inf:
                            sums[b * kc + c] += np.exp(score - new[b * kc + c])
            for s in range(len(new)):
                if new[s] > -np.inf:
                    new[s] += np.log(sums[s])
        for b in range(kb):
            for c in range(kc):
                if i < n:
                    new[b * kc + c] += unary[i, tags_c[c]]
                if paired:
                    new[b * kc + c] += bigram[pair_at + tags_b[b] * layout[BI_SIDE] + tags_c[c]]


@njit(cache=True, nogil=True)
def _backward(log, layout, j, n, unary, bigram, trigram, ptr, tags, chart_ptr, chart, entropy):
    """chart[s] <- sum (log) or maximum over the paths from state s to the end, s excluded.

    With log, and unless it comes empty, entropy[s] <- the entropy of those paths. It is summed by the chain rule, step
    by step, which subtracts no large numbers.
    """
    T = unary.shape[1]
    order = layout[ORDER]
    table = trigram if order == 3 else bigram
    chart[chart_ptr[n + 1] : chart_ptr[n + 2]] = 0.0
    spreads = log and len(entropy) > 0
    if spreads:
        entropy[chart_ptr[n + 1] : chart_ptr[n + 2]] = 0.0
    rest = np.empty(T + 1)
    for i in range(n, -1, -1):
        scored, at, stride_a, stride_b, paired, pair_at = _reading(layout, j, i, n, T)
        tags_b = tags[ptr[i + 1] : ptr[i + 2]]
        tags_c = tags[ptr[i + 2] : ptr[i + 3]]
        tags_a = tags[ptr[i] : ptr[i + 1]] if order == 3 else tags_b
        kb = len(tags_b) if order == 3 else 1
        kc = len(tags_c)
        old = chart_ptr[i]
        new = chart_ptr[i + 1]
        for b in range(kb):
            for c in range(kc):
                rest[c] = chart[new + b * kc + c]
                if i < n:
                    rest[c] += unary[i, tags_c[c]]
                if paired:
                    rest[c] += bigram[pair_at + tags_b[b] * layout[BI_SIDE] + tags_c[c]]
            for a in range(len(tags_a)):
                start = at + tags_a[a] * stride_a + tags_b[b] * stride_b
                best = -np.inf
                for c in range(kc):
                    best = max(best, rest[c] + table[start + tags_c[c]] if scored else rest[c])
                chart[old + a * kb + b] = best
                if not log:
                    continue
                if best == -np.inf:
                    if spreads:
                        entropy[old + a * kb + b] = 0.0
                    continue
                mass = 0.0
                for c in range(kc):
                    mass += np.exp((rest[c] + table[start + tags_c[c]] if scored else rest[c]) - best)
                log_mass = np.log(mass)
                chart[old + a * kb + b] = best + log_mass
                if spreads:
                    spread = 0.0
                    for c in range(kc):
                        log_p = (rest[c] + table[start + tags_c[c]] if scored else rest[c]) - best - log_mass
                        if log_p > -np.inf:
                            spread += np.exp(log_p) * (entropy[new + b * kc + c] - log_p)
                    entropy[old + a * kb + b] = spread


@njit(cache=True, nogil=True)
def viterbi(layout, lengths, lo, hi, unary, bigram, trigram, value, structure):
    """structure[j, :lengths[j]] <- the best tags, value[j] <- their score; -inf, and -1 for tags, if there are none.

    No back-pointers are kept: the way back looks for the maximum again, one column of the table a position.
    Ties go to the smallest tag, from the last position to the first. structure must come filled with -1.
    """
    T = unary.shape[2]
    order = layout[ORDER]
    table = trigram if order == 3 else bigram
    for j in range(lo, hi):
        n = lengths[j]
        ptr = np.empty(n + 4, np.int64)
        tags = np.empty(n * T + 3, np.int64)
        chart_ptr = np.empty(n + 3, np.int64)
        states = _lattice(order, n, unary[j], ptr, tags, chart_ptr)
        chart = np.empty(states)
        _forward(False, layout, j, n, unary[j], bigram, trigram, ptr, tags, chart_ptr, chart)
        # The last position has one tag, so its states differ in b alone; with order 2 there is but one.
        value[j] = -np.inf
        s = 0
        for last in range(chart_ptr[n + 1], states):
            if chart[last] > value[j]:
                value[j] = chart[last]
                s = last - chart_ptr[n + 1]
        if value[j] == -np.inf:
            continue
        for i in range(n, -1, -1):
            scored, at, stride_a, stride_b, _, _ = _reading(layout, j, i, n, T)
            kc = ptr[i + 3] - ptr[i + 2]
            b = s // kc
            c = s % kc
            if i < n:
                structure[j, i] = tags[ptr[i + 2] + c]
            first_a = ptr[i] if order == 3 else ptr[i + 1]
            last_a = ptr[i + 1] if order == 3 else ptr[i + 2]
            kb = ptr[i + 2] - ptr[i + 1] if order == 3 else 1
            start = at + tags[ptr[i + 1] + b] * stride_b + tags[ptr[i + 2] + c]
            best = -np.inf
            for a in range(last_a - first_a):
                score = chart[chart_ptr[i] + a * kb + b]
                if scored:
                    score += table[start + tags[first_a + a] * stride_a]
                if score > best:
                    best = score
                    s = a * kb + b


@njit(cache=True, nogil=True)
def total(layout, lengths, lo, hi, unary, bigram, trigram, value, entropy):
    """value[j] <- log of the sum of exp(score) over all sequences.

    Unless it comes empty, entropy[j] <- the entropy of the distribution proportional to exp(score).
    """
    T = unary.shape[2]
    for j in range(lo, hi):
        n = lengths[j]
        ptr = np.empty(n + 4, np.int64)
        tags = np.empty(n * T + 3, np.int64)
        chart_ptr = np.empty(n + 3, np.int64)
        states = _lattice(layout[ORDER], n, unary[j], ptr, tags, chart_ptr)
        chart = np.empty(states)
        spread = np.empty(states if len(entropy) else 0)
        _backward(True, layout, j, n, unary[j], bigram, trigram, ptr, tags, chart_ptr, chart, spread)
        value[j] = chart[0]
        if len(entropy):
            entropy[j] = spread[0]


@njit(cache=True, nogil=True)
def marginals(layout, lengths, lo, hi, unary, bigram, trigram, log, value, out):
    """out[j, i, t] <- probability of tag t at i (log), or the best score of a sequence that has it (not log).

    value[j] <- the log partition, or the maximum. out must come filled with 0 (log) or -inf (not log).
    """
    T = unary.shape[2]
    for j in range(lo, hi):
        n = lengths[j]
        ptr = np.empty(n + 4, np.int64)
        tags = np.empty(n * T + 3, np.int64)
        chart_ptr = np.empty(n + 3, np.int64)
        states = _lattice(layout[ORDER], n, unary[j], ptr, tags, chart_ptr)
        before = np.empty(states)
        after = np.empty(states)
        spread = np.empty(0)
        _forward(log, layout, j, n, unary[j], bigram, trigram, ptr, tags, chart_ptr, before)
        _backward(log, layout, j, n, unary[j], bigram, trigram, ptr, tags, chart_ptr, after, spread)
        value[j] = after[0]
        if value[j] == -np.inf:
            continue
        for i in range(n):
            kc = ptr[i + 3] - ptr[i + 2]
            for s in range(chart_ptr[i + 1], chart_ptr[i + 2]):
                t = tags[ptr[i + 2] + (s - chart_ptr[i + 1]) % kc]
                if log:
                    out[j, i, t] += np.exp(before[s] + after[s] - value[j])
                else:
                    out[j, i, t] = max(out[j, i, t], before[s] + after[s])
