"""Best paths between the leaves of a translation forest, over the ports of its vertices.

Of n vertices, vertex v is left by port v and entered by port 2 n - 1 - v; leaves are the first vertices. Arc s leads
from port to port ``target[s]``, always to one of a larger number; arcs are sorted by source, those that leave port p
are ``ptr[p]:ptr[p + 1]``. A path from leaf a to leaf b leads from port a to port 2 n - 1 - b, and

    value(a, b) = max over paths from a to b of  - sum of u[s] over its arcs.

Ties go to the arc of the smallest source, then to the smallest arc.
"""

import numpy as np

from certus.kernels.arrays import longer
from certus.kernels.compiling import njit


@njit(cache=True, nogil=True)
def _from_leaf(ptr, target, u, a, value, back):
    """value[p] <- the best of a path from leaf a to port p, -inf if there is none; back[p] <- its last arc."""
    n_ports = ptr.shape[0] - 1
    for p in range(a, n_ports):
        value[p] = -np.inf
        back[p] = -1
    value[a] = 0.0
    for p in range(a, n_ports):
        if value[p] > -np.inf:
            for s in range(ptr[p], ptr[p + 1]):
                reached = value[p] - u[s]
                if reached > value[target[s]]:
                    value[target[s]] = reached
                    back[target[s]] = s


@njit(cache=True, nogil=True)
def reached(ptr, target, n_leaves):
    """(pair_ptr, leaf): the leaves to which there is a path from leaf a are leaf[pair_ptr[a]:pair_ptr[a + 1]]."""
    n_ports = ptr.shape[0] - 1
    value, back, u = np.empty(n_ports), np.empty(n_ports, np.int64), np.zeros(target.shape[0])
    pair_ptr, leaf, n = np.zeros(n_leaves + 1, np.int64), np.empty(64, np.int64), 0
    for a in range(n_leaves):
        _from_leaf(ptr, target, u, a, value, back)
        for b in range(n_leaves):
            if value[n_ports - 1 - b] > -np.inf:
                if n == leaf.shape[0]:
                    leaf = longer(leaf)
                leaf[n] = b
                n += 1
        pair_ptr[a + 1] = n
    return pair_ptr, leaf[:n]


@njit(cache=True, nogil=True)
def cells(ptr, target, n_leaves):
    """(leaf, arc): every arc that can be reached from a leaf, by leaves."""
    n_ports = ptr.shape[0] - 1
    value, back, u = np.empty(n_ports), np.empty(n_ports, np.int64), np.zeros(target.shape[0])
    leaf, arc, n = np.empty(64, np.int64), np.empty(64, np.int64), 0
    for a in range(n_leaves):
        _from_leaf(ptr, target, u, a, value, back)
        for p in range(a, n_ports):
            if value[p] > -np.inf:
                for s in range(ptr[p], ptr[p + 1]):
                    if n == leaf.shape[0]:
                        leaf, arc = longer(leaf), longer(arc)
                    leaf[n], arc[n] = a, s
                    n += 1
    return leaf[:n], arc[:n]


@njit(cache=True, nogil=True)
def values(ptr, target, u, pair_ptr, leaf, out):
    """out[k] <- value(a, leaf[k]) for every leaf a and k in pair_ptr[a]:pair_ptr[a + 1]."""
    n_ports = ptr.shape[0] - 1
    value, back = np.empty(n_ports), np.empty(n_ports, np.int64)
    for a in range(pair_ptr.shape[0] - 1):
        if pair_ptr[a] < pair_ptr[a + 1]:
            _from_leaf(ptr, target, u, a, value, back)
            for k in range(pair_ptr[a], pair_ptr[a + 1]):
                out[k] = value[n_ports - 1 - leaf[k]]


@njit(cache=True, nogil=True)
def path(ptr, target, u, source, a, b):
    """The arcs of a best path from leaf a to leaf b, the last first; ``source`` is the port that each arc leaves."""
    n_ports = ptr.shape[0] - 1
    value, back = np.empty(n_ports), np.empty(n_ports, np.int64)
    _from_leaf(ptr, target, u, a, value, back)
    out, n, p = np.empty(n_ports, np.int64), 0, n_ports - 1 - b
    while p != a:
        out[n] = back[p]
        p = source[out[n]]
        n += 1
    return out[:n]
