"""Head automata over the lattices of ``head_lattices``, and their dual decomposition with the tree in one loop.

Arc scores are not in the weights of the lattices: they are added on entering a state, together with the multipliers.
``arc_value[a]`` is what taking arc a adds, ``up_value[a]`` what having it as the arc into one's own head adds.
"""

from typing import NamedTuple

import numpy as np

from certus.kernels import steps
from certus.kernels.arborescence import best_heads, max_marginals, work_sizes
from certus.kernels.compiling import njit
from certus.kernels.head_lattices import Lattices, add_parts, restrict, skeleton
from certus.kernels.steps import Memory, Rule

U = np.uint64
EPSILON = np.finfo(np.float64).eps

LIMIT, CLOSED, INFEASIBLE = 0, 1, 2  # how a run of the loop ends
DUAL, PRIMAL, DECODED = 0, 1, 2  # what State.value holds: least dual, best primal, number of lattices decoded
TREE, AUTOMATA, ABOVE = 0, 1, 2  # copies of the arcs, in the order of the relaxation's view

next_step = njit(cache=True, nogil=True)(steps.next_step)


class Model(NamedTuple):
    """What is decomposed: the tree gets ``share`` of the arc scores, the automata the rest and the lattices."""

    lat: Lattices
    arc: np.ndarray  # (A,) scores of the arcs
    share: float
    single: bool  # node 0 has exactly one modifier


class State(NamedTuple):
    """What the loop moves and finds; it goes on from there in the next call."""

    u: np.ndarray  # (2, A) multipliers: of taking an arc, and of having it as the arc into one's own head
    best_u: np.ndarray  # (2, A) those of the least dual value
    heads: np.ndarray  # (n+1,) the best tree
    dispute: np.ndarray  # (A,) number of iterations at which tree and automata differ on an arc
    value: np.ndarray  # (3,) DUAL, PRIMAL, DECODED


