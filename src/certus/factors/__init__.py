"""Discrete variables scored by tables: factor graphs; and problems of choice that go with them."""

from certus.factors.problem import FactorGraph, merged

__all__ = ["FactorGraph", "merged"]
