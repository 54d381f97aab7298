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

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit


class Sentence(NamedTuple):
    """What a sentence may be made of, and its scores, as constituency/lexicalized_tables.py has them."""

    n: int
    node_ptr: np.ndarray
    node_below: np.ndarray
    node_context: np.ndarray
    node_group: np.ndarray
    node_score: np.ndarray  # nodes of score -inf are passed over
    group_word: np.ndarray
    group_ptr: np.ndarray
    context_ptr: np.ndarray
    context_word: np.ndarray
    stop: np.ndarray
    attach_ptr: np.ndarray
    attach: np.ndarray
    root_score: np.ndarray
    distance: np.ndarray
    allowed: np.ndarray  # (n + 1, n + 1): arcs with allowed[h + 1, m + 1] false are passed over


class Layout(NamedTuple):
    """Where attach has the scores of a group and a context."""

    n: int
    group_word: np.ndarray
    group_ptr: np.ndarray
    context_ptr: np.ndarray
    context_word: np.ndarray
    attach_ptr: np.ndarray


class Chart(NamedTuple):
    """Scores of the items."""

    open: np.ndarray  # (2, N, 3, n)
    done: np.ndarray  # (2, N, n)
    whole: np.ndarray  # (S, G)
    next: np.ndarray  # (S, 2, 3 C)


class Edges(NamedTuple):
    """Edges of the hypergraph: those of vertex v are first[v] .. first[v + 1] - 1; empty arrays if they are counted.

    tails[e] are the two items of edge e (-1 for none). what[e] is (-1, group, head + 1) for a modifier that meets its
    head, (node, -1, -1) for a spine that ends, (node, -1, -2) for a node that gets a modifier, (-1, -1, -1) otherwise.
    """

    first: np.ndarray
    tails: np.ndarray
    weight: np.ndarray
    what: np.ndarray


@njit(cache=True, nogil=True)
def attachments(layout, outcome, outcomes, row_ptr, row, word_ptr, word, attach):
    """attach <- scores of labels plus scores of words; its layout is that of Tables.

    row[row_ptr[c]:] holds (2, 3, 3, outcomes[P]) scores of labels by side, distance and state for context c with label
    P, word[word_ptr[c]:] (2, outcomes[P] - 1, n) scores of words. A word does not modify itself: -inf.
    """
    n, group_word, group_ptr, context_ptr, context_word, attach_ptr = layout
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
def penalise(layout, attach, arc, out):
    """out <- attach with arc[h + 1, m + 1] added. Shapes: attach and out as in Tables, arc (n + 1, n + 1)."""
    n, group_word, group_ptr, context_ptr, context_word, attach_ptr = layout
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
def inside(sentence, chart):
    """Fill the chart."""
    for items in (chart.open.reshape(-1), chart.done.reshape(-1), chart.whole.reshape(-1), chart.next.reshape(-1)):
        items[:] = -np.inf
    for length in range(sentence.n):
        for i in range(sentence.n - length):
            _halves(sentence, chart, i, i + length)
            _phrases(sentence, chart, i, i + length)


@njit(cache=True, nogil=True)
def _halves(sentence, chart, i, j):
    """Open and done halves over i .. j: the left ones of word j, the right ones of word i."""
    node_ptr, node_score, node_context = sentence.node_ptr, sentence.node_score, sentence.node_context
    node_below, stop = sentence.node_below, sentence.stop
    open_, done, _, next_ = chart
    for d in range(2):
        h = j if d == 0 else i
        e = i if d == 0 else j
        far = sentence.distance[h, e]
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
            for back in range(j - i):
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


