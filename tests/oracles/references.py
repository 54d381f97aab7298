"""Best values by plain Python, for problems too large to enumerate; they share nothing with the kernels."""

import numpy as np

from certus.dependency.head_automata import LEFT, RIGHT


def best_choices_value(automata, penalties):
    """Best value of head automata under penalties: each head by itself, Viterbi over the states reached."""
    arc = automata.arc + penalties.get("arcs", 0.0)
    above = penalties.get("above", np.zeros(arc.shape))
    total = 0.0
    for h in range(automata.n + 1):
        best = -np.inf
        for g in automata.heads_of(h):
            value = float(above[g, h]) if g >= 0 else 0.0
            best = max(best, value + sum(_best_side(automata, arc[h].tolist(), g, h, side) for side in (LEFT, RIGHT)))
        total += best
    return total


def _best_side(automata, arc, g, h, side):
    automaton = automata.automaton(g, h, side)
    value = {automaton.start: 0.0}
    for m in automata.outwards(h, side):
        if arc[m] == -np.inf:
            continue
        for state, before in list(value.items()):
            after, weight = automata.step(g, h, side, state, m)
            value[after] = max(value.get(after, -np.inf), before + weight + arc[m])
    return max(before + automaton.stop(state) for state, before in value.items())


def best_lineages_value(lineages, penalties):
    """Best value of lineages under penalties: what pays is taken, from the parts upwards."""
    above, arcs, below = (values.tolist() for values in lineages._values(penalties))
    for line, score, penalty in zip(lineages.part_of.tolist(), lineages.score_of.tolist(), below, strict=True):
        arcs[line] += max(score + penalty, 0.0)
    for pair, value in zip(lineages.line_of.tolist(), arcs, strict=True):
        above[pair] += max(value, 0.0)
    best = [-np.inf] * (lineages.n + 1)
    for g, value in zip(lineages.pair[1].tolist(), above, strict=True):
        best[g] = max(best[g], value)
    return float(sum(best))


def best_tree_value(arc, root):
    """Score of the best tree by a plain recursion in Python, -inf if there is none.

    Chu-Liu-Edmonds one cycle at a time, on pairs (minus the number of root arcs, score) compared in order; O(n^3).
    """
    arcs = {}
    for m in range(1, len(arc)):
        column = arc[:, m].tolist()
        arcs[m] = {
            h: (-1 if h == 0 and root == "single" else 0, s) for h, s in enumerate(column) if h != m and s > -np.inf
        }
    total = (0, 0.0)
    while True:
        best = {}
        for m, incoming in arcs.items():
            if not incoming:
                return -np.inf
            best[m] = max(incoming, key=lambda h: incoming[h])
        cycle = _cycle(best)
        if not cycle:
            count = sum(arcs[m][h][0] for m, h in best.items()) + total[0]
            score = sum(arcs[m][h][1] for m, h in best.items()) + total[1]
            return score if root == "multi" or len(arc) == 1 or count == -1 else -np.inf
        merged = {}
        for m in cycle:
            roots, score = arcs[m][best[m]]
            total = (total[0] + roots, total[1] + score)
            for h, (r, s) in arcs.pop(m).items():
                if h not in cycle:
                    merged[h] = max(merged.get(h, (-len(arc), -np.inf)), (r - roots, s - score))
        name = min(cycle)
        for incoming in arcs.values():
            outgoing = [incoming.pop(h) for h in cycle if h in incoming]
            if outgoing:
                incoming[name] = max(outgoing)
        arcs[name] = merged


def _cycle(head):
    """The nodes of one cycle of a map from nodes to heads; empty if every node leads to 0."""
    done = {0}
    for start in head:
        path = []
        v = start
        while v not in done and v not in path:
            path.append(v)
            v = head[v]
        if v not in done:
            return set(path[path.index(v) :])
        done.update(path)
    return set()
