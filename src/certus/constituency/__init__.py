"""Phrase structure: trees, weighted grammars, and the best tree of a sentence."""

from certus.constituency.grammar import Grammar
from certus.constituency.problem import Constituency
from certus.constituency.tree import Tree

__all__ = ["Constituency", "Grammar", "Tree"]
