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

import numpy as np
from numba import njit

U = np.uint64


@njit(cache=True, nogil=True)
def work_sizes(n):
    """Cells that best_heads needs in its float and integer work arrays for up to n words."""
    size = 2 * n + 2
    return size + n * (n + 1), 9 * size


@njit(cache=True, nogil=True)
def _greedy(score, stride, n, first, best, head):
    """best[m], head[m] <- max and argmax of score[h, m] over h >= first, h != m, for each word m.

    With first = 1 a word that has no other arc falls back to its arc from 0.
    """
    one = U(1)
    end = U(n + 1)
    for m in range(one, end):
        best[m] = score[m] if first == 0 else -np.inf
        head[m] = 0
    for h in range(one, end):
        row = h * U(stride)
        label = np.int64(h)
        for m in range(one, h):
            x = score[row + m]
            better = x > best[m]
            best[m] = x if better else best[m]
            head[m] = label if better else head[m]
        for m in range(h + one, end):
            x = score[row + m]
            better = x > best[m]
            best[m] = x if better else best[m]
            head[m] = label if better else head[m]
    if first == 1:
        for m in range(one, end):
            if best[m] == -np.inf:
                best[m] = score[m]
                head[m] = 0


@njit(cache=True, nogil=True)
def _contract(score, stride, n, first, extra, floats, ints):
    """Contract cycles until every component hangs, directly or not, below node 0 (or below ``extra``, a second root).

    Returns the number of components (original nodes included), or -1 if some component has no head. ``first`` is 1
    to use arcs from 0 only where there is no other choice, 0 to treat them as all others. Fills, by component c:
    best[c], the adjusted score of its best arc from outside; head[c], the word or root that arc comes from;
    child and sibling, the members of contracted components; rows, adjusted scores of arcs h -> c for c > n;
    top[v], the outermost component of node v.
    """
    size = 2 * n + 2
    best = floats[:size]
    rows = floats[size:]
    head = ints[:size]
    child = ints[size : 2 * size]  # first member of a contracted component
    sibling = ints[2 * size : 3 * size]  # next member of the same component, -1 at the end
    top = ints[3 * size : 4 * size]
    after = ints[4 * size : 5 * size]  # next node of the same outermost component, -1 at the end
    last = ints[5 * size : 6 * size]  # last node of a component; its first is entry[c]
    entry = ints[6 * size : 7 * size]
    mark = ints[7 * size : 8 * size]  # 0 unseen, 1 on the walk, 2 hangs below a root
    walk = ints[8 * size : 9 * size]
    width = U(n + 1)
    _greedy(score, stride, n, first, best, head)
    for v in range(U(n + 1)):
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
            count += 1
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
        for k in range(U(depth)):
            mark[U(walk[k])] = 2
    return count


@njit(cache=True, nogil=True)
def _expand(score, stride, n, heads, floats, ints):
    """Heads of the words from the components that _contract left: a component entered from h keeps its cycle's arcs,
    except at the member through which the arc from h comes in."""
    size = 2 * n + 2
    best = floats[:size]
    rows = floats[size:]
    head = ints[:size]
    child = ints[size : 2 * size]
    sibling = ints[2 * size : 3 * size]
    top = ints[3 * size : 4 * size]
    done = ints[7 * size : 8 * size]
    stack = ints[8 * size : 9 * size]
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
    return


@njit(cache=True, nogil=True)
def best_heads(score, stride, n, single, heads, floats, ints):
    """Fill heads with the best tree over words 1..n and return its score; -inf if there is none.

    ``single`` True: exactly one child of node 0. O(n^2) time. See the head of this file for the arrays.
    """
    heads[0] = -1
    if n == 0:
        return 0.0
    if _contract(score, stride, n, 0, 0, floats, ints) < 0:
        return -np.inf
    _expand(score, stride, n, heads, floats, ints)
    if single:
        roots = 0
        for m in range(U(1), U(n + 1)):
            roots += heads[m] == 0
        if roots > 1:
            if _contract(score, stride, n, 1, 0, floats, ints) < 0:
                return -np.inf
            _expand(score, stride, n, heads, floats, ints)
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

    Cells of heads beyond a sentence's length are -1.
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
