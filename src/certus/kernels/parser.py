"""Cascades of filters, and the best trees of a trained model: the fast path through the parts of kernels.parts.

Parts, kinds, names of arcs and models of trees are as there; sentences, models and cascades as in kernels.tuples.
Scores of parts are computed where the best tree is searched, from the codes of their nodes (kernels.features).
Functions marked inline are part of their caller: compiled once, not once more on every way that leads to them.
"""

from typing import Any, NamedTuple

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
from certus.kernels.parts import names_of
from certus.kernels.projective_forest import index_arcs
from certus.kernels.tuples import LinearModel, Sentence

_LANES = 8


@njit(cache=True, nogil=True)
def score_arcs(sentence, allowed, model, out):
    """out[h, m] <- score of each allowed arc; -inf elsewhere.

    Goes outward from each head, so that what lies between head and modifier grows by a word at a time.
    """
    n = allowed.shape[0] - 1
    templates, bits, weight = model
    coarse, base = sentence.coarse, sentence.base
    size = n + 3
    codes = role_codes(sentence, templates)
    index = np.empty(templates.max_features, dtype=np.uint32)
    plain, single, n_codes = uint64(templates.named), uint64(templates.counted), uint64(codes.shape[1])
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
                    hash_codes(code, single, uint32(0), bits, index, uint64(0))
                    hash_codes(code, single, shape, bits, index, single)
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
def short_arcs(sentence, longest):
    """allowed (n + 1, n + 1): arcs no longer than longest[right, coarse tag of h, coarse tag of m]."""
    coarse, base, n = sentence.coarse, sentence.base, sentence.n
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
def keep_likely_arcs(through, best, width, heads, allowed):
    """Forbid arcs whose max-marginal is more than width below the best tree, and all but so many best heads."""
    n = allowed.shape[0] - 1
    best_few = np.empty(min(heads, n + 1))
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
        if count > heads:
            cut = best_few[heads - 1]
            for h in range(n + 1):
                allowed[h, m] = allowed[h, m] and through[h, m] >= cut


@njit(cache=True, nogil=True)
def filter_arcs(sentence, stage, crossing, single, allowed):
    """Forbid the arcs that a filter removes; False, and none is forbidden, if there is no tree over those allowed."""
    arc, through = np.empty(allowed.shape), np.empty(allowed.shape)
    score_arcs(sentence, allowed, stage.model, arc)
    best = max_marginals(arc, crossing, single, through)
    if best == -np.inf:
        return False
    keep_likely_arcs(through, best, stage.width, stage.heads, allowed)
    return True


@njit(cache=True, nogil=True, inline="always")
def surviving_arcs(sentence, cascade):
    """allowed (n + 1, n + 1): arcs that pass the length dictionary and the filters by max-marginals.

    A dictionary that leaves no tree is passed over. A filter keeps the best tree, so there is always one.
    """
    allowed = short_arcs(sentence, cascade.longest)
    for stage in cascade.filters:
        while not filter_arcs(sentence, stage, cascade.crossing, cascade.single, allowed):
            for h in range(sentence.n + 1):
                for m in range(1, sentence.n + 1):
                    allowed[h, m] = h != m
    return allowed


class PartScorer(NamedTuple):
    """A model of one kind of part of up to four nodes, at work on one sentence.

    Row r * stride + v + 2 of ``flat``, ``width`` codes wide, is what node v adds in role r to the ``size`` codes of a
    part; rows are filled up with zeros to whole registers. Codes named .. named_end - 1 take in the names of its arcs.
    """

    flat: Any
    stride: Any
    size: Any
    width: Any
    named: Any
    named_end: Any
    bits: Any
    weight: Any
    code: Any  # room for the codes of a part


@njit(cache=True, nogil=True)
def part_scorer(sentence, templates, bits, weight):
    """The scorer of parts with these templates."""
    codes = role_codes(sentence, templates)
    n_codes = codes.shape[1]
    width = (n_codes + _LANES - 1) // _LANES * _LANES
    flat = np.zeros(codes.shape[0] * width, dtype=np.uint32)
    for i in range(codes.shape[0]):
        for t in range(n_codes):
            flat[i * width + t] = codes[i, t]
    return PartScorer(flat, sentence.n + 3, uint64(n_codes), uint64(width), uint64(templates.plain),
                      uint64(templates.named), bits, weight, np.empty(width, dtype=np.uint32))  # fmt: skip


