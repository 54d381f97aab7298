r"""Head automata: every head chooses its modifiers on its own, and is scored for the sequence (LR 6.2 to 6.5).

The modifiers of head h on one side, from the nearest outwards, are read by a weighted automaton. Nothing makes the
choices of different heads agree, so the best choice of all heads is found head by head: O(k^2) for k possible modifiers
when siblings are scored, k^3 for three successive ones, times the number of possible heads of h when modifiers are
scored together with the head of h. Tied to a spanning tree by multipliers (``certus.dependency.nonprojective``), this
decodes the models for which trees with crossing arcs are NP-hard.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from certus import kernels
from certus.certificates import sweep
from certus.certificates.assembling import derivation
from certus.certificates.normal import Graph, NormalForm
from certus.certificates.rounding import Extent, extent_of, one_rounded_up, rounded_up
from certus.certificates.sound import summed
from certus.checks import Floats, Ints, as_scores
from certus.dependency import normal_automata
from certus.dependency import parts as P
from certus.dependency.part_kinds import EMPTY, END, HIGHER_KINDS, LEFT, LETTERS, MODIFIER, OUTERMOST, RIGHT
from certus.dependency.problem import Dependency, checked_arcs
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.hypergraph import Forest, Hypergraph
from certus.lazy import once
from certus.problem import Index, Limits, Penalties, Problem
from certus.relax.laws import Asked, ForestLaw, Law
from certus.result import LogPartitionBounds, Result, Solution

if TYPE_CHECKING:
    from certus.dependency.automata_problem import AutomataDependency
    from certus.kernels.head_lattices import Lattices

NO_HEAD = -1
_NO_VALUES: Floats = np.empty(0)
_NO_KEYS: Ints = np.empty(0, dtype=np.int64)


class Automaton(Protocol):
    """A deterministic weighted automaton over the modifiers of one head on one side, from the nearest outwards.

    States are any hashable values. Weights are finite, or -inf to forbid.
    """

    @property
    def start(self) -> Hashable:
        """The state before the first modifier."""

    def step(self, state: Any, m: int) -> tuple[Hashable, float]:
        """The state after taking modifier m, and the weight of taking it."""

    def stop(self, state: Any) -> float:
        """The weight of taking no further modifier."""


AutomatonOf = Callable[[int, int, int], Automaton]  # (g, h, side): side 0 is left, 1 right; g is -1 unless it is scored


@dataclass(frozen=True, slots=True)
class OneModifier:
    """An automaton restricted to exactly one modifier: what node 0 has with root="single"."""

    inner: Automaton

    @property
    def start(self) -> Hashable:
        return (self.inner.start, 0)

    def step(self, state: Any, m: int) -> tuple[Hashable, float]:
        inner, taken = state
        after, weight = self.inner.step(inner, m)
        return (after, taken + 1), weight if taken == 0 else -np.inf

    def stop(self, state: Any) -> float:
        inner, taken = state
        return self.inner.stop(inner) if taken == 1 else -np.inf


@dataclass(frozen=True, slots=True)
class Rescored:
    """An automaton with other weights."""

    inner: Automaton
    change: Callable[[float], float]

    @property
    def start(self) -> Hashable:
        return self.inner.start

    def step(self, state: Any, m: int) -> tuple[Hashable, float]:
        after, weight = self.inner.step(state, m)
        return after, self.change(weight)

    def stop(self, state: Any) -> float:
        return self.change(self.inner.stop(state))


class PartAutomaton:
    """The automaton of the part scores of a ``Dependency``: its state is the last two modifiers, in plain Python."""

    def __init__(self, problem: "Dependency", g: int, h: int, side: int) -> None:
        self.g, self.h, self.side = g, h, side
        self.at_modifier, self.at_outermost, self.at_end, self.at_empty = problem.readers

    @property
    def start(self) -> tuple[int, int]:
        return (-1, self.h)

    def step(self, state: tuple[int, int], m: int) -> tuple[tuple[int, int], float]:
        t, s = state
        return (s, m), self.at_modifier((self.g, self.h, self.side, t, s, m, -1))

    def stop(self, state: tuple[int, int]) -> float:
        t, s = state
        if self.h == 0 and self.side == LEFT:
            return 0.0
        total = self.at_end((self.g, self.h, self.side, t, s, -1, -1))
        if s == self.h:
            return total + self.at_empty((self.g, self.h, self.side, t, s, -1, -1))
        return total + self.at_outermost((self.g, self.h, self.side, -1, t, s, -1))


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """What the heads chose: ``arcs[h, m]`` is True if h takes m, ``above[h]`` is the head that h supposes it has.

    Where the head of a head is not scored, ``above`` is -1 throughout.
    """

    arcs: np.ndarray[Any, np.dtype[np.bool_]]
    above: Ints


class HeadAutomata(Problem[Choices]):
    """The best modifiers for every head, each head on its own.

    Solves  max over z of  sum_h automaton_h(modifiers of h under z) + sum over arcs of z of arc[h, m],  where z is any
    set of allowed arcs, together with a supposed head for every word when ``by_head``. Certificate kind: "dynamic
    program".

    Parameters
    ----------
    arc : array_like of shape (n + 1, n + 1)
        ``arc[h, m]``, added when h takes m; ``-inf`` forbids the arc.
    automaton : callable (g, h, side) -> Automaton
        The automaton of head h on its left (side 0) or right (side 1), where g is the head of h; g is -1 for node 0
        and throughout unless ``by_head``. Called once for each (g, h, side); results are kept.
    by_head : bool
        Modifiers are scored together with the head of their head.
    root : "single" or "multi"
        Node 0 takes exactly one modifier, or any number.

    Views: "arcs" (n + 1, n + 1) and, with ``by_head``, "above" of the same shape: ``above[g, h]`` is 1 where h supposes
    that g is its head.
    """

    name: ClassVar[str] = "head automata"
    exclusive: ClassVar[Mapping[str, int]] = {"above": 0}

    def __init__(self, arc: Any, automaton: AutomatonOf, *, by_head: bool = False, root: str = "single") -> None:
        self._set(checked_arcs(arc), automaton, by_head, root)

    def _set(self, arc: Floats, automaton: AutomatonOf, by_head: bool, root: str) -> None:
        """Take arguments that were checked."""
        self.arc = arc
        self.n = len(self.arc) - 1
        self.by_head = by_head
        self.told_apart_by = ("arcs", "above") if by_head else ("arcs",)
        self.single = root == "single"
        self.automaton_of = automaton
        self._automata: dict[tuple[int, int, int], Automaton] = {}
        self._steps: dict[tuple[int, int, int, Hashable, int], tuple[Hashable, float]] = {}
        self._problem: Dependency | None = None
        self.of_trees = False  # the normal form is without what no tree has: a word that takes its head

    @classmethod
    def of(cls, problem: "Dependency | AutomataDependency") -> "HeadAutomata":
        """The automata of a dependency problem, which score all of it."""
        from certus.dependency.automata_problem import AutomataDependency

        arc = problem.arc
        self = cls.__new__(cls)
        if isinstance(problem, AutomataDependency):
            given = problem.automata
            self._set(arc, given.automaton_of, given.by_head, problem.root)
            return self
        by_head = problem.model.ancestors > 0
        if problem.model.ancestors > 1:
            far = ", ".join(name for name in problem.scores if "f" in HIGHER_KINDS[name].axes)
            raise NotSupported(f"head automata know the head of a head, no more: leave out {far}, or use decode().")
        self._set(arc, lambda g, h, side: PartAutomaton(problem, g, h, side), by_head, problem.root)
        self._problem = problem
        return self

    def automaton(self, g: int, h: int, side: int) -> Automaton:
        """The automaton of h on one side, below g; with a single root node 0 takes one modifier, on its right."""
        key = (g if self.by_head and h > 0 else NO_HEAD, h, side)
        if key not in self._automata:
            automaton = self.automaton_of(*key)
            self._automata[key] = OneModifier(automaton) if h == 0 and side and self.single and self.n else automaton
        return self._automata[key]

    def step(self, g: int, h: int, side: int, state: Hashable, m: int) -> tuple[Hashable, float]:
        """A step of an automaton, remembered."""
        key = (g, h, side, state, m)
        if key not in self._steps:
            self._steps[key] = self.automaton(g, h, side).step(state, m)
        return self._steps[key]

    def step_terms(self, g: int, h: int, side: int, state: Hashable, m: int) -> tuple[float, ...]:
        """The scores that the weight of a step is the sum of."""
        return (self.step(g, h, side, state, m)[1],)

    def nodes(self) -> list[list[int]]:
        """The nodes of each word, of which a tree has one; the root's first. By default words are their own nodes."""
        return [[m] for m in range(self.n + 1)]

    def heads_of(self, h: int) -> list[int]:
        """The heads that h may suppose; [-1] where they are not scored."""
        if not self.by_head or h == 0:
            return [NO_HEAD]
        return [g for g in range(self.n + 1) if self.arc[g, h] > -np.inf]

    def outwards(self, h: int, side: int) -> list[int]:
        """The modifiers that h may take on one side, nearest first."""
        words = range(h + 1, self.n + 1) if side else range(h - 1, 0, -1)
        return [m for m in words if self.arc[h, m] > -np.inf]

    def choices_outwards(self, h: int, side: int) -> list[list[int]]:
        """The same word by word: nodes of which one at most is taken."""
        taken = set(self.outwards(h, side))
        words = self.nodes() if side else self.nodes()[::-1]
        return [found for nodes in words if (found := [m for m in nodes if m in taken])]

    # -- structures ------------------------------------------------------------------------------------------------

    def leaves(self, heads: Ints) -> tuple[Ints, Choices]:
        """A tree, and the same as choices of the heads."""
        arcs = np.zeros(self.arc.shape, dtype=bool)
        arcs[heads[1:], np.arange(1, self.n + 1)] = True
        return heads, Choices(arcs, heads if self.by_head else np.full(self.n + 1, NO_HEAD, dtype=np.int64))

    def terms(self, structure: Choices) -> list[float]:
        found = []
        for h in range(self.n + 1):
            g = int(structure.above[h])
            if g not in self.heads_of(h):
                return [-np.inf]
            for side in (LEFT, RIGHT):
                words = range(h + 1, self.n + 1) if side else range(h - 1, 0, -1)
                found += self.side_terms(g, h, side, [m for m in words if structure.arcs[h, m]])
        return found

    def side_terms(self, g: int, h: int, side: int, modifiers: Iterable[int]) -> list[float]:
        """The scores of one side of a head with these modifiers, nearest first, and of their arcs."""
        state, found = self.automaton(g, h, side).start, list[float]()
        for m in modifiers:
            found += [*self.step_terms(g, h, side, state, m), float(self.arc[h, m])]
            state, _ = self.step(g, h, side, state, m)
        return [*found, self.automaton(g, h, side).stop(state)]

    def all_structures(self) -> Iterator[Choices]:
        allowed = [tuple(map(int, cell)) for cell in np.argwhere(self.arc > -np.inf)]
        subsets = chain.from_iterable(combinations(allowed, k) for k in range(len(allowed) + 1))
        above = list(product(*(self.heads_of(h) for h in range(self.n + 1))))
        for taken in subsets:
            arcs = np.zeros(self.arc.shape, dtype=bool)
            for cell in taken:
                arcs[cell] = True
            for heads in above:
                yield Choices(arcs, np.array(heads, dtype=np.int64))

    @cached_property
    def _weights(self) -> Floats:
        """The weights that the automata may give, in plain Python: those of parts one by one."""
        if self._problem is not None:
            return np.concatenate([scores.reshape(-1) for scores in self._problem.part_scores()])
        found: list[float] = []
        for h, side in product(range(self.n + 1), (LEFT, RIGHT)):
            for g in self.heads_of(h):
                automaton = self.automaton(g, h, side)
                states = {automaton.start}
                for nodes in self.choices_outwards(h, side):
                    steps = [self.step(g, h, side, state, m) for state in states for m in nodes]
                    found += _checked([weight for _, weight in steps], h, side)
                    states |= {after for after, weight in steps if weight > -np.inf}
                found += _checked([automaton.stop(state) for state in states], h, side)
        return np.array(found, dtype=np.float64)

    @once
    def extent(self) -> Extent:
        problem = self._problem
        length = (self.n + 1) * (3 + (1 if problem is None else len(problem.scores)))  # two ends and an arc a word
        return extent_of(length, *self.all_scores()) if problem is None else problem.extent()._replace(length=length)

    def all_scores(self) -> tuple[Floats, ...]:
        return self.arc, self._weights

    def without_scores_below(self, least: float) -> Self:
        arc = np.where(self.arc < least, -np.inf, self.arc)
        return self._rescored(arc, lambda weight: weight if weight >= least else -np.inf)

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._rescored(rounded_up(self.arc, step), lambda weight: one_rounded_up(weight, step))

    def _rescored(self, arc: Floats, change: Callable[[float], float]) -> Self:
        other = type(self).__new__(type(self))
        given = self.automaton_of
        root = "single" if self.single else "multi"
        other._set(arc, lambda g, h, side: Rescored(given(g, h, side), change), self.by_head, root)
        return other

    # -- proofs ----------------------------------------------------------------------------------------------------

    @once
    def normal_form(self) -> NormalForm:
        if self._problem is not None:
            return normal_automata.of_parts(self._problem, self.arc, self.of_trees)
        return normal_automata.of_automata(self)

    def normal_structure(self, structure: Choices) -> tuple[Any, ...]:
        return (derivation(self.normal_form(), {view: self.indicator(structure, view) for view in self.views}),)

    # -- lattices --------------------------------------------------------------------------------------------------

    @cached_property
    def lattices(self) -> "Lattices":
        """The automata as flat arrays for the kernels."""
        if self._problem is not None:
            return part_lattices(self._problem, self.arc > -np.inf)
        return automaton_lattices(self)

    def _values(self, penalties: Penalties | None) -> tuple[Floats, Floats]:
        """What taking each arc, and supposing it as the arc from above, adds: two arrays over the arcs."""
        lattices = self.lattices
        cells = (lattices.arc_head, lattices.arc_mod)
        value, above = self.arc[cells], np.zeros(len(cells[0]))
        for view, penalty in (penalties or {}).items():
            shape = self.checked_view(view)
            added = as_scores(f"penalty of {view}", penalty, shape)[cells]
            if view == "arcs":
                value = value + added
            else:
                above = above + added
        return value, above

    # -- questions -------------------------------------------------------------------------------------------------

    def solve(self, penalties: Penalties | None = None) -> Solution[Choices]:
        lattices = self.lattices
        value, above = self._values(penalties)
        used = np.zeros(len(value), dtype=np.int64)
        column = np.zeros(self.n + 1, dtype=np.int64)
        total = kernels.head_automata.best_choices(lattices, value, above, used, column)
        if total == -np.inf:
            raise Infeasible("some head has no sequence of modifiers that is not forbidden.")
        arcs = np.zeros(self.arc.shape, dtype=bool)
        taken = used == 1
        arcs[lattices.arc_head[taken], lattices.arc_mod[taken]] = True
        supposed = np.full(self.n + 1, NO_HEAD, dtype=np.int64)
        if self.by_head:
            supposed[1:] = lattices.arc_head[lattices.up[lattices.up_ptr[1:-1] + column[1:]]]
        return Solution(Choices(arcs, supposed), total)

    def _decode(self, limits: Limits) -> Result[Choices]:
        solution = self.solve()
        return self.proved(solution.structure, solution.value, kind="dynamic program")

    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        lattices = self.lattices
        value, above = self._values(penalties)
        through, through_up = np.full(len(value), -np.inf), np.full(len(value), -np.inf)
        total = kernels.head_automata.head_max_marginals(lattices, value, above, through, through_up)
        if total == -np.inf:
            raise Infeasible("some head has no sequence of modifiers that is not forbidden.")
        out = {view: np.full(self.arc.shape, -np.inf) for view in self.views}
        cells = (lattices.arc_head, lattices.arc_mod)
        out["arcs"][cells] = total + through
        if self.by_head:
            out["above"][cells] = total + through_up
        return out

    def to_json(self) -> dict[str, Any]:
        """NotSupported: what is saved is the problem that the automata belong to."""
        raise NotSupported("HeadAutomata does not answer to_json(): save the AutomataDependency that they are of.")

    # -- sums, over the graph of the normal form -------------------------------------------------------------------

    @cached_property
    def _summed(self) -> Forest:
        form = self.normal_form()
        (graph,) = form.spaces
        assert isinstance(graph, Graph)
        edge, parts = np.repeat(np.arange(len(graph.part_ptr) - 1), np.diff(graph.part_ptr)), {}
        for view, part in form.cells.items():
            cell = np.full(len(form.scores), -1, dtype=np.int64)
            cell[part[part >= 0]] = np.flatnonzero(part >= 0)
            parts[view] = np.full(len(graph.part_ptr) - 1, -1, dtype=np.int64)
            np.maximum.at(parts[view], edge, cell[graph.part])
        whole = Hypergraph(graph.in_ptr, graph.tail_ptr, graph.tail)
        return Forest(whole, sweep.edge_weights(graph, form.scores), parts)

    def law(self, asked: Asked) -> Law:
        return ForestLaw(self, self._summed, asked)

    @summed
    def log_partition(self) -> float:
        return self._summed.log_partition()

    @summed
    def log_partition_bounds(self, *, iterations: int = 150) -> LogPartitionBounds:
        extent, edges = self.extent(), self._summed.graph.n_edges
        return LogPartitionBounds.around(self.log_partition(), edges, extent.length * extent.size + edges)

    @summed
    def marginals(self) -> dict[str, Floats]:
        return self._summed.marginals(self.views)

    @summed
    def entropy(self) -> float:
        return self._summed.entropy()

    @summed
    def sample(self, k: int, *, seed: int | None = None) -> list[Choices]:
        return [self._choices(edges) for edges in self._summed.sample(k, seed)]

    def _choices(self, edges: list[int]) -> Choices:
        arcs, above = np.zeros(self.arc.shape, dtype=bool), np.full(self.n + 1, NO_HEAD, dtype=np.int64)
        used = {view: cell[edges][cell[edges] >= 0] for view, cell in self._summed.parts.items()}
        arcs.reshape(-1)[used["arcs"]] = True
        if self.by_head:
            above[used["above"] % (self.n + 1)] = used["above"] // (self.n + 1)
        return Choices(arcs, above)

    # -- what the relaxation engine needs --------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        shape = self.arc.shape
        return {"arcs": shape, "above": shape} if self.by_head else {"arcs": shape}

    def indicator(self, structure: Choices, view: str) -> Floats:
        out = np.zeros(self.checked_view(view))
        if view == "arcs":
            out[structure.arcs] = 1.0
        else:
            out[structure.above[1:], np.arange(1, self.n + 1)] = 1.0
        return out


