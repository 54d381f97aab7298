"""Problems over arrays of scores that are dynamic programs: what they share."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.assembling import normal_form, trimmed
from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent, extent_of, rounded_up
from certus.certificates.sound import summed
from certus.checks import Floats, Ints, as_numbers, as_scores, one_of
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph import DynamicProgram, Forest, sweeps
from certus.lazy import once
from certus.problem import PROBLEMS, Index
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.structures.layout import Layout, Walk

Y = TypeVar("Y")
Cells = tuple[tuple[int, ...], ...]


class ArrayProgram(DynamicProgram[Y]):
    """A dynamic program over named arrays of scores; the cells of the first are those of its one view.

    A kind says how its arrays are laid out as a graph, how structures are written, and which parts they use: cells of
    the arrays, laid end to end. Cells that no structure uses are not read: they may hold anything.
    """

    view: ClassVar[str]
    names: ClassVar[tuple[str, ...]]  # of the arrays; all but the first may be left out

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            PROBLEMS[cls.name] = cls

    def __init__(self, arrays: Mapping[str, Floats], layout: Layout) -> None:
        self.layout, self.told_apart_by = layout, (self.view,)
        self.arrays: dict[str, Floats] = {}
        start = 0
        for name, array in arrays.items():
            read = layout.read[start : start + array.size].reshape(array.shape)
            self.arrays[name] = as_scores(name, np.where(read, array, -np.inf))
            start += array.size

    # -- what a kind of problem says -------------------------------------------------------------------------------

    @abstractmethod
    def parts_of(self, structure: Any) -> Ints:
        """The parts that a structure uses, those of the view first; InvalidInput for what is no structure."""

    @abstractmethod
    def rows(self, cells: Ints) -> Ints:
        """The structure that uses these flat cells of the view, in any order, as an array."""

    @abstractmethod
    def from_cells(self, cells: Ints) -> Y:
        """The structure that uses these flat cells of the view."""

    def options(self) -> dict[str, Any]:
        """What the problem is made of beside its arrays, as JSON has it."""
        return {}

    @classmethod
    def options_from_json(cls, given: Field) -> dict[str, Any]:
        """What ``options`` told."""
        return {}

    # -- scores ----------------------------------------------------------------------------------------------------

    @cached_property
    def scores(self) -> Floats:
        """(P,) the scores of all parts."""
        return np.concatenate([array.reshape(-1) for array in self.arrays.values()])

    def _with(self, arrays: Mapping[str, Floats]) -> Self:
        kind: Any = type(self)
        made: Self = kind(**arrays, **self.options())
        return made

    def all_scores(self) -> tuple[Floats, ...]:
        return tuple(self.arrays.values())

    @once
    def extent(self) -> Extent:
        return extent_of(self.layout.longest, *self.arrays.values())

    def without_scores_below(self, least: float) -> Self:
        if least == -np.inf:
            return self  # what is not read is -inf already
        return self._with({name: np.where(a < least, -np.inf, a) for name, a in self.arrays.items()})

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._with({name: rounded_up(array, step) for name, array in self.arrays.items()})

    def terms(self, structure: Y) -> list[float]:
        found: list[float] = self.scores[self.parts_of(structure)].tolist()
        return found

    # -- the view --------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Index:
        """The shape of the view."""
        return self.arrays[self.names[0]].shape

    @property
    def views(self) -> Mapping[str, Index]:
        return {self.view: self.shape}

    def cells_of(self, structure: Y) -> Ints:
        """The flat cells of the view that a structure uses."""
        parts = self.parts_of(structure)
        return parts[parts < self.layout.cells]

    def indicator(self, structure: Y, view: str) -> Floats:
        used = np.zeros(self.checked_view(view))
        used.reshape(-1)[self.cells_of(structure)] = 1.0
        return used

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        shape = self.checked_part(view, index, value)
        scores, cell = self.arrays[self.names[0]].copy(), int(np.ravel_multi_index(index, shape))
        if value:
            beside = Walk(self.layout.graph, self.layout.cell).beside(cell, self.layout.cells)
            if not beside.any():
                raise NotSupported(f"no structure uses {view}{list(index)}, which is required.")
            scores[~beside.reshape(shape)] = -np.inf
        else:
            scores[index] = -np.inf
        return self._with({**self.arrays, self.names[0]: scores})

    # -- the graph -------------------------------------------------------------------------------------------------

    @once
    def forest(self) -> Forest:
        return Forest(self.layout.hypergraph, self.layout.weights(self.scores), {self.view: self.layout.cell})

    def from_edges(self, edges: Sequence[int]) -> Y:
        cells = self.layout.cell[np.asarray(edges, dtype=np.int64)]
        return self.from_cells(cells[cells >= 0])

    @cached_property
    def _walk(self) -> Walk:
        """The graph without what is forbidden, its parts still cells of the arrays."""
        graph, allowed = self.layout.graph, self.forest().weights > -np.inf
        if allowed.all():
            return Walk(graph, self.layout.cell)
        smaller, number = trimmed(graph, allowed)
        return Walk(smaller, self.layout.cell[number >= 0])

    def normal_form(self) -> NormalForm:
        return normal_form(self._walk.graph, self.scores, {self.view: np.arange(self.layout.cells)})

    def normal_structure(self, structure: Y) -> tuple[list[int]]:
        edges = self._walk.derivation(self.cells_of(structure), self.layout.cells)
        if edges is None:
            raise InvalidInput("the structure uses a forbidden part; its score is -inf.")
        return (edges,)

    @summed
    def part_marginals(self, kind: str) -> Floats:
        """The expected uses of each cell of an array, by its name, under exp(score)."""
        one_of("kind", kind, tuple(self.arrays))
        edge = sweeps.marginals(self.layout.hypergraph, self.layout.weights(self.scores))
        uses = np.zeros(self.layout.size + 1)
        for column in self.layout.parts:
            np.add.at(uses, column, edge)
        start = 0
        for name, array in self.arrays.items():
            if name == kind:
                break
            start += array.size
        return uses[start : start + self.arrays[kind].size].reshape(self.arrays[kind].shape)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        arrays = {
            name: {"shape": list(array.shape), "values": floats_to_json(array.reshape(-1))}
            for name, array in self.arrays.items()
        }
        return {**arrays, **self.options()}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given, arrays = Field.of(data, ""), {}
        for name in cls.names:
            if name == cls.names[0] or name in given:
                shape, values = given[name].shaped()
                arrays[name] = values.scores((prod(shape),)).reshape(shape)
        kind: Any = cls
        made: Self = given.made(lambda: kind(**arrays, **cls.options_from_json(given)))
        return made

    def structure_to_json(self, structure: Y) -> Any:
        return np.array(self.from_cells(self.cells_of(structure)), dtype=np.int64).tolist()

    def structure_from_json(self, data: Any) -> Y:
        rows: Any = Field.of(data, "structure").wholes(0, max(self.shape, default=0), (None, len(self.shape)))
        return self.from_cells(self.cells_of(rows))


class CellProgram(ArrayProgram[Cells]):
    """A dynamic program whose structures are tuples of cells, or of what stands for them."""

    def from_cells(self, cells: Ints) -> Cells:
        return tuple(map(tuple, self.rows(cells).tolist()))


class LabelProgram(ArrayProgram[Ints]):
    """A dynamic program whose structures are arrays."""

    def from_cells(self, cells: Ints) -> Ints:
        return self.rows(cells)


def as_array(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> Floats:
    """Values as float64 of a shape, None where any size will do; cells are checked once it is known which count."""
    array: Floats = as_numbers(name, values, np.float64)
    if array.ndim != len(shape) or any(e not in (None, a) for e, a in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if e is None else str(e) for e in shape)
        raise InvalidInput(f"{name} has shape {array.shape}; expected ({wanted}).")
    return array


def as_rows(structure: Any, width: int, what: str) -> Ints:
    """A structure given as tuples of whole numbers, one a row."""
    rows = as_numbers("structure", structure)
    if rows.size == 0 and rows.ndim <= 2:
        return np.empty((0, width), dtype=np.int64)
    if rows.ndim != 2 or rows.shape[1] != width or rows.dtype.kind not in "iu":
        raise InvalidInput(f"the structure has shape {rows.shape} and type {rows.dtype}; expected rows of {what}.")
    return rows.astype(np.int64)