@njit(cache=True, nogil=True)
def part_score(scorer, h, m, x, y, sides, names):
    """Sum of the weights of the features of a part; ABSENT for nodes that it does not have.

    sides is its shape as a number: whether h is left of m, then two bits for the side of each node beyond (``side``).
    """
    flat, width, code, stride = scorer.flat, scorer.width, scorer.code, scorer.stride
    a, b = uint64(h + 2) * width, uint64(stride + m + 2) * width
    c, d = uint64(2 * stride + x + 2) * width, uint64(3 * stride + y + 2) * width
    for t in range(width):
        code[t] = flat[a + t] + flat[b + t] + flat[c + t] + flat[d + t]
    for t in range(scorer.named, scorer.named_end):
        code[t] += names
    hash_codes(code, width, shape_code(sides), scorer.bits, code, uint64(0))
    return total_weight(scorer.weight, code, scorer.size)


@njit(cache=True, nogil=True)
def score_trisiblings(h, m, modifiers, scorer, names, out):
    """out[p, 1 + r] <- score of the tri-sibling h, m, modifiers[p], modifiers[r]; in column 0 there is no third."""
    low, high = min(h, m), max(h, m)
    degree = modifiers.shape[0]
    none = np.int64(ABSENT)
    sides = int(h < m) * 16 + 8
    for p in range(degree):
        s = np.int64(modifiers[p])
        if s <= low or s >= high:
            continue
        for r in range(-1, degree):
            t = np.int64(modifiers[r]) if r >= 0 else none
            if r >= 0 and (t <= low or t >= high or abs(t - h) >= abs(s - h)):
                out[p, 1 + r] = -np.inf
                continue
            named = names_of(names, h, m, s, t, none)
            out[p, 1 + r] = part_score(scorer, h, m, s, t, sides + side(t, low, high), named)


@njit(cache=True, nogil=True)
def push(stack, top, d, slot, h, end):
    """Put a complete span on a stack (:, 4): side, slot, head, end. Returns the new top."""
    stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = d, slot, h, end
    return top + 1


@njit(cache=True, nogil=True)
def best_above_first(sentence, names, arc, allowed, single, model, heads):
    """Best projective tree of a model above first order over the allowed arcs; returns its value.

    DEP 5.4 (Model 1) over lists of arcs. Complete spans C^g(h, e), sibling spans S^h(i, j) and incomplete spans
    I^g(h, m) are as in kernels.projective_forest; slot a of the charts is an arc (g, h), and one more for node 0. With
    tri-siblings, incomplete spans also know the sibling next inside m. arc (n + 1, n + 1) are the scores of the arcs
    alone, with the cost of errors in it if there is one, and names (n + 1, n + 1) their names. Ties go to the smallest
    index.
    """
    n = allowed.shape[0] - 1
    _, sibling, grandparent, grandsibling, trisibling = model.templates
    arc_id, out_ptr, out, into_ptr, into = index_arcs(allowed)
    arcs = out.shape[0]
    size = n + 1
    beside = part_scorer(sentence, sibling, model.bits, model.weight)
    above_h = part_scorer(sentence, grandparent, model.bits, model.weight)
    both = part_scorer(sentence, grandsibling, model.bits, model.weight)
    three = part_scorer(sentence, trisibling, model.bits, model.weight)
    with_both, with_three = both.size > 0, three.size > 0
    none = np.int64(ABSENT)

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
    if with_three:
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
            named = names_of(names, h, m, none, none, none)
            first_score[a] = part_score(beside, h, m, none, none, int(h < m) * 4, named)
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
                    if with_three:
                        score_trisiblings(h, m, out[start : start + degree], three, names, t_score)
                    for w in range(into_ptr[h], into_ptr[h + 1] if h > 0 else into_ptr[h] + 1):
                        g = np.int64(into[w]) if h > 0 else np.int64(-1)
                        if i <= g and g <= j:
                            continue
                        slot = np.int64(arc_id[g, h]) if h > 0 else np.int64(arcs)
                        above = arc[h, m]
                        if h > 0:
                            named = names_of(names, h, m, none, none, g)
                            above += part_score(above_h, h, m, g, none, d * 4 + side(g, i, j), named)
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
                                if with_three:
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
                                    named = names_of(names, h, m, s, none, none)
                                    s_score[cell] = part_score(beside, h, m, s, none, d * 4 + 2, named)
                                score += s_score[cell]
                            score += above
                            if h > 0 and with_both:
                                named = names_of(names, h, m, s, none, g)
                                sides = d * 16 + 4 * side(s, i, j) + side(g, i, j)
                                score += part_score(both, h, m, s, g, sides, named)
                            if with_three:
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
    stack = np.empty((2 * n + 4, 4), dtype=np.int64)
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
            top = push(stack, top, d, np.int64(at), np.int64(out[at]), n if d else 1)
    else:
        value = comp[side_size + arcs * size + n]
        if value == -np.inf:
            return value
        top = push(stack, top, 1, arcs, 0, n)
    while top:
        top -= 1
        d, slot, h, end = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        if h == end:
            continue
        start = out_ptr[h]
        degree = np.int64(out_ptr[h + 1] - start)
        p = np.int64(comp_at[d * side_size + slot * size + end])
        m = np.int64(out[start + p])
        top = push(stack, top, d, start + p, m, end)
        q = np.int64(inc_at[inc_ptr[slot] + p])
        while True:
            heads[m] = h
            if q < 0:
                top = push(stack, top, 1 - d, start + p, m, h + (1 if d else -1))
                break
            s = np.int64(out[start + q])
            low = min(p, q)
            r = np.int64(between_at[pair_ptr[h] + low * degree + (p + q - low)])
            first, second = (s, m) if d else (m, s)
            near, far = (start + q, start + p) if d else (start + p, start + q)
            top = push(stack, push(stack, top, 1, near, first, r), 0, far, second, r + 1)
            inside_at = two_at[two_ptr[slot] + p * (degree + 1) + 1 + q] if with_three else inc_at[inc_ptr[slot] + q]
            p, m, q = q, s, np.int64(inside_at)
    return value


