r"""Linear and integer programs of a problem, solved by HiGHS: the reference, and the last resort (LR 4.4).

Each dynamic program gives one variable per edge of its hypergraph, the number of times a derivation uses it, with

    sum of edges into the root = 1,      sum of edges into v = sum over edges e of (times v is in the tail of e) x_e.

Integer points are derivations. The parts of a view are sums of edges, and the rows that tie problems or constrain
parts are rows over these sums. Without integrality this is the linear program that the multipliers solve the dual of;
its optimum may be fractional, and then no multipliers make the subproblems agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from certus.checks import Floats, Ints
from certus.clock import Clock
from certus.errors import Infeasible, LimitReached, NotSupported
from certus.hypergraph import Forest
from certus.problem import Index, Limits, Problem
from certus.relax.branch import Start, climb
from certus.relax.proof import Fix, Leaf, Split, Tighter
from certus.relax.system import Fixings, Relaxation
from certus.result import Result
from certus.threads import interruptible

Y = TypeVar("Y")

WHOLE = 1e-6  # how far from a whole number HiGHS may leave a variable that is one


@dataclass(frozen=True)
class LinearProgram:
    """max objective . x  such that  lower <= matrix x <= upper,  0 <= x <= most;  x integer for the integer program.

    ``cells`` turns x into the flat cells of the relaxation; ``edges[i]`` are the variables of subproblem i.
    """

    relaxation: Relaxation
    objective: Floats
    matrix: sparse.csr_array
    lower: Floats
    upper: Floats
    most: Floats
    cells: sparse.csr_array
    edges: tuple[slice, ...]
    n_required: int = 0  # of the last rows: those of parts that must be used

    @property
    def size(self) -> tuple[int, int]:
        """Number of constraints and of variables."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def under(self, fixings: Fixings) -> "LinearProgram":
        """The same with parts decided: no edge uses a forbidden cell, and there is a row for each that is required."""
        most = self.most.copy()
        most[np.asarray(self.cells[np.flatnonzero(fixings.zeros)].sum(axis=0)).ravel() > 0] = 0.0
        count = len(fixings.ones)
        if not count:
            return replace(self, most=most)
        return replace(
            self,
            most=most,
            matrix=sparse.csr_array(sparse.vstack([self.matrix, self.cells[list(fixings.ones)]])),
            lower=np.concatenate([self.lower, np.ones(count)]),
            upper=np.concatenate([self.upper, np.full(count, np.inf)]),
            n_required=count,
        )

    def to_text(self, *, integer: bool) -> str:
        """The program in the LP format that other solvers read; variables are x0, x1, ... by column."""

        def total(columns: NDArray[np.integer[Any]], values: Floats) -> str:
            return " ".join(f"{v:+.17g} x{k}" for k, v in zip(columns.tolist(), values.tolist(), strict=True)) or "0 x0"

        rows = []
        for r in range(self.matrix.shape[0]):
            entries = slice(self.matrix.indptr[r], self.matrix.indptr[r + 1])
            left = total(self.matrix.indices[entries], self.matrix.data[entries])
            low, high = self.lower[r], self.upper[r]
            if low == high:
                rows.append(f" c{r}: {left} = {high:.17g}")
            elif np.isfinite(high):
                rows.append(f" c{r}: {left} <= {high:.17g}")
            else:
                rows.append(f" c{r}: {left} >= {low:.17g}")
        fixed = [f" x{k} = 0" for k in np.flatnonzero(self.most == 0.0)]
        names = [f" x{k}" for k in range(len(self.objective))] if integer else []
        lines = ["Maximize", f" score: {total(np.arange(len(self.objective)), self.objective)}", "Subject To", *rows]
        lines += ["Bounds", *fixed] if fixed else []
        lines += ["General", *names] if names else []
        return "\n".join([*lines, "End", ""])

    def solve(self, *, integer: bool, time_limit: float | None = None) -> tuple[Floats, float]:
        """An optimal x and an upper bound on the objective, as good as HiGHS's tolerances."""
        rows = optimize.LinearConstraint(self.matrix, self.lower, self.upper)
        try:
            return highs(self.objective, rows, self.most, np.full(len(self.objective), int(integer)), time_limit)
        except Infeasible:
            raise Infeasible("no structure satisfies all the constraints; proved by HiGHS.") from None

    def duals(self, time_limit: float | None = None) -> Floats:
        """The multipliers of the relaxation's rows in a dual solution of the linear program; 0 where HiGHS has none."""
        return self.optimum(time_limit)[0]

    def optimum(self, time_limit: float | None = None) -> tuple[Floats, Floats | None]:
        """The same, and the flat cells of the solution, if HiGHS has one."""
        r = self.relaxation
        if not r.n_rows:
            return np.zeros(0), None
        equal, sign = self.lower == self.upper, np.where(np.isfinite(self.upper), 1.0, -1.0)
        matrix = sparse.csr_array(sparse.diags_array(sign) @ self.matrix)
        right = np.where(sign > 0, self.upper, -self.lower)
        linprog: Any = optimize.linprog
        found = interruptible(
            lambda: linprog(
                -self.objective,
                A_ub=matrix[~equal],
                b_ub=right[~equal],
                A_eq=matrix[equal],
                b_eq=right[equal],
                bounds=np.column_stack((np.zeros(len(self.most)), self.most)),
                options={} if time_limit is None else {"time_limit": time_limit},
            )
        )
        u, cells = np.zeros(len(right)), None
        if found.status == 0:
            cells = self.cells @ found.x
            u[equal], u[~equal] = found.eqlin.marginals, found.ineqlin.marginals
        own = u[len(u) - self.n_required - r.n_rows : len(u) - self.n_required]
        return np.where(r.inequality, np.minimum(own, 0.0), own), cells


