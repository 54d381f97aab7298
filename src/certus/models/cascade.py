"""Cascades of filters that leave few arcs for the costly model (LR 8).

First a dictionary of the longest arc between every two coarse tags, then one or two first-order models whose
max-marginals say how good the best tree with an arc can be: arcs that fall far behind the best tree are removed for
good. The best tree of each filter survives, so there is always a tree left.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from certus import kernels
from certus.checks import Bools, Ints
from certus.features.encode import MOST_COARSE, Encoded
from certus.features.templates import Templates
from certus.kernels import tuples as kernel_tuples
from certus.learn.weights import Packed


@dataclass(frozen=True)
class Filter:
    """A first-order model and how far below the best tree an arc's max-marginal may lie."""

    templates: Templates
    bits: int
    weight: Packed
    width: float

    @property
    def idle(self) -> bool:
        """Whether it looks at nothing, and lets everything pass."""
        return not self.templates.lines

    @property
    def arrays(self) -> kernel_tuples.ArcFilter:
        """As the kernels take it."""
        return kernel_tuples.ArcFilter(self.model, self.width / self.weight.unit)

    @property
    def model(self) -> kernel_tuples.LinearModel:
        """The model as the kernels take it."""
        return kernel_tuples.LinearModel(self.templates.arrays, self.bits, self.weight.value)


PASS = Filter(Templates("hm", ()), 1, Packed(np.zeros(2, dtype=np.int8), 1.0), np.inf)  # a filter that does nothing


class Pruning(Protocol):
    """What leaves few of the arcs of a sentence, in stages."""

    def survivors(self, batch: Encoded, s: int) -> Bools:
        """Which arcs of sentence s are left, in shape (n + 1, n + 1)."""

    def prefixes(self) -> Mapping[str, "Pruning"]:
        """What there is up to each of the stages, by their names."""


@dataclass(frozen=True)
class Cascade:
    """What is tried before the model: the dictionary, one filter or two, and the most heads a word keeps."""

    longest: Ints  # (2, coarse tags, coarse tags): longest arc to the left and to the right
    first: Filter
    second: Filter
    most: int
    projective: bool
    single: bool

    @property
    def arrays(self) -> kernel_tuples.Cascade:
        """As the kernels take it."""
        crossing = None if self.projective else True
        filters = self.first.arrays, self.second.arrays
        return kernel_tuples.Cascade(self.longest, *filters, self.most, crossing, self.single)

    def survivors(self, batch: Encoded, s: int) -> Bools:
        """Which arcs of sentence s are left, in shape (n + 1, n + 1)."""
        if batch.length[s] == 0:
            return np.zeros((1, 1), dtype=np.bool_)
        kept: Bools = kernels.parser.surviving_arcs(batch.sentence(s), self.arrays)
        return kept

    def prefixes(self) -> dict[str, "Cascade"]:
        """The cascade up to each of its stages."""
        first = {
            "dictionary": replace(self, first=PASS, second=PASS, most=10**6),
            "first filter": replace(self, second=PASS),
        }
        return first if self.second.idle else {**first, "second filter": self}


@dataclass(frozen=True)
class Stage:
    """What is left after a stage of a cascade, on sentences with known trees.

    ``heads`` is the mean number of heads a word has left, ``pruned`` the share of all wrong arcs that are gone (the
    pruning efficiency of LR), ``oracle`` the share of right heads that are left, ``speed`` the words a second of
    processor time up to here.
    """

    name: str
    heads: float
    pruned: float
    oracle: float
    speed: float


def stages(cascade: Pruning, batch: Encoded, trees: Sequence[Ints]) -> list[Stage]:
    """How fast, how sharp and how safe a cascade is after each of its stages (as in LR tables 8.1 and 8.2)."""
    words = max(int(batch.length.sum()), 1)
    wrong = max(int((batch.length**2).sum()) - words, 1)  # every word has n heads to choose from
    found = []
    for name, part in cascade.prefixes().items():
        part.survivors(batch, 0)  # compiled before the clock starts
        start = time.process_time()
        left = [part.survivors(batch, s) for s in range(len(trees))]
        seconds = time.process_time() - start
        right = sum(int(kept[h[1:], np.arange(1, len(h))].sum()) for kept, h in zip(left, trees, strict=True))
        arcs = sum(int(kept.sum()) for kept in left)
        pruned = 1.0 - (arcs - right) / wrong
        found.append(Stage(name, arcs / words, pruned, right / words, words / max(seconds, 1e-9)))
    return found


def with_tree(allowed: Bools, tree: Ints) -> Bools:
    """Allow the arcs of a tree too: training never prunes the right answer."""
    allowed[tree[1:], np.arange(1, len(tree))] = True
    return allowed


def longest_arcs(batch: Encoded, trees: Sequence[Ints]) -> Ints:
    """The length dictionary of a treebank (LR 8.5.1): longest arc by direction and coarse tags of head and modifier."""
    longest = np.zeros((2, MOST_COARSE + 1, MOST_COARSE + 1), dtype=np.int64)
    for base, heads in zip(batch.base, trees, strict=True):
        m = np.arange(1, len(heads))
        h = heads[1:]
        coarse = batch.coarse[base : base + len(heads)]
        np.maximum.at(longest, ((h < m).astype(np.int64), coarse[h], coarse[m]), np.abs(h - m))
    return longest
