"""What every decoder returns: a structure, its score, a certificate of how good it is; and what is known of sums."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from certus.certificates.rounding import EXACT, MASK, WIDTH, allowed, of_log_sum, too_wide
from certus.checks import as_numbers, as_words
from certus.draw import Drawn, Picture, arcs, curves, row, stacked

Y = TypeVar("Y")

KINDS = ("dynamic program", "combinatorial", "dual", "branch and bound", "integer program")


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proof that, in exact arithmetic, no structure scores more than ``bound`` + ``tolerance``.

    ``tolerance`` covers rounding and nothing else; see certus.certificates.rounding. ``duals`` is the witness for the
    bound when the kind needs one: for "dual" the multipliers by view name, for "branch and bound" the proof tree (see
    certus.relax.proof). A dynamic program needs none: it is run again. ``rank`` is k for the k-th best structure, whose
    bound holds for all structures but the k - 1 ``better`` ones before it; if ``distinct``, for all but those that
    yield the same as one of these (``Problem.yielded``). ``floor``, if not None, is a score below
    which scores were read as -inf: they are too low for any structure that scores as much as this one. ``reason`` says
    why a result is not exact although nothing better was found. ``witness`` is what checking the bound takes beyond the
    problem, where decoding does not leave it in ``duals``; it is made when a result is saved or verified.
    """

    kind: str
    score: float
    bound: float
    tolerance: float
    duals: Any = None
    rank: int = 1
    floor: float | None = None
    reason: str | None = None
    better: tuple[Any, ...] = ()
    witness: Any = None
    distinct: bool = False

    @property
    def gap(self) -> float:
        """How much better an unseen structure could be, at most, rounding aside."""
        return self.bound - self.score

    @property
    def exact(self) -> bool:
        """True if the structure is proved optimal (for rank k: k-th best): nothing beats score + tolerance."""
        return self.reason is None and 2.0 * self.gap <= self.tolerance

    def in_words(self) -> str:
        """What is proved, and how, as a sentence or two."""
        place = "" if self.rank == 1 else f" but the {self.rank - 1} before it"
        how = _HOW.get(self.kind, self.kind)
        if self.exact:
            return f"Proved: it scores {self.score:.10g}, and no structure{place} scores more. {how}."
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"Not proved{why}: it scores {self.score:.10g}, no structure{place} scores more than {self.bound:.10g}, "
            f"so a better one could gain {self.gap:.6g} at most. {how}."
        )


_HOW = {
    "dynamic program": "A dynamic program looked at all structures at once",
    "combinatorial": "A combinatorial algorithm, which is exact, found it",
    "dual": "Multipliers show it: the parts, each solved alone under them, reach no more together",
    "branch and bound": "Multipliers bound every branch of a search, and none reaches more",
    "integer program": "An integer program found it, and bounds of our own confirm it",
}


@dataclass(frozen=True, slots=True)
class Trace(Drawn):
    """One row per round of a relaxation, and one per node of the search that follows; empty if nothing iterates.

    ``dual`` bounds every structure: the dual value of the round, or, in a search, the largest bound that is left.
    ``primal`` is the best score so far and ``round_primal`` the best of that round alone: -inf where there was none,
    nan where it is not known. ``step`` is how far the multipliers moved then, 0 if they did not. ``active`` is the
    number of constraints in force, those that the multipliers are on.
    """

    dual: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    primal: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    step: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    active: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    round_primal: NDArray[np.float64] = field(default=None)  # type: ignore[arg-type]  # nan if left out

    def __post_init__(self) -> None:
        if self.round_primal is None:
            object.__setattr__(self, "round_primal", np.full(len(self.dual), np.nan))

    def __len__(self) -> int:
        return len(self.dual)

    def picture(self) -> Picture:
        """Dual and best primal value over the rounds."""
        return curves({"dual value": self.dual, "best score so far": self.primal})


_NO_TRACE = Trace()  # of all that do not iterate: its arrays have no cells that could change


@dataclass(frozen=True, slots=True)
class Solution(Generic[Y]):
    """Argmax of a subproblem under penalties: the structure and its penalised value."""

    structure: Y
    value: float