@njit(cache=True, nogil=True, inline="always")
def scored_arcs(sentence, cascade, model, kept):
    """The arcs (n + 1, n + 1) that a cascade leaves, also into kept, and their scores by a model, -inf elsewhere."""
    allowed = surviving_arcs(sentence, cascade)
    flat = allowed.reshape(allowed.size)
    for k in range(flat.shape[0]):
        kept[k] = flat[k]
    arc = np.empty(allowed.shape)
    score_arcs(sentence, allowed, LinearModel(model.templates[0], model.bits, model.weight), arc)
    return allowed, arc


@njit(cache=True, nogil=True)
def parse_arcs(batch, cascade, model, found):
    """Parse a batch with a first-order model: the heads of sentence s go to found.heads from found.start[s] on.

    found.value[s] gets the score of the tree, found.kept from found.square[s] on which arcs the cascade left.
    """
    for s in range(batch.length.shape[0]):
        n = batch.length[s]
        own = found.heads[found.start[s] : found.start[s] + n + 1]
        own[0] = -1
        found.value[s] = 0.0
        if n > 0:
            sentence = Sentence(batch.attribute, batch.coarse, batch.base[s], n)
            kept = found.kept[found.square[s] : found.square[s + 1]]
            _, arc = scored_arcs(sentence, cascade, model, kept)
            found.value[s] = best_tree(arc, cascade.crossing, cascade.single, own)


@njit(cache=True, nogil=True)
def parse_parts(batch, cascade, namer, model, found):
    """The same with a projective model above first order; namer names the arcs."""
    for s in range(batch.length.shape[0]):
        n = batch.length[s]
        own = found.heads[found.start[s] : found.start[s] + n + 1]
        own[0] = -1
        found.value[s] = 0.0
        if n > 0:
            sentence = Sentence(batch.attribute, batch.coarse, batch.base[s], n)
            kept = found.kept[found.square[s] : found.square[s + 1]]
            allowed, arc = scored_arcs(sentence, cascade, model, kept)
            names = np.empty((n + 1, n + 1), dtype=np.uint32)
            name_arcs(sentence, allowed, namer, names)
            found.value[s] = best_above_first(sentence, names, arc, allowed, cascade.single, model, own)
