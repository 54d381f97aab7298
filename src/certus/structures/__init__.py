"""Structures of neural models, over arrays of scores."""

from certus.structures.alignment import Alignment
from certus.structures.batches import AlignmentBatch, CTCBatch, SegmentationBatch, SpanTreesBatch
from certus.structures.ctc import CTC
from certus.structures.segmentation import Segmentation
from certus.structures.span_trees import SpanTrees
from certus.structures.spanning_tree import SpanningTree

__all__ = [
    "CTC",
    "Alignment",
    "AlignmentBatch",
    "CTCBatch",
    "Segmentation",
    "SegmentationBatch",
    "SpanTrees",
    "SpanTreesBatch",
    "SpanningTree",
]
