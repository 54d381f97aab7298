"""Sums over all non-projective trees: log-partition and marginals without a single subtraction.

Node 0 is the root. The determinant of the matrix-tree theorem is found by eliminating one word k after the other: the
arcs h -> k -> m become arcs h -> m of weight w[h, k] w[k, m] / D_k, where D_k is the sum of the arcs into k that are
left, and the product of all D_k is the determinant. This is Gaussian elimination of the Laplacian with every pivot
taken as a sum of off-diagonal entries ([Grassmann85]_, for Markov chains): nothing is subtracted, so every number has a
small relative error however close to singular the Laplacian is.

Marginals. If j is eliminated last, the arc h -> j has probability w[h, j] p_j(h) / sum_i w[i, j] p_j(i), where p_j(h)
is the chance that a walk from h to its head, to its head's head and so on, drawn in proportion to w, meets 0 before j;
the p_j of the words follow by substitution in reverse order, again from sums of products. To have each j last at
O(n^3) in all, the words are parted recursively: eliminate one part, go on within the other, and the reverse.

A single root is the leading term as the root arcs are scaled by e -> 0: D_k leaves them out, and a word with no other
arc left must be the root; from then on it takes the place of node 0.

The latter of two parts is the largest power of two below their size, so that a sentence is parted, and every number
rounded, in the same way whatever stands before it: no answer depends on the rest of a batch. ``tree_blocks`` has the
layout of blocks, and tells which numbers (plain, logarithms, several lanes) they are made of. Where all are positive,
words are eliminated in fours (``tree_fours``); ``tree_products`` has the sums of products that both ways are made of.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.algebra import (
    DUAL,
    LOG,
    REAL,
    WIDE,
    Real,
    U,
    WideReal,
    by_algebra,
    get,
    is_extreme,
    is_zero,
    lanes,
    number,
    over,
    plus,
    plus_product,
    put,
    times,
    to_log,
    to_plain,
)  # fmt: skip
from certus.kernels.arrays import longest_first
from certus.kernels.compiling import njit
from certus.kernels.lanes import FEW, LANES, aligned
from certus.kernels.tree_blocks import (
    NO_TREE,
    OK,
    OUT_OF_RANGE,
    Sums,
    alike,
    hand_out,
    hand_out_alike,
    lay_out,
    survey,
    weights,
)
from certus.kernels.tree_fours import each_of_four, eliminate_four, pass_on, words_kept
from certus.kernels.tree_products import Apart, Cells, Shared, settle, settle_four

LIMIT = 1e100  # entries and their inverses stay below it when some arcs are forbidden: x / y * z is within float64


class Trees(NamedTuple):
    """Which trees are summed over, and what is asked of them."""

    single: bool  # root
    checked: bool  # some arcs are forbidden: entries may leave the range of float64
    marginals: bool


class Block(NamedTuple):
    """Where the weights of ``size`` words are, where the work on them goes, and the block of those that it keeps."""

    size: int
    given: int
    work: int
    left: int


@njit(cache=True, nogil=True)
def _extreme(sr, w, at, gap, run, skip):
    """True if any of ``run`` entries but number ``skip`` is too large or small to go on with."""
    for c in range(run):
        if c != skip and is_extreme(sr, w[at], LIMIT):
            return True
        at += gap
    return False


@njit(cache=True, nogil=True)
def _one_by_one(sr, w, block, part, trees, rooted, pivots, at):
    """Eliminate words lo..hi-1, the first or the last ones of the block w[given:]. pivots[at + k] <- D_k.

        entry[h, m] = given[h, m] + sum over the words i eliminated before of share[h, i] entry[i, m]
        D_k = sum over heads h of entry[h, k];  share[h, k] = entry[h, k] / D_k

    The block w[work:] gets the shares in the columns of the words eliminated, their entries in their rows; w[left:] the
    block of the words kept (with garbage on the diagonal, which is never read). ``rooted``: a word eliminated before is
    the single root. Returns (status, elected): the word that had to become the root, or -1.
    """
    size, lo, hi, single, checked = block.size, part[0], part[1], trees.single, trees.checked
    one, step = lanes(sr), U(size) * lanes(sr)
    given, work = U(block.given), U(block.work)
    keep, end = words_kept(size, lo, hi)
    elected = -1
    root, since = given, lo  # the row the root's arcs start from, and the word that first passed arcs on to it
    begin = U(lo) * one
    for k in range(lo, hi):
        k_cell, k_row = U(k) * one, U(k + 1) * step
        column = Shared(work + U(lo + 1) * step + k_cell, step)
        done = k - lo
        cells = Cells(root + k_cell, work + k_cell, work + U(since + 1) * step + k_cell, step, one)
        settle(sr, 1, k - since, w, cells, w, Shared(work + U(since) * one, one))
        total = number(sr, sr.zero) if single and not rooted else get(sr, w, work + k_cell)
        extreme = checked and _extreme(sr, w, work + k_cell, one, 1, -1)
        for first, last in ((k + 1, hi), (keep, end)):
            row = U(first + 1) * step
            cell = work + row + k_cell
            cells = Cells(given + row + k_cell, cell, work + row + begin, one, step)
            settle(sr, last - first, done, w, cells, w, column)
            extreme = extreme or (checked and _extreme(sr, w, cell, step, last - first, -1))
            for _ in range(first, last):
                total = plus(sr, total, get(sr, w, cell))
                cell += step
            j = U(first) * one
            cells = Cells(given + k_row + j, work + k_row + j, work + U(lo + 1) * step + j, step, one)
            settle(sr, last - first, done, w, cells, w, Shared(work + k_row + begin, one))
            extreme = extreme or (checked and _extreme(sr, w, work + k_row + j, one, last - first, -1))
        if extreme:
            return OUT_OF_RANGE, elected
        if is_zero(sr, total):
            total = get(sr, w, work + k_cell)
            if not single or rooted or is_zero(sr, total):
                return NO_TREE, elected
            rooted = True
            elected = k
            root, since = work + k_row, k + 1
        else:
            inverse = over(sr, number(sr, sr.one), total)
            put(sr, w, work + k_cell, times(sr, get(sr, w, work + k_cell), inverse))
            for first, last in ((k + 1, hi), (keep, end)):
                cell = work + U(first + 1) * step + k_cell
                for _ in range(first, last):
                    put(sr, w, cell, times(sr, get(sr, w, cell), inverse))
                    cell += step
        put(sr, pivots, U(at + k) * one, total)
    return _leave(sr, w, block, part, checked, root, since), elected


@njit(cache=True, nogil=True, inline="always")
def _leave(sr, w, block, part, checked, root, since):
    """The block of the words that eliminate keeps; returns OK or OUT_OF_RANGE."""
    size, lo, hi = block.size, part[0], part[1]
    one, step = lanes(sr), U(size) * lanes(sr)
    given, work, left = U(block.given), U(block.work), U(block.left)
    keep, end = words_kept(size, lo, hi)
    j, kept = U(keep) * one, end - keep
    cells = Cells(root + j, left, work + U(since + 1) * step + j, step, one)
    settle(sr, kept, hi - since, w, cells, w, Shared(work + U(since) * one, one))
    across, shares = U(kept) * one, work + U(lo) * one
    factor = work + U(lo + 1) * step + j
    h = 1
    while h <= kept:
        row = U(keep + h) * step
        cells = Cells(given + row + j, left + U(h) * across, factor, step, one)
        if h + 3 <= kept:
            settle_four(sr, kept, hi - lo, w, cells, w, Shared(shares + row, one), Apart(step, across, step))
            h += 4
        else:
            settle(sr, kept, hi - lo, w, cells, w, Shared(shares + row, one))
            h += 1
    if checked:
        for h in range(kept + 1):
            if _extreme(sr, w, left + U(h) * across, one, kept, h - 1):
                return OUT_OF_RANGE
    return OK


@njit(cache=True, nogil=True)
def _in_fours(sr, w, block, part, trees, rooted, pivots, at):
    """_one_by_one, if no arc is forbidden: nothing is out of range then, and no word has to become the root."""
    k = part[0]
    while k < part[1]:
        count = 1 + (part[1] - k - 1) % 4
        if k > part[0]:
            pass_on(sr, w, block, part, k)
        eliminate_four(sr, w, block, part, (k, count), trees.single, pivots, at)
        k += count
    return _leave(sr, w, block, part, False, U(block.given), part[0]), -1


def _by_either(sr, w, block, part, trees, rooted, pivots, at):
    if trees.checked:
        return _one_by_one(sr, w, block, part, trees, rooted, pivots, at)
    return _in_fours(sr, w, block, part, trees, rooted, pivots, at)


@by_algebra({WideReal: lambda sr, *a: _in_fours(sr, *a), Real: _by_either}, lambda sr, *a: _one_by_one(sr, *a))
def eliminate(sr, w, block, part, trees, rooted, pivots, at):
    """_one_by_one or _in_fours: the latter for plain numbers that are all positive."""


@njit(cache=True, nogil=True)
def substitute(sr, w, block, part, root, start, n, chance):
    """chance[k, j] of the words k that eliminate took out of a block, last one first, for the words j it kept.

    chance[k, j] = sum over the heads h that were left when k went of share[h, k] chance[h, j]

    root is (elected, rooted); the block begins at word ``start`` of n.
    """
    size, work, lo, hi = block.size, block.work, part[0], part[1]
    elected, rooted = root
    one, step, row_step = lanes(sr), U(size) * lanes(sr), U(n) * lanes(sr)
    keep, end = words_kept(size, lo, hi)
    first, final = U(start + keep) * one, U(start + end) * one
    top = hi - 1
    while top >= lo:  # four words at a time, counted from the last
        low = max(lo, top - 3)
        for k in range(low, top + 1):
            row = U(start + k + 1) * row_step
            share = get(sr, w, U(work) + U(k) * one)
            below = rooted or 0 <= elected < k
            for j in range(first, final, one):
                x = share if below else times(sr, share, get(sr, chance, j))
                put(sr, chance, row + j, number(sr, sr.one) if k == elected else x)
        together = top - low == 3 and not low <= elected <= top
        for head, last in ((top + 1, hi), (keep, end)):
            factor = U(start + head + 1) * row_step + first
            for back in range(1 if together else top - low + 1):
                row = U(start + top - back + 1) * row_step + first
                cells = Cells(row, row, factor, row_step, one)
                shares = Shared(U(work) + U(top - back) * one + U(head + 1) * step, step)
                if together:
                    before = U(0) - row_step
                    apart = Apart(before, before, U(0) - one)
                    settle_four(sr, end - keep, last - head, chance, cells, w, shares, apart)
                elif top - back != elected:
                    settle(sr, end - keep, last - head, chance, cells, w, shares)
        for k in range(top - 1, low - 1, -1):  # whose heads may be among the four
            if k != elected:
                row = U(start + k + 1) * row_step + first
                cells = Cells(row, row, row + row_step, row_step, one)
                shares = Shared(U(work) + U(k) * one + U(k + 2) * step, step)
                settle(sr, end - keep, top - k, chance, cells, w, shares)
        top = low - 1


@njit(cache=True, nogil=True, inline="always")
def _keep(pivots, count):
    """The former half <- the latter half."""
    for i in range(count):
        pivots[i] = pivots[count + i]


@njit(cache=True, nogil=True, inline="always")
def _pair(sr, w, given, single, start, n, chance, pivots):
    """What _each_last does for a block of two words, if no arc is forbidden; pivots only if they are the last."""
    one, unit, none = lanes(sr), number(sr, sr.one), number(sr, sr.zero)
    root_a, root_b = get(sr, w, given), get(sr, w, given + one)
    a_to_b, b_to_a = get(sr, w, given + U(3) * one), get(sr, w, given + U(4) * one)
    into_a = b_to_a if single else plus(sr, root_a, b_to_a)
    into_b = a_to_b if single else plus(sr, root_b, a_to_b)
    from_a = times(sr, root_a, over(sr, unit, into_a))
    from_b = times(sr, root_b, over(sr, unit, into_b))
    if start + U(2) == n:
        put(sr, pivots, (n + start) * one, into_a)
        put(sr, pivots, (n + start + U(1)) * one, plus_product(sr, root_b, from_a, a_to_b))
    a_row = ((start + U(1)) * n + start) * one
    b_row = a_row + n * one
    put(sr, chance, start * one, unit)
    put(sr, chance, (start + U(1)) * one, unit)
    put(sr, chance, a_row, none)
    put(sr, chance, a_row + one, from_a)
    put(sr, chance, b_row, from_b)
    put(sr, chance, b_row + one, none)


GIVEN, WORK, START, SIZE, ROOTED, STAGE, ELECTED, FIELDS = range(8)


@njit(cache=True, nogil=True)
def _each_last(sr, w, used, n, trees, chance, pivots):
    """chance[h, j] <- p_j(h) for all h, j: a block. Returns a status; pivots[k] <- D_k as the last word is last.

    pivots has room for 2 n numbers, the latter half as work. Without marginals it stops there: that is all the sum over
    trees needs. The block of weights is w[:used]; the rest of w is free. The recursion over parts is a stack of frames:
    the words START..START+SIZE-1 (0-based), where their block is GIVEN, whether the root is among the words eliminated
    before. Stage 0 eliminates the first part, stage 1 the second.
    """
    frames = np.empty((64, FIELDS), np.int64)
    frames[0, GIVEN], frames[0, WORK], frames[0, START], frames[0, SIZE] = 0, used, 0, n
    frames[0, ROOTED], frames[0, STAGE] = 0, 0
    one = lanes(sr)
    depth = 0
    while depth >= 0:
        frame = frames[depth]
        given, work, start, size = frame[GIVEN], frame[WORK], frame[START], frame[SIZE]
        stage, rooted = frame[STAGE], frame[ROOTED] == 1
        if size == 1 or (size in (2, 4) and not trees.checked):
            if size == 4:
                each_of_four(sr, w, U(given), trees.single, (U(start), U(n)), chance, pivots)
            elif size == 2:
                _pair(sr, w, U(given), trees.single, U(start), U(n), chance, pivots)
            elif _alone(sr, w, U(given), trees.single and rooted, (start, n), chance, pivots) != OK:
                return NO_TREE
            if start + size == n:
                _keep(pivots, U(n) * one)
                if not trees.marginals:
                    return OK
            depth -= 1
            continue
        latter = 1
        while 2 * latter < size:
            latter *= 2
        block = Block(size, given, work, work + (size + 1) * size * np.int64(one))
        if stage > 0:
            part = (0, size - latter) if stage == 1 else (size - latter, size)
            substitute(sr, w, block, part, (frame[ELECTED], rooted), start, n, chance)
        if stage == 2:
            depth -= 1
            continue
        part = (0, size - latter) if stage == 0 else (size - latter, size)
        status, elected = eliminate(sr, w, block, part, trees, rooted, pivots, n + start)
        if status != OK:
            return status
        frame[STAGE] = stage + 1
        frame[ELECTED] = elected
        depth += 1
        frame = frames[depth]
        lo, hi = part
        size -= hi - lo
        frame[GIVEN], frame[WORK] = block.left, block.left + (size + 1) * size * np.int64(one)
        frame[START], frame[SIZE] = start + (hi if lo == 0 else 0), size
        frame[ROOTED], frame[STAGE] = rooted or elected >= 0, 0
    return OK


@njit(cache=True, nogil=True, inline="always")
def _alone(sr, w, given, below, place, chance, pivots):
    """What _each_last does for a block of one word; ``below``: another word is the single root."""
    start, n = place
    one = lanes(sr)
    pivot = get(sr, w, given)
    if is_zero(sr, pivot):
        return NO_TREE
    if start + 1 == n:
        put(sr, pivots, U(n + start) * one, pivot)
    put(sr, chance, U(start) * one, number(sr, sr.zero if below else sr.one))
    put(sr, chance, U((start + 1) * n + start) * one, number(sr, sr.zero))
    return OK


@njit(cache=True, nogil=True)
def _over_heads(sr, w, n, checked, chance, total):
    """total[j] <- 1 over the sum of w[h, j] p_j(h) over the heads h. Returns a status."""
    one = lanes(sr)
    step = U(n) * one
    for row in range(U(0), U(n + 1) * step, step):
        for j in range(U(0), step, one):
            x = times(sr, get(sr, w, row + j), get(sr, chance, row + j))
            put(sr, total, j, x if row == U(0) else plus(sr, get(sr, total, j), x))
    for j in range(U(0), step, one):
        x = get(sr, total, j)
        if checked and (is_zero(sr, x) or is_extreme(sr, x, LIMIT**2)):
            return OUT_OF_RANGE
        put(sr, total, j, over(sr, number(sr, sr.one), x))
    return OK


@njit(cache=True, nogil=True)
def _shares(sr, w, n, chance, total):
    """chance[h, j] <- w[h, j] p_j(h) total[j], as a plain number."""
    one = lanes(sr)
    step = U(n) * one
    for row in range(U(0), U(n + 1) * step, step):
        for j in range(U(0), step, one):
            x = times(sr, get(sr, w, row + j), get(sr, chance, row + j))
            put(sr, chance, row + j, to_plain(sr, times(sr, x, get(sr, total, j))))


@njit(cache=True, nogil=True)
def group_sums(sr, w, used, group, lengths, trees, room, sums):
    """Log of the sum over trees of the product of weights, for each sentence of a group. O(n^3).

    w[:used] holds the group's block as lay_out leaves it (LOG), or as weights does (REAL, WIDE); work follows.
    """
    values, status = sums.values, sums.status
    one = lanes(sr)
    n = lengths[group[0]]
    step = U(n) * one
    cells = U(n + 1) * step
    chance, pivots, total = room[:cells], room[cells : cells + U(2) * step], room[cells + U(2) * step :]
    outcome = _each_last(sr, w, used, n, trees, chance, pivots)
    if outcome == OK and trees.marginals:
        outcome = _over_heads(sr, w, n, trees.checked, chance, total)
    for lane in range(group.shape[0]):
        b = group[lane]
        status[b] = outcome
        if outcome == OK:
            values[b] = 0.0
            for k in range(n - lengths[b], n):
                values[b] += to_log(sr, pivots[U(k) * one + U(lane)])
    if outcome == OK and trees.marginals:
        if alike(group, lengths) and group[LANES - 1] == group[0] + LANES - 1:
            hand_out_alike(w, chance, total, n, group[0], sums.out)
        else:
            _shares(sr, w, n, chance, total)
            hand_out(chance, group, lengths, sums.out)


@njit(cache=True, nogil=True)
def tree_sums(score, lengths, single, marginals, out, found, most, status):
    """Sums over the trees of each sentence of a padded batch: score (B, N, N), lengths (B,).

    out, most and status are those of tree_blocks.Sums, found (3, B) its values, its shifts, and both together. With
    status OUT_OF_RANGE, which is for log_sums, out is not filled. Returns whether the status of all is OK.
    """
    flat, stride = score.reshape(-1), score.shape[1]
    forbidden = np.empty(lengths.shape[0], dtype=np.bool_)
    sums = Sums(out, found[0], found[1], most, forbidden, status)
    survey(flat, stride, lengths, single, sums)
    if lengths.shape[0] == 0:
        return True
    order = longest_first(lengths)
    longest = lengths[order[0]]
    w, room = aligned(6 * LANES * (longest + 1) * longest + LANES), aligned(LANES * (longest + 4) * longest)
    together = np.empty_like(order)
    count = 0
    for b in order:
        if status[b] == OK and not forbidden[b]:
            together[count] = b
            count += 1
    alone = together[count - 1] if count % LANES == 1 else -1  # a sentence alone is faster as plain numbers
    count -= alone >= 0
    group = np.empty(LANES, dtype=np.int64)
    for first in range(0, count, LANES):
        for lane in range(LANES):
            group[lane] = together[min(first + lane, count - 1)]  # lanes left over repeat the last sentence
        used = weights(flat, stride, lengths, most, group, w)
        group_sums(WIDE, w, used, group, lengths, Trees(single, False, marginals), room, sums)
    for b in range(lengths.shape[0]):
        if b == alone or (status[b] == OK and forbidden[b]):
            group[0] = b
            used = weights(flat, stride, lengths, most, group[:1], w)
            group_sums(REAL, w, used, group[:1], lengths, Trees(single, forbidden[b], marginals), room, sums)
    done = True
    for b in range(lengths.shape[0]):
        found[2, b] = found[0, b] + found[1, b]
        done = done and status[b] == OK
    return done


@njit(cache=True, nogil=True)
def log_sums(score, lengths, single, marginals, out, found, most, status):
    """What tree_sums has left out because only logarithms will do."""
    sums = Sums(out, found[0], found[1], most, np.empty(0, dtype=np.bool_), status)
    longest = lengths.max()
    w, room = np.empty(6 * (longest + 1) * longest), np.empty((longest + 4) * longest)
    group = np.empty(1, dtype=np.int64)
    for b in range(lengths.shape[0]):
        if status[b] == OUT_OF_RANGE:
            group[0] = b
            used = lay_out(score.reshape(-1), score.shape[1], lengths, most, group, w)
            group_sums(LOG, w, used, group, lengths, Trees(single, True, marginals), room, sums)
            found[2, b] = found[0, b] + found[1, b]


@njit(cache=True, nogil=True)
def tree_tangents(scores, lengths, single, totals, out):
    """Sums and how they change: scores (B, FEW, N, N) are those of arcs, their derivatives along one direction, along
    another, and along both; totals (B, FEW) likewise, of log-partitions, and out of the marginals, unless it is (0,
    FEW, N, N). 0 where there is no arc, or no tree.
    """
    longest = lengths.max()
    w, room = np.empty(6 * FEW * (longest + 1) * longest), np.empty(FEW * (longest + 4) * longest)
    group = np.arange(FEW)
    status, marginals = np.empty(FEW, dtype=np.int64), out.shape[0] > 0
    totals[:] = 0.0
    out[:] = 0.0
    for b in range(lengths.shape[0]):
        n = lengths[b]
        if n == 0:
            continue
        cell = 0
        for h in range(n + 1):
            for m in range(1, n + 1):
                for k in range(FEW):
                    w[cell] = scores[b, k, h, m] if h != m else (-np.inf if k == 0 else 0.0)
                    cell += 1
        sums = Sums(out[b] if marginals else scores[b], totals[b], totals[b], room.reshape(1, -1), status, status)
        group_sums(DUAL, w, U(cell), group, np.full(FEW, n), Trees(single, True, marginals), room, sums)
