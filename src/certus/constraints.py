"""Constraints for ``problem.subject_to(...)``, under the name users know them by."""

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
    "Constraint",
    "at_least",
    "at_most",
    "at_most_one",
    "budget",
    "exactly",
    "forbid",
    "implies",
    "linear",
    "require",
]
