"""Scores of the parts of trees from features, cascades of filters, and the best tree.

One word m of a tree has one part of each kind, named by the roles its templates use: the arc "hm", the sibling "hms"
(s the modifier next inside m, ABSENT if there is none), the grandparent "hmg", the grand-sibling "hmsg" and the
tri-sibling "hmst".
Templates come as one tuple per kind, (ptr, role, offset, column, seed, group), in the order arc, sibling,
grandparent, grand-sibling, tri-sibling; a kind without templates is not part of the model.
"""

import numpy as np
from numba import uint32, uint64

from certus.kernels import arborescence, eisner
from certus.kernels.compiling import njit
from certus.kernels.features import (
    ABSENT,
    arc_shape,
    count_code,
    hash_between,
    hash_codes,
    role_codes,
    shape_code,
    side,
    total_weight,
)
from certus.kernels.labels import name_arcs
from certus.kernels.projective_forest import index_arcs

_LANES = 8
_BESIDE, _BEYOND, _ABOVE = uint32(0x85EBCA77), uint32(0x27D4EB2F), uint32(0xC2B2AE3D)


@njit(cache=True, nogil=True)
def score_arcs(attribute, coarse, base, allowed, templates, bits, weight, index, out):
    """out[h, m] <- score of each allowed arc; -inf elsewhere.

    Goes outward from each head, so that what lies between head and modifier grows by a word at a time.
    """
    n = allowed.shape[0] - 1
    size = n + 3
    codes = role_codes(attribute, base, n, templates)
    group = templates[5]
    plain, single, n_codes = uint64(group[1]), uint64(group[2]), uint64(codes.shape[1])
    flat = codes.reshape(codes.size)
    code = np.empty(n_codes, dtype=np.uint32)
    times = np.zeros(64, dtype=np.int64)
    met = np.empty(64, dtype=np.int64)
    for h in range(n + 1):
        out[h, 0] = out[h, h] = -np.inf
        a = uint64(h + 2) * n_codes
        for right in range(2):
            n_met = 0
            for d in range(1, n - h + 1 if right else h + 1):
                m = h + d if right else h - d
                tag = coarse[base + m]
                if allowed[h, m]:
                    b = uint64(size + m + 2) * n_codes
                    for t in range(n_codes):
                        code[t] = flat[a + t] + flat[b + t]
                    shape = arc_shape(d, right)
                    if plain < single:
                        counted = count_code(times[coarse[base + h]], times[tag])
                        for t in range(plain, single):
                            code[t] += counted
                    hash_codes(code, single, uint32(0), bits, index)
                    hash_codes(code, single, shape, bits, index[single:])
                    count = single + single
                    if single < n_codes:
                        for k in range(n_met):
                            count = hash_between(code, single, n_codes, met[k], shape, bits, index, count)
                    out[h, m] = total_weight(weight, index, count)
                else:
                    out[h, m] = -np.inf
                if times[tag] == 0:
                    met[n_met] = tag
                    n_met += 1
                times[tag] += 1
            for k in range(n_met):
                times[met[k]] = 0


@njit(cache=True, nogil=True)
def names_of(name, h, m, s, t, g):
    """The names of the arcs of a part as one number; ABSENT for a node that it does not have."""
    code = name[h, m]
    if s != ABSENT:
        code += uint32(name[h, s] * _BESIDE)
    if t != ABSENT:
        code += uint32(name[h, t] * _BEYOND)
    if g != ABSENT:
        code += uint32(name[g, h] * _ABOVE)
    return uint32(code)


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
def best_tree(arc, crossing, single, heads):
    """Best tree over arc scores; returns its value, -inf if there is none.

    crossing is None for projective trees, here and below: what they do not need is not even compiled.
    """
    n = arc.shape[0] - 1
    if crossing is None:
        value = np.empty(1)
        lengths = np.empty(1, dtype=np.int64)
        lengths[0] = n
        eisner.decode(arc.reshape(1, n + 1, n + 1), lengths, single, heads.reshape(1, n + 1), value)
        return value[0]
    n_floats, n_ints = arborescence.work_sizes(n)
    floats, ints = np.empty(n_floats), np.empty(n_ints, dtype=np.int64)
    return arborescence.best_heads(arc.reshape(-1), n + 1, n, single, heads, floats, ints)


