"""Many structures of one kind in padded arrays, as neural models give them: arrays in, arrays out.

Items of the same length share one graph, so that a question costs little beyond its sweeps.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus.batch import Batch, type_of
from certus.checks import Ints, as_numbers
from certus.errors import InvalidInput, NotSupported
from certus.problem import Index
from certus.result import BatchResult
from certus.structures.alignment import Alignment
from certus.structures.ctc import CTC
from certus.structures.dependency_graph import DependencyGraph
from certus.structures.segmentation import Segmentation
from certus.structures.span_trees import SpanTrees
from certus.structures.spanning_tree import SpanningTree

Array = NDArray[Any]


def _as_batch(name: str, values: ArrayLike, axes: tuple[int, ...]) -> Array:
    array = as_numbers(name, values)
    if array.ndim not in axes or array.dtype.kind not in "fiub":
        wanted = " or ".join(str(k) for k in axes)
        raise InvalidInput(f"{name} has shape {array.shape} and type {array.dtype}; expected numbers in {wanted} axes.")
    return array


class SegmentationBatch(Batch):
    """B problems of ``certus.Segmentation``, answered together.

    Parameters
    ----------
    segment : array_like of shape (B, N, K, C)
    transition : array_like of shape (C, C), for all items, or (B, C, C), optional
    lengths : array_like of shape (B,), optional
        Words of each item, 0..N; all N by default.
    mask : array_like of bool, shape (B, N), optional
        In place of ``lengths``: true where a word is not padding.
    workers : int, optional
        Threads; one by default.

    Structures are rows (i, j, c) in arrays of shape (B, N, 3).
    """

    def __init__(
        self,
        segment: ArrayLike,
        transition: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        workers: int | None = None,
    ) -> None:
        self.segment = _as_batch("segment", segment, (4,))
        self.transition = None if transition is None else _as_batch("transition", transition, (2, 3))
        super().__init__(lengths, len(self.segment), self.segment.shape[1], workers, mask=mask)
        self.dtype = type_of(self.segment)

    def __getitem__(self, item: int) -> Segmentation:
        """One item as a problem of its own."""
        shared = self.transition is None or self.transition.ndim == 2
        transition = self.transition if shared or self.transition is None else self.transition[item]
        return Segmentation(self.segment[item, : self.lengths[item]], transition)

    @property
    def structure_shape(self) -> Index:
        return (self.segment.shape[1], 3)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"segments": self.segment.shape[1:]}


class SpanTreesBatch(Batch):
    """B problems of ``certus.SpanTrees``, answered together.

    Parameters
    ----------
    span : array_like of shape (B, N + 1, N + 1, L), or (B, N + 1, N + 1) without labels
    empty : int, optional
        As in ``certus.SpanTrees``.
    lengths : array_like of shape (B,), optional
        Words of each item, 0..N; all N by default.
    mask : array_like of bool, shape (B, N), optional
        In place of ``lengths``: true where a word is not padding.
    workers : int, optional
        Threads; one by default.

    Structures are rows (i, j, l), or (i, j) without labels, in arrays of up to 2 N - 1 rows.
    """

    def __init__(
        self,
        span: ArrayLike,
        empty: int | None = None,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        workers: int | None = None,
    ) -> None:
        self.span, self.empty = _as_batch("span", span, (3, 4)), empty
        super().__init__(lengths, len(self.span), self.span.shape[1] - 1, workers, mask=mask)
        self.dtype = type_of(self.span)

    def __getitem__(self, item: int) -> SpanTrees:
        """One item as a problem of its own."""
        end = int(self.lengths[item]) + 1
        return SpanTrees(self.span[item, :end, :end], self.empty)

    @property
    def structure_shape(self) -> Index:
        return (max(2 * self.span.shape[1] - 3, 0), self.span.ndim - 1)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"spans": self.span.shape[1:]}


class AlignmentBatch(Batch):
    """B problems of ``certus.Alignment``, answered together.

    Parameters
    ----------
    score : array_like of shape (B, N + 1, M + 1, 3)
    lengths : array_like of shape (B,), optional
        Items of the first sequence of each, 0..N; all N by default.
    second_lengths : array_like of shape (B,), optional
        Likewise of the second, 0..M.
    mask : array_like of bool, shape (B, N), optional
        In place of ``lengths``: true where an item of the first sequence is not padding.
    second_mask : array_like of bool, shape (B, M), optional
        Likewise of the second.
    workers : int, optional
        Threads; one by default.

    Structures are rows (i, j, op) in arrays of N + M rows.
    """

    def __init__(
        self,
        score: ArrayLike,
        *,
        lengths: ArrayLike | None = None,
        second_lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        second_mask: ArrayLike | None = None,
        workers: int | None = None,
    ) -> None:
        self.scores = _as_batch("score", score, (4,))
        items, n, m = self.scores.shape[:3]
        super().__init__(second_lengths, items, m - 1, workers, mask=second_mask)
        self.second_lengths: Ints = self.lengths
        super().__init__(lengths, items, n - 1, workers, mask=mask)
        self.dtype = type_of(self.scores)

    def __getitem__(self, item: int) -> Alignment:
        """One item as a problem of its own."""
        return Alignment(self.scores[item, : self.lengths[item] + 1, : self.second_lengths[item] + 1])

    @property
    def structure_shape(self) -> Index:
        return (self.scores.shape[1] + self.scores.shape[2] - 2, 3)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"steps": self.scores.shape[1:]}


class CTCBatch(Batch):
    """B problems of ``certus.CTC``, answered together.

    Parameters
    ----------
    frame : array_like of shape (B, T, V)
    target : array_like of int, shape (B, S)
        Padded with -1 at the end.
    blank : int
    lengths : array_like of shape (B,), optional
        Frames of each item, 0..T; all T by default.
    mask : array_like of bool, shape (B, T), optional
        In place of ``lengths``: true where a frame is not padding.
    workers : int, optional
        Threads; one by default.

    Structures are the labels of the frames, in arrays of shape (B, T).
    """

    def __init__(
        self,
        frame: ArrayLike,
        target: ArrayLike,
        blank: int = 0,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        workers: int | None = None,
    ) -> None:
        self.frame, self.blank = _as_batch("frame", frame, (3,)), blank
        self.target = np.asarray(target)
        if self.target.ndim != 2 or len(self.target) != len(self.frame) or self.target.dtype.kind not in "iu":
            raise InvalidInput(
                f"target has shape {self.target.shape} and type {self.target.dtype}; expected whole numbers, a row for "
                f"each of {len(self.frame)} items."
            )
        super().__init__(lengths, len(self.frame), self.frame.shape[1], workers, mask=mask)
        self.dtype = type_of(self.frame)

    def __getitem__(self, item: int) -> CTC:
        """One item as a problem of its own."""
        target = self.target[item]
        used = int((target >= 0).sum())
        return CTC(self.frame[item, : self.lengths[item]], target[:used], self.blank)

    @property
    def structure_shape(self) -> Index:
        return (self.frame.shape[1],)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"frames": self.frame.shape[1:]}


class SpanningTreeBatch(Batch):
    """B problems of ``certus.SpanningTree``, answered together.

    Parameters
    ----------
    edge : array_like of shape (B, N, N)
    lengths : array_like of shape (B,), optional
        Nodes of each item, 0..N; all N by default.
    mask : array_like of bool, shape (B, N), optional
        In place of ``lengths``: true where a node is not padding.
    workers : int, optional
        Threads; one by default.

    Structures are rows (i, j) in arrays of N - 1 rows.
    """

    kind = "combinatorial"

    def __init__(
        self,
        edge: ArrayLike,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        workers: int | None = None,
    ) -> None:
        self.edge = _as_batch("edge", edge, (3,))
        super().__init__(lengths, len(self.edge), self.edge.shape[1], workers, mask=mask)
        self.dtype = type_of(self.edge)

    def __getitem__(self, item: int) -> SpanningTree:
        """One item as a problem of its own."""
        end = int(self.lengths[item])
        return SpanningTree(self.edge[item, :end, :end])

    @property
    def structure_shape(self) -> Index:
        return (max(self.edge.shape[1] - 1, 0), 2)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"edges": self.edge.shape[1:]}


class DependencyGraphBatch(Batch):
    """B problems of ``certus.DependencyGraph`` that are dynamic programs, answered together.

    Graphs with more than one kind of pairs, or with grandparents, are relaxed: use certus.decode_all over these.

    Parameters
    ----------
    arc : array_like of shape (B, N, N)
    sibling : array_like of shape (B, N, N, N), optional
    coparent : array_like of shape (B, N, N, N), optional
        In place of ``sibling``.
    lengths : array_like of shape (B,), optional
        Words of each item, 0 .. N - 1; all N - 1 by default.
    mask : array_like of bool, shape (B, N - 1), optional
        In place of ``lengths``: true where a word is not padding.
    workers : int, optional
        Threads; one by default.

    Structures are arrays of shape (B, N, N) of 0 and 1, -1 in the padding.
    """

    def __init__(
        self,
        arc: ArrayLike,
        sibling: ArrayLike | None = None,
        coparent: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        workers: int | None = None,
    ) -> None:
        if sibling is not None and coparent is not None:
            raise NotSupported(
                "graphs with siblings and coparents are relaxed, one by one: use certus.decode_all over "
                "certus.DependencyGraph problems."
            )
        self.arc = _as_batch("arc", arc, (3,))
        given = {"sibling": sibling, "coparent": coparent}
        self.pairs = {name: _as_batch(name, values, (4,)) for name, values in given.items() if values is not None}
        super().__init__(lengths, len(self.arc), self.arc.shape[1] - 1, workers, mask=mask)
        self.dtype = type_of(self.arc)

    def __getitem__(self, item: int) -> DependencyGraph:
        """One item as a problem of its own."""
        own = (slice(int(self.lengths[item]) + 1),) * 3
        return DependencyGraph(self.arc[item][own[:2]], **{name: a[item][own] for name, a in self.pairs.items()})

    def decode(self) -> BatchResult:
        return replace(super().decode(), axes=2)

    @property
    def structure_shape(self) -> Index:
        return self.arc.shape[1:]

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": self.arc.shape[1:]}

    def _row(self, structure: Any) -> Ints:
        out = np.full((len(structure), self.arc.shape[2]), -1, dtype=np.int64)
        out[:, : len(structure)] = structure
        return out

    def _unpadded(self, structure: Array, item: int) -> Array:
        end = int(self.lengths[item]) + 1
        return structure[:end, :end]
