"""Derivatives of the marginals of trees with crossing arcs, by the matrix-tree theorem: batches of inverses.

The determinant of the Laplacian L of arc weights w is the sum over trees, so the marginal of an arc is w G(B), for B
the inverse of L and G(B) the trace of B times the slope of L in w, linear in B (DEP 4.3). Weights are taken relative to
the largest into each word, which changes no marginal. Along directions of the scores all follows by the rule of
products and by the derivatives of an inverse,

    B_u = -B L_u B,    B_uv = B L_u B L_v B + B L_v B L_u B - B L_uv B.

Inverses cancel where words have heads among themselves that are far better than all others. Marginals by elimination,
which never cancels, tell where that is so: the derivatives are then taken of every step of the elimination.
"""

from typing import NamedTuple

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints
from certus.dependency import matrix_tree

CLOSE = 1e-11  # how far marginals by inverses may be off; derivatives were seen to be off by up to 20 times as much


class Along(NamedTuple):
    """What some numbers are, and how they change along a direction u, a direction v, and along both."""

    value: Floats
    u: Floats
    v: Floats
    both: Floats


def marginals_along(arc: Along, lengths: Ints, single: bool) -> Along:
    """Marginals of arcs and their derivatives, for scores of arcs (B, N, N) that have some themselves."""
    try:
        found = _by_inverses(arc, lengths, single)
    except np.linalg.LinAlgError:
        found = Along(*np.full((4, *arc.value.shape), np.nan))
    exact, _ = matrix_tree.marginals_batch(np.ascontiguousarray(arc.value), lengths, "single" if single else "multi")
    wrong = np.flatnonzero(~(np.abs(found.value - exact).max(axis=(1, 2), initial=0.0) <= CLOSE))
    if len(wrong):
        scores = np.stack([a[wrong] for a in arc], axis=1)
        again = np.empty(scores.shape)
        totals = np.empty(scores.shape[:2])
        kernels.matrix_tree.tree_tangents(scores, lengths[wrong], single, totals, again)
        for k, values in enumerate(found):
            values[wrong] = again[:, k]
    return found


def _by_inverses(arc: Along, lengths: Ints, single: bool) -> Along:
    size = arc.value.shape[1]
    inside = np.arange(size) <= lengths[:, None]
    read = inside[:, :, None] & inside[:, None, :] & ~np.eye(size, dtype=bool) & (np.arange(size) > 0)
    score = np.where(read, arc.value, -np.inf)
    most = score.max(axis=1, keepdims=True)
    w = np.exp(score - np.where(most > -np.inf, most, 0.0))
    weight = Along(w, w * arc.u, w * arc.v, w * (arc.u * arc.v + arc.both))
    padding = ~inside[:, 1:]

    def laplacian(w: Floats) -> Floats:
        found: Floats = -w[:, 1:, 1:]
        words = np.arange(size - 1)
        found[:, words, words] = w[:, 1:, 1:].sum(axis=1) if single else w[:, :, 1:].sum(axis=1)
        if single and size > 1:
            found[:, 0] = w[:, 0, 1:]
        return found

    def traces(b: Floats) -> Floats:
        found = np.zeros(arc.value.shape)
        own = np.diagonal(b, axis1=1, axis2=2).copy()
        across = b.transpose(0, 2, 1).copy()
        if single and size > 1:  # the first row of the Laplacian has no entry of these
            own[:, 0], across[:, 0] = 0.0, 0.0
            found[:, 0, 1:] = b[:, :, 0]
        else:
            found[:, 0, 1:] = own
        found[:, 1:, 1:] = own[:, None, :] - across
        return found

    matrix = laplacian(w)
    matrix[:, np.arange(size - 1), np.arange(size - 1)] += padding
    b = np.linalg.inv(matrix)
    left_u, left_v = b @ laplacian(weight.u), b @ laplacian(weight.v)
    b_u, b_v = -left_u @ b, -left_v @ b
    b_uv = -left_u @ b_v - left_v @ b_u - b @ laplacian(weight.both) @ b
    g, g_u, g_v, g_uv = map(traces, (b, b_u, b_v, b_uv))
    return Along(
        weight.value * g,
        weight.u * g + weight.value * g_u,
        weight.v * g + weight.value * g_v,
        weight.both * g + weight.u * g_v + weight.v * g_u + weight.value * g_uv,
    )