@njit(cache=True, nogil=True)
def _phrases(sentence, chart, i, j):
    """Phrases over i .. j, and what modifiers they may be."""
    n, group_ptr, context_ptr, distance = sentence.n, sentence.group_ptr, sentence.context_ptr, sentence.distance
    attach, attach_ptr, allowed = sentence.attach, sentence.attach_ptr, sentence.allowed
    node_ptr, node_group, node_score = sentence.node_ptr, sentence.node_group, sentence.node_score
    group_word = sentence.group_word
    _, done, whole, next_ = chart
    span = j * (j + 1) // 2 + i
    for v in range(node_ptr[i], node_ptr[j + 1]):
        g = node_group[v]
        if g >= 0:
            score = node_score[v] + done[0, v, i] + done[1, v, j]
            if score > whole[span, g]:
                whole[span, g] = score
    for label in range(context_ptr.shape[0]):
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
def derivation(sentence, chart, chosen, head, level):
    """Read the best tree off an inside chart; returns its value, -inf if there is none.

    chosen[m] is the node of word m, head[m] its head (-1 for the root word), level[m] the node of the head's spine that
    it hangs on (-1 for the root word). Ties go to the smallest index.
    """
    n, root_score, group_word, context_ptr = sentence.n, sentence.root_score, sentence.group_word, sentence.context_ptr
    _, done, whole, _ = chart
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
        node = sentence.node_ptr[m]
        while (
            sentence.node_group[node] != g
            or sentence.node_score[node] + done[0, node, i] + done[1, node, j] != whole[span, g]
        ):
            node += 1
        chosen[m] = node
        for d in range(2):
            v = node
            e = i if d == 0 else j
            while sentence.node_context[v] >= 0:
                label = label_of[sentence.node_context[v]]
                e, depth = _modifiers(sentence, chart, (d, v, m, e, label), head, stack, depth)
                v = sentence.node_below[v]
    return best


@njit(cache=True, nogil=True)
def _modifiers(sentence, chart, half, head, stack, depth):
    """Push the modifiers of node v of word m on side d, from e inwards; returns where the level begins, and depth."""
    d, v, m, e, label = half
    open_, done, whole, next_ = chart
    distance, context_ptr, attach, attach_ptr = (
        sentence.distance,
        sentence.context_ptr,
        sentence.attach,
        sentence.attach_ptr,
    )
    c = sentence.node_context[v]
    base = context_ptr[label, 0]
    rows = 3 * (context_ptr[label, sentence.n] - base)
    state = 0
    while open_[d, v, state, e] + sentence.stop[c, state, d, distance[m, e]] != done[d, v, e]:
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
        r = sentence.group_ptr[2 * label + q, low]
        while whole[inner, r] + attach[attach_ptr[r] + at] != next_[inner, q, 3 * c + s]:
            r += 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = r, low, high, v
        head[sentence.group_word[r]] = m
        depth += 1
        e = k
        state = s
    return e, depth


@njit(cache=True, nogil=True)
def outside(sentence, chart, least, around, arc, group_best):
    """Best score of the rest of a tree around every item of an inside chart, in a chart of the same shapes.

    Items and edges whose best tree scores less than ``least`` are passed over, and their values are too low.

    arc[h + 1, m + 1] (n + 1, n + 1) is set to the best score of a tree with the arc, row 0 for the root word, and
    group_best[g] to that of a tree in which the spine of the group's word belongs to g.
    """
    n, root_score = sentence.n, sentence.root_score
    for items in (around.open.reshape(-1), around.done.reshape(-1), around.whole.reshape(-1), around.next.reshape(-1)):
        items[:] = -np.inf
    arc[:] = -np.inf
    group_best[:] = -np.inf
    top = (n - 1) * n // 2
    for g in range(root_score.shape[0]):
        around.whole[top, g] = root_score[g]
        m = sentence.group_word[g] + 1
        arc[0, m] = max(arc[0, m], root_score[g] + chart.whole[top, g])
    alive = np.empty(3 * sentence.context_ptr.max(), dtype=np.int64)  # rows of next that matter
    for length in range(n - 1, -1, -1):
        for i in range(n - length):
            span = (i, i + length)
            _around_phrases(sentence, chart, around, least, span, alive, arc)
            _around_spines(sentence, chart, around, least, span, group_best)
            _around_halves(sentence, chart, around, least, span)


