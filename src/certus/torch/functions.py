"""What autograd sees: sums over structures as functions of a tensor of scores, differentiable three times.

With Z the sum over structures and mu the expected uses of parts, the gradient of log Z is mu, that of mu along u its
tangent, and that of the tangent along v its curvature. Each is a sweep of certus.structures.part_sums, in float64 on
the CPU, whatever the type and device of the tensors; the answer is moved back.
"""

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
import torch
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


def to_tensor(values: Any, like: Tensor) -> Tensor:
    """Numbers as a tensor of the type and on the device of another; whole numbers stay whole."""
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if tensor.dtype == like.dtype and like.is_cpu:
        return tensor
    return tensor.to(device=like.device, dtype=like.dtype if tensor.is_floating_point() else tensor.dtype)


class Asked(Protocol):
    """Structures whose sums are asked for: see ``certus.torch.scored.Scored``."""

    @property
    def batch(self) -> Batch: ...
    @property
    def quick(self) -> bool: ...
    @property
    def parts(self) -> PartSums: ...


def _sums(scores: Tensor, asked: Asked) -> tuple[Tensor, Tensor]:
    """Log-partition (B,) and expected uses, in the shape of the scores (B, ...)."""
    if asked.quick:
        total, views = asked.batch.log_partition_and_marginals()
        uses = next(iter(views.values()))
    else:
        total, uses = asked.parts.sums(to_numpy(scores.flatten(1)))
    _check_totals(total, asked)
    return to_tensor(total, scores), to_tensor(uses.reshape(scores.shape), scores)


def log_totals(scores: Tensor, asked: Asked) -> Tensor:
    """Log-partition (B,) alone, for which there are no gradients."""
    if not asked.quick:
        return _sums(scores, asked)[0]
    total = asked.batch.log_partition()
    _check_totals(total, asked)
    return to_tensor(total, scores)


def _check_totals(total: Floats, asked: Asked) -> None:
    if not np.isfinite(total).all():
        b = int(np.flatnonzero(~np.isfinite(total))[0])
        asked.batch._check_feasible(b)
        raise InvalidInput(f"item {b} of the batch has a log-partition of {total[b]}: its scores are too large.")


class LogPartition(torch.autograd.Function):
    """Log-partition (B,) for scores (B, ...). What its gradient is made of is known beforehand."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, asked: Asked) -> Tensor:
        total, ctx.uses = _sums(scores, asked)
        ctx.asked = asked
        ctx.save_for_backward(scores)
        return total

    @staticmethod
    def backward(ctx: Any, total: Tensor) -> tuple[Tensor, None]:
        (scores,) = ctx.saved_tensors
        total = total.reshape(-1, *[1] * (scores.ndim - 1))
        uses, ctx.uses = ctx.uses, None
        if uses is not None and not torch.is_grad_enabled():
            return uses.mul_(total), None
        # The gradient is to be differentiated too, or it is not the first that is asked for.
        return total * Sums.apply(scores.flatten(1), ctx.asked)[1].reshape(scores.shape), None


class Sums(torch.autograd.Function):
    """Log-partition (B,) and expected uses (B, P) for scores (B, P)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, asked: Asked) -> tuple[Tensor, Tensor]:
        found = _sums(scores, asked)
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
