"""Charts of lexicalised phrase structure: half spines, phrases and modifiers.

Nodes, groups and contexts are those of constituency/lexicalized_tables.py. Words are 0 .. n - 1; a span (i, j) holds
words i to j and has number j (j + 1) / 2 + i; S spans, N nodes, G groups, C contexts. Side d is 0 for left, 1 for
right. States s: 0 no modifier on this level yet, 1 after a separator, 2 after another modifier. Four kinds of items:

    open[d, v, s, e]     half of node v of word h on side d, covering h .. e, its level not finished, in state s
    done[d, v, e]        the same with the level finished
    whole[span, g]       phrases of group g over the span
    next[span, q, 3c+s]  a modifier over the span for a head with context c in state s, q = 1 for separators

    done[d, v, e]    = max_s open[d, v, s, e] + stop[c(v), s, d, distance(h, e)]     (0 at e = h for a bare tag)
    open[d, v, 0, e] = done[d, below(v), e]
    open[d, v, s, e] = max over k, s' of open[d, v, s', k] + next[span between k and e, q(s), 3c(v)+s'],   s = 1, 2
    whole[i, j, g]   = max over nodes v of g of node_score[v] + done[0, v, i] + done[1, v, j]
    next[i, j, q, 3c+s] = max over groups g under P(c) with separators = q and words in i .. j of
                          attach[g, distance(h, edge next to the span), 3c+s] + whole[i, j, g]

Separators lead to state 1, all else to state 2. With n words the time is O(n^4) and the space O(n^3), both times
constants of the grammar: the head word of a modifier is maximised away before the modifier meets the edge of its head's
half, as in the head-split algorithms of Eisner and Satta [EisnerSatta99].
"""

import numpy as np

from certus.kernels.compiling import njit


@njit(cache=True, nogil=True)
def attachments(n, group_ptr, group_word, outcome, context_ptr, context_word, outcomes, row_ptr, row, word_ptr, word,
                attach_ptr, attach):  # fmt: skip
    """attach <- scores of labels plus scores of words; its layout is that of Tables.

    row[row_ptr[c]:] holds (2, 3, 3, outcomes[P]) scores of labels by side, distance and state for context c with label
    P, word[word_ptr[c]:] (2, outcomes[P] - 1, n) scores of words. A word does not modify itself: -inf.
    """
    for label in range(context_ptr.shape[0]):
        first, last = context_ptr[label, 0], context_ptr[label, n]
        rows = 3 * (last - first)
        size = outcomes[label]
        for g in range(group_ptr[2 * label, 0], group_ptr[2 * label + 1, n]):
            m = group_word[g]
            o = outcome[g]
            for c in range(first, last):
                side = 0 if m < context_word[c] else 1
                own = word[word_ptr[c] + (side * (size - 1) + o) * n + m] if m != context_word[c] else -np.inf
                for far in range(3):
                    for s in range(3):
                        score = row[row_ptr[c] + ((side * 3 + far) * 3 + s) * size + o]
                        attach[attach_ptr[g] + far * rows + 3 * (c - first) + s] = score + own


@njit(cache=True, nogil=True)
def penalise(n, group_ptr, group_word, context_ptr, context_word, attach_ptr, attach, arc, out):
    """out <- attach with arc[h + 1, m + 1] added. Shapes: attach and out as in Tables, arc (n + 1, n + 1)."""
    for label in range(context_ptr.shape[0]):
        first, last = context_ptr[label, 0], context_ptr[label, n]
        for g in range(group_ptr[2 * label, 0], group_ptr[2 * label + 1, n]):
            m = group_word[g] + 1
            at = attach_ptr[g]
            for _ in range(3):
                for c in range(first, last):
                    penalty = arc[context_word[c] + 1, m]
                    for _ in range(3):
                        out[at] = attach[at] + penalty
                        at += 1