def highs(
    objective: Floats, rows: optimize.LinearConstraint, most: Floats, integrality: Ints, time_limit: float | None
) -> tuple[Floats, float]:
    """An x with 0 <= x <= most and the rows that maximises the objective, and an upper bound on it."""
    found = interruptible(
        lambda: optimize.milp(
            -objective,
            constraints=rows,
            bounds=optimize.Bounds(0.0, most),
            integrality=integrality,
            options={"mip_rel_gap": 0.0, "time_limit": np.inf if time_limit is None else time_limit},
        )
    )
    if found.status == 2:
        raise Infeasible("no x satisfies the rows; proved by HiGHS.")
    if found.x is None:
        raise LimitReached(f"HiGHS found no structure: {found.message}")
    bound = found.mip_dual_bound if integrality.any() and found.mip_dual_bound is not None else found.fun
    return found.x, 0.0 - float(bound)


class Builder:
    """A program in the making: max objective . x  such that  lower <= rows <= upper,  0 <= x <= most."""

    def __init__(self) -> None:
        self._entries: list[tuple[Ints, Ints, Floats]] = []
        self._lower: list[Floats] = []
        self._upper: list[Floats] = []
        self._objective: list[Floats] = []
        self._most: list[Floats] = []
        self.n_rows = self.n_variables = 0

    def rows(self, lower: Floats, upper: Floats | None = None) -> Ints:
        """New rows, equations unless both ends are given; their numbers."""
        self._lower.append(lower)
        self._upper.append(lower if upper is None else upper)
        self.n_rows += len(lower)
        return np.arange(self.n_rows - len(lower), self.n_rows)

    def variables(self, score: Floats, most: float = np.inf) -> Ints:
        """New variables; their numbers. Those that score -inf are 0."""
        forbidden = score == -np.inf
        self._objective.append(np.where(forbidden, 0.0, score))
        self._most.append(np.where(forbidden, 0.0, most))
        self.n_variables += len(score)
        return np.arange(self.n_variables - len(score), self.n_variables)

    def add(self, row: Ints, column: Ints, value: float | Floats) -> None:
        """Entries of the matrix, which add up where they meet; none where the row is -1."""
        there = row >= 0
        self._entries.append((row[there], column[there], np.broadcast_to(value, row.shape)[there]))

    def solve(self, whole: int = 0, time_limit: float | None = None) -> tuple[Floats, float]:
        """An optimal x, whole in the first variables, and an upper bound, as good as HiGHS's tolerances."""
        row, column, value = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        matrix = sparse.csr_array((value, (row, column)), shape=(self.n_rows, self.n_variables))
        rows = optimize.LinearConstraint(matrix, np.concatenate(self._lower), np.concatenate(self._upper))
        integrality = (np.arange(self.n_variables) < whole).astype(np.int64)
        return highs(np.concatenate(self._objective), rows, np.concatenate(self._most), integrality, time_limit)


