"""Trees with crossing arcs under a trained model above first order: head automata scored by features, tied to the tree.

The lattices of ``head_lattices`` get their weights from the features of the parts that a transition completes; see
``parser`` for templates and sentences. Parts that put a word above its own head are forbidden.
"""

import numpy as np
from numba import njit

from certus.kernels import arborescence
from certus.kernels.features import ABSENT, role_codes, summed_features, total_weight
from certus.kernels.head_automata import (
    BEST_DUAL,
    BEST_PRIMAL,
    EPSILON,
    FACTOR,
    LAST_DUAL,
    LIMIT,
    MEMORY,
    POLYAK,
    STALLED,
    best_choices,
    first_multipliers,
    head_max_marginals,
    relax,
)
from certus.kernels.head_lattices import restrict, skeleton
from certus.kernels.parser import names_of
from certus.kernels.updates import append_features, neighbours

PARTS = 5  # kinds of parts, at most one of each for every word


@njit(cache=True, nogil=True)
def codes_of(attribute, base, n, templates):
    """What each node adds to the codes of siblings, grandparents, grand-siblings and tri-siblings."""
    _, sibling, grandparent, grandsibling, trisibling = templates
    return (role_codes(attribute, base, n, sibling), role_codes(attribute, base, n, grandparent),
            role_codes(attribute, base, n, grandsibling), role_codes(attribute, base, n, trisibling))  # fmt: skip


@njit(cache=True, nogil=True)
def score_of(codes, coarse, base, part, names, templates, bits, weight, index):
    """Sum of the weights of the features of a part."""
    return total_weight(weight, index, summed_features(codes, coarse, base, part, names, templates, bits, index))


@njit(cache=True, nogil=True)
def scored_lattices(attribute, coarse, base, name, allowed, single, templates, bits, weight, index):
    """The lattices of the allowed arcs (n + 1, n + 1), weighted by all parts but the arcs themselves.

    name (n + 1, n + 1) are the names of arcs, 0 for none.
    """
    _, sibling, grandparent, grandsibling, trisibling = templates
    use_s, use_g = sibling[4].shape[0] > 0, grandparent[4].shape[0] > 0
    use_gs, pairs = grandsibling[4].shape[0] > 0, trisibling[4].shape[0] > 0
    n = allowed.shape[0] - 1
    lat, added = skeleton(allowed, use_g or use_gs, pairs, single)
    s_codes, g_codes, gs_codes, ts_codes = codes_of(attribute, base, n, templates)
    three = np.empty(3, dtype=np.int64)
    four = np.empty(4, dtype=np.int64)
    above = np.empty(n + 1)  # grandparent scores of one arc, by column
    known = np.empty(n + 1, dtype=np.int64)  # where the weights of (h, s, m) are, by s
    for side in range(1, 2 * n + 2):
        h = side // 2
        first = lat.state_ptr[side]
        columns = lat.width[h]
        last_arc = -1
        for v in range(first + 1, lat.state_ptr[side + 1] - 1):
            a = lat.state_arc[v]
            m = lat.arc_mod[a]
            if a != last_arc:
                last_arc = a
                known[:] = -1
                for g in range(columns):
                    above[g] = 0.0
                    top = lat.arc_head[lat.up[lat.up_ptr[h] + g]] if h > 0 else -1
                    if top == m:
                        above[g] = -np.inf
                    elif use_g and h > 0:
                        three[0], three[1], three[2] = h, m, top
                        names = names_of(name, h, m, ABSENT, top)
                        above[g] = score_of(g_codes, coarse, base, three, names, grandparent, bits, weight, index)
            for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                s = added[e, 1]
                inner = ABSENT if s == h else s
                w = lat.weight_ptr[side] + (e - lat.in_ptr[first]) * columns
                if known[s] >= 0:
                    for g in range(columns):
                        lat.weight[w + g] = lat.weight[known[s] + g]
                    continue
                known[s] = w
                beside = 0.0
                if use_s:
                    three[0], three[1], three[2] = h, m, inner
                    names = names_of(name, h, m, inner, ABSENT)
                    beside = score_of(s_codes, coarse, base, three, names, sibling, bits, weight, index)
                for g in range(columns):
                    lat.weight[w + g] = beside + above[g]
                    if use_gs and h > 0 and above[g] > -np.inf:
                        top = lat.arc_head[lat.up[lat.up_ptr[h] + g]]
                        four[0], four[1], four[2], four[3] = h, m, inner, top
                        names = names_of(name, h, m, inner, top)
                        lat.weight[w + g] += score_of(gs_codes, coarse, base, four, names, grandsibling, bits, weight,
                                                      index)  # fmt: skip
        if pairs:
            for e in range(lat.in_ptr[first], lat.in_ptr[lat.state_ptr[side + 1] - 1]):
                t, s, m = added[e, 0], added[e, 1], added[e, 2]
                if s != h:
                    four[0], four[1], four[2], four[3] = h, m, s, ABSENT if t == h else t
                    names = names_of(name, h, m, s, ABSENT)
                    x = score_of(ts_codes, coarse, base, four, names, trisibling, bits, weight, index)
                    w = lat.weight_ptr[side] + (e - lat.in_ptr[first]) * columns
                    for g in range(columns):
                        lat.weight[w + g] += x
    return lat


