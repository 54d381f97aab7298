"""The k best projective trees of each sentence of a batch, made as they are asked for.

Lazy k-best extraction ([HuangChiang05], Algorithm 3) over the chart of projective_sampling, with best scores in place
of sums: items are BOTH, RIGHT and LEFT over words s .. t, each made at some place r from two others, the first one and
the second one; one more item, TOP, is the whole tree with a single root. A derivation of an item is its place and which
derivations of the two it takes. An item is begun when more than its best derivation is asked for: then its candidates
are listed, and the best of them is taken again and again. A taken one (r, a, b) lets (r, a, b + 1) and, if b is 0,
(r, a + 1, b) in, so each is reached in one way. Ties go to what was listed first, smaller places before others.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit

BOTH, RIGHT, LEFT, TOP = 0, 1, 2, 3


class Items(NamedTuple):
    """All items of a sentence: number ((kind * size) + s) * size + t."""

    best: np.ndarray  # (4 size size,) the best score
    place: np.ndarray  # (4 size size,) where it is made
    slot: np.ndarray  # (4 size size,) of those begun, -1 of the others


class Begun(NamedTuple):
    """Derivations of items that were begun, slot after slot: each has room for ``room`` candidates and k taken ones."""

    counts: np.ndarray  # (slots, 3) candidates, derivations taken, of these how many let others in
    value: np.ndarray  # (slots * room,)
    way: np.ndarray  # (slots * room, 3) place, and which derivations of the two items
    taken: np.ndarray  # (slots * k,)
    taken_way: np.ndarray  # (slots * k, 3)


@njit(cache=True, nogil=True)
def _fill(arc, n, single, items):
    """Best scores and places of all items."""
    size = arc.shape[0]
    best, place = items.best, items.place
    pages = size * size
    for s in range(n + 1):
        best[RIGHT * pages + s * size + s] = best[LEFT * pages + s * size + s] = 0.0
    for width in range(1, n + 1):
        for s in range(1 if single else 0, n + 1 - width):
            t = s + width
            for kind in (BOTH, RIGHT, LEFT):
                most, where = -np.inf, -1
                for r in range(s + (kind == RIGHT), t + (kind == RIGHT)):
                    value = _made(arc, items, kind, s, t, r)
                    if value > most:
                        most, where = value, r
                best[kind * pages + s * size + t] = most
                place[kind * pages + s * size + t] = where
    if single:
        most, where = -np.inf, -1
        for r in range(1, n + 1):
            value = _made(arc, items, TOP, 0, n, r)
            if value > most:
                most, where = value, r
        best[TOP * pages + n] = most
        place[TOP * pages + n] = where


@njit(cache=True, nogil=True, inline="always")
def _two(size, kind, s, t, r):
    """The two items that an item is made from at r, and the arc that is added: its head and its modifier, or 0, 0."""
    pages, row = size * size, s * size
    if kind == BOTH:
        return RIGHT * pages + row + r, LEFT * pages + (r + 1) * size + t, 0, 0
    if kind == RIGHT:
        return BOTH * pages + row + r, RIGHT * pages + r * size + t, s, r
    if kind == LEFT:
        return LEFT * pages + row + r, BOTH * pages + r * size + t, t, r
    return LEFT * pages + size + r, RIGHT * pages + r * size + t, 0, r


@njit(cache=True, nogil=True, inline="always")
def _made(arc, items, kind, s, t, r):
    """The best score of an item that is made at r."""
    first, second, h, m = _two(arc.shape[0], kind, s, t, r)
    value = items.best[first] + items.best[second]
    return value + arc[h, m] if m > 0 else value


@njit(cache=True, nogil=True, inline="always")
def _parts(size, item):
    """Kind, s and t of an item."""
    return item // (size * size), item // size % size, item % size


@njit(cache=True, nogil=True)
def _begin(arc, items, begun, item, slot, room):
    """List the candidates of an item: at every place the best that can be made."""
    kind, s, t = _parts(arc.shape[0], item)
    count = 0
    first = 1 if kind == TOP else s
    for r in range(first + (kind == RIGHT), t + (kind in (RIGHT, TOP))):
        value = _made(arc, items, kind, s, t, r)
        if value > -np.inf:
            begun.value[slot * room + count] = value
            begun.way[slot * room + count, 0] = r
            begun.way[slot * room + count, 1] = begun.way[slot * room + count, 2] = 0
            count += 1
    items.slot[item] = slot
    begun.counts[slot, 0], begun.counts[slot, 1], begun.counts[slot, 2] = count, 0, 0


@njit(cache=True, nogil=True)
def _known(size, items, begun, item, rank):
    """Whether an item is known to have, or not to have, a derivation of this rank, from 0 on."""
    _, s, t = _parts(size, item)
    slot = items.slot[item]
    if s == t or rank == 0:
        return True
    return slot >= 0 and (
        begun.counts[slot, 1] > rank or (begun.counts[slot, 0] == 0 and begun.counts[slot, 2] == begun.counts[slot, 1])
    )


@njit(cache=True, nogil=True)
def _score(items, begun, item, rank, k):
    """The score of a derivation that is known, -inf if there is none."""
    if rank == 0:
        return items.best[item]
    slot = items.slot[item]
    return begun.taken[slot * k + rank] if slot >= 0 and begun.counts[slot, 1] > rank else -np.inf


@njit(cache=True, nogil=True)
def _let_in(arc, items, begun, item, slot, sizes, stack, depth):
    """Candidates after the last one taken; returns the depth of a stack that has what must be known before."""
    size, (room, k) = arc.shape[0], sizes
    kind, s, t = _parts(size, item)
    last = slot * k + begun.counts[slot, 1] - 1
    r, a, b = begun.taken_way[last, 0], begun.taken_way[last, 1], begun.taken_way[last, 2]
    first, second, h, m = _two(size, kind, s, t, r)
    deeper = depth
    for own, rank, raised in ((second, b + 1, True), (first, a + 1, b == 0)):
        if raised and not _known(size, items, begun, own, rank):
            stack[deeper, 0], stack[deeper, 1] = own, rank
            deeper += 1
    if deeper > depth:
        return deeper
    for more_a, more_b in ((0, 1), (1, 0)):
        if more_a == 1 and b > 0:
            continue
        value = _score(items, begun, first, a + more_a, k) + _score(items, begun, second, b + more_b, k)
        if value > -np.inf:
            at = slot * room + begun.counts[slot, 0]
            begun.value[at] = value + arc[h, m] if m > 0 else value
            begun.way[at, 0], begun.way[at, 1], begun.way[at, 2] = r, a + more_a, b + more_b
            begun.counts[slot, 0] += 1
    begun.counts[slot, 2] = begun.counts[slot, 1]
    return depth


@njit(cache=True, nogil=True)
def _take(begun, slot, room, k):
    """Take the best candidate; the others move up, so that they stay in order."""
    count, best = begun.counts[slot, 0], slot * room
    for at in range(slot * room + 1, slot * room + count):
        if begun.value[at] > begun.value[best]:
            best = at
    to = slot * k + begun.counts[slot, 1]
    begun.taken[to] = begun.value[best]
    begun.taken_way[to] = begun.way[best]
    for at in range(best, slot * room + count - 1):
        begun.value[at] = begun.value[at + 1]
        begun.way[at] = begun.way[at + 1]
    begun.counts[slot, 0] -= 1
    begun.counts[slot, 1] += 1


@njit(cache=True, nogil=True)
def _more(array):
    """The array with as much room again."""
    return np.concatenate((array, np.empty_like(array)))


@njit(cache=True, nogil=True)
def _grown(begun):
    """Twice as many slots."""
    return Begun(_more(begun.counts), _more(begun.value), _more(begun.way), _more(begun.taken), _more(begun.taken_way))


@njit(cache=True, nogil=True)
def _ensure(arc, items, begun, slots, root, rank, sizes, stack):
    """Find derivations of root until one has this rank, or there are no more; returns what was begun, and how many."""
    size, (room, k) = arc.shape[0], sizes
    stack[0, 0], stack[0, 1] = root, rank
    depth = 1
    while depth > 0:
        item, wanted = stack[depth - 1, 0], stack[depth - 1, 1]
        if items.slot[item] < 0:
            if slots == begun.counts.shape[0]:
                begun = _grown(begun)
            _begin(arc, items, begun, item, slots, room)
            slots += 1
        slot = items.slot[item]
        if _known(size, items, begun, item, wanted):
            depth -= 1
            continue
        if begun.counts[slot, 2] < begun.counts[slot, 1]:
            deeper = _let_in(arc, items, begun, item, slot, sizes, stack, depth)
            if deeper > depth:
                depth = deeper
                continue
        if begun.counts[slot, 0] > 0:
            _take(begun, slot, room, k)
    return begun, slots


@njit(cache=True, nogil=True)
def _spell(size, items, begun, root, rank, k, stack, heads):
    """heads (N,) <- the tree of a derivation."""
    stack[0, 0], stack[0, 1] = root, rank
    depth = 1
    while depth > 0:
        depth -= 1
        item, rank = stack[depth, 0], stack[depth, 1]
        kind, s, t = _parts(size, item)
        if s == t:
            continue
        r, a, b = items.place[item], 0, 0
        if rank > 0:
            way = begun.taken_way[items.slot[item] * k + rank]
            r, a, b = way[0], way[1], way[2]
        first, second, h, m = _two(size, kind, s, t, r)
        if m > 0:
            heads[m] = h
        stack[depth, 0], stack[depth, 1] = first, a
        stack[depth + 1, 0], stack[depth + 1, 1] = second, b
        depth += 2


@njit(cache=True, nogil=True)
def best_trees(arc, lengths, single, value, heads):
    """heads (B, k, N) <- the k best trees of each sentence, best first, value (B, k) <- their scores.

    Where there are fewer, value is -inf and heads are -1, as at node 0 and in the padding.
    """
    size, k = arc.shape[1], value.shape[1]
    items = Items(np.empty(4 * size * size), np.empty(4 * size * size, np.int32), np.empty(4 * size * size, np.int32))
    room, slots = size + 2 * k, 64
    begun = Begun(
        np.empty((slots, 3), np.int64),
        np.empty(slots * room),
        np.empty((slots * room, 3), np.int32),
        np.empty(slots * k),
        np.empty((slots * k, 3), np.int32),
    )
    stack = np.empty((6 * size + 8, 2), np.int64)
    value[:] = -np.inf
    heads[:] = -1
    for b in range(arc.shape[0]):
        n = lengths[b]
        if n == 0:
            value[b, 0] = 0.0
            continue
        items.best[:] = -np.inf
        items.slot[:] = -1
        _fill(arc[b], n, single, items)
        root = (TOP if single else RIGHT) * size * size + n
        used = 0
        for rank in range(k if items.best[root] > -np.inf else 0):
            if rank > 0:
                begun, used = _ensure(arc[b], items, begun, used, root, rank, (room, k), stack)
            value[b, rank] = _score(items, begun, root, rank, k)
            if value[b, rank] == -np.inf:
                break
            _spell(size, items, begun, root, rank, k, stack, heads[b, rank])
