"""Many problems over one graph, each with scores of its own: best derivations, sums, samples and max-marginals.

Edges of the graph use parts, of which every problem has its scores: parts (W, E) are those of each edge, a number past
the last part where it has fewer. Scores are (B, P) and rows of answers belong to the problems, one after the other.
"""

from math import log
from typing import NamedTuple

import numpy as np

from certus.kernels.algebra import MAX
from certus.kernels.compiling import njit
from certus.kernels.hypergraph import conditionals, edge_totals, expected_uses, inside, outside, viterbi


class Program(NamedTuple):
    """A graph as in kernels.hypergraph, its root the last vertex, with the parts of its edges."""

    in_ptr: np.ndarray
    tail_ptr: np.ndarray
    tail: np.ndarray
    parts: np.ndarray  # (W, E)


@njit(cache=True, nogil=True)
def survey(scores, read, lowest, highest):
    """The least finite and the greatest score of the parts that are read, 0 where none is; inf if one is no score."""
    for b in range(scores.shape[0]):
        low, high = np.inf, -np.inf
        for p in range(scores.shape[1]):
            if read[p] and scores[b, p] != -np.inf:
                value = scores[b, p] if scores[b, p] < np.inf else np.inf  # what is not a number, too
                low, high = min(low, value), max(high, value)
        lowest[b], highest[b] = (low, high) if high > -np.inf else (0.0, 0.0)


@njit(cache=True, nogil=True)
def _weigh(program, scores, weight):
    """weight[e] <- the sum of the scores of its parts."""
    size = scores.shape[0]
    for e in range(weight.shape[0]):
        part = program.parts[0, e]
        weight[e] = scores[part] if part < size else 0.0
    for w in range(1, program.parts.shape[0]):
        for e in range(weight.shape[0]):
            part = program.parts[w, e]
            if part < size:
                weight[e] += scores[part]


@njit(cache=True, nogil=True)
def _spell(program, chosen, stack, size, out):
    """out <- the parts of the derivation that takes the edge chosen[v] at each vertex v, head before tails."""
    depth = 1
    stack[0] = chosen.shape[0] - 1
    n = 0
    while depth > 0:
        depth -= 1
        e = chosen[stack[depth]]
        for w in range(program.parts.shape[0]):
            if program.parts[w, e] < size:
                out[n] = program.parts[w, e]
                n += 1
        for k in range(program.tail_ptr[e + 1] - 1, program.tail_ptr[e] - 1, -1):
            stack[depth] = program.tail[k]
            depth += 1


@njit(cache=True, nogil=True)
def decode(program, scores, value, out):
    """value[b] <- the best score of a derivation, -inf if there is none; out[b] <- its parts, -1 behind the last."""
    vertices, edges = program.in_ptr.shape[0] - 1, program.tail_ptr.shape[0] - 1
    weight, chart = np.empty(edges), np.empty(vertices)
    back, stack = np.empty(vertices, np.int32), np.empty(vertices + 1, np.int64)
    out[:] = -1
    for b in range(scores.shape[0]):
        _weigh(program, scores[b], weight)
        viterbi(program.in_ptr, program.tail_ptr, program.tail, weight, chart, back)
        value[b] = chart[vertices - 1]
        if value[b] > -np.inf:
            _spell(program, back, stack, scores.shape[1], out[b])


@njit(cache=True, nogil=True)
def sums(program, scores, value, entropy, counts):
    """value[b] <- log of the sum of exp(score); entropy[b] and the expected uses counts[b] of parts, unless empty."""
    vertices, edges = program.in_ptr.shape[0] - 1, program.tail_ptr.shape[0] - 1
    weight, q, uses, expected = np.empty(edges), np.empty(edges), np.empty(vertices), np.empty(edges)
    chart = np.empty(vertices)
    counts[:] = 0.0
    for b in range(scores.shape[0]):
        _weigh(program, scores[b], weight)
        conditionals(program.in_ptr, program.tail_ptr, program.tail, weight, chart, q)
        value[b] = chart[vertices - 1]
        if value[b] == -np.inf or (not counts.shape[0] and not entropy.shape[0]):
            continue
        expected_uses(program.in_ptr, program.tail_ptr, program.tail, q, vertices - 1, uses, expected)
        if entropy.shape[0]:
            total = 0.0
            for e in range(edges):
                if expected[e] > 0.0 and q[e] < 1.0:
                    total -= expected[e] * log(q[e])
            entropy[b] = total
        if counts.shape[0]:
            for w in range(program.parts.shape[0]):
                for e in range(edges):
                    if program.parts[w, e] < scores.shape[1]:
                        counts[b, program.parts[w, e]] += expected[e]


@njit(cache=True, nogil=True)
def draw(program, scores, value, rng, out):
    """out[b, i] <- the parts of derivations drawn in proportion to exp(score), -1 behind the last of each.

    One sweep for each problem; a vertex draws its edge from running sums, by bisection.
    """
    vertices, edges = program.in_ptr.shape[0] - 1, program.tail_ptr.shape[0] - 1
    weight, upto, chart = np.empty(edges), np.empty(edges), np.empty(vertices)
    stack = np.empty(vertices + 1, np.int64)
    out[:] = -1
    for b in range(scores.shape[0]):
        _weigh(program, scores[b], weight)
        conditionals(program.in_ptr, program.tail_ptr, program.tail, weight, chart, upto)
        value[b] = chart[vertices - 1]
        if value[b] == -np.inf:
            continue
        for v in range(vertices):
            for e in range(program.in_ptr[v] + 1, program.in_ptr[v + 1]):
                upto[e] += upto[e - 1]
        for i in range(out.shape[1]):
            stack[0] = vertices - 1
            depth = 1
            n = 0
            while depth > 0:
                depth -= 1
                v = stack[depth]
                low, last = program.in_ptr[v], program.in_ptr[v + 1] - 1
                x = upto[last]
                while x >= upto[last]:  # the product may round up to the total
                    x = rng.random() * upto[last]
                high = last
                while low < high:  # the first edge that is more than x
                    middle = (low + high) // 2
                    if upto[middle] > x:
                        high = middle
                    else:
                        low = middle + 1
                for w in range(program.parts.shape[0]):
                    if program.parts[w, low] < scores.shape[1]:
                        out[b, i, n] = program.parts[w, low]
                        n += 1
                for k in range(program.tail_ptr[low + 1] - 1, program.tail_ptr[low] - 1, -1):
                    stack[depth] = program.tail[k]
                    depth += 1


@njit(cache=True, nogil=True)
def max_totals(program, scores, value, out):
    """out[b, p] <- the best score of a derivation that uses part p < out.shape[1]; -inf if none does."""
    vertices, edges = program.in_ptr.shape[0] - 1, program.tail_ptr.shape[0] - 1
    weight, total = np.empty(edges), np.empty(edges)
    chart, around = np.empty(vertices), np.empty(vertices)
    out[:] = -np.inf
    for b in range(scores.shape[0]):
        _weigh(program, scores[b], weight)
        inside(MAX, program.in_ptr, program.tail_ptr, program.tail, weight, chart)
        value[b] = chart[vertices - 1]
        if value[b] == -np.inf:
            continue
        outside(MAX, program.in_ptr, program.tail_ptr, program.tail, weight, vertices - 1, chart, around)
        edge_totals(MAX, program.in_ptr, program.tail_ptr, program.tail, weight, chart, around, total)
        for w in range(program.parts.shape[0]):
            for e in range(edges):
                part = program.parts[w, e]
                if part < out.shape[1]:
                    out[b, part] = max(out[b, part], total[e])
