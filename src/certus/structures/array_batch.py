"""Batches of problems over arrays: how arguments are read, and how items are cut out of the padding."""

from collections.abc import Mapping
from inspect import signature
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus.batch import Batch, type_of
from certus.checks import Floats, Ints, as_numbers
from certus.errors import InvalidInput
from certus.problem import Index, Problem

Array = NDArray[Any]


class Axes(NamedTuple):
    """How an array of a batch is laid out: how many axes it may have, and which of them are padded.

    ``beyond`` says for each axis after the first how much longer it is than the item, as long as axes are padded. With
    ``shared`` axes there is no axis of items: the array is that of all of them.
    """

    ndim: tuple[int, ...]
    beyond: tuple[int, ...] = ()
    shared: int = -1


class ArrayBatch(Batch):
    """Problems of one ``problem`` class, which takes arrays by name, and options that are those of all items.

    Arguments are those of the class, arrays with a leading axis over the items, padded; then ``lengths=`` or ``mask=``,
    and ``workers=``.
    """

    problem: ClassVar[type[Problem[Any]]]
    arrays_of: ClassVar[Mapping[str, Axes]]  # the first has the axis that ``lengths`` are about
    view: ClassVar[str]  # of the first array

    def __init__(
        self,
        *arguments: Any,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        workers: int | None = None,
        **named: Any,
    ) -> None:
        try:
            given = signature(self.problem).bind(*arguments, **named).arguments
        except TypeError as error:
            takes = ", ".join(signature(self.problem).parameters)
            raise InvalidInput(f"{type(self).__name__} takes {takes}, lengths, mask and workers: {error}.") from None
        first = next(iter(self.arrays_of))
        if given.get(first) is None:
            raise InvalidInput(f"{first} is None; expected an array with a leading axis over the items of the batch.")
        self.arrays = {
            name: as_batch(name, given[name], axes.ndim)
            for name, axes in self.arrays_of.items()
            if given.get(name) is not None
        }
        self.options = {name: value for name, value in given.items() if name not in self.arrays_of}
        self.first = next(iter(self.arrays.values()))
        items, longest = len(self.first), self.first.shape[1] - next(iter(self.arrays_of.values())).beyond[0]
        super().__init__(lengths, items, longest, workers, mask=mask)
        for name, array in self.arrays.items():
            if array.ndim != self.arrays_of[name].shared and len(array) != items:
                raise InvalidInput(f"{name} has {len(array)} items; expected {items}, as many as the first array has.")
        self.dtype = type_of(self.first)

    def sides(self, item: int) -> tuple[int, ...]:
        """The length of an item along the padded axes."""
        return (int(self.lengths[item]),) * 3

    def options_of(self, item: int) -> dict[str, Any]:
        """What the problem of an item takes beside its arrays."""
        return self.options

    def cut(self, name: str, sides: tuple[int, ...]) -> tuple[Any, ...]:
        """What is not padding of an array, after its axis of items."""
        beyond = self.arrays_of[name].beyond
        return tuple(slice(max(side + more, 0)) for side, more in zip(sides, beyond, strict=False))

    def is_shared(self, name: str) -> bool:
        """Whether an array is that of all items."""
        return self.arrays[name].ndim == self.arrays_of[name].shared

    def __getitem__(self, item: int) -> Problem[Any]:
        """One item as a problem of its own."""
        sides = self.sides(item)
        own = {
            name: array if self.is_shared(name) else array[item][self.cut(name, sides)]
            for name, array in self.arrays.items()
        }
        return self.problem(**own, **self.options_of(item))

    def part_marginals(self) -> dict[str, Floats]:
        found = self._each(lambda p, _: {name: p.part_marginals(name) for name in self.arrays})
        shapes = {name: a.shape if self.is_shared(name) else a.shape[1:] for name, a in self.arrays.items()}
        return self._padded_views(found, 0.0, shapes)

    @property
    def views(self) -> Mapping[str, Index]:
        return {self.view: self.first.shape[1:]}


def as_batch(name: str, values: ArrayLike, axes: tuple[int, ...]) -> Array:
    """Values as an array of numbers with as many axes."""
    array = as_numbers(name, values)
    if array.ndim not in axes or array.dtype.kind not in "fiub":
        wanted = " or ".join(str(k) for k in axes)
        raise InvalidInput(f"{name} has shape {array.shape} and type {array.dtype}; expected numbers in {wanted} axes.")
    return array


def as_targets(target: ArrayLike, items: int) -> Ints:
    """Rows of labels, padded with -1."""
    array = as_numbers("target", target)
    if array.ndim != 2 or len(array) != items or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"target has shape {array.shape} and type {array.dtype}; expected whole numbers, a row for each of "
            f"{items} items."
        )
    return array.astype(np.int64)
