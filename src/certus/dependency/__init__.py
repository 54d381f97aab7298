"""Dependency trees: one problem, many factorizations, projective or not."""

from certus.dependency.automata_problem import AutomataDependency
from certus.dependency.head_automata import Automaton, HeadAutomata
from certus.dependency.problem import Dependency

__all__ = ["AutomataDependency", "Automaton", "Dependency", "HeadAutomata"]