@dataclass(frozen=True, slots=True)
class LPReport:
    """Solution of the linear program: its value, the views of the vertex found, and where it is fractional.

    ``mixtures[i]`` says what the vertex is for subproblem i: structures with their shares, which sum to one (LR ex.
    4.4.1). A fractional vertex lies between the structures named.
    """

    value: float
    fractional: bool  # some edge is used a fractional number of times: the vertex is no structure
    views: Mapping[str, Floats]
    mixtures: tuple[tuple[tuple[float, Any], ...], ...] = ()

    def parts(self) -> list[tuple[str, Index, float]]:
        """The parts with a fractional value: view, index, value."""
        out = []
        for view, values in self.views.items():
            for index in np.argwhere(np.abs(values - np.round(values)) > WHOLE):
                cell = tuple(int(k) for k in index)
                out.append((view, cell, float(values[cell])))
        return out

    def __repr__(self) -> str:
        kind = f"fractional in {len(self.parts())} parts" if self.fractional else "integral"
        return f"LPReport(value={self.value:.10g}, {kind})"


def linear_program(problem: Problem[Any]) -> LinearProgram:
    """The program of a dynamic program, or of a joint or constrained problem made of them.

    Raises NotSupported when a subproblem is no dynamic program.
    """
    relaxation = Relaxation.of(problem)
    return program_of(relaxation).under(relaxation.initial_fixings())


def program_of(relaxation: Relaxation) -> LinearProgram:
    """The program of a relaxation, whatever is decided from the start left out: see ``LinearProgram.under``."""
    pieces = [_Piece(relaxation, i) for i in range(len(relaxation.subproblems))]
    starts = np.cumsum([0, *(p.n for p in pieces)])
    edges = tuple(slice(int(a), int(b)) for a, b in pairwise(starts))
    flow = sparse.block_diag([p.flow for p in pieces], format="csr")
    supply = np.concatenate([p.supply for p in pieces])
    cells = sparse.hstack([p.cells for p in pieces], format="csr")
    rows = sparse.csr_array(relaxation.matrix @ cells)
    base = relaxation.penalties(np.zeros(relaxation.n_rows), Fixings(np.zeros(relaxation.n_cells, dtype=bool)))
    forbidden = np.asarray(cells[np.flatnonzero(base == -np.inf)].sum(axis=0)).ravel() > 0
    return LinearProgram(
        relaxation,
        np.concatenate([p.objective for p in pieces]) + cells.T @ np.where(base == -np.inf, 0.0, base),
        sparse.csr_array(sparse.vstack([flow, rows])),
        np.concatenate([supply, np.where(relaxation.inequality, -np.inf, relaxation.rhs)]),
        np.concatenate([supply, relaxation.rhs]),
        np.where(forbidden, 0.0, np.inf),
        cells,
        edges,
    )


class _Piece:
    """The variables and flow constraints of one subproblem; edges of weight -inf are left out."""

    def __init__(self, relaxation: Relaxation, i: int) -> None:
        problem = relaxation.subproblems[i]
        forest = problem.forest()
        if forest is None:
            raise NotSupported(
                f"{type(problem).__name__} is not a dynamic program and has no linear program here; for trees with "
                "crossing arcs ask certus.dependency.flow, for phrases certus.translation.phrase_program."
            )
        self.forest: Forest = forest
        self.relaxation, self.i = relaxation, i
        self.kept: NDArray[np.intp] = np.flatnonzero(self.forest.weights > -np.inf)
        self.n = len(self.kept)
        self.objective = relaxation.weights[i] * self.forest.weights[self.kept]

    @cached_property
    def flow(self) -> sparse.csr_array:
        graph = self.forest.graph
        sizes = np.diff(graph.tail_ptr)
        of_edge = np.repeat(np.arange(graph.n_edges), sizes)
        heads = np.asarray(graph.heads, dtype=np.int64)
        row = np.concatenate([heads, np.asarray(graph.tail, dtype=np.int64)])
        column = np.concatenate([np.arange(graph.n_edges), of_edge])
        value = np.concatenate([np.ones(graph.n_edges), -np.ones(len(of_edge))])
        return sparse.csr_array(
            sparse.csr_array((value, (row, column)), shape=(graph.n_vertices, graph.n_edges))[:, self.kept]
        )

    @cached_property
    def supply(self) -> Floats:
        supply = np.zeros(self.forest.graph.n_vertices)
        supply[self.forest.graph.root] = 1.0
        return supply

    @cached_property
    def cells(self) -> sparse.csr_array:
        row: list[Ints] = []
        column: list[Ints] = []
        for view, cells, _ in self.relaxation.slices[self.i]:
            part = np.asarray(self.forest.parts[view], dtype=np.int64)[self.kept]
            used = np.flatnonzero(part >= 0)
            row.append(part[used] + cells.start)
            column.append(used)
        shape = (self.relaxation.n_cells, self.n)
        if not row:
            return sparse.csr_array(shape, dtype=np.float64)
        at = (np.concatenate(row), np.concatenate(column))
        return sparse.csr_array((np.ones(len(at[0])), at), shape=shape)


