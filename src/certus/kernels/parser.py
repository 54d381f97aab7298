"""Scores of forest edges from features, and the update of a linear model towards the right tree.

One word m of a tree has one part of each kind, named by the roles its templates use: the arc "hm", the sibling "hms"
(s the modifier next inside m, ABSENT if there is none), the grandparent "hmg", the grand-sibling "hmsg" and the
tri-sibling "hmst". Forest edges carry them as coordinates (flags, g, h, t, s, m); see kernels.projective_forest.
Templates come as one tuple per kind, (ptr, role, offset, column, seed, between), in the order arc, sibling,
grandparent, grand-sibling, tri-sibling; a kind without templates is not part of the model.
"""

import numpy as np
from numba import njit

from certus.kernels import arborescence, eisner, hypergraph
from certus.kernels.features import ABSENT, part_features
from certus.kernels.projective_forest import ATTACH, build, index_arcs

_EDGES = np.iinfo(np.int32).max


@njit(cache=True, nogil=True)
def part_score(attribute, coarse, base, part, templates, bits, weight, index):
    """Sum of the weights of the features of the part in row 0 of part."""
    count = part_features(attribute, coarse, base, part, 0, *templates, bits, index)
    total = 0.0
    for k in range(count):
        total += weight[index[k]]
    return total


@njit(cache=True, nogil=True)
def score_arcs(attribute, coarse, base, allowed, templates, bits, weight, index, out):
    """out[h, m] <- score of each allowed arc; -inf elsewhere."""
    part = np.empty((1, 2), dtype=np.int64)
    for h in range(allowed.shape[0]):
        part[0, 0] = h
        for m in range(allowed.shape[0]):
            if allowed[h, m]:
                part[0, 1] = m
                out[h, m] = part_score(attribute, coarse, base, part, templates, bits, weight, index)
            else:
                out[h, m] = -np.inf


@njit(cache=True, nogil=True)
def score_edges(attribute, coarse, base, n, arc, arc_id, n_arcs, coord,
                sibling, grandparent, grandsibling, trisibling, bits, weight, index, out):  # fmt: skip
    """out[e] <- score of the parts of each edge that attaches a word; 0 for the others.

    arc (n + 1, n + 1) are the scores of the arcs alone. Siblings and grandparents are scored once and remembered.
    """
    known_s = np.full((n_arcs, n + 1), np.nan)
    known_g = np.full((n_arcs, n + 1), np.nan)
    three = np.empty((1, 3), dtype=np.int64)
    four = np.empty((1, 4), dtype=np.int64)
    use_s, use_g = sibling[4].shape[0] > 0, grandparent[4].shape[0] > 0
    use_gs, use_ts = grandsibling[4].shape[0] > 0, trisibling[4].shape[0] > 0
    for e in range(coord.shape[0]):
        out[e] = 0.0
        if not coord[e, 0] & ATTACH:
            continue
        g, h, t, s, m = coord[e, 1], coord[e, 2], coord[e, 3], coord[e, 4], coord[e, 5]
        a = arc_id[h, m]
        total = arc[h, m]
        inner = ABSENT if s == h else s
        if use_s:
            if np.isnan(known_s[a, s]):
                three[0, 0], three[0, 1], three[0, 2] = h, m, inner
                known_s[a, s] = part_score(attribute, coarse, base, three, sibling, bits, weight, index)
            total += known_s[a, s]
        if use_g and g >= 0:
            if np.isnan(known_g[a, g]):
                three[0, 0], three[0, 1], three[0, 2] = h, m, g
                known_g[a, g] = part_score(attribute, coarse, base, three, grandparent, bits, weight, index)
            total += known_g[a, g]
        if use_gs and g >= 0:
            four[0, 0], four[0, 1], four[0, 2], four[0, 3] = h, m, inner, g
            total += part_score(attribute, coarse, base, four, grandsibling, bits, weight, index)
        if use_ts and t >= 0:
            four[0, 0], four[0, 1], four[0, 2], four[0, 3] = h, m, inner, ABSENT if t == h else t
            total += part_score(attribute, coarse, base, four, trisibling, bits, weight, index)
        out[e] = total


