"""Vine parses in normal form: Eisner's items within the band, and beyond it (LR 8.3.3)

    Q(h)   the words up to h, with h's left modifiers, h still without a head
    W(h)   the words up to h, h with its head and open for modifiers to its right

    Q(h) <- W(h - 1)            no left modifier           W(h) <- Q(h)               an outer head, left or right
    Q(h) <- I(h, m), Q(m)       m its outermost one        W(h) <- W(g), I(g, h)      the outermost right modifier of g

On the way to Q(h) and to W(h), h may take an outer modifier to its left and right. W(n) is the root. With a single
root node 0 has one modifier in the band, all words before which are below it, or an outer one, and then Q(1) follows.
"""

import numpy as np

from certus.certificates.assembling import Assembly
from certus.certificates.normal import NormalForm
from certus.checks import Bools, Floats, Ints
from certus.dependency.normal_projective import Items, arcs_alone
from certus.dependency.part_kinds import LEFT, RIGHT


def of_vine(arc: Floats, outer_head: Floats, outer_modifier: Floats, band: int, single: bool) -> NormalForm:
    """Of the scores of a vine."""
    graph, words, n = Assembly(), np.arange(len(arc)), len(arc) - 1
    near = np.abs(words - words[:, None]) <= band
    single = single and n > 0
    items = Items.of(graph, np.where(near, arc, -np.inf), single, min(band, n))
    over = arcs_alone(items)
    beyond = np.stack((words - band - 1, n - words - band), axis=1)  # more than 0 where words are that far away
    heads = _parts(graph, outer_head, (beyond >= [0, 1]) & (words > 0)[:, None])
    modifiers = _parts(graph, outer_modifier, beyond >= 1)
    # Q without and with the choice of an outer modifier, then W likewise.
    stage = 4 * len(arc) + np.arange(4 * len(arc)).reshape(-1, 4)
    q, headless, w, headed = graph.vertices(stage).T
    graph.edges(w[:1], [], [])
    graph.edges(q[1 + single :], [headed[single:-1]], [])
    arcs, left = items.arcs, items.arcs.side == LEFT
    graph.edges(q[arcs.head[left]], [over[left], headless[arcs.mod[left]]], [])
    right = ~left & (over >= 0)
    graph.edges(w[arcs.mod[right]], [headed[arcs.head[right]], over[right]], [])
    if single:
        top = np.flatnonzero(arcs.head == 0)
        m, start = arcs.mod[top], np.repeat(w[:1], len(top))
        graph.edges(w[m], [start, items.complete[LEFT, m, m - 1]], [items.part[top]])
        outer = modifiers[:1, RIGHT]
        _unary(graph, q[1:2], w[:1], outer, outer >= 0)
    for before, after, d in ((q, headless, LEFT), (w, headed, RIGHT)):
        _unary(graph, after, before, np.full(len(words), -1), words >= 0)
        _unary(graph, after, before, modifiers[:, d], modifiers[:, d] >= 0)
        _unary(graph, w, headless, heads[:, d], heads[:, d] >= 0)
    cells = {"arcs": arcs.cells(items.part), "outer_head": heads.reshape(-1), "outer_modifier": modifiers.reshape(-1)}
    return graph.form(int(headed[-1]), cells)


def _parts(graph: Assembly, scores: Floats, possible: Bools) -> Ints:
    """The parts of a view of words and sides, -1 where there is none."""
    cells = np.full(scores.shape, -1, dtype=np.int64)
    cells[possible] = graph.parts(scores[possible], always=True)
    return cells


def _unary(graph: Assembly, head: Ints, tail: Ints, part: Ints, where: Bools) -> None:
    graph.edges(head[where], [tail[where]], [part[where]])
