"""The k best trees of head automata and the spanning tree, each proved by its multipliers, in one call.

A cell is what is left of the trees without those found: in it the first words, in an order of its own, keep the heads
of the tree that was set apart, and the next word takes another. Cells are bounded by max-marginals under the
multipliers of the cell that they come from, and solved, from these multipliers on, only when no other cell has a better
bound. Arcs that a cell forbids have a score of -inf there.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.head_automata import CLOSED, DUAL, INFEASIBLE, PRIMAL, Model, State, arc_bounds, relax

BOUNDED, STUCK = -1, -2  # what is known of a cell, if not its best tree: a bound, or that there is no more to know
ROOM = 4  # solved cells for each tree that is asked for


class Cells(NamedTuple):
    """The cells around tree r are numbered r * n on, by their words in the order of r."""

    bound: np.ndarray  # (k n,) -inf for a cell that is closed
    known: np.ndarray  # (k n,) where its best tree is among those solved, BOUNDED or STUCK
    arc: np.ndarray  # (k, A) the arc scores of the cell that tree r was found in
    order: np.ndarray  # (k, n) the words of tree r, in the order in which they keep their heads


@njit(cache=True, nogil=True)
def set_apart(model, cells, r, heads, u):
    """Make the cells around tree r, which was found at multipliers u (2, A); last what costs least to change."""
    n = heads.shape[0] - 1
    lat = model.lat
    bound = np.empty(model.arc.shape[0])
    arc_bounds(Model(lat, cells.arc[r], model.share, model.single), u, bound)
    other = np.full(n, -np.inf)
    for a in range(bound.shape[0]):
        m = lat.arc_mod[a]
        if heads[m] != lat.arc_head[a]:
            other[m - 1] = max(other[m - 1], bound[a])
    order = np.argsort(other)
    for j in range(n):
        cells.order[r, j] = order[j] + 1
        cells.bound[r * n + j] = other[order[j]]
        cells.known[r * n + j] = BOUNDED


@njit(cache=True, nogil=True)
def forbid(lat, cells, r, j, heads, arc):
    """arc <- the arc scores of cell j around tree r, which has these heads."""
    arc[:] = cells.arc[r]
    for i in range(j + 1):
        m = cells.order[r, i]
        for e in range(lat.up_ptr[m], lat.up_ptr[m + 1]):
            a = lat.up[e]
            if (lat.arc_head[a] == heads[m]) == (i == j):
                arc[a] = -np.inf


@njit(cache=True, nogil=True)
def list_seen(found, score, count, seen_heads, seen_score):
    """Add the best tree that is not listed yet to the list; returns how many are."""
    known = np.argmax(seen_score)
    found[count] = seen_heads[known]
    score[count] = seen_score[known]
    seen_score[known] = -np.inf
    return count + 1


@njit(cache=True, nogil=True)
def best_trees(model, u, rule, memory, limits, found, score):
    """Fill found (k, n+1) and score (k,) from tree 0 on, which is the best; multipliers u (2, A) prove that.

    limits are how far rounding may take a bound from the truth, and the iterations for a cell. Returns how many trees
    there are, and whether they are the best, best first: if a cell was not solved, those after it need not be.
    """
    tolerance, iterations = limits
    lat, arcs = model.lat, model.arc.shape[0]
    k, n = found.shape[0], found.shape[1] - 1
    cells = Cells(np.full(k * n, -np.inf), np.zeros(k * n, np.int64), np.empty((k, arcs)), np.empty((k, n), np.int64))
    start = np.empty((k, 2, arcs))  # multipliers of the cells that the trees were found in
    seen_u, seen_heads = np.empty((ROOM * k, 2, arcs)), np.empty((ROOM * k, n + 1), np.int64)
    seen_score = np.full(ROOM * k, -np.inf)  # of trees that are not listed yet
    known_scores = np.full(k + 1, -np.inf)  # of the k best trees seen, from the back
    known_scores[k] = score[0]
    cells.arc[0] = model.arc
    start[0] = u
    set_apart(model, cells, 0, found[0], u)
    arc, rows = np.empty(arcs), np.empty((iterations, 5))
    count, seen = 1, 0
    while count < k:
        at = np.argmax(cells.bound)
        bound, known = cells.bound[at], cells.known[at]
        if bound == -np.inf:
            break
        r, j = at // n, at % n
        if known >= 0 and np.max(seen_score) > bound:  # of a cell that was closed, since it has no other of the k best
            count = list_seen(found, score, count, seen_heads, seen_score)
            continue
        if known >= 0:
            found[count] = seen_heads[known]
            score[count] = bound
            start[count] = seen_u[known]
            seen_score[known] = -np.inf
            forbid(lat, cells, r, j, found[r], cells.arc[count])
            cells.bound[at] = -np.inf
            set_apart(model, cells, count, found[count], start[count])
            count += 1
            continue
        least = known_scores[1]
        if bound <= least + tolerance:
            cells.bound[at] = -np.inf
            continue
        if known == STUCK or seen == ROOM * k:
            break
        forbid(lat, cells, r, j, found[r], arc)
        heads, value = seen_heads[seen], np.array([np.inf, least, 0.0])
        heads[0] = -1
        state = State(start[r].copy(), seen_u[seen], heads, np.zeros(arcs), value)
        status, _, _ = relax(Model(lat, arc, model.share, model.single), state, rule, memory, tolerance, True, rows)
        if status == INFEASIBLE or (status == CLOSED and value[PRIMAL] == least):
            cells.bound[at] = -np.inf
            continue
        cells.known[at] = seen if status == CLOSED else STUCK
        cells.bound[at] = value[PRIMAL] if status == CLOSED else min(bound, value[DUAL])
        if value[PRIMAL] > least:
            seen_score[seen] = known_scores[0] = value[PRIMAL]
            known_scores.sort()
            seen += 1
    whole = count == k or (np.max(seen_score) == -np.inf and np.max(cells.bound) == -np.inf)
    while count < k and np.max(seen_score) > -np.inf:
        count = list_seen(found, score, count, seen_heads, seen_score)
    return count, whole
