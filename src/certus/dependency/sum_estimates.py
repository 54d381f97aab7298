"""Marginals of trees with crossing arcs and scores above arcs, estimated by importance sampling.

Trees are drawn, exactly and independently, from the distribution over trees that the tightened split of
``split_sums`` leaves, scored by arcs alone, and weighted by how much more or less they score here.
"""

from typing import TYPE_CHECKING

import numpy as np

from certus.checks import as_generator, as_positive_int
from certus.dependency import matrix_tree
from certus.dependency.sum_bounds import scores_of, split_of
from certus.errors import LimitReached
from certus.relax.weighted import Uses, weighted
from certus.result import MarginalEstimates

if TYPE_CHECKING:
    from certus.dependency.automata_problem import AutomataDependency
    from certus.dependency.problem import Dependency

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
    if excess.max() == -np.inf:
        raise LimitReached(
            f"each of the {count} trees drawn has a forbidden part. Draw more of them (samples=), or ask decode(), "
            "which finds a tree if there is one."
        )
    cell = (trees[:, 1:] * (problem.n + 1) + words).reshape(-1)
    sample, possible = np.repeat(np.arange(count), problem.n), tree > -np.inf
    alone = possible.sum(axis=0) <= 1
    uses = {"arcs": Uses(problem.arc.shape, sample, cell, np.ones(len(cell)), ~possible | alone)}
    return weighted(excess, uses, (count, seed), matrix_tree.log_partition(tree, problem.root))
