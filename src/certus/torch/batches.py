"""Batches of problems that have none in numpy: trees of all orders, with and without labels, graphs, assignments."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus.batch import Batch
from certus.checks import Ints
from certus.dependency.batch import DependencyBatch
from certus.dependency.labels import LabelledDependency
from certus.dependency.part_kinds import TABLE
from certus.dependency.problem import Dependency
from certus.errors import InvalidInput
from certus.factors.assignment import Assignment
from certus.problem import Index, Problem
from certus.structures.dependency_graph import DependencyGraph

TREE_AXES = {kind.name: "".join("." if letter == "d" else "n" for letter in kind.axes) for kind in TABLE}
HIGHER_AXES = {name: axes for name, axes in TREE_AXES.items() if name != "arc"}


class CutBatch(Batch):
    """Problems cut out of padded arrays, asked one by one. ``axes`` and ``more`` are as in certus.structures' kinds."""

    problem: ClassVar[Callable[..., Problem[Any]]]
    axes: ClassVar[Mapping[str, str]]
    more: ClassVar[int] = 1

    def __init__(
        self,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        second_lengths: ArrayLike | None = None,
        second_mask: ArrayLike | None = None,
        **given: Any,
    ) -> None:
        self.arrays: dict[str, NDArray[Any]] = {name: given.pop(name) for name in self.axes if name in given}
        self.options, (lead, *_) = given, self.axes
        self.first = self.arrays[lead]
        for name, array in self.arrays.items():
            if array.ndim != len(self.axes[name]) + 1 or len(array) != len(self.first):
                raise InvalidInput(
                    f"{name} has shape {array.shape}; expected {len(self.axes[name])} axes behind that of "
                    f"{len(self.first)} items."
                )
        items, *sizes = self.first.shape
        self._longest = dict(zip(self.axes[lead], (size - self.more for size in sizes), strict=True))
        super().__init__(second_lengths, items, self._longest.get("m", 0), 1, mask=second_mask)
        self.second_lengths: Ints = self.lengths
        super().__init__(lengths, items, self._longest["n"], 1, mask=mask)

    def __getitem__(self, item: int) -> Problem[Any]:
        """One item as a problem of its own."""
        padding = {"n": self._longest["n"] - int(self.lengths[item]), ".": 0}
        padding["m"] = self._longest.get("m", 0) - int(self.second_lengths[item])
        own = {}
        for name, array in self.arrays.items():
            sizes = zip(self.axes[name], array.shape[1:], strict=True)
            own[name] = array[item][tuple(slice(size - padding[axis]) for axis, size in sizes)]
        return type(self).problem(**own, **self.options)


class TreeBatch(CutBatch):
    """Trees scored by arcs and by any parts above arcs."""

    problem: ClassVar[Callable[..., Problem[Any]]] = Dependency
    axes: ClassVar[Mapping[str, str]] = TREE_AXES

    @property
    def structure_shape(self) -> Index:
        return self.first.shape[1:2]

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": self.first.shape[1:3]}

    def _unpadded(self, structure: NDArray[Any], item: int) -> Any:
        return structure[: self.lengths[item] + 1]


class LabelledTreeBatch(TreeBatch):
    """Trees with labels: structures are (heads, labels), arrays of shape (B, N, 2)."""

    problem = LabelledDependency
    axes: ClassVar[Mapping[str, str]] = {"label": "nn.", **HIGHER_AXES}

    @property
    def structure_shape(self) -> Index:
        return (self.first.shape[1], 2)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"labels": self.first.shape[1:], **super().views}

    def _row(self, structure: Any) -> Ints:
        return np.stack(structure, axis=1)

    def _unpadded(self, structure: NDArray[Any], item: int) -> Any:
        return tuple(super()._unpadded(structure, item).T)


class AssignmentBatch(CutBatch):
    """Assignments of up to N rows, by ``lengths``, and M columns, by ``second_lengths``."""

    problem = Assignment
    axes: ClassVar[Mapping[str, str]] = {"score": "nm"}
    more = 0

    @property
    def structure_shape(self) -> Index:
        return self.first.shape[1:2]

    @property
    def views(self) -> Mapping[str, Index]:
        return {"matches": self.first.shape[1:]}

    def _unpadded(self, structure: NDArray[Any], item: int) -> NDArray[Any]:
        return structure[: self.lengths[item]]


class GraphBatch(CutBatch):
    """Graphs scored by any pairs of arcs: structures are (B, N, N), of 0 and 1."""

    problem = DependencyGraph
    axes: ClassVar[Mapping[str, str]] = {"arc": "nn", "sibling": "nnn", "coparent": "nnn", "grandparent": "nnn"}

    @property
    def structure_shape(self) -> Index:
        return self.first.shape[1:]

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": self.first.shape[1:]}

    def _row(self, structure: Any) -> Ints:
        return np.pad(structure, ((0, 0), (0, self.first.shape[2] - len(structure))), constant_values=-1)

    def _unpadded(self, structure: NDArray[Any], item: int) -> NDArray[Any]:
        return structure[: self.lengths[item] + 1, : self.lengths[item] + 1]


def trees(**given: Any) -> Batch:
    """Trees without labels: by the kernels for batches where these serve."""
    above = given.keys() & HIGHER_AXES.keys()
    if above or given.get("grandparents", "all") != "all":
        return TreeBatch(**given)
    given.pop("grandparents", None)
    return DependencyBatch(**given)
