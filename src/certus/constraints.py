"""Constraints for ``problem.subject_to(...)``, under the name users know them by."""

from certus.hypergraph.readings import Reading, accepted, avoids, contains, count, in_order, length, starts_with
from certus.relax.constrained import Constrained
from certus.relax.constraints import (
    Constraint,
    at_least,
    at_most,
    at_most_one,
    budget,
    exactly,
    forbid,
    implies,
    linear,
    require,
)

__all__ = [
    "Constrained",
    "Constraint",
    "Reading",
    "accepted",
    "at_least",
    "at_most",
    "at_most_one",
    "avoids",
    "budget",
    "contains",
    "count",
    "exactly",
    "forbid",
    "implies",
    "in_order",
    "length",
    "linear",
    "require",
    "starts_with",
]
