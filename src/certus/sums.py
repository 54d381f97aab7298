"""Answers about sums over all structures where these are too hard to add up: intervals that hold, and estimates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from certus.checks import Floats


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

    @property
    def width(self) -> float:
        """Upper end less lower end, in nats; 0 where there is no structure at all, inf where none is known."""
        return self.upper - self.lower if self.upper > self.lower else 0.0

    def __repr__(self) -> str:
        return f"LogPartitionBounds({self.lower:.6g} to {self.upper:.6g}, by {self.lower_by}, {self.upper_by})"


@dataclass(frozen=True, slots=True)
class MarginalEstimates:
    """Probabilities of parts by view, estimated from weighted samples: not exact, and no bounds.

    ``standard_error`` has what each is likely to be off by, from the same samples. ``effective_sample_size`` says how
    many samples of equal weight would do as well: where it is small, neither means much. The same ``seed`` and number
    of ``samples`` give the same estimates again. ``log_partition`` is an estimate too. ``method`` is "importance
    sampling", or "exact" where the problem has exact marginals: then the errors are 0 and nothing was drawn.
    """

    marginals: Mapping[str, Floats]
    standard_error: Mapping[str, Floats]
    log_partition: float
    effective_sample_size: float
    samples: int
    seed: int | None
    method: str

    def __repr__(self) -> str:
        if self.method == "exact":
            return "MarginalEstimates(exact)"
        return (
            f"MarginalEstimates({self.method}, estimate, effective sample size {self.effective_sample_size:.1f} of "
            f"{self.samples}, seed {self.seed})"
        )
