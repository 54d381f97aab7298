"""Many problems of one kind in padded arrays: what all batches share."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Ints, as_positive_int
from certus.errors import Infeasible, InvalidInput
from certus.problem import Problem
from certus.result import BatchResult


class Batch(ABC):
    """Problems of one kind, answered together: arrays in and out, with a leading axis over the items.

    ``lengths`` says how much of each item's arrays is not padding; ``workers`` is how many threads serve the batch.
    """

    def __init__(self, lengths: ArrayLike | None, items: int, longest: int, workers: int | None) -> None:
        self.lengths: Ints = _as_lengths(lengths, items, longest)
        self.workers = None if workers is None else as_positive_int("workers", workers)

    def __len__(self) -> int:
        return len(self.lengths)

    @abstractmethod
    def __getitem__(self, item: int) -> Problem[Any]:
        """One item as a problem of its own."""

    @abstractmethod
    def decode(self) -> BatchResult:
        """The best structures, with their certificates. Raises Infeasible, naming the item, if one has none."""

    def _settled(self, found: BatchResult, unproved: list[int]) -> BatchResult:
        """The results of the batch, once the items that it left unproved are decoded by themselves."""
        c, reasons = found.certificate, dict[int, str]()
        for b in unproved:
            alone = self[b].decode()
            found.structure[b, : len(alone.structure)] = alone.structure
            certificate = alone.certificate
            c.score[b], c.bound[b], c.tolerance[b] = certificate.score, certificate.bound, certificate.tolerance
            if certificate.reason is not None:
                reasons[b] = certificate.reason
        return replace(found, certificate=replace(c, reasons=reasons)) if reasons else found

    def _check_feasible(self, item: int) -> None:
        """Raise Infeasible, naming the item, if it has no structure."""
        try:
            self[item].decode()
        except Infeasible as error:
            raise Infeasible(f"item {item} of the batch: {error}") from None


def _as_lengths(lengths: ArrayLike | None, items: int, longest: int) -> Ints:
    if lengths is None:
        return np.full(items, longest, dtype=np.int64)
    array = np.asarray(lengths)
    if array.shape != (items,) or (items and array.dtype.kind not in "iu"):
        raise InvalidInput(f"lengths has shape {array.shape} and type {array.dtype}; expected {items} whole numbers.")
    wrong = np.flatnonzero((array < 0) | (array > longest))
    if len(wrong):
        raise InvalidInput(f"lengths[{wrong[0]}] is {array[wrong[0]]}; expected 0..{longest}.")
    return array.astype(np.int64)
