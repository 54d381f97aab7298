"""Intervals for the log-partition function of trees with crossing arcs and scores above arcs.

Above: Hoelder's inequality (``split_sums``). Below, whichever is more: Gibbs' inequality for a distribution over trees
scored by arcs alone (``average_scores``), or what is added up exactly: all projective trees by their dynamic program,
and trees that cross one by one, the best that decoding finds and others drawn from that distribution.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from certus import kernels
from certus.certificates.rounding import of_log_sum
from certus.checks import Floats, Ints
from certus.dependency import average_scores, matrix_tree
from certus.dependency import parts as P
from certus.dependency.part_kinds import HIGHER_KINDS
from certus.dependency.problem import Dependency
from certus.dependency.split_sums import SplitSums
from certus.errors import Infeasible, InvalidInput, LimitReached, NotSupported
from certus.result import LogPartitionBounds

if TYPE_CHECKING:
    from certus.dependency.automata_problem import AutomataDependency

LISTED = 200  # trees drawn
ROUNDS = 100  # of the relaxation, to find the best tree
SEED = 1
HOELDER = "Hoelder's inequality"
GIBBS = "Gibbs' inequality"
LISTS = "projective trees and trees one by one"
NO_TREE = LogPartitionBounds(-np.inf, -np.inf, "no tree", "no tree")


def log_partition_bounds(problem: "Dependency | AutomataDependency", iterations: int) -> LogPartitionBounds:
    """The interval; see ``Dependency.log_partition_bounds``."""
    try:
        split = split_of(problem).tightened(iterations)
        upper = split.bound()
        listed, projective = mass_of_trees(problem, split)
    except Infeasible:
        return NO_TREE
    below = {LISTS: listed}
    if isinstance(problem, Dependency):
        below[GIBBS] = average_scores.lower_bound(problem, split.tree)
    lower_by = max(below, key=lambda way: below[way])
    info = {"iterations": split.iterations, "share": split.share, "projective": projective, **below}
    return LogPartitionBounds(min(below[lower_by], upper), upper, lower_by, HOELDER, info)


def split_of(problem: "Dependency | AutomataDependency") -> SplitSums:
    """The split of a problem; great-grandparents count for what the best of them would add, which only adds."""
    if isinstance(problem, Dependency) and problem.model.ancestors > 1:
        problem = _without_great_grandparents(problem)
    return SplitSums(problem)


def _without_great_grandparents(problem: Dependency) -> Dependency:
    """A problem with grandparents in their place, in which every tree scores at least as much.

    Grandparents stand at every modifier then: where only outermost ones had them, those that add to a score do.
    """
    allowed = problem.arc > -np.inf
    rest = {name: scores for name, scores in problem.scores.items() if "f" not in HIGHER_KINDS[name].axes}
    if problem.grandparents == "outermost":
        narrow = [name for name in rest if HIGHER_KINDS[name].narrowed]
        rest |= {name: P.DenseScores(np.maximum(rest[name].dense(), 0.0)) for name in narrow}
    (far,) = (scores for name, scores in problem.scores.items() if name not in rest)
    known = rest.get("grandparent")
    grandparent = np.zeros(HIGHER_KINDS["grandparent"].shape(problem.n)) if known is None else known.dense().copy()
    for g, h in np.argwhere(allowed).tolist():
        if g == 0:
            continue
        for m in np.flatnonzero(allowed[h]).tolist():
            f = np.array([f for f in np.flatnonzero(allowed[:, g]).tolist() if f not in (h, m)], dtype=np.int64)
            scores = far.gather(f, *(np.full(len(f), node) for node in (g, h, m)))
            grandparent[g, h, m] += scores.max(initial=-np.inf)
    return problem.with_arcs(problem.arc, rest | {"grandparent": P.DenseScores(grandparent)}, grandparents="all")


def mass_of_trees(problem: "Dependency | AutomataDependency", split: SplitSums) -> tuple[float, float]:
    """Log of the sum over projective trees and over some that cross, and over the former alone; rounded down."""
    projective = _mass_of_projective(problem) if isinstance(problem, Dependency) else -np.inf
    trees = matrix_tree.sample_trees(split.tree, LISTED, problem.root, np.random.default_rng(SEED))
    with suppress(LimitReached):
        trees = np.concatenate([trees, problem.decode(max_iterations=ROUNDS, exact=False).structure[None]])
    distinct: Ints = np.unique(trees, axis=0)
    if isinstance(problem, Dependency):
        crossing = [P.first_crossing(heads) is not None for heads in distinct.tolist()]
        distinct = distinct[np.array(crossing) if projective > -np.inf else slice(None)]
    scores = np.append(scores_of(problem, split, distinct) - problem.error(), projective)
    most = float(scores.max())
    if most == -np.inf:
        return -np.inf, projective
    total = most + float(np.log(np.exp(scores - most).sum()))
    return total - of_log_sum(len(scores) + 8, abs(most)), projective


def _mass_of_projective(problem: Dependency) -> float:
    """Log of the sum over projective trees, rounded down; -inf if they are too many to add up."""
    try:
        total = problem.with_projective(True).log_partition()
    except (NotSupported, InvalidInput):
        return -np.inf
    if total == -np.inf:
        return -np.inf
    extent = problem.extent()
    return total - of_log_sum(8 * (problem.n + 1) ** 2, extent.length * extent.size + 2.0 * problem.n)


def scores_of(problem: "Dependency | AutomataDependency", split: SplitSums, trees: Ints) -> Floats:
    """The scores of trees, (K, n + 1)."""
    if isinstance(problem, Dependency) and problem.model.ancestors > 1:
        return np.array([problem.score(heads) for heads in trees])
    out = np.empty(len(trees))
    kernels.head_sums.tree_scores(split.lattices, split.arc, trees, out)
    return out
