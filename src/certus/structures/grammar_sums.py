"""Sums over the trees of grammars that are scored for each sentence, with first and second derivatives.

All are those of ``anchored_sums``; where its weights lie too far apart, derivatives are taken by sweeps over the graph
of the trees, if that is not too large.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from certus.checks import Bools, Floats
from certus.structures.anchored_sums import Far, Scores, Sums, sums, weighted
from certus.structures.part_sums import Group, PartSums


class GrammarSums(PartSums):
    """Sums over the trees of ``AnchoredGrammar``, item by item."""

    def sums(self, scores: Floats) -> tuple[Floats, Floats]:
        total, uses = np.full(self.items, -np.inf), np.zeros(scores.shape)
        for group, b in self._each():
            own = scores[b, group.cells]
            if np.isnan(own).any() or (own == np.inf).any():
                total[b] = np.nan
                continue
            read = _scores(group, own, -np.inf)
            if read.n > 1:
                found = sums(read)
                total[b], uses[b, group.cells] = found.total, _cells(found)
        return total, uses

    def _derivative(self, scores: Floats, along: Sequence[Floats]) -> Floats:
        out = np.zeros(scores.shape)
        try:
            for group, b in self._each():
                read = _scores(group, scores[b, group.cells], -np.inf)
                if read.n > 1:
                    found = weighted(read, [_scores(group, u[b, group.cells], 0.0) for u in along])
                    out[b, group.cells] = _cells(found[-1])
        except Far:
            return super()._derivative(scores, tuple(along))
        return out

    def _each(self) -> Iterator[tuple[Group, int]]:
        return ((group, b) for group in self.groups for b in group.items.tolist())


def _scores(group: Group, own: Floats, rest: float) -> Scores:
    """Numbers (P,) of an item as those of roots, rules and cells; ``rest`` where a symbol has no place."""
    arrays, start = [], 0
    for _, _, size in group.numbered.shapes:
        arrays.append(own[start : start + prod(size)].reshape(size))
        start += prod(size)
    span, root, rule, emission = arrays
    n, phrases, word = len(span) - 1, len(root), np.arange(len(emission))
    cell = np.where(_belongs(n, phrases, span.shape[2]), span, rest)
    cell[word, word + 1, phrases:] += emission
    return Scores(root, rule, cell)


def _cells(found: Sums) -> Floats:
    """Expected uses, or how they change, in the order of the arrays."""
    word, phrases = np.arange(len(found.cell) - 1), len(found.root)
    parts = [found.cell, found.root, found.rule, found.cell[word, word + 1, phrases:]]
    return np.concatenate([part.reshape(-1) for part in parts])


def _belongs(n: int, phrases: int, size: int) -> Bools:
    """(n + 1, n + 1, S) which symbols spans may have: words tags, longer ones phrases."""
    width = np.arange(n + 1) - np.arange(n + 1)[:, None]
    tag = np.arange(size) >= phrases
    return np.where(tag, width[:, :, None] == 1, width[:, :, None] > 1)
