"""Sweeps over a hypergraph held in three flat arrays.

Layout: the edges entering vertex v are in_ptr[v] .. in_ptr[v + 1] - 1, the tail of edge e is
tail[tail_ptr[e] : tail_ptr[e + 1]], and every tail vertex is numbered below its head, so that ascending order is
bottom-up. Ties go to the smallest edge.
"""

from math import exp, log

import numpy as np
from numba import uint64

from certus.kernels.algebra import plus, times
from certus.kernels.compiling import njit

# -- sweeps ----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def inside(sr, in_ptr, tail_ptr, tail, weight, chart):
    """chart[v] <- (+)_{e in IN(v)}  w[e] (x) (x)_{u in tail(e)} chart[u];  zero where no edge enters.

    Shapes: in_ptr (V+1,), tail_ptr (E+1,), tail (sum |tail|,), weight (E,), chart (V,). Overwrites chart.
    """
    k = uint64(0)
    begin = uint64(0)
    for v in range(uint64(chart.shape[0])):
        end = uint64(in_ptr[v + uint64(1)])
        total = sr.zero
        for e in range(begin, end):
            score = weight[e]
            stop = uint64(tail_ptr[e + uint64(1)])
            while k < stop:
                score = times(sr, score, chart[uint64(tail[k])])
                k += uint64(1)
            total = plus(sr, total, score)
        chart[v] = total
        begin = end


@njit(cache=True, nogil=True)
def outside(sr, in_ptr, tail_ptr, tail, weight, root, chart, out):
    """out[u] <- (+) over edges e with u in tail(e) of  out[head(e)] (x) w[e] (x) the charts of the others.

    chart is what inside left. The product of the others is built from both ends, never by dividing: chart may be zero.
    out (V,) is overwritten; out[root] is one, and zero for vertices that the root does not reach.
    """
    longest = 0
    for e in range(tail_ptr.shape[0] - 1):
        longest = max(longest, tail_ptr[e + 1] - tail_ptr[e])
    right = np.empty(longest + 1, dtype=chart.dtype)  # right[i]: product of the tail after place i
    out[:] = sr.zero
    out[root] = sr.one
    for v in range(root, -1, -1):
        if out[v] == sr.zero:
            continue
        for e in range(uint64(in_ptr[v]), uint64(in_ptr[v + 1])):
            first = uint64(tail_ptr[e])
            size = uint64(tail_ptr[e + uint64(1)]) - first
            if size == uint64(0):
                continue
            product = sr.one
            for i in range(size):
                place = size - uint64(1) - i
                right[place] = product
                product = times(sr, product, chart[uint64(tail[first + place])])
            left = times(sr, out[v], weight[e])
            for i in range(size):
                u = uint64(tail[first + i])
                out[u] = plus(sr, out[u], times(sr, left, right[i]))
                left = times(sr, left, chart[u])


@njit(cache=True, nogil=True)
def edge_totals(sr, in_ptr, tail_ptr, tail, weight, chart, out, total):
    """total[e] <- out[head(e)] (x) w[e] (x) (x)_{u in tail(e)} chart[u]: the derivations with e, once per use of it."""
    k = uint64(0)
    for v in range(uint64(chart.shape[0])):
        for e in range(uint64(in_ptr[v]), uint64(in_ptr[v + uint64(1)])):
            score = weight[e]
            stop = uint64(tail_ptr[e + uint64(1)])
            while k < stop:
                score = times(sr, score, chart[uint64(tail[k])])
                k += uint64(1)
            total[e] = times(sr, out[v], score)


@njit(cache=True, nogil=True)
def conditionals(in_ptr, tail_ptr, tail, weight, chart, out):
    """out[e] <- probability that a derivation of head(e) drawn in proportion to exp(score) starts with e.

    chart[v] <- log of the sum of exp(score) over the derivations of v, by one logarithm a vertex; out[e] is 0 for an
    edge that no derivation of finite score uses.
    """
    k = uint64(0)
    begin = uint64(0)
    for v in range(uint64(chart.shape[0])):
        end = uint64(in_ptr[v + uint64(1)])
        most = -np.inf
        for e in range(begin, end):
            score = weight[e]
            stop = uint64(tail_ptr[e + uint64(1)])
            while k < stop:
                score += chart[uint64(tail[k])]
                k += uint64(1)
            out[e] = score
            most = max(most, score)
        total = 0.0
        for e in range(begin, end):
            out[e] = exp(out[e] - most) if out[e] > -np.inf else 0.0
            total += out[e]
        if total > 0.0:
            most += log(total)
            for e in range(begin, end):
                out[e] /= total
        chart[v] = most
        begin = end