@njit(cache=True, nogil=True)
def _around_phrases(sentence, chart, around, least, words, alive, arc):
    """What lies around the phrases over the words i .. j as modifiers."""
    n, context_ptr, group_ptr, distance = sentence.n, sentence.context_ptr, sentence.group_ptr, sentence.distance
    attach, attach_ptr, group_word, allowed = (
        sentence.attach,
        sentence.attach_ptr,
        sentence.group_word,
        sentence.allowed,
    )
    whole, next_, out_whole, out_next = chart.whole, chart.next, around.whole, around.next
    i, j = words
    span = j * (j + 1) // 2 + i
    for label in range(context_ptr.shape[0]):
        base = context_ptr[label, 0]
        rows = 3 * (context_ptr[label, n] - base)
        for h in range(n):
            if rows == 0 or i <= h <= j:
                continue
            far = distance[h, i - 1] if h < i else distance[h, j + 1]
            for q in range(2):
                outer, inner = out_next[span, q], next_[span, q]
                count = 0
                for r in range(3 * context_ptr[label, h], 3 * context_ptr[label, h + 1]):
                    if outer[r] > -np.inf and outer[r] + inner[r] >= least:
                        alive[count] = r
                        count += 1
                if count == 0:
                    continue
                for g in range(group_ptr[2 * label + q, i], group_ptr[2 * label + q, j + 1]):
                    m = group_word[g] + 1
                    if whole[span, g] == -np.inf or not allowed[h + 1, m]:
                        continue
                    source = attach_ptr[g] - 3 * base + far * rows
                    best = -np.inf
                    for k in range(count):
                        score = outer[alive[k]] + attach[source + alive[k]]
                        best = score if score > best else best
                    out_whole[span, g] = max(out_whole[span, g], best)
                    arc[h + 1, m] = max(arc[h + 1, m], best + whole[span, g])


@njit(cache=True, nogil=True)
def _around_spines(sentence, chart, around, least, words, group_best):
    """What lies around the two halves of the spines over the words i .. j."""
    i, j = words
    span = j * (j + 1) // 2 + i
    node_ptr, node_group, node_score = sentence.node_ptr, sentence.node_group, sentence.node_score
    done, out_whole, out_done = chart.done, around.whole, around.done
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


@njit(cache=True, nogil=True)
def _around_halves(sentence, chart, around, least, words):
    """What lies around the open halves over the words i .. j, and around what they are made of."""
    i, j = words
    node_ptr, node_below, node_context = sentence.node_ptr, sentence.node_below, sentence.node_context
    node_score, stop = sentence.node_score, sentence.stop
    open_, done, _, next_ = chart
    out_open, out_done, _, out_next = around
    for d in range(2):
        h = j if d == 0 else i
        e = i if d == 0 else j
        far = sentence.distance[h, e]
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
                rest = out_open[d, v, 2 - q, e]
                if rest == -np.inf or rest + open_[d, v, 2 - q, e] < least:
                    continue
                for back in range(j - i):
                    k = h + back if d == 1 else h - back
                    inner = e * (e + 1) // 2 + k + 1 if d == 1 else (k - 1) * k // 2 + e
                    for s in range(3):
                        r = 3 * c + s
                        if rest + open_[d, v, s, k] + next_[inner, q, r] >= least:
                            out_next[inner, q, r] = max(out_next[inner, q, r], rest + open_[d, v, s, k])
                            score = rest + next_[inner, q, r]
                            out_open[d, v, s, k] = max(out_open[d, v, s, k], score)


# -- the hypergraph ----------------------------------------------------------------------------------------------------

# Items are named by their place in whole, next, open and done, laid end to end. number[item] is 0 for an item that
# nothing needs, 1 for one that is needed, and 2 + its vertex once it has one.


