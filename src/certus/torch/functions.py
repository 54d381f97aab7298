"""What autograd sees: sums over structures as functions of a tensor of scores, differentiable three times.

With Z the sum over structures and mu the expected uses of parts, the gradient of log Z is mu, that of mu along u its
tangent, and that of the tangent along v its curvature. Each is a sweep of certus.structures.part_sums. All is in
float64 on the CPU, whatever the type and device of the tensors; only answers, and gradients of tensors, are moved back.
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

from certus.batch import Batch
from certus.checks import Floats
from certus.errors import InvalidInput, NotSupported
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
    return _numbers(tensor, torch.float64)


def as_given(tensor: Tensor) -> NDArray[Any]:
    """The numbers of a tensor, as float64, but for those of float32, which kernels may read, and whole ones."""
    narrow = tensor.is_floating_point() and tensor.dtype != torch.float32
    return _numbers(tensor, torch.float64 if narrow else tensor.dtype)


def _numbers(tensor: Tensor, dtype: torch.dtype) -> NDArray[Any]:
    try:
        own = tensor.detach()
        if own.dtype != dtype or not own.is_cpu:
            own = own.to(device="cpu", dtype=dtype)
        found: NDArray[Any] = np.ascontiguousarray(own.numpy())
    except (RuntimeError, TypeError, NotImplementedError):
        raise InvalidInput(
            f"a tensor of shape {tuple(tensor.shape)} has no numbers at hand: it is sparse, of the device meta, or what"
            " torch.func, vmap and batched gradients make of one. Give dense tensors, and ask torch.autograd.grad."
        ) from None
    return found


def to_double(tensor: Tensor) -> Tensor:
    """The tensor as float64 on the CPU, in which all is computed; differentiable."""
    return tensor.to(device="cpu", dtype=torch.float64)


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


def _sums(asked: Asked, flat: Callable[[], Tensor], *, rounded: bool) -> tuple[Floats, list[Floats]]:
    """Log-partition (B,), and the expected uses of the cells of each array by each item, (B, ...), ``rounded`` to the
    type of the scores where that saves time; ``flat`` makes the scores (B, P).
    """
    found = asked.batch.part_sums(rounded=rounded)
    if found is not None:
        total, uses = found[0], [found[1][name] for name in asked.arrays]
    else:
        total, cells = asked.parts.sums(to_numpy(flat()))
        uses = asked.by_array(cells)
    _check_totals(total, asked)
    return total, uses


def log_totals(asked: Asked, arrays: Sequence[Tensor]) -> Tensor:
    """Log-partition (B,) alone, for which there are no gradients, in float64."""
    if not asked.quick:
        return torch.from_numpy(_sums(asked, lambda: asked.flat(arrays), rounded=True)[0])
    total = asked.batch.log_totals()
    _check_totals(total, asked)
    return torch.from_numpy(total)


def _check_totals(total: Floats, asked: Asked) -> None:
    if not all(map(isfinite, total.tolist())):
        b = int(np.flatnonzero(~np.isfinite(total))[0])
        asked.batch._check_feasible(b)
        raise InvalidInput(f"item {b} of the batch has a log-partition of {total[b]}: its scores are too large.")


class LogPartition(torch.autograd.Function):
    """Log-partition (B,), in float64, for arrays of scores, of items (B, ...) or of all. What its gradient is made of
    is known beforehand.
    """

    @staticmethod
    def forward(ctx: Any, asked: Asked, *arrays: Tensor) -> Tensor:
        total, uses = _sums(asked, lambda: asked.flat(arrays), rounded=True)
        ctx.asked, ctx.uses = asked, [to_tensor(own, like) for own, like in zip(uses, arrays, strict=True)]
        ctx.save_for_backward(*arrays)
        return torch.from_numpy(total)

    @staticmethod
    def backward(ctx: Any, total: Tensor) -> tuple[Tensor | None, ...]:
        asked, uses, ctx.uses = ctx.asked, ctx.uses, None
        again = torch.is_grad_enabled()
        if uses is None or again:
            # The gradient is to be differentiated too, or it is not the first that is asked for.
            uses = asked.by_array(Sums.apply(to_double(asked.flat(ctx.saved_tensors)), asked)[1])
        as_they_are = not again and total.tolist() == [1.0] * len(total)  # the gradient of a sum over the items
        found: list[Tensor | None] = [None]
        for own, like, wanted in zip(uses, asked.arrays.values(), ctx.needs_input_grad[1:], strict=True):
            if not wanted:
                found.append(None)
                continue
            if not as_they_are:
                factor = total.to(own).reshape(-1, *[1] * (own.ndim - 1))
                own = own * factor if again else own.mul_(factor)
            found.append((own.sum(dim=0) if own.ndim > like.ndim else own).to(like))
        return tuple(found)


class Sums(torch.autograd.Function):
    """Log-partition (B,) and expected uses (B, P) for scores (B, P), all in float64 on the CPU."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, asked: Asked) -> tuple[Tensor, Tensor]:
        total, uses = _sums(asked, lambda: scores, rounded=False)
        flat = [own.reshape(len(own), -1) for own in uses]
        found = torch.from_numpy(total), torch.from_numpy(np.concatenate(flat, axis=1) if len(flat) > 1 else flat[0])
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
        return torch.from_numpy(parts.tangents(to_numpy(scores), to_numpy(along)))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        scores, along = ctx.saved_tensors
        theta, u, v = (to_numpy(t) for t in (scores, along, gradient))
        found = (ctx.parts.curvatures(theta, u, v), ctx.parts.tangents(theta, v))
        second, first = (Last.apply(torch.from_numpy(values), scores, along, gradient) for values in found)
        return second, first, None


class Last(torch.autograd.Function):
    """A derivative that has none itself: asked for one, it says so, where it would be taken for a constant."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, *of: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        raise NotSupported(
            "log-partitions have derivatives up to the third, marginals and entropies up to the second; a further one "
            "is asked for."
        )