@njit(cache=True, nogil=True)
def neighbours(heads, inner, second):
    """inner[m] <- the modifier of m's head next inside m on its side, ABSENT if none; second[m] the one inside that."""
    n = heads.shape[0] - 1
    for m in range(1, n + 1):
        h = heads[m]
        step = 1 if h > m else -1
        inner[m] = ABSENT
        second[m] = ABSENT
        v = m + step
        while v != h:
            if heads[v] == h:
                if inner[m] == ABSENT:
                    inner[m] = v
                else:
                    second[m] = v
                    break
            v += step


@njit(cache=True, nogil=True)
def collect(attribute, coarse, base, m, h, s, t, g, kinds, templates, bits, index, out, count):
    """Append the features of the chosen kinds of parts of word m to out; returns the new count."""
    two = np.empty((1, 2), dtype=np.int64)
    three = np.empty((1, 3), dtype=np.int64)
    four = np.empty((1, 4), dtype=np.int64)
    arc, sibling, grandparent, grandsibling, trisibling = templates
    if kinds[0]:
        two[0, 0], two[0, 1] = h, m
        found = part_features(attribute, coarse, base, two, 0, *arc, bits, index)
        for k in range(found):
            out[count] = index[k]
            count += 1
    if kinds[1]:
        three[0, 0], three[0, 1], three[0, 2] = h, m, s
        found = part_features(attribute, coarse, base, three, 0, *sibling, bits, index)
        for k in range(found):
            out[count] = index[k]
            count += 1
    if kinds[2] and h > 0:
        three[0, 0], three[0, 1], three[0, 2] = h, m, g
        found = part_features(attribute, coarse, base, three, 0, *grandparent, bits, index)
        for k in range(found):
            out[count] = index[k]
            count += 1
    if kinds[3] and h > 0:
        four[0, 0], four[0, 1], four[0, 2], four[0, 3] = h, m, s, g
        found = part_features(attribute, coarse, base, four, 0, *grandsibling, bits, index)
        for k in range(found):
            out[count] = index[k]
            count += 1
    if kinds[4] and s != ABSENT:
        four[0, 0], four[0, 1], four[0, 2], four[0, 3] = h, m, s, t
        found = part_features(attribute, coarse, base, four, 0, *trisibling, bits, index)
        for k in range(found):
            out[count] = index[k]
            count += 1
    return count


@njit(cache=True, nogil=True)
def differences(attribute, coarse, base, gold, guess, templates, bits, index, plus, minus):
    """Features of the parts of one tree that the other lacks: into plus those of gold, into minus those of guess."""
    n = gold.shape[0] - 1
    inner = np.empty((2, n + 1), dtype=np.int64)
    second = np.empty((2, n + 1), dtype=np.int64)
    neighbours(gold, inner[0], second[0])
    neighbours(guess, inner[1], second[1])
    kinds = np.empty(5, dtype=np.bool_)
    n_plus = n_minus = 0
    for m in range(1, n + 1):
        head = gold[m] != guess[m]
        above = head or gold[gold[m]] != guess[guess[m]]
        beside = head or inner[0, m] != inner[1, m]
        beyond = beside or second[0, m] != second[1, m]
        kinds[0] = head
        kinds[1] = beside
        kinds[2] = above
        kinds[3] = above or beside
        kinds[4] = beyond
        n_plus = collect(attribute, coarse, base, m, gold[m], inner[0, m], second[0, m], gold[gold[m]], kinds,
                         templates, bits, index, plus, n_plus)  # fmt: skip
        n_minus = collect(attribute, coarse, base, m, guess[m], inner[1, m], second[1, m], guess[guess[m]], kinds,
                          templates, bits, index, minus, n_minus)  # fmt: skip
    return n_plus, n_minus


