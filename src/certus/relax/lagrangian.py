"""A relaxation as an oracle: its subproblems, solved under the penalties that the multipliers make of them.

The argmaxes give primal candidates: where they satisfy all rows they are a structure, and where subproblems are tied
one leads and the others follow.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from certus.checks import Floats
from certus.errors import Infeasible
from certus.relax.descent import Oracle, Round
from certus.relax.quasi_newton import dot
from certus.relax.system import Block, Fixings, Relaxation
from certus.result import Solution


class Subproblems:
    """The subproblems of a relaxation: how they are solved, and what was tried already."""

    def __init__(self, relaxation: Relaxation) -> None:
        self.relaxation = relaxation
        self.initial = relaxation.initial_fixings()  # those that every structure must respect
        self.solves = 0
        self._unpenalised = relaxation.penalties(np.zeros(relaxation.n_rows), self.initial)
        self._ties: list[tuple[Block, ...]] = [blocks for blocks in relaxation.views.values() if len(blocks) > 1]
        self._tried: set[tuple[int, bytes]] = set()

    def solve(self, i: int, penalty: Floats, ones: Sequence[int]) -> Solution[Any]:
        """Argmax of subproblem i under penalties on the cells; its value is weighted.

        Raises Infeasible where it has no structure that uses all of ``ones``: their reward outweighs all else.
        """
        self.solves += 1
        r = self.relaxation
        asked, offset = r.question(i, penalty, ones)
        solution = r.subproblems[i].solve(asked)
        mine = [c for _, cells, _ in r.slices[i] for c in ones if cells.start <= c < cells.stop]
        if mine:
            used = np.zeros(r.n_cells)
            r.cells_used(i, solution.structure, used)
            if not used[mine].all():
                raise Infeasible("no structure uses all the parts that are required.")
        return Solution(solution.structure, r.weights[i] * solution.value + offset)

    def measured(self, fixings: Fixings) -> bool:
        """Whether it is decided by how much soft constraints are broken."""
        measuring = [s for i in self.relaxation.measuring for _, s, _ in self.relaxation.slices[i]]
        return any(fixings.zeros[s].any() or any(s.start <= c < s.stop for c in fixings.ones) for s in measuring)

    def candidates(
        self, leaders: int, leaves: Sequence[Any], used: Floats, residual: Floats
    ) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Structures made of the argmaxes: one per subproblem, with their score.

        Where they do not agree, each of the first ``leaders`` subproblems leads in turn: the rest follow it. A single
        one is asked for a proposal.
        """
        if self.relaxation.satisfied(residual):
            yield from self._scored(leaves, used)
        elif self.relaxation.led or (len(leaves) == 1 and leaders):
            yield from self._assembled(leaves, used)
        elif self._ties:
            for leader in range(leaders):
                yield from self._led(leader, leaves, used)

    def _assembled(self, leaves: Sequence[Any], used: Floats) -> Iterator[tuple[tuple[Any, ...], float]]:
        """The leaves of what these are assembled to."""
        if not self._known(0, used):
            yield from self._agreed(leaves, np.zeros(self.relaxation.n_cells))

    def _agreed(self, leaves: Sequence[Any], cells: Floats) -> Iterator[tuple[tuple[Any, ...], float]]:
        """What the leaves are assembled to, or a single one proposes, if that satisfies the rows; fills ``cells``."""
        r = self.relaxation
        together = r.led or len(leaves) > 1
        proposed = r.assemble(leaves) if together else r.subproblems[0].propose(leaves[0])
        if proposed is not None:
            yield from self._satisfied(r.leaves(proposed) if together else (proposed,), cells)

    def _satisfied(self, agreed: Sequence[Any], cells: Floats) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Leaves of one structure, if they satisfy the rows; fills ``cells``."""
        r = self.relaxation
        for i, leaf in enumerate(agreed):
            r.cells_used(i, leaf, cells)
        if r.satisfied(r.matrix @ cells - r.rhs, hard=True):
            yield from self._scored(agreed, cells)

    def met(self, structure: Any) -> Iterator[tuple[tuple[Any, ...], float]]:
        """A structure of the whole that was met with: its leaves and score, if it satisfies the rows."""
        yield from self._satisfied(self.relaxation.leaves(structure), np.zeros(self.relaxation.n_cells))

    def _led(self, leader: int, leaves: Sequence[Any], used: Floats) -> Iterator[tuple[tuple[Any, ...], float]]:
        """The best structures of the other subproblems that use the parts the leader uses, where they are tied."""
        r = self.relaxation
        if self._known(leader, used):
            return
        completed, cells = list(leaves), used.copy()
        decided = {leader}
        for j in range(len(leaves)):
            if j == leader:
                continue
            penalty, required = self._following(j, decided, cells)
            try:
                completed[j] = self.solve(j, penalty, required).structure
            except Infeasible:
                return
            r.cells_used(j, completed[j], cells)
            decided.add(j)
        if r.excesses:
            yield from self._agreed(completed, cells)
        elif r.satisfied(r.matrix @ cells - r.rhs):
            yield from self._scored(completed, cells)

    def _known(self, leader: int, used: Floats) -> bool:
        """Whether this subproblem has led with the same parts before."""
        key = (leader, b"".join(used[cells].tobytes() for _, cells, _ in self.relaxation.slices[leader]))
        known = key in self._tried
        self._tried.add(key)
        return known

    def _following(self, j: int, decided: set[int], cells: Floats) -> tuple[Floats, list[int]]:
        """Penalties and required cells that make subproblem j use what those decided use, where they are tied."""
        r = self.relaxation
        penalty, required = self._unpenalised.copy(), list(self.initial.ones)
        for blocks in self._ties:
            source = next((b for b in blocks if b[0] in decided and b in r.offsets), None)
            for target in blocks:
                if source is None or target[0] != j or target not in r.offsets:
                    continue
                used = cells[r.cells_in(source)]
                penalty[r.cells_in(target)][used == 0] = -np.inf
                if target[1] not in r.subproblems[j].exclusive:  # then leaving a part out is also possible
                    required += (r.offsets[target] + np.flatnonzero(used)).tolist()
        return penalty, required

    def _scored(self, leaves: Sequence[Any], used: Floats) -> Iterator[tuple[tuple[Any, ...], float]]:
        if not (used[self.initial.zeros] > 0).any() and not (used[list(self.initial.ones)] == 0).any():
            yield tuple(leaves), self.relaxation.score(leaves, used)


class Lagrangian(Oracle):
    """The dual function of a relaxation under fixings. Subproblems whose penalties did not change are not solved again.

    ``leaves`` are the last argmaxes, one per subproblem, and ``last`` the cells that they use. A single subproblem is
    asked for proposals at every round, or without ``proposals`` at rounds 1, 2, 4, 8, ...
    """

    def __init__(self, subproblems: Subproblems, fixings: Fixings, *, proposals: bool = True) -> None:
        r = subproblems.relaxation
        self.subproblems, self.relaxation, self.fixings, self.proposals = subproblems, r, fixings, proposals
        self.scale, self.rows, self.inequality, self.lowest = r.scale, r.n_rows, r.inequality, r.lowest
        self.priced = False  # whether it begins where a linear program ends
        self.solution: Floats | None = None  # of that, if there is one: the cells used
        self.box = None if subproblems.measured(fixings) else r.box
        self.leaves: list[Any] = []
        self.last = np.zeros(r.n_cells)
        self._solutions: list[Solution[Any]] = []
        self._asked: Floats | None = None
        self._sum, self._weight = np.zeros(r.n_cells), 0.0
        self._rounds = 0

    def ask(self, u: Floats) -> Round:
        r, asked, ones = self.relaxation, self._asked, self.fixings.ones
        penalty = r.penalties(u, self.fixings)
        for i, blocks in enumerate(r.slices):
            if asked is None:
                self._solutions.append(self.subproblems.solve(i, penalty, ones))
            elif any(not np.array_equal(penalty[cells], asked[cells]) for _, cells, _ in blocks):
                self._solutions[i] = self.subproblems.solve(i, penalty, ones)
            else:
                continue
            r.cells_used(i, self._solutions[i].structure, self.last)
        self._asked = penalty
        self._rounds += 1
        self.leaves = [s.structure for s in self._solutions]
        residual: Floats = r.matrix @ self.last - r.rhs
        # The first subproblem leads at every round, the others at rounds 1, 2, 4, 8, ...
        leaders = len(self.leaves)
        if self._rounds & (self._rounds - 1):
            leaders = 1 if self.proposals or leaders > 1 else 0
        candidates = list(self.subproblems.candidates(leaders, self.leaves, self.last, residual))
        value = sum(s.value for s in self._solutions) - dot(u, r.rhs) + dot(np.abs(u), r.slack)
        return Round(value, residual, candidates)

    def error(self, u: Floats) -> float:
        return self.relaxation.error(u, self.fixings)

    def moved(self, step: float) -> None:
        weight = max(step, 1e-300)
        self._sum, self._weight = self._sum + weight * self.last, self._weight + weight

    @property
    def average(self) -> Floats:
        """Of the cells used, over all rounds, weighted by the steps: tends to a solution of the linear program."""
        return self._sum / self._weight if self._weight else self._sum
