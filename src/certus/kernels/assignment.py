"""The best matching of each item of a batch, with prices that prove it: each column goes to at most one row.

A row i that has column j scores score[i, j]; one that has none scores 0, and must not be if it must have one. At prices
of columns, which are 0 or more,

    worth[i]  =  max(0, unless i must have a column, max over j of score[i, j] - price[j])

and no matching scores more than sum price + sum worth. The best one scores as much: a row's column is worth worth[i] to
it, a row without one has worth 0, and a column that no row has costs nothing.

Buyers bid for goods: rows for columns or, where there are fewer columns and every row may go without, columns for rows,
whose worth is then the price of the columns. First each bids as in the augmenting row reduction of [JonkerVolgenant87]:
it takes what it likes best, if need be from another, who then bids again, for as much more as its second choice, or
none, is worse. That ends after BIDS bids a buyer, and for one whose first choice is taken, and the second is as good.
Such buyers get a place along shortest augmenting paths, as there: from the buyer to a good, on to the one who has it,
and so on, to a good that is free or a buyer who may go without. ``reach`` is what all on the way gain together; a good
that is reached with more than there is at the end gets dearer by the difference. Differs: buyers may go without, goods
may stay free, so that no columns are reduced first, and who takes a free good does not raise its price.

O(n m min(n, m)) for n rows and m columns. Of goods as good as each other a buyer takes the first; of ends as good as
each other a path takes the one found first, a buyer before a good. Gains are rows of whole lanes, one for each buyer,
-inf beyond the goods; ``debt`` is the negative price.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.lanes import BAD, LANES, UNSIGNED, aligned, lane, larger, load, spread, store, watch, where_larger

BIDS = 4  # of a buyer, on average: more do not pay
MOST = 1e300  # what the scores of a matching may come to: then nothing here overflows


class Matchings(NamedTuple):
    """What is known of each item of a batch; -1 and 0 beyond its rows and columns."""

    column: np.ndarray  # (B, N) of each row, -1 for none
    used: np.ndarray  # (B, N) its score, 0 for none
    price: np.ndarray  # (B, M)
    bound: np.ndarray  # (B,) the sum of prices and worths; -inf if there is no matching, inf if none was looked for
    size: np.ndarray  # (B,) the largest of these, in absolute value


class Market(NamedTuple):
    """Buyers and goods of an item, and how far the path of a buyer has come."""

    gain: np.ndarray  # (buyers * width,)
    debt: np.ndarray  # (width,)
    number: np.ndarray  # (width,) 0, 1, 2, ...
    owner: np.ndarray  # (goods,) the buyer who has it, -1 if it is free
    choice: np.ndarray  # (buyers,) what it has, -1 for none
    waiting: np.ndarray  # (buyers,) those who have nothing yet: first who bids, the next one last, then who does not
    reach: np.ndarray  # (width,) of goods that the path may go on through
    via: np.ndarray  # (width,) the buyer that it comes from
    passed: np.ndarray  # (width,) reach of the goods that it went on through, -inf for the others
    taken: np.ndarray  # (width,) debts of goods that it may go on through, -inf for the others
    free: np.ndarray  # (width,) debts of goods that it may end at, -inf for the others


@njit(cache=True, nogil=True, inline="always")
def first_largest(value, place):
    """The largest number of a value of several lanes, and the least place that has it."""
    best, at = lane(value, 0), lane(place, 0)
    for k in range(1, LANES):
        x, p = lane(value, k), lane(place, k)
        if x > best or (x == best and p < at):
            best, at = x, p
    return best, int(at)


@njit(cache=True, nogil=True, inline="always")
def two_best(gain, debt, number, start, width):
    """What the best good is worth to the buyer whose gains begin at ``start``, which it is, and what the second is."""
    first, second, place = spread(-inf), spread(-inf), spread(0.0)
    for j in range(0, width, LANES):
        x = load(gain, start + j) + load(debt, j)
        second = where_larger(x, first, first, larger(x, second))
        place = where_larger(x, first, load(number, j), place)
        first = larger(x, first)
    best, at, other = lane(first, 0), lane(place, 0), lane(second, 0)
    for k in range(1, LANES):
        x, p = lane(first, k), lane(place, k)
        if x > best or (x == best and p < at):
            best, at, other = x, p, max(best, lane(second, k))
        else:
            other = max(other, x)
    return best, int(at), other


@njit(cache=True, nogil=True)
def _bid(market, buyers, width, must):
    """Let buyers bid; returns how many are left, at the end of those waiting."""
    gain, debt, number, owner = market.gain, market.debt, market.number, market.owner
    choice, waiting, left = market.choice, market.waiting, 0
    for i in range(buyers):
        waiting[buyers - 1 - i] = i
        choice[i] = -1
    bids, bidding = BIDS * buyers, buyers
    while bidding > 0:
        bidding -= 1
        i = waiting[bidding]
        best, at, other = two_best(gain, debt, number, i * width, width)
        if not must[i]:
            if best <= 0.0:
                continue
            other = max(other, 0.0)
        taken = best > -inf and owner[at] >= 0
        if bids == 0 or other == -inf or (taken and best == other):
            left += 1
            waiting[buyers - left] = i
            continue
        bids -= 1
        if taken:
            choice[owner[at]] = -1
            waiting[bidding] = owner[at]
            bidding += 1
            debt[at] -= best - other
        owner[at], choice[i] = i, at
    return left


@njit(cache=True, nogil=True)
def _place(market, i, goods, width, must):
    """Give buyer i a good, and those on a path from it others; returns whether there is a way to."""
    gain, debt, number, owner, choice = market.gain, market.debt, market.number, market.owner, market.choice
    reach, via, passed, taken, free = market.reach, market.via, market.passed, market.taken, market.free
    for j in range(width):
        reach[j] = passed[j] = taken[j] = free[j] = -inf
    for j in range(goods):
        if owner[j] < 0:
            free[j] = debt[j]
        else:
            taken[j] = debt[j]
    buyer, here, end, last, at = i, 0.0, -inf if must[i] else 0.0, i, -1
    while True:
        best, ahead, most, place = spread(-inf), spread(0.0), spread(-inf), spread(0.0)
        own, base = spread(float(buyer)), spread(here)
        for j in range(0, width, LANES):
            x, k = load(gain, buyer * width + j), load(number, j)
            ending = base + (x + load(free, j))
            place = where_larger(ending, most, k, place)
            most = larger(ending, most)
            going, before = base + (x + load(taken, j)), load(reach, j)
            store(via, j, where_larger(going, before, own, load(via, j)))
            going = larger(going, before)
            store(reach, j, going)
            ahead = where_larger(going, best, k, ahead)
            best = larger(going, best)
        value, j = first_largest(most, place)
        if value > end:
            end, last, at = value, buyer, j
        value, j = first_largest(best, ahead)
        if not value > end:
            break
        passed[j], reach[j], taken[j] = value, -inf, -inf
        buyer = owner[j]
        here = value - (gain[buyer * width + j] + debt[j])
        if here > end and not must[buyer]:
            end, last, at = here, buyer, -1
    if end == -inf:
        return False
    for j in range(goods):
        if passed[j] > end:
            debt[j] -= passed[j] - end
    buyer = last
    while True:
        before = choice[buyer]
        choice[buyer] = at
        if at >= 0:
            owner[at] = buyer
        if buyer == i:
            return True
        at = before
        buyer = int(via[at])


@njit(cache=True, nogil=True)
def _gains(score, n, m, turned, market):
    """Gains <- the scores of one item (N, M), by rows or, turned, by columns; returns the largest in absolute value.

    That is inf if one is no score.
    """
    gain, largest = market.gain, 0.0
    buyers, goods = (m, n) if turned else (n, m)
    width = -(-goods // LANES) * LANES
    bits = market.reach.view(np.int64)
    bits[:] = UNSIGNED
    top, every = spread(0.0), load(market.reach, 0)
    for i in range(buyers):
        if turned:
            for j in range(goods):
                gain[i * width + j] = score[j, i]
        else:
            for j in range(goods):
                gain[i * width + j] = score[i, j]
        for j in range(goods, width):
            gain[i * width + j] = -inf
        for j in range(0, width, LANES):
            top = watch(top, load(gain, i * width + j), every)
    store(market.reach, 0, top)
    for k in range(LANES):
        largest = max(largest, market.reach[k] if bits[k] < BAD else inf)
    return largest


@njit(cache=True, nogil=True)
def _settle(market, n, m, turned, must, price):
    """price <- the prices of columns; returns the sum of prices and worths, and the largest number of it."""
    gain, debt, number, worth = market.gain, market.debt, market.number, market.reach
    width = -(-(n if turned else m) // LANES) * LANES
    total = largest = 0.0
    for j in range(m):
        price[j] = -debt[j]
        if turned:
            price[j] = max(two_best(gain, debt, number, j * width, width)[0], 0.0)
        total += price[j]
        largest = max(largest, price[j])
    if turned:
        for i in range(0, width, LANES):
            most = spread(0.0)
            for j in range(m):
                most = larger(load(gain, j * width + i) + spread(-price[j]), most)
            store(worth, i, most)
    for i in range(n):
        if not turned:
            worth[i] = two_best(gain, debt, number, i * width, width)[0]
            if not must[i]:
                worth[i] = max(worth[i], 0.0)
        total += worth[i]
        largest = max(largest, abs(worth[i]))
    return total, largest


@njit(cache=True, nogil=True)
def best_matchings(score, rows, columns, must, found):
    """The best matching of each item, of so many rows and columns: score (B, N, M), must (B, N).

    None is looked for where a score is none, or where scores are so large that sums of them might overflow.
    """
    n_rows, n_columns = score.shape[1], score.shape[2]
    most = max(n_rows, n_columns, 1)
    room = -(-most // LANES) * LANES
    cells = max(-(-n_columns // LANES) * n_rows, -(-n_rows // LANES) * n_columns) * LANES
    market = Market(
        aligned(cells),
        aligned(room),
        np.arange(float(room)),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        aligned(room),
        aligned(room),
        aligned(room),
        aligned(room),
        aligned(room),
    )
    found.column[:] = -1
    found.used[:] = 0.0
    found.price[:] = 0.0
    for b in range(score.shape[0]):
        n, m = rows[b], columns[b]
        turned = m < n and not must[b, :n].any()
        buyers, goods = (m, n) if turned else (n, m)
        width = -(-goods // LANES) * LANES
        found.bound[b] = found.size[b] = inf
        if not _gains(score[b], n, m, turned, market) < MOST / (n + 1):
            continue
        market.debt[:] = 0.0
        market.owner[:] = -1
        left, fine = _bid(market, buyers, width, must[b]), True
        for k in range(left):
            fine = fine and _place(market, market.waiting[buyers - 1 - k], goods, width, must[b])
        if not fine:
            found.bound[b] = -inf
            continue
        found.bound[b], found.size[b] = _settle(market, n, m, turned, must[b], found.price[b])
        for k in range(goods):
            if market.owner[k] >= 0:
                i, j = (k, market.owner[k]) if turned else (market.owner[k], k)
                found.column[b, i], found.used[b, i] = j, score[b, i, j]
