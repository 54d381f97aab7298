"""Sums over the paths of the lattices of ``head_lattices``: of every head on its own, with what paths use on average.

Arc scores are not in the weights of the lattices: ``arc_value[a]`` is what taking arc a adds, ``up_value[a]`` what
having it as the arc into one's own head adds. All scores are multiplied by ``scale`` before they are exponentiated.
"""

from math import exp, log

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.head_automata import path_score


@njit(cache=True, nogil=True)
def sums_to(lat, side, arc_value, scale, value):
    """value[v, g] <- log of the sum over paths from the start of a lattice to each state v, for every column g."""
    columns = lat.width[side // 2]
    first = lat.state_ptr[side]
    base = lat.value_ptr[side]
    start = lat.in_ptr[first]
    for g in range(columns):
        value[base + g] = 0.0
    for v in range(first + 1, lat.state_ptr[side + 1]):
        a = lat.state_arc[v]
        added = scale * arc_value[a] if a >= 0 else 0.0
        for g in range(columns):
            most = -np.inf
            for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                weight = lat.weight[lat.weight_ptr[side] + (e - start) * columns + g]
                most = max(most, value[base + (lat.src[e] - first) * columns + g] + scale * weight)
            total = 0.0
            if most > -np.inf:
                for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                    weight = lat.weight[lat.weight_ptr[side] + (e - start) * columns + g]
                    total += exp(value[base + (lat.src[e] - first) * columns + g] + scale * weight - most)
                most += log(total) + added
            value[base + (v - first) * columns + g] = most


@njit(cache=True, nogil=True)
def uses_from(lat, side, arc_value, scale, value, after, taken):
    """Add to taken[a] the probability that a path takes arc a; returns the average of its scaled score.

    Needs ``sums_to``, and in after[end, g] the log of the probability of column g less the sum over its paths.
    """
    columns = lat.width[side // 2]
    first = lat.state_ptr[side]
    base = lat.value_ptr[side]
    start = lat.in_ptr[first]
    average = 0.0
    for v in range(lat.state_ptr[side + 1] - 1, first, -1):
        a = lat.state_arc[v]
        added = scale * arc_value[a] if a >= 0 else 0.0
        for g in range(columns):
            at = base + (v - first) * columns + g
            if value[at] == -np.inf or after[at] == -np.inf:
                continue
            if a >= 0:
                taken[a] += exp(value[at] + after[at])
            for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                gained = scale * lat.weight[lat.weight_ptr[side] + (e - start) * columns + g] + added
                if gained == -np.inf:
                    continue
                before = base + (lat.src[e] - first) * columns + g
                rest = after[at] + gained
                probability = exp(value[before] + rest)
                average += probability * gained
                high, low = max(rest, after[before]), min(rest, after[before])
                after[before] = high if low == -np.inf else high + log(1.0 + exp(low - high))
    return average


@njit(cache=True, nogil=True)
def head_sums(lat, arc_value, up_value, scale, taken, above):
    """Log of the sum over the choices of all heads of exp(scale * score), and the average of scale * score.

    A choice is a path through both lattices of a head, and, with ``by_head``, a column. taken[a] <- probability that
    the head of arc a takes it; above[a] <- that the modifier of arc a has it as the arc into itself, where that is
    scored. (-inf, 0) where some head has no choice.
    """
    n = lat.width.shape[0] - 1
    value = np.empty(lat.value_ptr[2 * n + 2], np.float64)
    after = np.full(lat.value_ptr[2 * n + 2], -np.inf)
    taken[:] = 0.0
    above[:] = 0.0
    total = 0.0
    average = 0.0
    for h in range(n + 1):
        columns = lat.width[h]
        scored = lat.by_head[0] == 1 and h > 0
        sums_to(lat, 2 * h, arc_value, scale, value)
        sums_to(lat, 2 * h + 1, arc_value, scale, value)
        left = lat.value_ptr[2 * h + 1] - columns
        right = lat.value_ptr[2 * h + 2] - columns
        most = -np.inf
        for g in range(columns):
            up = scale * up_value[lat.up[lat.up_ptr[h] + g]] if scored else 0.0
            most = max(most, value[left + g] + value[right + g] + up)
        if most == -np.inf:
            return -np.inf, 0.0
        mass = 0.0
        for g in range(columns):
            up = scale * up_value[lat.up[lat.up_ptr[h] + g]] if scored else 0.0
            mass += exp(value[left + g] + value[right + g] + up - most)
        most += log(mass)
        total += most
        for g in range(columns):
            up = scale * up_value[lat.up[lat.up_ptr[h] + g]] if scored else 0.0
            after[left + g] = value[right + g] + up - most
            after[right + g] = value[left + g] + up - most
            if scored:
                share = exp(value[left + g] + value[right + g] + up - most)
                above[lat.up[lat.up_ptr[h] + g]] = share
                average += share * up
        average += uses_from(lat, 2 * h, arc_value, scale, value, after, taken)
        average += uses_from(lat, 2 * h + 1, arc_value, scale, value, after, taken)
    return total, average


@njit(cache=True, nogil=True)
def tree_scores(lat, arc, trees, out):
    """out[k] <- score of the tree with heads trees[k]: of its arcs, arc (A,), and of the paths they are; -inf if none.

    Shapes: trees (K, n+1), out (K,).
    """
    n = lat.width.shape[0] - 1
    arc_id = np.full((n + 1, n + 1), -1, np.int64)
    for a in range(arc.shape[0]):
        arc_id[lat.arc_head[a], lat.arc_mod[a]] = a
    chosen = np.zeros(arc.shape[0], np.int64)
    scratch = np.empty(lat.state_arc.shape[0], np.float64)
    for k in range(trees.shape[0]):
        total = 0.0
        for m in range(1, n + 1):
            a = arc_id[trees[k, m], m]
            if a < 0:
                total = -np.inf
            else:
                chosen[a] = 1
                total += arc[a]
        if total > -np.inf:
            for h in range(n + 1):
                column = 0
                if lat.by_head[0] == 1 and h > 0:
                    while lat.arc_head[lat.up[lat.up_ptr[h] + column]] != trees[k, h]:
                        column += 1
                total += path_score(lat, 2 * h, column, chosen, scratch)
                total += path_score(lat, 2 * h + 1, column, chosen, scratch)
        for m in range(1, n + 1):
            a = arc_id[trees[k, m], m]
            if a >= 0:
                chosen[a] = 0
        out[k] = total
