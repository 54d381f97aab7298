"""Exact samples of non-projective trees, in proportion to exp(score)."""

import numpy as np

from certus.kernels.algebra import LOG, U, plus
from certus.kernels.compiling import njit
from certus.kernels.lanes import LANES, aligned
from certus.kernels.matrix_tree import Block, Trees, eliminate, substitute
from certus.kernels.tree_blocks import Sums, exponentials, lay_out, survey

LOWEST = -1.7976931348623157e308  # that is less than no finite number


@njit(cache=True, nogil=True)
def _relative_scores(score, n):
    """The block of one sentence: score (n + 1) * (n + 1), flat."""
    out = np.empty((n + 1) * n)
    most = np.empty((1, n + 1))
    lengths = np.full(1, n)
    none, number = np.empty((1, 1, 1)), np.empty(1)
    sums = Sums(none, number, number, most, np.empty(1, np.bool_), np.empty(1, np.int64))
    survey(score, n + 1, lengths, False, sums)
    lay_out(score, n + 1, lengths, most, np.zeros(1, np.int64), out)
    return out


@njit(cache=True, nogil=True)
def _lay_reach(arc, at, n, first, reach):
    """reach[h n + m - 1] <- sum of exp(score) over the heads first..h of m, all over the largest.

    arc is that of a batch, flat, with stride N; ``at`` is (where the sentence begins, N).
    """
    page, stride = U(at[0]), U(at[1])
    words, high = U(n), np.full(n + 1, LOWEST)
    for h in range(first, n + 1):
        row = page + U(h) * stride
        for side in range(2):
            for m in range(U(h + 1 if side and h else 1), U(n + 1 if side else h)):
                high[m] = max(high[m], arc[row + m])
    for h in range(n + 1):
        row, out = page + U(h) * stride + U(1), U(h) * words
        for m in range(words):
            reach[out + m] = arc[row + m] - high[m + U(1)]
        if h > 0:
            reach[out + U(h - 1)] = -np.inf
    if first == 1:
        reach[:n] = -np.inf
    exponentials(reach, (n + 1) * n)
    for cell in range(words, U(n + 1) * words):
        reach[cell] += reach[cell - words]


@njit(cache=True, nogil=True)
def _pick(reach, at, step, n, rng):
    """The h in 0..n drawn in proportion to reach[at + h step] less the one before; the last is not 0."""
    total = reach[at + n * step]
    x = total
    while x >= total:  # the product may round up to the total
        x = rng.random() * total
    h, rest = 0, n
    while rest > 0:  # those from h to h + rest may be the first beyond x
        half = (rest + 1) >> 1
        h += half if reach[at + (h + half - 1) * step] <= x else 0
        rest -= half
    return h


@njit(cache=True, nogil=True)
def _walk(reach, n, top, rng, done, heads):
    """heads (N,) <- a tree below ``top``; False if that takes more steps than it should."""
    for v in range(n + 1):
        done[v] = v == top
    left = 100 + n**3
    for start in range(1, n + 1):
        v = start
        while not done[v]:
            if left == 0 or reach[n * n + v - 1] == 0.0:
                return False
            left -= 1
            heads[v] = _pick(reach, v - 1, n, n, rng)
            v = heads[v]
        v = start
        while not done[v]:
            done[v] = True
            v = heads[v]
    if top > 0:
        heads[top] = 0
    return True


@njit(cache=True, nogil=True)
def sample_by_walks(arc, lengths, root, rng, heads):
    """Draw trees of each sentence of a padded batch, arc (B, N, N), in proportion to exp(score): heads (B, k, N).

    From each word in turn walk to a random head, to that head's head and so on until the tree so far is met, then
    keep the last head drawn at each word passed ([Wilson96]_). ``rng`` is a numpy Generator. With a single root, root
    (B, N) has the probability of each word to be it: the word is drawn first, and trees grow below it. With any number
    of them it is empty.

    Scores may be such that walks take a great many steps. A tree that took n^3 is left out: heads[b, i, 0] is then
    -2 - the node that trees grow below, and not -1. Another one that is drawn below the same node may take its place:
    the steps are those of the cycles that were left behind, which are independent of the tree that is found in the end.
    """
    size, flat = arc.shape[1], arc.reshape(-1)
    single = root.shape[0] > 0
    reach, done, share = aligned(size * size + LANES), np.empty(size, np.bool_), np.empty(size)
    heads[:] = -1
    for b in range(arc.shape[0]):
        n = lengths[b]
        if n == 0:
            continue
        _lay_reach(flat, (b * size * size, size), n, 1 if single else 0, reach)
        if single:
            share[: n + 1] = np.cumsum(root[b, : n + 1])
        for i in range(heads.shape[1]):
            top = _pick(share, 0, 1, n, rng) if single else 0
            if not _walk(reach, n, top, rng, done, heads[b, i]):
                heads[b, i, 0] = -2 - top


@njit(cache=True, nogil=True)
def sample_by_contraction(score, n, rng, heads):
    """Draw trees with any number of roots, one per row of heads (k, n + 1), in O(n^4) steps each, whatever the scores.

    ``score`` is flat with stride n + 1. The head of the last word is drawn from its marginal, the word is merged into
    the part of the tree its head belongs to, and so on with the words before it. Works on logarithms throughout.
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