@njit(cache=True, nogil=True)
def max_marginals(arc, crossing, single, out):
    """out[h, m] <- value of the best tree with the arc; returns the value of the best tree."""
    n = arc.shape[0] - 1
    if crossing is None:
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
    best_few = np.empty(min(most, n + 1))
    for m in range(1, n + 1):
        count = 0
        for h in range(n + 1):
            score = through[h, m]
            if not allowed[h, m] or score < best - width:
                allowed[h, m] = False
                continue
            k = min(count, best_few.shape[0] - 1)
            count += 1
            if k == count - 1 or score > best_few[k]:
                while k > 0 and best_few[k - 1] < score:
                    best_few[k] = best_few[k - 1]
                    k -= 1
                best_few[k] = score
        if count > most:
            cut = best_few[most - 1]
            for h in range(n + 1):
                allowed[h, m] = allowed[h, m] and through[h, m] >= cut


@njit(cache=True, nogil=True)
def surviving_arcs(attribute, coarse, base, n, longest, first, first_bits, first_weight, first_width,
                   second, second_bits, second_weight, second_width, most, crossing, single, index):  # fmt: skip
    """allowed (n + 1, n + 1): arcs that pass the length dictionary and two filters by max-marginals.

    A dictionary that leaves no tree is passed over. A filter keeps the best tree, so there is always one.
    """
    allowed = short_arcs(coarse, base, n, longest)
    arc = np.empty((n + 1, n + 1))
    through = np.empty((n + 1, n + 1))
    score_arcs(attribute, coarse, base, allowed, first, first_bits, first_weight, index, arc)
    best = max_marginals(arc, crossing, single, through)
    if best == -np.inf:
        for h in range(n + 1):
            for m in range(1, n + 1):
                allowed[h, m] = h != m
        score_arcs(attribute, coarse, base, allowed, first, first_bits, first_weight, index, arc)
        best = max_marginals(arc, crossing, single, through)
    keep_arcs(through, best, first_width, 2 * most, allowed)
    if second[4].shape[0]:
        score_arcs(attribute, coarse, base, allowed, second, second_bits, second_weight, index, arc)
        best = max_marginals(arc, crossing, single, through)
        keep_arcs(through, best, second_width, most, allowed)
    return allowed


@njit(cache=True, nogil=True)
def widened(codes):
    """Rows of role_codes one after the other, each filled up with zeros to whole registers, _LANES codes in one."""
    n_codes = codes.shape[1]
    width = (n_codes + _LANES - 1) // _LANES * _LANES
    flat = np.zeros(codes.shape[0] * width, dtype=np.uint32)
    for i in range(codes.shape[0]):
        for t in range(n_codes):
            flat[i * width + t] = codes[i, t]
    return flat


@njit(cache=True, nogil=True)
def row_score(flat, n_codes, width, named, a, b, c, d, shape, names, bits, weight, code):
    """Sum of the weights of a part's features, n_codes of them; a .. d are where the rows of its roles begin in flat.

    Rows are width codes wide (see widened). Codes named[0] .. named[1] - 1 take in the names of the part's arcs.
    """
    for t in range(width):
        code[t] = flat[a + t] + flat[b + t] + flat[c + t] + flat[d + t]
    for t in range(uint64(named[0]), uint64(named[1])):
        code[t] += names
    hash_codes(code, width, shape, bits, code)
    return total_weight(weight, code, n_codes)