@njit(cache=True, nogil=True)
def inside(
    n, node_ptr, node_below, node_context, node_group, node_score, group_word, group_ptr, context_ptr,
    stop, attach_ptr, attach, distance, allowed, open_, done, whole, next_,
):  # fmt: skip
    """Fill the chart. Shapes: open_ (2, N, 3, n), done (2, N, n), whole (S, G), next_ (S, 2, 3 C).

    Nodes of score -inf are passed over, and arcs with allowed[h + 1, m + 1] (n + 1, n + 1) false.
    """
    open_[:] = -np.inf
    done[:] = -np.inf
    whole[:] = -np.inf
    next_[:] = -np.inf
    labels = context_ptr.shape[0]
    for length in range(n):
        for i in range(n - length):
            j = i + length
            span = j * (j + 1) // 2 + i
            for d in range(2):
                h = j if d == 0 else i  # the left half of word j reaches i, the right half of word i reaches j
                e = i if d == 0 else j
                far = distance[h, e]
                for v in range(node_ptr[h], node_ptr[h + 1]):
                    c = node_context[v]
                    if node_score[v] == -np.inf:
                        continue
                    if c < 0:
                        if e == h:
                            done[d, v, e] = 0.0
                        continue
                    first = done[d, node_below[v], e]
                    separated = -np.inf
                    later = -np.inf
                    for back in range(length):
                        k = h + back if d == 1 else h - back
                        inner = e * (e + 1) // 2 + k + 1 if d == 1 else (k - 1) * k // 2 + e
                        for s in range(3):
                            score = open_[d, v, s, k]
                            if score > -np.inf:
                                later = max(later, score + next_[inner, 0, 3 * c + s])
                                separated = max(separated, score + next_[inner, 1, 3 * c + s])
                    open_[d, v, 0, e] = first
                    open_[d, v, 1, e] = separated
                    open_[d, v, 2, e] = later
                    best = first + stop[c, 0, d, far]
                    best = max(best, separated + stop[c, 1, d, far])
                    done[d, v, e] = max(best, later + stop[c, 2, d, far])
            for v in range(node_ptr[i], node_ptr[j + 1]):
                g = node_group[v]
                if g >= 0:
                    score = node_score[v] + done[0, v, i] + done[1, v, j]
                    if score > whole[span, g]:
                        whole[span, g] = score
            for label in range(labels):
                base = context_ptr[label, 0]
                rows = np.uint64(3 * (context_ptr[label, n] - base))
                if rows == 0:
                    continue
                for q in range(2):
                    target = next_[span, q]
                    for g in range(group_ptr[2 * label + q, i], group_ptr[2 * label + q, j + 1]):
                        score = whole[span, g]
                        if score == -np.inf:
                            continue
                        m = group_word[g] + 1
                        for h in range(n):
                            if i <= h <= j or not allowed[h + 1, m]:
                                continue
                            far = distance[h, i - 1] if h < i else distance[h, j + 1]
                            at = np.uint64(3 * context_ptr[label, h])
                            source = np.uint64(attach_ptr[g] - 3 * base) + np.uint64(far) * rows
                            for r in range(at, np.uint64(3 * context_ptr[label, h + 1])):
                                new = attach[source + r] + score
                                old = target[r]
                                target[r] = new if new > old else old


@njit(cache=True, nogil=True)
def derivation(
    n, node_ptr, node_below, node_context, node_group, node_score, group_word, group_ptr, context_ptr,
    stop, attach_ptr, attach, root_score, distance, open_, done, whole, next_, chosen, head, level,
):  # fmt: skip
    """Read the best tree off an inside chart; returns its value, -inf if there is none.

    chosen[m] is the node of word m, head[m] its head (-1 for the root word), level[m] the node of the head's spine that
    it hangs on (-1 for the root word). Ties go to the smallest index.
    """
    top = (n - 1) * n // 2
    best = -np.inf
    group = -1
    for g in range(root_score.shape[0]):
        if root_score[g] + whole[top, g] > best:
            best = root_score[g] + whole[top, g]
            group = g
    if group < 0:
        return best
    label_of = np.zeros(3 * context_ptr.max() + 1, dtype=np.int64)  # label of each context
    for label in range(context_ptr.shape[0]):
        label_of[context_ptr[label, 0] : context_ptr[label, n]] = label
    stack = np.empty((n, 4), dtype=np.int64)  # group, first word, last word, node of the head
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = group, 0, n - 1, -1
    head[group_word[group]] = -1
    depth = 1
    while depth:
        depth -= 1
        g, i, j = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        m = group_word[g]
        level[m] = stack[depth, 3]
        span = j * (j + 1) // 2 + i
        node = node_ptr[m]
        while node_group[node] != g or node_score[node] + done[0, node, i] + done[1, node, j] != whole[span, g]:
            node += 1
        chosen[m] = node
        for d in range(2):
            v = node
            e = i if d == 0 else j
            while node_context[v] >= 0:
                c = node_context[v]
                label = label_of[c]
                base = context_ptr[label, 0]
                rows = 3 * (context_ptr[label, n] - base)
                state = 0
                while open_[d, v, state, e] + stop[c, state, d, distance[m, e]] != done[d, v, e]:
                    state += 1
                while state:
                    q = 1 if state == 1 else 0
                    k = m
                    s = 0
                    inner = 0
                    for x in range(3 * abs(e - m)):
                        k = m + x // 3 if d == 1 else m - x // 3
                        s = x % 3
                        inner = e * (e + 1) // 2 + k + 1 if d == 1 else (k - 1) * k // 2 + e
                        score = open_[d, v, s, k]
                        if score > -np.inf and score + next_[inner, q, 3 * c + s] == open_[d, v, state, e]:
                            break
                    low, high = (k + 1, e) if d == 1 else (e, k - 1)
                    at = distance[m, k] * rows + 3 * (c - base) + s
                    r = group_ptr[2 * label + q, low]
                    while whole[inner, r] + attach[attach_ptr[r] + at] != next_[inner, q, 3 * c + s]:
                        r += 1
                    stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = r, low, high, v
                    head[group_word[r]] = m
                    depth += 1
                    e = k
                    state = s
                v = node_below[v]
    return best


