"""Dependency trees: one problem, many factorizations, projective or not."""

# The three kinds of trees that Dependency serves enter themselves when they are imported.
from certus.dependency import crossing_trees, higher_order_trees, projective_trees
from certus.dependency.automata_problem import AutomataDependency
from certus.dependency.head_automata import Automaton, HeadAutomata
from certus.dependency.problem import Dependency
from certus.dependency.projective_automata import ProjectiveAutomata

__all__ = [
    "AutomataDependency",
    "Automaton",
    "Dependency",
    "HeadAutomata",
    "ProjectiveAutomata",
    "crossing_trees",
    "higher_order_trees",
    "projective_trees",
]