@njit(cache=True, nogil=True)
def score_trisiblings(h, m, modifiers, rows, flat, n_codes, width, named, name, bits, weight, code, out):
    """out[p, 1 + r] <- score of the tri-sibling h, m, modifiers[p], modifiers[r]; in column 0 there is no third."""
    low, high = min(h, m), max(h, m)
    degree = modifiers.shape[0]
    none = np.int64(ABSENT)
    shape = int(h < m) * 16 + 8
    for p in range(degree):
        s = np.int64(modifiers[p])
        if s <= low or s >= high:
            continue
        for r in range(-1, degree):
            t = np.int64(modifiers[r]) if r >= 0 else none
            if r >= 0 and (t <= low or t >= high or abs(t - h) >= abs(s - h)):
                out[p, 1 + r] = -np.inf
                continue
            out[p, 1 + r] = row_score(
                flat, n_codes, width, named, uint64(h + 2) * width, uint64(rows + m + 2) * width,
                uint64(2 * rows + s + 2) * width, uint64(3 * rows + t + 2) * width,
                shape_code(shape + side(t, low, high)), names_of(name, h, m, s, t, none), bits, weight, code,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def best_above_first(attribute, coarse, base, name, arc, allowed, single, templates, bits, weight, heads):
    """Best projective tree of a model above first order over the allowed arcs; returns its value.

    DEP 5.4 (Model 1) over lists of arcs. Complete spans C^g(h, e), sibling spans S^h(i, j) and incomplete spans
    I^g(h, m) are as in kernels.projective_forest; slot a of the charts is an arc (g, h), and one more for node 0. With
    tri-siblings, incomplete spans also know the sibling next inside m. arc (n + 1, n + 1) are the scores of the arcs
    alone, with the cost of errors in it if there is one, and name (n + 1, n + 1) their names. Ties go to the smallest
    index.
    """
    n = allowed.shape[0] - 1
    _, sibling, grandparent, grandsibling, trisibling = templates
    arc_id, out_ptr, out, into_ptr, into = index_arcs(allowed)
    arcs = out.shape[0]
    size = n + 1
    s_codes = role_codes(attribute, base, n, sibling)
    g_codes = role_codes(attribute, base, n, grandparent)
    x_codes = role_codes(attribute, base, n, grandsibling)
    t_codes = role_codes(attribute, base, n, trisibling)
    s_flat, g_flat, x_flat, t_flat = widened(s_codes), widened(g_codes), widened(x_codes), widened(t_codes)
    s_n, g_n, x_n, t_n = (uint64(s_codes.shape[1]), uint64(g_codes.shape[1]),
                          uint64(x_codes.shape[1]), uint64(t_codes.shape[1]))  # fmt: skip
    s_w, g_w, x_w, t_w = (uint64(s_flat.shape[0] // s_codes.shape[0]), uint64(g_flat.shape[0] // g_codes.shape[0]),
                          uint64(x_flat.shape[0] // x_codes.shape[0]),
                          uint64(t_flat.shape[0] // t_codes.shape[0]))  # fmt: skip
    s_named, g_named, x_named, t_named = sibling[5], grandparent[5], grandsibling[5], trisibling[5]
    rows = n + 3
    none = np.int64(ABSENT)
    s_none, g_none = uint64(3 * rows) * s_w, uint64(3 * rows) * g_w
    code = np.empty(max(s_w, g_w, x_w, t_w), dtype=np.uint32)

    # One cell per arc and place of another modifier of its head, or of another head of its head.
    pair_ptr = np.zeros(size + 1, dtype=np.int64)
    for h in range(size):
        pair_ptr[h + 1] = pair_ptr[h] + np.int64(out_ptr[h + 1] - out_ptr[h]) * (out_ptr[h + 1] - out_ptr[h])
    between = np.full(pair_ptr[size], -np.inf)
    between_at = np.empty(pair_ptr[size], dtype=np.int32)
    s_score = np.full(pair_ptr[size], np.nan)
    inc_ptr = np.zeros(arcs + 2, dtype=np.int64)
    for a in range(arcs + 1):
        h = out[a] if a < arcs else 0
        inc_ptr[a + 1] = inc_ptr[a] + out_ptr[h + 1] - out_ptr[h]
    inc = np.full(inc_ptr[arcs + 1], -np.inf)
    inc_at = np.empty(inc_ptr[arcs + 1], dtype=np.int32)
    # With tri-siblings: one cell per slot, modifier and modifier inside it, the first of them for none.
    two_ptr = np.zeros(arcs + 2, dtype=np.int64)
    most = 0
    if t_n:
        for a in range(arcs + 1):
            degree = inc_ptr[a + 1] - inc_ptr[a]
            two_ptr[a + 1] = two_ptr[a] + degree * (degree + 1)
            most = max(most, degree)
    two = np.full(two_ptr[arcs + 1], -np.inf)
    two_at = np.empty(two_ptr[arcs + 1], dtype=np.int32)
    t_score = np.empty((most, most + 1))
    comp = np.full(2 * (arcs + 1) * size, -np.inf)
    comp_at = np.empty(2 * (arcs + 1) * size, dtype=np.int32)
    first_score = np.empty(arcs)  # the sibling score of an arc's modifier if it is innermost
    for h in range(size):
        for a in range(out_ptr[h], out_ptr[h + 1]):
            m = np.int64(out[a])
            first_score[a] = row_score(
                s_flat, s_n, s_w, s_named, uint64(h + 2) * s_w, uint64(rows + m + 2) * s_w, uint64(2 * rows) * s_w,
                s_none, shape_code(int(h < m) * 4), names_of(name, h, m, none, none, none), bits, weight, code,
            )  # fmt: skip
    side_size = (arcs + 1) * size
    for i in range(n, 0 if single else -1, -1):
        if i > 0:
            for w in range(into_ptr[i], into_ptr[i + 1]):
                slot = arc_id[into[w], i]
                comp[slot * size + i] = 0.0
                comp[side_size + slot * size + i] = 0.0
        for j in range(i + 1, n + 1):
            if i > 0:
                for w in range(into_ptr[i], into_ptr[i + 1]):
                    h = into[w]
                    if arc_id[h, j] < 0 or (i < h and h < j) or (single and h == 0):
                        continue
                    left = uint64(side_size + arc_id[h, i] * size)
                    right = uint64(arc_id[h, j] * size + 1)
                    best = -np.inf
                    at = i
                    for r in range(uint64(i), uint64(j)):
                        score = comp[left + r] + comp[right + r]
                        if score > best:
                            best = score
                            at = np.int64(r)
                    degree = np.int64(out_ptr[h + 1] - out_ptr[h])
                    cell = pair_ptr[h] + (arc_id[h, i] - out_ptr[h]) * degree + arc_id[h, j] - out_ptr[h]
                    between[cell] = best
                    between_at[cell] = at
            for d in range(2):
                h, m = (i, j) if d else (j, i)
                if m == 0:
                    continue
                step = 1 if d else -1
                start = out_ptr[h]
                degree = np.int64(out_ptr[h + 1] - start)
                if arc_id[h, m] >= 0:
                    own = np.int64(arc_id[h, m])
                    place = own - start
                    inner = comp[(1 - d) * side_size + own * size + h + step]
                    if t_n:
                        score_trisiblings(
                            h, m, out[start : start + degree], rows, t_flat, t_n, t_w, t_named, name, bits, weight,
                            code, t_score,
                        )  # fmt: skip
                    for w in range(into_ptr[h], into_ptr[h + 1] if h > 0 else into_ptr[h] + 1):
                        g = np.int64(into[w]) if h > 0 else np.int64(-1)
                        if i <= g and g <= j:
                            continue
                        slot = np.int64(arc_id[g, h]) if h > 0 else np.int64(arcs)
                        above = arc[h, m]
                        if h > 0:
                            above += row_score(
                                g_flat, g_n, g_w, g_named, uint64(h + 2) * g_w, uint64(rows + m + 2) * g_w,
                                uint64(2 * rows + g + 2) * g_w, g_none, shape_code(d * 4 + side(g, i, j)),
                                names_of(name, h, m, none, none, g), bits, weight, code,
                            )  # fmt: skip
                        best = -np.inf
                        at = -1
                        for p in range(-1, degree):  # -1: m is innermost
                            s = np.int64(out[start + p]) if p >= 0 else none
                            if p < 0:
                                score = inner + first_score[own]
                            elif s <= i or s >= j:
                                continue
                            else:
                                low = min(p, place)
                                cell = pair_ptr[h] + low * degree + (p + place - low)
                                score = between[cell] + inc[inc_ptr[slot] + p]
                            if score == -np.inf:
                                continue
                            if p >= 0:
                                if t_n:
                                    cells = two_ptr[slot] + p * (degree + 1)
                                    inside = -np.inf
                                    inside_at = -1
                                    for r in range(-1, degree):
                                        known = two[cells + 1 + r] + t_score[p, 1 + r]
                                        if known > inside:
                                            inside = known
                                            inside_at = r
                                    score = between[cell] + inside
                                    two_at[two_ptr[slot] + place * (degree + 1) + 1 + p] = inside_at
                                if np.isnan(s_score[cell]):
                                    s_score[cell] = row_score(
                                        s_flat, s_n, s_w, s_named, uint64(h + 2) * s_w, uint64(rows + m + 2) * s_w,
                                        uint64(2 * rows + s + 2) * s_w, s_none, shape_code(d * 4 + 2),
                                        names_of(name, h, m, s, none, none), bits, weight, code,
                                    )  # fmt: skip
                                score += s_score[cell]
                            score += above
                            if h > 0 and x_n:
                                score += row_score(
                                    x_flat, x_n, x_w, x_named, uint64(h + 2) * x_w, uint64(rows + m + 2) * x_w,
                                    uint64(2 * rows + s + 2) * x_w, uint64(3 * rows + g + 2) * x_w,
                                    shape_code(d * 16 + 4 * side(s, i, j) + side(g, i, j)),
                                    names_of(name, h, m, s, none, g), bits, weight, code,
                                )  # fmt: skip
                            if t_n:
                                two[two_ptr[slot] + place * (degree + 1) + 1 + p] = score
                            if score > best:
                                best = score
                                at = p
                        inc[inc_ptr[slot] + place] = best
                        inc_at[inc_ptr[slot] + place] = at
                if h == 0 and j < n:
                    continue
                for w in range(into_ptr[h], into_ptr[h + 1] if h > 0 else into_ptr[h] + 1):
                    g = into[w] if h > 0 else -1
                    if i <= g and g <= j:
                        continue
                    slot = np.int64(arc_id[g, h]) if h > 0 else np.int64(arcs)
                    best = -np.inf
                    at = -1
                    for p in range(degree):
                        last = out[start + p]
                        if last < i or last > j or (last - h) * step < 0:
                            continue
                        score = inc[inc_ptr[slot] + p] + comp[d * side_size + (start + p) * size + m]
                        if score > best:
                            best = score
                            at = p
                    comp[d * side_size + slot * size + m] = best
                    comp_at[d * side_size + slot * size + m] = at

    heads[0] = -1
    stack = np.empty((2 * n + 4, 4), dtype=np.int64)  # complete span: side, slot, head, end
    top = 0
    value = -np.inf
    if single:
        at = -1
        for a in range(out_ptr[0], out_ptr[1]):
            m = out[a]
            score = arc[0, m] + first_score[a] + comp[a * size + 1] + comp[side_size + a * size + n]
            if score > value:
                value = score
                at = a
        if value == -np.inf:
            return value
        heads[out[at]] = 0
        for d in range(2):
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = d, at, out[at], n if d else 1
            top += 1
    else:
        value = comp[side_size + arcs * size + n]
        if value == -np.inf:
            return value
        stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = 1, arcs, 0, n
        top += 1
    while top:
        top -= 1
        d, slot, h, end = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        if h == end:
            continue
        start = out_ptr[h]
        degree = np.int64(out_ptr[h + 1] - start)
        p = np.int64(comp_at[d * side_size + slot * size + end])
        m = np.int64(out[start + p])
        stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = d, start + p, m, end
        top += 1
        q = np.int64(inc_at[inc_ptr[slot] + p])
        while True:
            heads[m] = h
            if q < 0:
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = 1 - d, start + p, m, h + (1 if d else -1)
                top += 1
                break
            s = np.int64(out[start + q])
            low = min(p, q)
            r = np.int64(between_at[pair_ptr[h] + low * degree + (p + q - low)])
            first, second = (s, m) if d else (m, s)
            near, far = (start + q, start + p) if d else (start + p, start + q)
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = 1, near, first, r
            stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2], stack[top + 1, 3] = 0, far, second, r + 1
            top += 2
            inside_at = two_at[two_ptr[slot] + p * (degree + 1) + 1 + q] if t_n else inc_at[inc_ptr[slot] + q]
            p, m, q = q, s, np.int64(inside_at)
    return value


@njit(cache=True, nogil=True, inline="always")
def scored_arcs(attribute, coarse, base, n, cascade, templates, bits, weight, index):
    """The arcs (n + 1, n + 1) that a cascade leaves, and their scores by a model, -inf for the others.

    cascade are the arguments of surviving_arcs from longest to single.
    """
    allowed = surviving_arcs(attribute, coarse, base, n, *cascade, index)
    arc = np.empty((n + 1, n + 1))
    score_arcs(attribute, coarse, base, allowed, templates[0], bits, weight, index, arc)
    return allowed, arc


@njit(cache=True, nogil=True)
def parse_arcs(attribute, coarse, base, length, cascade, templates, bits, weight, index, start, heads, value,
               square, kept):  # fmt: skip
    """Parse a batch with a first-order model: heads of sentence s go to heads[start[s] : start[s] + length[s] + 1].

    value[s] gets the score of the tree, kept[square[s] : square[s + 1]] which arcs the cascade left.
    """
    for s in range(length.shape[0]):
        own = heads[start[s] : start[s] + length[s] + 1]
        own[0] = -1
        value[s] = 0.0
        if length[s] > 0:
            allowed, arc = scored_arcs(attribute, coarse, base[s], length[s], cascade, templates, bits, weight, index)
            kept[square[s] : square[s + 1]] = allowed.reshape(-1)
            value[s] = best_tree(arc, cascade[10], cascade[11], own)


@njit(cache=True, nogil=True)
def parse_parts(attribute, coarse, base, length, cascade, names, templates, bits, weight, index, start, heads, value,
                square, kept):  # fmt: skip
    """The same with a projective model above first order.

    names are the arguments of name_arcs from seen to weight.
    """
    for s in range(length.shape[0]):
        n = length[s]
        own = heads[start[s] : start[s] + n + 1]
        own[0] = -1
        value[s] = 0.0
        if n > 0:
            allowed, arc = scored_arcs(attribute, coarse, base[s], n, cascade, templates, bits, weight, index)
            kept[square[s] : square[s + 1]] = allowed.reshape(-1)
            name = np.empty((n + 1, n + 1), dtype=np.uint32)
            name_arcs(attribute, coarse, base[s], allowed, *names, index, name)
            value[s] = best_above_first(
                attribute, coarse, base[s], name, arc, allowed, cascade[11], templates, bits, weight, own
            )
