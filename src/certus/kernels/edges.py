"""Undirected edges of padded batches (B, N, N): whether they are scores, and sums and maxima over both directions."""

import numpy as np

from certus.kernels.compiling import njit


@njit(cache=True, nogil=True)
def survey(edge, nodes):
    """The first item with an edge between two of its nodes that is nan or inf or not the same both ways, or -1."""
    for b in range(edge.shape[0]):
        for i in range(nodes[b]):
            for j in range(i):
                if not (edge[b, i, j] == edge[b, j, i] and edge[b, i, j] < np.inf):
                    return b
    return -1


@njit(cache=True, nogil=True)
def both_ways(arc, nodes, largest, out):
    """out[b, i, j] <- the sum of arc[b, i, j] and arc[b, j, i], or the larger one, where i < j; else 0, or -inf."""
    out[:] = -np.inf if largest else 0.0
    for b in range(out.shape[0]):
        for i in range(nodes[b]):
            for j in range(i + 1, nodes[b]):
                one, other = arc[b, i, j], arc[b, j, i]
                out[b, i, j] = max(one, other) if largest else one + other
