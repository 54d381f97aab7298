"""Search in a phrase lattice: sweeps of a relaxation, beam search with bounds, and A*.

A hypothesis is a node of the lattice, the coverage, and a state of the language model. ``bound`` holds, for each node
x and context c of its place, bound[bound_ptr[x] + c]: an upper bound on what any completion adds. Scores of spans
(``span_weight``: minus the multipliers of their words) and distortion are added when a span is taken. Ties go to the
hypothesis that was found first.
"""

import numpy as np
from numba import uint64

from certus.kernels.arrays import largest, longer
from certus.kernels.compiling import njit
from certus.kernels.phrase_lattice import cover

ONE = np.uint64(1)
MIX = np.uint64(0x9E3779B97F4A7C15)
OTHER = np.uint64(0xC2B2AE3D27D4EB4F)
SHIFT = np.uint64(29)
STAYS = -2


@njit(cache=True, nogil=True)
def tables(phrases, contexts, limit, row_ptr, value, target):
    """Scores of phrases after contexts, and the contexts after them, for sweeps.

    Row (place p, phrase o), of as many entries as p has contexts, starts at row_ptr[p] + o * size; row O is the end.
    target[(p, o)] at row_ptr index: context after the phrase; see sweep. Rows of phrases beyond the limit stay unset.
    """
    n_phrases = phrases.score.shape[0]
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
            h, b = phrases.head[o], phrases.body[o]
            for c in range(size):
                r = contexts.context_state[begin + c]
                value[row + c] = (
                    contexts.base[o]
                    + contexts.context_first[begin + c, h]
                    + contexts.second[contexts.state_class[r], b]
                )
                if o < n_phrases:
                    q = contexts.after[o]
                    if q == STAYS:
                        q = r
                    elif q < 0:
                        q = contexts.after_short[contexts.state_end[r], phrases.short[o]]
                    target[row + c] = contexts.context_of[j + 1, q]


@njit(cache=True, nogil=True)
def sweep(lattice, phrases, contexts, distortion, span_weight, row_ptr, value, target, bound_ptr, bound):
    """bound[x, c] <- best score of any way from node x in context c to the end, over all paths of the lattice."""
    n_phrases = phrases.score.shape[0]
    n_nodes = lattice.count.shape[0]
    for x in range(n_nodes - 1, -1, -1):
        p = lattice.last[x] + 1
        size = uint64(contexts.context_ptr[p + 1] - contexts.context_ptr[p])
        out = uint64(bound_ptr[x])
        if lattice.count[x] == phrases.n:
            row = uint64(row_ptr[p]) + uint64(n_phrases) * size
            for c in range(size):
                bound[out + c] = value[row + c]
            continue
        for c in range(size):
            bound[out + c] = -np.inf
        for e in range(lattice.edge_ptr[x], lattice.edge_ptr[x + 1]):
            s = lattice.edge_span[e]
            into = uint64(bound_ptr[lattice.edge_to[e]])
            cost = span_weight[s] - distortion * abs(phrases.span_start[s] - p)
            for o in range(phrases.phrase_ptr[s], phrases.phrase_ptr[s + 1]):
                row = uint64(row_ptr[p]) + uint64(o) * size
                if phrases.short[o] == -1:
                    rest = bound[into + uint64(target[row])] + cost
                    for c in range(size):
                        bound[out + c] = max(bound[out + c], value[row + c] + rest)
                else:
                    for c in range(size):
                        rest = bound[into + uint64(target[row + c])] + cost
                        bound[out + c] = max(bound[out + c], value[row + c] + rest)