@dataclass(frozen=True, slots=True, repr=False)
class Result(Drawn, Generic[Y]):
    """A structure with its score, recomputed from the input, and its certificate."""

    structure: Y
    score: float
    certificate: Certificate
    trace: Trace = _NO_TRACE
    info: Mapping[str, Any] = field(default_factory=dict)  # what the method has to say: nodes, parts fixed, seconds

    @property
    def iterations(self) -> int:
        """Rounds of the relaxation; 0 for algorithms that do not iterate."""
        return len(self.trace)

    def picture(self, words: Sequence[str] | None = None) -> Picture:
        """The structure as a drawing; ``problem.picture`` knows more of it: names of tags, words of phrases."""
        return picture_of(self.structure, words)

    def caption(self) -> str:
        """What is proved."""
        return self.certificate.in_words()

    def __repr__(self) -> str:
        status = "exact" if self.certificate.exact else f"gap={self.certificate.gap:.6g}"
        bound = self.certificate.bound
        return f"Result(score={self.score:.10g}, {status}, bound={bound:.10g}, iterations={self.iterations})"


def picture_of(structure: Any, words: Sequence[str] | None = None) -> Picture:
    """A structure as a drawing: trees, heads of words (-1 at node 0) as arcs, of several the first, else a row."""
    if isinstance(structure, Drawn):
        return structure.picture()
    if isinstance(structure, tuple) and structure and not isinstance(structure[0], int | float | str):
        return picture_of(next((s for s in structure if isinstance(s, Drawn)), structure[0]), words)
    items = as_numbers("structure", structure).ravel().tolist() if structure is not None else []
    words = None if words is None else as_words("words", words)
    if items and items[0] == -1 and min(items[1:], default=0) >= 0:
        named = list(words) if words is not None else [str(m) for m in range(1, len(items))]
        return arcs(named, items)
    return row([str(item) for item in items], notes=words if words is not None and len(words) == len(items) else None)


def with_proof_of(first: Result[Y], best: Result[Y], scores: Iterable[float]) -> Result[Y]:
    """The first of a k-best list, with the proof of a decoding that found the same score: structures may tie.

    ``scores`` are those of the parts that the first uses.
    """
    c = best.certificate
    reason = c.reason if c.reason is not None or c.tolerance <= allowed(scores) else too_wide(c.tolerance)
    proof = replace(c, score=first.score, bound=max(c.bound, first.score), reason=reason)
    return Result(first.structure, first.score, proof, best.trace, best.info)


def certified(
    scores: Callable[[], Iterable[float]],
    score: float,
    bound: float,
    error: float,
    *,
    kind: str,
    duals: Any = None,
    rank: int = 1,
) -> Certificate:
    """The certificate of a structure whose parts have ``scores()``, which are asked for only if they matter.

    ``bound`` is what the algorithm computed, ``error`` how far rounding may have taken it from the truth.
    """
    tolerance = WIDTH * error
    # What is small beside the score is small beside what the score is the sum of.
    wide = not tolerance <= EXACT * min(abs(score), MASK) and not tolerance <= allowed(scores())
    reason = too_wide(tolerance) if wide else None
    if wide:  # no proof, so what a check rounds away under multipliers of its own may count too
        tolerance *= WIDTH
    if tolerance == inf:  # nothing is known
        bound, tolerance = inf, 0.0
    return Certificate(kind, score, max(bound, score), tolerance, duals, rank, reason=reason)


class OnAccess(Sequence[Y]):
    """As many things, each made when it is first asked for."""

    def __init__(self, size: int, make: Callable[[int], Y]) -> None:
        self._size, self._make = size, make
        self._made: dict[int, Y] = {}

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return [self[k] for k in range(self._size)[item]]
        k = range(self._size)[item]
        if k not in self._made:
            self._made[k] = self._make(k)
        return self._made[k]


@dataclass(frozen=True, slots=True)
class BatchCertificate:
    """Certificates of a batch, one entry per item; see Certificate. ``reasons`` are by item, where there is one."""

    kind: str
    score: NDArray[np.float64]
    bound: NDArray[np.float64]
    tolerance: NDArray[np.float64]
    reasons: Mapping[int, str] = field(default_factory=dict)

    @property
    def gap(self) -> NDArray[np.float64]:
        """How much better an unseen structure could be, at most, rounding aside."""
        return self.bound - self.score

    @property
    def exact(self) -> NDArray[np.bool_]:
        """True where the structure is proved optimal."""
        proved = 2.0 * self.gap <= self.tolerance
        proved[list(self.reasons)] = False
        return proved


