"""Sweeps over a hypergraph held in three flat arrays.

Layout: the edges entering vertex v are in_ptr[v] .. in_ptr[v + 1] - 1, the tail of edge e is
tail[tail_ptr[e] : tail_ptr[e + 1]], and every tail vertex is numbered below its head, so that ascending order is
bottom-up. Ties go to the smallest edge.
"""

import numpy as np
from numba import njit, uint64


@njit(cache=True, nogil=True)
def postorder(in_ptr, by_head, tail_ptr, tail, order):
    """order <- all vertices, tails before heads; -1, or an edge that lies on a cycle.

    Here edges are in any order: those entering v are by_head[in_ptr[v] : in_ptr[v + 1]]. Vertices already in bottom-up
    order keep it.
    """
    n_vertices = order.shape[0]
    state = np.zeros(n_vertices, dtype=np.uint8)  # 0 new, 1 on the stack, 2 done
    edge_at = in_ptr[:-1].copy()  # where each open vertex is in its edges
    tail_at = np.zeros(n_vertices, dtype=np.int32)  # and in the tail of that edge
    stack = np.empty(n_vertices, dtype=np.int32)
    done = 0
    for start in range(n_vertices):
        if state[start] != 0:
            continue
        stack[0] = start
        depth = 1
        state[start] = 1
        while depth > 0:
            v = stack[depth - 1]
            if edge_at[v] == in_ptr[v + 1]:
                state[v] = 2
                order[done] = v
                done += 1
                depth -= 1
                continue
            e = by_head[edge_at[v]]
            k = tail_ptr[e] + tail_at[v]
            if k == tail_ptr[e + 1]:
                edge_at[v] += 1
                tail_at[v] = 0
                continue
            u = tail[k]
            if state[u] == 1:
                return e
            tail_at[v] += 1
            if state[u] == 0:
                state[u] = 1
                stack[depth] = u
                depth += 1
    return -1


@njit(cache=True, nogil=True)
def viterbi(in_ptr, tail_ptr, tail, weight, chart, back):
    """chart[v] <- max_{e in IN(v)} w[e] + sum_{u in tail(e)} chart[u];  back[v] <- the best e, -1 where chart is -inf.

    Shapes: chart (V,) float64, back (V,) int32; both are overwritten.
    """
    begin = uint64(in_ptr[0])
    k = uint64(0)
    for v in range(uint64(chart.shape[0])):
        end = uint64(in_ptr[v + uint64(1)])
        best = -np.inf
        arg = -1
        for e in range(begin, end):
            score = weight[e]
            stop = uint64(tail_ptr[e + uint64(1)])
            while k < stop:
                score += chart[uint64(tail[k])]
                k += uint64(1)
            if score > best:
                best = score
                arg = e
        chart[v] = best
        back[v] = arg
        begin = end


@njit(cache=True, nogil=True)
def derivation_size(tail_ptr, tail, back, root):
    """Number of edges of the derivation that back spells out from root, or -1 if it is more than 2^31."""
    size = np.zeros(root + 1, dtype=np.int64)
    for v in range(root + 1):
        e = back[v]
        if e >= 0:
            total = 1
            for k in range(tail_ptr[e], tail_ptr[e + 1]):
                total = min(total + size[tail[k]], np.int64(1) << 40)
            size[v] = total
    return size[root] if size[root] < np.int64(1) << 31 else -1


@njit(cache=True, nogil=True)
def derivation(tail_ptr, tail, back, root, edges):
    """edges <- the derivation that back spells out from root, head before tails. edges has its exact size."""
    stack = np.empty(edges.shape[0], dtype=np.int32)
    stack[0] = root
    depth = 1
    n = 0
    while depth > 0:
        depth -= 1
        e = back[stack[depth]]
        edges[n] = e
        n += 1
        for k in range(tail_ptr[e + 1] - 1, tail_ptr[e] - 1, -1):
            stack[depth] = tail[k]
            depth += 1
