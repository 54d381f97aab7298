"""Trees with crossing arcs under higher-order scores: head automata tied to a spanning tree (LR 6, algorithms 8 and 9).

The tree gets the multipliers and a small share of the arc scores, the automata get all other scores less the
multipliers; the subgradient moves the multipliers where the two differ. It starts where the max-marginals of the
automata say that the two nearly agree. A kernel makes many steps of the descent in one call
(``certus.kernels.head_automata.relax``), decoding again only the automata whose multipliers changed. Where the descent
does not prove its best tree optimal, arcs are removed by their max-marginals, and then the arcs in dispute are branched
on, with the multipliers of the parent to start from.

Differs from LR alg. 9 in the updates, which are printed there with an error; see ``relax`` for the ones used.
"""

from collections.abc import Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.certificates.normal import NormalForm
from certus.certificates.rounding import of_sum
from certus.checks import Floats, Ints, as_positive_int, as_wanted, of_kind
from certus.dependency import arborescence
from certus.dependency.head_automata import HeadAutomata, part_tables
from certus.dependency.lineages import Lineages
from certus.dependency.part_kinds import HIGHER_KINDS
from certus.dependency.polyak import FACTOR, PATIENCE, SHARE, SHRINK
from certus.dependency.problem import Dependency
from certus.errors import Infeasible
from certus.problem import DEFAULT_LIMITS, Index, Limits, PartBounds, Problem
from certus.relax import branch, descent, part_values, ranked
from certus.relax.descent import Burst, Descent, Oracle, Round, descend
from certus.relax.normal_form import RelaxedForm
from certus.relax.part_values import PartRun
from certus.relax.proof import Multipliers, Removed
from certus.relax.ranked import Divisible, Pool, Ranking, listed
from certus.relax.run import Run
from certus.relax.search import Node, Part, Search
from certus.relax.steps import StepRule, polyak
from certus.relax.system import Block, Entries, Relaxation, Rows
from certus.result import Result, certified
from certus.threads import long_call

if TYPE_CHECKING:
    from certus.dependency.automata_problem import AutomataDependency
    from certus.kernels.head_automata import Model
    from certus.kernels.steps import Rule

Mask = NDArray[np.uint8]

WINDOW = 80  # iterations of the root over which the gap must shrink, or arcs are removed and branched on
POLYAK = polyak(FACTOR, patience=PATIENCE, shrink=SHRINK)
NODE_ITERATIONS = 40
_ALL: Mask = np.empty(0, dtype=np.uint8)  # of the arcs
NO_TREE = "every tree over the allowed arcs uses a forbidden part; allow some of them."


def relaxation(problem: "Dependency | AutomataDependency", *, projective: bool = False) -> "Relaxation":
    """The relaxation that ``decode`` solves, for ``certus.relax`` and for certus.verify.

    Two subproblems, the spanning tree and the head automata, and rows that make their arcs equal. The automata have all
    scores, so that none is rounded. With ``projective`` the first-order projective parser stands in the tree's place
    (LR 6.8).
    """
    if isinstance(problem, Dependency) and problem.model.ancestors > 1:
        return with_lineages(problem)
    automata, tree = HeadAutomata.of(problem), _unscored(problem, projective)
    automata.of_trees = True
    rows = tuple(_tie(1, view, view, problem.arc.shape) for view in automata.views)
    together = {"arcs": ((0, "arcs"), *((1, view) for view in automata.views))}
    pair = (tree, automata)
    return Relaxation(pair, (1.0, 1.0), together, rows, lambda both: both[0], automata.leaves, told_by=(0,))


