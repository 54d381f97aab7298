"""Dependency trees: one problem, many factorizations, projective or not."""

from typing import TYPE_CHECKING

from certus.lazy import lazy

if TYPE_CHECKING:
    from certus.dependency.automata_problem import AutomataDependency
    from certus.dependency.head_automata import Automaton, HeadAutomata
    from certus.dependency.problem import Dependency
    from certus.dependency.projective_automata import ProjectiveAutomata

__all__ = ["AutomataDependency", "Automaton", "Dependency", "HeadAutomata", "ProjectiveAutomata"]

__getattr__ = lazy(
    __name__,
    {
        "certus.dependency.automata_problem": "AutomataDependency",
        "certus.dependency.head_automata": "Automaton HeadAutomata",
        "certus.dependency.problem": "Dependency",
        "certus.dependency.projective_automata": "ProjectiveAutomata",
    },
)
