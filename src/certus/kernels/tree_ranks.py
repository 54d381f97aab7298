"""The best dependency trees with crossing arcs, one after the other, each in O(n^2) time ([Camerini80]_).

A space of trees is those that have some arcs and have not some others. Its best tree known, the next best one lacks an
arc of it: which one, the contraction that found the tree tells. Each component, a word or a contracted cycle, took the
best arc into it; where that is an arc a of the tree, it can be exchanged for the next best one that does not come from
below, and the least loss of all these is what the next best tree loses. (A tree without a has, on its way from the root
to where a ends, a first arc into what hangs below a, and it loses at least as much by that.) The space then falls into
the trees without a, whose best is the next tree listed, and those with a, whose best is listed already. So two
contractions are done for each tree listed, and none for spaces that are never opened.

With a single root arcs from node 0 are used only where there is no other, as ``arborescence`` says; they are exchanged
for each other, as others are.

Ties go to the smaller word whose head is exchanged, then to the space made first. Rounding may bring trees that score
the same but for rounding into any order; that none comes twice and none is left out does not depend on scores.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels import arborescence
from certus.kernels.compiling import njit
from certus.kernels.kbest import merged, popped
from certus.kernels.lanes import LANES

U = np.uint64
LISTED, MADE, TOP, SHUT = 0, 1, 2, 3  # trees, spaces, top of their heap, one not looked at yet; the latter -1 if none


class Spaces(NamedTuple):
    """Those made so far, each a part of another one, whose arc is the one into ``edge`` of its best tree."""

    state: np.ndarray  # (4,)
    value: np.ndarray  # score of the best tree but one
    edge: np.ndarray  # the word whose head that tree changes
    child: np.ndarray  # of the heap
    next: np.ndarray  # of the heap
    part_of: np.ndarray
    kept: np.ndarray  # whether trees have the arc of the space that it is a part of
    tree: np.ndarray  # the best tree, by its number among those listed


class Work(NamedTuple):
    """What is used again for each space."""

    floats: np.ndarray  # of the contraction
    ints: np.ndarray
    columns: np.ndarray  # scores of the arcs that trees of a space may have, n + 1 in a row
    heads: np.ndarray  # of its best tree
    other: np.ndarray  # score of the best arc into each word that may take the place of its own
    first: np.ndarray  # child of a node, -1 if it has none
    after: np.ndarray  # next child of the same node, -1 if it is the last
    place: np.ndarray  # of a node, in an order in which all below it follow it
    end: np.ndarray  # place after the last of them


@njit(cache=True, nogil=True)
def work_for(n):
    """Work arrays for up to n words."""
    n_floats, n_ints = arborescence.work_sizes(n)
    floats, ints, columns = np.empty(n_floats), np.empty(n_ints, np.int64), np.empty((n + 1) * (n + 1))
    rows = np.empty((5, n + 1), np.int64)
    return Work(floats, ints, columns, rows[0], np.empty(n + 1), rows[1], rows[2], rows[3], rows[4])


@njit(cache=True, nogil=True)
def no_spaces(count):
    """Room for so many spaces; the first one, of all trees, is not made yet."""
    state = np.zeros(4, np.int64)
    state[TOP] = state[SHUT] = -1
    ints = np.empty((6, count), np.int64)
    return Spaces(state, np.empty(count), ints[0], ints[1], ints[2], ints[3], ints[4], ints[5])


@njit(cache=True, nogil=True)
def _allow(score, stride, n, spaces, space, heads, columns):
    """columns <- the scores, -inf where no tree of the space has the arc."""
    width = n + 1
    for h in range(width):
        columns[h * width : (h + 1) * width] = score[h * stride : h * stride + width]
    while spaces.part_of[space] >= 0:
        whole = spaces.part_of[space]
        m = spaces.edge[whole]
        h = heads[spaces.tree[whole], m]
        x = columns[h * width + m]
        if spaces.kept[space]:
            for other in range(width):
                columns[other * width + m] = -np.inf
        columns[h * width + m] = x if spaces.kept[space] else -np.inf
        space = whole


@njit(cache=True, nogil=True)
def _contract(n, single, work):
    """heads <- the best tree of the arcs in ``columns``; returns how many components there are, -1 if there is no tree.

    With a single root arcs from 0 are a last resort, so that the losses of the others are those among such trees.
    """
    width, size = n + 1, 2 * n + 2
    first, zero = np.int64(single), np.int64(0)
    greedy = work.floats[size + n * width :]
    arborescence.greedy_heads(work.columns, width, n, greedy, greedy[n + LANES :])
    arborescence.begin(work.columns, n, first, greedy, work.floats, work.ints)
    count = arborescence.contract(work.columns, width, n, first, zero, work.floats, work.ints)
    if count < 0:
        return -1
    arborescence.expand(work.columns, width, n, work.heads, work.floats, work.ints)
    roots = 0
    for m in range(1, width):
        roots += work.heads[m] == 0
    return -1 if single and roots > 1 else count


@njit(cache=True, nogil=True)
def _number(n, work):
    """place and end <- where each node and what hangs below it stand."""
    heads, first, after, place, end = work.heads, work.first, work.after, work.place, work.end
    first[: n + 1] = -1
    for m in range(n, 0, -1):
        after[m] = first[heads[m]]
        first[heads[m]] = m
    v, count = 0, 0
    while True:
        place[v] = count
        count += 1
        if first[v] >= 0:
            v = first[v]
            continue
        end[v] = count
        while v > 0 and after[v] < 0:
            v = heads[v]
            end[v] = count
        if v == 0:
            return
        v = after[v]


@njit(cache=True, nogil=True)
def _cheapest(n, single, count, work):
    """The word whose head changes in the best tree but one, as _contract left the best, and the loss; inf if none is.

    Takes the arcs of the tree out of ``columns``.
    """
    best, rows, head, child, sibling, _, _, _, _, mark, _ = arborescence.components(n, work.floats, work.ints)
    columns, other, place, end = work.columns, work.other, work.place, work.end
    _number(n, work)
    width, first = U(n + 1), U(single)
    for m in range(U(1), width):
        columns[U(work.heads[m]) * width + m] = -np.inf
    other[:] = -np.inf
    for h in range(first, width):
        at = place[h]
        for m in range(U(1), width):
            x = columns[h * width + m]
            x = -np.inf if place[m] <= at < end[m] else x
            other[m] = x if x > other[m] else other[m]
    word, least = 0, np.inf
    for c in range(U(1), U(count)):
        if mark[c] == arborescence.ENTERED:
            continue
        h, lost = U(head[c]), 0.0
        inner, most = c, other[c] if c < width else -np.inf
        while inner >= width:  # down to the word; other arcs from the same node may end at other members
            entered = inner
            member = child[inner]
            while member != -1:
                v = U(member)
                if mark[v] == arborescence.ENTERED:
                    entered = v
                else:
                    x = columns[h * width + v] if v < width else rows[(v - width) * width + h]
                    x -= best[v] + lost
                    most = x if x > most else most
                member = sibling[v]
            lost += best[entered]
            inner = entered
        low, high = place[inner], end[inner]
        for node in range(first, width if c >= width else first):
            x = rows[(c - width) * width + node]
            x = -np.inf if low <= place[node] < high or node == h else x
            most = x if x > most else most
        if best[c] - most < least:
            word, least = np.int64(inner), best[c] - most
    return word, least


@njit(cache=True, nogil=True)
def _open(n, single, count, spaces, space, value, heads, work):
    """Find the best tree but one of a space whose best is in ``heads``, or as good as that in the one that _contract
    found; ``value`` is that of the former.
    """
    word, least, known = 0, np.inf, heads[spaces.tree[space]]
    for m in range(n, 0, -1):
        if count >= 0 and work.heads[m] != known[m]:
            word = m
    if word > 0:
        least = 0.0
    elif count >= 0:
        word, least = _cheapest(n, single, count, work)
    if least < np.inf:
        spaces.edge[space], spaces.value[space] = word, value - least
        spaces.child[space] = spaces.next[space] = -1
        spaces.state[TOP] = merged(spaces, spaces.state[TOP], space)


@njit(cache=True, nogil=True)
def _made(spaces, whole, kept, tree):
    """A new space, with or without the arc by which a space is split; ``tree`` is its best."""
    space = spaces.state[MADE]
    spaces.state[MADE] += 1
    spaces.part_of[space], spaces.kept[space], spaces.tree[space] = whole, kept, tree
    return space


@njit(cache=True, nogil=True)
def _total(score, stride, n, heads):
    total = 0.0
    for m in range(1, n + 1):
        total += score[heads[m] * stride + m]
    return total


@njit(cache=True, nogil=True)
def list_trees(score, stride, n, single, spaces, work, value, heads):
    """Fill rows of heads (k, N) and value (k,) with trees after those that spaces know, until all are or none is left.

    Room for 2 k spaces is needed. Values are bounds on what follows: a tree's score, but for rounding.
    """
    state = spaces.state
    if state[MADE] == 0:
        value[0] = arborescence.best_heads(score, stride, n, single, heads[0], work.floats, work.ints)
        if value[0] == -np.inf:
            return
        state[LISTED], state[SHUT] = 1, _made(spaces, -1, 0, 0)
    while state[LISTED] < value.shape[0] and state[MADE] + 2 <= spaces.value.shape[0]:
        space = state[SHUT]
        if space >= 0:
            _allow(score, stride, n, spaces, space, heads, work.columns)
            own = value[spaces.tree[space]]
            _open(n, single, _contract(n, single, work), spaces, space, own, heads, work)
            state[SHUT] = -1
        space = state[TOP]
        if space < 0:
            return
        state[TOP] = popped(spaces, space)
        state[SHUT] = _made(spaces, space, 1, spaces.tree[space])
        rest, at = _made(spaces, space, 0, state[LISTED]), state[LISTED]
        _allow(score, stride, n, spaces, rest, heads, work.columns)
        count = _contract(n, single, work)
        if count < 0:
            continue
        state[LISTED] += 1
        heads[at, : n + 1] = work.heads[: n + 1]
        value[at] = max(_total(score, stride, n, work.heads), spaces.value[space])
        _open(n, single, count, spaces, rest, value[at], heads, work)


@njit(cache=True, nogil=True)
def best_trees(score, stride, lengths, single, value, heads):
    """heads (B, k, N) <- the k best trees of each sentence, best first, value (B, k) <- what no tree after it exceeds.

    Where there are fewer, value is -inf and heads are -1, as at node 0 and in the padding. score is flat.
    """
    value[:] = -np.inf
    heads[:] = -1
    longest = 0
    for b in range(lengths.shape[0]):
        longest = max(longest, lengths[b])
    work, spaces, area = work_for(longest), no_spaces(2 * value.shape[1] + 1), stride * stride
    for b in range(lengths.shape[0]):
        spaces.state[LISTED] = spaces.state[MADE] = 0
        spaces.state[TOP] = spaces.state[SHUT] = -1
        own = score[b * area : (b + 1) * area]
        list_trees(own, stride, lengths[b], single, spaces, work, value[b], heads[b])
        if value[b, 0] == -np.inf:
            heads[b, 0] = -1
