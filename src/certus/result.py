"""What every decoder returns: a structure, its score, and a certificate of how good it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Y = TypeVar("Y")

EPSILON = float(np.finfo(np.float64).eps)
KINDS = ("dynamic program", "combinatorial", "dual", "branch and bound", "integer program")


def rounding(terms: int, magnitude: float) -> float:
    """Bound on the float64 error of a sum of `terms` terms, none larger than `magnitude`, in any order.

    This is all a certificate's tolerance covers.
    """
    return EPSILON * max(terms, 1) ** 2 * magnitude


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proof that no structure scores more than ``bound``.

    ``duals`` is the witness for the bound when the kind needs one: for "dual" the multipliers by view name, for
    "branch and bound" the proof tree (see certus.relax.proof). A dynamic program needs none: it is run again.
    ``rank`` is k for the k-th best structure, whose bound holds for all structures but the k - 1 before it.
    """

    kind: str
    score: float
    bound: float
    tolerance: float
    duals: Any = None
    rank: int = 1
    reason: str | None = None  # why a result is not exact

    @property
    def gap(self) -> float:
        """How much better an unseen structure could be, at most."""
        return self.bound - self.score

    @property
    def exact(self) -> bool:
        """True if the structure is proved optimal (for rank k: k-th best)."""
        return self.gap <= self.tolerance


@dataclass(frozen=True, slots=True)
class Trace:
    """One row per iteration of a relaxation; empty for algorithms that do not iterate."""

    dual: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    primal: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # best so far, -inf before the first
    step: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    active: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # constraints in force

    def __len__(self) -> int:
        return len(self.dual)


@dataclass(frozen=True, slots=True)
class Solution(Generic[Y]):
    """Argmax of a subproblem under penalties: the structure and its penalised value."""

    structure: Y
    value: float


@dataclass(frozen=True, slots=True, repr=False)
class Result(Generic[Y]):
    """A structure with its score, recomputed from the input, and its certificate."""

    structure: Y
    score: float
    certificate: Certificate
    trace: Trace = field(default_factory=Trace)
    info: Mapping[str, Any] = field(default_factory=dict)  # what the method has to say: nodes, parts fixed, seconds

    @property
    def iterations(self) -> int:
        """Rounds of the relaxation; 0 for algorithms that do not iterate."""
        return len(self.trace)

    def __repr__(self) -> str:
        status = "exact" if self.certificate.exact else f"gap={self.certificate.gap:.6g}"
        bound = self.certificate.bound
        return f"Result(score={self.score:.10g}, {status}, bound={bound:.10g}, iterations={self.iterations})"


def with_proof_of(first: Result[Y], best: Result[Y]) -> Result[Y]:
    """The first of a k-best list, with the proof of a decoding that found the same score: structures may tie."""
    c = best.certificate
    proof = Certificate(c.kind, first.score, max(c.bound, first.score), c.tolerance, c.duals)
    return Result(first.structure, first.score, proof, best.trace, best.info)


def exact_result(structure: Y, score: float, value: float, tolerance: float, *, kind: str, rank: int = 1) -> Result[Y]:
    """Result of an algorithm that is exact by construction.

    ``value`` is what the algorithm found, ``score`` the same recomputed from the input: they differ by rounding only.
    """
    bound = max(score, value)
    return Result(structure, score, Certificate(kind, score, bound, tolerance, rank=rank))


@dataclass(frozen=True, slots=True)
class BatchCertificate:
    """Certificates of a batch, one entry per item; see Certificate."""

    kind: str
    score: NDArray[np.float64]
    bound: NDArray[np.float64]
    tolerance: NDArray[np.float64]

    @property
    def gap(self) -> NDArray[np.float64]:
        """How much better an unseen structure could be, at most."""
        return self.bound - self.score

    @property
    def exact(self) -> NDArray[np.bool_]:
        """True where the structure is proved optimal."""
        return self.gap <= self.tolerance


@dataclass(frozen=True, slots=True, repr=False)
class BatchResult:
    """Structures of a batch as one padded array, with their scores, recomputed from the input, and certificates."""

    structure: NDArray[np.int64]
    score: NDArray[np.float64]
    certificate: BatchCertificate

    def __repr__(self) -> str:
        return f"BatchResult({len(self.score)} items, {int(self.certificate.exact.sum())} exact)"
