"""Connectionist temporal classification: frames labelled so that they spell a target."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Ints, as_numbers
from certus.errors import InvalidInput
from certus.hypergraph import Forest
from certus.lazy import once
from certus.schema import Field
from certus.structures.layout import Layout, edges, layout_of
from certus.structures.program import LabelProgram, as_array

MOST_LABELS = 1 << 24


class CTC(LabelProgram):
    """The best labels of T frames that spell a target: repeated labels become one, then blanks are left out.

    Labels y_1 .. y_T score the sum of frame[t, y_t], if they spell the target; ``log_partition()`` is the negative of
    the loss of [Graves06]_, for log-probabilities of labels.

    Exact, in O(T S) for a target of S labels. Every question has an answer. Certificate kind: "dynamic program".

    Parameters
    ----------
    frame : array_like of shape (T, V)
        ``-inf`` forbids a label at a frame; cells that no labelling uses are not read.
    target : sequence of int
        Labels below V, none of them the blank.
    blank : int

    Notes
    -----
    Structures are int64 arrays of shape (T,). The one view is "frames", of shape (T, V). Too few frames for the target
    leave no structure: ``Infeasible``.

    Examples
    --------
    >>> CTC([[0, 1], [2, 0], [0, 3]], target=[1, 1]).decode().structure.tolist()
    [1, 0, 1]
    """

    name = "ctc"
    view = "frames"
    names = ("frame",)
    exclusive: ClassVar[Mapping[str, int]] = {"frames": 1}

    def __init__(self, frame: ArrayLike, target: ArrayLike, blank: int = 0) -> None:
        first = as_array("frame", frame, (None, None))
        self.length, self.size = first.shape
        given = as_numbers("target", target)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise InvalidInput(f"target has shape {given.shape} and type {given.dtype}; expected a list of labels.")
        if not isinstance(blank, int | np.integer) or not 0 <= blank < self.size:
            raise InvalidInput(f"blank is {blank!r}; expected one of {self.size} labels.")
        self.blank, self.target = int(blank), tuple(map(int, given.tolist()))
        for k, label in enumerate(self.target):
            if not 0 <= label < self.size or label == blank:
                raise InvalidInput(
                    f"target[{k}] is {label}; expected a label below {self.size} that is not the blank {blank}."
                )
        super().__init__({"frame": first}, _layout(self.length, self.size, self.target, self.blank))

    def __repr__(self) -> str:
        return f"CTC({self.length} frames, {self.size} labels, target of {len(self.target)})"

    def options(self) -> dict[str, Any]:
        return {"target": list(self.target), "blank": self.blank}

    @classmethod
    def options_from_json(cls, given: Field) -> dict[str, Any]:
        return {"target": given["target"].wholes(0, MOST_LABELS), "blank": given["blank"].whole()}

    @once
    def forest(self) -> Forest:
        needed = len(self.target) + sum(a == b for a, b in pairwise(self.target))
        if self.length >= needed:
            return super().forest()
        nothing = f"frame has {self.length} frames and the target takes {needed} at least, one for each label and a "
        return replace(super().forest(), nothing=nothing + "blank between equal ones. Give more frames.")

    def parts_of(self, structure: Any) -> Ints:
        labels = np.asarray(structure)
        if labels.shape != (self.length,) or (labels.size and labels.dtype.kind not in "iu"):
            raise InvalidInput(
                f"structure has shape {labels.shape} and type {labels.dtype}; expected {self.length} labels."
            )
        spelt = tuple(label for label, _ in groupby(labels.tolist()) if label != self.blank)
        if spelt != self.target:
            raise InvalidInput(
                f"the structure spells {list(spelt)[:20]}; expected the target {list(self.target)[:20]}."
            )
        cells: Ints = np.arange(self.length) * self.size + labels.astype(np.int64)
        return cells

    def rows(self, cells: Ints) -> Ints:
        labels: Ints = np.sort(cells) % max(self.size, 1)
        return labels

    def structure_from_json(self, data: Any) -> Ints:
        labels = Field.of(data, "structure").wholes(0, self.size - 1, (self.length,))
        return self.from_cells(self.cells_of(labels))


@lru_cache(maxsize=256)
def _layout(length: int, size: int, target: tuple[int, ...], blank: int) -> Layout:
    """Vertices: at frame t, at place s of the target with a blank before, between and after its labels."""
    places = 2 * len(target) + 1
    label = np.full(places, blank)
    label[1::2] = target
    skips = np.flatnonzero((label[2:] != label[:-2]) & (label[2:] != blank)) + 2
    frame, every = np.arange(1, length)[:, None], np.arange(places)
    blocks = []
    if length:
        blocks.append(edges(every[:2], (), (label[:2],)))
    for back, to in ((0, every), (1, every[1:]), (2, skips)):
        blocks.append(edges(frame * places + to, ((frame - 1) * places + to - back,), (frame * size + label[to],)))
    last = (length - 1) * places + every[-2:] if length else np.empty(0, dtype=np.int64)
    root = length * places
    if length:
        blocks.append(edges(np.full(len(last), root), (last,)))
    elif not target:
        blocks.append(edges(np.array([root])))
    return layout_of(root + 1, blocks, length * size, length * size, length, trim=True)
