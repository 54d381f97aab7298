"""Vine parses as what a filter learns: short arcs, and the two ends of long ones (LR 8.3.3, 8.5.2).

The index set of a vine holds the arcs of at most ``band`` words, for each word an outer head to its left or right, and
for each word an outer modifier to its left or right. A longer arc stands for two of them: the outer head of its
modifier and the outer modifier of its head.
"""

from functools import cached_property
from typing import Any

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.dependency.vine import vine_graph
from certus.features.templates import Templates
from certus.learn.parts import ForestParts
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
        from certus.kernels.features import ABSENT

        super().__init__(model, allowed)
        self.band = band
        node = np.arange(self.n + 1)
        far = np.abs(node[:, None] - node[None, :]) > band
        self.short: Bools = self.allowed & ~far
        self.long: Bools = self.allowed & far
        to_right, to_left = np.triu(self.long), np.tril(self.long)
        self.outer_head: Bools = np.stack((to_right.any(axis=0), to_left.any(axis=0)), axis=1)
        self.outer_modifier: Bools = np.stack((to_left.any(axis=1), to_right.any(axis=1)), axis=1)
        h, m = np.nonzero(self.short)
        word, d = np.nonzero(self.outer_head)
        head, e = np.nonzero(self.outer_modifier)
        step = np.array([-band - 1, band + 1])
        rows = np.full((len(h) + len(word) + len(head), 5), ABSENT, dtype=np.int32)
        rows[:, 0] = np.repeat([0, 1, 2], [len(h), len(word), len(head)])
        rows[:, 1] = np.concatenate((h, word + step[d], head))
        rows[:, 2] = np.concatenate((m, word, head + step[e]))
        self.rows, self.n_arcs, self.n_short = rows, len(rows), len(h)

    @cached_property
    def _number(self) -> tuple[Ints, Ints, Ints]:
        """The number of each index in ``rows``, by arc, by word and side of the head, by head and side; or -1."""
        found, count = [], 0
        for mask in (self.short, self.outer_head, self.outer_modifier):
            number = np.full(mask.shape, -1, dtype=np.int64)
            number[mask] = np.arange(count, count + int(mask.sum()))
            count += int(mask.sum())
            found.append(number)
        return found[0], found[1], found[2]

    def _build(self) -> tuple[Any, ...]:
        in_ptr, tail_ptr, tail, what = vine_graph(self.short, self.outer_head, self.outer_modifier, self.band)
        part_of = np.full((len(what), 5), -1, dtype=np.int32)
        for view, number in enumerate(self._number):
            used = what[:, 0] == view
            part_of[used, 0] = number.reshape(-1)[what[used, 1]]
        return in_ptr, tail_ptr, tail, self.rows, part_of

    def of_tree(self, heads: Ints) -> Floats:
        """1 for the indices that a tree over the allowed arcs uses, 0 for the others."""
        arc, outer_head, outer_modifier = self._number
        vector = np.zeros(len(self.rows))
        m = np.arange(1, self.n + 1)
        h = heads[1:]
        far = np.abs(h - m) > self.band
        right = (h < m).astype(np.int64)
        vector[arc[h, m][~far]] = 1.0
        vector[outer_head[m, 1 - right][far]] = 1.0
        vector[outer_modifier[h, right][far]] = 1.0
        return vector

    def onto_arcs(self, level: Floats) -> Floats:
        """Levels of the arcs, (n + 1, n + 1), from those of the index set: of a long arc the lower of its two ends."""
        found = np.full(self.allowed.shape, -np.inf)
        found[self.short] = level[: self.n_short]
        outer = [np.full((self.n + 1, 2), -np.inf) for _ in range(2)]
        split = self.n_short + int(self.outer_head.sum())
        outer[0][self.outer_head] = level[self.n_short : split]
        outer[1][self.outer_modifier] = level[split:]
        h, m = np.nonzero(self.long)
        right = (h < m).astype(np.int64)
        found[h, m] = np.minimum(outer[0][m, 1 - right], outer[1][h, right])
        return found
