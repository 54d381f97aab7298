"""CKY charts over a binarised grammar, all cells (i, j) with 0 <= i < j <= n, words i .. j - 1.

    chart[X, i, j] <- (+) over rules X -> Y Z and i < k < j   chart[Y, i, k] (x) w (x) chart[Z, k, j]
    chart[P, i, j] <- (+) over chains P <- B                  chart[B, i, j] (x) w

Symbols are numbers 0 .. M - 1. A symbol that chains lead to (a top) has no binary rules and no words of its own; a
chain's bottom (a base) is never such a top. So one pass over the chains completes a cell.

Layout: one block for each right end j, in it one row for each symbol, in it the starts i = 0 .. j - 1:
chart[M * j * (j - 1) / 2 + X * j + i]. Right ends are completed one after the other and, for one j, starts from
j - 1 down to 0. Each finished item (Z, k, j) is then pushed through the rules with right child Z, for all i < k
at once: the innermost loop runs along the rows of Y (block k) and X (block j).

The sweeps for the best score and for sums are two sources: a maximum runs along rows, where it is worth knowing which
cells are -inf, while a sum is kept as a maximum and a rest so that few exponentials are taken.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit

NEGLIGIBLE = -60.0  # exp of this, times the number of edges of any chart, is far below one unit in the last place


class Chains(NamedTuple):
    """Chains top <- base, sorted by top: those of top X are range(ptr[X], ptr[X + 1])."""

    ptr: np.ndarray
    top: np.ndarray
    base: np.ndarray
    weight: np.ndarray


class Rules(NamedTuple):
    """Rules parent -> left right, sorted by right child: those of Z are range(right_ptr[Z], right_ptr[Z + 1]).

    Those of a parent X are by_parent[parent_ptr[X] : parent_ptr[X + 1]].
    """

    size: int  # M
    root: int
    is_top: np.ndarray  # (M,)
    right_ptr: np.ndarray
    parent_ptr: np.ndarray
    by_parent: np.ndarray
    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    weight: np.ndarray
    chains: Chains


class Words(NamedTuple):
    """Items: number q puts a symbol over word p for q in range(ptr[p], ptr[p + 1])."""

    ptr: np.ndarray
    symbol: np.ndarray
    weight: np.ndarray


class Edges(NamedTuple):
    """A hypergraph with its weights, and the step of ``derivation`` that each edge is."""

    in_ptr: np.ndarray  # (V + 1,)
    tail_ptr: np.ndarray  # (E + 1,)
    tail: np.ndarray  # (2 E,)
    weight: np.ndarray
    step: np.ndarray


@njit(cache=True, nogil=True)
def viterbi(n, rules, words, chart):
    """Best score of every item. Shapes: rules (R,), chains (C,), chart (M n (n + 1) / 2,). Overwrites chart."""
    size, left, parent, weight, right_ptr = rules.size, rules.left, rules.parent, rules.weight, rules.right_ptr
    _, chain_top, chain_base, chain_weight = rules.chains
    lex_ptr, lex_id, lex_weight = words
    chart[:] = -np.inf
    # Starts i with chart[Y, i, k] > -inf lie in low[k, Y] <= i < high[k, Y].
    low = np.zeros((n + 1, size), dtype=np.uint32)
    high = np.zeros((n + 1, size), dtype=np.uint32)
    for j_ in range(1, n + 1):
        j = np.uint64(j_)
        block = np.uint64(size * (j_ * (j_ - 1) // 2))
        for q in range(lex_ptr[j_ - 1], lex_ptr[j_]):
            cell = block + np.uint64(lex_id[q]) * j + j - np.uint64(1)
            if lex_weight[q] > chart[cell]:
                chart[cell] = lex_weight[q]
        for k_ in range(j_ - 1, -1, -1):
            k = np.uint64(k_)
            for c in range(chain_top.shape[0]):
                score = chart[block + np.uint64(chain_base[c]) * j + k] + chain_weight[c]
                cell = block + np.uint64(chain_top[c]) * j + k
                if score > chart[cell]:
                    chart[cell] = score
            if k_ == 0:
                break
            inner = np.uint64(size * (k_ * (k_ - 1) // 2))
            for z in range(size):
                right = chart[block + np.uint64(z) * j + k]
                if right == -np.inf:
                    continue
                for r in range(right_ptr[z], right_ptr[z + 1]):
                    y = np.uint64(left[r])
                    first = low[k, y]
                    last = high[k, y]
                    if first >= last:
                        continue
                    score = right + weight[r]
                    source = inner + y * k
                    target = block + np.uint64(parent[r]) * j
                    for i in range(first, last):
                        new = chart[source + i] + score
                        old = chart[target + i]
                        chart[target + i] = new if new > old else old
        for x in range(size):
            row = block + np.uint64(x) * j
            first = np.uint64(0)
            last = j
            while first < last and chart[row + first] == -np.inf:
                first += np.uint64(1)
            while first < last and chart[row + last - np.uint64(1)] == -np.inf:
                last -= np.uint64(1)
            low[j_, x] = first
            high[j_, x] = last


@njit(cache=True, nogil=True)
def derivation(n, grammar, words, chart, steps):
    """The best derivation in a Viterbi chart, as steps in preorder; returns their number.

    A step is r for rule r, R + c for chain c, R + C + q for word item q. Ties: words and chains before rules, then the
    rule that comes first for its parent, then the smallest split. Shape: steps (4 n,).
    """
    size, root, _, _, parent_ptr, by_parent, _, left, right, weight, _ = grammar
    chain_ptr, _, chain_base, chain_weight = grammar.chains
    lex_ptr, lex_id, lex_weight = words
    rules = left.shape[0]
    chains = chain_base.shape[0]
    stack = np.empty((n + 1, 3), dtype=np.int64)  # symbol, start, end
    stack[0, 0] = root
    stack[0, 1] = 0
    stack[0, 2] = n
    depth = 1
    count = 0
    while depth > 0:
        depth -= 1
        x = stack[depth, 0]
        i = stack[depth, 1]
        j = stack[depth, 2]
        best = chart[size * (j * (j - 1) // 2) + x * j + i]
        found = False
        for c in range(chain_ptr[x], chain_ptr[x + 1]):
            b = chain_base[c]
            if chart[size * (j * (j - 1) // 2) + b * j + i] + chain_weight[c] == best:
                steps[count] = rules + c
                count += 1
                x = b
                best = chart[size * (j * (j - 1) // 2) + x * j + i]
                break
        if j == i + 1:
            for q in range(lex_ptr[i], lex_ptr[j]):
                if lex_id[q] == x and lex_weight[q] == best:
                    steps[count] = rules + chains + q
                    count += 1
                    break
            continue
        for q in range(parent_ptr[x], parent_ptr[x + 1]):
            r = by_parent[q]
            y = left[r]
            z = right[r]
            for k in range(i + 1, j):
                score = chart[size * (j * (j - 1) // 2) + z * j + k] + weight[r]
                if chart[size * (k * (k - 1) // 2) + y * k + i] + score == best:
                    steps[count] = r
                    count += 1
                    stack[depth, 0] = z
                    stack[depth, 1] = k
                    stack[depth, 2] = j
                    stack[depth + 1, 0] = y
                    stack[depth + 1, 1] = i
                    stack[depth + 1, 2] = k
                    depth += 2
                    found = True
                    break
            if found:
                break
    return count


@njit(cache=True, nogil=True)
def best_outside(n, rules, chart, outside):
    """Best score of the rest of a derivation around every item of a Viterbi chart.

    outside[root, 0, n] = 0; -inf where no derivation uses the item, or the item itself is -inf. Overwrites outside.
    """
    size, left, parent, weight, right_ptr = rules.size, rules.left, rules.parent, rules.weight, rules.right_ptr
    _, chain_top, chain_base, chain_weight = rules.chains
    outside[:] = -np.inf
    if n > 0:
        outside[size * (n * (n - 1) // 2) + rules.root * n] = 0.0
    for j_ in range(n, 0, -1):
        j = np.uint64(j_)
        block = np.uint64(size * (j_ * (j_ - 1) // 2))
        for k_ in range(j_):
            k = np.uint64(k_)
            inner = np.uint64(size * (k_ * (k_ - 1) // 2))
            for z in range(size):
                right = chart[block + np.uint64(z) * j + k]
                if right == -np.inf:
                    continue
                around = outside[block + np.uint64(z) * j + k]
                if k_ > 0:
                    for r in range(right_ptr[z], right_ptr[z + 1]):
                        source = inner + np.uint64(left[r]) * k
                        target = block + np.uint64(parent[r]) * j
                        for i in range(k):
                            above = outside[target + i] + weight[r]
                            beside = chart[source + i]
                            if above == -np.inf or beside == -np.inf:
                                continue
                            if above + beside > around:
                                around = above + beside
                            if above + right > outside[source + i]:
                                outside[source + i] = above + right
                outside[block + np.uint64(z) * j + k] = around
            for c in range(chain_top.shape[0]):
                cell = block + np.uint64(chain_base[c]) * j + k
                score = outside[block + np.uint64(chain_top[c]) * j + k] + chain_weight[c]
                if score > outside[cell] and chart[cell] > -np.inf:
                    outside[cell] = score


@njit(cache=True, nogil=True)
def inside(n, rules, words, chart):
    """Log of the sum of exp(score) over the derivations of every item. Overwrites chart.

    An item under way is kept as a maximum m and a sum s of exp(score - m).
    """
    size, left, parent, weight, right_ptr = rules.size, rules.left, rules.parent, rules.weight, rules.right_ptr
    _, chain_top, chain_base, chain_weight = rules.chains
    lex_ptr, lex_id, lex_weight = words
    chart[:] = -np.inf
    total = np.zeros(size * n)  # the sums of the block under way
    for j_ in range(1, n + 1):
        j = np.uint64(j_)
        block = np.uint64(size * (j_ * (j_ - 1) // 2))
        total[:] = 0.0
        for q in range(lex_ptr[j_ - 1], lex_ptr[j_]):
            if lex_weight[q] > -np.inf:
                at = np.uint64(lex_id[q]) * j + j - np.uint64(1)
                chart[block + at] = lex_weight[q]
                total[at] = 1.0
        for k_ in range(j_ - 1, -1, -1):
            k = np.uint64(k_)
            for c in range(chain_top.shape[0]):
                b = np.uint64(chain_base[c]) * j + k
                if total[b] > 0.0:
                    score = chart[block + b] + np.log(total[b]) + chain_weight[c]
                    at = np.uint64(chain_top[c]) * j + k
                    gap = score - chart[block + at]
                    if gap > 0.0:
                        total[at] = total[at] * np.exp(-gap) + 1.0
                        chart[block + at] = score
                    elif gap > NEGLIGIBLE:
                        total[at] += np.exp(gap)
            inner = np.uint64(size * (k_ * (k_ - 1) // 2))
            for z in range(size):
                at = np.uint64(z) * j + k
                if total[at] == 0.0:
                    continue
                right = chart[block + at] + np.log(total[at])
                chart[block + at] = right
                if k_ == 0:
                    continue
                for r in range(right_ptr[z], right_ptr[z + 1]):
                    source = inner + np.uint64(left[r]) * k
                    row = np.uint64(parent[r]) * j
                    outer = right + weight[r]
                    for i in range(k):
                        score = chart[source + i]
                        if score == -np.inf:
                            continue
                        score += outer
                        gap = score - chart[block + row + i]
                        if gap > 0.0:
                            total[row + i] = total[row + i] * np.exp(-gap) + 1.0
                            chart[block + row + i] = score
                        elif gap > NEGLIGIBLE:
                            total[row + i] += np.exp(gap)


@njit(cache=True, nogil=True)
def posteriors(n, rules, chart, posterior):
    """Probability of every item of an inside chart; the root's is 1. Overwrites posterior.

    An edge's probability is that of its head times exp(weight + insides of the tails - inside of the head).
    """
    size, left, parent, weight, right_ptr = rules.size, rules.left, rules.parent, rules.weight, rules.right_ptr
    _, chain_top, chain_base, chain_weight = rules.chains
    posterior[:] = 0.0
    if n > 0:
        posterior[size * (n * (n - 1) // 2) + rules.root * n] = 1.0
    for j_ in range(n, 0, -1):
        j = np.uint64(j_)
        block = np.uint64(size * (j_ * (j_ - 1) // 2))
        for k_ in range(j_):
            k = np.uint64(k_)
            inner = np.uint64(size * (k_ * (k_ - 1) // 2))
            if k_ > 0:
                for z in range(size):
                    right = chart[block + np.uint64(z) * j + k]
                    if right == -np.inf:
                        continue
                    mine = posterior[block + np.uint64(z) * j + k]
                    for r in range(right_ptr[z], right_ptr[z + 1]):
                        source = inner + np.uint64(left[r]) * k
                        target = block + np.uint64(parent[r]) * j
                        outer = right + weight[r]
                        for i in range(k):
                            above = posterior[target + i]
                            if above > 0.0 and chart[source + i] > -np.inf:
                                share = above * np.exp(chart[source + i] + outer - chart[target + i])
                                mine += share
                                posterior[source + i] += share
                    posterior[block + np.uint64(z) * j + k] = mine
            for c in range(chain_top.shape[0]):
                top = block + np.uint64(chain_top[c]) * j + k
                base = block + np.uint64(chain_base[c]) * j + k
                if posterior[top] > 0.0 and chart[base] > -np.inf:
                    posterior[base] += posterior[top] * np.exp(chart[base] + chain_weight[c] - chart[top])


@njit(cache=True, nogil=True)
def forest_size(n, rules, words, alive):
    """(vertices, edges) of the hypergraph of the items marked alive: one edge for each way to build one."""
    size, _, _, _, parent_ptr, by_parent, _, left, right, _, _ = rules
    chain_ptr, _, chain_base, _ = rules.chains
    lex_ptr, lex_id, lex_weight = words
    vertices = 0
    edges = 0
    for j in range(1, n + 1):
        block = size * (j * (j - 1) // 2)
        for q in range(lex_ptr[j - 1], lex_ptr[j]):
            if alive[block + lex_id[q] * j + j - 1] and lex_weight[q] > -np.inf:
                edges += 1
        for i in range(j):
            for x in range(size):
                if not alive[block + x * j + i]:
                    continue
                vertices += 1
                for c in range(chain_ptr[x], chain_ptr[x + 1]):
                    edges += alive[block + chain_base[c] * j + i]
                for q in range(parent_ptr[x], parent_ptr[x + 1]):
                    y = left[by_parent[q]]
                    z = right[by_parent[q]]
                    for k in range(i + 1, j):
                        edges += alive[block + z * j + k] & alive[size * (k * (k - 1) // 2) + y * k + i]
    return vertices, edges


@njit(cache=True, nogil=True)
def forest(n, grammar, words, alive, number, edges):
    """Spell out the hypergraph: vertices bottom up, edges grouped by head, in the order of the vertices.

    number[item] is set to the vertex of an item that is alive; it is as alive, of int32. Returns the number of tails.
    """
    in_ptr, tail_ptr, tail, edge_weight, edge_step = edges
    size, _, is_top, _, parent_ptr, by_parent, _, left, right, weight, _ = grammar
    chain_ptr, _, chain_base, chain_weight = grammar.chains
    lex_ptr, lex_id, lex_weight = words
    rules, chains = left.shape[0], chain_base.shape[0]
    v = 0
    e = 0
    t = 0
    in_ptr[0] = 0
    tail_ptr[0] = 0
    for j in range(1, n + 1):
        block = size * (j * (j - 1) // 2)
        for i in range(j - 1, -1, -1):
            for layer in range(2):  # bases before the tops that chains build from them
                for x in range(size):
                    item = block + x * j + i
                    if not alive[item] or is_top[x] != layer:
                        continue
                    number[item] = v
                    for c in range(chain_ptr[x], chain_ptr[x + 1]):
                        below = block + chain_base[c] * j + i
                        if alive[below]:
                            tail[t] = number[below]
                            t += 1
                            edge_weight[e] = chain_weight[c]
                            edge_step[e] = rules + c
                            e += 1
                            tail_ptr[e] = t
                    if i == j - 1:
                        for q in range(lex_ptr[i], lex_ptr[j]):
                            if lex_id[q] == x and lex_weight[q] > -np.inf:
                                edge_weight[e] = lex_weight[q]
                                edge_step[e] = rules + chains + q
                                e += 1
                                tail_ptr[e] = t
                    for q in range(parent_ptr[x], parent_ptr[x + 1]):
                        r = by_parent[q]
                        for k in range(i + 1, j):
                            a = size * (k * (k - 1) // 2) + left[r] * k + i
                            b = block + right[r] * j + k
                            if alive[a] and alive[b]:
                                tail[t] = number[a]
                                tail[t + 1] = number[b]
                                t += 2
                                edge_weight[e] = weight[r]
                                edge_step[e] = r
                                e += 1
                                tail_ptr[e] = t
                    v += 1
                    in_ptr[v] = e
    return t