def part_tables(problem: "Dependency") -> tuple[Ints, tuple[Floats, ...], tuple[Ints, ...], Floats]:
    """The part scores as ``add_parts`` reads them: (when, strides) of each kind, then its scores, keys and default.

    The tuples have one entry for every kind there is, so that kernels see one type; those past the rows are empty.
    """
    values, keys, unlisted = list[Floats](), list[Ints](), np.zeros(len(HIGHER_KINDS))
    for k, scores in enumerate(problem.scores.values()):
        if isinstance(scores, P.ListedScores):
            values.append(scores.values)
            keys.append(scores.keys)
            unlisted[k] = scores.unlisted
        else:
            flat = scores.dense().reshape(-1)
            values.append(flat if flat.flags.carray else np.require(flat, requirements=["C", "A", "W"]))
            keys.append(_NO_KEYS)
    padding = len(HIGHER_KINDS) - len(values)
    table = _part_table(tuple(problem.model.places.items()), problem.n)
    return table, (*values, *[_NO_VALUES] * padding), (*keys, *[_NO_KEYS] * padding), unlisted


@lru_cache(maxsize=256)
def _part_table(places: tuple[tuple[str, str], ...], n: int) -> Ints:
    """For each kind of part, which transitions complete it, and the strides of (g, h, d, t, s, m) in its scores."""
    kernel = kernels.head_lattices
    table = np.zeros((len(places), 7), dtype=np.int64)
    for row, (name, place) in zip(table, places, strict=True):
        kind = HIGHER_KINDS[name]
        letters = kind.axes
        modifier = kernel.WITH_SIBLING if "t" in letters else kernel.AT_MODIFIER
        row[0] = {MODIFIER: modifier, OUTERMOST: kernel.AT_OUTERMOST, END: kernel.AT_END, EMPTY: kernel.AT_EMPTY}[place]
        if place == OUTERMOST:
            # The part is complete at the end of the side, where its m is the last modifier and its s the one before.
            letters = letters.replace("s", "t").replace("m", "s")
        shape = kind.shape(n)
        for axis, letter in enumerate(letters):
            row[1 + LETTERS.index(letter)] = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    return table


