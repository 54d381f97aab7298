"""Cascades of filters that leave few arcs for the costly model (LR 8).

First a dictionary of the longest arc between every two coarse tags, then two first-order models whose max-marginals
say how good the best tree with an arc can be: arcs that fall far behind the best tree are removed for good. The
best tree of each filter survives, so there is always a tree left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certus.checks import Bools, Ints
from certus.features.encode import MOST_COARSE, Encoded
from certus.features.templates import Templates
from certus.learn.weights import Float32


@dataclass(frozen=True)
class Filter:
    """A first-order model and how far below the best tree an arc's max-marginal may lie."""

    templates: Templates
    bits: int
    weight: Float32
    width: float

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As the kernels take them."""
        return (self.templates.arrays, self.bits, self.weight, self.width)


PASS = Filter(Templates("hm", ()), 1, np.zeros(2, dtype=np.float32), np.inf)  # a filter that does nothing


@dataclass(frozen=True)
class Cascade:
    """What is tried before the model: the dictionary, two filters, and the most heads a word keeps."""

    longest: Ints  # (2, coarse tags, coarse tags): longest arc to the left and to the right
    first: Filter
    second: Filter
    most: int
    projective: bool
    single: bool

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As the kernels take them."""
        return (
            self.longest,
            *self.first.arguments,
            *self.second.arguments,
            self.most,
            self.projective,
            self.single,
        )

    def survivors(self, batch: Encoded, s: int) -> Bools:
        """Which arcs of sentence s are left, in shape (n + 1, n + 1)."""
        from certus.kernels.parser import surviving_arcs

        n = int(batch.length[s])
        if n == 0:
            return np.zeros((1, 1), dtype=np.bool_)
        most_features = max(self.first.templates.most, self.second.templates.most)
        index = np.empty(most_features, dtype=np.uint64)
        sentence: tuple[Any, ...] = (batch.attribute, batch.coarse, int(batch.base[s]), n, *self.arguments, index)
        kept: Bools = surviving_arcs(*sentence)
        return kept


def longest_arcs(batch: Encoded, trees: Sequence[Ints]) -> Ints:
    """The length dictionary of a treebank (LR 8.5.1): longest arc by direction and coarse tags of head and modifier."""
    longest = np.zeros((2, MOST_COARSE + 1, MOST_COARSE + 1), dtype=np.int64)
    for base, heads in zip(batch.base, trees, strict=True):
        m = np.arange(1, len(heads))
        h = heads[1:]
        coarse = batch.coarse[base : base + len(heads)]
        np.maximum.at(longest, ((h < m).astype(np.int64), coarse[h], coarse[m]), np.abs(h - m))
    return longest
