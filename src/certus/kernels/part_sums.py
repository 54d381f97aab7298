"""Sums over the derivations of a hypergraph by its parts, and their derivatives, for many scores of one graph.

A graph is that of certus.certificates.normal, laid out as in certus.kernels.hypergraph: edge e uses the parts
part[part_ptr[e] : part_ptr[e + 1]], and weighs the sum of their scores. Scores are (B, P); the root is the last vertex.

Everything is said by the probability q[e] that a derivation of head(e) starts with e, and by the uses of vertices that
are passed down: nothing is divided by what may be small. Sums are kept as a number near 1 and a power of two, so that
there is one exponential for each part and none for an edge.

For directions u and v of the scores, with s_u[e] the slope of the log-sum of an edge along u, and m_u[v] that of a
vertex,

    s_u[e]  = u[e] + sum_{tails} m_u          m_u[v]  = sum_e q[e] s_u[e]
    s_uv[e] = sum_{tails} m_uv                m_uv[v] = sum_e q[e] (s_uv[e] + c_u[e] c_v[e])
    q_u = q c_u,   q_uv = q (c_u c_v + s_uv - m_uv[head]),   c_u = s_u - m_u[head]

and uses follow by the rule of products.
"""

from math import exp, floor, frexp, inf, log, nan

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit
from certus.kernels.hypergraph import expected_uses

LOG2 = 0.6931471805599453
FEW = 1100  # powers of two that are told from 0


@njit(cache=True, nogil=True)
def halves():
    """2^-k for all k below FEW."""
    found = np.ones(FEW)
    for k in range(1, FEW):
        found[k] = 0.5 * found[k - 1]
    return found


@njit(cache=True, nogil=True)
def split(score, number, power):
    """number[p] 2^power[p] <- exp(score[p]), numbers between 1 and 2; 0 for -inf, nan for what is no score."""
    for p in range(score.shape[0]):
        power[p] = 0
        number[p] = 0.0 if score[p] == -inf else nan
        if -inf < score[p] < inf:
            power[p] = floor(score[p] / LOG2)
            number[p] = exp(score[p] - power[p] * LOG2)


@njit(cache=True, nogil=True)
def chances(graph, part, half, vertex, edge):
    """edge.number[e] <- q[e], and vertex <- the sums of exp(score) over the derivations of each vertex.

    part, vertex and edge are pairs of numbers and powers of two; ``half`` is what halves() gave.
    """
    x, high = part
    value, level = vertex
    q, power = edge
    tail_ptr, tail, part_ptr, used = graph.tail_ptr, graph.tail, graph.part_ptr, graph.part
    begin = uint64(0)
    k = uint64(0)
    j = uint64(0)
    for v in range(uint64(value.shape[0])):
        end = uint64(graph.in_ptr[v + uint64(1)])
        top = np.int64(-(2**62))
        for e in range(begin, end):
            weight = 1.0
            height = np.int64(0)
            stop = uint64(part_ptr[e + uint64(1)])
            while j < stop:
                p = uint64(used[j])
                weight *= x[p]
                height += high[p]
                j += uint64(1)
            stop = uint64(tail_ptr[e + uint64(1)])
            while k < stop:
                t = uint64(tail[k])
                weight *= value[t]
                height += level[t]
                k += uint64(1)
            q[e] = weight
            power[e] = height
            if weight > 0.0 and height > top:
                top = height
        total = 0.0
        for e in range(begin, end):
            down = top - power[e]
            if down > 0:
                q[e] *= half[uint64(down)] if down < FEW else 0.0
            total += q[e]
        value[v] = 0.0
        level[v] = 0
        if total != 0.0:
            inverse = 1.0 / total
            for e in range(begin, end):
                q[e] *= inverse
            value[v], more = frexp(total)
            level[v] = top + more
        begin = end


@njit(cache=True, nogil=True)
def edge_weights(graph, score, weight):
    """weight[e] <- sum of the scores of the parts of e."""
    k = uint64(0)
    for e in range(uint64(weight.shape[0])):
        total = 0.0
        stop = uint64(graph.part_ptr[e + uint64(1)])
        while k < stop:
            total += score[uint64(graph.part[k])]
            k += uint64(1)
        weight[e] = total


@njit(cache=True, nogil=True)
def room(graph, n_parts):
    """Numbers and powers of two of parts, vertices and edges."""
    n_edges, n_vertices = graph.tail_ptr.shape[0] - 1, graph.in_ptr.shape[0] - 1
    part = (np.empty(n_parts), np.empty(n_parts, dtype=np.int64))
    vertex = (np.empty(n_vertices), np.empty(n_vertices, dtype=np.int64))
    return part, vertex, (np.empty(n_edges), np.empty(n_edges, dtype=np.int64))


@njit(cache=True, nogil=True)
def part_sums(graph, scores, total, uses):
    """total[b] <- log of the sum of exp(score) over derivations; uses[b, p] <- expected uses of each part.

    total[b] is nan where a score is nan or inf, and then, or where it is -inf, all uses are 0.
    """
    part, vertex, edge = room(graph, scores.shape[1])
    half, used, used_edge = halves(), np.empty_like(vertex[0]), np.empty_like(edge[0])
    root = vertex[0].shape[0] - 1
    for b in range(scores.shape[0]):
        uses[b] = 0.0
        split(scores[b], part[0], part[1])
        chances(graph, part, half, vertex, edge)
        value = vertex[0][root]
        total[b] = log(value) + LOG2 * vertex[1][root] if value > 0.0 else (-inf if value == 0.0 else nan)
        if not value > 0.0:
            continue
        expected_uses(graph.in_ptr, graph.tail_ptr, graph.tail, edge[0], root, used, used_edge)
        for e in range(uint64(used_edge.shape[0])):
            for k in range(uint64(graph.part_ptr[e]), uint64(graph.part_ptr[e + uint64(1)])):
                uses[b, uint64(graph.part[k])] += used_edge[e]


