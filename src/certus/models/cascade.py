"""Cascades of filters that leave few arcs for the costly model (LR 8).

One filter after the other removes arcs for good (``certus.models.filters``), and every one leaves a tree. A length
dictionary followed by filters by shortfall among trees scored by arcs, as every parser has, is one kernel
(``kernels.parser.surviving_arcs``), which leaves what its stages leave one by one.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certus import kernels
from certus.checks import Bools, Ints
from certus.features.encode import Encoded
from certus.kernels import tuples
from certus.models.filters import ArcFilter, LengthDictionary, LinearFilter, all_arcs


@dataclass(frozen=True)
class Cascade:
    """Filters, each over what the ones before it leave."""

    filters: tuple[ArcFilter, ...]

    @cached_property
    def arrays(self) -> tuples.Cascade | None:
        """As the kernel takes it; None if its stages have to be run one by one."""
        stages = tuple(stage.arrays for stage in self.filters[1:])
        trees = {(stage.model.crossing, stage.model.single) for stage in self.filters}
        if not stages or None in stages or len(trees) > 1 or not isinstance(self.filters[0], LengthDictionary):
            return None
        return tuples.Cascade(self.filters[0].longest, stages, *trees.pop())

    @property
    def linear(self) -> tuple[LinearFilter, ...]:
        """The filters that are linear models."""
        return tuple(stage for stage in self.filters if isinstance(stage, LinearFilter))

    def survivors(self, batch: Encoded, s: int) -> Bools:
        """Which arcs of sentence s are left, in shape (n + 1, n + 1)."""
        if self.arrays is None or batch.length[s] == 0:
            return self.one_by_one(batch, s)
        kept: Bools = kernels.parser.surviving_arcs(batch.sentence(s), self.arrays)
        return kept

    def one_by_one(self, batch: Encoded, s: int) -> Bools:
        """The same, filter by filter."""
        allowed = all_arcs(int(batch.length[s]))
        for stage in self.filters:
            allowed = stage.keep(batch, s, allowed)
        return allowed

    def prefixes(self) -> dict[str, "Cascade"]:
        """The cascade up to each of its filters."""
        return {stage.name: Cascade(self.filters[: k + 1]) for k, stage in enumerate(self.filters)}


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


def stages(cascade: Cascade, batch: Encoded, trees: Sequence[Ints]) -> list[Stage]:
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
