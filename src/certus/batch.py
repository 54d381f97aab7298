"""Many problems of one kind in padded arrays: what all batches share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus.checks import Floats, Ints, as_generator, as_numbers, as_positive_int, as_wanted
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.problem import Index, Problem
from certus.result import KINDS, BatchCertificate, BatchRanks, BatchResult, Certificate
from certus.threads import in_order, thread_count

T = TypeVar("T")
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class Batch(ABC):
    """Problems of one kind, answered together: arrays in and out, with a leading axis over the items.

    ``lengths`` says how much of each item's arrays is not padding, or ``mask`` does, true where it is not; ``workers``
    is how many threads serve the batch. Sums, max-marginals and scores come in float32 if the scores were given so, and
    in float64 otherwise; all is computed in float64, certificates too. Padding is -1 in structures, 0 in marginals,
    -inf in max-marginals. An error names the item.

    Questions that a kind has no kernel for are asked item by item.
    """

    kind: ClassVar[str] = "dynamic program"  # of the certificates
    padded_axes: ClassVar[int] = 1  # of structures
    steps_alone: float = 0.0  # about how many steps items take that are asked one by one: threads serve long ones
    dtype: np.dtype[Any] = FLOAT64

    def __init__(
        self,
        lengths: ArrayLike | None,
        items: int,
        longest: int,
        workers: int | None,
        *,
        mask: ArrayLike | None = None,
    ) -> None:
        self.lengths: Ints = as_lengths(lengths, items, longest, mask=mask)
        self.workers = None if workers is None else as_positive_int("workers", workers)

    def __len__(self) -> int:
        return len(self.lengths)

    @abstractmethod
    def __getitem__(self, item: int) -> Problem[Any]:
        """One item as a problem of its own."""

    @property
    @abstractmethod
    def structure_shape(self) -> Index:
        """The shape of a structure of the longest item, as an array."""

    @property
    @abstractmethod
    def views(self) -> Mapping[str, Index]:
        """The shapes of the views of the longest item."""

    # -- questions -------------------------------------------------------------------------------------------------

    def decode(self) -> BatchResult:
        """The best structures, with their certificates. Raises Infeasible, naming the item, if one has none."""
        found = self._each(lambda problem, _: problem.decode())
        proofs = [r.certificate for r in found]
        return replace(self._result([self._row(r.structure) for r in found], proofs), results=found)

    def kbest(self, k: int) -> BatchRanks:
        """The k best structures of each item, (B, k, ...), with scores (B, k), -inf where an item has fewer."""
        wanted = self._wanted(k)
        found = self._each(lambda problem, _: problem.kbest(wanted))
        structure = np.full((len(self), wanted, *self.structure_shape), -1, dtype=np.int64)
        score, exact = np.full((len(self), wanted), -np.inf), np.zeros((len(self), wanted), dtype=bool)
        for b, results in enumerate(found):
            structure[b, : len(results)] = self._padded([self._row(r.structure) for r in results])
            score[b, : len(results)] = [r.score for r in results]
            exact[b, : len(results)] = [r.certificate.exact for r in results]
        return BatchRanks(structure, score, exact, found)

    def sample(self, k: int, *, seed: int | None = None) -> Ints:
        """k structures of each item drawn with probability proportional to exp(score), (B, k, ...)."""
        wanted, seeds = self._wanted(k), as_generator(seed).integers(0, 2**63, len(self)).tolist()
        drawn = self._each(lambda problem, b: problem.sample(wanted, seed=seeds[b]))
        rows = [self._padded([self._row(y) for y in structures]) for structures in drawn]
        return np.stack(rows) if rows else np.empty((0, wanted, *self.structure_shape), dtype=np.int64)

    def log_partition(self) -> Floats:
        """Log of the sum of exp(score) over the structures of each item, (B,); -inf where there is none."""
        return self._as_given(self.log_totals())

    def log_totals(self) -> Floats:
        """What ``log_partition`` gives, in float64 whatever the type of the scores."""
        return np.array(self._each(lambda problem, _: problem.log_partition()), dtype=np.float64)

    def marginals(self) -> dict[str, Floats]:
        """For each view, the probability of each part of each item, (B, ...)."""
        return self._padded_views(self._each(lambda problem, _: problem.marginals()), 0.0)

    def log_partition_and_marginals(self) -> tuple[Floats, dict[str, Floats]]:
        """Both of them in one call."""
        found = self._each(lambda problem, _: (problem.log_partition(), problem.marginals()))
        total = np.array([value for value, _ in found], dtype=np.float64)
        return self._as_given(total), self._padded_views([views for _, views in found], 0.0)

    def entropy(self) -> Floats:
        """Entropy, in nats, of the distribution proportional to exp(score) of each item, (B,)."""
        return self._as_given(np.array(self._each(lambda problem, _: problem.entropy()), dtype=np.float64))

    def max_marginals(self) -> dict[str, Floats]:
        """For each view, the best score of a structure that uses each part of each item, (B, ...)."""
        return self._padded_views(self._each(lambda problem, _: problem.max_marginals()), -np.inf)

    def score(self, structure: ArrayLike) -> Floats:
        """Scores of one structure of each item, (B,), given as ``decode`` gives them."""
        given = as_numbers("structure", structure)
        if given.ndim < 2 or given.dtype.kind not in "iu":
            raise InvalidInput(f"structure has shape {given.shape}, of {given.dtype}; give it as decode() gives it.")
        if len(given) != len(self):
            raise InvalidInput(f"there are {len(given)} structures; expected one for each of {len(self)} items.")
        found = self._each(lambda problem, b: problem.score(self._unpadded(given[b], b)))
        return self._as_given(np.array(found, dtype=np.float64))

    def part_marginals(self) -> dict[str, Floats]:
        """For each array of scores, by its name, the expected uses of each cell by each item, (B, ...).

        These are the derivatives of ``log_partition()``. An array that all items share has them for each item.
        """
        raise NotSupported(f"{type(self).__name__} does not answer part_marginals().")

    def part_sums(self, *, rounded: bool = True) -> tuple[Floats, dict[str, Floats]] | None:
        """Log-partitions in float64, and what ``part_marginals`` gives, in float64 too unless ``rounded`` to the type
        of the scores, by one kernel; None where no kernel is for that.
        """
        return None

    def _wanted(self, k: int) -> int:
        """How many structures of each item are asked for: with their scores they fit this machine."""
        return as_wanted(k, prod(self.structure_shape) + 1, len(self))

    # -- arrays of answers -----------------------------------------------------------------------------------------

    def _unpadded(self, structure: NDArray[Any], item: int) -> NDArray[Any]:
        """A row of structures without its padding: here all rows of entries that are -1."""
        used = structure.reshape(len(structure), -1) if structure.size else np.empty((0, 1))
        return structure[: int((used >= 0).all(axis=1).sum())]

    def _result(self, structures: list[Ints], proofs: list[Certificate]) -> BatchResult:
        """Structures, as arrays, and their certificates, put together."""
        score, bound, tolerance = np.array([(c.score, c.bound, c.tolerance) for c in proofs]).reshape(-1, 3).T
        reasons = {b: c.reason for b, c in enumerate(proofs) if c.reason is not None}
        kind = max((c.kind for c in proofs), key=KINDS.index, default=self.kind)
        certificate = BatchCertificate(kind, score, bound, tolerance, reasons)
        sizes = np.array([len(y) for y in structures], dtype=np.int64)
        return BatchResult(self._padded(structures), score.copy(), certificate, sizes, self.padded_axes)

    def _row(self, structure: Any) -> Ints:
        """A structure as an array."""
        return np.array(structure, dtype=np.int64).reshape(-1, *self.structure_shape[1:])

    def _padded(self, structures: list[Ints]) -> Ints:
        out = np.full((len(structures), *self.structure_shape), -1, dtype=np.int64)
        for row, structure in zip(out, structures, strict=True):
            row[tuple(map(slice, structure.shape))] = structure
        return out

    def _padded_views(
        self, found: list[dict[str, Floats]], rest: float, shapes: Mapping[str, Index] | None = None
    ) -> dict[str, Floats]:
        """Arrays of each item, by their names, with ``rest`` in the padding; of the shapes of views by default."""
        sizes = self.views if shapes is None else shapes
        out = {name: np.full((len(self), *shape), rest, dtype=self.dtype) for name, shape in sizes.items()}
        for b, own in enumerate(found):
            for name, values in own.items():
                out[name][b][tuple(map(slice, values.shape))] = values
        return out

    def _as_given(self, values: Floats) -> Floats:
        """Values of the type that scores were given in."""
        return values.astype(self.dtype, copy=False)

    def _each(self, ask: Callable[[Problem[Any], int], T]) -> list[T]:
        """What is asked of every item, with its number; an error names the item."""

        def asked(b: int) -> T:
            return self._named(b, lambda item: ask(self[item], item))

        return list(in_order(asked, range(len(self)), thread_count(self.workers, self.steps_alone)))

    def _named(self, item: int, ask: Callable[[int], T]) -> T:
        """What is asked of one item, by its number; an error names it."""
        try:
            return ask(item)
        except (Infeasible, InvalidInput) as error:
            raise type(error)(f"item {item} of the batch: {error}") from None

    def _settled(self, found: BatchResult, unproved: list[int]) -> BatchResult:
        """The results of the batch, once the items that it left unproved are decoded by themselves."""
        c, reasons = found.certificate, dict[int, str]()
        for b in unproved:
            alone = self._named(b, lambda item: self[item].decode())
            found.structure[b, : len(alone.structure)] = alone.structure
            certificate = alone.certificate
            c.score[b], c.bound[b], c.tolerance[b] = certificate.score, certificate.bound, certificate.tolerance
            if certificate.reason is not None:
                reasons[b] = certificate.reason
        return replace(found, certificate=replace(c, reasons=reasons)) if reasons else found

    def _check_feasible(self, item: int) -> None:
        """Raise Infeasible, naming the item, if it has no structure."""
        self._named(item, lambda b: self[b].decode())


def type_of(scores: ArrayLike) -> np.dtype[Any]:
    """The type of answers about these scores: float32 if they are, else float64."""
    return FLOAT32 if np.asarray(scores).dtype == FLOAT32 else FLOAT64


def as_lengths(
    lengths: ArrayLike | None, items: int, longest: int, *, mask: ArrayLike | None = None, name: str = ""
) -> Ints:
    """The lengths of items, given as such or by a mask; InvalidInput, naming ``<name>lengths``, for what is neither."""
    if mask is not None:
        if lengths is not None:
            raise InvalidInput(f"{name}lengths and {name}mask are given; expected one of them.")
        return _lengths_of(mask, items, longest, f"{name}mask")
    if lengths is None:
        same = np.empty(items, dtype=np.int64)
        same.fill(longest)
        return same
    array = as_numbers(f"{name}lengths", lengths)
    if array.shape != (items,) or (items and array.dtype.kind not in "iu"):
        raise InvalidInput(
            f"{name}lengths has shape {array.shape} and type {array.dtype}; expected {items} whole numbers."
        )
    wrong = np.flatnonzero((array < 0) | (array > longest))
    if len(wrong):
        raise InvalidInput(
            f"{name}lengths[{wrong[0]}] is {array[wrong[0]]}; expected 0..{longest}, which is what the arrays hold."
        )
    return array.astype(np.int64)


def _lengths_of(mask: ArrayLike, items: int, longest: int, name: str) -> Ints:
    array = as_numbers(name, mask)
    if array.shape != (items, longest) or array.dtype != np.bool_:
        raise InvalidInput(
            f"{name} has shape {array.shape} and type {array.dtype}; expected {(items, longest)} of true and false, "
            "without the root, or any position beyond the words."
        )
    lengths: Ints = array.sum(axis=1)
    wrong = np.flatnonzero((array != (np.arange(longest) < lengths[:, None])).any(axis=1))
    if len(wrong):
        raise InvalidInput(f"{name}[{wrong[0]}] is true after it was false; expected padding at the end alone.")
    return lengths
