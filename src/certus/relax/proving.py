"""Witnesses made on demand: for a result that does not carry one, what certus.verify needs to check its bound.

Decoding is not the place for them: most results are never saved or verified. Nothing here is believed; whatever is made
is checked like a witness from a file.
"""

from typing import Any

import numpy as np

from certus.certificates.evaluate import Cell
from certus.checks import Floats
from certus.errors import Infeasible
from certus.problem import Problem
from certus.relax.branch import NODE_WINDOW, ROOT_WINDOW, Fixed
from certus.relax.normal_form import RelaxedForm
from certus.relax.proof import Fix, Leaf, Proof, Split
from certus.relax.run import HeldRun
from certus.relax.search import Node, Search
from certus.relax.steps import polyak
from certus.relax.system import Fixings, Relaxation
from certus.result import Certificate

ITERATIONS = 500


def witness_of(problem: Problem[Any], certificate: Certificate, above: float) -> Any:
    """What shows that nothing scores more than ``above``, but for the better structures that the certificate names.

    The witness that it carries, or one made here: arrays for a problem that is searched, else a proof tree.
    """
    if certificate.witness is not None:
        return certificate.witness
    if problem.searched:
        return problem.make_witness(above)
    relaxation = Relaxation.of(problem)
    if certificate.rank == 1 and isinstance(certificate.duals, Leaf | Fix | Split):
        return certificate.duals
    if certificate.rank == 1 and certificate.duals is not None:
        return Leaf(certificate.duals)
    relaxed = RelaxedForm.of(relaxation)
    better = [relaxed.structure(y) for y in certificate.better]
    nothing = Leaf(relaxation.named(np.zeros(relaxation.n_rows)))
    if relaxed.bound(nothing, above, better) <= above:
        return nothing
    return _Prover(relaxed, certificate, above, better).proof()


class _Prover:
    """Branch and bound that looks for nothing but a proof: that only the better structures beat a score."""

    def __init__(self, relaxed: RelaxedForm, certificate: Certificate, above: float, better: list[Any]) -> None:
        self.relaxed, self.above, self.better = relaxed, above, better
        r = self.relaxation = relaxed.relaxation
        run = HeldRun(certificate.bound + 0.5 * certificate.tolerance, r.scale)
        self.space = Fixed(run, r, polyak())
        self.used = np.zeros((len(better), r.n_cells))
        for used, structure in zip(self.used, certificate.better, strict=True):
            for i, leaf in enumerate(r.leaves(structure)):
                r.cells_used(i, leaf, used)

    def proof(self) -> Proof:
        """The proof tree, unless there is none: then one that fails."""
        inside = list(range(len(self.better)))
        return self._proved(
            self.space.subproblems.initial, self.relaxed.initial(), inside, np.zeros(self.relaxation.n_rows)
        )

    def _proved(self, fixings: Fixings, cell: Cell, inside: list[int], start: Floats) -> Proof:
        """Of one place of the tree, where those of the better structures are that are ``inside``."""
        apart = np.flatnonzero((self.used[inside] > 0).any(axis=0) & (self.used[inside] == 0).any(axis=0))
        if len(apart):
            return self._split(int(apart[0]), fixings, cell, inside, start)
        node = Node(fixings, start)
        try:
            self.space._descend(node, ITERATIONS, NODE_WINDOW if inside else ROOT_WINDOW, log=False)
        except Infeasible:
            return Leaf(self.relaxation.named(start))
        if not inside:
            search = Search(self.space.run, self.space, node)
            search.climb(exact=True)
            return search.proof()
        leaf = Leaf(self.relaxation.named(node.multipliers), tuple(inside))
        known = [self.better[k] for k in inside]
        u = self.relaxed.multipliers(leaf.multipliers)
        if self.relaxed.evaluation.bound(u, self.above, cell, known) <= self.above:
            return leaf
        free = (self.used[inside[0]] > 0) & ~self.relaxation.decided(fixings)
        if not free.any():
            return leaf
        average = node.evidence[0]
        return self._split(int(np.argmin(np.where(free, average, np.inf))), fixings, cell, inside, node.multipliers)

    def _split(self, at: int, fixings: Fixings, cell: Cell, inside: list[int], start: Floats) -> Proof:
        """On the part of a flat cell."""
        r = self.relaxation
        view, index = next(
            (v, at - r.offsets[b])
            for v, blocks in r.views.items()
            for b in blocks
            if b in r.offsets and 0 <= at - r.offsets[b] < int(np.prod(r.shape_of(b), dtype=np.int64))
        )
        children = []
        for value in (0, 1):
            here = [k for k in inside if (self.used[k, at] > 0) == bool(value)]
            decided, narrower = r.fix(fixings, view, index, value), self.relaxed.fixed(cell, view, index, value)
            children.append(self._proved(decided, narrower, here, start))
        return Split(view, index, *children)