def with_lineages(problem: Dependency) -> "Relaxation":
    """The relaxation with a third subproblem, lineages, that scores great-grandparents.

    The arcs of the tree equal the three copies that lineages have, except that no word supposes an arc of node 0. The
    automata have all other scores; where these are of arcs alone, the tree has them and there are no automata.
    """
    rest = {name: scores for name, scores in problem.scores.items() if "f" not in HIGHER_KINDS[name].axes}
    own = next(scores for name, scores in problem.scores.items() if name not in rest)
    lineages = Lineages(problem.arc > -np.inf, own)
    shape, last = problem.arc.shape, 1
    subproblems: list[Problem[Any]] = [Dependency(problem.arc, root=problem.root)]
    tied: list[Block] = []
    if rest:
        automata, last = HeadAutomata.of(problem.with_arcs(problem.arc, rest)), 2
        automata.of_trees = True
        subproblems = [_unscored(problem), automata]
        tied = [(1, view) for view in automata.views]
    rows = [_tie(i, view, view, shape) for i, view in tied]
    rows += [_tie(last, view, f"lineages {view}", shape) for view in lineages.views]
    together = {"arcs": ((0, "arcs"), *tied, (last, "arcs"), (last, "above"))}

    def leaves(heads: Ints) -> tuple[Any, ...]:
        return (*(automata.leaves(heads) if rest else (heads,)), lineages.of_tree(heads))

    weights = (1.0,) * (last + 1)
    return Relaxation((*subproblems, lineages), weights, together, tuple(rows), lambda all_: all_[0], leaves, led=True)


