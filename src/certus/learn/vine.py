"""Vine parses as what a filter learns: short arcs, and the two ends of long ones (LR 8.3.3, 8.5.2).

The index set of a vine holds the arcs of at most ``band`` words, for each word an outer head to its left or right, and
for each word an outer modifier to its left or right. A longer arc stands for two of them: the outer head of its
modifier and the outer modifier of its head.
"""

from typing import Any

import numpy as np

from certus import kernels
from certus.checks import Bools, Floats, Ints
from certus.features.templates import Templates
from certus.learn.parts import ForestParts, Rows
from certus.learn.trees import TreeModel

# An outer head is a part whose head is the first word beyond the band, an outer modifier one whose modifier is: what
# borders the cutoff is seen like any other word, and the shape of the part tells the direction. They take the places
# of siblings and grandparents among the templates of a model; the third role stays empty.
OUTER_HEAD = Templates("hms", ("m.t", "m.w", "m.w m.t", "m.p", "m.t h.t", "m.t h.p", "m.t m-1.t", "m.t m+1.t"))
OUTER_MODIFIER = Templates("hmg", ("h.t", "h.w", "h.w h.t", "h.p", "h.t m.t", "h.t m.p", "h.t h-1.t", "h.t h+1.t"))


def vine_model(short: Templates, *, single: bool) -> TreeModel:
    """A model of vines: templates for short arcs, and the usual ones for outer arcs."""
    return TreeModel((short, OUTER_HEAD, OUTER_MODIFIER), projective=True, single=single)


class VineParts(ForestParts):
    """The vine parses of one sentence over the allowed arcs, as vectors over the index set of the vine.

    An outer end is in the set if an allowed arc longer than ``band`` has it. ``n_arcs`` counts the whole set: all of it
    is filtered. Any tree over the allowed arcs is a vine parse once its long arcs are cut. O(n band^2).
    """

    def __init__(self, model: TreeModel, allowed: Bools, band: int) -> None:
        super().__init__(model, allowed)
        self.band = band
        found: tuple[Rows, Rows, int] = kernels.vine.index_set(self.allowed, band)
        self._number, self.rows, self.n_short = found
        self.n_arcs = len(self.rows)

    @property
    def short(self) -> Bools:
        """The allowed arcs of at most ``band`` words."""
        return self._number[: self.n + 1, : self.n + 1] >= 0

    def _build(self) -> tuple[Any, ...]:
        in_ptr, tail_ptr, tail, part_of = kernels.vine.parts_graph(self._number, self.n + 1, self.band)
        return in_ptr, tail_ptr, tail, self.rows, part_of

    def of_tree(self, heads: Ints) -> Floats:
        """1 for the indices that a tree over the allowed arcs uses, 0 for the others."""
        size, h, m = self.n + 1, heads[1:], np.arange(1, self.n + 1)
        far, right = np.abs(h - m) > self.band, (h < m).astype(np.int64)
        vector = np.zeros(len(self.rows))
        vector[self._number[h, m][~far]] = 1.0
        vector[self._number[size + m, 1 - right][far]] = 1.0
        vector[self._number[2 * size + h, right][far]] = 1.0
        return vector

    def onto_arcs(self, level: Floats) -> Floats:
        """Levels of the arcs, (n + 1, n + 1), from those of the index set: of a long arc the lower of its two ends."""
        found = np.empty(self.allowed.shape)
        kernels.vine.onto_arcs(self.allowed, self._number, level, found)
        return found
