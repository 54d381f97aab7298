"""What autograd sees: sums over structures as functions of a tensor of scores, differentiable three times.

With Z the sum over structures and mu the expected uses of parts, the gradient of log Z is mu, that of mu along u its
tangent, and that of the tangent along v its curvature. Each is a sweep of certus.structures.part_sums, in float64 on
the CPU, whatever the type and device of the tensors; the answer is moved back.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import isfunction
from math import isfinite
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from certus.batch import Batch
from certus.checks import Floats
from certus.errors import InvalidInput
from certus.structures.part_sums import PartSums

P = ParamSpec("P")
T = TypeVar("T")


def eager(function: Callable[P, T]) -> Callable[P, T]:
    """The function as one that torch.compile calls, and does not look into; without importing its compiler."""

    @wraps(function)
    def called(*arguments: P.args, **options: P.kwargs) -> T:
        plain = torch.compiler.disable(function) if torch.compiler.is_compiling() else function
        return plain(*arguments, **options)

    return called


class Eager:
    """A class whose public methods, and those of its subclasses, are called, not compiled; so are its subclasses."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        made = "__init__" if cls.__base__ is not Eager else ""  # what only subclasses call needs no care
        for name, value in list(vars(cls).items()):
            if isfunction(value) and (name == made or not name.startswith("_")):
                setattr(cls, name, eager(value))


def to_numpy(tensor: Tensor) -> Floats:
    """The numbers of a tensor of any type, on any device, as float64."""
    plain = tensor.detach()
    if plain.dtype != torch.float64 or not plain.is_cpu:
        plain = plain.to(device="cpu", dtype=torch.float64)
    found: Floats = np.ascontiguousarray(plain.numpy())
    return found


def scores_of(tensor: Tensor) -> NDArray[Any]:
    """The numbers of a tensor as scores of a batch: float32 stays float32, which kernels may read as it is."""
    plain = tensor.detach()
    if plain.dtype != torch.float32 or not plain.is_cpu:
        return to_numpy(plain)
    found: NDArray[Any] = np.ascontiguousarray(plain.numpy())
    return found


def to_tensor(values: Any, like: Tensor) -> Tensor:
    """Numbers as a tensor of the type and on the device of another; whole numbers stay whole."""
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if tensor.dtype == like.dtype and like.is_cpu:
        return tensor
    return tensor.to(device=like.device, dtype=like.dtype if tensor.is_floating_point() else tensor.dtype)


class Asked(Protocol):
    """Structures whose sums are asked for: see ``certus.torch.scored.Scored``."""

    @property
    def arrays(self) -> Mapping[str, Tensor]: ...
    @property
    def batch(self) -> Batch: ...
    @property
    def quick(self) -> bool: ...
    @property
    def parts(self) -> PartSums: ...
    def flat(self, arrays: Sequence[Tensor]) -> Tensor: ...
    def by_array(self, values: Any) -> list[Any]: ...


def _sums(asked: Asked, flat: Callable[[], Tensor]) -> tuple[Floats, list[Floats]]:
    """Log-partition (B,), and the expected uses of the cells of each array by each item, (B, ...); ``flat`` makes the
    scores (B, P).
    """
    found = asked.batch.part_sums()
    if found is not None:
        total, uses = found[0], [found[1][name] for name in asked.arrays]
    else:
        total, cells = asked.parts.sums(to_numpy(flat()))
        uses = asked.by_array(cells)
    _check_totals(total, asked)
    return total, uses


def log_totals(asked: Asked, arrays: Sequence[Tensor]) -> Tensor:
    """Log-partition (B,) alone, for which there are no gradients."""
    if not asked.quick:
        return to_tensor(_sums(asked, lambda: asked.flat(arrays))[0], arrays[0])
    total = asked.batch.log_partition()
    _check_totals(total, asked)
    return to_tensor(total, arrays[0])


def _check_totals(total: Floats, asked: Asked) -> None:
    if not all(map(isfinite, total.tolist())):
        b = int(np.flatnonzero(~np.isfinite(total))[0])
        asked.batch._check_feasible(b)
        raise InvalidInput(f"item {b} of the batch has a log-partition of {total[b]}: its scores are too large.")


class LogPartition(torch.autograd.Function):
    """Log-partition (B,) for arrays of scores, of items (B, ...) or of all. What its gradient is made of is known
    beforehand.
    """

    @staticmethod
    def forward(ctx: Any, asked: Asked, *arrays: Tensor) -> Tensor:
        total, uses = _sums(asked, lambda: asked.flat(arrays))
        ctx.asked, ctx.uses = asked, [to_tensor(own, like) for own, like in zip(uses, arrays, strict=True)]
        ctx.save_for_backward(*arrays)
        return to_tensor(total, arrays[0])

    @staticmethod
    def backward(ctx: Any, total: Tensor) -> tuple[Tensor | None, ...]:
        asked, uses, ctx.uses = ctx.asked, ctx.uses, None
        again = torch.is_grad_enabled()
        if uses is None or again:
            # The gradient is to be differentiated too, or it is not the first that is asked for.
            uses = asked.by_array(Sums.apply(asked.flat(ctx.saved_tensors), asked)[1])
        as_they_are = not again and total.tolist() == [1.0] * len(total)  # the gradient of a sum over the items
        found: list[Tensor | None] = [None]
        for own, like, wanted in zip(uses, asked.arrays.values(), ctx.needs_input_grad[1:], strict=True):
            if not wanted:
                found.append(None)
                continue
            if not as_they_are:
                factor = total.reshape(-1, *[1] * (own.ndim - 1))
                own = own * factor if again else own.mul_(factor)
            found.append(own.sum(dim=0) if own.ndim > like.ndim else own)
        return tuple(found)


class Sums(torch.autograd.Function):
    """Log-partition (B,) and expected uses (B, P) for scores (B, P)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, asked: Asked) -> tuple[Tensor, Tensor]:
        total, uses = _sums(asked, lambda: scores)
        flat = [own.reshape(len(own), -1) for own in uses]
        found = to_tensor(total, scores), to_tensor(np.concatenate(flat, axis=1) if len(flat) > 1 else flat[0], scores)
        ctx.asked = asked
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(scores, found[1])
        return found

    @staticmethod
    def backward(ctx: Any, total: Tensor | None, uses: Tensor | None) -> tuple[Tensor | None, None]:
        scores, expected = ctx.saved_tensors
        found = None if total is None else total[:, None] * expected
        if uses is not None:
            tangent = Tangents.apply(scores, uses, ctx.asked.parts)
            found = tangent if found is None else found + tangent
        return found, None


class Tangents(torch.autograd.Function):
    """Derivative of the expected uses along a direction (B, P): the covariance of uses, times the direction."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, along: Tensor, parts: PartSums) -> Tensor:
        ctx.parts = parts
        ctx.save_for_backward(scores, along)
        return to_tensor(parts.tangents(to_numpy(scores), to_numpy(along)), scores)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        scores, along = ctx.saved_tensors
        theta, u, v = (to_numpy(t) for t in (scores, along, gradient))
        second = to_tensor(ctx.parts.curvatures(theta, u, v), scores)
        return second, to_tensor(ctx.parts.tangents(theta, v), scores), None