@njit(cache=True, nogil=True)
def slopes(graph, q, u, mean):
    """u[e] <- c_u[e], mean[v] <- m_u[v], for the weights of the edges along u; 0 for edges of no probability."""
    in_ptr, tail_ptr, tail = graph.in_ptr, graph.tail_ptr, graph.tail
    for v in range(uint64(mean.shape[0])):
        mean[v] = 0.0
        for e in range(uint64(in_ptr[v]), uint64(in_ptr[v + uint64(1)])):
            if q[e] == 0.0:
                u[e] = 0.0
                continue
            for k in range(uint64(tail_ptr[e]), uint64(tail_ptr[e + uint64(1)])):
                u[e] += mean[uint64(tail[k])]
            mean[v] += q[e] * u[e]
        for e in range(uint64(in_ptr[v]), uint64(in_ptr[v + uint64(1)])):
            if q[e] > 0.0:
                u[e] -= mean[v]


@njit(cache=True, nogil=True)
def curvatures(graph, q, first, second, both, mean):
    """both[e] <- q_uv[e] / q[e], mean[v] <- m_uv[v], by the c_u and c_v that slopes left."""
    in_ptr, tail_ptr, tail = graph.in_ptr, graph.tail_ptr, graph.tail
    for v in range(uint64(mean.shape[0])):
        mean[v] = 0.0
        for e in range(uint64(in_ptr[v]), uint64(in_ptr[v + uint64(1)])):
            both[e] = first[e] * second[e]
            if q[e] > 0.0:
                for k in range(uint64(tail_ptr[e]), uint64(tail_ptr[e + uint64(1)])):
                    both[e] += mean[uint64(tail[k])]
                mean[v] += q[e] * both[e]
        for e in range(uint64(in_ptr[v]), uint64(in_ptr[v + uint64(1)])):
            both[e] -= mean[v]


@njit(cache=True, nogil=True)
def part_tangents(graph, scores, u, out):
    """out[b, p] <- derivative of the expected uses of part p along u[b]."""
    part, vertex, edge = room(graph, scores.shape[1])
    half, chart, q = halves(), vertex[0], edge[0]
    first, use, use_u = np.empty_like(q), np.empty_like(chart), np.empty_like(chart)
    n_vertices = chart.shape[0]
    for b in range(scores.shape[0]):
        out[b] = 0.0
        split(scores[b], part[0], part[1])
        chances(graph, part, half, vertex, edge)
        edge_weights(graph, u[b], first)
        slopes(graph, q, first, chart)
        use[:] = 0.0
        use_u[:] = 0.0
        use[n_vertices - 1] = 1.0
        for v in range(n_vertices - 1, -1, -1):
            for e in range(uint64(graph.in_ptr[v]), uint64(graph.in_ptr[v + 1])):
                if q[e] == 0.0:
                    continue
                x = q[e] * use[v]
                x_u = q[e] * (use_u[v] + first[e] * use[v])
                for k in range(uint64(graph.tail_ptr[e]), uint64(graph.tail_ptr[e + uint64(1)])):
                    use[uint64(graph.tail[k])] += x
                    use_u[uint64(graph.tail[k])] += x_u
                for k in range(uint64(graph.part_ptr[e]), uint64(graph.part_ptr[e + uint64(1)])):
                    out[b, uint64(graph.part[k])] += x_u


@njit(cache=True, nogil=True)
def part_curvatures(graph, scores, u, v, out):
    """out[b, p] <- derivative of the expected uses of part p along u[b] and along v[b]."""
    part, vertex, edge = room(graph, scores.shape[1])
    half, chart, q = halves(), vertex[0], edge[0]
    first, second, both = np.empty_like(q), np.empty_like(q), np.empty_like(q)
    n_vertices = chart.shape[0]
    use = np.empty((n_vertices, 4))  # as it is, along u, along v, along both
    for b in range(scores.shape[0]):
        out[b] = 0.0
        split(scores[b], part[0], part[1])
        chances(graph, part, half, vertex, edge)
        edge_weights(graph, u[b], first)
        slopes(graph, q, first, chart)
        edge_weights(graph, v[b], second)
        slopes(graph, q, second, chart)
        curvatures(graph, q, first, second, both, chart)
        use[:] = 0.0
        use[n_vertices - 1, 0] = 1.0
        for w in range(n_vertices - 1, -1, -1):
            for e in range(uint64(graph.in_ptr[w]), uint64(graph.in_ptr[w + 1])):
                if q[e] == 0.0:
                    continue
                x = q[e] * use[w, 0]
                x_u = q[e] * (use[w, 1] + first[e] * use[w, 0])
                x_v = q[e] * (use[w, 2] + second[e] * use[w, 0])
                x_uv = q[e] * (use[w, 3] + second[e] * use[w, 1] + first[e] * use[w, 2] + both[e] * use[w, 0])
                for k in range(uint64(graph.tail_ptr[e]), uint64(graph.tail_ptr[e + uint64(1)])):
                    t = uint64(graph.tail[k])
                    use[t, 0] += x
                    use[t, 1] += x_u
                    use[t, 2] += x_v
                    use[t, 3] += x_uv
                for k in range(uint64(graph.part_ptr[e]), uint64(graph.part_ptr[e + uint64(1)])):
                    out[b, uint64(graph.part[k])] += x_uv
