"""Sums over all non-projective trees with arc scores: log-partition, marginals, entropy, and exact samples.

DEP 4.3: the matrix-tree theorem for single-root, multi-root and labelled scores, O(n^3). The determinant and its
derivatives are not taken from an LU factorization, which cancels when scores are far apart, but by an elimination that
adds, multiplies and divides positive numbers only: see ``certus.kernels.matrix_tree``. No epsilon is added anywhere.
Scores of +-1000 and ``-inf`` cells are fine.

Functions here take checked arrays: ``arc[h, m]`` of shape (n + 1, n + 1), or (n + 1, n + 1, L) with labels.
"""

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints
from certus.dependency.arborescence import no_tree
from certus.threads import long_call

FAR = 100.0  # how far the best tree may be below the best arcs into its words


def log_partition(arc: Floats, root: str) -> float:
    """Log of the sum of exp(score) over all trees. O(n^3).

    Raises Infeasible when there is no tree.

    Examples
    --------
    >>> import numpy as np
    >>> float(np.exp(log_partition(np.zeros((4, 4)), "multi")).round(9))  # the trees of three words
    16.0
    """
    _, found = sums(arc[None], np.array([len(arc) - 1]), root, marginals=False)
    if found[0, 0] == -np.inf:
        raise no_tree(arc, root)
    return float(found[2, 0])


def marginals(arc: Floats, root: str) -> Floats:
    """Probability of each arc: over the heads of a word they sum to 1. O(n^3).

    Raises Infeasible when there is no tree.
    """
    return _checked_marginals(arc, root)[0]


def entropy(arc: Floats, root: str) -> float:
    """Entropy, in nats, of the distribution over trees proportional to exp(score). O(n^3).

    Raises Infeasible when there is no tree.
    """
    probability, value = _checked_marginals(arc, root)
    if len(arc) == 1:
        return 0.0
    # log Z - E[score], both less the largest score into each word
    off_diagonal = arc.copy()
    np.fill_diagonal(off_diagonal, -np.inf)
    relative = off_diagonal - np.r_[0.0, off_diagonal[:, 1:].max(axis=0)]
    used = probability > 0
    if value < -FAR:
        return max(_entropy_far(relative, root), 0.0)
    return max(value - float(np.sum(probability[used] * relative[used])), 0.0)


def _entropy_far(arc: Floats, root: str) -> float:
    """The entropy where every tree has arcs that are far below the best into their words.

    What small errors of marginals make of such scores is no small error of their mean, so the mean is found as the
    slope of the log-partition along the scores, step by step of the elimination: numbers that are added up, and weigh
    something, have slopes that are close.
    """
    scores = np.zeros((1, 4, *arc.shape))
    scores[0, 0], scores[0, 1] = arc, np.where(arc > -np.inf, arc, 0.0)
    totals = np.empty((1, 4))
    lengths = np.array([len(arc) - 1])
    kernels.matrix_tree.tree_tangents(scores, lengths, root == "single", totals, np.empty((0, *scores.shape[1:])))
    return float(totals[0, 0] - totals[0, 1])


def log_partition_batch(arc: Floats, lengths: Ints, root: str) -> Floats:
    """Log-partition (B,) of a padded batch (B, N, N), in one kernel call; -inf for a sentence without a tree."""
    total: Floats = sums(arc, lengths, root, marginals=False)[1][2]
    return total


def marginals_batch(arc: Floats, lengths: Ints, root: str) -> tuple[Floats, Floats]:
    """Marginals (B, N, N) and log-partitions (B,) of a padded batch, in one kernel call.

    Marginals are 0 beyond a sentence's length; a sentence without a tree has only zeros and a log-partition of -inf.
    """
    out, found = sums(arc, lengths, root, marginals=True)
    return out, found[2]


def sum_steps(n: int) -> int:
    """Operations on positive numbers behind any sum here, at most ([Grassmann85]_'s elimination, entry by entry)."""
    return 4 * (n + 1) ** 3


