"""Vectors over the parts of dependency trees, and the weights they move.

Parts are rows as in kernels.parts. Trees, marginals and subgradients are vectors with a number for each part. Feature
vectors are dense arrays of 2**bits numbers that are zero but for the indices in a list of those touched, so that sums
cost no sorting.

A forest is (in_ptr, tail_ptr, tail, part_of), as ``forest_parts`` of kernels.parts makes it.
"""

import numpy as np

from certus.kernels import arborescence, hypergraph
from certus.kernels.averaging import nudge
from certus.kernels.compiling import njit
from certus.kernels.parts import ARC, KINDS, most_features, part_features, scorer_of

LEAST = 5e-324


@njit(cache=True, nogil=True)
def _edge_weights(part_of, score):
    """The sum of the scores of the parts of each edge."""
    weight = np.zeros(part_of.shape[0])
    for e in range(part_of.shape[0]):
        for kind in range(KINDS):
            if part_of[e, kind] >= 0:
                weight[e] += score[part_of[e, kind]]
    return weight


@njit(cache=True, nogil=True)
def _add_to_parts(part_of, uses, out):
    """out[p] += the uses of the edges that have the part p."""
    for e in range(part_of.shape[0]):
        if uses[e] > 0.0:
            for kind in range(KINDS):
                if part_of[e, kind] >= 0:
                    out[part_of[e, kind]] += uses[e]


@njit(cache=True, nogil=True)
def forest_log_sum(in_ptr, tail_ptr, tail, part_of, score, marginal):
    """Log of the sum of exp(score) over the trees of a forest; marginal (P,) <- the probability of each part."""
    n_edges, n_vertices = part_of.shape[0], in_ptr.shape[0] - 1
    weight = _edge_weights(part_of, score)
    marginal[:] = 0.0
    chart, conditional = np.empty(n_vertices), np.empty(n_edges)
    hypergraph.conditionals(in_ptr, tail_ptr, tail, weight, chart, conditional)
    if chart[n_vertices - 1] == -np.inf:
        return -np.inf
    uses = np.empty(n_vertices)
    hypergraph.expected_uses(in_ptr, tail_ptr, tail, conditional, n_vertices - 1, uses, weight)
    _add_to_parts(part_of, weight, marginal)
    return chart[n_vertices - 1]


# -- feature vectors -------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def gather(sentence, names, model, rows, amount, vector):
    """vector <- sum over parts of amount[p] times their features, from zero; returns the indices touched, each once.

    A sum of 0 is written as the smallest number above it, which marks the place as touched.
    """
    scorer = scorer_of(sentence, names, model)
    index = np.empty(most_features(model), dtype=np.uint64)
    touched = np.empty(1 << 12, dtype=np.int64)
    size = 0
    for p in range(rows.shape[0]):
        if amount[p] == 0.0:
            continue
        count = part_features(scorer, rows[p], index)
        if size + count > touched.shape[0]:
            grown = np.empty(2 * (size + count), dtype=np.int64)
            grown[:size] = touched[:size]
            touched = grown
        for k in range(count):
            f = index[k]
            if vector[f] == 0.0:
                touched[size] = f
                size += 1
            vector[f] += amount[p]
            if vector[f] == 0.0:
                vector[f] = LEAST
    return touched[:size]


@njit(cache=True, nogil=True)
def move_along(touched, vector, learner, clock, weights):
    """Move the weights along a feature vector, by the learner's cap or the steps of its rate, and clear the vector."""
    for k in range(touched.shape[0]):
        f = touched[k]
        nudge(f, vector[f], learner.cap, learner.rate, clock, weights)
        vector[f] = 0.0


@njit(cache=True, nogil=True)
def add_and_clear(touched, vector, factor, target):
    """target <- target + factor * vector, and vector <- 0, in the places touched."""
    for k in range(touched.shape[0]):
        target[touched[k]] += factor * vector[touched[k]]
        vector[touched[k]] = 0.0


@njit(cache=True, nogil=True)
def squared_norm(touched, vector):
    """|vector|^2 in the places touched."""
    norm = 0.0
    for k in range(touched.shape[0]):
        norm += vector[touched[k]] ** 2
    return norm


# -- filters ---------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def threshold(through, best, eta):
    """tau(eta) of LR 8.4.1: eta best + (1 - eta) times the mean of the max-marginals that are not -inf."""
    count = 0
    total = 0.0
    for value in through.flat:
        if value > -np.inf:
            count += 1
            total += value
    return eta * best + (1.0 - eta) * (total / max(count, 1))


