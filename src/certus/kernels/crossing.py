"""Trees with crossing arcs under a trained model above first order: head automata scored by features, tied to the tree.

The lattices of ``head_lattices`` get their weights from the features of the parts that a transition completes; see
``parser`` for templates and sentences. Parts that put a word above its own head are forbidden.
"""

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT, role_codes, shape_code
from certus.kernels.features import side as node_side
from certus.kernels.head_automata import (
    DUAL,
    EPSILON,
    LIMIT,
    PRIMAL,
    Model,
    State,
    best_choices,
    first_multipliers,
    relax,
    removable,
)
from certus.kernels.head_lattices import restrict, skeleton
from certus.kernels.labels import name_arcs
from certus.kernels.parser import names_of, row_score, score_arcs, surviving_arcs, widened
from certus.kernels.steps import POLYAK, Memory, Rule
from certus.kernels.updates import append_features, neighbours

PARTS = 5  # kinds of parts, at most one of each for every word
ROLES = (2, 3, 3, 4, 4)  # of each kind


@njit(cache=True, nogil=True)
def codes_of(attribute, base, n, templates):
    """role_codes: what each node adds to the codes of siblings, grandparents, grand-siblings and tri-siblings."""
    _, sibling, grandparent, grandsibling, trisibling = templates
    return (role_codes(attribute, base, n, sibling), role_codes(attribute, base, n, grandparent),
            role_codes(attribute, base, n, grandsibling), role_codes(attribute, base, n, trisibling))  # fmt: skip


@njit(cache=True, nogil=True)
def scored_lattices(attribute, base, name, allowed, single, templates, bits, weight):
    """The lattices of the allowed arcs (n + 1, n + 1), weighted by all parts but the arcs themselves.

    name (n + 1, n + 1) are the names of arcs, 0 for none.
    """
    n = allowed.shape[0] - 1
    rows = n + 3
    codes = codes_of(attribute, base, n, templates)
    flat = (widened(codes[0]), widened(codes[1]), widened(codes[2]), widened(codes[3]))
    size, width = np.zeros(PARTS, dtype=np.uint64), np.zeros(PARTS, dtype=np.uint64)
    for kind in range(1, PARTS):
        size[kind] = codes[kind - 1].shape[1]
        width[kind] = flat[kind - 1].shape[0] // codes[kind - 1].shape[0]
    code = np.empty(width.max(), dtype=np.uint32)
    by_head, pairs = size[2] > 0 or size[3] > 0, size[4] > 0
    lat, added = skeleton(allowed, by_head, pairs, single)
    none = np.int64(ABSENT)
    # The parts of one arc: row 0 has no role s, row 1 s == ABSENT, then come the modifiers inside m outwards; column 0
    # has neither g nor t, then come the heads of h, then t == ABSENT and the modifiers.
    score = np.zeros((n + 3, 2 * n + 4))
    other = np.full(2 * n + 4, none)  # g or t, by column
    row = np.ones(n + 1, dtype=np.int64)  # of a modifier; h stands for none
    for side in range(1, 2 * n + 2):
        h = side // 2
        first = lat.state_ptr[side]
        columns = lat.width[h]
        for g in range(columns):
            other[1 + g] = lat.arc_head[lat.up[lat.up_ptr[h] + g]] if by_head and h > 0 else none
        other[columns + 1] = none
        row[h] = 1
        inside = 0
        last_arc = -1
        for v in range(first + 1, lat.state_ptr[side + 1] - 1):
            a = lat.state_arc[v]
            m = lat.arc_mod[a]
            if a != last_arc:
                last_arc = a
                low, high = min(h, m), max(h, m)
                for q in range(2 if single and h == 0 else inside + 2):
                    s = other[columns + q] if q > 0 else none
                    for p in range(columns + q if pairs and q > 1 else columns + 1):
                        kind = 4 if p > columns else (q > 0) + 2 * (p > 0)
                        g = other[p] if kind & 2 else none
                        score[q, p] = -np.inf if kind == 2 and g == m else 0.0
                        if kind == 0 or size[kind] == 0 or (kind & 2 and (g < 0 or g in (m, s))):
                            continue
                        x, y = (s, other[p]) if q > 0 else (g, none)
                        placed = int(h < m) * 4 + node_side(x, low, high)
                        if kind > 2:
                            placed = placed * 4 + node_side(y, low, high)
                        k = width[kind]
                        score[q, p] = row_score(
                            flat[kind - 1], size[kind], k, templates[kind][5], uint64(h + 2) * k,
                            uint64(rows + m + 2) * k, uint64(2 * rows + x + 2) * k, uint64(3 * rows + y + 2) * k,
                            shape_code(placed), names_of(name, h, m, s, y if kind == 4 else none, g), bits, weight,
                            code,
                        )  # fmt: skip
                inside += 1
                row[m] = inside + 1
                other[columns + 1 + inside] = m
            for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                q = row[added[e, 1]]
                beside = score[q, 0]
                if pairs and q > 1:
                    beside += score[q, columns + row[added[e, 0]]]
                w = lat.weight_ptr[side] + (e - lat.in_ptr[first]) * columns
                for g in range(columns):
                    lat.weight[w + g] = beside + score[0, 1 + g] + score[q, 1 + g]
    return lat