def part_lattices(problem: "Dependency", allowed: np.ndarray[Any, np.dtype[np.bool_]]) -> "Lattices":
    """The lattices of the part scores of a ``Dependency``, whether they are dense or listed."""
    lattices: Lattices
    model = problem.model
    lattices, added = kernels.head_lattices.skeleton(allowed, model.ancestors > 0, model.pairs, problem.single)
    for row, values, keys, unlisted in zip(*part_tables(problem), strict=False):
        kernels.head_lattices.add_parts(lattices, added, row[0], row[1:], values, keys, unlisted)
    return lattices


def automaton_lattices(automata: HeadAutomata) -> "Lattices":
    """The lattices of any automata: a state for each automaton state in which some modifier was the last one taken.

    The automata of one head and side below different heads g are run side by side: a state of the lattice is the tuple
    of their states.
    """
    n = automata.n
    skeleton, _ = kernels.head_lattices.skeleton(automata.arc > -np.inf, automata.by_head, False, False)
    arc_id = np.full((n + 1, n + 1), -1, dtype=np.int64)
    arc_id[skeleton.arc_head, skeleton.arc_mod] = np.arange(len(skeleton.arc_head))
    state_ptr, weight_ptr, value_ptr = [0], [0], [0]
    state_arc: list[int] = []
    state_rank: list[int] = []
    in_ptr, src = [0], list[int]()
    weights: list[list[float]] = []
    for h, side in product(range(n + 1), (LEFT, RIGHT)):
        heads, first = automata.heads_of(h), len(state_arc)
        ranks, entering = _states_of(automata, h, side)
        words = automata.outwards(h, side)
        arcs = [int(arc_id[h, words[rank]]) if 0 <= rank < len(words) else -1 for rank in ranks]
        state_arc += arcs
        state_rank += ranks
        for transitions in entering:
            src += [first + v for v, _ in transitions]
            weights += [weight for _, weight in transitions]
            in_ptr.append(len(src))
        state_ptr.append(len(state_arc))
        weight_ptr.append(weight_ptr[-1] + len(heads) * sum(map(len, entering)))
        value_ptr.append(value_ptr[-1] + len(heads) * len(arcs))
    flat = np.array(list(chain.from_iterable(weights)), dtype=np.float64)
    lattices: Lattices = skeleton._replace(
        state_ptr=np.array(state_ptr),
        state_arc=np.array(state_arc),
        state_rank=np.array(state_rank),
        in_ptr=np.array(in_ptr),
        src=np.array(src, dtype=np.int64),
        weight_ptr=np.array(weight_ptr),
        weight=flat,
        value_ptr=np.array(value_ptr),
    )
    return lattices