class Places(NamedTuple):
    """Where the items of each kind begin."""

    next: int
    open: int
    done: int


@njit(cache=True, nogil=True)
def forest(sentence, chart, around, least, number, edges):
    """Spell out the hypergraph of the trees that score at least ``least``, from the top down; (vertices, edges).

    An edge is kept if the best tree with it scores ``least``, or if it is the best of its vertex. Vertex 0 is the root.
    """
    n, root_score = sentence.n, sentence.root_score
    groups, nodes, spans = chart.whole.shape[1], sentence.node_score.shape[0], n * (n + 1) // 2
    at_open = spans * (groups + 6 * sentence.context_ptr.max())
    places = Places(spans * groups, at_open, at_open + 6 * nodes * n)
    number[:] = 0
    whole, (first, tails, weight, what) = chart.whole, edges
    v, e = _new_vertex(first, 0, 0), 0
    top = (n - 1) * n // 2
    best = -np.inf
    for g in range(groups):
        best = max(best, root_score[g] + whole[top, g])
    for g in range(groups):
        value = root_score[g] + whole[top, g]
        if value > -np.inf and (value >= least or value == best):
            e = _put(tails, weight, what, e, (top * groups + g, -1), root_score[g], (-1, g, 0))
            number[top * groups + g] = 1
    for length in range(n - 1, -1, -1):
        for i in range(n - length):
            where = (i, i + length), places
            v, e = _modifier_edges(sentence, chart, around, least, where, number, edges, (v, e))
            v, e = _spine_edges(sentence, chart, around, least, where, number, edges, (v, e))
            v, e = _half_edges(sentence, chart, around, least, where, number, edges, (v, e))
    _new_vertex(first, v, e)
    return v, e


@njit(cache=True, nogil=True, inline="always")
def _new_vertex(first, v, e):
    """Have the edges of vertex v begin at e, if there is room; the next vertex."""
    if v < first.shape[0]:
        first[v] = e
    return v + 1


@njit(cache=True, nogil=True, inline="always")
def _put(tails, weight, what, e, items, score, kind):
    """Set edge e, if there is room; the next one."""
    if e < weight.shape[0]:
        tails[e, 0], tails[e, 1] = items
        weight[e] = score
        what[e, 0], what[e, 1], what[e, 2] = kind
    return e + 1


@njit(cache=True, nogil=True)
def _modifier_edges(sentence, chart, around, least, where, number, edges, count):
    """next[span, q, r] over the words i .. j from whole[span, g]."""
    (i, j), places = where
    v, e = count
    first, tails, weight, what = edges
    n, context_ptr, group_ptr, distance = sentence.n, sentence.context_ptr, sentence.group_ptr, sentence.distance
    attach, attach_ptr = sentence.attach, sentence.attach_ptr
    whole, next_, out_next = chart.whole, chart.next, around.next
    groups = whole.shape[1]
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
                    item = places.next + (span * 2 + q) * next_.shape[2] + r
                    if number[item] == 0:
                        continue
                    number[item] = 2 + v
                    v = _new_vertex(first, v, e)
                    for g in range(group_ptr[2 * label + q, i], group_ptr[2 * label + q, j + 1]):
                        score = attach[attach_ptr[g] + far * rows + r - 3 * base]
                        value = score + whole[span, g]
                        kept = value + out_next[span, q, r] >= least or value == next_[span, q, r]
                        if value > -np.inf and kept:
                            e = _put(tails, weight, what, e, (span * groups + g, -1), score, (-1, g, h + 1))
                            number[span * groups + g] = 1
    return v, e


