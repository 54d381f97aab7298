"""certus finds the best structure for a sentence, and proves it."""

from certus.constituency import Constituency, Grammar, Tree
from certus.dependency.problem import Dependency
from certus.errors import CertusError, FormatError, Infeasible, InvalidInput, NotSupported
from certus.hypergraph import Hypergraph, HypergraphBuilder, Hyperpath
from certus.problem import DynamicProgram, Forest, Problem
from certus.result import Certificate, Result, Solution, Trace
from certus.tagging import Tagging, TaggingBatch

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "CertusError",
    "Constituency",
    "Dependency",
    "DynamicProgram",
    "Forest",
    "FormatError",
    "Grammar",
    "Hypergraph",
    "HypergraphBuilder",
    "Hyperpath",
    "Infeasible",
    "InvalidInput",
    "NotSupported",
    "Problem",
    "Result",
    "Solution",
    "Tagging",
    "TaggingBatch",
    "Trace",
    "Tree",
]