@njit(cache=True, nogil=True)
def forward(lat, side, arc_value, value):
    """value[v, g] <- best path from the start of a lattice to each state v, for every column g."""
    columns = U(lat.width[side // 2])
    first = U(lat.state_ptr[side])
    base = U(lat.value_ptr[side])
    w = U(lat.weight_ptr[side])
    weight = lat.weight
    src = lat.src
    zero, one = U(0), U(1)
    for g in range(columns):
        value[base + g] = 0.0
    for v in range(first + one, U(lat.state_ptr[side + 1])):
        to = base + (v - first) * columns
        a = lat.state_arc[v]
        added = arc_value[a] if a >= 0 else 0.0
        if columns == one:
            best = -np.inf
            for e in range(U(lat.in_ptr[v]), U(lat.in_ptr[v + one])):
                x = value[base + U(src[e]) - first] + weight[w]
                w += one
                best = x if x > best else best
            value[to] = best + added
            continue
        for g in range(columns):
            value[to + g] = -np.inf
        for e in range(U(lat.in_ptr[v]), U(lat.in_ptr[v + one])):
            fro = base + (U(src[e]) - first) * columns
            for g in range(zero, columns):
                x = value[fro + g] + weight[w + g]
                y = value[to + g]
                value[to + g] = x if x > y else y
            w += columns
        for g in range(columns):
            value[to + g] += added


@njit(cache=True, nogil=True)
def take_path(lat, side, g, value, used):
    """Set used[a] to 1 for the arcs of the best path of column g, 0 for the lattice's others. Needs `forward`.

    Ties go to the first transition into a state.
    """
    columns = lat.width[side // 2]
    first = lat.state_ptr[side]
    base = lat.value_ptr[side]
    end = lat.state_ptr[side + 1] - 1
    for v in range(first + 1, end):
        used[lat.state_arc[v]] = 0
    v = end
    while v > first:
        best = -np.inf
        chosen = first
        w = lat.weight_ptr[side] + (lat.in_ptr[v] - lat.in_ptr[first]) * columns + g
        for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
            x = value[base + (lat.src[e] - first) * columns + g] + lat.weight[w]
            w += columns
            if x > best:
                best = x
                chosen = lat.src[e]
        v = chosen
        if v > first:
            used[lat.state_arc[v]] = 1


@njit(cache=True, nogil=True)
def path_score(lat, side, g, chosen, score):
    """Weight of the path in column g that takes exactly the arcs with chosen[a] = 1; score is scratch (V,)."""
    columns = lat.width[side // 2]
    first = lat.state_ptr[side]
    last = lat.state_ptr[side + 1] - 1
    score[first] = 0.0
    previous = -1  # rank of the chosen modifier before the current one
    current = -1
    for v in range(first + 1, last + 1):
        score[v] = -np.inf
        a = lat.state_arc[v]
        if a >= 0 and chosen[a] == 0:
            continue
        if lat.state_rank[v] != current:
            previous = current
            current = lat.state_rank[v]
        w = lat.weight_ptr[side] + (lat.in_ptr[v] - lat.in_ptr[first]) * columns + g
        for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
            if lat.state_rank[lat.src[e]] == previous:
                score[v] = max(score[v], score[lat.src[e]] + lat.weight[w])
            w += columns
    return score[last]


@njit(cache=True, nogil=True)
def best_column(lat, h, up_value, value):
    """(value, column) of the best modifiers of head h on both sides, with the best head of h; ties to the first."""
    columns = lat.width[h]
    left = lat.value_ptr[2 * h + 1] - columns  # the end state of the left lattice
    right = lat.value_ptr[2 * h + 2] - columns
    best = -np.inf
    column = 0
    scored = lat.by_head[0] == 1 and h > 0
    for g in range(columns):
        x = value[left + g] + value[right + g]
        if scored:
            x += up_value[lat.up[lat.up_ptr[h] + g]]
        if x > best:
            best = x
            column = g
    return best, column


@njit(cache=True, nogil=True)
def head_max_marginals(lat, arc_value, up_value, through, through_up):
    """Value of all heads; through[a] <- best value of a's head when it takes a, through_up[a] of a's modifier when
    its own head is that of a. Both are relative to the best value of that head: 0 for what an argmax uses, else < 0.
    """
    n = lat.width.shape[0] - 1
    value = np.empty(lat.value_ptr[2 * n + 2], np.float64)
    after = np.empty(lat.value_ptr[2 * n + 2], np.float64)
    total = 0.0
    for i in range(lat.up.shape[0]):
        through[lat.up[i]] = -np.inf
        through_up[lat.up[i]] = 0.0
    for h in range(n + 1):
        forward(lat, 2 * h, arc_value, value)
        forward(lat, 2 * h + 1, arc_value, value)
        best, _ = best_column(lat, h, up_value, value)
        total += best
        columns = lat.width[h]
        scored = lat.by_head[0] == 1 and h > 0
        for d in range(2):
            side = 2 * h + d
            first, last = lat.state_ptr[side], lat.state_ptr[side + 1] - 1
            base = lat.value_ptr[side]
            other = lat.value_ptr[2 * h + 2 - d] - columns
            for x in range(base, lat.value_ptr[side + 1]):
                after[x] = -np.inf
            for g in range(columns):
                after[lat.value_ptr[side + 1] - columns + g] = value[other + g]
                if scored:
                    after[lat.value_ptr[side + 1] - columns + g] += up_value[lat.up[lat.up_ptr[h] + g]]
            for v in range(last, first, -1):
                a = lat.state_arc[v]
                at = base + (v - first) * columns
                added = arc_value[a] if a >= 0 else 0.0
                if a >= 0:
                    for g in range(columns):
                        through[a] = max(through[a], value[at + g] + after[at + g] - best)
                w = lat.weight_ptr[side] + (lat.in_ptr[v] - lat.in_ptr[first]) * columns
                for e in range(lat.in_ptr[v], lat.in_ptr[v + 1]):
                    fro = base + (lat.src[e] - first) * columns
                    for g in range(columns):
                        after[fro + g] = max(after[fro + g], after[at + g] + added + lat.weight[w + g])
                    w += columns
        if scored:
            for g in range(columns):
                a = lat.up[lat.up_ptr[h] + g]
                x = value[lat.value_ptr[2 * h + 1] - columns + g] + value[lat.value_ptr[2 * h + 2] - columns + g]
                through_up[a] = x + up_value[a] - best
    return total


@njit(cache=True, nogil=True)
def two_best(lat, worth, best, second):
    """best[m], second[m] <- the two largest worths of the arcs into each word, -inf where there are fewer."""
    for m in range(1, best.shape[0]):
        best[m] = second[m] = -np.inf
        for i in range(lat.up_ptr[m], lat.up_ptr[m + 1]):
            x = worth[lat.up[i]]
            if x > best[m]:
                second[m] = best[m]
                best[m] = x
            elif x > second[m]:
                second[m] = x


@njit(cache=True, nogil=True)
def first_multipliers(model, u):
    """u[a] <- multipliers to start from, (A,): they make the first tree and the first automata nearly agree.

    Every word asks a price of all its heads, which changes no tree. At a price just above its best arc a head takes no
    modifier gladly, and the max-marginals say what each arc would be worth to it, with the company that suits it best.
    The price is then set midway between the two heads to which the word is worth most, and the tree gets half of
    what an arc is worth above the price.
    """
    lat, arc, share, _ = model
    n = lat.width.shape[0] - 1
    value = (1.0 - share) * arc
    best, second = np.empty(n + 1), np.empty(n + 1)
    two_best(lat, value, best, second)
    gap = 0.0
    words = 0
    for m in range(1, n + 1):
        if second[m] > -np.inf:
            gap += best[m] - second[m]
            words += 1
    gap /= max(words, 1)
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        value[a] -= best[lat.arc_mod[a]] + 0.5 * gap
    worth, above = np.empty(arc.shape[0]), np.zeros(arc.shape[0])
    if head_max_marginals(lat, value, above, worth, np.empty(arc.shape[0])) == -np.inf:
        return
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        worth[a] += best[lat.arc_mod[a]] + 0.5 * gap
    two_best(lat, worth, best, second)
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        m = lat.arc_mod[a]
        if worth[a] > -np.inf:
            price = 0.5 * (best[m] + second[m]) if second[m] > -np.inf else best[m] - gap
            u[a] = 0.5 * (price + worth[a])


@njit(cache=True, nogil=True)
def nearest_tree(lat, tree_score, single_root, stale, tree, mark, floats, ints):
    """Fill tree with the best heads for tree_score ((n+1) * (n+1),) and return its value: as ``best_heads``.

    Every word takes its best head; only where that gives a cycle, or too many root words, is there more to do. Words
    that are not stale still hold their best head in tree[n+1 :]. mark (n+1,) is scratch.
    """
    n = lat.width.shape[0] - 1
    roots = 0
    value = 0.0
    for m in range(1, n + 1):
        if stale[m] == 1:
            stale[m] = 0
            best = -np.inf
            tree[n + 1 + m] = -1
            for i in range(lat.up_ptr[m], lat.up_ptr[m + 1]):
                h = lat.arc_head[lat.up[i]]
                x = tree_score[h * (n + 1) + m]
                if x > best:
                    best = x
                    tree[n + 1 + m] = h
        h = tree[n + 1 + m]
        if h < 0:
            return -np.inf
        tree[m] = h
        mark[m] = 0
        roots += h == 0
        value += tree_score[h * (n + 1) + m]
    whole = roots == 1 or not single_root
    for m in range(1, n + 1):
        v = m
        while v > 0 and mark[v] == 0:
            mark[v] = m
            v = tree[v]
        whole = whole and (v == 0 or mark[v] != m)
    return value if whole else best_heads(tree_score, n + 1, n, single_root, tree, floats, ints)


@njit(cache=True, nogil=True)
def relax(model, state, rule, memory, tolerance, lazy, rows):
    """Dual decomposition of the head automata and the spanning tree (LR alg. 8 and 9), one row per iteration.

    The tree scores share * arc + u[0] + u[1]; the automata score (1 - share) * arc - u[0] on taking an arc, and - u[1]
    on having it as the arc into their head. rows (iterations, 5) are those of a Trace: dual, best primal, step, which
    ``rule`` makes from ``memory`` on, number of multipliers, primal value of the tree. Returns (how it ended,
    iterations done, memory). With ``lazy`` only lattices whose multipliers changed are decoded again. Ties: first arc,
    transition, column.
    """
    lat, arc, share, single = model
    heads, dispute, known = state.heads, state.dispute, state.value
    u, u_up, best_u, best_u_up = state.u[0], state.u[1], state.best_u[0], state.best_u[1]
    n = lat.width.shape[0] - 1
    by_head = lat.by_head[0] == 1
    arcs = arc.shape[0]
    sides = 2 * (n + 1)
    stride = n + 1
    tree_score = np.full(stride * stride, -np.inf)
    n_floats, n_ints = work_sizes(n)
    floats = np.empty(n_floats, np.float64)
    ints = np.empty(n_ints, np.int64)
    arc_id = np.full((n + 1, n + 1), -1, np.int64)
    arc_value = np.empty(arcs, np.float64)
    up_value = np.empty(arcs, np.float64)
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        h, m = lat.arc_head[a], lat.arc_mod[a]
        arc_id[h, m] = a
        tree_score[h * stride + m] = share * arc[a] + u[a] + u_up[a]
        arc_value[a] = (1.0 - share) * arc[a] - u[a]
        up_value[a] = -u_up[a] if arc[a] > -np.inf else -np.inf
    value = np.empty(lat.value_ptr[sides], np.float64)
    scratch = np.empty(lat.state_arc.shape[0], np.float64)
    chosen = np.zeros(arcs, np.int64)  # by the tree
    used = np.zeros(arcs, np.int64)  # by the automata
    differ = np.empty(arcs, np.int64)
    tree = np.full(n + 1, -1, np.int64)
    new_tree = np.full(2 * n + 2, -1, np.int64)
    word_stale = np.ones(n + 1, np.uint8)  # words whose heads have other scores
    mark = np.empty(n + 1, np.int64)
    stale = np.ones(sides, np.uint8)  # lattices whose multipliers changed
    head_stale = np.ones(n + 1, np.uint8)
    unscored = np.ones(sides, np.uint8)  # lattices whose part of the tree changed
    head_value = np.zeros(n + 1, np.float64)
    column = np.full(n + 1, -1, np.int64)
    side_score = np.zeros(sides, np.float64)

    active = lat.up.shape[0] * (1 + lat.by_head[0])
    for k in range(rows.shape[0]):
        tree_value = nearest_tree(lat, tree_score, single, word_stale, new_tree, mark, floats, ints)
        if tree_value == -np.inf:
            return INFEASIBLE, k, memory
        for m in range(1, n + 1):
            if new_tree[m] != tree[m]:
                if tree[m] >= 0:
                    chosen[arc_id[tree[m], m]] = 0
                    unscored[2 * tree[m] + (m > tree[m])] = 1
                tree[m] = new_tree[m]
                chosen[arc_id[tree[m], m]] = 1
                unscored[2 * tree[m] + (m > tree[m])] = 1
                if by_head:
                    unscored[2 * m] = 1
                    unscored[2 * m + 1] = 1

        # The automata, as far as their multipliers changed.
        dual = tree_value
        for h in range(n + 1):
            if head_stale[h] == 1 or not lazy:
                for side in range(2 * h, 2 * h + 2):
                    if stale[side] == 1 or not lazy:
                        forward(lat, side, arc_value, value)
                        known[DECODED] += 1.0
                best, g = best_column(lat, h, up_value, value)
                if best == -np.inf:
                    return INFEASIBLE, k, memory
                for side in range(2 * h, 2 * h + 2):
                    if stale[side] == 1 or not lazy or g != column[h]:
                        take_path(lat, side, g, value, used)
                    stale[side] = 0
                head_value[h] = best
                column[h] = g
                head_stale[h] = 0
            dual += head_value[h]

        # The tree, scored by the whole model.
        primal = 0.0
        for m in range(1, n + 1):
            primal += arc[arc_id[tree[m], m]]
        for side in range(sides):
            if unscored[side] == 1:
                h = side // 2
                g = 0
                if by_head and h > 0:
                    while lat.up[lat.up_ptr[h] + g] != arc_id[tree[h], h]:
                        g += 1
                side_score[side] = path_score(lat, side, g, chosen, scratch)
                unscored[side] = 0
            primal += side_score[side]
        if primal > known[PRIMAL]:
            known[PRIMAL] = primal
            for m in range(1, n + 1):
                heads[m] = tree[m]
        if dual < known[DUAL]:
            known[DUAL] = dual
            for a in range(arcs):
                best_u[a] = u[a]
                best_u_up[a] = u_up[a]

        apart = 0
        for a in range(arcs):
            if used[a] != chosen[a]:
                differ[apart] = a
                apart += 1
        differing = apart
        if by_head:
            for m in range(1, n + 1):
                if lat.up[lat.up_ptr[m] + column[m]] != arc_id[tree[m], m]:
                    apart += 2
        rows[k, 0], rows[k, 1], rows[k, 2], rows[k, 3], rows[k, 4] = dual, known[PRIMAL], 0.0, active, primal
        if apart == 0 or known[DUAL] - known[PRIMAL] <= tolerance:
            return CLOSED, k + 1, memory
        step, memory = next_step(rule, memory, dual, known[PRIMAL], apart)
        rows[k, 2] = step
        for i in range(differing):
            a = differ[i]
            h, m = lat.arc_head[a], lat.arc_mod[a]
            dispute[a] += 1.0
            u[a] += step * (used[a] - chosen[a])
            arc_value[a] = (1.0 - share) * arc[a] - u[a]
            tree_score[h * stride + m] = share * arc[a] + u[a] + u_up[a]
            stale[2 * h + (m > h)] = 1
            head_stale[h] = 1
            word_stale[m] = 1
        if by_head:
            for m in range(1, n + 1):
                taken = lat.up[lat.up_ptr[m] + column[m]]
                wanted = arc_id[tree[m], m]
                if taken != wanted:
                    dispute[taken] += 1.0
                    dispute[wanted] += 1.0
                    u_up[taken] += step
                    u_up[wanted] -= step
                    up_value[taken] = -u_up[taken]
                    up_value[wanted] = -u_up[wanted]
                    tree_score[lat.arc_head[taken] * stride + m] = share * arc[taken] + u[taken] + u_up[taken]
                    tree_score[lat.arc_head[wanted] * stride + m] = share * arc[wanted] + u[wanted] + u_up[wanted]
                    head_stale[m] = 1
                    word_stale[m] = 1
    return LIMIT, rows.shape[0], memory


@njit(cache=True, nogil=True)
def restricted(model, keep, force):
    """The model of the arcs with keep[a] = 1 alone; see ``restrict``."""
    return Model(restrict(model.lat, keep, force), model.arc, model.share, model.single)


@njit(cache=True, nogil=True)
def relax_kept(model, keep, state, rule, memory, tolerance, lazy, rows):
    """``relax`` over the arcs with keep[a] = 1, of which a word must take its only one; over all if keep is empty."""
    if keep.shape[0] > 0:
        model = restricted(model, keep, True)
    return relax(model, state, rule, memory, tolerance, lazy, rows)


@njit(cache=True, nogil=True)
def best_choices(lat, arc_value, up_value, used, column):
    """Value of the best modifiers of all heads, -inf if some head has none; fills used (A,) and column (n+1,)."""
    n = lat.width.shape[0] - 1
    value = np.empty(lat.value_ptr[2 * n + 2], np.float64)
    total = 0.0
    for h in range(n + 1):
        forward(lat, 2 * h, arc_value, value)
        forward(lat, 2 * h + 1, arc_value, value)
        best, column[h] = best_column(lat, h, up_value, value)
        total += best
        if best > -np.inf:
            take_path(lat, 2 * h, column[h], value, used)
            take_path(lat, 2 * h + 1, column[h], value, used)
    return total


@njit(cache=True, nogil=True)
def tree_scores(model, u, keep):
    """What the tree scores at multipliers u (2, A), over the arcs with keep[a] = 1: (n+1, n+1)."""
    lat, arc, share, _ = model
    n = lat.width.shape[0] - 1
    score = np.full((n + 1, n + 1), -np.inf)
    for a in range(arc.shape[0]):
        if keep[a] == 1:
            score[lat.arc_head[a], lat.arc_mod[a]] = share * arc[a] + u[0, a] + u[1, a]
    return score


@njit(cache=True, nogil=True)
def best_of_both(model, u, keep, heads, used, column):
    """The dual value at multipliers u (2, A), -inf if there is none, when the tree has only the arcs with keep[a] = 1.

    Fills heads (n+1,) with the best tree, used (A,) and column (n+1,) with what the automata choose.
    """
    n = heads.shape[0] - 1
    total = best_choices(model.lat, (1.0 - model.share) * model.arc - u[0], -u[1], used, column)
    n_floats, n_ints = work_sizes(n)
    floats, ints = np.empty(n_floats, np.float64), np.empty(n_ints, np.int64)
    score = tree_scores(model, u, keep).reshape(-1)
    return total + best_heads(score, n + 1, n, model.single, heads, floats, ints)


@njit(cache=True, nogil=True)
def proof_multipliers(model, gone, keep, u, target, scale, best_u):
    """best_u (2, A) <- multipliers that show as much as u where arcs are only forbidden, those with gone[a] = 1.

    Rivals of required arcs, which the tree cannot use (keep[a] = 0), get dearer for the automata, and arcs that it must
    use, the only ones into their word, cheaper: by ``scale`` and more, until the dual value is no more than ``target``.
    Returns the dual value.
    """
    arcs = keep.shape[0]
    if gone.any():
        model = restricted(model, 1 - gone, False)
    n = model.lat.width.shape[0] - 1
    heads, column, used = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.zeros(arcs, np.int64)
    left = np.zeros(n + 1, np.int64)  # arcs into each word
    for a in range(arcs):
        left[model.lat.arc_mod[a]] += keep[a]
    pushed = np.zeros((2, arcs))
    for a in range(arcs):
        if keep[a] == 0 and gone[a] == 0:
            pushed[0, a] = pushed[1, a] = 1.0
        elif keep[a] == 1 and left[model.lat.arc_mod[a]] == 1:
            pushed[0, a] = -1.0
    best_u[:] = u
    if not pushed.any():
        return best_of_both(model, u, keep, heads, used, column)
    lowest, amount = np.inf, scale
    while lowest > target and amount < scale * 1e6:
        moved = u + amount * pushed
        bound = best_of_both(model, moved, keep, heads, used, column)
        if bound < lowest:
            best_u[:] = moved
            lowest = bound
        amount *= 2.0
    return lowest


@njit(cache=True, nogil=True)
def largest_multipliers(model, u, gone):
    """The largest multiplier of ``relaxation``, whose tree has no share of the arc scores, and sum of two of an arc."""
    largest = largest_sum = 0.0
    for a in range(gone.shape[0]):
        if gone[a] == 0:
            moved = u[0, a] + model.share * model.arc[a]
            largest = max(largest, abs(moved), abs(u[1, a]))
            largest_sum = max(largest_sum, abs(moved + u[1, a]))
    return largest, largest_sum


@njit(cache=True, nogil=True)
def head_losses(model, gone, u, loss):
    """loss[a] <- what the automata lose at multipliers u by taking arc a, or by having it above; of the two the more.

    -inf where they cannot take it. Arcs with gone[a] = 1 are forbidden. Returns the value of the automata.
    """
    lat = restrict(model.lat, 1 - gone, False)
    above = np.zeros(loss.shape[0])
    loss[:] = -np.inf
    total = head_max_marginals(lat, (1.0 - model.share) * model.arc - u[0], -u[1], loss, above)
    for a in range(loss.shape[0]):
        loss[a] = min(loss[a], above[a], 0.0)
    return total


@njit(cache=True, nogil=True)
def removable(model, u, keep, score, copy):
    """Find the arcs, of those with keep[a] = 1, that no tree uses which scores more than ``score``.

    copy[a] <- 1 + the copy whose max-marginal at multipliers u (2, A) shows it, 0 for an arc that stays. Returns how
    many may go.
    """
    lat, arc, share, single = model
    n = lat.width.shape[0] - 1
    through, above = np.empty(arc.shape[0]), np.empty(arc.shape[0])
    total = head_max_marginals(lat, (1.0 - share) * arc - u[0], -u[1], through, above)
    best = np.empty((n + 1, n + 1))
    max_marginals(tree_scores(model, u, keep).reshape(-1), n + 1, n, single, best)
    dual = -np.inf
    for h in range(n + 1):
        dual = max(dual, total + best[h, min(n, 1)])
    gone = 0
    for a in range(arc.shape[0]):
        copy[a] = 0
        if keep[a] == 0:
            continue
        if total + best[lat.arc_head[a], lat.arc_mod[a]] <= score:
            copy[a] = 1 + TREE
        elif dual + through[a] <= score:
            copy[a] = 1 + AUTOMATA
        elif lat.by_head[0] == 1 and dual + above[a] <= score:
            copy[a] = 1 + ABOVE
        gone += copy[a] > 0
    return gone


@njit(cache=True, nogil=True)
def arc_bounds(model, u, bound):
    """bound[a] <- what no tree with arc a beats, at multipliers u (2, A); -inf for arcs that no lattice has.

    A tree with the arc has it in all copies, and what each of these loses by that adds up.
    """
    lat, arc, share, single = model
    n = lat.width.shape[0] - 1
    through, above = np.empty(arc.shape[0]), np.zeros(arc.shape[0])
    keep, up_value = np.zeros(arc.shape[0], np.uint8), np.full(arc.shape[0], -np.inf)
    bound[:] = -np.inf
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        if arc[a] > -np.inf:
            keep[a] = 1
            up_value[a] = -u[1, a]
    total = head_max_marginals(lat, (1.0 - share) * arc - u[0], up_value, through, above)
    best = np.empty((n + 1, n + 1))
    max_marginals(tree_scores(model, u, keep).reshape(-1), n + 1, n, single, best)
    for i in range(lat.up.shape[0]):
        a = lat.up[i]
        if keep[a] == 1:
            bound[a] = total + best[lat.arc_head[a], lat.arc_mod[a]] + min(through[a], 0.0) + min(above[a], 0.0)


@njit(cache=True, nogil=True)
def relax_parts(arc, shape, parts, rule, share, lazy, found):
    """The lattices of part scores, their first multipliers and ``relax``, in one call.

    arc (n+1, n+1); shape is (by_head, pairs, single root), see ``skeleton``; parts is (table, values, keys, unlisted):
    row k of table says which transitions complete the parts of kind k and where their scores lie in values[k]; see
    add_parts, which keys[k] and unlisted[k] are for too. found, (multipliers, heads, rows, numbers), is filled:
    multipliers (3, n+1, n+1) of the least dual value, the third those of taking an arc and the tree's share of its
    score; heads and rows as in ``relax``; numbers (7,) are State.value, then the largest arc score, score, multiplier
    and sum of two. All but arrays are plain tuples, which cost a call less than named ones. Returns (how it ended,
    iterations done).
    """
    by_head, pairs, single = shape
    table, values, keys, unlisted = parts
    multipliers, heads, rows, numbers = found
    multipliers[:] = 0.0
    heads[:] = -1
    lat, added = skeleton(arc > -np.inf, by_head, pairs, single)
    arcs = lat.arc_head.shape[0]
    score = np.empty(arcs)
    largest_arc = 0.0
    for a in range(arcs):
        score[a] = arc[lat.arc_head[a], lat.arc_mod[a]]
        largest_arc = max(largest_arc, abs(score[a]))
    largest = largest_arc
    for k in range(table.shape[0]):
        largest = max(largest, add_parts(lat, added, table[k, 0], table[k, 1:], values[k], keys[k], unlisted[k]))
    model = Model(lat, score, share, single)
    numbers[DUAL], numbers[PRIMAL], numbers[DECODED] = np.inf, -np.inf, 0.0
    state = State(np.zeros((2, arcs)), np.zeros((2, arcs)), heads, np.zeros(arcs), numbers[:3])
    first_multipliers(model, state.u[0])
    terms = (arc.shape[0]) * (1 + table.shape[0])  # in a score
    steps_of = Rule(rule[0], rule[1], rule[2], rule[3])
    memory = Memory(max(largest, 1e-300), steps_of.size, 0.0, 0.0, np.inf, np.inf, 0.0)
    status, used, _ = relax(model, state, steps_of, memory, EPSILON * terms * terms * largest, lazy, rows)
    largest_u = largest_sum = 0.0
    u = state.best_u
    for a in range(arcs):
        h, m = lat.arc_head[a], lat.arc_mod[a]
        multipliers[0, h, m], multipliers[1, h, m] = u[0, a], u[1, a]
        multipliers[2, h, m] = u[0, a] + share * score[a]
        largest_u = max(largest_u, abs(u[0, a]), abs(u[1, a]))
        largest_sum = max(largest_sum, abs(u[0, a] + u[1, a]))
    numbers[3], numbers[4], numbers[5], numbers[6] = largest_arc, largest, largest_u, largest_sum
    return status, used