@njit(cache=True, nogil=True)
def net_counts(plus, minus, feature, net):
    """Features of plus less those of minus, each once with its count, those that cancel left out; returns how many."""
    size = plus.shape[0] + minus.shape[0]
    code = np.empty(size, dtype=np.int64)
    for k in range(plus.shape[0]):
        code[k] = np.int64(plus[k]) * 2 + 1
    for k in range(minus.shape[0]):
        code[plus.shape[0] + k] = np.int64(minus[k]) * 2
    code.sort()
    k = 0
    kept = 0
    while k < size:
        feature[kept] = code[k] >> 1
        net[kept] = 0
        while k < size and code[k] >> 1 == feature[kept]:
            net[kept] += 1 if code[k] & 1 else -1
            k += 1
        if net[kept] != 0:
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def move(plus, minus, cost, cap, rate, clock, weight, total, squares):
    """Move the weights towards plus and away from minus if the guess does not lose by its cost; returns the loss.

    plus and minus list feature indices, with repetitions. With rate 0 the step is the smallest that makes the loss
    zero, at most cap (passive-aggressive). Otherwise each weight has a step of its own, rate over the root of the sum
    of its squared changes so far, which squares holds (AdaGrad). total adds up clock times every change, for averaging.
    """
    size = plus.shape[0] + minus.shape[0]
    feature = np.empty(size + 1, dtype=np.int64)
    net = np.empty(size + 1, dtype=np.int64)
    kept = net_counts(plus, minus, feature, net)
    norm = margin = 0.0
    for k in range(kept):
        norm += net[k] * net[k]
        margin += net[k] * weight[feature[k]]
    loss = cost - margin
    if loss <= 0.0 or norm == 0.0:
        return max(loss, 0.0)
    step = min(cap, loss / norm)
    for k in range(kept):
        f = feature[k]
        if rate > 0.0:
            squares[f] += net[k] * net[k]
            step = rate / np.sqrt(squares[f])
        weight[f] += step * net[k]
        total[f] += clock * step * net[k]
    return loss


@njit(cache=True, nogil=True)
def short_arcs(coarse, base, n, longest):
    """allowed (n + 1, n + 1): arcs no longer than longest[right, coarse tag of h, coarse tag of m]."""
    allowed = np.zeros((n + 1, n + 1), dtype=np.bool_)
    for h in range(n + 1):
        for m in range(1, n + 1):
            if h != m:
                allowed[h, m] = abs(h - m) <= longest[int(h < m), coarse[base + h], coarse[base + m]]
    return allowed


@njit(cache=True, nogil=True)
def best_tree(arc, projective, single, heads):
    """Best tree over arc scores; returns its value, -inf if there is none."""
    n = arc.shape[0] - 1
    if projective:
        value = np.empty(1)
        lengths = np.empty(1, dtype=np.int64)
        lengths[0] = n
        eisner.decode(arc.reshape(1, n + 1, n + 1), lengths, single, heads.reshape(1, n + 1), value)
        return value[0]
    n_floats, n_ints = arborescence.work_sizes(n)
    floats, ints = np.empty(n_floats), np.empty(n_ints, dtype=np.int64)
    return arborescence.best_heads(arc.reshape(-1), n + 1, n, single, heads, floats, ints)


@njit(cache=True, nogil=True)
def max_marginals(arc, projective, single, out):
    """out[h, m] <- value of the best tree with the arc; returns the value of the best tree."""
    n = arc.shape[0] - 1
    if projective:
        value = np.empty(1)
        lengths = np.empty(1, dtype=np.int64)
        lengths[0] = n
        eisner.max_totals(arc.reshape(1, n + 1, n + 1), lengths, single, out.reshape(1, n + 1, n + 1), value)
        return value[0]
    arborescence.max_marginals(arc.reshape(-1), n + 1, n, single, out)
    best = -np.inf
    for h in range(n + 1):
        best = max(best, out[h, 1]) if n else 0.0
    return best


@njit(cache=True, nogil=True)
def keep_arcs(through, best, width, most, allowed):
    """Forbid arcs whose max-marginal is more than width below the best tree, and all but the ``most`` best heads."""
    n = allowed.shape[0] - 1
    column = np.empty(n + 1)
    for m in range(1, n + 1):
        count = 0
        for h in range(n + 1):
            allowed[h, m] = allowed[h, m] and through[h, m] >= best - width
            if allowed[h, m]:
                column[count] = through[h, m]
                count += 1
        if count > most:
            cut = np.sort(column[:count])[count - most]
            for h in range(n + 1):
                allowed[h, m] = allowed[h, m] and through[h, m] >= cut


