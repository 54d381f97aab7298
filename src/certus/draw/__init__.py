"""Drawings as SVG, from plain data and without any dependency: what results, trees and sentences draw themselves with.

Every function takes lists and arrays and returns a ``Picture``. They are readable in light and dark, without colours,
and to screen readers; words may be hostile.
"""

from certus.draw.alignments import alignment, phrases
from certus.draw.arcs import arcs
from certus.draw.cells import heat, row
from certus.draw.curves import curves
from certus.draw.graphs import hypergraph
from certus.draw.lattices import lattice
from certus.draw.shown import Drawn, Gallery, stacked
from certus.draw.svg import Picture
from certus.draw.trees import phrase_tree

__all__ = [
    "Drawn",
    "Gallery",
    "Picture",
    "alignment",
    "arcs",
    "curves",
    "heat",
    "hypergraph",
    "lattice",
    "phrase_tree",
    "phrases",
    "row",
    "stacked",
]