@njit(cache=True, nogil=True)
def outside(
    n, node_ptr, node_below, node_context, node_group, node_score, group_word, group_ptr, context_ptr,
    stop, attach_ptr, attach, root_score, distance, allowed, open_, done, whole, next_,
    least, out_open, out_done, out_whole, out_next, arc, group_best,
):  # fmt: skip
    """Best score of the rest of a tree around every item of an inside chart, in arrays of the same shapes.

    Items and edges whose best tree scores less than ``least`` are passed over, and their values are too low.

    arc[h + 1, m + 1] (n + 1, n + 1) is set to the best score of a tree with the arc, row 0 for the root word, and
    group_best[g] to that of a tree in which the spine of the group's word belongs to g.
    """
    out_open[:] = -np.inf
    out_done[:] = -np.inf
    out_whole[:] = -np.inf
    out_next[:] = -np.inf
    arc[:] = -np.inf
    group_best[:] = -np.inf
    labels = context_ptr.shape[0]
    alive = np.empty(3 * context_ptr.max(), dtype=np.int64)  # rows of next_ that matter
    for length in range(n - 1, -1, -1):
        for i in range(n - length):
            j = i + length
            span = j * (j + 1) // 2 + i
            if length == n - 1:
                for g in range(root_score.shape[0]):
                    out_whole[span, g] = root_score[g]
                    m = group_word[g] + 1
                    arc[0, m] = max(arc[0, m], root_score[g] + whole[span, g])
            for label in range(labels):
                base = context_ptr[label, 0]
                rows = 3 * (context_ptr[label, n] - base)
                for h in range(n):
                    if rows == 0 or i <= h <= j:
                        continue
                    far = distance[h, i - 1] if h < i else distance[h, j + 1]
                    for q in range(2):
                        count = 0
                        for r in range(3 * context_ptr[label, h], 3 * context_ptr[label, h + 1]):
                            if out_next[span, q, r] > -np.inf and out_next[span, q, r] + next_[span, q, r] >= least:
                                alive[count] = r
                                count += 1
                        if count == 0:
                            continue
                        for g in range(group_ptr[2 * label + q, i], group_ptr[2 * label + q, j + 1]):
                            m = group_word[g] + 1
                            if whole[span, g] == -np.inf or not allowed[h + 1, m]:
                                continue
                            source = attach_ptr[g] - 3 * base + far * rows
                            around = -np.inf
                            for k in range(count):
                                score = out_next[span, q, alive[k]] + attach[source + alive[k]]
                                around = score if score > around else around
                            out_whole[span, g] = max(out_whole[span, g], around)
                            arc[h + 1, m] = max(arc[h + 1, m], around + whole[span, g])
            for v in range(node_ptr[i], node_ptr[j + 1]):
                g = node_group[v]
                if g < 0 or out_whole[span, g] == -np.inf:
                    continue
                score = out_whole[span, g] + node_score[v]
                left = done[0, v, i]
                right = done[1, v, j]
                if score + left + right < least:
                    continue
                out_done[0, v, i] = max(out_done[0, v, i], score + right)
                out_done[1, v, j] = max(out_done[1, v, j], score + left)
                group_best[g] = max(group_best[g], score + left + right)
            for d in range(2):
                h = j if d == 0 else i
                e = i if d == 0 else j
                far = distance[h, e]
                for v in range(node_ptr[h + 1] - 1, node_ptr[h] - 1, -1):
                    c = node_context[v]
                    if c < 0 or node_score[v] == -np.inf:
                        continue
                    worth = out_done[d, v, e] + done[d, v, e]
                    for s in range(3):
                        worth = max(worth, out_open[d, v, s, e] + open_[d, v, s, e])
                    if worth < least:
                        continue
                    for s in range(3):
                        score = out_done[d, v, e] + stop[c, s, d, far]
                        if score > out_open[d, v, s, e]:
                            out_open[d, v, s, e] = score
                    below = node_below[v]
                    out_done[d, below, e] = max(out_done[d, below, e], out_open[d, v, 0, e])
                    for q in range(2):
                        around = out_open[d, v, 2 - q, e]
                        if around == -np.inf or around + open_[d, v, 2 - q, e] < least:
                            continue
                        for back in range(length):
                            k = h + back if d == 1 else h - back
                            inner = e * (e + 1) // 2 + k + 1 if d == 1 else (k - 1) * k // 2 + e
                            for s in range(3):
                                r = 3 * c + s
                                if around + open_[d, v, s, k] + next_[inner, q, r] >= least:
                                    out_next[inner, q, r] = max(out_next[inner, q, r], around + open_[d, v, s, k])
                                    score = around + next_[inner, q, r]
                                    out_open[d, v, s, k] = max(out_open[d, v, s, k], score)