@njit(cache=True, nogil=True)
def _ways_out(in_ptr, tail_ptr, tail, part_of, weight, chart, through):
    """The edge by which the best tree goes on above each vertex, heads of edges, the best edge of each arc, or -1.

    through (A,) <- value of the best tree with each arc.
    """
    goal = chart.shape[0] - 1
    outside = np.full(chart.shape[0], -np.inf)
    outside[goal] = 0.0
    up = np.full(chart.shape[0], -1, dtype=np.int32)
    head = np.empty(weight.shape[0], dtype=np.int32)
    best_edge = np.full(through.shape[0], -1, dtype=np.int32)
    for v in range(goal, -1, -1):
        for e in range(in_ptr[v], in_ptr[v + 1]):
            head[e] = v
            total = outside[v] + weight[e]
            for k in range(tail_ptr[e], tail_ptr[e + 1]):
                total += chart[tail[k]]
            if total == -np.inf:
                continue
            for k in range(tail_ptr[e], tail_ptr[e + 1]):
                u = tail[k]
                above = outside[v] + weight[e]
                for j in range(tail_ptr[e], tail_ptr[e + 1]):
                    if j != k:
                        above += chart[tail[j]]
                if above > outside[u]:
                    outside[u] = above
                    up[u] = e
            a = part_of[e, ARC]
            if a >= 0 and total > through[a]:
                through[a] = total
                best_edge[a] = e
    return up, head, best_edge


@njit(cache=True, nogil=True)
def forest_filter(in_ptr, tail_ptr, tail, part_of, score, eta, through, mean):
    """Max-marginals of arcs and the vector of tau(eta); returns the value of the best tree, -inf if there is none.

    score (P,) of the parts; through (A,) <- value of the best tree with each arc, the first A parts; mean (P,) <- eta
    times the parts of the best tree + (1 - eta) times the mean, over arcs that are in a tree, of the parts of the best
    tree with the arc. tau(eta) is the product of mean and score. Ties go to the smallest edge.

    The best tree with an arc is the best outside of an edge's head and the best insides of its tails. So the trees are
    never made one by one: how many use an item is passed on to the items its best way in and out is made of.
    """
    n_edges, n_vertices = part_of.shape[0], in_ptr.shape[0] - 1
    weight = _edge_weights(part_of, score)
    chart = np.empty(n_vertices)
    back = np.empty(n_vertices, dtype=np.int32)
    hypergraph.viterbi(in_ptr, tail_ptr, tail, weight, chart, back)
    through[:] = -np.inf
    mean[:] = 0.0
    goal = n_vertices - 1
    if chart[goal] == -np.inf:
        return -np.inf
    up, head, best_edge = _ways_out(in_ptr, tail_ptr, tail, part_of, weight, chart, through)
    # How much of every edge the mean holds: first outwards, then inwards.
    count = 0
    for a in range(through.shape[0]):
        count += best_edge[a] >= 0
    share = (1.0 - eta) / count if count else 0.0
    uses = np.zeros(n_edges)
    outwards = np.zeros(n_vertices)
    inwards = np.zeros(n_vertices)
    inwards[goal] = eta
    for a in range(through.shape[0]):
        e = best_edge[a]
        if e >= 0:
            uses[e] += share
            outwards[head[e]] += share
            for k in range(tail_ptr[e], tail_ptr[e + 1]):
                inwards[tail[k]] += share
    for v in range(goal):
        if outwards[v] > 0.0:
            e = up[v]
            uses[e] += outwards[v]
            outwards[head[e]] += outwards[v]
            for k in range(tail_ptr[e], tail_ptr[e + 1]):
                if tail[k] != v:
                    inwards[tail[k]] += outwards[v]
    for v in range(goal, -1, -1):
        if inwards[v] > 0.0:
            e = back[v]
            uses[e] += inwards[v]
            for k in range(tail_ptr[e], tail_ptr[e + 1]):
                inwards[tail[k]] += inwards[v]
    _add_to_parts(part_of, uses, mean)
    return chart[goal]


@njit(cache=True, nogil=True)
def crossing_filter(rows, n, score, single, eta, through, mean):
    """forest_filter for trees with crossing arcs: rows are arcs. One arborescence for each arc, O(n^4) in all."""
    size = n + 1
    arc = np.full(size * size, -np.inf)
    arc_id = np.full((size, size), -1, dtype=np.int64)
    for a in range(rows.shape[0]):
        arc[rows[a, 1] * size + rows[a, 2]] = score[a]
        arc_id[rows[a, 1], rows[a, 2]] = a
    n_floats, n_ints = arborescence.work_sizes(n)
    floats, ints = np.empty(n_floats), np.empty(n_ints, dtype=np.int64)
    heads = np.empty(size, dtype=np.int64)
    column = np.empty(size)
    mean[:] = 0.0
    count = 0
    for a in range(rows.shape[0]):
        h, m = rows[a, 1], rows[a, 2]
        for g in range(size):
            column[g] = arc[g * size + m]
            if g != h:
                arc[g * size + m] = -np.inf
        through[a] = arborescence.best_heads(arc, size, n, single, heads, floats, ints)
        for g in range(size):
            arc[g * size + m] = column[g]
        if through[a] > -np.inf:
            count += 1
            for v in range(1, size):
                mean[arc_id[heads[v], v]] += 1.0 - eta
    best = arborescence.best_heads(arc, size, n, single, heads, floats, ints)
    if best > -np.inf:
        mean /= count
        for v in range(1, size):
            mean[arc_id[heads[v], v]] += eta
    return best