def sample_trees(arc: Floats, k: int, root: str, rng: np.random.Generator) -> Ints:
    """k trees drawn independently, with probability proportional to exp(score): heads (k, n + 1). Exact.

    Raises Infeasible when there is no tree.

    Examples
    --------
    >>> import numpy as np
    >>> sample_trees(np.array([[0, 0, -np.inf], [0, 0, 0], [0, 0, 0]]), 2, "single", np.random.default_rng(1)).tolist()
    [[-1, 0, 1], [-1, 0, 1]]
    """
    probability = _checked_marginals(arc, root)[0]
    drawn: Ints = sample_batch(arc[None], np.array([len(arc) - 1]), probability[None], (k, root), rng)[0]
    return drawn


def sample_batch(
    arc: Floats, lengths: Ints, probability: Floats, wanted: tuple[int, str], rng: np.random.Generator
) -> Ints:
    """Trees of each sentence of a padded batch, heads (B, k, N) padded with -1; ``wanted`` is (k, root).

    With a single root, its word is drawn from the marginals, ``probability``, and takes the place of node 0. Then a
    tree is drawn by random walks, or, where these take too long, by one marginal after the other, O(n^4).
    """
    k, root = wanted
    heads = np.empty((len(arc), k, arc.shape[1]), dtype=np.int64)
    roots = np.ascontiguousarray(probability[:, 0]) if root == "single" else np.empty((0, 0))
    steps = float(arc.size + heads.size * arc.shape[1])
    long_call(steps, kernels.tree_sampling.sample_by_walks, arc, lengths, roots, rng, heads)
    for b in np.flatnonzero((heads[:, :, 0] < -1).any(axis=1)).tolist():
        n, given_up = int(lengths[b]), -2 - heads[b, :, 0]
        for top in np.unique(given_up[given_up >= 0]).tolist():
            nodes = np.r_[top, np.delete(np.arange(1, n + 1), top - 1)] if top else np.arange(n + 1)
            chosen, below = np.flatnonzero(given_up == top), np.ascontiguousarray(arc[b][np.ix_(nodes, nodes)])
            drawn = np.empty((len(chosen), len(nodes)), dtype=np.int64)
            kernels.tree_sampling.sample_by_contraction(below.reshape(-1), len(nodes) - 1, rng, drawn)
            heads[b][np.ix_(chosen, nodes[1:])] = nodes[drawn[:, 1:]]
            heads[b, chosen, top], heads[b, chosen, 0] = 0, -1
    return heads


def _checked_marginals(arc: Floats, root: str) -> tuple[Floats, float]:
    """Marginals, and log-partition less the largest score into each word."""
    out, found = sums(arc[None], np.array([len(arc) - 1]), root, marginals=True)
    if found[0, 0] == -np.inf:
        raise no_tree(arc, root)
    return out[0], float(found[0, 0])


def sums(arc: Floats, lengths: Ints, root: str, *, marginals: bool) -> tuple[Floats, Floats]:
    """Marginals (B, N, N) of a padded batch, if wanted, and three numbers for each sentence, (3, B): the log-partition
    less a shift, the shift, -inf or finite, and both together. Marginals are of the type of the scores, which may be
    float32.
    """
    batch, width, _ = arc.shape
    out, found = np.empty(arc.shape if marginals else (1, 1, 1), dtype=arc.dtype), np.empty((3, batch))
    most, status = np.empty((batch, width)), np.empty(batch, dtype=np.int64)
    asked = arc, lengths, root == "single", marginals, out, found, most, status
    steps = float(arc.size * width)
    if not long_call(steps, kernels.matrix_tree.tree_sums, *asked):
        if (status == kernels.tree_blocks.OUT_OF_RANGE).any():
            long_call(steps, kernels.matrix_tree.log_sums, *asked)
        if marginals:
            out[status != kernels.tree_blocks.OK] = 0.0
    return out, found
