"""Exact samples of non-projective trees with any number of roots, in proportion to exp(score)."""

import numpy as np

from certus.kernels.algebra import LOG, plus
from certus.kernels.compiling import njit
from certus.kernels.matrix_tree import Block, Trees, eliminate, substitute
from certus.kernels.tree_blocks import Sums, lay_out, survey


@njit(cache=True, nogil=True)
def _relative_scores(score, n):
    """The block of one sentence: score (n + 1) * (n + 1), flat."""
    out = np.empty((n + 1) * n)
    most = np.empty((1, n + 1))
    lengths = np.full(1, n)
    none, number = np.empty((1, 1, 1)), np.empty(1)
    sums = Sums(none, number, number, number, most, np.empty(1, np.bool_), np.empty(1, np.int64))
    survey(score, n + 1, lengths, False, sums)
    lay_out(score, n + 1, lengths, most, np.zeros(1, np.int64), out)
    return out


@njit(cache=True, nogil=True)
def sample_by_walks(score, n, rng, heads):
    """Draw trees with any number of roots, one per row of heads (k, n + 1), in proportion to exp(score).

    From each word in turn walk to a random head, to that head's head and so on until the tree so far is met, then
    keep the last head drawn at each word passed ([Wilson96]_). ``score`` is flat with stride n + 1; ``rng`` a numpy
    Generator. Takes as many steps as tree_sums foretells, on average: it may be a great many.
    """
    width = n + 1
    relative = _relative_scores(score, n)
    reach = np.empty((width, width))  # reach[m, h]: weight of the heads 0..h of m
    for m in range(1, width):
        total = 0.0
        for h in range(width):
            total += np.exp(relative[h * n + m - 1])
            reach[m, h] = total
    done = np.empty(width, np.bool_)
    for i in range(heads.shape[0]):
        done[:] = False
        done[0] = True
        heads[i, 0] = -1
        for start in range(1, width):
            v = start
            while not done[v]:
                x = reach[v, n]
                while x >= reach[v, n]:  # the product may round up to the total
                    x = rng.random() * reach[v, n]
                h = 0
                while reach[v, h] <= x:
                    h += 1
                heads[i, v] = h
                v = h
            v = start
            while not done[v]:
                done[v] = True
                v = heads[i, v]


@njit(cache=True, nogil=True)
def sample_by_contraction(score, n, rng, heads):
    """As sample_by_walks, in a fixed number of steps, O(n^4) per tree, whatever the scores.

    The head of the last word is drawn from its marginal, the word is merged into the part of the tree its head
    belongs to, and so on with the words before it. Works on logarithms throughout.
    """
    width = n + 1
    relative = _relative_scores(score, n)
    part = np.empty((width, n))  # weights of arcs from the part of the tree topped by word h (or by the root) to m
    w = np.empty(2 * n * width + 2)
    chance = np.empty(n * width)
    pivots = np.empty(n)
    weight = np.empty(width)
    member = np.empty(width, np.int64)  # top of the part that a word belongs to
    for i in range(heads.shape[0]):
        heads[i, 0] = -1
        part[:, :] = relative.reshape(width, n)
        for v in range(width):
            member[v] = v
        for j in range(n, 0, -1):
            for h in range(j + 1):
                for m in range(j):
                    w[h * j + m] = part[h, m]
            block = Block(j, 0, j * (j + 1), 2 * j * (j + 1))
            eliminate(LOG, w, block, (0, j - 1), Trees(False, False, False), False, pivots, 0)
            chance[j - 1] = 0.0
            chance[j * j + j - 1] = -np.inf
            substitute(LOG, w, block, (0, j - 1), (-1, False), 0, j, chance)
            for h in range(j):
                weight[h] = part[h, j - 1] + chance[h * j + j - 1]
            top = _draw(weight[:j], rng)
            for v in range(width):
                weight[v] = score[v * width + j] if v != j and member[v] == top else -np.inf
            heads[i, j] = _draw(weight, rng)
            for v in range(width):
                if member[v] == j:
                    member[v] = top
            for m in range(j - 1):
                part[top, m] = plus(LOG, part[top, m], part[j, m])


@njit(cache=True, nogil=True)
def _draw(weight, rng):
    """Index drawn in proportion to exp(weight[i])."""
    most = weight.max()
    total = 0.0
    for i in range(weight.shape[0]):
        total += np.exp(weight[i] - most)
    x = total
    while x >= total:
        x = rng.random() * total
    total = 0.0
    for i in range(weight.shape[0]):
        total += np.exp(weight[i] - most)
        if total > x:
            return i
    return weight.shape[0] - 1