@njit(cache=True, nogil=True)
def forest(
    n, node_ptr, node_below, node_context, node_group, node_score, group_word, group_ptr, context_ptr,
    stop, attach_ptr, attach, root_score, distance, open_, done, whole, next_,
    out_open, out_done, out_whole, out_next, least, number, first_edge, tails, weight, what,
):  # fmt: skip
    """Spell out the hypergraph of the trees that score at least ``least``, from the top down; (vertices, edges).

    An edge is kept if the best tree with it scores ``least``, or if it is the best of its vertex. Items are named by
    their place in whole, next_, open_ and done, laid end to end; number[item] is set to 2 + the vertex, vertex 0 is the
    root. The edges of vertex v are first_edge[v] .. first_edge[v + 1] - 1. For edge e, tails[e] are its two items (-1
    for none) and weight[e] is its score. what[e] is (-1, group, head + 1) for a modifier that meets its head,
    (node, -1, -1) for a spine that ends, (node, -1, -2) for a node that gets a modifier, (-1, -1, -1) otherwise. With
    empty arrays for the last four, edges are only counted.
    """
    contexts = context_ptr.max()
    groups = whole.shape[1]
    nodes = node_score.shape[0]
    spans = n * (n + 1) // 2
    at_next = spans * groups
    at_open = at_next + spans * 6 * contexts
    at_done = at_open + 6 * nodes * n
    fill = weight.shape[0] > 0
    number[:] = 0
    vertices = 1
    edges = 0
    top = (n - 1) * n // 2
    best = -np.inf
    for g in range(groups):
        best = max(best, root_score[g] + whole[top, g])
    for g in range(groups):
        value = root_score[g] + whole[top, g]
        if value > -np.inf and (value >= least or value == best):
            if fill:
                tails[edges, 0], tails[edges, 1] = top * groups + g, -1
                weight[edges] = root_score[g]
                what[edges, 0], what[edges, 1], what[edges, 2] = -1, g, 0
            number[top * groups + g] = 1
            edges += 1
    if fill:
        first_edge[0] = 0
    for length in range(n - 1, -1, -1):
        for i in range(n - length):
            j = i + length
            span = j * (j + 1) // 2 + i
            for label in range(context_ptr.shape[0]):
                base = context_ptr[label, 0]
                rows = 3 * (context_ptr[label, n] - base)
                for h in range(n):
                    if i <= h <= j:
                        continue
                    far = distance[h, i - 1] if h < i else distance[h, j + 1]
                    for r in range(3 * context_ptr[label, h], 3 * context_ptr[label, h + 1]):
                        for q in range(2):
                            item = at_next + (span * 2 + q) * 3 * contexts + r
                            if number[item] == 0:
                                continue
                            number[item] = 2 + vertices
                            if fill:
                                first_edge[vertices] = edges
                            vertices += 1
                            for g in range(group_ptr[2 * label + q, i], group_ptr[2 * label + q, j + 1]):
                                score = attach[attach_ptr[g] + far * rows + r - 3 * base]
                                value = score + whole[span, g]
                                if value > -np.inf and (
                                    value + out_next[span, q, r] >= least or value == next_[span, q, r]
                                ):
                                    if fill:
                                        tails[edges, 0], tails[edges, 1] = span * groups + g, -1
                                        weight[edges] = score
                                        what[edges, 0], what[edges, 1], what[edges, 2] = -1, g, h + 1
                                    edges += 1
                                    number[span * groups + g] = 1
            for m in range(i, j + 1):
                # Groups of one word are not next to each other: go through its nodes, each group at its first node.
                for u in range(node_ptr[m], node_ptr[m + 1]):
                    g = node_group[u]
                    if g < 0 or number[span * groups + g] != 1:
                        continue
                    number[span * groups + g] = 2 + vertices
                    if fill:
                        first_edge[vertices] = edges
                    vertices += 1
                    for v in range(u, node_ptr[m + 1]):
                        if node_group[v] != g:
                            continue
                        value = node_score[v] + done[0, v, i] + done[1, v, j]
                        if value > -np.inf and (value + out_whole[span, g] >= least or value == whole[span, g]):
                            left = at_done + v * n + i
                            right = at_done + (nodes + v) * n + j
                            if fill:
                                tails[edges, 0], tails[edges, 1] = left, right
                                weight[edges] = node_score[v]
                                what[edges, 0], what[edges, 1], what[edges, 2] = v, -1, -1
                            edges += 1
                            number[left] = 1
                            number[right] = 1
            for d in range(2):
                h = j if d == 0 else i
                e = i if d == 0 else j
                far = distance[h, e]
                for v in range(node_ptr[h + 1] - 1, node_ptr[h] - 1, -1):
                    c = node_context[v]
                    item = at_done + (d * nodes + v) * n + e
                    if number[item]:
                        number[item] = 2 + vertices
                        if fill:
                            first_edge[vertices] = edges
                        vertices += 1
                        for s in range(3 if c >= 0 else 1):
                            tail = at_open + ((d * nodes + v) * 3 + s) * n + e if c >= 0 else -1
                            score = stop[c, s, d, far] if c >= 0 else 0.0
                            value = open_[d, v, s, e] + score if c >= 0 else 0.0
                            if value > -np.inf and (value + out_done[d, v, e] >= least or value == done[d, v, e]):
                                if fill:
                                    tails[edges, 0], tails[edges, 1] = tail, -1
                                    weight[edges] = score
                                    what[edges, 0], what[edges, 1], what[edges, 2] = -1, -1, -1
                                edges += 1
                                if tail >= 0:
                                    number[tail] = 1
                    if c < 0:
                        continue
                    for t in range(2, -1, -1):
                        item = at_open + ((d * nodes + v) * 3 + t) * n + e
                        if number[item] == 0:
                            continue
                        number[item] = 2 + vertices
                        if fill:
                            first_edge[vertices] = edges
                        vertices += 1
                        if t == 0:
                            tail = at_done + (d * nodes + node_below[v]) * n + e
                            if fill:
                                tails[edges, 0], tails[edges, 1] = tail, -1
                                weight[edges] = 0.0
                                what[edges, 0], what[edges, 1], what[edges, 2] = -1, -1, -1
                            edges += 1
                            number[tail] = 1
                            continue
                        for back in range(length):
                            k = h + back if d == 1 else h - back
                            inner = e * (e + 1) // 2 + k + 1 if d == 1 else (k - 1) * k // 2 + e
                            for s in range(3):
                                value = open_[d, v, s, k] + next_[inner, 2 - t, 3 * c + s]
                                if value > -np.inf and (
                                    value + out_open[d, v, t, e] >= least or value == open_[d, v, t, e]
                                ):
                                    half = at_open + ((d * nodes + v) * 3 + s) * n + k
                                    modifier = at_next + (inner * 2 + 2 - t) * 3 * contexts + 3 * c + s
                                    if fill:
                                        tails[edges, 0], tails[edges, 1] = half, modifier
                                        weight[edges] = 0.0
                                        what[edges, 0], what[edges, 1], what[edges, 2] = v, -1, -2
                                    edges += 1
                                    number[half] = 1
                                    number[modifier] = 1
    if fill:
        first_edge[vertices] = edges
    return vertices, edges
