"""Tagging in normal form: the lattice of tag sequences as a graph, made without any kernel.

States at position i are the last tags that scores still look at: none without tables, (c,) with bigrams, (b, c) with
trigrams. A position is two layers: edges that lead from state to state carry the table of the highest order, and an
edge for each state carries the rest. Tags whose unary score is -inf are left out.
"""

from typing import NamedTuple

import numpy as np

from certus.certificates.assembling import Layers, normal_form, trimmed
from certus.certificates.normal import NormalForm
from certus.certificates.sweep import edge_weights
from certus.checks import Floats, Ints
from certus.tagging.tables import Table


class _Step(NamedTuple):
    """A position: the tags allowed two places before, one place before and here, and its first edges."""

    tags: tuple[Ints, Ints, Ints]
    leading: int
    scoring: int


class Lattice(NamedTuple):
    """The normal form of a tagging problem, and what finds the edges of a sequence."""

    form: NormalForm
    cells: Ints  # the part of the form that each cell of the arrays of scores is, laid end to end; -1 for none
    order: int
    steps: list[_Step]
    number: Ints  # of the edges as steps count them; -1 for those left out

    def edges(self, sequence: list[int]) -> list[int] | None:
        """The edges of a sequence, head before tails; None if it uses a forbidden part."""
        end = int(self.steps[0].tags[0][0])
        padded = [end, end, *sequence, end]
        found = [0]
        for i, (tags, leading, scoring) in enumerate(self.steps):
            if padded[i + 2] not in tags[2]:
                return None
            a, b, c = (int(np.searchsorted(allowed, t)) for allowed, t in zip(tags, padded[i : i + 3], strict=True))
            before, last, here = map(len, tags)
            state = b * here + c if self.order == 3 else c
            if leading >= 0:
                found.append(leading + (state * before + a if self.order == 3 else state * last + b))
            if scoring >= 0:
                found.append(scoring + state)
        edges: list[int] = self.number[found[::-1]].tolist()
        return None if -1 in edges else edges


def lattice(unary: Floats, bigram: Table | None, trigram: Table | None) -> Lattice:
    """The lattice of all sequences of allowed tags."""
    n, T = unary.shape
    order = 3 if trigram is not None else 1 if bigram is None else 2
    end = np.array([T])
    allowed = [end, end, *(np.flatnonzero(row > -np.inf) for row in unary), end]
    tables = [scores.reshape(-1) for scores in (unary, *(t.scores for t in (bigram, trigram) if t is not None))]
    offset = np.cumsum([0, *map(len, tables)])
    layers, steps = Layers(), []
    state = layers.add(np.array([1]), np.empty((1, 0), dtype=np.int64), np.empty((1, 0), dtype=np.int64))
    for i in range(n + (order > 1)):
        a, b, c = before, last, here = tuple(allowed[i : i + 3])
        own = i * T + c if i < n else np.full(1, -1)
        pairs = _cells(bigram, int(offset[1]), (i, n), b[:, None], c)
        leading, scoring = layers.edges, -1
        if order == 1:
            leading, scoring = -1, layers.edges
            state = layers.add(np.array([len(c)]), np.full((len(c), 1), state), own[:, None])
        elif order == 2:
            tails = np.broadcast_to(state + np.arange(len(b)), (len(c), len(b)))
            state = layers.add(np.full(len(c), len(b)), tails.reshape(-1, 1), pairs.T.reshape(-1, 1))
        else:
            triples = _cells(
                trigram, int(offset[2 if bigram is not None else 1]), (i, n), a, b[:, None, None], c[:, None]
            )
            tails = state + np.arange(len(b))[:, None, None] + np.arange(len(a)) * len(b)
            tails = np.broadcast_to(tails, (len(b), len(c), len(a)))
            state = layers.add(np.full(len(b) * len(c), len(a)), tails.reshape(-1, 1), triples.reshape(-1, 1))
        if order == 3 or (order == 2 and i < n):
            scoring = layers.edges
            both = np.stack((np.broadcast_to(own, pairs.shape), pairs), axis=2).reshape(-1, 2)
            parts = both if order == 3 else own[:, None]
            states = len(parts)
            degree = np.ones(states, dtype=np.int64) if i < n else np.array([states])
            state = layers.add(degree, (state + np.arange(states))[:, None], parts)
        steps.append(_Step((before, last, here), leading, scoring))
    graph, scores = layers.graph(), np.concatenate(tables)
    number = np.arange(layers.edges)
    allowed_edges = edge_weights(graph, scores) > -np.inf
    if not allowed_edges.all():
        graph, number = trimmed(graph, allowed_edges)
    form = normal_form(graph, scores, {"cells": np.arange(len(scores))})
    cells = form.cells["cells"]
    form = form._replace(cells={"tags": cells[: n * T]})
    return Lattice(form, cells, order, steps or [_Step((end, end, end), -1, -1)], number)


def _cells(table: Table | None, offset: int, place: tuple[int, int], *tags: Ints) -> Ints:
    """Parts of pairs or triples of tags that end at position i of n; -1 where they are not scored."""
    shape = np.broadcast_shapes(*(t.shape for t in tags))
    if table is None or not table.scored(*place):
        return np.full(shape, -1)
    cell: Ints = np.zeros(shape, dtype=np.int64)
    for t in tags:
        cell = cell * table.side + t
    return offset + place[0] * table.step + cell
