"""Batches of structures over tensors: their scores, and what is summed over all of them, differentiable."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from certus.checks import Ints, shown
from certus.errors import InvalidInput
from certus.result import BatchCertificate
from certus.structures.part_sums import ArrayKind, PartSums, Shape
from certus.torch.functions import Eager, LogPartition, Sums, as_given, log_totals, to_double, to_tensor

Views = dict[str, Tensor]
PADDING = ("lengths", "mask", "second_lengths", "second_mask")


class Decoded(NamedTuple):
    """Best structures, padded with -1; their scores, differentiable; which are proved; certificates, in numpy."""

    structure: Tensor  # (B, ...)
    score: Tensor  # (B,)
    exact: Tensor  # (B,)
    certificate: BatchCertificate


class Ranked(NamedTuple):
    """The k best structures of each item, padded with -1; their scores, -inf where an item has fewer."""

    structure: Tensor  # (B, k, ...)
    score: Tensor  # (B, k)


class Scored(Eager):
    """Structures of one kind, scored by tensors with a leading axis over the items of a batch.

    Tensors are of any floating type, on any device. All is computed in float64 on the CPU; answers are moved back.
    """

    kind: ArrayKind

    def __init__(self, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        lead = next(iter(arrays))
        given = {name: array for name, array in arrays.items() if array is not None or name == lead}
        self.arrays = {name: as_scores(name, array) for name, array in given.items()}
        self.first = self.arrays[lead]
        for name, tensor in list(self.arrays.items())[1:]:
            check_together(name, tensor, lead, self.first)
        self.options = {name: _as_option(value) for name, value in options.items() if value is not None}
        self.batch = self.kind.make(**{name: as_given(tensor) for name, tensor in self.arrays.items()}, **self.options)

    def __len__(self) -> int:
        return len(self.batch)

    def _by_item(self, name: str) -> bool:
        return self.kind.by_item(name, self.arrays[name].ndim)

    @property
    def _view(self) -> str:
        """The view of the cells of the first array."""
        return next(iter(self.batch.views))

    @property
    def _lengths(self) -> dict[str, Ints]:
        """The lengths of items, by the names of arguments."""
        return {"lengths": self.batch.lengths}

    @property
    def scores(self) -> Tensor:
        """(B, P) all scores of each item, array after array. Not kept: who asks may want gradients or not."""
        return self.flat(list(self.arrays.values()))

    def flat(self, arrays: Sequence[Tensor]) -> Tensor:
        """(B, P) the scores of each item in such arrays, array after array."""
        flat = [
            tensor.flatten(1) if self._by_item(name) else tensor.reshape(1, -1).expand(len(self), -1)
            for name, tensor in zip(self.arrays, arrays, strict=True)
        ]
        return torch.cat(flat, dim=1) if len(flat) > 1 else flat[0]

    def by_array(self, values: Any) -> list[Any]:
        """What (B, P) holds for the cells of each array, (B, ...); a tensor, or an array."""
        found, start = [], 0
        for shape in self.parts.shapes:
            end = start + prod(shape.size)
            found.append(values[:, start:end].reshape(len(self), *shape.size))
            start = end
        return found

    @property
    def quick(self) -> bool:
        """Whether the batch has kernels for log-partitions alone."""
        return type(self.batch) in self.kind.quick

    @cached_property
    def parts(self) -> PartSums:
        """Sums over the structures, by the cells of the arrays."""
        shapes = [
            Shape(name, self._by_item(name), tuple(tensor.shape[1:] if self._by_item(name) else tensor.shape))
            for name, tensor in self.arrays.items()
        ]
        options = {name: value for name, value in self.options.items() if name not in PADDING}
        return (self.kind.sums or PartSums)(
            self.kind, shapes, dict(zip("nm", self._lengths.values(), strict=False)), options
        )

    def taken(self, items: Ints, shift: Tensor | None = None, temperature: float = 1.0) -> Self:
        """Some of the items, in any number and order, with ``shift`` added to their first array; all over a number.

        What is shifted or divided is in float64.
        """
        index = torch.from_numpy(items).to(self.first.device)
        arrays = {name: t[index] if self._by_item(name) else t for name, t in self.arrays.items()}
        if shift is not None or temperature != 1.0:
            arrays = {name: to_double(tensor) for name, tensor in arrays.items()}
        if shift is not None:
            lead = next(iter(arrays))
            if self.kind.symmetric:
                above = torch.triu(shift, 1)
                shift = above + above.transpose(1, 2)
            arrays[lead] = arrays[lead] + shift.to(arrays[lead])
        if temperature != 1.0:
            arrays = {name: tensor / temperature for name, tensor in arrays.items()}
        options = {name: value for name, value in self.options.items() if name not in PADDING}
        own = {name: options[name][items] for name in self.kind.own}
        lengths = {name: value[items] for name, value in self._lengths.items()}
        other = type(self).__new__(type(self))
        other.kind = self.kind
        Scored.__init__(other, arrays, options | own | lengths)
        return other

    # -- sums ------------------------------------------------------------------------------------------------------

    def _sums(self, scores: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Log-partition and expected uses of all cells, in float64; for the scores, if they are at hand."""
        found: tuple[Tensor, Tensor] = Sums.apply(to_double(self.scores) if scores is None else scores, self)
        return found

    def _log_partition(self) -> Tensor:
        arrays = list(self.arrays.values())
        wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in arrays)
        found: Tensor = LogPartition.apply(self, *arrays) if wanted else log_totals(self, arrays)
        return found

    def log_partition(self) -> Tensor:
        """Log of the sum of exp(score) over the structures of each item, (B,)."""
        return self._log_partition().to(self.first)

    def marginals(self) -> Views:
        """For each view, the probability of each part, (B, ...)."""
        return self._answers(self._sums()[1])

    def entropy(self) -> Tensor:
        """Entropy, in nats, of the distribution proportional to exp(score) of each item, (B,)."""
        scores = to_double(self.scores)
        total, uses = self._sums(scores)
        return (total - _expected(scores, uses)).to(self.first)

    def log_prob(self, structure: Any) -> Tensor:
        """Log-probabilities of one structure of each item, (B,), given as ``decode`` gives them."""
        return (self._score(structure) - self._log_partition()).to(self.first)

    def cross_entropy(self, other: Self) -> Tensor:
        """What -log_prob by ``other`` is expected to be for structures drawn from these, (B,)."""
        self._check_alike(other)
        return (other._log_partition() - _expected(to_double(other.scores), self._sums()[1])).to(self.first)

    def kl(self, other: Self) -> Tensor:
        """The cross-entropy less the entropy, (B,): Kullback-Leibler divergence of these from ``other``."""
        self._check_alike(other)
        scores = to_double(self.scores)
        total, uses = self._sums(scores)
        gain = _expected(scores, uses) - _expected(to_double(other.scores), uses)
        return (gain - total + other._log_partition()).to(self.first)

    def _check_alike(self, other: Any) -> None:
        if type(self) is not type(other):
            raise InvalidInput(f"the other is {shown(other)}; expected {type(self).__name__}, as these are.")
        ours, theirs = (({n: tuple(t.shape) for n, t in s.arrays.items()}, s._plain_options()) for s in (self, other))
        if ours != theirs:
            raise InvalidInput(
                f"{type(self).__name__} of {_told(*ours)} and of {_told(*theirs)} have different structures; expected "
                "the same shapes, lengths and options."
            )

    def _plain_options(self) -> dict[str, Any]:
        """Lengths and options, to be compared."""
        options = {name: value for name, value in self.options.items() if name not in PADDING}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in {**self._lengths, **options}.items()
        }

    # -- structures ------------------------------------------------------------------------------------------------

    def _views(self, uses: Tensor) -> Views:
        """Uses of cells, (..., P) or of the first array alone, in the shapes of the views."""
        cells = uses[..., : prod(self.first.shape[1:])]
        return {self._view: cells.reshape(*uses.shape[:-1], *self.first.shape[1:])}

    def _answers(self, uses: Tensor) -> Views:
        """The views, in the type and on the device of the scores."""
        return {view: values.to(self.first) for view, values in self._views(uses).items()}

    def _given(self, structure: Any) -> Ints:
        """One structure of each item, in numpy."""
        given = as_given(structure) if isinstance(structure, Tensor) else np.asarray(structure)
        wanted = (len(self), *self.batch.structure_shape)
        if given.ndim != len(wanted) or len(given) != len(self) or given.dtype.kind not in "iu":
            raise InvalidInput(
                f"the structures have shape {given.shape} and type {given.dtype}; expected whole numbers of shape "
                f"{wanted}, as decode() gives them."
            )
        return given.astype(np.int64)

    def cells(self, structures: Ints, present: Any = True) -> Tensor:
        """(B, k, any) the cells that structures (B, k, ...) use, P for none; none if not ``present``."""
        there = np.broadcast_to(present, structures.shape[:2])
        rows = {(b, k): self._cells(structures[b, k], b) for b, k in zip(*np.nonzero(there), strict=True)}
        longest = max(map(len, rows.values()), default=0)
        found = np.full((*structures.shape[:2], longest), self.parts.size)
        for place, cells in rows.items():
            found[place][: len(cells)] = cells
        return torch.from_numpy(found)

    def _cells(self, structure: Ints, item: int) -> Ints:
        try:
            return self.parts.cells(self.batch._unpadded(structure, item), item)
        except InvalidInput as error:
            raise InvalidInput(f"item {item} of the batch: {error}") from None

    def scores_of(self, cells: Tensor) -> Tensor:
        """(B, k) scores of structures given by their cells, in float64."""
        used = cells.flatten(1)
        there = used < self.parts.size
        found = to_double(self.scores.gather(1, torch.where(there, used, 0).to(self.first.device)))
        return torch.where(there, found, 0.0).reshape(cells.shape).sum(dim=-1)

    def uses_of(self, cells: Tensor) -> Tensor:
        """(B, k, P) how often structures given by their cells use each, in float64."""
        used = torch.zeros((*cells.shape[:2], self.parts.size + 1), dtype=torch.float64)
        return used.scatter_add_(2, cells, torch.ones_like(cells, dtype=used.dtype))[..., :-1]

    def _score(self, structure: Any) -> Tensor:
        return self.scores_of(self.cells(self._given(structure)[:, None]))[:, 0]

    def score(self, structure: Any) -> Tensor:
        """Scores of one structure of each item, (B,), given as ``decode`` gives them."""
        return self._score(structure).to(self.first)

    def decode(self) -> Decoded:
        """The best structures, with their certificates; their scores are differentiable."""
        found = self.batch.decode()
        exact = torch.from_numpy(found.certificate.exact).to(self.first.device)
        return Decoded(to_tensor(found.structure, self.first), self.score(found.structure), exact, found.certificate)

    def kbest(self, k: int) -> Ranked:
        """The k best structures of each item; their scores are differentiable."""
        found = self.batch.kbest(k)
        present = found.score > -np.inf
        score = self.scores_of(self.cells(found.structure, present))
        ranked = score.masked_fill(torch.from_numpy(~present), -torch.inf)
        return Ranked(to_tensor(found.structure, self.first), ranked.to(self.first))

    def sample(self, k: int, *, seed: int | None = None) -> Tensor:
        """k structures of each item drawn with probability proportional to exp(score), (B, k, ...)."""
        return to_tensor(self.batch.sample(k, seed=seed), self.first)

    def max_marginals(self) -> Views:
        """For each view, the best score of a structure that uses each part, (B, ...); not differentiable."""
        return {view: to_tensor(values, self.first) for view, values in self.batch.max_marginals().items()}