@njit(cache=True, nogil=True)
def expected_uses(in_ptr, tail_ptr, tail, conditional, root, uses, out):
    """out[e] <- expected number of uses of e in a derivation of root, by passing the uses of each vertex down.

    uses (V,) is overwritten with those of the vertices. Products of probabilities: nothing is subtracted or divided.
    """
    uses[:] = 0.0
    uses[root] = 1.0
    out[:] = 0.0
    for v in range(root, -1, -1):
        if uses[v] == 0.0:
            continue
        for e in range(uint64(in_ptr[v]), uint64(in_ptr[v + 1])):
            out[e] = uses[v] * conditional[e]
            for k in range(uint64(tail_ptr[e]), uint64(tail_ptr[e + uint64(1)])):
                uses[uint64(tail[k])] += out[e]


@njit(cache=True, nogil=True)
def expected(in_ptr, tail_ptr, tail, conditional, feature, mean):
    """mean[v] <- sum_{e in IN(v)} q[e] (feature[e] + sum_{u in tail(e)} mean[u]),  q the conditionals.

    The first-order expectation semiring with values kept as conditional means, so that nothing over- or underflows.
    Shapes: feature (E, F), mean (V, F).
    """
    mean[:] = 0.0
    for v in range(mean.shape[0]):
        for e in range(in_ptr[v], in_ptr[v + 1]):
            q = conditional[e]
            if q == 0.0:
                continue
            for f in range(mean.shape[1]):
                value = feature[e, f]
                for k in range(tail_ptr[e], tail_ptr[e + 1]):
                    value += mean[tail[k], f]
                mean[v, f] += q * value


@njit(cache=True, nogil=True)
def draw(in_ptr, tail_ptr, tail, conditional, root, rng):
    """Edges, head before tails, of one derivation of root; each vertex draws its edge by its conditional."""
    edges = np.empty(64, dtype=np.int32)
    stack = np.empty(64, dtype=np.int32)
    stack[0] = root
    depth = 1
    n = 0
    while depth > 0:
        depth -= 1
        v = stack[depth]
        left = rng.random()
        chosen = -1
        for e in range(in_ptr[v], in_ptr[v + 1]):
            q = conditional[e]
            if q > 0.0:
                chosen = e  # the last possible edge stands in when rounding leaves the sum below 1
                left -= q
                if left < 0.0:
                    break
        if n == edges.shape[0]:
            grown = np.empty(2 * n, dtype=np.int32)
            grown[:n] = edges
            edges = grown
        edges[n] = chosen
        n += 1
        size = tail_ptr[chosen + 1] - tail_ptr[chosen]
        while depth + size > stack.shape[0]:
            grown = np.empty(2 * stack.shape[0], dtype=np.int32)
            grown[:depth] = stack[:depth]
            stack = grown
        for k in range(size):
            stack[depth + k] = tail[tail_ptr[chosen + 1] - 1 - k]
        depth += size
    return edges[:n].copy()


@njit(cache=True, nogil=True)
def keep_useful(in_ptr, tail_ptr, tail, root, keep):
    """keep (E,) loses the edges that are in no derivation of root made of kept edges."""
    n_vertices = in_ptr.shape[0] - 1
    alive = np.zeros(n_vertices, dtype=np.bool_)
    for v in range(n_vertices):
        for e in range(in_ptr[v], in_ptr[v + 1]):
            for k in range(tail_ptr[e], tail_ptr[e + 1]):
                keep[e] &= alive[tail[k]]
            alive[v] |= keep[e]
    reached = np.zeros(n_vertices, dtype=np.bool_)
    reached[root] = True
    for v in range(n_vertices - 1, -1, -1):
        for e in range(in_ptr[v], in_ptr[v + 1]):
            keep[e] &= reached[v]
            if keep[e]:
                for k in range(tail_ptr[e], tail_ptr[e + 1]):
                    reached[tail[k]] = True


# -- order and best derivation ---------------------------------------------------------------------------------------


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
    """edges <- the derivation that back spells out from root, head before tails; its length, or -1 if there is no room.

    Every vertex that waits has an edge to come: the stack needs no more room than edges.
    """
    room = edges.shape[0]
    stack = np.empty(room, dtype=np.int32)
    stack[0] = root
    depth = 1
    n = 0
    while depth > 0:
        depth -= 1
        e = back[stack[depth]]
        edges[n] = e
        n += 1
        if n + depth + tail_ptr[e + 1] - tail_ptr[e] > room:
            return -1
        for k in range(tail_ptr[e + 1] - 1, tail_ptr[e] - 1, -1):
            stack[depth] = tail[k]
            depth += 1
    return n