@njit(cache=True, nogil=True)
def _spine_edges(sentence, chart, around, least, where, number, edges, count):
    """whole[span, g] over the words i .. j from the two halves of nodes.

    Groups of one word are not next to each other: go through its nodes, each group at its first node.
    """
    (i, j), places = where
    v, e = count
    first, tails, weight, what = edges
    n, node_ptr, node_group, node_score = sentence.n, sentence.node_ptr, sentence.node_group, sentence.node_score
    whole, out_whole, done = chart.whole, around.whole, chart.done
    groups, nodes = whole.shape[1], node_score.shape[0]
    span = j * (j + 1) // 2 + i
    for m in range(i, j + 1):
        for u in range(node_ptr[m], node_ptr[m + 1]):
            g = node_group[u]
            if g < 0 or number[span * groups + g] != 1:
                continue
            number[span * groups + g] = 2 + v
            v = _new_vertex(first, v, e)
            for w in range(u, node_ptr[m + 1]):
                if node_group[w] != g:
                    continue
                value = node_score[w] + done[0, w, i] + done[1, w, j]
                if value > -np.inf and (value + out_whole[span, g] >= least or value == whole[span, g]):
                    left = places.done + w * n + i
                    right = places.done + (nodes + w) * n + j
                    e = _put(tails, weight, what, e, (left, right), node_score[w], (w, -1, -1))
                    number[left] = 1
                    number[right] = 1
    return v, e


@njit(cache=True, nogil=True)
def _half_edges(sentence, chart, around, least, where, number, edges, count):
    """The halves over the words i .. j: done ones from the three states of open ones, open ones from the level below
    in state 0, with another modifier in the others."""
    words, places = where
    v, e = count
    first, tails, weight, what = edges
    n, nodes, stop, distance = sentence.n, sentence.node_score.shape[0], sentence.stop, sentence.distance
    node_ptr, node_below, node_context = sentence.node_ptr, sentence.node_below, sentence.node_context
    open_, done, _, next_ = chart
    out_open, out_done, _, _ = around
    for d in range(2):
        h, end = words[1 - d], words[d]
        for u in range(node_ptr[h + 1] - 1, node_ptr[h] - 1, -1):
            c = node_context[u]
            own = d * nodes + u
            item = places.done + own * n + end
            if number[item]:
                number[item] = 2 + v
                v = _new_vertex(first, v, e)
                for s in range(3 if c >= 0 else 1):
                    tail = places.open + (own * 3 + s) * n + end if c >= 0 else -1
                    score = stop[c, s, d, distance[h, end]] if c >= 0 else 0.0
                    value = open_[d, u, s, end] + score if c >= 0 else 0.0
                    if value > -np.inf and (value + out_done[d, u, end] >= least or value == done[d, u, end]):
                        e = _put(tails, weight, what, e, (tail, -1), score, (-1, -1, -1))
                        if tail >= 0:
                            number[tail] = 1
            for t in range(2 if c >= 0 else -1, -1, -1):
                item = places.open + (own * 3 + t) * n + end
                if number[item] == 0:
                    continue
                number[item] = 2 + v
                v = _new_vertex(first, v, e)
                if t == 0:
                    tail = places.done + (d * nodes + node_below[u]) * n + end
                    e = _put(tails, weight, what, e, (tail, -1), 0.0, (-1, -1, -1))
                    number[tail] = 1
                    continue
                for back in range(abs(end - h)):
                    k = h + back if d == 1 else h - back
                    inner = end * (end + 1) // 2 + k + 1 if d == 1 else (k - 1) * k // 2 + end
                    for s in range(3):
                        value = open_[d, u, s, k] + next_[inner, 2 - t, 3 * c + s]
                        kept = value + out_open[d, u, t, end] >= least or value == open_[d, u, t, end]
                        if value > -np.inf and kept:
                            half = places.open + (own * 3 + s) * n + k
                            modifier = places.next + (inner * 2 + 2 - t) * next_.shape[2] + 3 * c + s
                            e = _put(tails, weight, what, e, (half, modifier), 0.0, (u, -1, -2))
                            number[half] = 1
                            number[modifier] = 1
    return v, e