def as_scores(name: str, values: Any) -> Tensor:
    """Return values if they are a tensor of numbers that may have gradients."""
    if values is None:
        raise InvalidInput(f"{name} is None; expected a tensor with a leading axis over the items of the batch.")
    if not isinstance(values, Tensor) or not values.is_floating_point():
        found = values.dtype if isinstance(values, Tensor) else type(values).__name__
        raise InvalidInput(
            f"{name} is {found}; certus.torch takes tensors of floating types, certus arrays: use torch.as_tensor, or "
            f"{name}.float()."
        )
    return values


def check_together(name: str, tensor: Tensor, lead: str, first: Tensor) -> None:
    """Two tensors are of one type and on one device."""
    if (tensor.device, tensor.dtype) != (first.device, first.dtype):
        raise InvalidInput(
            f"{name} is {tensor.dtype} on {tensor.device}, and {lead} is {first.dtype} on {first.device}; expected one "
            f"type and one device: use {name}.to({lead})."
        )


def _as_option(value: Any) -> Any:
    return as_given(value) if isinstance(value, Tensor) else value


def _told(shapes: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Shapes and options in words, cut short."""
    told = ", ".join(f"{name} {value}" for name, value in {**shapes, **options}.items())
    return told if len(told) < 200 else told[:200] + " ..."


def _expected(scores: Tensor, uses: Tensor) -> Tensor:
    """(B,) sum of scores times uses; cells that are not used count 0, whatever they score."""
    forbidden = scores.detach() == -torch.inf
    total = (uses * torch.where(torch.isfinite(scores), scores, 0.0)).sum(dim=1)
    return total.masked_fill((forbidden & (uses.detach() > 0)).any(dim=1), -torch.inf)
