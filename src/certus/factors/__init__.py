"""Discrete variables scored by tables, and sets of choices: factor graphs, assignments, knapsacks, covers."""

from certus.factors import logic
from certus.factors.assignment import Assignment
from certus.factors.problem import FactorGraph, merged
from certus.factors.selection import Knapsack, SetCover

__all__ = ["Assignment", "FactorGraph", "Knapsack", "SetCover", "logic", "merged"]