@njit(cache=True, nogil=True)
def most_disputed(lat, keep, dispute):
    """The kept arc that tree and automata differed on most often; -1 if no word has several heads left."""
    best = -1
    for m in range(1, lat.width.shape[0]):
        left = 0
        for i in range(lat.up_ptr[m], lat.up_ptr[m + 1]):
            left += keep[lat.up[i]]
        for i in range(lat.up_ptr[m], lat.up_ptr[m + 1]):
            a = lat.up[i]
            if left > 1 and keep[a] == 1 and (best < 0 or dispute[a] > dispute[best]):
                best = a
    return best


@njit(cache=True, nogil=True)
def rounding_error(n, largest, u):
    """What a dual value at multipliers u (2, A) may be off by: sums of up to PARTS * (n + 1) numbers, in any order."""
    size = 0.0
    for a in range(u.shape[1]):
        size = max(size, abs(u[0, a]), abs(u[1, a]))
    return EPSILON * (PARTS * (n + 1)) ** 2 * (largest + 2.0 * size)


@njit(cache=True, nogil=True)
def relaxed(lat, scores, single, rule, grain, u, heads):
    """Dual decomposition from estimated multipliers, then branch and bound.

    Returns (whether the tree is proved the best, its score, a bound on those of all trees, how many relaxations it
    took).

    scores (n+1, n+1) are those of the arcs; u (2, A) gets the multipliers of the least dual value of the last round.
    rule is (share of the tree, Polyak's factor, patience, shrink, iterations of a round, rounds, branchings). After a
    round that proves nothing, arcs that no better tree uses are removed; after the last one, the most disputed arc is
    required, and forbidden later on. All scores are multiples of grain, 0 if nothing is known: a better tree is better
    by a grain, and a bound less than a grain above a tree, rounding included, is a proof. heads are those of the best
    tree; its score is -inf if none was found.
    """
    share, factor, patience, shrink, iterations, rounds, branchings = rule
    n = lat.width.shape[0] - 1
    arcs = lat.arc_head.shape[0]
    arc = np.empty(arcs)
    largest = 0.0
    for a in range(arcs):
        arc[a] = scores[lat.arc_head[a], lat.arc_mod[a]]
        largest = max(largest, abs(arc[a]))
    for w in range(lat.weight.shape[0]):
        if lat.weight[w] > -np.inf:
            largest = max(largest, abs(lat.weight[w]))
    slack = 0.99 * grain
    tolerance = max(EPSILON * (PARTS * (n + 1)) ** 2 * largest, slack)
    steps = Rule(POLYAK, factor, patience, shrink)
    memory = Memory(max(largest, 1e-300), factor, 0.0, 0.0, np.inf, np.inf, 0.0)
    moved, value = np.zeros((2, arcs)), np.array([np.inf, -np.inf, 0.0])
    dispute = np.zeros(arcs)
    state = State(moved, u, heads, dispute, value)
    model = Model(lat, arc, share, single)
    first_multipliers(model, moved[0])
    keep = np.ones(arcs, dtype=np.uint8)
    copy = np.empty(arcs, dtype=np.uint8)
    rows = np.empty((iterations, 5))
    kept = np.empty((branchings, arcs), dtype=np.uint8)  # a stack of what is left to search
    multipliers = np.empty((branchings, 2, arcs))
    depth = branched = k = runs = 0
    error = 0.0
    bound = np.inf
    while True:
        value[DUAL] = np.inf
        status, _, _ = relax(model, state, steps, memory, tolerance, True, rows)
        k += 1
        runs += 1
        error = max(error, rounding_error(n, largest, moved), rounding_error(n, largest, u))
        if branched == 0:  # trees with an arc that was removed reach no more than slack above the best
            bound = min(bound, max(value[DUAL], value[PRIMAL] + (slack if runs > 1 else 0.0)) + error)
        if status != LIMIT:
            if depth == 0:
                proved = value[PRIMAL] > -np.inf and (grain == 0.0 or error < grain - slack)
                if proved and grain > 0.0:
                    bound = value[PRIMAL]
                return proved, value[PRIMAL], bound, runs
            k = 0
            depth -= 1
            keep[:] = kept[depth]
            moved[:] = multipliers[depth]
        else:
            if k >= rounds and branched == branchings:
                return False, value[PRIMAL], bound, runs
            moved[:] = u
            gone = removable(model, u, keep, value[PRIMAL] + slack, copy)
            for a in range(arcs):
                keep[a] *= copy[a] == 0
            chosen = most_disputed(lat, keep, dispute)
            if chosen >= 0 and (k >= rounds or (gone == 0 and branched < branchings)):
                k = 0
                multipliers[depth] = u
                for a in range(arcs):
                    kept[depth, a] = keep[a] * (a != chosen)
                    keep[a] *= a == chosen or lat.arc_mod[a] != lat.arc_mod[chosen]
                depth += 1
                branched += 1
        if k == 0:
            dispute[:] = 0.0
        model = Model(restrict(lat, keep, True), arc, share, single)


