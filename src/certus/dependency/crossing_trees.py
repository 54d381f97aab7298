"""Trees with crossing arcs, scored by arcs alone: spanning trees by contraction, sums by the matrix-tree theorem."""

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from certus.certificates.normal import NormalForm, Trees
from certus.checks import OBJECT, Floats, Ints, as_generator, as_positive_int, as_wanted
from certus.dependency import arborescence, matrix_tree
from certus.dependency.kbest_trees import iterate_trees
from certus.dependency.tree_kind import TreeKind
from certus.dependency.tree_law import TreeLaw
from certus.errors import Infeasible, InvalidInput
from certus.problem import Penalties
from certus.relax.laws import Asked, Law
from certus.result import Result, Solution

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency


class CrossingTrees(TreeKind):
    """All trees, scored by arcs: every question has an answer, by a combinatorial algorithm."""

    certificate_kind = "combinatorial"

    def solve(self, problem: "Dependency", penalties: Penalties | None) -> Solution[Ints]:
        return Solution(*arborescence.best_heads(problem.penalised(penalties), problem.root))

    def normal_form(self, problem: "Dependency") -> NormalForm:
        allowed = problem.arc > -np.inf
        part = np.where(allowed, np.cumsum(allowed).reshape(allowed.shape) - 1, -1)
        return NormalForm(problem.arc[allowed], (Trees(part, problem.single),), {"arcs": part.reshape(-1)})

    def normal_structure(self, problem: "Dependency", heads: Ints) -> tuple[Any, ...]:
        if (problem.arc[heads[1:], np.arange(1, len(heads))] == -np.inf).any():
            raise InvalidInput("the tree uses an arc that is forbidden.")
        return (heads.tolist(),)

    def kbest(self, problem: "Dependency", k: int) -> list[Result[Ints]]:
        found = islice(iterate_trees(problem.arc, problem.root), as_positive_int("k", k))
        return [
            problem.proved(heads, value, rank=rank, scores=problem._terms(heads))
            for rank, (heads, value) in enumerate(found, start=1)
        ]

    def sample(self, problem: "Dependency", k: int, seed: int | None) -> list[Ints]:
        rng = as_generator(seed)
        return list(matrix_tree.sample_trees(problem.arc, as_wanted(k, problem.n + OBJECT), problem.root, rng))

    def log_partition(self, problem: "Dependency") -> float:
        try:
            return matrix_tree.log_partition(problem.arc, problem.root)
        except Infeasible:
            return -np.inf

    def log_sum_steps(self, n: int) -> int:
        return matrix_tree.sum_steps(n)

    def law(self, problem: "Dependency", asked: Asked) -> Law:
        return TreeLaw(problem.arc[:, :, None], problem.root, asked, lambda heads, labels: heads)

    def marginals(self, problem: "Dependency") -> Floats:
        return matrix_tree.marginals(problem.arc, problem.root)

    def entropy(self, problem: "Dependency") -> float:
        return matrix_tree.entropy(problem.arc, problem.root)

    def max_marginals(self, problem: "Dependency", penalties: Penalties | None) -> Floats:
        arc = problem.penalised(penalties)
        try:
            return arborescence.max_marginals(arc, problem.root)
        except Infeasible:
            return np.full(arc.shape, -np.inf)


TREES = CrossingTrees()