@njit(cache=True, nogil=True)
def collect(arc_codes, codes, coarse, base, name, m, h, s, t, g, templates, bits, index, out, count):
    """Append the features of all parts of word m, with neighbours ABSENT where there are none; the new count."""
    arc, sibling, grandparent, grandsibling, trisibling = templates
    two = np.empty(2, dtype=np.int64)
    three = np.empty(3, dtype=np.int64)
    four = np.empty(4, dtype=np.int64)
    two[0], two[1] = h, m
    count = append_features(arc_codes, coarse, base, two, name[h, m], arc, bits, index, out, count)
    three[0], three[1], three[2] = h, m, s
    names = names_of(name, h, m, s, ABSENT)
    count = append_features(codes[0], coarse, base, three, names, sibling, bits, index, out, count)
    four[0], four[1], four[2], four[3] = h, m, s, t
    if s != ABSENT:
        count = append_features(codes[3], coarse, base, four, names, trisibling, bits, index, out, count)
    if h > 0:
        three[2] = g
        names = names_of(name, h, m, ABSENT, g)
        count = append_features(codes[1], coarse, base, three, names, grandparent, bits, index, out, count)
        four[3] = g
        names = names_of(name, h, m, s, g)
        count = append_features(codes[2], coarse, base, four, names, grandsibling, bits, index, out, count)
    return count


@njit(cache=True, nogil=True)
def keep_arcs(lat, arc, single, share, u, score, keep):
    """Set keep[a] to 0 where no tree with arc a scores more than ``score``, by the dual value at multipliers u (2, A).

    Returns how many arcs went.
    """
    n = lat.width.shape[0] - 1
    through, above = np.empty(arc.shape[0]), np.empty(arc.shape[0])
    total = head_max_marginals(lat, (1.0 - share) * arc - u[0], -u[1], through, above)
    tree = np.full((n + 1, n + 1), -np.inf)
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        tree[lat.arc_head[a], lat.arc_mod[a]] = share * arc[a] + u[0, a] + u[1, a]
    best = np.empty((n + 1, n + 1))
    arborescence.max_marginals(tree.reshape(-1), n + 1, n, single, best)
    value = -np.inf
    for h in range(n + 1):
        value = max(value, best[h, 1])
    gone = 0
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        bound = min(best[lat.arc_head[a], lat.arc_mod[a]], value + min(through[a], above[a]))
        if total + bound <= score:
            keep[a] = 0
            gone += 1
    return gone


