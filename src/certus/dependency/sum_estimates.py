"""Marginals of trees with crossing arcs and scores above arcs, estimated by importance sampling.

Trees are drawn, exactly and independently, from the distribution over trees that the tightened split of
``split_sums`` leaves, scored by arcs alone, and weighted by how much more or less they score here.
"""

from typing import TYPE_CHECKING

import numpy as np

from certus.checks import Floats, as_generator, as_positive_int
from certus.dependency import matrix_tree
from certus.dependency.sum_bounds import scores_of, split_of
from certus.errors import LimitReached
from certus.result import MarginalEstimates

if TYPE_CHECKING:
    from certus.dependency.automata_problem import AutomataDependency
    from certus.dependency.problem import Dependency

METHOD = "importance sampling"
ITERATIONS = 60  # to tighten the split: trees drawn then weigh about the same


def marginal_estimates(problem: "Dependency | AutomataDependency", samples: int, seed: int | None) -> MarginalEstimates:
    """The estimates; see ``Dependency.marginal_estimates``."""
    count = as_positive_int("samples", samples)
    if seed is None:
        seed = int(np.random.default_rng().integers(2**63))
    split = split_of(problem).tightened(ITERATIONS)
    tree, words = split.tree, np.arange(1, problem.n + 1)
    trees = matrix_tree.sample_trees(tree, count, problem.root, as_generator(seed))
    excess = scores_of(problem, split, trees) - tree[trees[:, 1:], words].sum(axis=1)
    most = float(excess.max())
    if most == -np.inf:
        raise LimitReached(
            f"each of the {count} trees drawn has a forbidden part. Draw more of them (samples=), or ask decode(), "
            "which finds a tree if there is one."
        )
    weight = np.exp(excess - most)
    total = float(weight.sum())
    share, square = weight / total, (weight / total) ** 2
    cell = trees[:, 1:] * (problem.n + 1) + words
    size = (problem.n + 1) ** 2

    def added_up(values: Floats) -> Floats:
        spread = np.broadcast_to(values[:, None], cell.shape)
        sums: Floats = np.bincount(cell.reshape(-1), spread.reshape(-1), minlength=size).astype(np.float64)
        return sums.reshape(problem.arc.shape)

    mean, with_arc = np.minimum(added_up(share), 1.0), added_up(square)
    # sum over samples of share^2 (1 - mean)^2 where the tree has the arc, and of share^2 mean^2 where it has not
    variance = with_arc * (1.0 - 2.0 * mean) + square.sum() * mean**2
    return MarginalEstimates(
        {"arcs": mean},
        {"arcs": np.sqrt(np.maximum(variance, 0.0))},
        matrix_tree.log_partition(tree, problem.root) + most + float(np.log(total / count)),
        1.0 / float(square.sum()),
        count,
        seed,
        METHOD,
    )