def _states_of(automata: HeadAutomata, h: int, side: int) -> tuple[list[int], list[list[tuple[int, list[float]]]]]:
    """The states of the automata of one head and side, side by side: the place of the last word taken, -1 at the start
    and the number of words at the end; and what enters each, states with weights below each head.
    """
    heads, words = automata.heads_of(h), automata.outwards(h, side)
    sides = [automata.automaton(g, h, side) for g in heads]
    reached: list[tuple[Hashable, ...]] = [tuple(a.start for a in sides)]
    ranks, entering = [-1], list[list[tuple[int, list[float]]]]([[]])
    for rank, m in enumerate(words):
        place: dict[tuple[Hashable, ...], int] = {}
        for v in range(len(reached)):
            if ranks[v] == rank:
                break
            if v and not entering[v]:
                continue
            steps = [automata.step(g, h, side, q, m) for g, q in zip(heads, reached[v], strict=True)]
            weight = _checked([w for _, w in steps], h, side)
            if max(weight, default=-np.inf) == -np.inf:
                continue
            after = tuple(q for q, _ in steps)
            if after not in place:
                place[after] = len(reached)
                reached.append(after)
                ranks.append(rank)
                entering.append([])
            entering[place[after]].append((v, weight))
        if not place:  # no sequence takes m: a state that nothing enters stands for it
            reached.append(())
            ranks.append(rank)
            entering.append([])
    alive = [v for v in range(len(reached)) if v == 0 or entering[v]]
    stops = [(v, _checked([a.stop(q) for a, q in zip(sides, reached[v], strict=True)], h, side)) for v in alive]
    entering.append([(v, weight) for v, weight in stops if max(weight, default=-np.inf) > -np.inf])
    ranks.append(len(words))
    return ranks, entering


def _checked(weights: list[float], h: int, side: int) -> list[float]:
    """The weights of an automaton; InvalidInput if one is nan or inf."""
    for weight in weights:
        if not weight < np.inf:
            where = "right" if side else "left"
            raise InvalidInput(
                f"the automaton of head {h}, {where}, gave the weight {weight}; weights are finite, or -inf to forbid."
            )
    return weights