@njit(cache=True, nogil=True)
def relaxed(lat, scores, single, rule, u, heads):
    """Dual decomposition from estimated multipliers: (proved, score of the best tree).

    scores (n+1, n+1) are those of the arcs; u (2, A) gets the multipliers of the least dual value of the last round.
    rule is (share of the tree, Polyak's factor, patience, shrink, iterations of a round, rounds). After a round that
    proves nothing, arcs that no better tree uses are removed. heads are those of the best tree; its score is -inf if
    none was found.
    """
    share, factor, patience, shrink, iterations, rounds = rule
    n = lat.width.shape[0] - 1
    arc = np.empty(lat.arc_head.shape[0])
    largest = 0.0
    for a in range(arc.shape[0]):
        arc[a] = scores[lat.arc_head[a], lat.arc_mod[a]]
        largest = max(largest, abs(arc[a]))
    for w in range(lat.weight.shape[0]):
        if lat.weight[w] > -np.inf:
            largest = max(largest, abs(lat.weight[w]))
    tolerance = EPSILON * (PARTS * (n + 1)) ** 2 * largest
    memory = np.zeros(MEMORY)
    memory[BEST_PRIMAL] = -np.inf
    moved = np.zeros((2, arc.shape[0]))
    first_multipliers(lat, arc, share, moved[0])
    keep = np.ones(arc.shape[0], dtype=np.uint8)
    left = lat
    for k in range(rounds):
        if k > 0:
            if keep_arcs(left, arc, single, share, u, memory[BEST_PRIMAL], keep) > 0:
                left = restrict(lat, keep, True)
            for a in range(arc.shape[0]):
                moved[0, a], moved[1, a] = u[0, a], u[1, a]
        memory[BEST_DUAL] = memory[LAST_DUAL] = np.inf
        memory[FACTOR] = factor
        memory[STALLED] = 0.0
        status, _ = relax(left, arc, share, single, moved[0], moved[1], u[0], u[1], heads, np.zeros(arc.shape[0]),
                          tolerance, POLYAK, max(largest, 1e-300), patience, shrink, np.int64(1), memory,
                          np.empty((iterations, 4)))  # fmt: skip
        if status != LIMIT:
            return memory[BEST_PRIMAL] > -np.inf, memory[BEST_PRIMAL]
    return False, memory[BEST_PRIMAL]


@njit(cache=True, nogil=True)
def choice_features(attribute, coarse, base, name, lat, scores, share, u, templates, bits, index, gold):
    """What the head automata choose at multipliers u (2, A): no tree, but the best in a larger set (LR 6.6).

    scores (n+1, n+1) are those of the arcs. Returns (arcs that are not in the tree gold, features of gold, features of
    the choice).
    """
    n = gold.shape[0] - 1
    arcs = lat.arc_head.shape[0]
    value = np.empty(arcs)
    for a in range(arcs):
        value[a] = (1.0 - share) * scores[lat.arc_head[a], lat.arc_mod[a]] - u[0, a]
    used = np.zeros(arcs, dtype=np.int64)
    column = np.zeros(n + 1, dtype=np.int64)
    best_choices(lat, value, -u[1], used, column)
    size = index.shape[0] * PARTS
    plus = np.empty(n * size, dtype=np.uint64)
    minus = np.empty(used.sum() * size, dtype=np.uint64)
    arc_codes, codes = role_codes(attribute, base, n, templates[0]), codes_of(attribute, base, n, templates)
    inner, second = np.empty(n + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    neighbours(gold, inner, second)
    n_plus = n_minus = wrong = 0
    for m in range(1, n + 1):
        n_plus = collect(arc_codes, codes, coarse, base, name, m, gold[m], inner[m], second[m], gold[gold[m]],
                         templates, bits, index, plus, n_plus)  # fmt: skip
    for side in range(1, 2 * n + 2):
        h = side // 2
        g = lat.arc_head[lat.up[lat.up_ptr[h] + column[h]]] if h > 0 and lat.by_head[0] == 1 else ABSENT
        s = t = ABSENT
        rank = -1
        for v in range(lat.state_ptr[side] + 1, lat.state_ptr[side + 1] - 1):
            a = lat.state_arc[v]
            if used[a] == 1 and lat.state_rank[v] != rank:
                rank = lat.state_rank[v]
                m = lat.arc_mod[a]
                wrong += gold[m] != h
                n_minus = collect(arc_codes, codes, coarse, base, name, m, h, s, t, g, templates, bits, index, minus,
                                  n_minus)  # fmt: skip
                s, t = m, s
    return wrong, plus[:n_plus], minus[:n_minus]
