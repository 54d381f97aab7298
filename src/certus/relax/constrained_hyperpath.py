r"""Constrained hypergraphs: the best derivation y with A y = b, by beam search with bounds (LR 7.1 - 7.6).

theta in LR is ``weights`` here, and lambda is minus our multipliers u: edge weights become theta + A' u, and -u . b is
added. The signature of a partial derivation y is A y.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import product
from math import inf
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates import sweep
from certus.certificates.normal import Closed, Graph, NormalForm
from certus.certificates.rounding import Extent, of_sum, rounded_up
from certus.certificates.sound import sound
from certus.checks import Floats, Ints, as_positive_int, as_scores, one_of
from certus.errors import Infeasible, InvalidInput, LimitReached, NotSupported
from certus.hypergraph import formats, sweeps
from certus.hypergraph.dynamic_program import DynamicProgram, Forest
from certus.hypergraph.graph import Hypergraph, Int32
from certus.hypergraph.hyperpath import Hyperpath
from certus.problem import Index, Penalties
from certus.relax.beams import WINDOW, Beam, BeamOracle
from certus.relax.descent import Descent, Oracle, Round, descend
from certus.relax.run import HeldRun, Run
from certus.relax.steps import StepRule, polyak
from certus.relax.system import Entries, Relaxation, Rows
from certus.result import Certificate, Result, certified
from certus.schema import Field
from certus.serialize import floats_to_json

Signature = tuple[float, ...]
Check = Callable[[Signature], bool]
Group = Callable[[int, Signature], Hashable]
METHODS = ("alternating", "staged", "beam")
MOST_HYPOTHESES = 5_000_000  # of one search
DIGITS = 9  # after the point, of the sums that rows are about
MOST_SPELT_OUT = 2_000_000  # edges of the graph with signatures


class _Hypotheses:
    """The hypotheses of a beam search: of each group the best ``width``, by score plus the bound of the vertex."""

    def __init__(self, bounds: list[float], width: int) -> None:
        self.bounds, self.width = bounds, width
        self.chart: list[dict[Signature, float]] = [{} for _ in bounds]
        self.total, self.pruned = 0, False  # how many there were, and whether any was dropped
        self._groups: dict[Hashable, list[tuple[float, int, Signature]]] = {}
        self._alive: dict[Hashable, int] = {}

    def put(self, v: int, signature: Signature, score: float, group: Hashable) -> None:
        """Enter a new hypothesis, or a better one in place of the one that was there."""
        heap = self._groups.setdefault(group, [])
        heappush(heap, (score + self.bounds[v], v, signature))
        if signature not in self.chart[v]:
            self.total += 1
            self._alive[group] = self._alive.get(group, 0) + 1
        self.chart[v][signature] = score
        while self._alive[group] > self.width:
            rank, w, worst = heappop(heap)
            if self.chart[w].get(worst, inf) + self.bounds[w] == rank:  # else it was improved since
                del self.chart[w][worst]
                self._alive[group] -= 1
                self.pruned = True


class ConstrainedHyperpath(DynamicProgram[Int32]):
    r"""The best derivation of a hypergraph's root that satisfies linear equations on its edges (LR 7.1).

    Solves  max over derivations y with A y = b of  sum of weights[e] over the edges of y.  NP-hard in general; how hard
    depends on how many signatures A y partial derivations have. ``decode`` is optimal beam search (LR alg. 13):
    subgradient descent on multipliers of the rows gives bounds on what any partial derivation can still gain; beam
    search over (vertex, signature) pairs drops what the bounds show to be worse than the best derivation known, and
    proves the optimum once it pruned nothing else. Structures and the view "edges" are those of Hyperpath. Certificate
    kind: "dual", with the multipliers "rows" as witness, or "combinatorial".

    The other questions (``kbest``, ``log_partition``, ``marginals``, ...) spell out the graph with signatures, which
    only small problems allow.

    Parameters
    ----------
    graph : Hypergraph
    weights : array_like of shape (E,)
        Finite, or -inf to forbid an edge.
    A : array_like of shape (p, E)
        Finite coefficients.
    b : array_like of shape (p,)
    check : callable, optional
        CHECK of LR alg. 10: whether a signature, a tuple of p numbers, can still become b. It must never refuse one
        that can. By default a row with no negative coefficient may not exceed its right-hand side, one with no positive
        coefficient may not fall below.
    group : callable, optional
        (vertex, signature) -> key: beam search keeps the best ``width`` pairs of each key (PRUNE, LR alg. 11). By
        default the sum of the signature's absolute values.

    Examples
    --------
    >>> graph = Hypergraph(in_ptr=[0, 2, 4, 5], tail_ptr=[0, 0, 0, 0, 0, 2], tail=[0, 1])
    >>> problem = ConstrainedHyperpath(graph, [3, 1, 3, 1, 0], A=[[1, 0, 1, 0, 0]], b=[1])  # one of edges 0 and 2
    >>> problem.decode().score
    4.0
    """

    name: ClassVar[str] = "constrained hyperpath"
    searched: ClassVar[bool] = True

    def __init__(
        self,
        graph: Hypergraph,
        weights: ArrayLike,
        A: ArrayLike,
        b: ArrayLike,
        *,
        check: Check | None = None,
        group: Group | None = None,
    ) -> None:
        self.graph = graph
        self.weights = as_scores("weights", weights, (graph.n_edges,))
        self.b = as_scores("b", b, (None,))
        self.A = as_scores("A", A, (len(self.b), graph.n_edges))
        for name, array in (("A", self.A), ("b", self.b)):
            if not np.isfinite(array).all():
                raise InvalidInput(f"{name} holds -inf; coefficients and right-hand sides are finite.")
        self.check = self._default_check() if check is None else check
        self.group = (lambda v, signature: sum(map(abs, signature))) if group is None else group
        self._inner = Hyperpath(graph, self.weights)

    def __repr__(self) -> str:
        return f"ConstrainedHyperpath({self.graph.n_edges} edges, {len(self.b)} rows)"

    def _default_check(self) -> Check:
        goal = self.b.tolist()
        rising = [i for i, row in enumerate(self.A) if (row >= 0).all()]
        falling = [i for i, row in enumerate(self.A) if (row <= 0).all()]

        def check(signature: Signature) -> bool:
            return all(signature[i] <= goal[i] + 1e-9 for i in rising) and all(
                signature[i] >= goal[i] - 1e-9 for i in falling
            )

        return check

    # -- structures ------------------------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        return {"edges": (self.graph.n_edges,)}

    def signature(self, structure: Sequence[int] | Int32) -> Signature:
        """A y of a derivation."""
        return self._total(self.A[:, np.asarray(structure, dtype=np.int64)].sum(axis=1))

    def terms(self, structure: Int32) -> list[float]:
        """[-inf] for a derivation that breaks a row."""
        scores = self._inner.terms(structure)
        return scores if self._meets(self.signature(structure)) else [-inf]

    def indicator(self, structure: Int32, view: str) -> Floats:
        return self._inner.indicator(structure, view)

    def extent(self) -> Extent:
        return self._inner.extent()

    def all_scores(self) -> tuple[Floats]:
        return (self.weights,)

    def without_scores_below(self, least: float) -> Self:
        return self._weighing(self._inner.without_scores_below(least).weights)

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._weighing(rounded_up(self.weights, step))

    def all_structures(self) -> Iterator[Int32]:
        for edges in self.graph.hyperpaths():
            if self._meets(self.signature(edges)):
                yield np.array(edges, dtype=np.int32)

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        """The problem without an edge (value 0). That an edge is used (value 1) is one more row: add it to A and b."""
        (size,) = self.checked_view(view)
        if len(index) != 1 or not 0 <= index[0] < size:
            raise InvalidInput(f"index {index!r} is not one of the edges 0..{size - 1}.")
        if value != 0:
            raise NotSupported("an edge can be forbidden here, not required; add a row to A and b instead.")
        weights = self.weights.copy()
        weights[index[0]] = -inf
        return self._weighing(weights)

    @staticmethod
    def _total(values: Any) -> Signature:
        """Numbers rounded so that sums in a different order are the same signature."""
        return tuple([round(float(x), DIGITS) + 0.0 for x in values])

    def _meets(self, signature: Signature) -> bool:
        return signature == self._total(self.b)

    # -- the relaxation --------------------------------------------------------------------------------------------

    def dual(self, multipliers: Floats, kept: Floats | None = None) -> tuple[float, Int32]:
        """(L(u), the derivation that attains it): no derivation with A y = b scores more than L(u) (LR 7.5.1)."""
        value, edges = sweeps.best(self.graph, self._priced(multipliers, kept))
        return value - float(multipliers @ self.b), edges

    def outside(self, multipliers: Floats, kept: Floats | None = None) -> Floats:
        """For each vertex, what completing a derivation of it can add at most, -u . b included (LR 7.5.2)."""
        out: Floats = sweeps.outside(self.graph, self._priced(multipliers, kept), "max")
        return out - float(multipliers @ self.b)

    def fixed_edges(self, multipliers: Floats, lower: float, kept: Floats | None = None) -> Any:
        """Edges that no derivation above ``lower`` uses: their max-marginal under the multipliers is not above it."""
        best = sweeps.max_marginals(self.graph, self._priced(multipliers, kept)) - float(multipliers @ self.b)
        return best <= lower

    def _priced(self, multipliers: Floats, kept: Floats | None) -> Floats:
        priced: Floats = (self.weights if kept is None else kept) + self.A.T @ multipliers
        return priced

    # -- beam search -----------------------------------------------------------------------------------------------

    def beam_search(
        self,
        width: int,
        *,
        multipliers: ArrayLike | None = None,
        lower: float = -inf,
        kept: Floats | None = None,
        most: int = MOST_HYPOTHESES,
    ) -> Beam:
        """Beam search with bounds (LR alg. 10).

        Hypotheses are (vertex, signature) pairs with the best score of any derivation; those that CHECK refuses, or
        whose score plus outside bound under the multipliers is not above ``lower``, are dropped at no loss. Of each
        group only the best ``width``, by score plus bound, are kept. If nothing was lost that way, what was found is
        the best derivation above ``lower``, and None means that there is none. ``kept`` are weights with edges removed.
        Past ``most`` hypotheses it gives up, as if all had been pruned.
        """
        u = np.zeros(len(self.b)) if multipliers is None else as_scores("multipliers", multipliers, (len(self.b),))
        bounds = self.outside(u, kept).tolist()
        weight = self._priced(u, kept).tolist()
        columns = self.A.T.tolist()
        tails = [self.graph.tail_of(e).tolist() for e in range(self.graph.n_edges)]
        found = _Hypotheses(bounds, width)
        chart, back = found.chart, dict[tuple[int, Signature], tuple[int, tuple[Signature, ...]]]()
        for v in range(self.graph.root + 1):
            if bounds[v] == -inf:
                continue
            for e in self.graph.edges_into(v):
                if weight[e] == -inf:
                    continue
                for choice in product(*(list(chart[u_].items()) for u_ in tails[e])):
                    score = weight[e]
                    sums = list(columns[e])
                    for signature, value in choice:
                        score += value
                        for i, x in enumerate(signature):
                            sums[i] += x
                    signature = self._total(sums)
                    known = chart[v].get(signature)
                    if (known is not None and score <= known) or score + bounds[v] <= lower:
                        continue
                    if not self.check(signature):
                        continue
                    back[v, signature] = e, tuple(s for s, _ in choice)
                    found.put(v, signature, score, self.group(v, signature))
                    if found.total > most:
                        return Beam(None, -inf, True, found.total)
        goal = self._total(self.b)
        if goal not in chart[self.graph.root]:
            return Beam(None, -inf, found.pruned, found.total)
        edges: list[int] = []
        pending = [(self.graph.root, goal)]
        while pending:
            v, signature = pending.pop()
            e, parts = back[v, signature]
            edges.append(e)
            pending.extend(reversed(list(zip(tails[e], parts, strict=True))))
        structure = np.array(edges, dtype=np.int32)
        return Beam(structure, self._inner.score(structure), found.pruned, found.total)

    # -- decoding --------------------------------------------------------------------------------------------------

    @sound
    def decode(
        self,
        *,
        max_iterations: int = 100,
        time_limit: float | None = None,
        exact: bool = True,
        method: str = "alternating",
        width: int = 100,
        step: StepRule[Any] | None = None,
    ) -> Result[Int32]:
        """The best derivation that satisfies the rows, by optimal beam search (LR alg. 13).

        Parameters
        ----------
        max_iterations : int
            Rounds of subgradient descent.
        time_limit : float, optional
            Seconds; looked at between rounds and searches.
        exact : bool
            False stops after the rounds; True goes on with ever wider beams until nothing is pruned.
        method : "alternating", "staged" or "beam"
            A beam search after every round, wider as the gap shrinks; all rounds first; or one beam search of ``width``
            with no rounds, which proves something only if it prunes nothing.
        step : StepRule, optional
            Polyak's by default (LR 7.7.1).

        Raises
        ------
        Infeasible : no derivation satisfies the rows.
        LimitReached : a limit came before any derivation was found.
        """
        one_of("method", method, METHODS)
        as_positive_int("width", width)
        rule = step or polyak(patience=3)
        run: Run[Int32] = Run(max_iterations=max_iterations, time_limit=time_limit, scale=max(self.extent().size, 1.0))
        search, u = _Alternation(self, run, staged=method == "staged"), np.zeros(len(self.b))
        if method == "beam":
            search.search(width, u)
        else:
            u = search.lower(rule, max_iterations)
            if exact or method == "staged":
                search.widen(u, 10, once=not exact)
            run.info["step"] = repr(rule)
        if run.structure is None:
            if run.proof is not None:
                raise Infeasible(f"no derivation satisfies the {len(self.b)} rows A y = b.")
            raise LimitReached("the limits ended the search before any derivation that satisfies the rows was found.")
        return run.result(run.structure, self._certificate(run, u))

    def _certificate(self, run: Run[Int32], u: Floats) -> Certificate:
        assert run.structure is not None
        scores, score = partial(self.terms, run.structure), run.score
        if run.proof == "search":
            return certified(scores, score, score, run.error, kind="combinatorial")
        dual, _ = self.dual(u)  # of all edges, not of those that are left
        return certified(scores, score, dual, self.dual_error(u), kind="dual", duals={"rows": u})

    def relaxation(self) -> Relaxation:
        """The derivations of the graph, with the equations as rows."""
        row, edge = np.nonzero(self.A)
        entries = Entries((0, "edges"), row, edge, self.A[row, edge])
        slack = np.full(len(self.b), 2.0 * 10.0**-DIGITS)
        rows = Rows("rows", (entries,), self.b, True, self.b.shape, slack)
        views = {"edges": ((0, "edges"),)}
        return Relaxation((self._inner,), (1.0,), views, (rows,), lambda leaves: leaves[0], lambda y: (y,))

    def dual_error(self, multipliers: Floats) -> float:
        """How far rounding may take a dual value at these multipliers from the truth."""
        extent = self.extent()
        priced = float(np.abs(self.A.T @ multipliers).max(initial=0.0)) + float(np.abs(multipliers * self.b).sum())
        return of_sum(extent.length + len(self.b) + 1, extent.size + priced)

    # -- the graph with signatures ---------------------------------------------------------------------------------

    @cached_property
    def _spelt_out(self) -> Forest:
        graph, edges = self._with_signatures(self.check, self.weights, np.zeros(self.graph.n_vertices), -inf)
        spelt = Hypergraph(graph.in_ptr, graph.tail_ptr, graph.tail)
        return Forest(spelt, self.weights[edges], {"edges": edges})

    def _with_signatures(self, check: Check, priced: Floats, around: Floats, above: float) -> tuple[Graph, Ints]:
        """The graph over (vertex, signature) pairs, whose derivations satisfy the rows, and the edges that its own are.

        Without pairs whose derivations cannot score more than ``above``: ``around[v]`` is the most that completes one.
        """
        columns, weight, bounds = self.A.T.tolist(), priced.tolist(), around.tolist()
        tails, edges, heads = list[list[int]](), list[int](), list[int]()
        chart: list[dict[Signature, tuple[int, float]]] = [{} for _ in range(self.graph.n_vertices)]
        goal, n_vertices = self._total(self.b), 0
        for v in range(self.graph.root + 1):
            for e in self.graph.edges_into(v):
                for choice in product(*(list(chart[u].items()) for u in self.graph.tail_of(e).tolist())):
                    score, sums = weight[e] + sum(best for _, (_, best) in choice), list(columns[e])
                    for signature, _ in choice:
                        for i, x in enumerate(signature):
                            sums[i] += x
                    signature = self._total(sums)
                    if (v == self.graph.root and signature != goal) or not check(signature):
                        continue
                    if above > -inf and not score + bounds[v] > above:
                        continue
                    number, best = chart[v].get(signature, (n_vertices, -inf))
                    n_vertices = max(n_vertices, number + 1)
                    chart[v][signature] = number, max(best, score)
                    heads.append(number)
                    tails.append([u for _, (u, _) in choice])
                    edges.append(e)
                    if len(heads) > MOST_SPELT_OUT:
                        raise NotSupported(
                            f"the graph with signatures has more than {MOST_SPELT_OUT} edges; ask decode()."
                        )
        order = np.argsort(np.array(heads, dtype=np.int64), kind="stable")
        found = not heads or heads[-1] != n_vertices - 1 or goal not in chart[self.graph.root]
        counts = np.bincount(np.array(heads, dtype=np.int64), minlength=n_vertices + found)  # the root may have no edge
        chosen = [tails[k] for k in order.tolist()]
        graph = Graph(
            np.concatenate(([0], np.cumsum(counts))),
            np.concatenate(([0], np.cumsum([len(tail) for tail in chosen]))).astype(np.int64),
            np.array([u for tail in chosen for u in tail], dtype=np.int64),
            np.arange(len(order) + 1),
            np.array(edges, dtype=np.int64)[order],
        )
        return graph, graph.part

    # -- proofs ----------------------------------------------------------------------------------------------------

    def make_witness(self, above: float, penalties: Penalties | None = None) -> dict[str, Floats]:
        """Multipliers of the rows under which little scores more than ``above``."""
        problem = self if penalties is None else self._weighing(self._penalised(penalties))
        run = HeldRun(above, max(problem.extent().size, 1.0))
        at = descend(run, _Dual(problem), np.zeros(len(self.b)), polyak(patience=3), max_iterations=100)
        return {"rows": at.best_u}

    def closed_form(self, above: float, witness: Any, penalties: Penalties | None = None) -> Closed:
        if not isinstance(witness, Mapping) or set(witness) != {"rows"}:
            raise InvalidInput('expected multipliers of "rows".')
        u = np.asarray(witness["rows"], dtype=np.float64)
        if u.shape != self.b.shape or not np.isfinite(u).all():
            raise InvalidInput(f"the multipliers have shape {u.shape}; expected {len(self.b)} finite numbers.")
        problem = self if penalties is None else self._weighing(self._penalised(penalties))
        (graph,), priced = problem._inner.normal_form().spaces, problem._priced(u, None)
        assert isinstance(graph, Graph)
        plan, weight = sweep.levels(graph), priced[graph.part]
        around, spare = np.full(self.graph.n_vertices, -inf), float(np.abs(u) @ self.relaxation().slack)
        around[: self.graph.root + 1] = sweep.outside(plan, weight, sweep.inside(plan, weight)) - float(u @ self.b)
        around += problem.dual_error(u) + spare
        kept, _ = self._with_signatures(self._default_check(), priced, around, above)
        return Closed(self._form(kept), lambda y: sweep.derivation_using(kept, np.asarray(y).tolist()))

    def normal_form(self) -> NormalForm:
        """The graph with signatures: of small problems only."""
        around = np.zeros(self.graph.n_vertices)
        return self._form(self._with_signatures(self._default_check(), self.weights, around, -inf)[0])

    def _form(self, graph: Graph) -> NormalForm:
        return NormalForm(self.weights, (graph,), {"edges": np.arange(self.graph.n_edges)})

    def normal_structure(self, structure: Int32) -> tuple[list[int]]:
        (graph,) = self.normal_form().spaces
        assert isinstance(graph, Graph)
        edges = sweep.derivation_using(graph, np.asarray(structure).tolist())
        if edges is None:
            raise InvalidInput("the derivation does not satisfy the rows.")
        return (edges,)

    def _penalised(self, penalties: Penalties) -> Floats:
        weights = self.weights
        for view, penalty in penalties.items():
            weights = weights + as_scores(f"penalty of {view!r}", penalty, self.checked_view(view))
        return weights

    def _weighing(self, weights: Floats) -> Self:
        return type(self)(self.graph, weights, self.A, self.b, check=self.check, group=self.group)

    def forest(self) -> Forest:
        return self._spelt_out

    def from_edges(self, edges: Sequence[int]) -> Int32:
        return self._spelt_out.parts["edges"][np.asarray(edges, dtype=np.int64)].astype(np.int32)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """CHECK and the groups are not saved: they change how a derivation is found, not which is best."""
        return {
            "graph": formats.to_json(self.graph, self.weights),
            "A": floats_to_json(self.A),
            "b": floats_to_json(self.b),
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        graph, weights = formats.weighted_from_json(given["graph"])
        b = given["b"].numbers((None,))
        A = given["A"].numbers((len(b), graph.n_edges))
        return given.made(lambda: cls(graph, weights, A, b))

    def structure_to_json(self, structure: Int32) -> list[int]:
        return self._inner.structure_to_json(structure)

    def structure_from_json(self, data: Any) -> Int32:
        return self._inner.structure_from_json(data)


class _Alternation(BeamOracle):
    """The dual function over the edges left, and searches under its bounds."""

    widest = MOST_HYPOTHESES

    def __init__(self, problem: ConstrainedHyperpath, run: Run[Int32], *, staged: bool) -> None:
        super().__init__(run, staged=staged)
        self.problem, self.kept = problem, problem.weights
        self.scale, self.rows = run.scale, len(problem.b)
        run.allow(problem.error())
        run.count(fixed=0)

    def ask(self, u: Floats) -> Round:
        problem = self.problem
        value, edges = problem.dual(u, self.kept)
        signature = problem.signature(edges)
        candidates = [(edges, problem.score(edges))] if problem._meets(signature) else []
        return Round(value, np.array(signature) - problem.b, candidates)

    def error(self, u: Floats) -> float:
        return self.problem.dual_error(u)

    def beam(self, width: int, u: Floats) -> Beam:
        return self.problem.beam_search(width, multipliers=u, lower=self.run.score, kept=self.kept)

    def after(self, at: Descent[Any]) -> None:
        """Searches, and removes edges that no better derivation uses; the bounds that follow are of the edges left."""
        super().after(at)
        if self.run.proof is None and self.run.structure is not None and not at.close():
            self.run.allow(self.error(at.u))
            gone = self.problem.fixed_edges(at.u, self.run.score, self.kept) & (self.kept > -inf)
            if gone.any():
                self.kept = np.where(gone, -inf, self.kept)
                self.run.count(fixed=int(gone.sum()))

    def lower(self, rule: StepRule[Any], max_iterations: int) -> Floats:
        """Rounds of subgradient descent (LR alg. 12) with their searches; the multipliers of the least dual value."""
        start = (self.run, self, np.zeros(self.rows), rule)
        hooks: Any = {} if self.staged else {"window": WINDOW, "tighten": self.stalled}
        try:
            at = descend(*start, max_iterations=max_iterations, search=self.after, **hooks)
        except Infeasible:  # nothing better than the incumbent is left, or nothing at all
            self.run.proof = "search"
            return start[2]
        if at.closed and self.run.proof is None:  # if no edge was removed the multipliers alone are a proof
            self.run.proof = "dual" if self.kept is self.problem.weights else "search"
        return at.best_u


class _Dual(Oracle):
    """The dual function over all edges."""

    def __init__(self, problem: ConstrainedHyperpath) -> None:
        self.problem, self.scale, self.rows = problem, max(problem.extent().size, 1.0), len(problem.b)

    def ask(self, u: Floats) -> Round:
        value, edges = self.problem.dual(u)
        return Round(value, np.array(self.problem.signature(edges)) - self.problem.b)
