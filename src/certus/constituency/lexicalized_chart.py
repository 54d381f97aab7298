"""Lexicalised parsing in whole numbers: the chart of kernels/lexicalized.py in numpy, width by width.

Scores, penalties included, are rounded up to multiples of a power of two so coarse that no sum that matters is rounded
in float64: what is computed bounds every tree. Scores so low that no tree that uses them could matter are raised to
where they still do not (see certificates/evaluate.py). Spines and phrases that no tree above the limit can have are
left out: the words around add no more than the best that each could by itself.

An open half in state 0 is the finished half below it, and the halves of a bare tag are nothing at all.
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.certificates.priced import BITS, LOWEST
from certus.certificates.rounding import in_steps, overflow, step_for
from certus.checks import Bools, Floats, Ints
from certus.constituency.lexicalized_tables import Tables
from certus.errors import InvalidInput

AT_ONCE = 1 << 15  # sums of modifiers and heads that are in the processor's cache together
ROUNDS = 2  # of leaving out spines: without these, others may add less


class Scores(NamedTuple):
    """The scores of a sentence in whole numbers of steps; trees of more than ``limit`` of them are looked for."""

    node: Floats
    attach: Floats
    stop: Floats
    root: Floats
    limit: float
    step: float


def scores_in_steps(t: Tables, length: int, above: float, arcs: Floats, tags: Floats) -> Scores:
    """Of a sentence with penalties, for trees that score more than ``above`` and have at most ``length`` scores."""
    if np.isnan(above) or not (arcs < inf).all() or not (tags < inf).all():
        raise InvalidInput("a penalty or the bound to be shown is nan, or a penalty inf; expected finite ones or -inf.")
    own = (t.node_score, t.attach, t.stop, t.root_score)
    positive = length * max(0.0, *(float(x.max(initial=0.0)) for x in own))
    positive += float(sum(np.maximum(x.max(axis=k, initial=0.0), 0.0).sum() for k, x in enumerate((arcs, tags))))
    size = (positive + max(-above if above > -inf else 0.0, 0.0)) * (1.0 + 1e-6)
    if not size < 2.0**960:
        raise overflow()
    step = step_for(size, BITS)

    def up(scores: Floats) -> Floats:
        if above == -inf:  # whatever there is counts
            return np.where(scores > -inf, 0.0, -inf)
        number = in_steps(scores, step)
        low = number < LOWEST
        if low.any():
            number[low & (scores > -inf)] = LOWEST
        return number

    node, attach, stop, root = map(up, own)
    word = np.repeat(np.arange(t.n), np.diff(t.node_ptr))
    spined = t.node_group >= 0
    node[spined] += up(tags)[word[spined], t.group_tag[t.node_group[spined]]]
    arc = up(np.where(t.allowed, arcs, -inf))
    root += arc[0, t.group_word + 1]
    if (arc[1:, 1:] != 0.0).any():
        for P in range(len(t.context_ptr)):
            g, c = slice(t.group_ptr[2 * P, 0], t.group_ptr[2 * P + 1, t.n]), _contexts(t, P)
            if g.start < g.stop and c.start < c.stop:
                added = np.repeat(arc[np.ix_(t.context_word[c] + 1, t.group_word[g] + 1)].T, 3, axis=1)
                attachments(t, attach, P)[...] += added[:, None, :]
    return Scores(node, attach, stop, root, above / step, step)


def attachments(t: Tables, attach: Floats, P: int) -> Floats:
    """The scores of modifiers under label P: group, distance, 3 context + state; a view."""
    first, last = int(t.group_ptr[2 * P, 0]), int(t.group_ptr[2 * P + 1, t.n])
    columns = 3 * int(t.context_ptr[P, t.n] - t.context_ptr[P, 0])
    if first == last or not columns:
        return np.empty((last - first, 3, columns))
    start = int(t.attach_ptr[first])
    return attach[start : start + 3 * columns * (last - first)].reshape(last - first, 3, columns)


def _contexts(t: Tables, P: int) -> slice:
    return slice(int(t.context_ptr[P, 0]), int(t.context_ptr[P, t.n]))


class Chart:
    """The items of a sentence with the scores of their best derivations; -inf for those that there are not."""

    def __init__(self, t: Tables, scores: Scores) -> None:
        self.t, self.n, self.scores = t, t.n, scores
        n, nodes, groups, contexts = t.n, len(t.node_score), len(t.group_word), len(t.context_word)
        self.word = np.repeat(np.arange(n), np.diff(t.node_ptr))
        self.depth = np.array([len(spine) for spine in t.node_spine], dtype=np.int64)
        self.label = np.repeat(
            np.arange(len(t.group_ptr)), t.group_ptr[:, n] - t.group_ptr[:, 0]
        )  # 2 label + separator
        self.context_label = np.repeat(np.arange(len(t.context_ptr)), t.context_ptr[:, n] - t.context_ptr[:, 0])
        self._keep(scores.node > -inf)
        spans = n * (n + 1) // 2
        self.done = np.full((2, nodes, n), -inf)
        self.open = np.full((2, nodes, n, 3), -inf)
        self.whole = np.full((spans, groups), -inf)
        self.next = np.full((spans, contexts, 2, 3), -inf)
        self.modified = np.zeros(spans * contexts, dtype=bool)  # where there is something in ``next``
        self.open_at = 2 * nodes * n
        self.whole_at = self.open_at + 3 * 2 * nodes * n
        self.next_at = self.whole_at + spans * groups
        self.root_item = self.next_at + 6 * spans * contexts

    def _keep(self, whole: Bools) -> None:
        """Leave out all spines but those of the nodes given, with what is below them."""
        t = self.t
        kept = whole.copy()
        for depth in range(int(self.depth.max(initial=0)), 1, -1):
            v = np.flatnonzero(kept & (self.depth == depth))
            kept[t.node_below[v]] = True
        self.bare = np.flatnonzero(kept & (t.node_context < 0))
        spined = np.flatnonzero(kept & (t.node_context >= 0))
        self.spined = spined[np.argsort(self.depth[spined], kind="stable")]  # a node after the one below it
        hanging = np.flatnonzero(whole & (t.node_group >= 0))
        self.by_group = hanging[np.argsort(t.node_group[hanging], kind="stable")]
        self.group_nodes = np.searchsorted(t.node_group[self.by_group], np.arange(len(t.group_word) + 1))

    # -- names of items --------------------------------------------------------------------------------------------

    def done_item(self, d: int, v: NDArray[np.integer], e: Ints) -> Ints:
        """Finished halves; -1 for those of bare tags."""
        return np.where(self.t.node_context[v] >= 0, (d * len(self.word) + v) * self.n + e, -1)

    def open_item(self, d: int, v: Ints, s: Ints, e: Ints) -> Ints:
        own = self.open_at + ((d * len(self.word) + v) * 3 + s) * self.n + e
        return np.where(s == 0, self.done_item(d, self.t.node_below[v], e), own)

    def whole_item(self, span: Ints | int, g: Ints) -> Ints:
        return self.whole_at + span * len(self.t.group_word) + g

    def next_item(self, span: Ints, c: Ints, bit: Ints) -> Ints:
        return self.next_at + (span * len(self.t.context_word) + c) * 6 + bit

    # -- scores ----------------------------------------------------------------------------------------------------

    def best(self) -> float:
        """Fill the chart bottom up; the score of the best tree, or too little where it is none above the limit."""
        if self.n == 0:
            return -inf
        modifiers = _Modifiers(self.t, self.scores.attach)
        for _ in range(ROUNDS):
            alone, attached = self._by_word()
            if alone.min() == -inf:
                return -inf
        total, contexts = np.concatenate(([0.0], np.cumsum(alone))), len(self.t.context_word)
        self.done[:, self.bare, self.word[self.bare]] = 0.0
        for width in range(self.n):
            for d in range(2):
                self._halves(d, width)
            self._phrases(width)
            for i in range(self.n - width):
                j = i + width
                span = j * (j + 1) // 2 + i
                around = total[i] + (total[-1] - total[j + 1])
                phrases = self.whole[span]
                phrases[~(phrases + attached + around > self.scores.limit)] = -inf
                for first, last in modifiers.best(i, j, phrases, self.next[span]):
                    self.modified[span * contexts + first : span * contexts + last] = True
        return float((self.scores.root + self.whole[self.n * (self.n - 1) // 2]).max(initial=-inf))

    def _by_word(self) -> tuple[Floats, Floats]:
        """The most that a word adds to a tree by what it heads and what it is attached by; the latter, of groups.

        Spines with which it adds too little for any tree above the limit are left out.
        """
        t, s = self.t, self.scores
        attached, there = s.root.copy(), np.zeros(len(t.context_word), dtype=bool)
        there[t.node_context[self.spined]] = True
        for P in range(len(t.context_ptr)):
            first, last = int(t.group_ptr[2 * P, 0]), int(t.group_ptr[2 * P + 1, t.n])
            some = np.repeat(there[_contexts(t, P)], 3)
            own = attachments(t, s.attach, P).max(axis=1, initial=-inf)[:, some].max(axis=1, initial=-inf)
            attached[first:last] = np.maximum(attached[first:last], own)
        ended = np.zeros(len(s.node))
        stops = s.stop.max(axis=(1, 3), initial=-inf).sum(axis=1)
        for depth in range(2, int(self.depth.max(initial=0)) + 1):
            v = np.flatnonzero(self.depth == depth)
            ended[v] = ended[t.node_below[v]] + stops[t.node_context[v]]
        alone = np.full(self.n, -inf)
        v = self.by_group
        most = s.node[v] + ended[v] + attached[t.node_group[v]]
        np.maximum.at(alone, self.word[v], most)
        if alone.min() > -inf:
            whole = np.zeros(len(s.node), dtype=bool)
            whole[v[most + (alone.sum() - alone[self.word[v]]) > s.limit]] = True
            self._keep(whole)
        return alone, attached

    def reaching(self, d: int, width: int, nodes: Ints) -> tuple[Ints, Ints]:
        """Those of the nodes whose halves on side d may have this width, and where these end."""
        end = self.word[nodes] + (width if d else -width)
        fits = (end >= 0) & (end < self.n)
        return nodes[fits], end[fits]

    def between(self, d: int, k: Ints, e: Ints) -> Ints:
        """The spans of modifiers that take a half from k to e."""
        return e * (e + 1) // 2 + k + 1 if d else (k - 1) * k // 2 + e

    def _halves(self, d: int, width: int) -> None:
        t = self.t
        v, e = self.reaching(d, width, self.spined)
        c, h = t.node_context[v], self.word[v]
        rows = self.next.reshape(-1, 6)
        grown = np.full((len(v), 6), -inf)
        for back in range(width):
            k = h + back if d else h - back
            at = self.between(d, k, e) * len(t.context_word) + c
            some = self.modified[at].nonzero()[0]
            sums = rows[at[some]]
            half = self.open[d, v[some], k[some]]
            sums[:, :3] += half
            sums[:, 3:] += half
            grown[some] = np.maximum(grown[some], sums)
        stop = self.scores.stop[c, :, d, t.distance[h, e]]
        ends = np.searchsorted(self.depth[v], np.arange(2, int(self.depth.max(initial=0)) + 2))
        for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            if first < last:
                own, end, new = v[first:last], e[first:last], grown[first:last]
                states = np.empty((last - first, 3))
                states[:, 0] = self.done[d, t.node_below[own], end]
                states[:, 1], states[:, 2] = _largest(new[:, 3:]), _largest(new[:, :3])
                self.open[d, own, end] = states
                self.done[d, own, end] = _largest(states + stop[first:last])

    def _phrases(self, width: int) -> None:
        v, nodes = self.by_group, np.diff(self.group_nodes)
        groups = np.flatnonzero(nodes)
        word = self.t.group_word[groups].astype(np.int64)
        for back in range(width + 1):
            i = self.word[v] - back
            fits = (i >= 0) & (i + width < self.n)
            i = np.where(fits, i, 0)
            score = self.scores.node[v] + self.done[0, v, i] + self.done[1, v, i + width]
            first = word - back
            there = (first >= 0) & (first + width < self.n)
            best = np.maximum.reduceat(score, self.group_nodes[groups])[there] if len(groups) else score
            first, last = first[there], first[there] + width
            self.whole[last * (last + 1) // 2 + first, groups[there]] = best


class _Block(NamedTuple):
    """Modifiers under one label, separators or not, and the contexts that they may be in."""

    separator: int
    scores: Floats  # of group, distance, 3 context + state
    group: list[int]  # the first of each word
    context: list[int]
    left: list[list[tuple[int, int, int]]]  # by where a modifier begins: contexts of heads before it, and a distance
    right: list[list[tuple[int, int, int]]]  # by where it ends: those behind it


class _Modifiers:
    """What modifiers score in the contexts of all heads around them."""

    def __init__(self, t: Tables, attach: Floats) -> None:
        n = t.n
        far = t.distance.tolist()
        heads_before = [_runs([far[h][i - 1] for h in range(i)], 0) for i in range(n)]
        heads_behind = [_runs([far[h][j + 1] for h in range(j + 1, n)], j + 1) for j in range(n)]
        self.blocks: list[_Block] = []
        for row in range(len(t.group_ptr)):
            P, q = divmod(row, 2)
            g, c = t.group_ptr[row].tolist(), t.context_ptr[P].tolist()
            if g[0] < g[n] and c[0] < c[n]:
                own = attachments(t, attach, P)[g[0] - int(t.group_ptr[2 * P, 0]) :][: g[n] - g[0]]
                left, right = (
                    [[(c[h], c[k], far) for h, k, far in runs if c[h] < c[k]] for runs in side]
                    for side in (heads_before, heads_behind)
                )
                self.blocks.append(_Block(q, own, g, c, left, right))

    def best(self, i: int, j: int, phrases: Floats, out: Floats) -> list[tuple[int, int]]:
        """out[context, q, state] <- the best modifier over the words i .. j; the ranges of contexts that have one."""
        found = []
        for block in self.blocks:
            g, base = block.group, block.context[0]
            rows = (phrases[g[i] : g[j + 1]] > -inf).nonzero()[0] + g[i]
            if not len(rows):
                continue
            score = phrases[rows, None]
            rows -= g[0]
            for first, last, far in (*block.left[i], *block.right[j]):
                table = block.scores[:, far, 3 * (first - base) : 3 * (last - base)]
                out[first:last, block.separator] = _best(table, rows, score).reshape(-1, 3)
                found.append((first, last))
        return found


def _runs(values: list[int], start: int) -> list[tuple[int, int, int]]:
    """Runs of equal values: where each begins and ends, and the value."""
    ends = [k for k in range(1, len(values) + 1) if k == len(values) or values[k] != values[k - 1]]
    return [(start + a, start + b, values[a]) for a, b in zip([0, *ends], ends, strict=False)]


def _best(table: Floats, rows: Ints, score: Floats) -> Floats:
    """The largest sum in each column of some rows of a table and their scores."""
    size = max(AT_ONCE // table.shape[1], 1)
    best: Floats | None = None
    for k in range(0, len(rows), size):
        sums = table[rows[k : k + size]]
        sums += score[k : k + size]
        new = sums.max(axis=0)
        best = new if best is None else np.maximum(best, new, out=best)
    assert best is not None
    return best


def _largest(states: Floats) -> Floats:
    """Of three columns."""
    return np.maximum(np.maximum(states[:, 0], states[:, 1]), states[:, 2])