@njit(cache=True, nogil=True)
def surviving_arcs(attribute, coarse, base, n, longest, first, first_bits, first_weight, first_width,
                   second, second_bits, second_weight, second_width, most, projective, single, index):  # fmt: skip
    """allowed (n + 1, n + 1): arcs that pass the length dictionary and two filters by max-marginals.

    A dictionary that leaves no tree is passed over. A filter keeps the best tree, so there is always one.
    """
    allowed = short_arcs(coarse, base, n, longest)
    arc = np.empty((n + 1, n + 1))
    through = np.empty((n + 1, n + 1))
    score_arcs(attribute, coarse, base, allowed, first, first_bits, first_weight, index, arc)
    best = max_marginals(arc, projective, single, through)
    if best == -np.inf:
        for h in range(n + 1):
            for m in range(1, n + 1):
                allowed[h, m] = h != m
        score_arcs(attribute, coarse, base, allowed, first, first_bits, first_weight, index, arc)
        best = max_marginals(arc, projective, single, through)
    keep_arcs(through, best, first_width, 2 * most, allowed)
    if second[4].shape[0]:
        score_arcs(attribute, coarse, base, allowed, second, second_bits, second_weight, index, arc)
        best = max_marginals(arc, projective, single, through)
        keep_arcs(through, best, second_width, most, allowed)
    return allowed


@njit(cache=True, nogil=True)
def best_of_forest(attribute, coarse, base, arc, allowed, single, templates, bits, weight, index, heads):
    """Best projective tree of a model above first order over the allowed arcs; returns its value.

    arc holds the scores of the arcs alone, with the cost of errors in it if there is one.
    """
    n = allowed.shape[0] - 1
    _, sibling, grandparent, grandsibling, trisibling = templates
    track_g = grandparent[4].shape[0] > 0 or grandsibling[4].shape[0] > 0
    track_s = trisibling[4].shape[0] > 0
    arc_id, out_ptr, out, into_ptr, into = index_arcs(allowed)
    none = np.zeros(1, dtype=np.int32)
    n_vertices, n_edges = build(arc_id, out_ptr, out, into_ptr, into, single, track_g, False, track_s, _EDGES,
                                none, none, none[:0], np.empty((0, 6), dtype=np.int16))  # fmt: skip
    in_ptr = np.zeros(n_vertices + 1, dtype=np.int32)
    tail_ptr = np.zeros(n_edges + 1, dtype=np.int32)
    tail = np.empty(2 * n_edges, dtype=np.int32)
    coord = np.empty((n_edges, 6), dtype=np.int16)
    build(arc_id, out_ptr, out, into_ptr, into, single, track_g, False, track_s, _EDGES, in_ptr, tail_ptr, tail, coord)
    score = np.empty(n_edges)
    score_edges(attribute, coarse, base, n, arc, arc_id, out.shape[0], coord,
                sibling, grandparent, grandsibling, trisibling, bits, weight, index, score)  # fmt: skip
    chart = np.empty(n_vertices)
    back = np.empty(n_vertices, dtype=np.int32)
    hypergraph.viterbi(in_ptr, tail_ptr, tail, score, chart, back)
    value = chart[n_vertices - 1]
    if value == -np.inf:
        return value
    stack = np.empty(n_vertices, dtype=np.int32)
    stack[0] = n_vertices - 1
    top = 1
    heads[0] = -1
    while top:
        top -= 1
        e = back[stack[top]]
        if coord[e, 0] & ATTACH:
            heads[coord[e, 5]] = coord[e, 2]
        for k in range(tail_ptr[e], tail_ptr[e + 1]):
            stack[top] = tail[k]
            top += 1
    return value


@njit(cache=True, nogil=True)
def parse(attribute, coarse, base, length, longest, first, first_bits, first_weight, first_width,
          second, second_bits, second_weight, second_width, most, projective, single,
          templates, bits, weight, index, start, heads, value):  # fmt: skip
    """Parse the sentences of a batch: heads of sentence s go to heads[start[s] : start[s] + length[s] + 1]."""
    for s in range(length.shape[0]):
        n = length[s]
        own = heads[start[s] : start[s] + n + 1]
        own[0] = -1
        value[s] = 0.0
        if n == 0:
            continue
        allowed = surviving_arcs(attribute, coarse, base[s], n, longest, first, first_bits, first_weight, first_width,
                                 second, second_bits, second_weight, second_width, most, projective, single,
                                 index)  # fmt: skip
        arc = np.empty((n + 1, n + 1))
        score_arcs(attribute, coarse, base[s], allowed, templates[0], bits, weight, index, arc)
        if templates[1][4].shape[0] + templates[2][4].shape[0] == 0:
            value[s] = best_tree(arc, projective, single, own)
        else:
            value[s] = best_of_forest(attribute, coarse, base[s], arc, allowed, single, templates, bits, weight,
                                      index, own)  # fmt: skip
