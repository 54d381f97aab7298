"""A factor graph of large width as a relaxation: pieces of small width that agree on labels and on cells of tables."""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from certus import kernels
from certus.checks import Ints
from certus.factors.piece import Piece
from certus.factors.pieces import cover
from certus.factors.scores import Labelled
from certus.relax.system import Block, Entries, Relaxation, Rows

BUCKET = 700  # cells of a bucket in a piece, unless a table needs more
SWEEPS = 100  # of improvement

covered = lru_cache(maxsize=64)(cover)


def over_pieces(graph: Labelled, width: int | None) -> Relaxation:
    """Pieces that have all variables and share the scores; those with cells of a table in common agree on these too.

    Shares are powers of two, so that their sums are the scores again. Whatever the pieces say is assembled by taking
    the best of their labellings, each improved variable by variable.
    """
    sizes = tuple(max(len(domain), 1) for domain in graph.domains)
    largest = max((*sizes, *(prod(sizes[v] for v in scope) for scope in graph.scopes)), default=1)
    members = covered(graph.n, graph.scopes, sizes, max(width or BUCKET, largest)) or [[]]
    shares = _shares(len(members))
    copies: list[list[int]] = [[p for p, own in enumerate(members) if k in own] for k in range(len(graph.tables))]
    tables: list[list[Any]] = [[] for _ in members]
    for k, own in enumerate(copies):
        for p, share in zip(own, _shares(len(own)), strict=True):
            tables[p].append((graph.scopes[k], share * graph.tables[k], ""))
    pieces = tuple(Piece(share * graph.unary, own) for share, own in zip(shares, tables, strict=True))
    rows = [
        _tie(f"labels {p}", ((0, "labels"), (p, "labels")), *_cells(graph.unary.size)) for p in range(1, len(pieces))
    ]
    rows += _shared_tables(pieces, members, copies)
    polish = _Polish(graph)
    return Relaxation(
        pieces,
        (1.0,) * len(pieces),
        {"labels": tuple((p, "labels") for p in range(len(pieces)))},
        tuple(rows),
        polish,
        lambda labels: (labels,) * len(pieces),
        led=True,
    )


def _shares(count: int) -> list[float]:
    """Powers of two that add up to one, as equal as can be: the largest is cut in half until there are enough."""
    shares = [1.0]
    while len(shares) < count:
        half = max(shares) / 2
        shares.remove(2 * half)
        shares += [half, half]
    return shares


def _cells(size: int) -> tuple[Ints, Ints]:
    return np.arange(size, dtype=np.int64), np.arange(size, dtype=np.int64)


def _tie(name: str, blocks: tuple[Block, Block], left: Ints, right: Ints) -> Rows:
    """Rows that keep cells of two blocks equal."""
    row, ones = np.arange(len(left), dtype=np.int64), np.ones(len(left))
    entries = (Entries(blocks[0], row, left, ones), Entries(blocks[1], row, right, -ones))
    return Rows(name, entries, np.zeros(len(left)), True, (len(left),))


def _shared_tables(
    pieces: Sequence[Piece], members: Sequence[Sequence[int]], copies: Sequence[Sequence[int]]
) -> list[Rows]:
    """Rows between the first piece that has a table and each other one that has it, by pairs of pieces."""
    place = [{k: at for at, k in enumerate(own)} for own in members]
    pairs: dict[tuple[int, int], list[tuple[Ints, Ints]]] = {}
    for k, own in enumerate(copies):
        for q in own[1:]:
            p = own[0]
            first, second = (pieces[x].starts[place[x][k]] for x in (p, q))
            cells = np.arange(pieces[p].tables[place[p][k]].size, dtype=np.int64)
            pairs.setdefault((p, q), []).append((first + cells, second + cells))
    return [
        _tie(
            f"tables {p} {q}",
            ((p, "tables"), (q, "tables")),
            *(np.concatenate(side) for side in zip(*cells, strict=True)),
        )
        for (p, q), cells in pairs.items()
    ]


class _Polish:
    """The best of some labellings, once each is improved as far as single variables can; that of all, if they agree."""

    def __init__(self, graph: Labelled) -> None:
        self.graph = graph
        scopes = graph.scopes
        var_ptr = np.cumsum([0, *map(len, scopes)])
        of: list[list[int]] = [[] for _ in range(graph.n)]
        for k, scope in enumerate(scopes):
            for v in scope:
                of[v].append(k)
        self.flat: Any = kernels.factors.Tables(
            np.concatenate([np.zeros(0), *(table.reshape(-1) for table in graph.tables)]),
            np.cumsum([0, *(table.size for table in graph.tables)]),
            var_ptr,
            np.array([v for scope in scopes for v in scope], dtype=np.int64),
            np.cumsum([0, *map(len, of)]),
            np.array([k for own in of for k in own], dtype=np.int64),
        )

    def __call__(self, leaves: Sequence[Ints]) -> Ints:
        best, chosen = -np.inf, leaves[0]
        different = {leaf.tobytes(): leaf for leaf in leaves if leaf is not None}
        for leaf in different.values() if len(different) > 1 else ():
            labels = leaf.copy()
            kernels.factors.improve(self.graph.unary, self.flat, SWEEPS, labels)
            score = self.graph.score(labels)
            if score > best:
                best, chosen = score, labels
        return chosen