def solve_lp(problem: Problem[Any]) -> LPReport:
    """Solve the linear program, and report whether the vertex found is fractional and in which parts."""
    program = linear_program(problem)
    x, value = program.solve(integer=False)
    r = program.relaxation
    uses, mixtures = [], []
    for subproblem, edges in zip(r.subproblems, program.edges, strict=True):
        forest = subproblem.forest()
        assert forest is not None
        flow = np.zeros(forest.graph.n_edges)
        flow[forest.weights > -np.inf] = x[edges]
        uses.append((forest, flow))
        mixtures.append(tuple((share, subproblem.from_edges(path)) for share, path in _mixture(forest, flow)))
    views = {}
    for view, blocks in r.views.items():
        i, name = blocks[0]
        forest, flow = uses[i]
        views[view] = forest.onto_view(name, r.shape_of(blocks[0]), flow, maximum=False)
    return LPReport(value, bool((np.abs(x - np.round(x)) > WHOLE).any()), views, tuple(mixtures))


def _mixture(forest: Forest, flow: Floats) -> list[tuple[float, list[int]]]:
    """Derivations whose shares add up to the flow: that of the largest flows, again and again, until all is used."""
    left = flow.copy()
    graph = forest.graph
    out: list[tuple[float, list[int]]] = []
    rest = 1.0
    while rest > WHOLE:
        path, stack = [], [graph.root]
        while stack:
            edges = graph.edges_into(stack.pop())
            e = edges[int(np.argmax(left[edges.start : edges.stop]))]
            path.append(e)
            stack.extend(int(u) for u in graph.tail_of(e)[::-1])
        share = min(rest, float(min(left[e] / path.count(e) for e in path)))
        if share <= WHOLE:  # what is left is rounding
            break
        for e in path:
            left[e] -= share
        rest -= share
        out.append((share, path))
    return out


def solve_ilp(problem: Problem[Y], *, time_limit: float | None = None) -> Result[Y]:
    """Solve the integer program, and prove what HiGHS found. Certificate kind: "integer program".

    HiGHS calculates within tolerances, so that its word is no proof: its solution is where branch and bound starts
    from, and the duals of its linear program are the multipliers to begin with. The witness is that proof tree. At the
    time limit, which HiGHS and the proof share, the bound is what is proved by then.

    Raises Infeasible when there is no structure, NotSupported when a subproblem is no dynamic program.
    """
    clock = Clock(time_limit)
    program = linear_program(problem)
    x, _ = program.solve(integer=True, time_limit=time_limit)
    leaves = []
    for i, edges in enumerate(program.edges):
        subproblem = program.relaxation.subproblems[i]
        forest = subproblem.forest()
        assert forest is not None
        uses = np.zeros(forest.graph.n_edges, dtype=np.int64)
        uses[forest.weights > -np.inf] = np.round(x[edges]).astype(np.int64)
        leaves.append(subproblem.from_edges(_derivation(forest, uses)))
    return proved_from(problem, program.relaxation, Start(tuple(leaves), program.duals()), clock)


def proved_from(problem: Problem[Y], relaxation: Relaxation, start: Start, clock: Clock) -> Result[Y]:
    """What branch and bound makes of the solution of an integer program, in the time that is left."""
    left = None if clock.limit is None else max(clock.limit - clock.seconds, 0.1)
    found = climb(problem, relaxation, Limits(time_limit=left), start)
    proof = found.certificate.duals
    tree = proof if isinstance(proof, Leaf | Fix | Split | Tighter) else Leaf(proof)
    return replace(found, certificate=replace(found.certificate, kind="integer program", duals=tree))


def _derivation(forest: Forest, uses: Ints) -> list[int]:
    """The edges of a derivation with these uses, head before tails."""
    graph = forest.graph
    left = uses.copy()
    out, stack = [], [graph.root]
    while stack:
        v = stack.pop()
        e = next(e for e in graph.edges_into(v) if left[e] > 0)
        left[e] -= 1
        out.append(e)
        stack.extend(int(u) for u in graph.tail_of(e)[::-1])
    return out
