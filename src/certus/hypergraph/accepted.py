"""Dynamic programs restricted to the structures whose sequence an automaton accepts: dynamic programs again."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.assembling import normal_form
from certus.certificates.intersected import Intersected, Reader
from certus.certificates.normal import Graph, NormalForm
from certus.certificates.rounding import Extent
from certus.checks import Floats, Ints
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph.automata import Automaton, intersect, with_leaves
from certus.hypergraph.dynamic_program import DynamicProgram, Forest
from certus.problem import Index, Problem, problem_from_json, problem_to_json
from certus.schema import MOST, Field

Y = TypeVar("Y")


class Accepted(DynamicProgram[Y]):
    """A dynamic program restricted to the structures whose sequence of symbols an automaton accepts (LR 2.2.5).

    What ``subject_to`` makes of constraints such as ``contains``; every question is answered, by intersecting the
    hypergraph of the problem with the automaton, at worst in O(E Q^(m + 1)) for E edges with m tails and Q states.
    Structures, scores and views are those of the problem. Certificate kind: "dynamic program".

    Parameters
    ----------
    problem : Problem
        One with a ``forest()`` and a ``sequence`` to read.
    automaton : Automaton
        Without weights: it accepts a sequence, or does not.
    view : str
        The view whose cells are read, in the order of ``problem.sequence``.
    symbol : array_like of int, as many as the view has cells
        The symbol of each flat cell, as the automaton numbers them; -1 for none.
    """

    name: ClassVar[str] = "accepted"

    def __init__(self, problem: Problem[Y], automaton: Automaton, view: str, symbol: ArrayLike) -> None:
        size = int(np.prod(problem.checked_view(view), dtype=np.int64))
        self.symbol: Ints = np.asarray(symbol, dtype=np.int64)
        if self.symbol.shape != (size,) or (self.symbol < -1).any() or (self.symbol >= automaton.n_symbols).any():
            raise InvalidInput(f"symbol has one number for each of {size} cells, from -1 to {automaton.n_symbols - 1}.")
        weights = automaton.weights[(automaton.transitions >= 0) & (automaton.weights > -np.inf)]
        if weights.any() or automaton.final_weights[automaton.final_weights > -np.inf].any():
            raise InvalidInput("the automaton has weights; a constraint has none. certus.intersect adds scores up.")
        arcs = np.where(automaton.weights > -np.inf, automaton.transitions, -1)
        finals = np.flatnonzero(automaton.final_weights > -np.inf).tolist()
        self.automaton = Automaton(arcs, initial=automaton.initial, finals=finals)  # symbols are numbers here
        self.problem, self.view = problem, view
        self.exclusive, self.tags = problem.exclusive, problem.tags  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Accepted({self.problem!r}, {self.automaton!r}, view={self.view!r})"

    def _of(self, problem: Problem[Y]) -> Self:
        return type(self)(problem, self.automaton, self.view, self.symbol)

    # -- structures ------------------------------------------------------------------------------------------------

    def sequence(self, structure: Y, view: str) -> Sequence[int]:
        return self.problem.sequence(structure, view)

    def accepts(self, structure: Y) -> bool:
        """Whether the automaton accepts the sequence of a structure."""
        cells = np.asarray(self.problem.sequence(structure, self.view), dtype=np.int64)
        return self.automaton.accepts(self.symbol[cells])

    def terms(self, structure: Y) -> Sequence[float] | Floats:
        scores = self.problem.terms(structure)
        return scores if self.accepts(structure) else [-np.inf]

    def all_structures(self) -> Iterator[Y]:
        return (y for y in self.problem.all_structures() if self.accepts(y))

    @property
    def views(self) -> Mapping[str, Index]:
        return self.problem.views

    def indicator(self, structure: Y, view: str) -> Floats:
        return self.problem.indicator(structure, view)

    def extent(self) -> Extent:
        return self.problem.extent()

    def error_at(self, value: float) -> float:
        return self.problem.error_at(value)

    def all_scores(self) -> Any:
        return self.problem.all_scores()

    def without_scores_below(self, least: float) -> Self:
        return self._of(self.problem.without_scores_below(least))

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._of(self.problem.with_scores_rounded_up(step))

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        return self._of(self.problem.with_fixed(view, index, value))

    # -- the intersection ------------------------------------------------------------------------------------------

    @cached_property
    def _intersection(self) -> tuple[Forest, Ints]:
        """The hypergraph of the accepted structures, and the edge of the problem's own that each edge comes from."""
        own = self.problem.forest()
        if own is None:
            raise NotSupported(f"{type(self.problem).__name__} is no dynamic program, which automata are for.")
        cell = own.parts[self.view]
        symbol = np.where(cell >= 0, np.append(self.symbol, -1)[cell], -1)
        graph, weights, symbols, leaves = with_leaves(own.graph, own.weights, symbol)
        graph, weights, edge_map = intersect(graph, weights, self.automaton, symbols)
        origin = np.where(edge_map >= leaves, edge_map - leaves, -1).astype(np.int64)
        parts = {view: np.where(origin >= 0, np.append(cells, -1)[origin], -1) for view, cells in own.parts.items()}
        return Forest(graph, weights, parts), origin

    def forest(self) -> Forest:
        return self._intersection[0]

    def from_edges(self, edges: Sequence[int]) -> Y:
        origin = self._intersection[1][np.asarray(edges, dtype=np.int64)]
        return self.problem.from_edges(origin[origin >= 0].tolist())

    @cached_property
    def _normal(self) -> tuple[NormalForm, Intersected]:
        form = self.problem.normal_form()
        (graph,) = form.spaces
        if not isinstance(graph, Graph):
            raise NotSupported(f"{type(self.problem).__name__} is no dynamic program, which automata are for.")
        symbol, part = np.full(len(form.scores), -1, dtype=np.int64), form.cells[self.view]
        symbol[part[part >= 0]] = self.symbol[part >= 0]
        a = self.automaton
        made = Intersected(graph, Reader(a.transitions.astype(np.int64), a.initial, a.final_weights > -np.inf, symbol))
        return normal_form(made.graph, form.scores, form.cells), made

    def normal_form(self) -> NormalForm:
        return self._normal[0]

    def normal_structure(self, structure: Y) -> tuple[list[int]]:
        (edges,) = self.problem.normal_structure(structure)
        return (self._normal[1].structure(edges),)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        a = self.automaton
        return {
            "problem": problem_to_json(self.problem),
            "view": self.view,
            "symbol": self.symbol.tolist(),
            "states": a.n_states,
            "symbols": a.n_symbols,
            "transitions": a.transitions.ravel().tolist(),
            "initial": a.initial,
            "finals": np.flatnonzero(a.final_weights > -np.inf).tolist(),
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        states, symbols = given["states"].whole(1, MOST), given["symbols"].whole(0, MOST)
        arcs = given["transitions"].wholes(-1, states - 1)
        if len(arcs) != states * symbols:
            given["transitions"].fail(f"{states} times {symbols} states")
        table, initial = arcs.reshape(states, symbols), given["initial"].whole(0, states - 1)
        automaton = Automaton(table, initial=initial, finals=given["finals"].wholes(0, states - 1).tolist())
        problem, symbol = problem_from_json(given["problem"]), given["symbol"].wholes(-1, symbols - 1)
        return given.made(lambda: cls(problem, automaton, given["view"].text(), symbol))

    def structure_to_json(self, structure: Y) -> Any:
        return self.problem.structure_to_json(structure)

    def structure_from_json(self, data: Any) -> Y:
        return self.problem.structure_from_json(data)
