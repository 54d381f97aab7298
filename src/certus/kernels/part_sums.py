"""Sums over the derivations of a hypergraph by its parts, and their derivatives, for many scores of one graph.

A graph is that of certus.certificates.normal, laid out as in certus.kernels.hypergraph: edge e uses the parts
part[part_ptr[e] : part_ptr[e + 1]], and weighs the sum of their scores. Scores are (B, P); the root is the last vertex.

Everything is said by the probability q[e] that a derivation of head(e) starts with e, and by the uses of vertices that
are passed down: nothing is divided by what may be small. For directions u and v of the scores, with s_u[e] the slope of
the log-sum of an edge along u, and m_u[v] that of a vertex,

    s_u[e]  = u[e] + sum_{tails} m_u          m_u[v]  = sum_e q[e] s_u[e]
    s_uv[e] = sum_{tails} m_uv                m_uv[v] = sum_e q[e] (s_uv[e] + c_u[e] c_v[e])
    q_u = q c_u,   q_uv = q (c_u c_v + s_uv - m_uv[head]),   c_u = s_u - m_u[head]

and uses follow by the rule of products.
"""

from math import inf, nan

import numpy as np
from numba import uint64

from certus.kernels.compiling import njit
from certus.kernels.hypergraph import conditionals, expected_uses


@njit(cache=True, nogil=True)
def edge_weights(graph, score, weight):
    """weight[e] <- sum of the scores of the parts of e; returns whether all are below inf, none of them nan."""
    sound = True
    k = uint64(0)
    for e in range(uint64(weight.shape[0])):
        total = 0.0
        stop = uint64(graph.part_ptr[e + uint64(1)])
        while k < stop:
            total += score[uint64(graph.part[k])]
            k += uint64(1)
        weight[e] = total
        sound &= total < inf
    return sound


@njit(cache=True, nogil=True)
def part_sums(graph, scores, total, uses):
    """total[b] <- log of the sum of exp(score) over derivations; uses[b, p] <- expected uses of each part.

    total[b] is nan where a score is nan or inf, and then, or where it is -inf, all uses are 0.
    """
    n_edges, n_vertices = graph.tail_ptr.shape[0] - 1, graph.in_ptr.shape[0] - 1
    weight, q, edge = np.empty(n_edges), np.empty(n_edges), np.empty(n_edges)
    chart, vertex = np.empty(n_vertices), np.empty(n_vertices)
    for b in range(scores.shape[0]):
        uses[b] = 0.0
        if not edge_weights(graph, scores[b], weight):
            total[b] = nan
            continue
        conditionals(graph.in_ptr, graph.tail_ptr, graph.tail, weight, chart, q)
        total[b] = chart[n_vertices - 1]
        if total[b] == -inf:
            continue
        expected_uses(graph.in_ptr, graph.tail_ptr, graph.tail, q, n_vertices - 1, vertex, edge)
        for e in range(uint64(n_edges)):
            for k in range(uint64(graph.part_ptr[e]), uint64(graph.part_ptr[e + uint64(1)])):
                uses[b, uint64(graph.part[k])] += edge[e]


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
    n_edges, n_vertices = graph.tail_ptr.shape[0] - 1, graph.in_ptr.shape[0] - 1
    weight, q, first = np.empty(n_edges), np.empty(n_edges), np.empty(n_edges)
    chart, use, use_u = np.empty(n_vertices), np.empty(n_vertices), np.empty(n_vertices)
    for b in range(scores.shape[0]):
        out[b] = 0.0
        edge_weights(graph, scores[b], weight)
        conditionals(graph.in_ptr, graph.tail_ptr, graph.tail, weight, chart, q)
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
    n_edges, n_vertices = graph.tail_ptr.shape[0] - 1, graph.in_ptr.shape[0] - 1
    weight, q, both = np.empty(n_edges), np.empty(n_edges), np.empty(n_edges)
    first, second, chart = np.empty(n_edges), np.empty(n_edges), np.empty(n_vertices)
    use = np.empty((n_vertices, 4))  # as it is, along u, along v, along both
    for b in range(scores.shape[0]):
        out[b] = 0.0
        edge_weights(graph, scores[b], weight)
        conditionals(graph.in_ptr, graph.tail_ptr, graph.tail, weight, chart, q)
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