@njit(cache=True, nogil=True)
def pruned_lattices(attribute, coarse, base, n, cascade, names, templates, bits, weight, index):
    """The scored lattices of the arcs that a cascade leaves, and the scores of the arcs (n + 1, n + 1).

    cascade are the arguments of surviving_arcs from longest to single, names those of name_arcs from seen to weight.
    """
    allowed = surviving_arcs(attribute, coarse, base, n, *cascade, index)
    arc = np.empty((n + 1, n + 1))
    score_arcs(attribute, coarse, base, allowed, templates[0], bits, weight, index, arc)
    name = np.empty((n + 1, n + 1), dtype=np.uint32)
    name_arcs(attribute, coarse, base, allowed, *names, index, name)
    return scored_lattices(attribute, base, name, allowed, cascade[11], templates, bits, weight), arc


@njit(cache=True, nogil=True)
def choice_features(attribute, coarse, base, name, lat, scores, share, u, templates, bits, index, gold):
    """What the head automata choose at multipliers u (2, A): no tree, but the best in a larger set (LR 6.6).

    scores (n+1, n+1) are those of the arcs. Returns (arcs that are not in the tree gold, features of gold, features of
    the choice), without the parts that both have.
    """
    n = gold.shape[0] - 1
    arcs = lat.arc_head.shape[0]
    value = np.empty(arcs)
    for a in range(arcs):
        value[a] = (1.0 - share) * scores[lat.arc_head[a], lat.arc_mod[a]] - u[0, a]
    used = np.zeros(arcs, dtype=np.int64)
    column = np.zeros(n + 1, dtype=np.int64)
    best_choices(lat, value, -u[1], used, column)
    none = np.int64(ABSENT)
    part = np.full((n + used.sum(), 5), none)  # h, m, s, t, g: of gold, then of the choice
    inner, second = np.empty(n + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    neighbours(gold, inner, second)
    for m in range(1, n + 1):
        part[m - 1, 0], part[m - 1, 1], part[m - 1, 2], part[m - 1, 3] = gold[m], m, inner[m], second[m]
        part[m - 1, 4] = gold[gold[m]] if gold[m] > 0 else none
    shared = np.zeros(part.shape[0], dtype=np.int64)  # kinds of parts that gold and the choice both have, bit by bit
    count = n
    wrong = 0
    for side in range(1, 2 * n + 2):
        h = side // 2
        rank = -1
        for v in range(lat.state_ptr[side] + 1, lat.state_ptr[side + 1] - 1):
            a = lat.state_arc[v]
            if used[a] == 1 and lat.state_rank[v] != rank:
                part[count, 0], part[count, 1] = h, lat.arc_mod[a]
                if rank >= 0:
                    part[count, 2], part[count, 3] = part[count - 1, 1], part[count - 1, 2]
                if h > 0 and lat.by_head[0] == 1:
                    part[count, 4] = lat.arc_head[lat.up[lat.up_ptr[h] + column[h]]]
                rank = lat.state_rank[v]
                twin = lat.arc_mod[a] - 1
                if part[twin, 0] == h:
                    beside, above = part[count, 2] == part[twin, 2], part[count, 4] == part[twin, 4]
                    beyond = beside and part[count, 3] == part[twin, 3]
                    shared[count] = 1 + 2 * beside + 4 * above + 8 * (beside and above) + 16 * beyond
                    shared[twin] = shared[count]
                wrong += part[twin, 0] != h
                count += 1
    codes = (role_codes(attribute, base, n, templates[0]), *codes_of(attribute, base, n, templates))
    feature = np.empty(count * index.shape[0] * PARTS, dtype=np.uint64)
    four = np.empty(4, dtype=np.int64)
    found = of_gold = np.int64(0)
    for i in range(count):
        h, m, s, t, g = part[i, 0], part[i, 1], part[i, 2], part[i, 3], part[i, 4]
        for kind in range(PARTS):
            if shared[i] >> kind & 1 or (kind & 2 and g < 0) or (kind == 4 and s < 0):
                continue
            four[0], four[1], four[2], four[3] = h, m, g if kind == 2 else s, t if kind == 4 else g
            near = none if kind == 0 or kind == 2 else s
            names = names_of(name, h, m, near, t if kind == 4 else none, g if kind & 2 else none)
            found = append_features(codes[kind], coarse, base, four[: ROLES[kind]], names, templates[kind], bits, index,
                                    feature, found)  # fmt: skip
        if i == n - 1:
            of_gold = found
    return wrong, feature[:of_gold], feature[of_gold:found]
