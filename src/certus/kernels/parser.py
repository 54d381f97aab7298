"""Cascades of filters, and the best trees of a trained model: the fast path through the parts of kernels.parts.

Parts, kinds, names of arcs and models of trees are as there; sentences, models and cascades as in kernels.tuples.
Scores of parts are computed by kernels.part_scores, all of a kind at once, before the best tree is searched.
Functions marked inline are part of their caller: compiled once, not once more on every way that leads to them.
"""

import numpy as np
from numba import uint64

from certus.kernels import arborescence, eisner
from certus.kernels.arcs import name_arcs, score_arcs
from certus.kernels.compiling import njit
from certus.kernels.part_scores import list_projective, part_cells, score_rows
from certus.kernels.projective_forest import index_arcs
from certus.kernels.tuples import LinearModel, Sentence


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
    indexed = index_arcs(allowed)
    arc_id, out_ptr, out, into_ptr, into = indexed
    arcs = out.shape[0]
    size = n + 1
    cells = part_cells(indexed)
    _, sibling, grandparent, grandsibling, trisibling = model.templates
    with_three = trisibling.max_features > 0
    wanted = (sibling.max_features > 0, grandparent.max_features > 0, grandsibling.max_features > 0, with_three)
    beside, above_h, both, three = list_projective(indexed, names, cells, wanted)
    s_score, g_score = np.zeros(cells.pair[-1]), np.zeros(cells.above[-1])
    b_score = np.zeros(cells.both[-1])
    t_score = np.full(cells.three[-1] if with_three else 0, -np.inf)
    score_rows(sentence, sibling, model.bits, model.weight, beside, s_score)
    score_rows(sentence, grandparent, model.bits, model.weight, above_h, g_score)
    score_rows(sentence, grandsibling, model.bits, model.weight, both, b_score)
    score_rows(sentence, trisibling, model.bits, model.weight, three, t_score)
    pair_ptr, inc_ptr, two_ptr = cells.pair, cells.above, cells.both

    # One cell per arc and place of another modifier of its head, or of another head of its head.
    between = np.full(pair_ptr[size], -np.inf)
    between_at = np.empty(pair_ptr[size], dtype=np.int32)
    inc = np.full(inc_ptr[arcs + 1], -np.inf)
    inc_at = np.empty(inc_ptr[arcs + 1], dtype=np.int32)
    # With tri-siblings: one cell per slot, modifier and modifier inside it, the first of them for none.
    two = np.full(two_ptr[arcs + 1] if with_three else 0, -np.inf)
    two_at = np.empty(two_ptr[arcs + 1] if with_three else 0, dtype=np.int32)
    comp = np.full(2 * (arcs + 1) * size, -np.inf)
    comp_at = np.empty(2 * (arcs + 1) * size, dtype=np.int32)
    inner_end = np.empty(size, dtype=np.int64)  # where the right modifiers of a head begin in out
    for h in range(size):
        inner_end[h] = out_ptr[h]
        for a in range(out_ptr[h], out_ptr[h + 1]):
            inner_end[h] += out[a] < h
    slots = np.empty(into.shape[0], dtype=np.int64)  # the arc of each head in into
    for h in range(1, size):
        for w in range(into_ptr[h], into_ptr[h + 1]):
            slots[w] = arc_id[into[w], h]
    reached = inner_end.copy()  # of head j the left modifiers from i on begin here
    side_size = (arcs + 1) * size
    ids = arc_id.reshape(arc_id.size)
    for i in range(n, 0 if single else -1, -1):
        if i > 0:
            for w in range(into_ptr[i], into_ptr[i + 1]):
                comp[slots[w] * size + i] = 0.0
                comp[side_size + slots[w] * size + i] = 0.0
        right_end = inner_end[i]  # of head i the right modifiers up to j end here
        for j in range(i + 1, n + 1):
            if i > 0:
                for w in range(into_ptr[i], into_ptr[i + 1]):
                    h = np.int64(into[w])
                    other = np.int64(ids[uint64(h * size + j)])
                    if other < 0 or (i < h and h < j) or (single and h == 0):
                        continue
                    left = uint64(side_size + slots[w] * size)
                    right = uint64(other * size + 1)
                    best = -np.inf
                    at = i
                    for r in range(uint64(i), uint64(j)):
                        score = comp[left + r] + comp[right + r]
                        if score > best:
                            best = score
                            at = np.int64(r)
                    degree = np.int64(out_ptr[h + 1] - out_ptr[h])
                    cell = pair_ptr[h] + (slots[w] - out_ptr[h]) * degree + other - out_ptr[h]
                    between[cell] = best
                    between_at[cell] = at
            for d in range(2):
                h, m = (i, j) if d else (j, i)
                # The modifiers of h within i .. j are out[first : last], all inside m but the one that is m.
                if d:
                    if right_end < out_ptr[h + 1] and out[right_end] == m:
                        right_end += 1
                    first, last = inner_end[h], right_end
                    own = last - 1
                else:
                    if reached[h] > out_ptr[h] and out[reached[h] - 1] == m:
                        reached[h] -= 1
                    first, last = reached[h], inner_end[h]
                    own = first
                if first == last or m == 0:
                    continue
                start = np.int64(out_ptr[h])
                degree = np.int64(out_ptr[h + 1] - start)
                heads_begin = np.int64(into_ptr[h])
                heads_end = np.int64(into_ptr[h + 1]) if h > 0 else heads_begin + 1
                if out[own] == m:
                    place = own - start
                    inner = comp[(1 - d) * side_size + own * size + h + (1 if d else -1)] + s_score[own]
                    for w in range(heads_begin, heads_end):
                        g = np.int64(into[w]) if h > 0 else np.int64(-1)
                        if i <= g and g <= j:
                            continue
                        slot = slots[w] if h > 0 else np.int64(arcs)
                        row = two_ptr[slot] + place * (degree + 1)
                        best = inner + b_score[row]
                        at = np.int64(-1)
                        if with_three:
                            two[row] = best
                        for q in range(first + (1 - d), last - d):
                            p = q - start
                            cell = pair_ptr[h] + (p * degree + place if d else place * degree + p)
                            score = inc[inc_ptr[slot] + p]
                            if with_three:
                                score = -np.inf
                                inside_at = -1
                                for r in range(degree + 1):
                                    known = two[two_ptr[slot] + p * (degree + 1) + r]
                                    known += t_score[cells.three[own] + p * (degree + 1) + r]
                                    if known > score:
                                        score = known
                                        inside_at = r - 1
                                two_at[row + 1 + p] = inside_at
                            score += between[cell] + s_score[cell] + b_score[row + 1 + p]
                            if with_three:
                                two[row + 1 + p] = score
                            if score > best:
                                best = score
                                at = p
                        above = arc[h, m] + g_score[inc_ptr[slot] + place]
                        if with_three:
                            for p in range(degree + 1):
                                two[row + p] += above
                        best += above
                        inc[inc_ptr[slot] + place] = best
                        inc_at[inc_ptr[slot] + place] = at
                if h == 0 and j < n:
                    continue
                for w in range(heads_begin, heads_end):
                    g = np.int64(into[w]) if h > 0 else np.int64(-1)
                    if i <= g and g <= j:
                        continue
                    slot = slots[w] if h > 0 else np.int64(arcs)
                    best = -np.inf
                    at = np.int64(-1)
                    known = uint64(inc_ptr[slot] - start)
                    cell = uint64(d * side_size + m)
                    for q in range(uint64(first), uint64(last)):
                        score = inc[known + q] + comp[cell + q * uint64(size)]
                        if score > best:
                            best = score
                            at = np.int64(q) - start
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
            score = arc[0, m] + s_score[a] + comp[a * size + 1] + comp[side_size + a * size + n]
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
