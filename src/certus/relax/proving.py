"""Witnesses made on demand: for a result that does not carry one, what certus.verify needs to check its bound.

Decoding is not the place for them: most results are never saved or verified. Nothing here is believed; whatever is made
is checked like a witness from a file.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from certus.certificates.evaluate import Cell
from certus.checks import Floats
from certus.errors import Infeasible, NotSupported
from certus.problem import Problem
from certus.relax.branch import NODE_WINDOW, ROOT_WINDOW, Fixed
from certus.relax.normal_form import RelaxedForm
from certus.relax.proof import Close, Fix, Later, Leaf, Proof, Removed, Split, Tighter, first_multipliers
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
    if problem.searched:
        return problem.make_witness(above) if certificate.witness is None else certificate.witness
    return proof_of(RelaxedForm.of(Relaxation.of(problem)), certificate, above)


def proof_of(relaxed: RelaxedForm, certificate: Certificate, above: float) -> Any:
    """The same for the relaxation of a problem that is not searched as a whole.

    A witness stands as it is; what decoding left is where the search for one begins.
    """
    given = certificate.witness
    if given is not None and not isinstance(given, Later):
        return given
    if isinstance(given, Later):
        given = given.proof()
    elif certificate.rank == 1 and certificate.duals is not None:
        given = (
            certificate.duals
            if isinstance(certificate.duals, Leaf | Fix | Split | Tighter)
            else Leaf(certificate.duals)
        )
    if given is not None:
        tree = closed_first(relaxed, given, above)
        if relaxed.bound(tree, above, certificate.better) <= above:
            return tree
    return _Prover(relaxed, certificate, above).proof()  # what decoding left proves too little, or nothing was left


def closed_first(relaxed: RelaxedForm, tree: Proof | Tighter, above: float) -> Proof | Close | Tighter:
    """A proof tree over what is left of subproblems that are searched, unless that is too large."""
    if not relaxed.searched or isinstance(tree, Tighter):
        return tree
    u = first_multipliers(tree)
    try:
        return Close(u, relaxed.close(u, above)[0], tree)
    except NotSupported:
        return tree


class _Keeping(Fixed):
    """The search space of a relaxation, from which nothing is removed."""

    def removable(self, node: Node[Fixings]) -> tuple[Removed, ...]:
        return ()


class _Refuted(Exception):
    """What was to be proved is false."""


class _Claim(HeldRun):
    """A run that looks for a proof of a claim: a structure above its ``limit`` ends it, unless it is ``known``.

    The limit is that of the claim and as much as sums are rounded; ``known`` (k, cells) are parts of structures.
    """

    def __init__(self, score: float, relaxation: Relaxation, limit: float, known: Floats) -> None:
        super().__init__(score, relaxation.scale)
        self.relaxation, self.known = relaxation, known
        self.limit = limit + relaxation.error(np.zeros(relaxation.n_rows), relaxation.initial_fixings())

    def offer(self, structure: Any, score: float) -> None:
        if score > self.limit and not (self.known == cells_of(self.relaxation, structure)).all(axis=1).any():
            raise _Refuted


def cells_of(relaxation: Relaxation, leaves: Sequence[Any]) -> Floats:
    """The cells that structures of the subproblems use."""
    used = np.zeros(relaxation.n_cells)
    for i, leaf in enumerate(leaves):
        relaxation.cells_used(i, leaf, used)
    return used


class _Prover:
    """Branch and bound that looks for nothing but a proof: that only the better structures beat a score.

    It ends without one at the first other structure that does.
    """

    def __init__(self, relaxed: RelaxedForm, certificate: Certificate, above: float) -> None:
        self.relaxed, self.certificate, self.above = relaxed, certificate, above
        r = self.relaxation = relaxed.relaxation
        self.held = certificate.bound + 0.5 * certificate.tolerance
        self.used, self.scores = np.zeros((len(certificate.better), r.n_cells)), list[float]()
        for used, structure in zip(self.used, certificate.better, strict=True):
            leaves = r.leaves(structure)
            used[:] = cells_of(r, leaves)
            self.scores.append(r.score(leaves, used))
        self.space = Fixed(_Claim(self.held, r, above, self.used.copy()), r, polyak())
        self.named = np.zeros(r.n_cells, dtype=bool)  # cells of views, which proofs may speak of
        for block in (b for blocks in r.views.values() for b in blocks if b in r.offsets):
            self.named[r.offsets[block] :][: int(np.prod(r.shape_of(block), dtype=np.int64))] = True
        self.used[:, ~self.named] = 0.0

    def proof(self) -> Proof | Close:
        """The proof tree, unless there is none: then one that fails."""
        try:
            return self._found()
        except _Refuted:
            return Leaf(self.relaxation.named(np.zeros(self.relaxation.n_rows)))

    def _found(self) -> Proof | Close:
        initial, u = self.space.subproblems.initial, np.zeros(self.relaxation.n_rows)
        inside, closing = list(range(len(self.used))), None
        if len(u):
            node = self._relaxed(initial, u, inside, ROOT_WINDOW)
            u = u if node is None else node.multipliers
        named = self.relaxation.named(u)
        if self.relaxed.searched:
            with suppress(NotSupported):  # if it is too large, what is searched is closed at every leaf
                closing, self.relaxed = self.relaxed.close(named, self.above)
        self.better = [self.relaxed.structure_if_left(y) for y in self.certificate.better]
        tree = self._proved(initial, self.relaxed.initial(), inside, u)
        return tree if closing is None else Close(named, closing, tree)

    def _relaxed(self, fixings: Fixings, start: Floats, inside: list[int], window: int) -> "Node[Fixings] | None":
        """A place of the tree with multipliers that bring its bound down to the better structures there; None if empty.

        They cannot bring it further.
        """
        node = Node(fixings, start)
        self.space.run.score = max([self.held, *(self.scores[k] for k in inside)])
        try:
            self.space._descend(node, ITERATIONS, window, log=False)
        except Infeasible:
            return None
        finally:
            self.space.run.score = self.held
        return node

    def _leaf(self, u: Floats, cell: Cell, inside: list[int]) -> Leaf | None:
        """A bound that is low enough, if there is one at these multipliers."""
        leaf = Leaf(self.relaxation.named(u), tuple(inside))
        known = self.relaxed.known(leaf, self.better)
        bound = self.relaxed.evaluation.bound(self.relaxed.multipliers(leaf.multipliers), self.above, cell, known)
        return leaf if bound <= self.above else None

    def _proved(self, fixings: Fixings, cell: Cell, inside: list[int], start: Floats) -> Proof:
        """Of one place of the tree, where those of the better structures are that are ``inside``."""
        leaf = self._leaf(start, cell, inside)
        if leaf is not None:
            return leaf
        apart = np.flatnonzero((self.used[inside] > 0).any(axis=0) & (self.used[inside] == 0).any(axis=0))
        if len(apart):
            return self._split(int(apart[0]), fixings, cell, inside, start)
        node = self._relaxed(fixings, start, inside, NODE_WINDOW if inside else ROOT_WINDOW)
        if node is None:
            return Leaf(self.relaxation.named(start))
        if not inside:
            return self._searched(node, cell)
        leaf = self._leaf(node.multipliers, cell, inside)
        at = self._undecided(fixings, self.used[inside[0]], node.evidence[0])
        if leaf is not None:
            return leaf
        if at is None:  # only copies that no view has are left to differ
            pinned = self.relaxation.pinned(node.multipliers, self.used[inside[0]], fixings)
            return Leaf(self.relaxation.named(pinned), tuple(inside))
        return self._split(at, fixings, cell, inside, node.multipliers)

    def _searched(self, node: "Node[Fixings]", cell: Cell) -> Proof:
        """Of a place where no better structure is; what the search removes by more than the check sees, it leaves."""
        tree: Proof = Leaf({})
        for space in (self.space, _Keeping(self.space.run, self.relaxation, polyak())):
            search = Search(space.run, space, replace(node, fixes=[]))
            search.climb(exact=True)
            tree = search.proof()
            if self.relaxed.bound_in(cell, tree, self.above) <= self.above:
                break
        return tree

    def _undecided(self, fixings: Fixings, used: Floats, average: Floats) -> int | None:
        """A cell that the better structure uses, and others perhaps not; else one that only others may use."""
        part, open_cells = self.relaxed.part, self.named & ~self.relaxation.decided(fixings)
        scores = np.append(self.relaxed.form.scores, -np.inf)[part]
        mine, others = open_cells & (used > 0), open_cells & (used == 0) & (scores > -np.inf)
        if mine.any():
            return int(np.argmin(np.where(mine, average, np.inf)))
        return int(np.argmax(np.where(others, average, -1.0))) if others.any() else None

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
