"""Many labelled dependency problems in padded arrays: labels folded into the arcs of a batch without them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus.batch import Batch, type_of
from certus.checks import Floats, Ints, as_generator, as_numbers, as_positive_int
from certus.dependency.batch import DependencyBatch, turned
from certus.dependency.labels import LabelledDependency, LabelledTree
from certus.dependency.matrix_tree import fold_labels
from certus.dependency.part_kinds import HIGHER_KINDS
from certus.errors import InvalidInput
from certus.problem import Index
from certus.result import BatchResult


class LabelledDependencyBatch(Batch):
    """B problems of ``certus.LabelledDependency`` of up to N - 1 words: label (B, N, N, L).

    The other arguments are those of ``certus.DependencyBatch``, ``arc`` among them: its scores are added to those of
    the labels. Structures are rows (head, label) in arrays of shape (B, N, 2), (-1, -1) for node 0 and padding.

    Examples
    --------
    >>> label = np.zeros((1, 3, 3, 2))
    >>> label[0, 0, 2, 0] = label[0, 2, 1, 1] = 5.0
    >>> LabelledDependencyBatch(label).decode().structure.tolist()
    [[[-1, -1], [2, 1], [0, 0]]]
    """

    def __init__(
        self,
        label: ArrayLike,
        arc: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        axes: str = "hm",
        workers: int | None = None,
        **options: Any,
    ) -> None:
        scores = turned(as_numbers("label", label), axes)
        if scores.ndim != 4 or scores.shape[1] != scores.shape[2] or not scores.size * scores.shape[1]:
            raise InvalidInput(f"label has shape {scores.shape}; expected (items, words + 1, words + 1, labels).")
        super().__init__(lengths, len(scores), scores.shape[1] - 1, workers, mask=mask)
        self.dtype = type_of(scores)
        self.label: Floats = scores.astype(np.float64)
        self.arc = None if arc is None else turned(arc, axes).astype(np.float64)
        if self.arc is not None and self.arc.shape != self.label.shape[:3]:
            raise InvalidInput(f"arc has shape {self.arc.shape}; expected {self.label.shape[:3]}.")
        kinds = [name for name in HIGHER_KINDS if options.get(name) is not None]
        self.higher: dict[str, Any] = {name: as_numbers(name, options.pop(name)) for name in kinds}
        self.options = options

    def _over(self, arc: Floats) -> DependencyBatch:
        """The batch without labels, of these scores of arcs."""
        return DependencyBatch(arc, **self.higher, lengths=self.lengths, workers=self.workers, **self.options)

    def __getitem__(self, item: int) -> LabelledDependency:
        """One item as a problem of its own."""
        end = int(self.lengths[item]) + 1
        own = {name: a[item][tuple(map(slice, HIGHER_KINDS[name].shape(end - 1)))] for name, a in self.higher.items()}
        arc = None if self.arc is None else self.arc[item, :end, :end]
        return LabelledDependency(self.label[item, :end, :end], arc, **own, **self.options)

    @property
    def structure_shape(self) -> Index:
        return (self.label.shape[1], 2)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": self.label.shape[1:3], "labels": self.label.shape[1:]}

    def _row(self, structure: Any) -> Ints:
        return np.stack(structure, axis=1)

    def _unpadded(self, structure: NDArray[Any], item: int) -> Any:
        return tuple(structure[: self.lengths[item] + 1].T)

    # -- questions -------------------------------------------------------------------------------------------------

    def decode(self) -> BatchResult:
        """The best trees and labels. Sums of labels and arcs are rounded: with ``arc`` items are decoded one by one."""
        if self.arc is not None:
            return super().decode()
        found = self._over(self.label.max(axis=3)).decode()
        labels = np.argmax(_at(self.label, found.structure), axis=2)
        rows = np.stack((found.structure, np.where(found.structure >= 0, labels, -1)), axis=2)
        trees = [LabelledTree(*self._unpadded(row, b)) for b, row in enumerate(rows)]
        results = [replace(found[b], structure=tree) for b, tree in enumerate(trees)]
        return replace(found, structure=rows, results=results)

    def _summed(self) -> tuple[DependencyBatch, Floats]:
        """The batch with the labels summed out, and the probability of each label given its arc."""
        arc, given = fold_labels(self.label if self.arc is None else self.label + self.arc[..., None])
        return self._over(arc), given

    def log_partition(self) -> Floats:
        return self._as_given(self._summed()[0].log_partition())

    def marginals(self) -> dict[str, Floats]:
        return self.log_partition_and_marginals()[1]

    def log_partition_and_marginals(self) -> tuple[Floats, dict[str, Floats]]:
        """Both of them by one sweep."""
        trees, given = self._summed()
        total, found = trees.log_partition_and_marginals()
        labels = np.where(found["arcs"][..., None] > 0.0, found["arcs"][..., None] * given, 0.0)
        return self._as_given(total), {"arcs": self._as_given(found["arcs"]), "labels": self._as_given(labels)}

    def part_marginals(self) -> dict[str, Floats]:
        found = self.marginals()
        above = {} if not self.higher else self._summed()[0].part_marginals()
        arcs = {} if self.arc is None else {"arc": found["arcs"]}
        return {"label": found["labels"], **arcs, **{kind: self._as_given(above[kind]) for kind in self.higher}}

    def entropy(self) -> Floats:
        trees, given = self._summed()
        arcs = trees.marginals()["arcs"]
        own = -np.sum(given * np.log(np.where(given > 0.0, given, 1.0)), axis=3)
        return self._as_given(trees.entropy() + np.sum(np.where(arcs > 0.0, arcs * own, 0.0), axis=(1, 2)))

    def sample(self, k: int, *, seed: int | None = None) -> Ints:
        wanted, rng = as_positive_int("k", k), as_generator(seed)
        trees, given = self._summed()
        heads = trees.sample(wanted, seed=int(rng.integers(2**63)))
        out = np.full((*heads.shape, 2), -1, dtype=np.int64)
        out[..., 0] = heads
        for i in range(wanted):
            upto = np.cumsum(_at(given, heads[:, i]), axis=2)
            # Scaled by the total, which rounding may leave below 1, so that no label of probability 0 is drawn.
            labels = (upto <= rng.random((*upto.shape[:2], 1)) * upto[..., -1:]).sum(axis=2)
            out[:, i, :, 1] = np.where(heads[:, i] >= 0, labels, -1)
        return out


def _at(scores: Floats, heads: Ints) -> Floats:
    """(B, N, L) scores of the labels of the arcs into each word; those of some arc where there is none."""
    item, word = np.indices(heads.shape)
    found: Floats = scores[item, np.maximum(heads, 0), word]
    return found
