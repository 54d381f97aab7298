"""Trees with crossing arcs under a trained model above first order: head automata scored by features, tied to the tree.

The lattices of ``head_lattices`` get their weights from the features of the parts that a transition completes; see
``parts`` for kinds of parts and names of arcs, ``tuples`` for sentences and models. Parts that put a word above its own
head are forbidden.
"""

import numpy as np

from certus.kernels.arcs import name_arcs, score_arcs
from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT
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
from certus.kernels.parser import surviving_arcs
from certus.kernels.part_scores import COLUMNS, put, score_rows
from certus.kernels.parts import (
    ARC,
    GRANDPARENT,
    GRANDSIBLING,
    KINDS,
    NO_PART,
    SIBLING,
    TRISIBLING,
    append_features,
    most_features,
    names_of,
    same_part,
    scorer_of,
    tree_parts,
    word_parts,
)
from certus.kernels.steps import POLYAK, Memory, Rule
from certus.kernels.tuples import LinearModel


@njit(cache=True, nogil=True)
def list_crossing(lat, names, single, wanted):
    """The parts of the kinds wanted (KINDS,) that head automata score, as rows (KINDS, :, 7) for kernels.part_scores.

    Returns (table, stride, score, rows, how many rows there are of each kind). The parts of arc a are a table in score
    from table[a] on, of rows ``stride[a]`` wide: row 0 has no role s, row 1 s == ABSENT, then come the modifiers inside
    m outwards; column 0 has neither g nor t, then come the heads of h, then t == ABSENT and the modifiers.
    """
    arc_head, arc_mod, up, up_ptr = lat.arc_head, lat.arc_mod, lat.up, lat.up_ptr
    state_ptr, state_arc, width = lat.state_ptr, lat.state_arc, lat.width
    by_head, pairs = lat.by_head[0] == 1, wanted[TRISIBLING]
    n, none = width.shape[0] - 1, np.int64(ABSENT)
    table, stride = np.zeros(arc_head.shape[0], dtype=np.int64), np.zeros(arc_head.shape[0], dtype=np.int64)
    cells = 0
    for side in range(1, 2 * n + 2):
        inside = 0
        last_arc = -1
        for v in range(state_ptr[side] + 1, state_ptr[side + 1] - 1):
            a = state_arc[v]
            if a != last_arc:
                last_arc = a
                table[a], stride[a] = cells, width[side // 2] + inside + 2
                cells += (inside + 2) * stride[a]
                inside += 1
    score = np.zeros(cells)
    rows, count = np.empty((KINDS, cells, COLUMNS), dtype=np.int64), np.zeros(KINDS, dtype=np.int64)
    other = np.full(2 * n + 4, none)  # g or t, by column
    for side in range(1, 2 * n + 2):
        h = side // 2
        columns = width[h]
        for g in range(columns):
            other[1 + g] = arc_head[up[up_ptr[h] + g]] if by_head and h > 0 else none
        other[columns + 1] = none
        inside = 0
        last_arc = -1
        for v in range(state_ptr[side] + 1, state_ptr[side + 1] - 1):
            a = state_arc[v]
            if a == last_arc:
                continue
            last_arc = a
            m = arc_mod[a]
            low, high = min(h, m), max(h, m)
            for q in range(2 if single and h == 0 else inside + 2):
                s = other[columns + q] if q > 0 else none
                for p in range(columns + q if pairs and q > 1 else columns + 1):
                    kind = TRISIBLING if p > columns else (q > 0) * SIBLING + (p > 0) * GRANDPARENT
                    above = kind in (GRANDPARENT, GRANDSIBLING)
                    g = other[p] if above else none
                    cell = table[a] + q * stride[a] + p
                    if kind == GRANDPARENT and g == m:
                        score[cell] = -np.inf
                    if kind == ARC or not wanted[kind] or (above and (g < 0 or g in (m, s))):
                        continue
                    x, y = (s, other[p]) if q > 0 else (g, none)
                    if kind == SIBLING:
                        y = none
                    placed = int(h < m) * 4 + node_side(x, low, high)
                    if kind >= GRANDSIBLING:
                        placed = placed * 4 + node_side(y, low, high)
                    named = names_of(names, h, m, s, y if kind == TRISIBLING else none, g)
                    count[kind] = put(rows[kind], count[kind], (h, m, x, y), placed, named, cell)
            inside += 1
            other[columns + 1 + inside] = m
    return table, stride, score, rows, count


@njit(cache=True, nogil=True)
def scored_lattices(sentence, names, allowed, single, model):
    """The lattices of the allowed arcs (n + 1, n + 1), weighted by all parts but the arcs themselves."""
    wanted = np.zeros(KINDS, dtype=np.bool_)
    for kind in range(SIBLING, KINDS):
        wanted[kind] = model.templates[kind].seed.shape[0] > 0
    by_head, pairs = wanted[GRANDPARENT] or wanted[GRANDSIBLING], wanted[TRISIBLING]
    lat, added = skeleton(allowed, by_head, pairs, single)
    table, stride, score, rows, count = list_crossing(lat, names, single, wanted)
    for kind in range(SIBLING, KINDS):
        score_rows(sentence, model.templates[kind], model.bits, model.weight, rows[kind, : count[kind]], score)
    row = np.ones(lat.width.shape[0], dtype=np.int64)  # of a modifier; h stands for none
    for side in range(1, lat.state_ptr.shape[0] - 1):
        h = side // 2
        first = lat.state_ptr[side]
        columns = lat.width[h]
        row[h] = 1
        inside = 0
        last_arc = -1
        for v in range(first + 1, lat.state_ptr[side + 1] - 1):
            a = lat.state_arc[v]
            if a != last_arc:
                last_arc = a
                inside += 1
                row[lat.arc_mod[a]] = inside + 1
            for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                q = row[added[e, 1]]
                own = table[a] + q * stride[a]
                beside = score[own]
                if pairs and q > 1:
                    beside += score[own + columns + row[added[e, 0]]]
                w = lat.weight_ptr[side] + (e - lat.in_ptr[first]) * columns
                for g in range(columns):
                    lat.weight[w + g] = beside + score[table[a] + 1 + g] + score[own + 1 + g]
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
    """What a dual value at multipliers u (2, A) may be off by: sums of up to KINDS * (n + 1) numbers, in any order."""
    size = 0.0
    for a in range(u.shape[1]):
        size = max(size, abs(u[0, a]), abs(u[1, a]))
    return EPSILON * (KINDS * (n + 1)) ** 2 * (largest + 2.0 * size)


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
    tolerance = max(EPSILON * (KINDS * (n + 1)) ** 2 * largest, slack)
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
def pruned_lattices(sentence, cascade, namer, model):
    """The scored lattices of the arcs that a cascade leaves, and the scores of the arcs (n + 1, n + 1)."""
    n = sentence.n
    allowed = surviving_arcs(sentence, cascade)
    arc = np.empty((n + 1, n + 1))
    score_arcs(sentence, allowed, LinearModel(model.templates[0], model.bits, model.weight), arc)
    names = np.empty((n + 1, n + 1), dtype=np.uint32)
    name_arcs(sentence, allowed, namer, names)
    return scored_lattices(sentence, names, allowed, cascade.single, model), arc


@njit(cache=True, nogil=True)
def choice_features(sentence, names, model, lat, scores, share, u, gold):
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
    right = tree_parts(gold)
    chosen = np.empty((used.sum(), KINDS, 5), dtype=np.int32)
    count = wrong = 0
    for side in range(1, 2 * n + 2):
        h = side // 2
        above = h > 0 and lat.by_head[0] == 1
        g = lat.arc_head[lat.up[lat.up_ptr[h] + column[h]]] if above else np.int64(ABSENT)
        rank = -1
        s = t = np.int64(ABSENT)
        for v in range(lat.state_ptr[side] + 1, lat.state_ptr[side + 1] - 1):
            a = lat.state_arc[v]
            if used[a] == 1 and lat.state_rank[v] != rank:
                m = lat.arc_mod[a]
                wrong += gold[m] != h
                word_parts(h, m, s, t, g, chosen[count])
                s, t = m, s
                rank = lat.state_rank[v]
                count += 1
    for i in range(count):
        for kind in range(KINDS):
            own = chosen[i, kind]
            if same_part(own, right[own[2], kind]):  # with several heads m has the part of gold from one of them only
                own[0] = right[own[2], kind, 0] = NO_PART
    scorer = scorer_of(sentence, names, model)
    index = np.empty(most_features(model), dtype=np.uint64)
    room = np.empty((2, max(n, count) * KINDS * index.shape[0]), dtype=np.uint64)
    plus = minus = 0
    for m in range(1, n + 1):
        for kind in range(KINDS):
            plus = append_features(scorer, right[m, kind], index, room[0], plus)
    for i in range(count):
        for kind in range(KINDS):
            minus = append_features(scorer, chosen[i, kind], index, room[1], minus)
    return wrong, room[0, :plus].copy(), room[1, :minus].copy()
