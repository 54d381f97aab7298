"""Sums over all non-projective trees: log-partition and marginals without a single subtraction, and sampling.

Layout as in ``kernels/arborescence.py``: ``score`` is flat with ``stride`` cells per row, node 0 is the root.

The determinant of the matrix-tree theorem is found by eliminating one word k after the other: the arcs h -> k -> m
become arcs h -> m of weight w[h, k] w[k, m] / D_k, where D_k is the sum of the arcs into k that are left, and the
product of all D_k is the determinant. This is Gaussian elimination of the Laplacian with every pivot taken as a sum of
off-diagonal entries ([Grassmann85]_, for Markov chains): nothing is subtracted, so every number has a small relative
error however close to singular the Laplacian is.

Marginals. If j is eliminated last, the arc h -> j has probability w[h, j] p_j(h) / sum_i w[i, j] p_j(i), where p_j(h)
is the chance that a walk from h to its head, to its head's head and so on, drawn in proportion to w, meets 0 before j;
the p_j of the words follow by substitution in reverse order, again from sums of products. To have each j last at
O(n^3) in all, the words are halved recursively: eliminate one half, go on within the other, and the reverse.

A single root is the leading term as the root arcs are scaled by e -> 0: D_k leaves them out, and a word with no other
arc left must be the root; from then on it takes the place of node 0.

Numbers. Weights are exp(score - largest score into m). They are plain numbers (REAL) while no product can leave the
range of float64, else logarithms (LOG): one source serves both. With every arc allowed, no entry ever falls below
the smallest weight, so a bound on the scores settles it. With forbidden arcs each new entry is looked at.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

U = np.uint64

OK, OUT_OF_RANGE, NO_TREE = 0, 1, 2

MULTI_RANGE = 640.0  # largest difference of scores into one word for REAL: e^-640 is a normal number
SINGLE_RANGE = 200.0  # with a single root entries reach e^(3 * range)
TINY, HUGE = 1e-100, 1e100  # bounds on every entry when some arcs are forbidden: x / y * z stays within float64


class RealField(NamedTuple):
    """Numbers as they are."""

    zero: float
    one: float


class LogField(NamedTuple):
    """Numbers by their logarithms."""

    zero: float
    one: float


REAL = RealField(0.0, 1.0)
LOG = LogField(-np.inf, 0.0)


@njit(cache=True, nogil=True)
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


def plus(sr, a, b):
    return a + b if isinstance(sr, RealField) else _log_add(a, b)


def times(sr, a, b):
    return a * b if isinstance(sr, RealField) else a + b


def over(sr, a, b):
    return a / b if isinstance(sr, RealField) else a - b


def ratio(sr, a, b):
    """a / b as a plain number."""
    return a / b if isinstance(sr, RealField) else np.exp(a - b)


def to_log(sr, a):
    return np.log(a) if isinstance(sr, RealField) else a


@overload(plus)
def _plus(sr, a, b):
    if sr.instance_class is RealField:
        return lambda sr, a, b: a + b
    return lambda sr, a, b: _log_add(a, b)


@overload(times)
def _times(sr, a, b):
    if sr.instance_class is RealField:
        return lambda sr, a, b: a * b
    return lambda sr, a, b: a + b


@overload(over)
def _over(sr, a, b):
    if sr.instance_class is RealField:
        return lambda sr, a, b: a / b
    return lambda sr, a, b: a - b


@overload(ratio)
def _ratio(sr, a, b):
    if sr.instance_class is RealField:
        return lambda sr, a, b: a / b
    return lambda sr, a, b: np.exp(a - b)


@overload(to_log)
def _to_log(sr, a):
    if sr.instance_class is RealField:
        return lambda sr, a: np.log(a)
    return lambda sr, a: a


@njit(cache=True, nogil=True)
def relative_scores(score, stride, n, out, most, least):
    """out[h * n + m - 1] <- score of the arc h -> m less the largest score into m; -inf on the diagonal.

    Rows 0..n, columns 1..n; most and least (n + 1,) are work. Returns the sum of the largest scores (-inf if a word has
    no head), the largest difference between finite scores into one word, and whether any score is -inf.
    """
    for m in range(1, n + 1):
        most[m] = score[m]
        least[m] = score[m]
    for h in range(1, n + 1):
        row = U(h * stride)
        for side in range(2):
            for m in range(U(h + 1 if side else 1), U(n + 1 if side else h)):
                x = score[row + m]
                most[m] = x if x > most[m] else most[m]
                least[m] = x if x < least[m] else least[m]
    total = 0.0
    spread = 0.0
    forbidden = False
    for m in range(1, n + 1):
        total += most[m]
        if least[m] == -np.inf:
            forbidden = True
            for h in range(n + 1):
                x = score[h * stride + m]
                if h != m and x > -np.inf:
                    spread = max(spread, most[m] - x)
        else:
            spread = max(spread, most[m] - least[m])
    if total > -np.inf:
        for h in range(n + 1):
            for m in range(U(1), U(n + 1)):
                out[U(h * n) + m - U(1)] = score[U(h * stride) + m] - most[m]
            if h > 0:
                out[h * n + h - 1] = -np.inf
    return total, spread, forbidden


@njit(cache=True, nogil=True)
def relative_batch(score, stride, lengths, single, out, shifts, forbidden, status):
    """relative_scores of each sentence of a padded batch: score (B * stride * stride,), out (B, stride * stride).

    shifts[b] <- sum of the largest scores into each word; forbidden[b] <- some arc is -inf; status[b] <- OK if the
    numbers themselves may be tried (REAL), OUT_OF_RANGE if only logarithms will do, NO_TREE if a word has no head.
    """
    most = np.empty(stride)
    least = np.empty(stride)
    area = stride * stride
    for b in range(lengths.shape[0]):
        shifts[b], spread, forbidden[b] = relative_scores(
            score[b * area : (b + 1) * area], stride, lengths[b], out[b], most, least
        )
        status[b] = OK if spread <= (SINGLE_RANGE if single or forbidden[b] else MULTI_RANGE) else OUT_OF_RANGE
        if shifts[b] == -np.inf:
            status[b] = NO_TREE


@njit(cache=True, nogil=True)
def _in_range(w, row0, base, stride, lo, hi):
    """True if all entries among words lo..hi-1 and from the root are 0 or well inside the range of float64."""
    for j in range(lo, hi):
        x = w[row0 + j]
        if x != 0.0 and not TINY < x < HUGE:
            return False
    for i in range(lo, hi):
        for j in range(lo, hi):
            x = w[base + i * stride + j]
            if i != j and x != 0.0 and not TINY < x < HUGE:
                return False
    return True


@njit(cache=True, nogil=True)
def _eliminate(sr, w, row0, base, stride, size, count, forward, single, rooted, checked, pivots):
    """Eliminate the first (``forward``) or the last ``count`` words of a block of ``size``. pivots[k] <- D_k.

    The arc x -> j is w[base + x * stride + j], the arc from the root w[row0 + j]. The column of k is overwritten by the
    share of each head in D_k; garbage gathers on the diagonal, which is never read. ``rooted``: a word eliminated
    before is the single root. Returns (status, elected): the word that had to become the root, or -1.
    """
    elected = -1
    for t in range(count):
        k = U(t if forward else size - 1 - t)
        lo = U(t + 1 if forward else 0)
        hi = U(size if forward else size - 1 - t)
        top, first, step = U(row0), U(base), U(stride)
        pivot = first + k * step
        total = sr.zero if single and not rooted else w[top + k]
        for x in range(lo, hi):
            total = plus(sr, total, w[first + x * step + k])
        if total == sr.zero:
            total = w[top + k]
            if not single or rooted or total == sr.zero:
                return NO_TREE, elected
            rooted = True
            elected = np.int64(k)
            for j in range(lo, hi):
                w[top + j] = w[pivot + j]
        else:
            inverse = over(sr, sr.one, total)
            row = top
            for x in range(lo, hi + U(1)):  # the first round is for the root, round x for word x - 1
                share = times(sr, w[row + k], inverse)
                w[row + k] = share
                if share != sr.zero:
                    for j in range(lo, hi):
                        w[row + j] = plus(sr, w[row + j], times(sr, share, w[pivot + j]))
                row = first + x * step
        pivots[k] = total
        if checked and not _in_range(w, row0, base, stride, lo, hi):
            return OUT_OF_RANGE, elected
    return OK, elected


@njit(cache=True, nogil=True)
def _substitute(sr, w, row0, base, stride, start, size, count, forward, elected, rooted, n, chance):
    """chance[k, j] of the words k that _eliminate took out of a block, last one first, for the words j it kept."""
    first = U(start + count if forward else start)
    end = U(start + size if forward else start + size - count)
    after_root = rooted or elected >= 0
    for t in range(count - 1, -1, -1):
        k = t if forward else size - 1 - t
        row = U((start + k + 1) * n)
        if k == elected:
            after_root = rooted
            for j in range(first, end):
                chance[row + j] = sr.one
            continue
        share = w[row0 + k]
        for j in range(first, end):
            chance[row + j] = share if after_root else times(sr, share, chance[j])
        for x in range(k + 1 if forward else 0, size if forward else k):
            share = w[base + x * stride + k]
            if share != sr.zero:
                other = U((start + x + 1) * n)
                for j in range(first, end):
                    chance[row + j] = plus(sr, chance[row + j], times(sr, share, chance[other + j]))


ROW0, BASE, STRIDE, FREE, START, SIZE, ROOTED, STAGE, ELECTED, FIELDS = range(10)


@njit(cache=True, nogil=True)
def _each_last(sr, w, n, single, checked, all_words, chance, pivots):
    """chance[h, j] <- p_j(h) for all h, j: rows 0..n of n cells. Returns a status; pivots[n] <- sum of log pivots.

    Without ``all_words`` it stops when the last word is last, which is all that the sum of log pivots needs.

    w holds (n + 1) * n weights, then work. The recursion over halves is a stack of frames: words START..START+SIZE-1
    (0-based), where their block of w lies, where work is FREE, whether the root is among the words eliminated before.
    Stage 0 eliminates the first half in a copy of the block, stage 1 the second half in place.
    """
    frames = np.empty((64, FIELDS), np.int64)
    frames[0, ROW0], frames[0, BASE], frames[0, STRIDE], frames[0, FREE] = 0, n, n, (n + 1) * n
    frames[0, START], frames[0, SIZE], frames[0, ROOTED], frames[0, STAGE] = 0, n, 0, 0
    depth = 0
    while depth >= 0:
        frame = frames[depth]
        row0, base, stride = frame[ROW0], frame[BASE], frame[STRIDE]
        free, start, size, stage = frame[FREE], frame[START], frame[SIZE], frame[STAGE]
        rooted = frame[ROOTED] == 1
        half = size // 2
        if size == 1:
            if w[row0] == sr.zero:
                return NO_TREE
            chance[start] = sr.zero if single and rooted else sr.one
            chance[(start + 1) * n + start] = sr.zero
            if start == n - 1:
                pivots[start] = w[row0]
                pivots[n] = 0.0
                for k in range(n):
                    pivots[n] += to_log(sr, pivots[k])
                if not all_words:
                    return OK
            depth -= 1
            continue
        if stage > 0:
            first = stage == 1
            at, block, step = (free, free + size, size) if first else (row0, base, stride)
            count = half if first else size - half
            _substitute(sr, w, at, block, step, start, size, count, first, frame[ELECTED], rooted, n, chance)
        if stage == 2:
            depth -= 1
            continue
        if stage == 0:
            for j in range(size):
                w[free + j] = w[row0 + j]
            for i in range(size):
                for j in range(size):
                    w[free + size + i * size + j] = w[base + i * stride + j]
            row0, base, stride = free, free + size, size
            free += size * (size + 1)
        count = half if stage == 0 else size - half
        keep = half if stage == 0 else 0
        status, elected = _eliminate(
            sr, w, row0, base, stride, size, count, stage == 0, single, rooted, checked, pivots[start : start + size]
        )
        if status != OK:
            return status
        frame[STAGE] = stage + 1
        frame[ELECTED] = elected
        depth += 1
        frame = frames[depth]
        frame[ROW0], frame[BASE], frame[STRIDE] = row0 + keep, base + keep * (stride + 1), stride
        frame[FREE], frame[START], frame[SIZE] = free, start + keep, size - count
        frame[ROOTED], frame[STAGE] = rooted or elected >= 0, 0
    return OK


@njit(cache=True, nogil=True)
def tree_sums(sr, which, weight, lengths, single, marginals, forbidden, out, values, visits, status):
    """Log of the sum over trees of the product of weights, for each sentence of a batch with status ``which``. O(n^3).

    ``weight`` (B, cells) holds rows 0..n of n cells, as relative_batch leaves them (LOG), or their exponentials (REAL).
    values[b] is -inf if there is no tree. With ``marginals``, out[b, h, m] <- probability of the arc h -> m, and
    visits[b] <- the expected number of steps by which sample_by_walks draws a tree (it has no meaning with
    ``single``). Without, out is not used. status[b] <- OK, NO_TREE or (REAL only) OUT_OF_RANGE.
    """
    real = sr.one == 1.0
    width = weight.shape[1]
    pivots = np.empty(width + 1)
    chance = np.empty(width)
    w = np.empty(4 * width)
    total = np.empty(width)
    strength = np.empty(width)
    for b in range(lengths.shape[0]):
        if status[b] != which:
            continue
        n = lengths[b]
        values[b] = -np.inf
        visits[b] = np.inf
        if n == 0:
            values[b], visits[b], status[b] = 0.0, 0.0, OK
            continue
        arcs = weight[b]
        for i in range((n + 1) * n):
            w[i] = arcs[i]
        checked = real and forbidden[b]
        status[b] = _each_last(sr, w, n, single, checked, marginals, chance, pivots)
        if status[b] != OK:
            continue
        values[b] = pivots[n]
        if not marginals:
            continue
        for j in range(n):
            total[j] = sr.zero
            strength[j] = sr.zero
        for h in range(n + 1):
            row = U(h * n)
            for j in range(U(n)):
                x = arcs[row + j]
                strength[j] = plus(sr, strength[j], x)
                x = times(sr, x, chance[row + j])
                w[row + j] = x
                total[j] = plus(sr, total[j], x)
        visits[b] = 0.0
        for j in range(n):
            visits[b] += np.exp(min(to_log(sr, strength[j]) - to_log(sr, total[j]), 700.0))
            if checked and not TINY**2 < total[j] < HUGE**2:
                status[b] = OUT_OF_RANGE
        page = out[b]
        for h in range(U(n + 1)):
            for j in range(U(n)):
                page[h, j + U(1)] = ratio(sr, w[h * U(n) + j], total[j])


@njit(cache=True, nogil=True)
def sample_by_walks(score, n, rng, heads):
    """Draw trees with any number of roots, one per row of heads (k, n + 1), in proportion to exp(score).

    From each word in turn walk to a random head, to that head's head and so on until the tree so far is met, then
    keep the last head drawn at each word passed ([Wilson96]_). ``score`` is flat with stride n + 1; ``rng`` a numpy
    Generator. Takes as many steps as tree_sums foretells, on average: it may be a great many.
    """
    width = n + 1
    relative = np.empty(width * n)
    relative_scores(score, width, n, relative, np.empty(width), np.empty(width))
    reach = np.empty((width, width))  # reach[m, h]: weight of the heads 0..h of m
    for m in range(1, width):
        total = 0.0
        for h in range(width):
            total += np.exp(relative[h * n + m - 1])
            reach[m, h] = total
    done = np.empty(width, np.bool_)
    for i in range(heads.shape[0]):
        done[:] = False
        done[0] = True
        heads[i, 0] = -1
        for start in range(1, width):
            v = start
            while not done[v]:
                x = reach[v, n]
                while x >= reach[v, n]:  # the product may round up to the total
                    x = rng.random() * reach[v, n]
                h = 0
                while reach[v, h] <= x:
                    h += 1
                heads[i, v] = h
                v = h
            v = start
            while not done[v]:
                done[v] = True
                v = heads[i, v]


@njit(cache=True, nogil=True)
def sample_by_contraction(score, n, rng, heads):
    """As sample_by_walks, in a fixed number of steps, O(n^4) per tree, whatever the scores.

    The head of the last word is drawn from its marginal, the word is merged into the part of the tree its head
    belongs to, and so on with the words before it. Works on logarithms throughout.
    """
    width = n + 1
    relative = np.empty(width * n)
    relative_scores(score, width, n, relative, np.empty(width), np.empty(width))
    part = np.empty((width, n))  # weights of arcs from the part of the tree topped by word h (or by the root) to m
    w = np.empty(n * width)
    chance = np.empty(n * width)
    pivots = np.empty(n)
    weight = np.empty(width)
    member = np.empty(width, np.int64)  # top of the part that a word belongs to
    for i in range(heads.shape[0]):
        heads[i, 0] = -1
        part[:, :] = relative.reshape(width, n)
        for v in range(width):
            member[v] = v
        for j in range(n, 0, -1):
            for h in range(j + 1):
                for m in range(j):
                    w[h * j + m] = part[h, m]
            _eliminate(LOG, w, 0, j, j, j, j - 1, True, False, False, False, pivots)
            chance[j - 1] = 0.0
            chance[j * j + j - 1] = -np.inf
            _substitute(LOG, w, 0, j, j, 0, j, j - 1, True, -1, False, j, chance)
            for h in range(j):
                weight[h] = part[h, j - 1] + chance[h * j + j - 1]
            top = _draw(weight[:j], rng)
            for v in range(width):
                weight[v] = score[v * width + j] if v != j and member[v] == top else -np.inf
            heads[i, j] = _draw(weight, rng)
            for v in range(width):
                if member[v] == j:
                    member[v] = top
            for m in range(j - 1):
                part[top, m] = _log_add(part[top, m], part[j, m])


@njit(cache=True, nogil=True)
def _draw(weight, rng):
    """Index drawn in proportion to exp(weight[i])."""
    most = weight.max()
    total = 0.0
    for i in range(weight.shape[0]):
        total += np.exp(weight[i] - most)
    x = total
    while x >= total:
        x = rng.random() * total
    total = 0.0
    for i in range(weight.shape[0]):
        total += np.exp(weight[i] - most)
        if total > x:
            return i
    return weight.shape[0] - 1