def _tie(i: int, view: str, name: str, shape: Index) -> Rows:
    """Rows that make the arcs of the tree equal to a view of subproblem i; where it is "below", not those of node 0."""
    cells = np.arange(shape[1] if view == "below" else 0, shape[0] * shape[1])
    row, ones = np.arange(len(cells)), np.ones(len(cells))
    entries = (Entries((0, "arcs"), row, cells, ones), Entries((i, view), row, cells, -ones))
    return Rows(name, entries, np.zeros(len(cells)), True, (len(cells) // shape[1], shape[1]))


def _unscored(problem: "Dependency | AutomataDependency", projective: bool = False) -> Dependency:
    """The trees over the arcs of a problem, without scores."""
    return Dependency(np.where(problem.arc > -np.inf, 0.0, -np.inf), root=problem.root, projective=projective)


def normal_form(problem: "Dependency | AutomataDependency") -> NormalForm:
    """The normal form of the relaxation: spanning trees, head automata, and the rows that tie them."""
    relaxed = RelaxedForm.of(relaxation(problem))
    return relaxed.form._replace(cells={"arcs": relaxed.parts_in((0, "arcs"))})


def normal_structure(problem: "Dependency | AutomataDependency", heads: Ints) -> tuple[Any, ...]:
    """A tree in both spaces of the normal form."""
    return RelaxedForm.of(relaxation(problem)).structure(heads)


def decode(
    problem: "Dependency | AutomataDependency",
    limits: Limits = DEFAULT_LIMITS,
    *,
    share: float = SHARE,
    lazy: bool = True,
    estimate: bool = True,
) -> Result[Ints]:
    """The best tree, crossing arcs allowed, for scores above arcs; NP-hard in general, fast on sentences.

    Certificate kinds: "dual", whose witness is the multipliers of the arcs (and, where heads of heads are scored, of
    the arcs from above), or "branch and bound", whose witness is a proof tree.

    Parameters
    ----------
    problem : Dependency or AutomataDependency
        A problem with ``projective=False``.
    limits : Limits
        Iterations of one run of the relaxation; seconds for all; whether to go on to fixing and branching; and the step
        rule, Polyak's by default. Rules that kernels know are fast, others are as good.
    share : float
        Share of the arc scores that the tree gets. Any value gives the same optimum, at different speed.
    lazy : bool
        Decode again only the automata whose multipliers changed. The answer is the same without.
    estimate : bool
        Start from multipliers estimated by max-marginals, instead of zero.

    Raises
    ------
    Infeasible : no tree avoids the forbidden parts.
    LimitReached : the time ran out before any tree was found.
    """
    if isinstance(problem, Dependency) and problem.model.ancestors > 1:
        return branch.decode(problem, limits)
    max_iterations, time_limit, exact, step = limits
    as_positive_int("max_iterations", max_iterations)
    run: Run[Ints] = Run(time_limit=time_limit)
    rule = of_kind("step", step or POLYAK, StepRule, "a rule of certus.relax.steps, such as polyak()")
    run.info |= {"nodes": 1, "fixed": 0, "decoded": 0, "step": rule.name}
    first = None
    if estimate and rule.numbers is not None and share == SHARE and isinstance(problem, Dependency):
        first = FirstBurst(problem, run, rule.numbers, min(descent.BURST, max_iterations), lazy)
        if first.closed or (not exact and run.structure is not None and run.iterations == max_iterations):
            return first.result()
    space = Arcs(problem, run, rule, share=share, lazy=lazy, iterations=min(NODE_ITERATIONS, max_iterations))
    root = space.root(first, estimate=estimate)
    if run.iterations < max_iterations:
        space.descend(root, max_iterations - run.iterations, WINDOW if exact else None, log=True)
    search = Search(run, space, root)
    search.climb(exact=exact)
    if run.structure is None:
        run.give_up("tree", NO_TREE)
    run.info |= {"nodes": search.nodes, "fixed": search.removed, "decoded": decoded(run, problem.n)}
    scores = partial(problem.terms, run.structure)
    return run.result(run.structure, search.certificate(scores, problem.score(run.structure)))


def kbest(problem: "Dependency | AutomataDependency", k: int) -> list[Result[Ints]]:
    """The k best trees, crossing arcs allowed, for scores above arcs; see ``certus.relax.ranked``."""
    k = as_wanted(k, problem.n + 2)
    if isinstance(problem, Dependency) and problem.model.ancestors > 1:
        return ranked.kbest(problem, k)
    best = problem.decode()
    if k == 1:
        return [best]
    pool = Pool(k, lambda heads: heads.tobytes(), 1.0)
    pool.offer(best.structure, best.score)
    space = Arcs(problem, pool, POLYAK, share=SHARE, lazy=True, iterations=NODE_ITERATIONS)
    root = space.root(None, estimate=False)
    root.multipliers = space.multipliers(ranked.multipliers_in(best.certificate.duals))
    all_found = space.fill(root, best) if best.certificate.kind == "dual" and best.certificate.exact else False
    ranking = Ranking(pool, space, root)
    if not all_found:
        ranking.rank()
    return listed(problem, ranking, best, lambda heads: heads)


def max_marginal_bounds(problem: "Dependency | AutomataDependency", time_limit: float | None = None) -> PartBounds:
    """Bounds on the best score of a tree with each arc; see ``certus.relax.part_values``."""
    if isinstance(problem, Dependency) and problem.model.ancestors > 1:
        return part_values.max_marginal_bounds(problem, time_limit)
    best = problem.decode(time_limit=time_limit)
    cells = np.flatnonzero(problem.arc > -np.inf).tolist()
    run = PartRun([("arcs", cell) for cell in cells], lambda heads: space.has(heads), 1.0, time_limit)
    space = Arcs(problem, run, POLYAK, share=SHARE, lazy=True, iterations=NODE_ITERATIONS)
    run.offer(best.structure, best.score)
    root = space.root(None, estimate=False)
    root.multipliers = space.multipliers(ranked.multipliers_in(best.certificate.duals))
    upper = part_values.best_with_each(run, space, root, space.with_each(root))
    found = np.full((2, problem.arc.size), -np.inf)
    found[:, cells] = run.lower, upper
    lower, upper = found.reshape(2, *problem.arc.shape)
    return PartBounds({"arcs": lower}, {"arcs": upper})


def decoded(run: Run[Ints], n: int) -> float:
    """The share of the automata decoded per iteration, from how many were."""
    return float(run.info["decoded"] / max(1, run.iterations * 2 * (n + 1)))


class FirstBurst:
    """The first iterations for part scores, lattices and all, in one kernel call: most sentences need no more."""

    def __init__(self, problem: "Dependency", run: Run[Ints], rule: "Rule", iterations: int, lazy: bool) -> None:
        self.problem, self.run = problem, run
        n, model, kernel = problem.n, problem.model, kernels.head_automata
        self.by_head = model.ancestors > 0
        self.multipliers, rows, numbers = np.empty((3, n + 1, n + 1)), np.empty((iterations, 5)), np.empty(7)
        heads: Ints = np.empty(n + 1, dtype=np.int64)
        shape, found = (self.by_head, model.pairs, problem.single), (self.multipliers, heads, rows, numbers)
        arguments = (problem.arc, shape, part_tables(problem), tuple(rule), SHARE, lazy, found)
        status, used = long_call(iterations * n**3, kernel.relax_parts, *arguments)
        if status == kernel.INFEASIBLE:
            raise Infeasible(NO_TREE)
        self.closed = status == kernel.CLOSED
        self.bound, score, count, *self.sizes = numbers.tolist()
        run.iterations += used
        run.info["decoded"] += count
        run.log.extend(rows[:used])
        run.offer(heads, score)

    def result(self) -> Result[Ints]:
        """The tree was scored by the kernel from the scores of the parts, not from any dual."""
        run, n = self.run, self.problem.n
        assert run.structure is not None
        duals = {"arcs": self.multipliers[2]}
        if self.by_head:
            duals["above"] = self.multipliers[1]
        largest_arc, *sizes = self.sizes
        error = error_of_dual(n, (n + 1) * (3 + len(self.problem.scores)), len(duals), SHARE * largest_arc, *sizes)
        scores = partial(self.problem._terms, run.structure)
        run.info["decoded"] = decoded(run, n)
        return run.result(run.structure, certified(scores, run.score, self.bound, error, kind="dual", duals=duals))


class TreeAndAutomata(Oracle):
    """The dual function at a node: the head automata and the spanning tree over the arcs that are kept.

    ``dispute`` counts how often the two differ on an arc.
    """

    bursts = True

    def __init__(self, run: Run[Ints], space: "Arcs", decided: "Decided") -> None:
        self.run, self.space, self.decided, self.keep = run, space, decided, space.kept(decided)
        keep = self.keep
        self.scale, self.rows = run.scale, int(keep.sum()) * len(space.automata.views)
        self.dispute = np.zeros(len(keep))

    def ask(self, u: Floats) -> Round:
        space, arcs = self.space, len(self.keep)
        heads, column = np.full(space.problem.n + 1, -1, dtype=np.int64), np.zeros(space.problem.n + 1, dtype=np.int64)
        used, model = np.zeros(arcs, dtype=np.int64), self.model
        value = kernels.head_automata.best_of_both(model, u.reshape(2, -1), self.keep, heads, used, column)
        if value == -np.inf:
            raise Infeasible(NO_TREE)
        self.run.count(decoded=2 * len(heads))
        lattices, words = model.lat, np.arange(1, len(heads))
        residual = np.zeros((2, arcs))
        chosen = space.number_of(heads[1:], words)
        residual[:, chosen] = 1.0
        residual[0] -= used
        if space.automata.by_head:
            residual[1, lattices.up[lattices.up_ptr[1:-1] + column[1:]]] -= 1.0
        else:
            residual[1] = 0.0
        self.dispute += np.abs(residual).sum(axis=0)
        score = space.problem.score(heads)
        return Round(float(value), residual.reshape(-1), [(heads, score)] if score > -np.inf else [])

    @cached_property
    def model(self) -> "Model":
        """What is decomposed here."""
        return self.space.model_of(self.decided)

    def error(self, u: Floats) -> float:
        return self.space.rounding

    def burst(self, at: Descent[Any], rule: "Rule", count: int) -> Burst:
        kernel, run, n = kernels.head_automata, self.run, self.space.problem.n
        heads = np.full(n + 1, -1, dtype=np.int64)
        value = np.array([at.best, run.score, 0.0])
        state = kernel.State(at.u.reshape(2, -1), at.best_u.reshape(2, -1), heads, self.dispute, value)
        rows = np.empty((count, 5))
        keep = _ALL if untouched(self.decided) else self.keep
        arguments = (self.space.model, keep, state, rule, at.state, self.space.rounding, self.space.lazy, rows)
        status, used, memory = long_call(count * n**3, kernel.relax_kept, *arguments)
        if status == kernel.INFEASIBLE:
            raise Infeasible(NO_TREE)
        run.count(decoded=value[kernel.DECODED])
        if value[kernel.PRIMAL] > run.score:
            run.offer(heads, float(value[kernel.PRIMAL]))
        return Burst(rows[:used], memory, status == kernel.CLOSED)


class Decided(NamedTuple):
    """``gone`` arcs are forbidden in all copies, ``ones`` are required."""

    gone: Mask
    ones: tuple[int, ...] = ()


class Arcs(Divisible[Decided]):
    """The search space: arcs, numbered as in the lattices. Evidence: how often tree and automata differed on each.

    Multipliers are those of "arcs", then of "above", (2 * arcs,).
    """

    def __init__(
        self,
        problem: "Dependency | AutomataDependency",
        run: Run[Ints],
        rule: StepRule[Any],
        *,
        share: float,
        lazy: bool,
        iterations: int,
    ) -> None:
        self.problem, self.run, self.rule, self.lazy, self.iterations = problem, run, rule, lazy, iterations
        run.scale = max(problem.extent().size, 1e-300)
        self.automata = HeadAutomata.of(problem)
        lattices = self.automata.lattices
        self.cells = (lattices.arc_head, lattices.arc_mod)
        self.model = kernels.head_automata.Model(lattices, problem.arc[self.cells], share, problem.single)
        self.arc: Floats = self.model.arc
        self.share = share * float(np.abs(self.arc).max(initial=0.0))  # of the largest
        self.flat: Ints = lattices.arc_head * (problem.n + 1) + lattices.arc_mod  # in the view, ascending
        self.rounding = problem.error()
        self.rows = len(self.arc) * len(self.automata.views)
        self._kept: tuple[Decided | None, Mask] = (None, _ALL)

    def number_of(self, heads: Ints, mods: Ints) -> Ints:
        """The numbers of arcs."""
        return np.searchsorted(self.flat, heads * (self.problem.n + 1) + mods)

    def root(self, first: FirstBurst | None, *, estimate: bool) -> Node[Decided]:
        """The root: as far as the first burst came, or at multipliers to start from."""
        size = len(self.arc)
        node = Node(Decided(np.zeros(size, dtype=np.uint8)), np.zeros(2 * size), evidence=np.zeros(size))
        if first is not None:
            node.multipliers, node.bound = first.multipliers[:2, *self.cells].reshape(-1), first.bound
        elif estimate:
            kernels.head_automata.first_multipliers(self.model, node.multipliers[:size])
        return node

    # -- one node --------------------------------------------------------------------------------------------------

    def kept(self, decided: Decided) -> Mask:
        """1 for the arcs that a tree may use: not gone, and no rival of a required one."""
        if self._kept[0] is decided:  # it is asked for more than once at a node
            return self._kept[1]
        keep: Mask = 1 - decided.gone
        if decided.ones:
            ones, required = list(decided.ones), np.full(self.problem.n + 1, -1)
            required[self.cells[1][ones]] = ones
            own = required[self.cells[1]]
            keep[(own >= 0) & (own != np.arange(len(keep)))] = 0
        self._kept = decided, keep
        return keep

    def model_of(self, decided: Decided) -> "Model":
        """The model with the arcs that are kept alone, of which a word must take its only one."""
        if untouched(decided):
            return self.model
        restricted: Model = kernels.head_automata.restricted(self.model, self.kept(decided), True)
        return restricted

    def relax(self, node: Node[Decided]) -> None:
        try:
            self.descend(node, self.iterations, None, log=False)
        except Infeasible:
            node.bound = -np.inf

    def descend(self, node: Node[Decided], max_iterations: int, window: int | None, *, log: bool) -> None:
        """Lower the bound of a node from its multipliers on; Infeasible if no tree is left."""
        node.proof = None
        oracle = TreeAndAutomata(self.run, self, node.decided)
        start = (self.run, oracle, node.multipliers, self.rule)
        at = descend(*start, max_iterations=max_iterations, window=window, log=log)
        if at.best < node.bound:
            node.bound, node.multipliers = at.best, at.best_u
        node.evidence = oracle.dispute

    def error(self, node: Node[Decided]) -> float:
        return self.rounding

    def removable(self, node: Node[Decided]) -> tuple[Removed, ...]:
        """By the losses of tree and automata; of the two copies that the automata have, by that which loses more."""
        u, keep = self.proof_of(node)[0].reshape(2, -1), self.kept(node.decided) == 1
        loss = np.empty(len(keep))
        total = kernels.head_automata.head_losses(self.model, node.decided.gone, u, loss)
        tree: Floats = np.full(self.problem.arc.shape, -np.inf)
        tree[self.cells] = np.where(keep, self.model.share * self.arc + u.sum(axis=0), -np.inf)
        try:
            best = arborescence.max_marginals(tree, self.problem.root)[self.cells]
        except Infeasible:
            return ()
        low = keep & (total + best + loss <= self.run.score)
        return (Removed("arcs", tuple(self.flat[low].tolist())),) if low.any() else ()

    def without(self, decided: Decided, removed: tuple[Removed, ...]) -> Decided:
        gone = decided.gone.copy()
        for part in removed:
            gone[np.searchsorted(self.flat, part.indices)] = 1
        return decided._replace(gone=gone)

    def part(self, node: Node[Decided]) -> Part | None:
        """The arc that tree and automata differed on most often; None when every word has one head left."""
        keep, mods = self.kept(node.decided), self.cells[1]
        heads = np.bincount(mods[keep == 1], minlength=self.problem.n + 1)
        open_arcs = (keep == 1) & (heads[mods] > 1)
        if not open_arcs.any():
            return None  # one tree is left: the bound of this node is its score, rounding aside
        return "arcs", int(self.flat[np.argmax(np.where(open_arcs, node.evidence, -1.0))])

    def fixed(self, decided: Decided, part: Part, value: int) -> Decided:
        if value == 0:
            return self.without(decided, (Removed("arcs", (part[1],)),))
        return decided._replace(ones=(*decided.ones, int(np.searchsorted(self.flat, part[1]))))

    # -- lists of trees --------------------------------------------------------------------------------------------

    def within(self, decided: Decided, structure: Ints) -> bool:
        used = self.number_of(structure[1:], np.arange(1, len(structure)))
        return bool(self.kept(decided)[used].all())

    def has(self, heads: Ints) -> NDArray[np.bool_]:
        """Which arcs a tree has."""
        out = np.zeros(len(self.arc), dtype=bool)
        out[self.number_of(heads[1:], np.arange(1, len(heads)))] = True
        return out

    def decisions(self, node: Node[Decided], structure: Ints) -> Iterator[tuple[Part, int, float]]:
        """Its arcs, first those that cost most to change: what the best arc in the place does, in all copies.

        Words that have one head left are decided.
        """
        heads = np.bincount(self.cells[1][self.kept(node.decided) == 1], minlength=len(structure))
        own = np.full(len(structure), -1)
        own[1:] = self.number_of(structure[1:], np.arange(1, len(structure)))
        bound, other = self.with_each(node), np.full(len(structure), -np.inf)
        bound[own[1:]] = -np.inf
        np.maximum.at(other, self.cells[1], bound)
        for m in (m for m in (1 + np.argsort(other[1:], kind="stable")).tolist() if heads[m] > 1):
            yield ("arcs", int(self.flat[own[m]])), 1, float(other[m])

    def fill(self, root: Node[Decided], best: Result[Ints]) -> bool:
        """Fill the pool in one kernel call, from multipliers that prove the best tree; whether that was all."""
        pool, n = self.run, self.problem.n
        if n == 0:
            return True
        assert isinstance(pool, Pool)
        assert self.rule.numbers is not None
        found, score = np.full((pool.k, n + 1), -1, dtype=np.int64), np.full(pool.k, best.score)
        found[0] = best.structure
        limits = (self.rounding, 4 * self.iterations)
        rule, memory = self.rule.numbers, self.rule.init(pool.scale)
        arguments = (self.model, root.multipliers.reshape(2, -1), rule, memory, limits, found, score)
        count, whole = long_call(pool.k * n**3, kernels.ranked_trees.best_trees, *arguments)
        for heads, value in zip(found[1:count], score[1:count].tolist(), strict=True):
            pool.offer(heads, value)
        pool.allow(self.rounding)
        return bool(whole)

    def pinned(self, node: Node[Decided]) -> Multipliers:
        """One tree is left: the automata are made to have its arcs, and no other."""
        keep, u = self.kept(node.decided) == 1, node.multipliers.reshape(2, -1).copy()
        extent = self.problem.extent()
        amount = 2.0 * (max(extent.length, 1) * extent.size + float(np.abs(u).sum()))
        u += np.where(keep, -amount, amount)
        return self.by_view(u)

    def with_each(self, node: Node[Decided]) -> Floats:
        """For each arc a bound on the trees of a node that have it."""
        bound = np.empty(len(self.arc))
        kernels.head_automata.arc_bounds(self.model_of(node.decided), node.multipliers.reshape(2, -1), bound)
        return bound

    # -- witnesses -------------------------------------------------------------------------------------------------

    def proof_of(self, node: Node[Decided]) -> tuple[Floats, float]:
        """Multipliers that prove the node's bound when arcs are only forbidden, not required, in the automata.

        The search drops the rivals of a required arc from the automata and makes them take a word's only arc. The
        same is said by multipliers: the tree cannot use the first and must use the second, so moving their scores by
        any amount costs it nothing or what the automata gain. Returns what bound they give, too. What removed arcs at a
        node is thus what is written into its proof.
        """
        if untouched(node.decided):
            return node.multipliers, node.bound
        if node.proof is None:
            found, target = np.empty((2, len(self.arc))), max(node.bound, self.run.score) + self.rounding
            numbers = (node.multipliers.reshape(2, -1), target, self.run.scale, found)
            arcs = (node.decided.gone, self.kept(node.decided))
            bound = kernels.head_automata.proof_multipliers(self.model, *arcs, *numbers)
            node.proof = found.reshape(-1), bound
        proof: tuple[Floats, float] = node.proof
        return proof

    def by_view(self, u: Floats) -> dict[str, Floats]:
        """Multipliers of ``relaxation``, from those of the descent (2, arcs)."""
        out = {view: np.zeros(self.problem.arc.shape) for view in self.automata.views}
        for k, values in enumerate(out.values()):
            values[self.cells] = u[k] + (self.model.share * self.arc if k == 0 else 0.0)
        return out

    def multipliers(self, by_view: Multipliers | None) -> Floats:
        """Those of the descent, from those of ``relaxation``: less the share of the arc scores that its tree has."""
        u = np.zeros((2, len(self.arc)))
        for values, view in zip(u, self.automata.views, strict=False):
            values[:] = 0.0 if by_view is None else by_view[view][self.cells]
        u[0] -= self.model.share * self.arc
        return u.reshape(-1)

    def witness(self, node: Node[Decided], removed: tuple[Removed, ...] = ()) -> tuple[Multipliers, float, float]:
        """Multipliers of ``relaxation``, whose tree has no share of the arc scores: that of the descent is added."""
        flat, bound = self.proof_of(node)
        out = self.by_view(flat.reshape(2, -1))
        largest = kernels.head_automata.largest_multipliers(self.model, flat.reshape(2, -1), node.decided.gone)
        length, size = self.automata.extent().length, self.problem.extent().size
        error = error_of_dual(self.problem.n, length, len(out), self.share, size, *largest)
        return out, bound, max(error, self.rounding)


def untouched(decided: Decided) -> bool:
    """Whether nothing is decided."""
    return not decided.ones and not decided.gone.any()


def error_of_dual(n: int, length: int, views: int, share: float, largest: float, u: float, u_sum: float) -> float:
    """How far rounding may take a dual value; from the largest share of an arc, score, multiplier and sum of these.

    As ``Relaxation.error``: that of the tree and that of the automata, whose choices add up ``length`` scores.
    """
    return of_sum(2 * (n + 1), share + u_sum) + of_sum(length * (1 + views), largest + share + u)
