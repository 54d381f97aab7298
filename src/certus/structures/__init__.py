"""Structures of neural models, over arrays of scores."""

from certus.structures.alignment import Alignment
from certus.structures.anchored_grammar import AnchoredGrammar
from certus.structures.batches import (
    AlignmentBatch,
    AnchoredGrammarBatch,
    AssignmentBatch,
    CTCBatch,
    DependencyGraphBatch,
    SegmentationBatch,
    SpanningTreeBatch,
    SpanTreesBatch,
)
from certus.structures.ctc import CTC
from certus.structures.dependency_graph import DependencyGraph
from certus.structures.segmentation import Segmentation
from certus.structures.span_trees import SpanTrees
from certus.structures.spanning_tree import SpanningTree

__all__ = [
    "CTC",
    "Alignment",
    "AlignmentBatch",
    "AnchoredGrammar",
    "AnchoredGrammarBatch",
    "AssignmentBatch",
    "CTCBatch",
    "DependencyGraph",
    "DependencyGraphBatch",
    "Segmentation",
    "SegmentationBatch",
    "SpanTrees",
    "SpanTreesBatch",
    "SpanningTree",
    "SpanningTreeBatch",
]
