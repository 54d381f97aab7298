"""Many labelled dependency problems in padded arrays: labels folded into the arcs of a batch without them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus import kernels
from certus.batch import Batch, type_of
from certus.checks import Floats, Ints, as_generator, as_numbers
from certus.dependency.batch import DependencyBatch, turned
from certus.dependency.label_folds import Folded, folded
from certus.dependency.labels import LabelledDependency, LabelledTree
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
        if scores.ndim != 4 or scores.shape[1] != scores.shape[2] or not scores.shape[1] * scores.shape[3]:
            raise InvalidInput(f"label has shape {scores.shape}; expected (items, words + 1, words + 1, labels).")
        super().__init__(lengths, len(scores), scores.shape[1] - 1, workers, mask=mask)
        self.dtype = type_of(scores)
        self.given: Floats = np.ascontiguousarray(scores, dtype=self.dtype)
        self.arc = None if arc is None else turned(arc, axes).astype(np.float64)
        if self.arc is not None and self.arc.shape != scores.shape[:3]:
            raise InvalidInput(f"arc has shape {self.arc.shape}; expected {scores.shape[:3]}.")
        kinds = [name for name in HIGHER_KINDS if options.get(name) is not None]
        self.higher: dict[str, Any] = {name: as_numbers(name, options.pop(name)) for name in kinds}
        self.options = options

    @cached_property
    def label(self) -> Floats:
        """The scores of labels in float64."""
        return self.given.astype(np.float64, copy=False)

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
        return (self.given.shape[1], 2)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": self.given.shape[1:3], "labels": self.given.shape[1:]}

    def _row(self, structure: Any) -> Ints:
        return np.stack(structure, axis=1)

    def _unpadded(self, structure: NDArray[Any], item: int) -> Any:
        return tuple(structure[: self.lengths[item] + 1].T)

    # -- questions -------------------------------------------------------------------------------------------------

    def decode(self) -> BatchResult:
        """The best trees and labels. Sums of labels and arcs are rounded: with ``arc`` items are decoded one by one."""
        if self.arc is not None:
            return super().decode()
        found = self._over(folded(self.given, self.lengths, summed=False).arc).decode()
        labels = np.argmax(_at(self.given, found.structure), axis=2)
        rows = np.stack((found.structure, np.where(found.structure >= 0, labels, -1)), axis=2)
        trees = [LabelledTree(*self._unpadded(row, b)) for b, row in enumerate(rows)]
        results = [replace(found[b], structure=tree) for b, tree in enumerate(trees)]
        return replace(found, structure=rows, results=results)

    def _together(self, rounded: bool = True) -> Floats:
        """Scores of labels and arcs, added up; in float64 unless ``rounded``."""
        own = self.given if rounded else self.label
        return own if self.arc is None else self.label + self.arc[..., None]

    def _summed(self, *, rounded: bool = True, **wanted: bool) -> tuple[DependencyBatch, Folded]:
        """The batch with the labels summed out, and what is ``wanted`` of the labels given their arcs."""
        found = folded(self._together(rounded), self.lengths, summed=True, **wanted)
        return self._over(found.arc), found

    def log_totals(self) -> Floats:
        return self._summed()[0].log_totals()

    def marginals(self) -> dict[str, Floats]:
        return self.log_partition_and_marginals()[1]

    def log_partition_and_marginals(self) -> tuple[Floats, dict[str, Floats]]:
        """Both of them by one sweep."""
        trees, labels = self._summed(shares=True)
        total, found = trees.log_partition_and_marginals()
        arcs = found["arcs"]
        spread = self._as_given(self._spread(arcs, labels.share))
        return self._as_given(total), {"arcs": self._as_given(arcs), "labels": spread}

    def _spread(self, arcs: Floats, share: Floats) -> Floats:
        """Probabilities of labels by those of arcs; in place of the shares."""
        kernels.label_folds.spread_arcs(arcs, share)
        return share

    def part_marginals(self) -> dict[str, Floats]:
        trees, labels = self._summed(shares=True)
        found = self._by_argument(trees.part_marginals(), labels.share)
        return {kind: self._as_given(own) for kind, own in found.items()}

    def part_sums(self, *, rounded: bool = True) -> tuple[Floats, dict[str, Floats]] | None:
        trees, labels = self._summed(shares=True, rounded=rounded)
        found = trees.part_sums()
        if found is None:
            return None
        uses = self._by_argument(found[1], labels.share)
        return found[0], {kind: self._as_given(own) if rounded else own for kind, own in uses.items()}

    def _by_argument(self, found: dict[str, Floats], share: Floats) -> dict[str, Floats]:
        """What is found for the batch without labels, with the labels."""
        above = {kind: own for kind, own in found.items() if kind != "arc" or self.arc is not None}
        return {"label": self._spread(found["arc"], share), **above}

    def entropy(self) -> Floats:
        trees, labels = self._summed(entropies=True)
        arcs = trees.marginals()["arcs"]
        return self._as_given(trees.entropy() + np.einsum("bhm,bhm->b", arcs, labels.entropy))

    def sample(self, k: int, *, seed: int | None = None) -> Ints:
        wanted, rng = self._wanted(k), as_generator(seed)
        trees, _ = self._summed()
        heads = trees.sample(wanted, seed=int(rng.integers(2**63)))
        out = np.full((*heads.shape, 2), -1, dtype=np.int64)
        out[..., 0] = heads
        scores = self._together()
        for i in range(wanted):
            own = _at(scores, heads[:, i]).astype(np.float64)
            most = own.max(axis=2, keepdims=True)
            upto = np.exp(own - np.where(most > -np.inf, most, 0.0)).cumsum(axis=2)
            labels = (upto <= rng.random((*upto.shape[:2], 1)) * upto[..., -1:]).sum(axis=2)
            out[:, i, :, 1] = np.where(heads[:, i] >= 0, labels, -1)
        return out


def _at(scores: Floats, heads: Ints) -> Floats:
    """(B, N, L) scores of the labels of the arcs into each word; those of some arc where there is none."""
    item, word = np.indices(heads.shape)
    found: Floats = scores[item, np.maximum(heads, 0), word]
    return found
