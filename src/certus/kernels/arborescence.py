"""Best dependency trees with crossing arcs: contraction of cycles in O(n^2), single and multi root.

Layout. ``score`` is flat with ``stride`` cells per row: the arc h -> m scores ``score[h * stride + m]``; node 0 is the
root, words are 1..n, ``n < stride``. Column 0 and the diagonal are not read. ``-inf`` forbids an arc.

How to call it from another kernel, without any allocation in the loop::

    n_floats, n_ints = work_sizes(n)                    # once, for the longest sentence
    floats, ints = np.empty(n_floats), np.empty(n_ints, np.int64)
    value = best_heads(score, stride, n, single, heads, floats, ints)    # heads: int64, at least n + 1 cells

``heads[1:n + 1]`` is filled and ``heads[0]`` set to -1; the value is the sum of the arc scores in order of m, or -inf
when there is no tree (heads are then undefined). Work arrays need no initial values and keep none between calls.

The method. Every word takes its best head; a cycle becomes a component whose arcs from outside score what they would
gain over the cycle's own arcs, and the component takes its best head in turn (Chu-Liu, Edmonds; the walk
backwards from one start is Tarjan's and Gabow's). Only words on cycles have their columns read a second time.

A single root. Let each arc weigh a pair: minus the number of root arcs, then the score; pairs are added and compared
in order. The contraction is valid in any ordered group, and its optimum has the fewest root arcs possible: one, or no
single-rooted tree exists. The arcs of a cycle are never root arcs, so a root arc weighs (-1, .) and others (0, .) at
every level: the rule is simply to take an arc from 0 when no other is left. No large constant is involved.

Ties go to the smallest head; among the words of one cycle to the one reached last on the walk.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.lanes import LANES, larger, load, spread, store, where_larger

U = np.uint64
DIAGONAL = np.zeros(2 * LANES)  # DIAGONAL[LANES - k :] is 1 in lane k alone
DIAGONAL[LANES] = 1.0
ENTERED = 4  # mark of the member of a cycle through which the tree comes into it, in place of the cycle's own arc


class Components(NamedTuple):
    """The nodes, numbers 0..n, and the cycles contracted, from n + 1 on; views of the work arrays of best_heads."""

    best: np.ndarray  # adjusted score of the best arc from outside
    rows: np.ndarray  # adjusted scores of arcs h -> c, for c > n, n + 1 cells each
    head: np.ndarray  # the node that the best arc comes from
    child: np.ndarray  # first member of a contracted component
    sibling: np.ndarray  # next member of the same component, -1 at the end
    top: np.ndarray  # the outermost component of a node
    after: np.ndarray  # next node of the same outermost component, -1 at the end
    last: np.ndarray  # last node of a component
    entry: np.ndarray  # first node of a component
    mark: np.ndarray  # 0 unseen, 1 on the walk, 2 hangs below a root; of a tree 3 spelt out, or ENTERED
    walk: np.ndarray


@njit(cache=True, nogil=True)
def work_sizes(n):
    """Cells that best_heads needs in its float and integer work arrays for up to n words."""
    size = 2 * n + 2
    return size + n * (n + 1) + 2 * (n + LANES), 9 * size


@njit(cache=True, nogil=True, inline="always")
def components(n, floats, ints):
    """The parts of the work arrays for n words."""
    size = 2 * n + 2
    return Components(
        floats[:size],
        floats[size : size + n * (n + 1)],
        ints[:size],
        ints[size : 2 * size],
        ints[2 * size : 3 * size],
        ints[3 * size : 4 * size],
        ints[4 * size : 5 * size],
        ints[5 * size : 6 * size],
        ints[6 * size : 7 * size],
        ints[7 * size : 8 * size],
        ints[8 * size : 9 * size],
    )


@njit(cache=True, nogil=True)
def greedy_heads(score, stride, n, best, head):
    """best[m], head[m] <- max and argmax of score[h, m] over the words h != m, for each word m; -inf, 0 if all are.

    best and head (n + LANES,) are of floats, so that LANES neighbouring words are served at once.
    """
    one, lanes, size, end = U(1), U(LANES), U(stride), U(n + 1)
    if size < lanes:
        for m in range(one, end):
            best[m] = -np.inf
            head[m] = 0.0
            for h in range(one, end):
                x = score[h * size + m]
                if h != m and x > best[m]:
                    best[m] = x
                    head[m] = h
        return
    half, forbidden = spread(0.5), spread(-np.inf)
    for block in range(U(0), end, lanes):
        first = min(block, size - lanes)  # of the words served
        most, arg = spread(-np.inf), spread(0.0)
        for h in range(one, min(first, end)):
            x = load(score, h * size + first)
            arg = where_larger(x, most, spread(np.float64(h)), arg)
            most = larger(x, most)
        for h in range(max(first, one), min(first + lanes, end)):
            x = where_larger(load(DIAGONAL, lanes + first - h), half, forbidden, load(score, h * size + first))
            arg = where_larger(x, most, spread(np.float64(h)), arg)
            most = larger(x, most)
        for h in range(first + lanes, end):
            x = load(score, h * size + first)
            arg = where_larger(x, most, spread(np.float64(h)), arg)
            most = larger(x, most)
        store(best, first, most)
        store(head, first, arg)


@njit(cache=True, nogil=True)
def begin(score, n, first, greedy, best, head):
    """best, head <- the best head of each word: that of greedy_heads, or 0 if the arc from there scores as much.

    With first = 1 only if there is no other. greedy (2 * (n + LANES),) has what greedy_heads left, best and head.
    """
    for m in range(U(1), U(n + 1)):
        x = greedy[m]
        root = x == -np.inf if first == 1 else score[m] >= x
        best[m] = score[m] if root else x
        head[m] = 0 if root else np.int64(greedy[m + U(n + LANES)])


@njit(cache=True, nogil=True)
def contract(score, stride, n, first, extra, floats, ints):
    """Contract cycles until every component hangs, directly or not, below node 0 (or below ``extra``, a second root).

    Starts from best and head of every word as begin gave them. Returns the number of components (original nodes
    included), or -1 if some component has no head. ``first`` is 1 to use arcs from 0 only where there is no other
    choice, 0 to treat them as all others.
    """
    best, rows, head, child, sibling, top, after, last, entry, mark, walk = components(n, floats, ints)
    width = U(n + 1)
    for v in range(width):
        top[v] = v
        after[v] = -1
        last[v] = v
        entry[v] = v
        mark[v] = 0
        sibling[v] = -1
    mark[0] = 2
    mark[extra] = 2
    count = n + 1
    for start in range(U(1), width):
        if mark[U(top[start])] != 0:
            continue
        depth = 0
        c = U(top[start])
        while True:
            walk[U(depth)] = c
            depth += 1
            mark[c] = 1
            if best[c] == -np.inf:
                return -1
            u = U(top[U(head[c])])
            state = mark[u]
            if state == 2:
                break
            if state == 0:
                c = u
                continue
            # u is on the walk: the walk from u to its end is a cycle. It becomes component ``count``.
            new = U(count)
            base = (new - width) * width
            mark[new] = 1
            sibling[new] = -1
            for h in range(width):
                rows[base + h] = -np.inf
            previous = -1
            tail = -1
            while True:
                depth -= 1
                v = U(walk[U(depth)])
                loss = best[v]
                if v < width:
                    for h in range(width):
                        x = score[h * U(stride) + v] - loss
                        y = rows[base + h]
                        rows[base + h] = x if x > y else y
                else:
                    inner = (v - width) * width
                    for h in range(width):
                        x = rows[inner + h] - loss
                        y = rows[base + h]
                        rows[base + h] = x if x > y else y
                sibling[v] = previous
                previous = v
                if tail == -1:
                    last[new] = last[v]
                else:
                    after[U(last[v])] = tail
                tail = entry[v]
                if v == u:
                    break
            child[new] = previous
            entry[new] = tail
            while tail != -1:
                top[U(tail)] = new
                rows[base + U(tail)] = -np.inf
                tail = after[U(tail)]
            most = -np.inf
            arg = 0
            for h in range(U(first), width):
                x = rows[base + h]
                if x > most:
                    most = x
                    arg = h
            if first == 1 and most == -np.inf:
                most = rows[base]
                arg = 0
            best[new] = most
            head[new] = arg
            c = new
            count += 1
        for k in range(U(depth)):
            mark[U(walk[k])] = 2
    return count


@njit(cache=True, nogil=True)
def expand(score, stride, n, heads, floats, ints):
    """Heads of the words from the components that contract left: a component entered from h keeps its cycle's arcs,
    except at the member through which the arc from h comes in."""
    best, rows, head, child, sibling, top, _, _, _, done, stack = components(n, floats, ints)
    width = U(n + 1)
    heads[0] = -1
    for m in range(U(1), width):
        outer = U(top[m])
        if outer == m:
            heads[m] = head[m]
            continue
        if done[outer] == 3:
            continue
        done[outer] = 3
        stack[0] = outer
        depth = 1
        while depth > 0:
            depth -= 1
            c = U(stack[U(depth)])
            h = U(head[c])
            if c < width:
                heads[c] = h
                continue
            most = -np.inf
            through = -1
            v = child[c]
            while v != -1:
                x = score[h * U(stride) + U(v)] if U(v) < width else rows[(U(v) - width) * width + h]
                x -= best[U(v)]
                if x > most:
                    most = x
                    through = v
                stack[U(depth)] = v
                depth += 1
                v = sibling[U(v)]
            head[U(through)] = h
            done[U(through)] = ENTERED


@njit(cache=True, nogil=True)
def best_heads(score, stride, n, single, heads, floats, ints):
    """Fill heads with the best tree over words 1..n and return its score; -inf if there is none.

    ``single`` True: exactly one child of node 0. O(n^2) time. See the head of this file for the arrays.
    """
    heads[0] = -1
    if n == 0:
        return 0.0
    size = 2 * n + 2
    zero, one = np.int64(0), np.int64(1)  # one type for all calls: compiled once
    greedy = floats[size + n * (n + 1) :]
    greedy_heads(score, stride, n, greedy, greedy[n + LANES :])
    begin(score, n, zero, greedy, floats, ints)
    if contract(score, stride, n, zero, zero, floats, ints) < 0:
        return -np.inf
    expand(score, stride, n, heads, floats, ints)
    if single:
        roots = 0
        for m in range(U(1), U(n + 1)):
            roots += heads[m] == 0
        if roots > 1:
            begin(score, n, one, greedy, floats, ints)
            if contract(score, stride, n, one, zero, floats, ints) < 0:
                return -np.inf
            expand(score, stride, n, heads, floats, ints)
            roots = 0
            for m in range(U(1), U(n + 1)):
                roots += heads[m] == 0
            if roots > 1:
                return -np.inf
    total = 0.0
    for m in range(U(1), U(n + 1)):
        total += score[U(heads[m]) * U(stride) + m]
    return total


@njit(cache=True, nogil=True)
def best_heads_batch(score, stride, lengths, single, heads, values):
    """best_heads for each sentence of a padded batch. Shapes: score (B * stride * stride,), heads (B, stride).

    Cells of heads beyond a sentence's length are -1, and all of them if it has no tree.
    """
    longest = 0
    for b in range(lengths.shape[0]):
        longest = max(longest, lengths[b])
    n_floats, n_ints = work_sizes(longest)
    floats = np.empty(n_floats)
    ints = np.empty(n_ints, np.int64)
    area = stride * stride
    for b in range(lengths.shape[0]):
        n = lengths[b]
        heads[b, n + 1 :] = -1
        values[b] = best_heads(score[b * area : (b + 1) * area], stride, n, single, heads[b], floats, ints)
        if values[b] == -np.inf:
            heads[b] = -1


@njit(cache=True, nogil=True)
def max_marginals(score, stride, n, single, out):
    """out[h, m] <- score of the best tree that contains the arc h -> m; -inf where there is none. O(n^3) time.

    For one word m, contract with 0 and m as roots: this gives the best pair of trees rooted there, of value V, and an
    optimal dual, hence a loss >= 0 for every arc into an outermost component. A tree with the arc h -> m is such a pair
    with h on the side of 0. It holds a path of components from 0 to h, and every path can be had by changing the heads
    along it only; so the best one scores score[h, m] + V - (shortest distance from 0 to h), for all h by one run of
    Dijkstra. With a single root the first step of the path is the one root arc: it is the one the contraction chose,
    if it chose any, and free to choose otherwise.

    Shapes: score flat with ``stride``, out (n + 1, n + 1).
    """
    n_floats, n_ints = work_sizes(n)
    floats = np.empty(n_floats)
    ints = np.empty(n_ints, np.int64)
    best, rows, head, _, _, top, after, _, entry, _, _ = components(n, floats, ints)
    distance = np.empty(2 * n + 2)
    outermost = np.empty(n + 1, np.int64)  # components, those that are settled cut off at the end
    width = n + 1
    first = np.int64(1 if single else 0)
    greedy = floats[2 * n + 2 + n * (n + 1) :]
    greedy_heads(score, stride, n, greedy, greedy[n + LANES :])
    best_at_first, head_at_first = np.empty(n + 1), np.empty(n + 1, np.int64)
    begin(score, n, first, greedy, best_at_first, head_at_first)
    out[:, :] = -np.inf
    for m in range(1, n + 1):
        for v in range(1, n + 1):
            best[v] = best_at_first[v]
            head[v] = head_at_first[v]
        count = contract(score, stride, n, first, m, floats, ints)
        if count < 0:
            continue
        value = 0.0
        for c in range(1, count):
            if c != m:
                value += best[c]
        left = 0
        roots = 0
        for v in range(1, n + 1):
            c = top[v]
            if v != m and entry[c] == v:
                outermost[left] = c
                left += 1
                roots += head[c] == 0
        if single and roots > 1:
            continue
        if score[m] > -np.inf and not (single and roots > 0):
            out[0, m] = score[m] + value
        for k in range(left):
            c = outermost[k]
            x = score[c] if c < width else rows[(c - width) * width]
            distance[c] = best[c] - x
            if single and roots == 1 and head[c] != 0:
                distance[c] = np.inf
        while left > 0:
            place = 0
            for k in range(1, left):
                if distance[outermost[k]] < distance[outermost[place]]:
                    place = k
            near = outermost[place]
            base = distance[near]
            if base == np.inf:
                break
            left -= 1
            outermost[place] = outermost[left]
            h = entry[near]
            while h != -1:
                x = score[h * stride + m]
                if x > -np.inf:
                    out[h, m] = x + (value - base)
                row = U(h * stride)
                for c in range(U(1), U(width)):  # words that are no components of their own get a distance for nothing
                    y = base + (best[c] - score[row + c])
                    distance[c] = y if y < distance[c] else distance[c]
                h = after[h]
            for k in range(left):
                c = outermost[k]
                if c >= width:
                    h = entry[near]
                    while h != -1:
                        y = base + (best[c] - rows[(c - width) * width + h])
                        distance[c] = y if y < distance[c] else distance[c]
                        h = after[h]


@njit(cache=True, nogil=True)
def max_marginals_batch(score, stride, lengths, single, out):
    """max_marginals for each sentence of a padded batch; out (B, stride, stride) is -inf beyond a sentence's length."""
    area = stride * stride
    out[:, :, :] = -np.inf
    for b in range(lengths.shape[0]):
        width = lengths[b] + 1
        max_marginals(score[b * area : (b + 1) * area], stride, lengths[b], single, out[b, :width, :width])
