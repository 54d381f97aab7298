"""Factor graphs of large width covered by pieces of small width: which tables go into which piece.

Every piece has all variables and some of the tables. The more tables a piece has, the less its best assignment differs
from that of the whole: pieces without cycles (trees) give the bound of the usual linear program, pieces with cycles a
lower one. So pieces are grown cycle by cycle while their width allows, until every short cycle and every table is in a
piece. What is in two pieces is kept equal by multipliers.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from math import prod

from certus.factors.elimination import Scope, eliminated, neighbours

LONGEST = 8  # tables of a cycle that is looked for
BATCH = 16  # cycles that are tried at once
MOST = 8  # pieces that are made for cycles


def cover(n: int, scopes: Sequence[Scope], sizes: Sequence[int], limit: int) -> list[list[int]]:
    """For each piece the numbers of its tables; no bucket of a piece has more than ``limit`` cells.

    Nor has any table or variable: else it would be in no piece.
    """
    small = list(range(len(scopes)))
    loops = prod(sorted(sizes)[:3]) <= limit  # else no bucket can hold what a cycle needs
    groups = [*cycles(n, [scopes[k] for k in small])] if loops else []
    wanted = [[small[k] for k in cycle] for cycle in groups] + [[k] for k in small]
    open_groups, pieces = list(range(len(wanted))), list[list[int]]()
    while open_groups:
        if len(pieces) == MOST:  # enough of cycles
            open_groups = [g for g in open_groups if len(wanted[g]) == 1]
        piece = _grown(_Piece(n, scopes, sizes, limit), [wanted[g] for g in open_groups])
        left = [g for g in open_groups if not piece.tables.issuperset(wanted[g])]
        if len(left) == len(open_groups):  # cycles that no piece has room for
            left = [g for g in left if len(wanted[g]) == 1]
        else:
            pieces.append(sorted(piece.tables))
        open_groups = left
    return pieces


def around(n: int, scopes: Sequence[Scope], sizes: Sequence[int], limit: int, groups: list[list[int]]) -> list[int]:
    """The tables of a piece with as many of the groups as it has room for, the first ones first."""
    return sorted(_grown(_Piece(n, scopes, sizes, limit), groups).tables)


class _Piece:
    def __init__(self, n: int, scopes: Sequence[Scope], sizes: Sequence[int], limit: int) -> None:
        self.n, self.scopes, self.sizes, self.limit = n, scopes, sizes, limit
        self.tables: set[int] = set()

    def grow(self, groups: list[list[int]]) -> None:
        """Take all groups of tables in, or as many as the width allows."""
        more = self.tables.union(*groups)
        if len(more) == len(self.tables):
            return
        near = neighbours(self.n, [self.scopes[k] for k in more])
        if eliminated(near, self.sizes, self.limit) is not None:
            self.tables = more
        elif len(groups) > 1:
            self.grow(groups[: len(groups) // 2])
            self.grow(groups[len(groups) // 2 :])


def _grown(piece: _Piece, groups: list[list[int]]) -> _Piece:
    """A piece with groups of tables, then with any: what is in other pieces makes this one tighter still."""
    for wanted in (groups, [[k] for k in range(len(piece.scopes))]):
        for at in range(0, len(wanted), BATCH):
            piece.grow(wanted[at : at + BATCH])
    return piece


def cycles(n: int, scopes: Sequence[Scope]) -> Iterator[list[int]]:
    """For each table of two variables or more a shortest cycle through it, if there is a short one; each once."""
    by_variable: list[list[int]] = [[] for _ in range(n)]
    for k, scope in enumerate(scopes):
        for v in scope:
            by_variable[v].append(k)
    seen = set[tuple[int, ...]]()
    for k, scope in enumerate(scopes):
        if len(scope) < 2:
            continue
        found = _around(k, scopes, by_variable)
        if found is not None and tuple(sorted(found)) not in seen:
            seen.add(tuple(sorted(found)))
            yield found


def _around(k: int, scopes: Sequence[Scope], by_variable: Sequence[Sequence[int]]) -> list[int] | None:
    """The tables of a shortest way from the first variable of a table to another one, and the table itself."""
    start, *ends = scopes[k]
    back: dict[int, tuple[int, int]] = {start: (-1, -1)}
    queue = deque([(start, 0)])
    while queue:
        v, length = queue.popleft()
        if v in ends:
            way = [k]
            while back[v][0] >= 0:
                way.append(back[v][1])
                v = back[v][0]
            return way
        for table in by_variable[v] if length < LONGEST else ():
            if table == k:
                continue
            for u in scopes[table]:
                if u not in back:
                    back[u] = (v, table)
                    queue.append((u, length + 1))
    return None
