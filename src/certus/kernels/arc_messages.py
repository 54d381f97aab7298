"""Messages between arcs of a graph, and pairs and chains of them: dual values of semantic dependencies made low fast.

Arcs are numbered in an order that all chains follow. Each has a number of its own, ``pool``, and a copy in each pair
(i, j), which scores w for both, and in each chain. What pool and copies of an arc have adds up to its score, so that

    sum_a max(0, pool_a)  +  sum_pairs max(0, p_i, p_j, p_i + p_j + w)  +  sum_chains best(chain)

bounds every graph. A sweep goes from arc to arc: what taking it is worth more than leaving it in each pair and chain
(its max-marginals there, by what earlier arcs left) is brought together, and shared among those with arcs to come. The
bound never rises. [Kolmogorov06], and [Kolmogorov15] for factors with more than two variables, which chains are here.
Differs: what is not shared stays with the arc, and the last sweep leaves nearly all there.

Layout. Copy side * P + k is that of the first (side 0) or second arc of pair k; those of arc a are
``copy[copy_ptr[a] : copy_ptr[a + 1]]``. Chain c has places start[c] .. start[c + 1] - 1: an empty one, its arcs, and an
empty one; ``table[table_ptr[c] + i * L + k]``, of L places, scores place k as the next one that is taken after place i.
``place`` (2, A) has the places of an arc in chains, -1 for none.

Arcs that are decided go first: what is left has pairs of free arcs only, and no arc that is out.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit

OUT, IN, FREE = 0, 1, 2  # states of an arc
EVERY = 8  # sweeps between two looks for graphs
LEFT = 1.0 / 16.0  # share of what an arc is worth that its copies have in the end
SLOW = 1e-3  # share of the distance to the target that a round of sweeps must close for another one


class Places(NamedTuple):
    """Where the copies of arcs are."""

    copy_ptr: np.ndarray  # (A + 1,)
    copy: np.ndarray  # (2 P,)
    arc: np.ndarray  # (2 P,) of each copy
    place: np.ndarray  # (2, A)
    start: np.ndarray  # (C + 1,)
    chain: np.ndarray  # (N,) of each place
    taken: np.ndarray  # (N,) the arc of each place, -1 for the empty ones
    table_ptr: np.ndarray  # (C,)


class Worths(NamedTuple):
    """Scores, all finite."""

    arc: np.ndarray  # (A,)
    pair: np.ndarray  # (P,)
    table: np.ndarray


class Messages(NamedTuple):
    """What arcs, and their copies in pairs and chains, have."""

    pool: np.ndarray  # (A,)
    copy: np.ndarray  # (2 P,)
    place: np.ndarray  # (N,)
    belief: np.ndarray  # (A,) what taking each arc was worth when a sweep last came by


class Tables(NamedTuple):
    """What a sweep knows of chains."""

    turned: np.ndarray  # the tables of chains, transposed
    until: np.ndarray  # (N,) the next place that must be taken, or the last
    since: np.ndarray  # (N,) the one before that must be taken, or the first
    before: np.ndarray  # (N,) the best of a chain up to a place that is taken
    after: np.ndarray  # (N,) and from it on
    open: np.ndarray  # (N,) the best to each place from those that the sweep has passed


@njit(cache=True, nogil=True)
def _tables(places, worths, state):
    size = places.taken.shape[0]
    turned = np.empty_like(worths.table)
    until, since = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for c in range(places.start.shape[0] - 1):
        first, last, row = places.start[c], places.start[c + 1] - 1, places.table_ptr[c]
        n = last - first + 1
        for i in range(n):
            for k in range(n):
                turned[row + k * n + i] = worths.table[row + i * n + k]
        known = first
        for x in range(first, last + 1):
            since[x] = known
            if x < last and x > first and state[places.taken[x]] == IN:
                known = x
        known = last
        for x in range(last, first - 1, -1):
            until[x] = known
            if x < last and x > first and state[places.taken[x]] == IN:
                known = x
    return Tables(turned, until, since, np.zeros(size), np.zeros(size), np.zeros(size))


@njit(cache=True, nogil=True)
def _begin(places, worths, tables, forward):
    """Before the first place of each chain."""
    for c in range(places.start.shape[0] - 1):
        first, size = places.start[c], places.start[c + 1] - places.start[c]
        for k in range(size):
            tables.open[first + k] = worths.table[places.table_ptr[c] + (k if forward else k * size + size - 1)]
        tables.before[first] = 0.0
        tables.after[first + size - 1] = 0.0


@njit(cache=True, nogil=True)
def _worth_in_chain(places, worths, messages, tables, x, forward):
    """What taking place x of a chain is worth more than leaving it."""
    c = places.chain[x]
    first, size = places.start[c], places.start[c + 1] - places.start[c]
    row = places.table_ptr[c] + (x - first) * size - first
    taken, left = -np.inf, -np.inf
    if forward:
        for y in range(x + 1, tables.until[x] + 1):
            taken = max(taken, worths.table[row + y] + tables.after[y])
            left = max(left, tables.open[y] + tables.after[y])
    else:
        for y in range(tables.since[x], x):
            taken = max(taken, tables.turned[row + y] + tables.before[y])
            left = max(left, tables.open[y] + tables.before[y])
    return tables.open[x] + messages.place[x] + taken - left


@njit(cache=True, nogil=True)
def _pass(places, worths, must, messages, tables, x, forward):
    """The sweep leaves place x behind, which ``must`` be taken or not."""
    c = places.chain[x]
    first, size = places.start[c], places.start[c + 1] - places.start[c]
    row = places.table_ptr[c] + (x - first) * size - first
    value = tables.open[x] + messages.place[x]
    if forward:
        tables.before[x] = value
        for y in range(x + 1, tables.until[x] + 1):
            found = value + worths.table[row + y]
            tables.open[y] = found if must else max(tables.open[y], found)
    else:
        tables.after[x] = value
        for y in range(tables.since[x], x):
            found = value + tables.turned[row + y]
            tables.open[y] = found if must else max(tables.open[y], found)


@njit(cache=True, nogil=True)
def _ahead(places, x, forward):
    """Whether the chain of place x has arcs on the way of the sweep."""
    return places.taken[x + 1 if forward else x - 1] >= 0


@njit(cache=True, nogil=True)
def _gained(messages, worths, c, other, k):
    """What taking the arc of copy c is worth more than leaving it, in its pair k."""
    its = messages.copy[other]
    return messages.copy[c] + max(0.0, its + worths.pair[k]) - max(0.0, its)


@njit(cache=True, nogil=True)
def _sweep(places, worths, state, messages, tables, forward, sharing):
    """One sweep over all arcs. Without ``sharing`` what is brought together stays in the pool, but for a little.

    A little, so that pairs and chains are not in doubt where the arc is not: what breaks ties there then adds nothing.
    """
    arcs, pairs = state.shape[0], worths.pair.shape[0]
    _begin(places, worths, tables, forward)
    for t in range(arcs):
        a = t if forward else arcs - 1 - t
        if state[a] == IN:
            for r in range(2):
                if places.place[r, a] >= 0:
                    _pass(places, worths, True, messages, tables, places.place[r, a], forward)
            continue
        total = messages.pool[a]
        ahead, behind = 0, 0
        for e in range(places.copy_ptr[a], places.copy_ptr[a + 1]):
            c = places.copy[e]
            k = c - pairs if c >= pairs else c
            other = k if c >= pairs else c + pairs
            gain = _gained(messages, worths, c, other, k)
            messages.copy[c] -= gain
            total += gain
            if (places.arc[other] > a) == forward:
                ahead += 1
            else:
                behind += 1
        for r in range(2):
            x = places.place[r, a]
            if x >= 0:
                gain = _worth_in_chain(places, worths, messages, tables, x, forward)
                messages.place[x] -= gain
                total += gain
                ahead += _ahead(places, x, forward)
                behind += _ahead(places, x, not forward)
        messages.belief[a] = total
        share = total / max(ahead, behind, 1) if sharing else LEFT * total / (ahead + behind + 1)
        shares = 0
        for e in range(places.copy_ptr[a], places.copy_ptr[a + 1]):
            c = places.copy[e]
            if not sharing or (places.arc[c - pairs if c >= pairs else c + pairs] > a) == forward:
                messages.copy[c] += share
                shares += 1
        for r in range(2):
            x = places.place[r, a]
            if x >= 0:
                if not sharing or _ahead(places, x, forward):
                    messages.place[x] += share
                    shares += 1
                _pass(places, worths, False, messages, tables, x, forward)
        messages.pool[a] = total - share * shares


@njit(cache=True, nogil=True)
def _value(places, worths, state, messages, tables):
    """The bound, after a sweep backward."""
    total, pairs = 0.0, worths.pair.shape[0]
    for a in range(state.shape[0]):
        if state[a] == IN or messages.pool[a] > 0.0:
            total += messages.pool[a]
    for k in range(pairs):
        p, q = messages.copy[k], messages.copy[pairs + k]
        total += max(0.0, p, q, p + q + worths.pair[k])
    for c in range(places.start.shape[0] - 1):
        total += tables.open[places.start[c]]
    return total


@njit(cache=True, nogil=True)
def _gain(places, worths, chosen, a):
    """What a graph gains by an arc, or has by it."""
    pairs = worths.pair.shape[0]
    total = worths.arc[a]
    for e in range(places.copy_ptr[a], places.copy_ptr[a + 1]):
        c = places.copy[e]
        k = c - pairs if c >= pairs else c
        if chosen[places.arc[k if c >= pairs else c + pairs]]:
            total += worths.pair[k]
    for r in range(2):
        x = places.place[r, a]
        if x < 0:
            continue
        c = places.chain[x]
        first, size = places.start[c], places.start[c + 1] - places.start[c]
        row = places.table_ptr[c]
        y, z = x - 1, x + 1
        while places.taken[y] >= 0 and not chosen[places.taken[y]]:
            y -= 1
        while places.taken[z] >= 0 and not chosen[places.taken[z]]:
            z += 1
        i, j, k = y - first, x - first, z - first
        total += worths.table[row + i * size + j] + worths.table[row + j * size + k] - worths.table[row + i * size + k]
    return total


@njit(cache=True, nogil=True)
def _climb(places, worths, state, messages, chosen):
    """chosen (A,) <- a graph that no change of one free arc makes better, from beliefs on; returns its score."""
    arcs = state.shape[0]
    for a in range(arcs):
        chosen[a] = state[a] == IN or messages.belief[a] > 0.0
    for _ in range(arcs):
        changed = False
        for a in range(arcs):
            if state[a] == FREE:
                gain = _gain(places, worths, chosen, a)
                if (gain > 0.0 and not chosen[a]) or (gain < 0.0 and chosen[a]):
                    chosen[a] = 1 - chosen[a]
                    changed = True
        if not changed:
            break
    total, own = 0.0, np.zeros(arcs, dtype=np.int64)
    for a in range(arcs):
        if chosen[a]:
            total += _gain(places, worths, own, a)
            own[a] = 1
    return total


@njit(cache=True, nogil=True)
def _settle(places, worths, state, messages):
    """Copies of arcs that are decided prefer what is; pairs with one give the other arc all that they are worth to it.

    Returns the value of these pairs.
    """
    pairs, total = worths.pair.shape[0], 0.0
    for k in range(pairs):
        a, b = places.arc[k], places.arc[pairs + k]
        if state[a] == FREE and state[b] == FREE:
            continue
        w = worths.pair[k]
        for side in range(2):
            c, own = (k, a) if side == 0 else (pairs + k, b)
            if state[own] != FREE:
                settled = max(-w, 0.0) if state[own] == IN else min(-w, 0.0)
                messages.pool[own] += messages.copy[c] - settled
                messages.copy[c] = settled
        for side in range(2):
            c, other, own = (k, pairs + k, a) if side == 0 else (pairs + k, k, b)
            if state[own] == FREE:
                gain = _gained(messages, worths, c, other, k)
                messages.copy[c] -= gain
                messages.pool[own] += gain
        p, q = messages.copy[k], messages.copy[pairs + k]
        total += max(0.0, p, q, p + q + w)
    return total


@njit(cache=True, nogil=True)
def _left(places, worths, state, messages, arcs, pairs, kept):
    """The problem of the arcs that are not out, and of pairs of free arcs: these, and the places of chains left.

    arcs (A,), pairs (P,) and kept (N,) <- the numbers there, -1 for none. Pairs with arcs that are in count for others.
    """
    size, old = 0, worths.pair.shape[0]
    for a in range(arcs.shape[0]):
        arcs[a] = -1 if state[a] == OUT else size
        size += state[a] != OUT
    arc = np.empty(size)
    for a in range(arcs.shape[0]):
        if arcs[a] >= 0:
            arc[arcs[a]] = worths.arc[a]
    count = 0
    for k in range(old):
        a, b = places.arc[k], places.arc[old + k]
        pairs[k] = -1
        if state[a] == FREE and state[b] == FREE:
            pairs[k] = count
            count += 1
        elif state[a] != OUT and state[b] != OUT:  # one is in, or both are
            arc[arcs[a] if state[b] == IN else arcs[b]] += worths.pair[k]
    weight, ends = np.empty(count), np.empty(2 * count, dtype=np.int64)
    for k in range(old):
        if pairs[k] >= 0:
            weight[pairs[k]] = worths.pair[k]
            ends[pairs[k]], ends[count + pairs[k]] = arcs[places.arc[k]], arcs[places.arc[old + k]]
    copy_ptr, copy = np.zeros(size + 1, dtype=np.int64), np.empty(2 * count, dtype=np.int64)
    for c in range(2 * count):
        copy_ptr[ends[c] + 1] += 1
    for a in range(size):
        copy_ptr[a + 1] += copy_ptr[a]
    put = copy_ptr.copy()
    for c in range(2 * count):
        copy[put[ends[c]]] = c
        put[ends[c]] += 1
    chains, total, n = 0, 0, 0
    for c in range(places.start.shape[0] - 1):
        own = 0
        for x in range(places.start[c], places.start[c + 1]):
            own += places.taken[x] < 0 or arcs[places.taken[x]] >= 0
        for x in range(places.start[c], places.start[c + 1]):
            here = own > 2 and (places.taken[x] < 0 or arcs[places.taken[x]] >= 0)
            kept[x] = n if here else -1
            n += here
        if own > 2:
            chains += 1
            total += own * own
    start, table_ptr = np.zeros(chains + 1, dtype=np.int64), np.zeros(chains, dtype=np.int64)
    place, chain, taken = np.full((2, size), -1), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    table = np.empty(total)
    chains, at = 0, 0
    for c in range(places.start.shape[0] - 1):
        first, end = places.start[c], places.start[c + 1]
        if kept[first] < 0:
            continue
        start[chains], table_ptr[chains] = kept[first], at
        for x in range(first, end):
            if kept[x] < 0:
                continue
            chain[kept[x]] = chains
            taken[kept[x]] = arcs[places.taken[x]] if places.taken[x] >= 0 else -1
            for y in range(first, end):
                if kept[y] >= 0:
                    table[at] = worths.table[places.table_ptr[c] + (x - first) * (end - first) + y - first]
                    at += 1
        chains += 1
    start[chains] = n
    for a in range(arcs.shape[0]):
        for r in range(2):
            if arcs[a] >= 0 and places.place[r, a] >= 0:
                place[r, arcs[a]] = kept[places.place[r, a]]
    own_state = np.full(size, FREE)
    own_messages = Messages(np.empty(size), np.empty(2 * count), np.zeros(n), np.full(size, np.inf))
    for a in range(arcs.shape[0]):
        if arcs[a] >= 0:
            own_state[arcs[a]], own_messages.pool[arcs[a]] = state[a], messages.pool[a]
    for k in range(old):
        if pairs[k] >= 0:
            own_messages.copy[pairs[k]] = messages.copy[k]
            own_messages.copy[count + pairs[k]] = messages.copy[old + k]
    for x in range(kept.shape[0]):
        if kept[x] >= 0:
            own_messages.place[kept[x]] = messages.place[x]
    left = Places(copy_ptr, copy, ends, place, start, chain, taken, table_ptr)
    return left, Worths(arc, weight, table), own_state, own_messages


@njit(cache=True, nogil=True)
def _lowered(places, worths, state, messages, stop, over, best):
    """Sweeps until the bound hardly moves; best (A,) <- the best graph met with. ``stop`` and ``over``: see lower."""
    arcs = state.shape[0]
    target, rounds, constant = stop
    tables = _tables(places, worths, state)
    chosen = np.zeros(arcs, dtype=np.int64)
    bound, most = np.inf, -np.inf
    _begin(places, worths, tables, False)
    for a in range(arcs - 1, -1, -1):
        for r in range(2):
            if places.place[r, a] >= 0:
                _pass(places, worths, state[a] == IN, messages, tables, places.place[r, a], False)
    for k in range(rounds + 1):
        last = k == rounds or over[0] != 0
        if k > 0 and (k % EVERY == 0 or last):
            found = constant + _value(places, worths, state, messages, tables)
            last = last or not bound - found > SLOW * (found - max(target, most))
            bound = found
        _sweep(places, worths, state, messages, tables, True, not last)
        if k % EVERY == 0 or last:
            score = _climb(places, worths, state, messages, chosen)
            if score > most:
                most = score
                best[:] = chosen
        if last:
            break
        _sweep(places, worths, state, messages, tables, False, True)
    return bound


@njit(cache=True, nogil=True)
def lower(places, worths, state, messages, target, rounds, over, best):
    """Lower the bound by up to ``rounds`` sweeps forward and backward, until it meets ``target`` or hardly moves, or
    until somebody sets over (1,) to 1, since time is over.

    state (A,): OUT, IN or FREE. best (A,) <- the best graph met with. What is worth anything is in the pool at the end,
    but for a little. Returns the bound before that.
    """
    arcs = np.empty(state.shape[0], dtype=np.int64)
    pairs = np.empty(worths.pair.shape[0], dtype=np.int64)
    kept = np.empty(places.taken.shape[0], dtype=np.int64)
    constant = _settle(places, worths, state, messages)
    left, own, its, moved = _left(places, worths, state, messages, arcs, pairs, kept)
    graph = np.zeros(its.shape[0], dtype=np.int64)
    bound = _lowered(left, own, its, moved, (target, rounds, constant), over, graph)
    count = own.pair.shape[0]
    for a in range(arcs.shape[0]):
        best[a] = arcs[a] >= 0 and graph[arcs[a]] == 1
        messages.belief[a] = moved.belief[arcs[a]] if arcs[a] >= 0 else -np.inf
        if arcs[a] >= 0:
            messages.pool[a] = moved.pool[arcs[a]]
    for k in range(pairs.shape[0]):
        if pairs[k] >= 0:
            messages.copy[k] = moved.copy[pairs[k]]
            messages.copy[pairs.shape[0] + k] = moved.copy[count + pairs[k]]
    for x in range(kept.shape[0]):
        if kept[x] >= 0:
            messages.place[x] = moved.place[kept[x]]
    return bound
