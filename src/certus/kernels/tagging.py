"""Sweeps over the lattice of tag sequences: n T^3 with trigrams, n T^2 with bigrams, over the allowed tags only.

Positions run from -2 to n. Positions -2, -1 and n carry the boundary tag T; position i in 0..n-1 carries the tags
whose unary score is not -inf. The states at position i are pairs (b, c) of tags at i-1 and i when the order is 3, and
single tags c when it is 2, which is the same as a pair whose b ranges over one dummy, tags[0]. Both orders share one
step,

    new[b, c] = local(i, b, c) (+)_a  old[a, b] (x) table[a, b, c]

where a ranges over the tags at i-2 (order 3) or i-1 (order 2, table[a, c]), and local is unary[i, c], plus
bigram[b, c] when the order is 3. Charts are flat: chart_ptr[i + 1] is where the states of position i begin, row b.

Every public kernel serves the items lo <= j < hi of a batch, its span; unary has shape (B, N, T), lengths (B,).
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.lanes import FEW, load_few, maximum, spread_few, store


class FlatTable(NamedTuple):
    """The scores of bigrams or trigrams."""

    scores: np.ndarray  # flat
    item: int  # cells to skip per item of a batch, 0 if they share the table
    step: int  # and per position, 0 if it is constant
    side: int  # T + 1 if the boundary tag is scored, T if not, 0 without a table


class Tables(NamedTuple):
    """All scores but unary ones. Sums need power = exp(scores - peak) of the table of the highest order.

    Python gives them to a kernel as plain tuples, which cost a call less than named ones; see ``_named``.
    """

    order: int
    bigram: FlatTable
    trigram: FlatTable
    power: np.ndarray
    peak: float


class Lattice(NamedTuple):
    """The states of one item: the tags of position i are tags[ptr[i + 2] : ptr[i + 3]]."""

    ptr: np.ndarray
    tags: np.ndarray
    chart_ptr: np.ndarray


class Step(NamedTuple):
    """From position i - 1 to i: where the tags a, b, c of the recurrence begin and end, and where their scores are.

    It holds no arrays: to hand one over costs as much as many a sum.
    """

    a: int
    end_a: int
    b: int
    end_b: int
    c: int
    end_c: int
    every: bool  # whether the tags c are all tags
    scored: bool  # whether the table is read, from cell ``at``
    at: int
    stride_a: int
    stride_b: int
    pair_at: int  # where local reads bigrams, -1 if it does not


@njit(cache=True, nogil=True)
def _named(tables):
    """Tables that came as plain tuples."""
    order, bigram, trigram, power, peak = tables
    first = FlatTable(bigram[0], bigram[1], bigram[2], bigram[3])
    return Tables(order, first, FlatTable(trigram[0], trigram[1], trigram[2], trigram[3]), power, peak)


@njit(cache=True, nogil=True)
def _lattice(order, n, unary):
    """The lattice of one item; chart_ptr[n + 2] is the number of states in all."""
    T = unary.shape[1]
    ptr = np.empty(n + 4, np.int64)
    tags = np.empty(n * T + 3, np.int64)
    chart_ptr = np.empty(n + 3, np.int64)
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
    return Lattice(ptr, tags, chart_ptr)


@njit(cache=True, nogil=True)
def _step(tables, ptr, j, i, n, T):
    """The Step to position i of item j."""
    bigram, trigram = tables.bigram, tables.trigram
    bi_scored = bigram.side == T + 1 or (bigram.side == T and 1 <= i < n)
    tri_scored = trigram.side == T + 1 or (trigram.side == T and 2 <= i < n)
    bi_at = j * bigram.item + i * bigram.step
    tri_at = j * trigram.item + i * trigram.step
    last, before, here, end = ptr[i], ptr[i + 1], ptr[i + 2], ptr[i + 3]
    every = end - here == T and i < n
    if tables.order == 2:
        return Step(before, here, 0, 1, here, end, every, bi_scored, bi_at, bigram.side, 0, -1)
    side, pair_at = trigram.side, bi_at if bi_scored else -1
    return Step(last, before, before, here, here, end, every, tri_scored, tri_at, side * side, side, pair_at)


@njit(cache=True, nogil=True)
def _local(unary, i, n, bigram, side, pair_at, b, c):
    """The scores of tags b, c ending at position i that do not depend on the tag before.

    Called for every state, so it takes what it reads alone: a tuple of arrays is passed one field after the other.
    """
    score = unary[i, c] if i < n else 0.0
    if pair_at >= 0:
        score += bigram[pair_at + b * side + c]
    return score


@njit(cache=True, nogil=True)
def _widest(n, chart_ptr):
    """The most states at any position."""
    widest = 0
    for i in range(-1, n + 1):
        widest = max(widest, chart_ptr[i + 2] - chart_ptr[i + 1])
    return widest


@njit(cache=True, nogil=True)
def _best_pairs(chart, places, tags, ends, table, cells):
    """chart[new + c] <- maximum over tags a of chart[old + a] + table[at + a side + c] for all tags c, a few at once.

    ``places`` is (old, new), where ``tags`` between ``ends`` have their numbers; ``cells`` is (at, side, T).
    """
    (old, new), (first, end), (at, side, T) = places, ends, cells
    none = spread_few(-np.inf)
    c = 0
    while c + 4 * FEW <= T:
        w, x, y, z = none, none, none, none
        for a in range(end - first):
            base, cell = spread_few(chart[old + a]), at + tags[first + a] * side + c
            w = maximum(w, base + load_few(table, cell))
            x = maximum(x, base + load_few(table, cell + FEW))
            y = maximum(y, base + load_few(table, cell + 2 * FEW))
            z = maximum(z, base + load_few(table, cell + 3 * FEW))
        store(chart, new + c, w)
        store(chart, new + c + FEW, x)
        store(chart, new + c + 2 * FEW, y)
        store(chart, new + c + 3 * FEW, z)
        c += 4 * FEW
    while c + FEW <= T:
        w = none
        for a in range(end - first):
            w = maximum(w, spread_few(chart[old + a]) + load_few(table, at + tags[first + a] * side + c))
        store(chart, new + c, w)
        c += FEW
    for last in range(c, T):
        best = -np.inf
        for a in range(end - first):
            best = max(best, chart[old + a] + table[at + tags[first + a] * side + last])
        chart[new + last] = best


@njit(cache=True, nogil=True)
def _forward_max(tables, j, n, unary, lattice, chart):
    """chart[s] <- maximum over the paths from the start to state s, s included."""
    T = unary.shape[1]
    ptr, tags, chart_ptr = lattice
    bigram, side = tables.bigram.scores, tables.bigram.side
    table = tables.trigram.scores if tables.order == 3 else bigram
    chart[0] = 0.0
    for i in range(n + 1):
        a0, a1, b0, b1, c0, c1, every, scored, at, stride_a, stride_b, pair_at = _step(tables, ptr, j, i, n, T)
        if every and scored and tables.order == 2:
            _best_pairs(chart, (chart_ptr[i], chart_ptr[i + 1]), tags, (a0, a1), table, (at, stride_a, T))
            for c in range(T):
                chart[chart_ptr[i + 1] + c] += unary[i, c]
            continue
        tags_a, tags_b, tags_c = tags[a0:a1], tags[b0:b1], tags[c0:c1]
        kb = len(tags_b)
        kc = len(tags_c)
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
        for b in range(kb):
            for c in range(kc):
                new[b * kc + c] += _local(unary, i, n, bigram, side, pair_at, tags_b[b], tags_c[c])


@njit(cache=True, nogil=True)
def _backward_max(tables, j, n, unary, lattice, chart):
    """chart[s] <- maximum over the paths from state s to the end, s excluded."""
    T = unary.shape[1]
    ptr, tags, chart_ptr = lattice
    bigram, side = tables.bigram.scores, tables.bigram.side
    table = tables.trigram.scores if tables.order == 3 else bigram
    chart[chart_ptr[n + 1] : chart_ptr[n + 2]] = 0.0
    rest = np.empty(_widest(n, chart_ptr))
    for i in range(n, -1, -1):
        a0, a1, b0, b1, c0, c1, every, scored, at, stride_a, stride_b, pair_at = _step(tables, ptr, j, i, n, T)
        tags_a, tags_b, tags_c = tags[a0:a1], tags[b0:b1], tags[c0:c1]
        kb = len(tags_b)
        kc = len(tags_c)
        old = chart[chart_ptr[i] : chart_ptr[i + 1]]
        new = chart[chart_ptr[i + 1] : chart_ptr[i + 2]]
        for b in range(kb):
            for c in range(kc):
                local = _local(unary, i, n, bigram, side, pair_at, tags_b[b], tags_c[c])
                rest[b * kc + c] = new[b * kc + c] + local
        for a in range(len(tags_a)):
            for b in range(kb):
                row = rest[b * kc : (b + 1) * kc]
                best = -np.inf
                if not scored:
                    for c in range(kc):
                        best = max(best, row[c])
                    old[a * kb + b] = best
                    continue
                start = at + tags_a[a] * stride_a + tags_b[b] * stride_b
                weight = table[start : start + T + 1]
                if every:
                    for c in range(kc):
                        best = max(best, row[c] + weight[c])
                else:
                    for c in range(kc):
                        best = max(best, row[c] + weight[tags_c[c]])
                old[a * kb + b] = best


# The two sweeps below sum exponentials. To take few of them, they get ``power`` = exp(table - peak), where peak is the
# largest score of the table, and multiply these by exponentials of the chart, scaled to a maximum of 1. A sum of at
# least FAINT has lost nothing that counts to underflow; any other is summed again in logs, scaled by its own maximum.
FAINT = 1e-250


@njit(cache=True, nogil=True)
def _forward_log(tables, j, n, unary, lattice, chart):
    """chart[s] <- log of the sum over the paths from the start to state s, s included."""
    T = unary.shape[1]
    ptr, tags, chart_ptr = lattice
    power, peak = tables.power, tables.peak
    bigram, side = tables.bigram.scores, tables.bigram.side
    table = tables.trigram.scores if tables.order == 3 else bigram
    sums = np.empty(_widest(n, chart_ptr))
    top = np.empty(T + 1)
    chart[0] = 0.0
    for i in range(n + 1):
        a0, a1, b0, b1, c0, c1, every, scored, at, stride_a, stride_b, pair_at = _step(tables, ptr, j, i, n, T)
        tags_a, tags_b, tags_c = tags[a0:a1], tags[b0:b1], tags[c0:c1]
        ka = len(tags_a)
        kb = len(tags_b)
        kc = len(tags_c)
        level = peak if scored else 0.0
        old = chart[chart_ptr[i] : chart_ptr[i + 1]]
        new = chart[chart_ptr[i + 1] : chart_ptr[i + 2]]
        top[:kb] = -np.inf
        for a in range(ka):
            for b in range(kb):
                top[b] = max(top[b], old[a * kb + b])
        sums[: len(new)] = 0.0
        for a in range(ka):
            for b in range(kb):
                if old[a * kb + b] == -np.inf:
                    continue
                base = np.exp(old[a * kb + b] - top[b])
                row = sums[b * kc : (b + 1) * kc]
                if not scored:
                    for c in range(kc):
                        row[c] += base
                    continue
                start = at + tags_a[a] * stride_a + tags_b[b] * stride_b
                weight = power[start : start + T + 1]
                if every:
                    for c in range(kc):
                        row[c] += base * weight[c]
                else:
                    for c in range(kc):
                        row[c] += base * weight[tags_c[c]]
        for b in range(kb):
            for c in range(kc):
                s = b * kc + c
                if top[b] == -np.inf:
                    new[s] = -np.inf
                    continue
                if sums[s] >= FAINT:
                    new[s] = np.log(sums[s])
                else:
                    start = at + tags_b[b] * stride_b + tags_c[c] if scored else -1
                    new[s] = _faint_sum(table, start, stride_a, tags_a, old[b::kb], top[b], level)
                new[s] += top[b] + level
                new[s] += _local(unary, i, n, bigram, side, pair_at, tags_b[b], tags_c[c])


@njit(cache=True, nogil=True)
def _faint_sum(table, start, stride, tags, chart, top, level):
    """Log of the sum over the tags before a state, or after it, less top and level, by way of logs.

    chart[k] is that of tag k, and the table is read from ``start`` on; not at all if that is -1.
    """
    best = -np.inf
    for k in range(len(tags)):
        weight = table[start + tags[k] * stride] - level if start >= 0 else 0.0
        best = max(best, chart[k] - top + weight)
    if best == -np.inf:
        return -np.inf
    mass = 0.0
    for k in range(len(tags)):
        weight = table[start + tags[k] * stride] - level if start >= 0 else 0.0
        mass += np.exp(chart[k] - top + weight - best)
    return best + np.log(mass)


@njit(cache=True, nogil=True)
def _backward_log(tables, j, n, unary, lattice, chart, entropy):
    """chart[s] <- log of the sum over the paths from state s to the end, s excluded.

    Unless it comes empty, entropy[s] <- the entropy of those paths. It is summed by the chain rule, step by step,
    which subtracts no large numbers.
    """
    T = unary.shape[1]
    ptr, tags, chart_ptr = lattice
    power, peak = tables.power, tables.peak
    bigram, side = tables.bigram.scores, tables.bigram.side
    table = tables.trigram.scores if tables.order == 3 else bigram
    spreads = len(entropy) > 0
    chart[chart_ptr[n + 1] : chart_ptr[n + 2]] = 0.0
    if spreads:
        entropy[:] = 0.0
    rest = np.empty(_widest(n, chart_ptr))
    scaled = np.empty(len(rest))
    top = np.empty(T + 1)
    for i in range(n, -1, -1):
        a0, a1, b0, b1, c0, c1, every, scored, at, stride_a, stride_b, pair_at = _step(tables, ptr, j, i, n, T)
        tags_a, tags_b, tags_c = tags[a0:a1], tags[b0:b1], tags[c0:c1]
        kb = len(tags_b)
        kc = len(tags_c)
        level = peak if scored else 0.0
        old = chart_ptr[i]
        new = chart_ptr[i + 1]
        for b in range(kb):
            top[b] = -np.inf
            for c in range(kc):
                local = _local(unary, i, n, bigram, side, pair_at, tags_b[b], tags_c[c])
                rest[b * kc + c] = chart[new + b * kc + c] + local
                top[b] = max(top[b], rest[b * kc + c])
            if top[b] > -np.inf:
                for c in range(kc):
                    rest[b * kc + c] -= top[b]
                    scaled[b * kc + c] = np.exp(rest[b * kc + c])
        for a in range(len(tags_a)):
            for b in range(kb):
                chart[old + a * kb + b] = -np.inf
                if top[b] == -np.inf:
                    continue
                log_row = rest[b * kc : (b + 1) * kc]
                row = scaled[b * kc : (b + 1) * kc]
                start = at + tags_a[a] * stride_a + tags_b[b] * stride_b
                mass = 0.0
                if scored and every:
                    weight = power[start : start + T]
                    for c in range(kc):
                        mass += row[c] * weight[c]
                else:
                    for c in range(kc):
                        mass += row[c] * power[start + tags_c[c]] if scored else row[c]
                if mass >= FAINT:
                    total = np.log(mass)
                else:
                    total = _faint_sum(table, start if scored else -1, 1, tags_c, log_row, 0.0, level)
                    if total == -np.inf:
                        continue
                chart[old + a * kb + b] = total + (top[b] + level)
                if spreads:
                    spread = 0.0
                    for c in range(kc):
                        log_part = log_row[c] + (table[start + tags_c[c]] - level) if scored else log_row[c]
                        if log_part > -np.inf:
                            log_p = log_part - total
                            spread += np.exp(log_p) * (entropy[new + b * kc + c] - log_p)
                    entropy[old + a * kb + b] = spread


@njit(cache=True, nogil=True)
def viterbi(tables, unary, lengths, span, value, structure):
    """structure[j, :lengths[j]] <- the best tags, value[j] <- their score; -inf, and -1 for tags, if there are none.

    No back-pointers are kept: the way back looks for the maximum again, one column of the table a position.
    Ties go to the smallest tag, from the last position to the first. structure must come filled with -1.
    """
    T = unary.shape[2]
    tables = _named(tables)
    table = tables.trigram.scores if tables.order == 3 else tables.bigram.scores
    for j in range(span[0], span[1]):
        n = lengths[j]
        lattice = _lattice(tables.order, n, unary[j])
        ptr, tags, chart_ptr = lattice
        states = chart_ptr[n + 2]
        chart = np.empty(states)
        _forward_max(tables, j, n, unary[j], lattice, chart)
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
            a0, a1, b0, b1, c0, c1, _, scored, at, stride_a, stride_b, _ = _step(tables, ptr, j, i, n, T)
            kb, kc = b1 - b0, c1 - c0
            b = s // kc
            c = s % kc
            if i < n:
                structure[j, i] = tags[c0 + c]
            start = at + tags[b0 + b] * stride_b + tags[c0 + c]
            best = -np.inf
            for a in range(a1 - a0):
                score = chart[chart_ptr[i] + a * kb + b]
                if scored:
                    score += table[start + tags[a0 + a] * stride_a]
                if score > best:
                    best = score
                    s = a * kb + b


@njit(cache=True, nogil=True)
def total(tables, unary, lengths, span, value, entropy):
    """value[j] <- log of the sum of exp(score) over all sequences.

    Unless it comes empty, entropy[j] <- the entropy of the distribution proportional to exp(score).
    """
    tables = _named(tables)
    for j in range(span[0], span[1]):
        n = lengths[j]
        lattice = _lattice(tables.order, n, unary[j])
        chart_ptr = lattice.chart_ptr
        states = chart_ptr[n + 2]
        chart = np.empty(states)
        if len(entropy):
            spread = np.empty(states)
            _backward_log(tables, j, n, unary[j], lattice, chart, spread)
            value[j] = chart[0]
            entropy[j] = spread[0]
            continue
        _forward_log(tables, j, n, unary[j], lattice, chart)
        best = -np.inf
        for s in range(chart_ptr[n + 1], states):
            best = max(best, chart[s])
        mass = 0.0
        for s in range(chart_ptr[n + 1], states):
            if best > -np.inf:
                mass += np.exp(chart[s] - best)
        value[j] = best + np.log(mass) if best > -np.inf else -np.inf


@njit(cache=True, nogil=True)
def marginals(tables, unary, lengths, span, value, out):
    """out[j, i, t] <- the probability of tag t at position i, value[j] <- the log partition.

    out must come filled with 0.
    """
    tables = _named(tables)
    spread = np.empty(0)
    for j in range(span[0], span[1]):
        n = lengths[j]
        lattice = _lattice(tables.order, n, unary[j])
        ptr, tags, chart_ptr = lattice
        states = chart_ptr[n + 2]
        before = np.empty(states)
        after = np.empty(states)
        _forward_log(tables, j, n, unary[j], lattice, before)
        _backward_log(tables, j, n, unary[j], lattice, after, spread)
        value[j] = after[0]
        if value[j] == -np.inf:
            continue
        for i in range(n):
            kc = ptr[i + 3] - ptr[i + 2]
            for s in range(chart_ptr[i + 1], chart_ptr[i + 2]):
                t = tags[ptr[i + 2] + (s - chart_ptr[i + 1]) % kc]
                out[j, i, t] += np.exp(before[s] + after[s] - value[j])


@njit(cache=True, nogil=True)
def max_marginals(tables, unary, lengths, span, value, out):
    """out[j, i, t] <- the best score of a sequence with tag t at position i, value[j] <- the best of all.

    out must come filled with -inf.
    """
    tables = _named(tables)
    for j in range(span[0], span[1]):
        n = lengths[j]
        lattice = _lattice(tables.order, n, unary[j])
        ptr, tags, chart_ptr = lattice
        states = chart_ptr[n + 2]
        before = np.empty(states)
        after = np.empty(states)
        _forward_max(tables, j, n, unary[j], lattice, before)
        _backward_max(tables, j, n, unary[j], lattice, after)
        value[j] = after[0]
        for i in range(n):
            kc = ptr[i + 3] - ptr[i + 2]
            for s in range(chart_ptr[i + 1], chart_ptr[i + 2]):
                t = tags[ptr[i + 2] + (s - chart_ptr[i + 1]) % kc]
                out[j, i, t] = max(out[j, i, t], before[s] + after[s])