@dataclass(frozen=True, slots=True, repr=False)
class BatchResult(Drawn):
    """Structures of a batch as one padded array, with their scores, recomputed from the input, and certificates."""

    structure: NDArray[np.int64]
    score: NDArray[np.float64]
    certificate: BatchCertificate
    sizes: NDArray[np.int64]  # how much of each row of ``structure`` is not padding
    axes: int = 1  # that are padded
    results: Sequence[Result[Any]] | None = None  # of items that were decoded one by one

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, item: int) -> Result[Any]:
        """The result of one item, as if it had been decoded by itself: to be saved or verified with its problem."""
        if self.results is not None:
            return self.results[item]
        c, k = self.certificate, range(len(self))[item]
        score, bound, tolerance = float(c.score[k]), float(c.bound[k]), float(c.tolerance[k])
        certificate = Certificate(c.kind, score, bound, tolerance, reason=c.reasons.get(k))
        own = self.structure[k][(slice(self.sizes[k]),) * self.axes]
        return Result(own.copy(), float(self.score[k]), certificate)

    def picture(self) -> Picture:
        """The first items below each other."""
        return stacked([self[k].picture() for k in range(min(len(self), 8))], repr(self))

    def caption(self) -> str:
        """How many there are, and how many are proved."""
        return repr(self)

    def __repr__(self) -> str:
        return f"BatchResult({len(self.score)} items, {int(self.certificate.exact.sum())} exact)"


@dataclass(frozen=True, slots=True, repr=False)
class BatchRanks(Drawn):
    """The k best structures of each item of a batch: padded arrays, and lists of ordinary results."""

    structure: NDArray[np.int64]  # (B, k, ...)
    score: NDArray[np.float64]  # (B, k), -inf where an item has fewer
    exact: NDArray[np.bool_]  # (B, k)
    results: Sequence[list[Result[Any]]]

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, item: int) -> list[Result[Any]]:
        """The results of one item, best first."""
        return self.results[item]

    def picture(self) -> Picture:
        """The best structures of the first items below each other."""
        best = [self[k][0].picture() for k in range(min(len(self), 8)) if self[k]]
        return stacked(best, repr(self))

    def __repr__(self) -> str:
        return f"BatchRanks({len(self)} items, up to {self.score.shape[1]} structures each)"


@dataclass(frozen=True, slots=True)
class LogPartitionBounds:
    """An interval that holds the log of the sum of exp(score) over all structures, rounding included.

    ``lower_by`` and ``upper_by`` say in words what proves each end; ``info`` has what else was found on the way.
    """

    lower: float
    upper: float
    lower_by: str
    upper_by: str
    info: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def around(cls, value: float, steps: int, largest: float, by: str = "all structures") -> "LogPartitionBounds":
        """Of a sum that was found by so many steps, with no log or exponent above ``largest``: see ``of_log_sum``."""
        error = of_log_sum(steps, largest) if value > -inf else 0.0
        return cls(value - error, value + error, by, by)

    @property
    def width(self) -> float:
        """Upper end less lower end, in nats; 0 where there is no structure at all, inf where none is known."""
        return self.upper - self.lower if self.upper > self.lower else 0.0

    def __repr__(self) -> str:
        return f"LogPartitionBounds({self.lower:.6g} to {self.upper:.6g}, by {self.lower_by}, {self.upper_by})"


@dataclass(frozen=True, slots=True)
class MarginalEstimates:
    """Probabilities of parts by view, estimated from weighted samples: not exact, and no bounds.

    ``standard_error`` has what each is likely to be off by, from the same samples, and no less than what as many equal
    samples leave open. ``effective_sample_size`` says how many these are worth: where it is small, neither means much.
    The same ``seed`` and number of ``samples`` give the same estimates again; chains may add a few, so that each has as
    many. ``log_partition`` is an estimate too. ``method`` is "importance sampling", "Markov chains", or "exact" where
    the problem has exact marginals: then the errors are 0 and nothing was drawn.
    """

    marginals: Mapping[str, NDArray[np.float64]]
    standard_error: Mapping[str, NDArray[np.float64]]
    log_partition: float
    effective_sample_size: float
    samples: int
    seed: int | None
    method: str

    @classmethod
    def known(cls, marginals: Mapping[str, NDArray[np.float64]], log_partition: float) -> "MarginalEstimates":
        """Of marginals that are exact."""
        zero = {view: np.zeros_like(values) for view, values in marginals.items()}
        return cls(marginals, zero, log_partition, inf, 0, None, "exact")

    def __repr__(self) -> str:
        if self.method == "exact":
            return "MarginalEstimates(exact)"
        return (
            f"MarginalEstimates({self.method}, estimate, effective sample size {self.effective_sample_size:.1f} of "
            f"{self.samples}, seed {self.seed})"
        )
