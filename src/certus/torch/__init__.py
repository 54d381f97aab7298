"""Structures over tensors: differentiable sums, losses, samples and sparse layers, with the names of certus.

Needs the extra: ``pip install "certus[torch]"``. Importing certus does not import this.
"""

from certus.torch.scored import Decoded, Ranked
from certus.torch.structure import SparseMAP, Structure, sparsemap
from certus.torch.structures import (
    CTC,
    Alignment,
    AnchoredGrammar,
    Assignment,
    Dependency,
    DependencyGraph,
    Segmentation,
    SpanningTree,
    SpanTrees,
    Tagging,
)

__all__ = [
    "CTC",
    "Alignment",
    "AnchoredGrammar",
    "Assignment",
    "Decoded",
    "Dependency",
    "DependencyGraph",
    "Ranked",
    "Segmentation",
    "SpanTrees",
    "SpanningTree",
    "SparseMAP",
    "Structure",
    "Tagging",
    "sparsemap",
]
