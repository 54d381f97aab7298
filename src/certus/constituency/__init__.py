"""Phrase structure: trees, weighted grammars, and the best tree of a sentence."""

from certus.constituency.grammar import Grammar
from certus.constituency.head_rules import HeadRules
from certus.constituency.lexicalize import LexicalizedTree
from certus.constituency.lexicalized import LexicalizedConstituency
from certus.constituency.lexicalized_grammar import LexicalizedGrammar
from certus.constituency.problem import Constituency
from certus.text import Tree

__all__ = [
    "Constituency",
    "Grammar",
    "HeadRules",
    "LexicalizedConstituency",
    "LexicalizedGrammar",
    "LexicalizedTree",
    "Tree",
]
