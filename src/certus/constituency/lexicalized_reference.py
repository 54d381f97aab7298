"""Lexicalised parsing without a kernel, for certus.verify: the value of the best tree, in numpy.

The recurrences are those of kernels/lexicalized.py; here they are worked out word by word and span by span over arrays.
"""

from collections.abc import Mapping

import numpy as np

from certus.checks import Floats, Ints
from certus.constituency.lexicalized_tables import Tables


def best_value(t: Tables, node_word: Ints, node_tag: Ints, penalties: Mapping[str, Floats]) -> float:
    """Score of the best tree under penalties; -inf if there is none."""
    n = t.n
    if n == 0:
        return -np.inf
    node_score = t.node_score
    if "tags" in penalties:
        node_score = node_score + penalties["tags"][node_word, node_tag]
    arcs = penalties.get("arcs", np.zeros((n + 1, n + 1)))
    chart = _Chart(t, arcs)
    for length in range(n):
        for i in range(n - length):
            j = i + length
            chart.half(0, j, i)
            chart.half(1, i, j)
            phrases = chart.phrases(i, j, node_score)
            chart.modifiers(i, j, phrases)
    root = t.root_score + arcs[0, t.group_word + 1] + phrases
    return float(root.max(initial=-np.inf))


class _Chart:
    def __init__(self, t: Tables, arcs: Floats) -> None:
        self.t, self.arcs = t, arcs
        nodes, n = len(t.node_score), t.n
        self.open = np.full((2, nodes, 3, n), -np.inf)
        self.done = np.full((2, nodes, n), -np.inf)
        self.next: dict[tuple[int, int], Floats] = {}  # span -> [separator, context, state]
        depth = np.array([len(spine) for spine in t.node_spine], dtype=np.int64)
        self.layers = [
            [np.flatnonzero(depth[t.node_ptr[i] : t.node_ptr[i + 1]] == k) + t.node_ptr[i] for k in range(1, 99)]
            for i in range(n)
        ]

    def half(self, side: int, h: int, e: int) -> None:
        """The halves of word h on one side that reach word e."""
        t = self.t
        for layer in self.layers[h]:
            if not len(layer):
                break
            c = t.node_context[layer]
            if c[0] < 0:
                self.done[side, layer, e] = 0.0 if e == h else -np.inf
                continue
            state = np.full((len(layer), 3), -np.inf)
            state[:, 0] = self.done[side, t.node_below[layer], e]
            for k in range(h, e) if side else range(h, e, -1):
                between = self.next[(k + 1, e) if side else (e, k - 1)][:, c]
                grown = (self.open[side, layer, :, k] + between).max(axis=2)
                state[:, 2] = np.maximum(state[:, 2], grown[0])
                state[:, 1] = np.maximum(state[:, 1], grown[1])
            self.open[side, layer, :, e] = state
            self.done[side, layer, e] = (state + t.stop[c, :, side, t.distance[h, e]]).max(axis=1)

    def phrases(self, i: int, j: int, node_score: Floats) -> Floats:
        """Best phrase of each group over words i to j."""
        t = self.t
        out = np.full(len(t.group_word), -np.inf)
        nodes = np.arange(t.node_ptr[i], t.node_ptr[j + 1])
        nodes = nodes[t.node_group[nodes] >= 0]
        np.maximum.at(out, t.node_group[nodes], node_score[nodes] + self.done[0, nodes, i] + self.done[1, nodes, j])
        return out

    def modifiers(self, i: int, j: int, phrases: Floats) -> None:
        """For every head outside words i to j, the best modifier over them."""
        t = self.t
        out = np.full((2, len(t.context_word), 3), -np.inf)
        edge = np.where(t.context_word < i, i - 1, j + 1)
        outside = (t.context_word < i) | (t.context_word > j)
        for g in np.flatnonzero(phrases > -np.inf).tolist():
            row = int(np.searchsorted(t.group_ptr[:, t.n], g, side="right"))
            first, last = int(t.context_ptr[row // 2, 0]), int(t.context_ptr[row // 2, t.n])
            c = np.arange(first, last)[outside[first:last]]
            if not len(c):
                continue
            far = t.distance[t.context_word[c], edge[c]]
            at = t.attach_ptr[g] + 3 * (last - first) * far + 3 * (c - first)
            score = t.attach[at[:, None] + np.arange(3)] + self.arcs[t.context_word[c] + 1, t.group_word[g] + 1, None]
            out[row % 2, c] = np.maximum(out[row % 2, c], score + phrases[g])
        self.next[i, j] = out
