"""The k best matchings of rows and columns, and the best one with each pair; ``assignment.py`` finds the best of all.

Ranks, as in [Murty68]: a cell is a set of matchings of which the best one is known, with prices that prove it. Once
that is listed, the rest of the cell falls into smaller cells, one for each row c that is still free: the rows before c
have what they have there, and row c has something else. So a cell is told by ``first``, the first of its free rows, by
what the rows before that have, and by what ``first`` may not have.

In the best matching of the cell above, whose prices stay good, row c is then without what it had, and a column may be
left over that has a price. A shortest augmenting path from the row to that column mends both. It goes as in
``assignment.py``: from a row to a column, on to the one who has it, and so on; to nowhere, from a row that may go
without, or from one that takes a free column; and from nowhere on, to a row that had none, or to a column that is then
free, for its price. Where row c had no column but must have one, the path ends nowhere. It goes through no row before
c. Prices move by what passed columns are better than the end, all of them less what passing nowhere is.

The best with each pair: row i takes j, and a path from the one who had j, or from nowhere, to what i had, or nowhere,
mends the rest. Paths between all columns that some row has, and nowhere, are found at once ([Floyd62]).

O(n m min(n, m)) for each rank, and O(n^2 m) for all pairs. Ties: of matchings that score the same the one that was
found first comes first, cells in the order of their rows; paths go to the smallest number. Gains are rows of whole
lanes, -inf beyond the columns; ``debt`` is the negative price.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from certus.kernels.assignment import first_largest
from certus.kernels.compiling import njit
from certus.kernels.lanes import LANES, aligned, lane, larger, load, spread, store, where_larger

NOWHERE = -1


class Ranks(NamedTuple):
    """The best matchings found, best first; the first one is given, with its prices."""

    column: np.ndarray  # (K, n) of each row, -1 for none
    price: np.ndarray  # (K, m) prices that prove it the best of its cell
    first: np.ndarray  # (K,) the first free row of its cell
    parent: np.ndarray  # (K,) the rank whose cell its own was a part of, -1 for the first
    left: np.ndarray  # (3,) what bounds all others and the last, as summed and with its error; the largest error of all


class Search(NamedTuple):
    """A matching that is changed, and how far its path has come."""

    n: int
    m: int
    width: int
    must: np.ndarray  # (n,) rows that must have a column
    gain: np.ndarray  # (n * width,)
    spare: np.ndarray  # (width,) gains of a row that may not have all of its columns
    number: np.ndarray  # (width,) 0, 1, 2, ...
    choice: np.ndarray  # (n,) the column of each row, -1 for none
    owner: np.ndarray  # (width,) the row of each column, -1 if it is free
    debt: np.ndarray  # (width,)
    reach: np.ndarray  # (width,) of columns that the path may go on through
    via: np.ndarray  # (width,) the row that it comes from, or nowhere
    passed: np.ndarray  # (width,) reach of the columns that it went on through, -inf for the others
    taken: np.ndarray  # (width,) debts of columns that it may go on through, -inf for the others
    free: np.ndarray  # (width,) debts of columns that lead nowhere, -inf for the others


@njit(cache=True, nogil=True)
def _search(score, must):
    """Room for the searches in an item (n, m), with its gains."""
    n, m = score.shape
    width = max(-(-m // LANES), 1) * LANES
    gain = aligned(n * width)
    for i in range(n):
        for j in range(width):
            gain[i * width + j] = score[i, j] if j < m else -inf
    choice, owner = np.empty(n, np.int64), np.empty(width, np.int64)
    spare, debt, number = aligned(width), aligned(width), np.arange(float(width))
    reach, via, passed, taken, free = aligned(width), aligned(width), aligned(width), aligned(width), aligned(width)
    return Search(n, m, width, must, gain, spare, number, choice, owner, debt, reach, via, passed, taken, free)


@njit(cache=True, nogil=True)
def _start(s, column, price):
    """Begin with this matching and these prices."""
    for j in range(s.width):
        s.owner[j] = -1
        s.debt[j] = -price[j] if j < s.m else 0.0
    for i in range(s.n):
        s.choice[i] = column[i]
        if column[i] >= 0:
            s.owner[column[i]] = i


@njit(cache=True, nogil=True)
def _look(s, row, here):
    """Reach columns from a row; returns the best free one, and its value."""
    reach, via, width = s.reach, s.via, s.width
    best, place, own, base = spread(-inf), spread(0.0), spread(float(row)), spread(here)
    for j in range(0, width, LANES):
        x = load(s.gain, row * width + j)
        ending = base + (x + load(s.free, j))
        place = where_larger(ending, best, load(s.number, j), place)
        best = larger(ending, best)
        going, before = base + (x + load(s.taken, j)), load(reach, j)
        store(via, j, where_larger(going, before, own, load(via, j)))
        store(reach, j, larger(going, before))
    return first_largest(best, place)


@njit(cache=True, nogil=True)
def _furthest(s):
    """The column that is reached with most, and with how much."""
    best, place = spread(-inf), spread(0.0)
    for j in range(0, s.width, LANES):
        x = load(s.reach, j)
        place = where_larger(x, best, load(s.number, j), place)
        best = larger(x, best)
    return first_largest(best, place)


@njit(cache=True, nogil=True)
def _pass_nowhere(s, here):
    """Reach all columns that some row has: it may have none."""
    base, none = spread(here), spread(float(NOWHERE))
    for j in range(0, s.width, LANES):
        going, before = base + load(s.taken, j), load(s.reach, j)
        store(s.via, j, where_larger(going, before, none, load(s.via, j)))
        store(s.reach, j, larger(going, before))


@njit(cache=True, nogil=True)
def _take(s, c, lost, last, gate):
    """Give all on the path what they take: ``lost`` to ``last``, and what leads nowhere, or none, by the ``gate``."""
    row, at = last, lost
    while True:
        if row == NOWHERE:
            if at >= 0:
                s.owner[at] = -1
            row, at = gate
        before = s.choice[row]
        s.choice[row] = at
        if at >= 0:
            s.owner[at] = row
        if row == c:
            return
        at = before
        row = int(s.via[at]) if at >= 0 else NOWHERE


@njit(cache=True, nogil=True)
def _mend(s, c, alone):
    """Find row c the best that its gains let it have, or none if it may go ``alone``, with prices for all.

    Returns whether there is anything; if not, the path passed all that it could reach.
    """
    gain, debt, owner, choice, width = s.gain, s.debt, s.owner, s.choice, s.width
    lost = choice[c]
    for j in range(width):
        s.reach[j] = s.passed[j] = s.taken[j] = s.free[j] = -inf
    for j in range(s.m):
        if owner[j] < 0:
            s.free[j] = debt[j]
        elif j != lost:
            s.taken[j] = debt[j]
    if lost >= 0:
        owner[lost] = choice[c] = -1
    nowhere, gate, been = 0.0 if alone else -inf, (c, -1), False
    end, last, row, here, waiting = -inf, NOWHERE, c, 0.0, s.n
    while row >= 0:
        value, at = _look(s, row, here)
        if not been and value > nowhere:
            nowhere, gate = value, (row, at)
        if not been and row != c and here > nowhere and not s.must[row]:
            nowhere, gate = here, (row, -1)
        if lost >= 0:
            value = here + (gain[row * width + lost] + debt[lost])
            if value > end:
                end, last = value, row
        row = -1
        while row < 0:
            while waiting < s.n and choice[waiting] >= 0:
                waiting += 1
            if waiting < s.n:  # a row without a column, from nowhere
                row, here = waiting, nowhere
                waiting += 1
                break
            value, at = _furthest(s)
            if not been and nowhere > end and nowhere >= value:
                if lost < 0:
                    end = nowhere
                    break
                been, waiting = True, c + 1
                _pass_nowhere(s, nowhere)
                if nowhere + debt[lost] > end:
                    end, last = nowhere + debt[lost], NOWHERE
                continue
            if end >= value:
                break
            s.passed[at], s.reach[at], s.taken[at] = value, -inf, -inf
            if owner[at] >= c:
                row = owner[at]
                here = value - (gain[row * width + at] + debt[at])
    if end == -inf:
        return False
    _take(s, c, lost, last, gate)
    shift = nowhere - end if been else 0.0
    for j in range(s.m):
        debt[j] = min(debt[j] - max(s.passed[j] - end, 0.0) + shift, 0.0) if owner[j] >= 0 else 0.0
    return True


@njit(cache=True, nogil=True)
def _value(s, c, alone):
    """The score of a matching, the sum of prices and worths, rows before c as they are, and that of absolute values."""
    score = bound = size = 0.0
    for j in range(s.m):
        bound -= s.debt[j]
    size = bound
    for i in range(s.n):
        own, start = s.choice[i], i * s.width
        if own >= 0:
            score += s.gain[start + own]
        if i < c:
            worth = s.gain[start + own] + s.debt[own] if own >= 0 else 0.0
        else:
            best = spread(-inf)
            for j in range(0, s.width, LANES):
                best = larger(load(s.gain, start + j) + load(s.debt, j), best)
            worth = lane(best, 0)
            for k in range(1, LANES):
                worth = max(worth, lane(best, k))
            if alone if i == c else not s.must[i]:
                worth = max(worth, 0.0)
        bound += worth
        size += abs(worth)
    return score, bound, size


@njit(cache=True, nogil=True)
def _best_of_cell(s, column, price, c, barred):
    """The best matching in which rows before c are as in another one, and row c has nothing that is ``barred``.

    That is (m + 1,), the last for none. Returns what ``_value`` does; -inf first where there is no such matching.
    """
    start = c * s.width
    _start(s, column, price)
    for j in range(s.m):
        s.spare[j] = s.gain[start + j]
        if barred[j]:
            s.gain[start + j] = -inf
    alone = not (s.must[c] or barred[s.m])
    found = (-inf, -inf, 0.0)
    if _mend(s, c, alone):
        found = _value(s, c, alone)
    for j in range(s.m):
        s.gain[start + j] = s.spare[j]
    return found


@njit(cache=True, nogil=True)
def _bar(ranks, at, c, barred):
    """barred <- what row c may not have where, in the cell of rank ``at``, it has something else than there."""
    m = len(barred) - 1
    barred[:] = False
    while True:
        own = ranks.column[at, c]
        barred[own if own >= 0 else m] = True
        if ranks.first[at] != c or ranks.parent[at] < 0:
            return
        at = ranks.parent[at]


@njit(cache=True, nogil=True)
def rank_matchings(score, must, share, ranks):
    """Fill in the ranks of an item, score (n, m), after the first; returns how many there are.

    ``share`` of absolute values is how far rounding takes the sum of as many numbers as a bound has.
    """
    s, most = _search(score, must), len(ranks.first)
    column, price = np.empty((most, s.n), np.int64), np.empty((most, s.m))  # of the best cells that are open
    value, bound, reach = np.full(most, -inf), np.empty(most), np.empty(most)
    first, parent, order = np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(most, np.int64)
    barred = np.empty(s.m + 1, np.bool_)
    ranks.first[0], ranks.parent[0] = 0, -1
    left, left_reach, lost = -inf, -inf, 0.0
    found, made, worst = 1, 0, 0
    while found < most:
        at = found - 1
        for c in range(ranks.first[at], s.n):
            _bar(ranks, at, c, barred)
            own_value, own_bound, size = _best_of_cell(s, ranks.column[at], ranks.price[at], c, barred)
            if own_value == -inf:
                continue
            lost = max(lost, share * size)
            if value[worst] >= own_value:
                left, left_reach = max(left, own_bound), max(left_reach, own_bound + share * size)
                continue
            if value[worst] > -inf:
                left, left_reach = max(left, bound[worst]), max(left_reach, reach[worst])
            value[worst], bound[worst], reach[worst] = own_value, own_bound, own_bound + share * size
            first[worst], parent[worst], order[worst] = c, at, made
            made += 1
            for i in range(s.n):
                column[worst, i] = s.choice[i]
            for j in range(s.m):
                price[worst, j] = -s.debt[j]
            for k in range(most):
                if value[k] < value[worst] or (value[k] == value[worst] and order[k] > order[worst]):
                    worst = k
        best = 0
        for k in range(1, most):
            if value[k] > value[best] or (value[k] == value[best] and order[k] < order[best]):
                best = k
        if value[best] == -inf:
            break
        for i in range(s.n):
            ranks.column[found, i] = column[best, i]
        for j in range(s.m):
            ranks.price[found, j] = price[best, j]
        ranks.first[found], ranks.parent[found] = first[best], parent[best]
        found += 1
        if found < most:
            value[best], worst = -inf, best
    for k in range(most):
        if value[k] > -inf:
            left, left_reach = max(left, bound[k]), max(left_reach, reach[k])
    ranks.left[0], ranks.left[1], ranks.left[2] = left, left_reach, lost
    return found


@njit(cache=True, nogil=True)
def cell_prices(score, must, ranks, at, room, out):
    """out (n, m) <- for each free row of the cell of a rank, prices that prove the best of the part where it has else.

    Where there is no such matching, what it could only be made of is made dearer by ``room``.
    """
    s = _search(score, must)
    barred = np.empty(s.m + 1, np.bool_)
    for c in range(ranks.first[at], s.n):
        _bar(ranks, at, c, barred)
        none = _best_of_cell(s, ranks.column[at], ranks.price[at], c, barred)[0] == -inf
        for j in range(s.m):
            out[c, j] = -s.debt[j]
            if none and s.passed[j] > -inf:
                out[c, j] += room


class Paths(NamedTuple):
    """Paths between the columns that some row has, numbered, and nowhere, which is ``nodes``, the number after them."""

    nodes: int
    side: int  # nodes and nowhere, in whole lanes
    node: np.ndarray  # (m,) the number of each column, that of nowhere if it is free
    column: np.ndarray  # (nodes,)
    dist: np.ndarray  # ((nodes + 1) * side,) what the best path scores, 0 at most
    step: np.ndarray  # ((nodes + 1) * side,) where it goes first
    leave: np.ndarray  # (nodes,) the free column that its row takes to go nowhere, -1 for none
    enter: np.ndarray  # (nodes,) the row that takes it from nowhere, -1 for nobody


@njit(cache=True, nogil=True)
def _numbered(s):
    """Room for the paths of a matching."""
    nodes = 0
    for j in range(s.m):
        if s.owner[j] >= 0:
            nodes += 1
    side = -(-(nodes + 1) // LANES) * LANES
    node, column, at = np.empty(s.m, np.int64), np.empty(nodes, np.int64), 0
    for j in range(s.m):
        node[j] = nodes
        if s.owner[j] >= 0:
            node[j], column[at] = at, j
            at += 1
    dist, step = aligned((nodes + 1) * side), aligned((nodes + 1) * side)
    return Paths(nodes, side, node, column, dist, step, np.empty(nodes, np.int64), np.empty(nodes, np.int64))


@njit(cache=True, nogil=True)
def _single_steps(s, paths):
    """What it costs a row to leave its column for another, or for nowhere, and to come from there."""
    nodes, side, dist = paths.nodes, paths.side, paths.dist
    dist[:] = -inf
    for a in range(nodes + 1):
        dist[a * side + a] = 0.0
        for b in range(side):
            paths.step[a * side + b] = float(b)
    for a in range(nodes):
        paths.leave[a] = paths.enter[a] = -1
        dist[nodes * side + a] = s.debt[paths.column[a]]
    for i in range(s.n):
        own, start = s.choice[i], i * s.width
        a, worth = nodes, 0.0
        if own >= 0:
            a, worth = paths.node[own], s.gain[start + own] + s.debt[own]
            if not s.must[i]:
                dist[a * side + nodes] = min(-worth, 0.0)
        for j in range(s.m):
            x, b = min(s.gain[start + j] + s.debt[j] - worth, 0.0), paths.node[j]
            if a != b and x > dist[a * side + b]:
                dist[a * side + b] = x
                if a == nodes:
                    paths.enter[b] = i
                elif b == nodes:
                    paths.leave[a] = j


@njit(cache=True, nogil=True)
def _all_paths(paths):
    """dist, step <- those of paths of any length."""
    side, dist, step = paths.side, paths.dist, paths.step
    for k in range(paths.nodes + 1):
        for a in range(paths.nodes + 1):
            on = dist[a * side + k]
            if a == k or on == -inf:
                continue
            there, first = spread(on), spread(step[a * side + k])
            for b in range(0, side, LANES):
                x, before = there + load(dist, k * side + b), load(dist, a * side + b)
                store(step, a * side + b, where_larger(x, before, first, load(step, a * side + b)))
                store(dist, a * side + b, larger(x, before))


@njit(cache=True, nogil=True)
def best_with_each(score, must, column, price, out):
    """out (n, m) <- the best score of a matching with each pair, -inf if none has it, given the best of all and prices.

    Returns whether paths are as they should be: where rounding leads one in circles, the pair gets the best of all.
    """
    s = _search(score, must)
    _start(s, column, price)
    paths = _numbered(s)
    _single_steps(s, paths)
    _all_paths(paths)
    nodes, side, node, dist, step = paths.nodes, paths.side, paths.node, paths.dist, paths.step
    across, leave, enter, owner = paths.column, paths.leave, paths.enter, s.owner
    new, fine = np.empty(s.n, np.int64), True
    for i in range(s.n):
        end = node[column[i]] if column[i] >= 0 else nodes
        for j in range(s.m):
            a, steps = node[j], 0
            out[i, j] = -inf
            if score[i, j] == -inf or dist[a * side + end] == -inf:
                continue
            for r in range(s.n):
                new[r] = column[r]
            new[i] = j
            while a != end and steps <= nodes:
                b = int(step[a * side + end])
                if a < nodes:
                    new[owner[across[a]]] = across[b] if b < nodes else leave[a]
                elif enter[b] >= 0:
                    new[enter[b]] = across[b]
                a = b
                steps += 1
            total, fine = 0.0, fine and a == end
            for r in range(s.n):
                own = new[r] if a == end else column[r]
                if own >= 0:
                    total += score[r, own]
            out[i, j] = total
    return fine
