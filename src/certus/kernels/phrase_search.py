"""Search in a phrase lattice: sweeps of a relaxation, beam search with bounds, and A*.

A hypothesis is a node of the lattice, the coverage, and a state of the language model. Ties go to the hypothesis that
was found first.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from certus.kernels.arrays import largest, longer
from certus.kernels.compiling import njit
from certus.kernels.phrase_lattice import MIX, ONE, OTHER, SHIFT, cover

STAYS = -2
# Columns of a hypothesis: node, state, first uncovered word; the hypothesis before and the phrase that led here; the
# next one that covers as many words.
NODE, STATE, GAP, BACK, PHRASE, LINK = range(6)


class Model(NamedTuple):
    """A relaxed sentence: Lattice, PhraseArrays and Contexts, the price of a jump by one word, and the limits."""

    lattice: NamedTuple
    phrases: NamedTuple
    contexts: NamedTuple
    distortion: float
    limit: int
    gap: bool


class Tables(NamedTuple):
    """Scores of phrases after contexts, and the contexts after them, for sweeps.

    Row (place p, phrase o), of as many entries as p has contexts, starts at ptr[p] + o * size; row O is the end. Rows
    of phrases beyond the limit are not set.
    """

    ptr: np.ndarray
    value: np.ndarray
    target: np.ndarray


class Bounds(NamedTuple):
    """value[ptr[x] + c]: no completion from node x in context c of its place adds more.

    ``span_weight``, minus the multipliers of its words, is added when a span is taken.
    """

    span_weight: np.ndarray
    ptr: np.ndarray
    value: np.ndarray


class Found(NamedTuple):
    """What a search found above its lower bound: the score is -inf and the path empty if nothing.

    The arcs are the transitions that were not dropped, if they were asked for.
    """

    score: float
    path: np.ndarray  # phrases
    pruned: bool
    hypotheses: int
    transitions: int
    arcs: np.ndarray  # (m, 3): from, phrase, to; phrase and to are -1 at an end
    arc_scores: np.ndarray


@njit(cache=True, nogil=True)
def fill(phrases, contexts, limit, tables):
    """Fills value and target of the tables."""
    row_ptr, value, target = tables.ptr, tables.value, tables.target
    state, first, second, state_class = (
        contexts.context_state, contexts.context_first, contexts.second, contexts.state_class
    )  # fmt: skip
    after, after_short, state_end, short = contexts.after, contexts.after_short, contexts.state_end, phrases.short
    n_phrases, context_of = phrases.score.shape[0], contexts.context_of
    for p in range(phrases.n + 1):
        begin = contexts.context_ptr[p]
        size = contexts.context_ptr[p + 1] - begin
        for o in range(n_phrases + 1):
            j = 0
            if o < n_phrases:
                s = phrases.phrase_span[o]
                i, j = phrases.span_start[s], phrases.span_end[s]
                if abs(i - p) > limit or i <= p - 1 <= j:
                    continue
            row = row_ptr[p] + np.int64(o) * size
            base, h, b = contexts.base[o], phrases.head[o], phrases.body[o]
            for c in range(size):
                r = state[begin + c]
                value[row + c] = base + first[begin + c, h] + second[state_class[r], b]
                if o < n_phrases:
                    q = after[o]
                    if q == STAYS:
                        q = r
                    elif q < 0:
                        q = after_short[state_end[r], short[o]]
                    target[row + c] = context_of[j + 1, q]


@njit(cache=True, nogil=True)
def sweep(model, tables, bounds):
    """bounds.value <- best score of any way from each node and context to the end, over all paths of the lattice."""
    lattice, phrases, distortion = model.lattice, model.phrases, model.distortion
    context_ptr = model.contexts.context_ptr
    count, last, edge_ptr = lattice.count, lattice.last, lattice.edge_ptr
    edge_span, edge_to, span_start = lattice.edge_span, lattice.edge_to, phrases.span_start
    row_ptr, value, target = tables.ptr, tables.value, tables.target
    bound_ptr, bound, span_weight = bounds.ptr, bounds.value, bounds.span_weight
    short, phrase_ptr, n_phrases = phrases.short, phrases.phrase_ptr, phrases.score.shape[0]
    for x in range(count.shape[0] - 1, -1, -1):
        p = last[x] + 1
        size = uint64(context_ptr[p + 1] - context_ptr[p])
        out = uint64(bound_ptr[x])
        if count[x] == phrases.n:
            row = uint64(row_ptr[p]) + uint64(n_phrases) * size
            for c in range(size):
                bound[out + c] = value[row + c]
            continue
        for c in range(size):
            bound[out + c] = -np.inf
        for e in range(edge_ptr[x], edge_ptr[x + 1]):
            s = edge_span[e]
            into = uint64(bound_ptr[edge_to[e]])
            cost = span_weight[s] - distortion * abs(span_start[s] - p)
            for o in range(phrase_ptr[s], phrase_ptr[s + 1]):
                row = uint64(row_ptr[p]) + uint64(o) * size
                if short[o] == -1:
                    rest = bound[into + uint64(target[row])] + cost
                    for c in range(size):
                        bound[out + c] = max(bound[out + c], value[row + c] + rest)
                else:
                    for c in range(size):
                        rest = bound[into + uint64(target[row + c])] + cost
                        bound[out + c] = max(bound[out + c], value[row + c] + rest)


@njit(cache=True, nogil=True)
def walk(model, tables, bounds):
    """The phrases of a best path, from what sweep left."""
    lattice, phrases, context_ptr = model.lattice, model.phrases, model.contexts.context_ptr
    path = np.empty(phrases.n, dtype=np.int32)
    length = 0
    x, c = 0, 0
    while lattice.count[x] < phrases.n:
        p = lattice.last[x] + 1
        size = context_ptr[p + 1] - context_ptr[p]
        best, phrase, node, context = -np.inf, 0, 0, 0
        for e in range(lattice.edge_ptr[x], lattice.edge_ptr[x + 1]):
            s = lattice.edge_span[e]
            y = lattice.edge_to[e]
            cost = bounds.span_weight[s] - model.distortion * abs(phrases.span_start[s] - p)
            for o in range(phrases.phrase_ptr[s], phrases.phrase_ptr[s + 1]):
                row = tables.ptr[p] + np.int64(o) * size + c
                total = tables.value[row] + (bounds.value[bounds.ptr[y] + tables.target[row]] + cost)
                if total > best:
                    best, phrase, node, context = total, o, y, tables.target[row]
        path[length] = phrase
        length += 1
        x, c = node, context
    return path[:length].copy()


@njit(cache=True, nogil=True)
def better(keys, items, size, key, item):
    """Pushes (key, item) onto a heap of ``size`` entries with the largest key first."""
    k = size
    while k > 0 and keys[(k - 1) // 2] < key:
        keys[k], items[k] = keys[(k - 1) // 2], items[(k - 1) // 2]
        k = (k - 1) // 2
    keys[k], items[k] = key, item


@njit(cache=True, nogil=True)
def sink(keys, items, size):
    """Moves the last of ``size`` + 1 heap entries to where it belongs, the first having been taken."""
    key, item = keys[size], items[size]
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[k], items[k] = keys[child], items[child]
        k = child
    keys[k], items[k] = key, item


@njit(cache=True, nogil=True)
def _first_slot(node, state, window, mask):
    z = (window * MIX) ^ (uint64((np.int64(node) << 32) | np.int64(state)) * OTHER)
    z = (z ^ (z >> SHIFT)) * MIX
    return (z >> SHIFT) & mask


@njit(cache=True, nogil=True)
def _more_slots(size, hyp, window, n):
    """An open-addressing table of ``size`` slots with the hypotheses 1 .. n - 1."""
    table = np.full(size, -1, dtype=np.int32)
    mask = uint64(size - 1)
    for d in range(1, n):
        k = _first_slot(hyp[d, NODE], hyp[d, STATE], window[d], mask)
        while table[k] >= 0:
            k = (k + ONE) & mask
        table[k] = d
    return table


@njit(cache=True, nogil=True)
def _estimate(future, gap, window):
    """The estimates of the uncovered spans, summed."""
    n = future.shape[0]
    total, a = 0.0, gap
    while a < n:
        b = a
        while b + 1 < n and not (b - gap < 64 and (window >> uint64(b - gap)) & ONE):
            b += 1
        total += future[a, b]
        a = b + 1
        while a < n and a - 1 - gap < 64 and (window >> uint64(a - 1 - gap)) & ONE:
            a += 1
    return total


@njit(cache=True, nogil=True)
def _best(hyp, window, score, hope, future, h, width, chosen):
    """(chosen, or a longer copy; how many; whether any were left out): the best ``width`` of those chained from h on.

    By hope, or by score and estimate if there is one; in the order of the chain, of equals the first.
    """
    n = 0
    while h >= 0:
        if n == chosen.shape[0]:
            chosen = longer(chosen)
        chosen[n] = h
        n += 1
        h = hyp[h, LINK]
    if n <= width:
        return chosen, n, False
    rank = np.empty(n)
    for i in range(n):
        h = chosen[i]
        rank[i] = hope[h]
        if future.shape[0] > 0:
            rank[i] = score[h] + _estimate(future, np.int64(hyp[h, GAP]), window[h])
    threshold = largest(rank, width)
    room = width
    for i in range(n):
        room -= rank[i] > threshold
    kept = 0
    for i in range(n):
        if rank[i] > threshold or (rank[i] == threshold and room > 0):
            room -= rank[i] == threshold
            chosen[kept] = chosen[i]
            kept += 1
    return chosen, kept, True


@njit(cache=True, nogil=True)
def _way(hyp, h, n):
    """The phrases that lead to hypothesis h, at most n."""
    path = np.empty(n, dtype=np.int32)
    length = 0
    while h > 0:
        path[length] = hyp[h, PHRASE]
        length += 1
        h = hyp[h, BACK]
    return path[:length][::-1].copy()


@njit(cache=True, nogil=True)
def search(model, bounds, future, lower, width, most, keep):
    """Beam search with bounds (LR alg. 10) if width > 0, else A*: a Found.

    Beam search expands hypotheses by rising number of words covered, at most ``width`` of a number: those with the
    highest score plus bound, or score plus ``future`` (n, n), the estimates of uncovered spans, if there is one. A*
    expands the highest score plus bound first. Hypotheses whose score plus bound is not above ``lower`` are dropped, at
    no loss. Both stop, as if pruned, once there are ``most`` hypotheses. ``keep`` asks for the arcs.
    """
    lattice, phrases, contexts = model.lattice, model.phrases, model.contexts
    # All arrays are taken out here: taken out of the tuples in the loops, each would be reference-counted there.
    count, last, full, limit, gap = lattice.count, lattice.last, lattice.full, model.limit, model.gap
    edge_ptr, edge_span, edge_to = lattice.edge_ptr, lattice.edge_span, lattice.edge_to
    node_gap, node_window, distortion = lattice.a, lattice.window, model.distortion
    span_start, span_end, state_class = phrases.span_start, phrases.span_end, contexts.state_class
    bound_ptr, bound, span_weight = bounds.ptr, bounds.value, bounds.span_weight
    head, body, short, phrase_ptr = phrases.head, phrases.body, phrases.short, phrases.phrase_ptr
    base, head_score, body_score, context_of = contexts.base, contexts.first, contexts.second, contexts.context_of
    after, after_short, state_end = contexts.after, contexts.after_short, contexts.state_end
    n, estimated = phrases.n, future.shape[0] > 0
    hyp, window = np.empty((256, 6), dtype=np.int32), np.empty(256, dtype=np.uint64)
    score, hope = np.empty(256), np.empty(256)  # and score plus bound
    arcs, arc_scores, n_arcs = np.empty((256, 3), dtype=np.int32), np.empty(256), 0
    table = np.full(1024, -1, dtype=np.int32)
    mask = uint64(1023)
    first = np.full(n + 2, -1, dtype=np.int32)  # first hypothesis of each number of words covered, chained by link
    chosen, rank = np.empty(256, dtype=np.int32), np.empty(256)  # the group being expanded; for A* the heap
    hyp[0, NODE], hyp[0, STATE], hyp[0, GAP], window[0], score[0] = 0, contexts.context_state[0], 0, 0, 0.0
    hyp[0, BACK], hyp[0, PHRASE], hyp[0, LINK], hope[0] = -1, -1, -1, bound[bound_ptr[0]]
    total, transitions = 1, 0
    best, best_final, pruned = -np.inf, -1, False
    covered, position, group = -1, 0, 0
    if width <= 0:
        chosen[0], rank[0] = 0, hope[0]
        group = 1
    else:
        first[0] = 0
    while True:
        if width <= 0:
            if group == 0 or rank[0] <= lower:
                break
            h, promised = chosen[0], rank[0]
            group -= 1
            sink(rank, chosen, group)
            covered = count[hyp[h, NODE]]
            if promised < hope[h]:
                continue  # a better way to it was found since, and has been expanded
        else:
            while position == group and covered < n:
                covered += 1
                position = 0
                chosen, group, more = _best(hyp, window, score, hope, future, first[covered], width, chosen)
                pruned = pruned or more
            if position == group:
                break
            h = chosen[position]
            position += 1
        x, r, g, w = hyp[h, NODE], hyp[h, STATE], np.int64(hyp[h, GAP]), window[h]
        p = last[x] + 1
        cls = state_class[r]
        if covered == n:
            gain = base[-1] + head_score[r, head[-1]] + body_score[cls, body[-1]]
            value = score[h] + gain
            if value > lower and keep:
                if n_arcs == arc_scores.shape[0]:
                    arcs, arc_scores = longer(arcs), longer(arc_scores)
                arcs[n_arcs, 0], arcs[n_arcs, 1], arcs[n_arcs, 2], arc_scores[n_arcs] = h, -1, -1, gain
                n_arcs += 1
            if value > best:
                best, best_final = value, h
                if width <= 0:
                    lower = max(lower, best)
            continue
        for e in range(edge_ptr[x], edge_ptr[x + 1]):
            s = edge_span[e]
            y = edge_to[e]
            a, b = np.int64(span_start[s]), np.int64(span_end[s])
            g2, w2 = g, w
            if not full:
                if a < g or b - g > 63:
                    continue
                if a > g:
                    if gap and b + 1 - g > limit:
                        continue
                    if (w >> uint64(a - g - 1)) & ((ONE << uint64(b - a + 1)) - ONE):
                        continue
                elif b > a and w & ((ONE << uint64(b - a)) - ONE):
                    continue
                g2, w2 = cover(n, g, w, a, b)
            elif estimated:
                g2, w2 = np.int64(node_gap[y]), node_window[y]
            cost = span_weight[s] - distortion * abs(a - p)
            into = bound_ptr[y]
            for o in range(phrase_ptr[s], phrase_ptr[s + 1]):
                transitions += 1
                gain = cost + (base[o] + head_score[r, head[o]] + body_score[cls, body[o]])
                value = score[h] + gain
                q = after[o]
                if q == STAYS:
                    q = r
                elif q < 0:
                    q = after_short[state_end[r], short[o]]
                promise = value + bound[into + context_of[b + 1, q]]
                if promise <= lower or promise == -np.inf:
                    continue
                k = _first_slot(y, q, w2, mask)
                t = np.int64(table[k])
                while t >= 0 and not (
                    hyp[t, NODE] == y and hyp[t, STATE] == q and window[t] == w2 and hyp[t, GAP] == g2
                ):
                    k = (k + ONE) & mask
                    t = np.int64(table[k])
                if t >= 0 and value <= score[t]:
                    if not keep:
                        continue
                elif t >= 0:
                    score[t], hope[t], hyp[t, BACK], hyp[t, PHRASE] = value, promise, h, o
                else:
                    if total >= most:
                        return Found(-np.inf, np.empty(0, np.int32), True, total, transitions, arcs[:0], arc_scores[:0])
                    if total == score.shape[0]:
                        hyp, window, score, hope = longer(hyp), longer(window), longer(score), longer(hope)
                    t = np.int64(total)
                    hyp[t, NODE], hyp[t, STATE], hyp[t, GAP], window[t] = y, q, g2, w2
                    score[t], hope[t], hyp[t, BACK], hyp[t, PHRASE] = value, promise, h, o
                    c2 = count[y]
                    hyp[t, LINK] = first[c2]
                    first[c2] = t
                    table[k] = t
                    total += 1
                    if 2 * total > table.shape[0]:
                        table = _more_slots(2 * table.shape[0], hyp, window, total)
                        mask = uint64(table.shape[0] - 1)
                if keep:
                    if n_arcs == arc_scores.shape[0]:
                        arcs, arc_scores = longer(arcs), longer(arc_scores)
                    arcs[n_arcs, 0], arcs[n_arcs, 1], arcs[n_arcs, 2], arc_scores[n_arcs] = h, o, t, gain
                    n_arcs += 1
                elif width <= 0:
                    if group == chosen.shape[0]:
                        chosen, rank = longer(chosen), longer(rank)
                    better(rank, chosen, group, promise, t)
                    group += 1
    path = _way(hyp, best_final, n)
    return Found(best, path, pruned, total, transitions, arcs[:n_arcs], arc_scores[:n_arcs])