@njit(cache=True, nogil=True)
def walk(lattice, phrases, contexts, distortion, span_weight, row_ptr, value, target, bound_ptr, bound):
    """The phrases of a best path, from what sweep left."""
    path = np.empty(phrases.n, dtype=np.int32)
    length = 0
    x, c = 0, 0
    while lattice.count[x] < phrases.n:
        p = lattice.last[x] + 1
        size = contexts.context_ptr[p + 1] - contexts.context_ptr[p]
        best, phrase, node, context = -np.inf, 0, 0, 0
        for e in range(lattice.edge_ptr[x], lattice.edge_ptr[x + 1]):
            s = lattice.edge_span[e]
            y = lattice.edge_to[e]
            cost = span_weight[s] - distortion * abs(phrases.span_start[s] - p)
            for o in range(phrases.phrase_ptr[s], phrases.phrase_ptr[s + 1]):
                row = row_ptr[p] + np.int64(o) * size + c
                total = value[row] + (bound[bound_ptr[y] + target[row]] + cost)
                if total > best:
                    best, phrase, node, context = total, o, y, target[row]
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
def search(
    lattice, phrases, contexts, limit, gap, distortion, span_weight, bound_ptr, bound, future, lower, width, most, keep
):
    """Beam search with bounds (LR alg. 10) if width > 0, else A*.

    Beam search expands hypotheses by rising number of words covered, at most ``width`` of a number: those with the
    highest score plus bound, or score plus ``future`` (n, n), the estimates of uncovered spans, if there is one. A*
    expands the highest score plus bound first. Hypotheses whose score plus bound is not above ``lower`` are dropped, at
    no loss. Both stop, as if pruned, once there are ``most`` hypotheses.

    Returns (best score, its phrases, whether any were pruned, hypotheses, transitions, arcs (3 m,) and their scores
    (m,)). The best score is -inf if none above ``lower`` reached the end. With ``keep`` the arcs are the transitions
    that were not dropped, as from, phrase, to, with phrase and to -1 at an end.
    """
    n = phrases.n
    node, state = np.empty(256, dtype=np.int32), np.empty(256, dtype=np.int32)
    gaps, window = np.empty(256, dtype=np.int32), np.empty(256, dtype=np.uint64)
    score = np.empty(256)
    back, phrase, link = np.empty(256, dtype=np.int32), np.empty(256, dtype=np.int32), np.empty(256, dtype=np.int32)
    arcs, arc_score = np.empty(768, dtype=np.int32), np.empty(256)
    n_arcs = 0
    table = np.full(1024, -1, dtype=np.int32)
    mask = uint64(1023)
    first = np.full(n + 2, -1, dtype=np.int32)  # first hypothesis of each number of words covered, chained by link
    chosen = np.empty(256, dtype=np.int32)  # the group being expanded; for A* the heap
    rank = np.empty(256)
    node[0], state[0], gaps[0], window[0], score[0] = 0, contexts.context_state[0], 0, 0, 0.0
    back[0], phrase[0], link[0] = -1, -1, -1
    total, transitions = 1, 0
    best, best_final, pruned = -np.inf, -1, False
    covered, position, group = -1, 0, 0
    if width <= 0:
        chosen[0], rank[0] = 0, bound[bound_ptr[0]]
        group = 1
    else:
        first[0] = 0
    while True:
        if width <= 0:
            if group == 0 or rank[0] <= lower:
                break
            h = chosen[0]
            promised = rank[0]
            group -= 1
            sink(rank, chosen, group)
            covered = lattice.count[node[h]]
            c = contexts.context_of[lattice.last[node[h]] + 1, state[h]]
            if promised < score[h] + bound[bound_ptr[node[h]] + c]:
                continue  # a better way to it was found since, and has been expanded
        else:
            while position == group and covered <= n:
                covered += 1
                position, group = 0, 0
                h = first[covered]
                while h >= 0:
                    if group == chosen.shape[0]:
                        chosen, rank = longer(chosen), longer(rank)
                    chosen[group] = h
                    group += 1
                    h = link[h]
                if group > width:
                    pruned = True
                    for i in range(group):
                        h = chosen[i]
                        if future.shape[0] == 0:
                            c = contexts.context_of[lattice.last[node[h]] + 1, state[h]]
                            rank[i] = score[h] + bound[bound_ptr[node[h]] + c]
                            continue
                        rank[i] = score[h]
                        a = np.int64(gaps[h])
                        while a < n:
                            b = a
                            while b + 1 < n and not (b - gaps[h] < 64 and (window[h] >> uint64(b - gaps[h])) & ONE):
                                b += 1
                            rank[i] += future[a, b]
                            a = b + 1
                            while a < n and a - 1 - gaps[h] < 64 and (window[h] >> uint64(a - 1 - gaps[h])) & ONE:
                                a += 1
                    threshold = largest(rank[:group], width)
                    room = width
                    for i in range(group):
                        room -= rank[i] > threshold
                    kept = 0
                    for i in range(group):
                        if rank[i] > threshold or (rank[i] == threshold and room > 0):
                            room -= rank[i] == threshold
                            chosen[kept] = chosen[i]
                            kept += 1
                    group = kept
            if covered > n:
                break
            h = chosen[position]
            position += 1
        x, r, g, w = node[h], state[h], np.int64(gaps[h]), window[h]
        p = lattice.last[x] + 1
        cls = contexts.state_class[r]
        if covered == n:
            gain = contexts.base[-1] + contexts.first[r, phrases.head[-1]] + contexts.second[cls, phrases.body[-1]]
            value = score[h] + gain
            if value > lower and keep:
                if n_arcs == arc_score.shape[0]:
                    arcs, arc_score = longer(arcs), longer(arc_score)
                arcs[3 * n_arcs], arcs[3 * n_arcs + 1], arcs[3 * n_arcs + 2], arc_score[n_arcs] = h, -1, -1, gain
                n_arcs += 1
            if value > best:
                best, best_final = value, h
                if width <= 0:
                    lower = max(lower, best)
            continue
        for e in range(lattice.edge_ptr[x], lattice.edge_ptr[x + 1]):
            s = lattice.edge_span[e]
            y = lattice.edge_to[e]
            a, b = np.int64(phrases.span_start[s]), np.int64(phrases.span_end[s])
            g2, w2 = g, w
            if not lattice.full:
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
            elif future.shape[0] > 0:
                g2, w2 = np.int64(lattice.a[y]), lattice.window[y]
            cost = span_weight[s] - distortion * abs(a - p)
            into = bound_ptr[y]
            for o in range(phrases.phrase_ptr[s], phrases.phrase_ptr[s + 1]):
                transitions += 1
                gain = cost + (
                    contexts.base[o] + contexts.first[r, phrases.head[o]] + contexts.second[cls, phrases.body[o]]
                )
                value = score[h] + gain
                q = contexts.after[o]
                if q == STAYS:
                    q = r
                elif q < 0:
                    q = contexts.after_short[contexts.state_end[r], phrases.short[o]]
                hope = value + bound[into + contexts.context_of[b + 1, q]]
                if hope <= lower or hope == -np.inf:
                    continue
                z = (w2 * MIX) ^ (uint64((np.int64(y) << 32) | np.int64(q)) * OTHER)
                z = (z ^ (z >> SHIFT)) * MIX
                k = (z >> SHIFT) & mask
                t = np.int64(table[k])
                while t >= 0 and not (node[t] == y and state[t] == q and window[t] == w2 and gaps[t] == g2):
                    k = (k + ONE) & mask
                    t = np.int64(table[k])
                if t >= 0 and value <= score[t]:
                    if not keep:
                        continue
                elif t >= 0:
                    score[t], back[t], phrase[t] = value, h, o
                else:
                    if total >= most:
                        return -np.inf, phrase[:0], True, total, transitions, arcs[:0], arc_score[:0]
                    if total == node.shape[0]:
                        node, state, gaps, window = longer(node), longer(state), longer(gaps), longer(window)
                        score, back, phrase, link = longer(score), longer(back), longer(phrase), longer(link)
                    t = np.int64(total)
                    node[t], state[t], gaps[t], window[t] = y, q, g2, w2
                    score[t], back[t], phrase[t] = value, h, o
                    c2 = lattice.count[y]
                    link[t] = first[c2]
                    first[c2] = t
                    table[k] = t
                    total += 1
                    if 2 * total > table.shape[0]:
                        table = np.full(2 * table.shape[0], -1, dtype=np.int32)
                        mask = uint64(table.shape[0] - 1)
                        for d in range(1, total):
                            z = (window[d] * MIX) ^ (uint64((np.int64(node[d]) << 32) | np.int64(state[d])) * OTHER)
                            z = (z ^ (z >> SHIFT)) * MIX
                            k = (z >> SHIFT) & mask
                            while table[k] >= 0:
                                k = (k + ONE) & mask
                            table[k] = d
                if keep:
                    if n_arcs == arc_score.shape[0]:
                        arcs, arc_score = longer(arcs), longer(arc_score)
                    arcs[3 * n_arcs], arcs[3 * n_arcs + 1], arcs[3 * n_arcs + 2], arc_score[n_arcs] = h, o, t, gain
                    n_arcs += 1
                elif width <= 0:
                    if group == chosen.shape[0]:
                        chosen, rank = longer(chosen), longer(rank)
                    better(rank, chosen, group, hope, t)
                    group += 1
    path = np.empty(n, dtype=np.int32)
    length = 0
    h = best_final
    while h > 0:
        path[length] = phrase[h]
        length += 1
        h = back[h]
    return best, path[:length][::-1].copy(), pruned, total, transitions, arcs[: 3 * n_arcs], arc_score[:n_arcs]
