"""A factor graph of large width as a relaxation: pieces of small width that agree on labels and on cells of tables."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints, shown
from certus.errors import InvalidInput
from certus.factors.clusters import Clusters
from certus.factors.elimination import eliminated, neighbours
from certus.factors.piece import Piece
from certus.factors.pieces import around, cover
from certus.factors.scores import Labelled
from certus.relax.system import Block, Entries, Pieces, Relaxation, Rows, Wider

BUCKET = 700  # cells of a bucket in a piece, unless a table needs more
WIDER = 700  # the same of pieces for clusters
LARGEST = 1 << 16  # the same of any piece that a proof may name
SWEEPS = 100  # of improvement

covered = lru_cache(maxsize=64)(cover)


def over_pieces(graph: Labelled, width: int | None, clusters: int = 0, more: Pieces = ()) -> Relaxation:
    """Pieces that have all variables and share the scores; those with cells of a table in common agree on these too.

    Shares are powers of two, so that their sums are the scores again. ``more`` are pieces beside those that cover the
    graph, tables by number, without a share; as many as ``clusters`` may be proposed. Whatever the pieces say is
    assembled by taking the best of their labellings, each improved variable by variable.
    """
    sizes = tuple(max(len(domain), 1) for domain in graph.domains)
    largest = max((*sizes, *(prod(sizes[v] for v in scope) for scope in graph.scopes)), default=1)
    members = covered(graph.n, graph.scopes, sizes, max(width or BUCKET, largest)) or [[]]
    for piece in more:
        _check(graph, piece, sizes)
    shares = [*_shares(len(members)), *(0.0 for _ in more)]
    members = [*members, *map(list, more)]
    copies: list[list[int]] = [[p for p, own in enumerate(members) if k in own] for k in range(len(graph.tables))]
    tables: list[list[Any]] = [[] for _ in members]
    for k, own in enumerate(copies):
        among = _shares(sum(shares[p] > 0 for p in own))
        among += [0.0] * (len(own) - len(among))
        for p, share in zip(own, among, strict=True):
            tables[p].append((graph.scopes[k], _share(share, graph.tables[k]), ""))
    pieces = tuple(Piece(_share(share, graph.unary), own) for share, own in zip(shares, tables, strict=True))
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
        wider=Wider(partial(over_pieces, graph, width, clusters), _Proposed(graph, members), clusters),
    )


def _check(graph: Labelled, tables: Sequence[int], sizes: Sequence[int]) -> None:
    """InvalidInput for a piece that is made of what the graph does not have, or too large to be swept."""
    if len(set(tables)) != len(tables) or not all(0 <= k < len(graph.tables) for k in tables):
        raise InvalidInput(f"a piece has tables {shown(tables)}; expected different ones of {len(graph.tables)}.")
    near = neighbours(graph.n, [graph.scopes[k] for k in tables])
    if eliminated(near, sizes, LARGEST) is None:
        raise InvalidInput(f"a piece of tables {shown(tables)} has more than {LARGEST} cells in a bucket.")


def _share(share: float, scores: Floats) -> Floats:
    """A share of scores; what is forbidden is so without a share as well."""
    return share * scores if share else np.where(scores == -np.inf, -np.inf, 0.0)


class _Proposed:
    """One more piece for a graph: with the clusters that its pieces, of these tables, agree on least."""

    def __init__(self, graph: Labelled, members: Sequence[Sequence[int]]) -> None:
        self.graph, self.members = graph, members

    @cached_property
    def _clusters(self) -> Clusters:
        return Clusters(self.graph.scopes)

    def __call__(self, losses: Sequence[Mapping[str, Floats]], scale: float) -> tuple[int, ...]:
        graph, lost = self.graph, list[Floats]()
        for own, loss in zip(self.members, losses, strict=False):
            ends = np.cumsum([graph.tables[k].size for k in own])
            cells = dict(zip(own, np.split(loss["tables"], ends), strict=False))
            lost.append(self._clusters.lost(loss["labels"], [cells.get(k) for k in range(len(graph.tables))]))
        groups = self._clusters.loosest(np.stack(lost), scale)
        sizes = [max(len(domain), 1) for domain in graph.domains]
        return tuple(around(graph.n, graph.scopes, sizes, WIDER, groups)) if groups else ()


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
