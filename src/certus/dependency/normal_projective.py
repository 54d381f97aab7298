"""Projective trees in normal form: one graph whose derivations are the trees, one to one.

Items, for spans of words from h to e or from i to j (DEP 5.3, 5.4; superscripts are heads, where scores ask for them):

    C^g(h, e)       h with all its modifiers on the side of e, the last one's descendants reaching e
    S^h(i, j)       the words between successive modifiers i, j of h:   C^h(i, r), C^h(j, r + 1)
    I^g(h, [s], m)  h with its modifiers up to m, s the one next inside:    from nothing and C^h(m, h + 1), where m is
                    innermost; from I^g(h, [t], s) and S^h(s, m) otherwise
    J^g(h, m)       I^g(h, s, m) for any s, where I tells s, or where g counts for the outermost modifier only
    C^g(h, e)  is then made of  J^g(h, m) or I^g(h, m),  and  C^h(m, e)

For arcs alone they are Eisner's: S(i, j) are the words under an arc between i and j, and make I in either direction.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certus.certificates.assembling import Assembly
from certus.certificates.normal import NormalForm
from certus.certificates.ragged import ragged
from certus.checks import Bools, Floats, Ints
from certus.dependency import normal_parts as N
from certus.dependency.part_kinds import EMPTY, END, LEFT, MODIFIER, OUTERMOST, RIGHT

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

BETWEEN, TAKEN, LAST, COMPLETE = range(4)  # S, I, J, C: what comes first among items of one width


class Items(NamedTuple):
    """What the items are made of."""

    graph: Assembly
    arcs: N.Arcs
    slots: N.Slots
    part: Ints  # of each arc
    label: Ints  # the vertex of the labels of each arc, -1 without labels
    complete: Ints  # C: by side, slot and distance from h to e; -1 where h is alone and there is nothing to score
    single: bool

    @staticmethod
    def of(graph: Assembly, arc: Floats, single: bool, reach: int, ancestors: int = 0) -> "Items":
        """For these arc scores, with no word further from its ancestors than ``reach``."""
        arcs = N.Arcs.of(arc > -np.inf)
        slots = N.Slots.of(arcs, ancestors)
        part = graph.parts(arc[arcs.head, arcs.mod], always=True)
        level = 4 * np.arange(reach + 1) + COMPLETE
        complete = graph.vertices(np.broadcast_to(level, (2, len(slots.word), reach + 1)))
        complete[:, :, 0] = -1
        return Items(graph, arcs, slots, part, np.full(len(part), -1), complete, single)

    def vertices(self, width: Ints, item: int) -> Ints:
        """New items of one kind."""
        return self.graph.vertices(4 * width + item)


def of_trees(problem: "Dependency", arc: Floats, label: Floats | None = None) -> NormalForm:
    """Of a projective problem, with these arc scores, and scores of labels if arcs have labels."""
    graph, n = Assembly(), problem.n
    trees = Items.of(graph, arc, problem.single and n > 0, n, problem.model.ancestors)
    cells = {"arcs": trees.arcs.cells(trees.part)}
    if label is not None:
        labels, cells["labels"] = N.label_vertices(graph, trees.arcs, label)
        trees = trees._replace(label=labels)
    if problem.scores:
        _sequences(trees, problem)
    else:
        arcs_alone(trees)
    root = graph.vertices(np.array([4 * len(arc)]))
    _root(trees, problem, root)
    return graph.form(int(root[0]), cells)


def _root(trees: Items, problem: "Dependency", root: Ints) -> None:
    """All trees: the only modifier of node 0 with all words on both sides of it, or node 0 with its modifiers."""
    graph, arcs, n = trees.graph, trees.arcs, problem.n
    node = np.flatnonzero(trees.slots.word == 0)
    if not trees.single:
        graph.edges(root, [trees.complete[RIGHT, node, n]], [])
        return
    top = np.flatnonzero(arcs.head == 0)
    m, zero = arcs.mod[top], np.zeros(len(top), dtype=np.int64)
    above = {"f": zero - 1, "g": zero - 1, "h": zero}
    parts = N.scored(graph, problem.scores, problem.model.at(MODIFIER), **above, t=zero - 1, s=zero, m=m)
    parts += N.scored(graph, problem.scores, problem.model.at(END), **above, d=zero + RIGHT, s=m)
    slot = trees.slots.of_modifiers(arcs, np.repeat(node, len(top)), top)
    both = trees.complete[LEFT, slot, m - 1], trees.complete[RIGHT, slot, n - m]
    graph.edges(np.repeat(root, len(top)), [*both, trees.label[top]], [trees.part[top], *parts])


def _between(trees: Items, left: tuple[Ints, Ints], right: tuple[Ints, Ints]) -> Ints:
    """S: the words between i and j, given as slots and words; all splits into descendants of both."""
    (slot, i), (other, j) = left, right
    vertex = trees.vertices(j - i, BETWEEN)
    span, place = ragged(j - i)
    tails = [trees.complete[RIGHT, slot[span], place], trees.complete[LEFT, other[span], (j - i)[span] - place - 1]]
    trees.graph.edges(vertex[span], tails, [])
    return vertex


def _ends(trees: Items, frames: N.Frames, last: Ints, parts: list[Ints], root_only: bool) -> None:
    """C: h with its last modifier m, whose descendants reach e; ``last`` are the vertices of I or J, with ``parts``.

    With ``root_only`` node 0 is asked for all words only.
    """
    n, reach = trees.arcs.size - 1, trees.complete.shape[2] - 1
    right, h = frames.side == RIGHT, frames.h
    most = np.where(right, n - h, h - 1)
    for above in (frames.f, frames.g):  # no ancestor is among the words from h to e
        blocked = (above >= 0) & ((above > h) == right)
        most = np.where(blocked, np.minimum(most, np.abs(above - h) - 1), most)
    least = np.where((h == 0) & root_only, n, frames.width)
    frame, place = ragged(np.maximum(np.minimum(most, reach) - least + 1, 0))
    side, far = frames.side[frame], least[frame] + place
    below = trees.slots.of_modifiers(trees.arcs, frames.slot, frames.arc)[frame]
    tails = [last[frame], trees.complete[side, below, far - frames.width[frame]]]
    head = trees.complete[side, frames.slot[frame], far]
    trees.graph.edges(head, tails, [column[frame] for column in parts])


def arcs_alone(trees: Items) -> Ints:
    """Eisner's items: I(h, m) is the arc over S(h, m). Returns the I of each arc; -1 if node 0 is left to the root."""
    arcs, graph = trees.arcs, trees.graph
    frames = trees.slots.frames(arcs, lambda f, g, h, m: (h > 0) | (not trees.single))
    low, high = np.minimum(frames.h, frames.m), np.maximum(frames.h, frames.m)
    spans, of_arc = np.unique(low * arcs.size + high, return_inverse=True)
    i, j = np.divmod(spans, arcs.size)
    between = _between(trees, (i, i), (j, j))
    over = trees.vertices(frames.width, TAKEN)
    graph.edges(over, [between[of_arc], trees.label[frames.arc]], [trees.part[frames.arc]])
    _ends(trees, frames, over, [], root_only=False)
    found = np.full(len(arcs.head), -1, dtype=np.int64)
    found[frames.arc] = over
    return found


def _sequences(trees: Items, problem: "Dependency") -> None:
    """The items of scores above arcs."""
    graph, arcs, slots, model = trees.graph, trees.arcs, trees.slots, problem.model

    def apart(f: Ints, g: Ints, h: Ints, m: Ints) -> Bools:
        """No ancestor of h is among the words from h to m; and node 0 may be left to the root."""
        low, high = np.minimum(h, m), np.maximum(h, m)
        return ((f < low) | (f > high)) & ((g < low) | (g > high)) & ((h > 0) | (not trees.single))

    if model.at(END) or model.at(EMPTY):
        trees.complete[:, :, 0] = trees.vertices(np.zeros((2, len(slots.word)), dtype=np.int64), COMPLETE)
        slot, side = (x.reshape(-1) for x in np.indices((len(slots.word), 2)))
        graph.edges(trees.complete[side, slot, 0], [], N.empty_parts(graph, problem, slots, slot, side))
    frames = slots.frames(arcs, apart)
    taking = frames if model.head_at_modifiers else N.Slots.of(arcs, 0).frames(arcs, apart)
    states, steps = N.sequences(taking, model.pairs, np.zeros(len(taking.arc), dtype=bool))
    state = trees.vertices(taking.width[states.frame], TAKEN)
    source = np.where(steps.source >= 0, state[steps.source], -1)
    arc = taking.arc[steps.frame]
    taken = [trees.part[arc], *N.taking_parts(graph, problem, taking, steps)]
    group = slots.group[taking.slot] if model.head_at_modifiers else taking.slot
    graph.edges(state[steps.state], [source, _beside(trees, taking, steps, group), trees.label[arc]], taken)
    last = state
    if model.pairs or model.outermost:
        same = np.arange(len(frames.arc)) if model.head_at_modifiers else np.searchsorted(taking.arc, frames.arc)
        at, inner = N.grouped(same, states.frame, len(taking.arc))
        last = trees.vertices(frames.width, LAST)
        g, h, m, s = frames.g[at], frames.h[at], frames.m[at], states.s[inner]
        whole = N.scored(graph, problem.scores, model.at(OUTERMOST), g=g, h=h, s=s, m=m)
        graph.edges(last[at], [state[inner]], whole)
    ends = N.scored(graph, problem.scores, model.at(END), g=frames.g, h=frames.h, d=frames.side, s=frames.m)
    _ends(trees, frames, last, ends, root_only=True)


def _beside(trees: Items, frames: N.Frames, steps: N.Steps, group: Ints) -> Ints:
    """What a step adds next to m: the words between s and m, or the descendants of m towards h if m is innermost.

    ``group`` is that of the slot of each frame.
    """
    arcs, slots, alone = trees.arcs, trees.slots, steps.inside < 0
    arc = frames.arc[steps.frame]
    outer = slots.below(arcs, group[steps.frame], arc)
    found = trees.complete[1 - arcs.side[arc], outer, frames.width[steps.frame] - 1]
    arc, outer = arc[~alone], outer[~alone]
    inside = frames.arc[steps.inside[~alone]]
    inner = slots.below(arcs, group[steps.frame[~alone]], inside)
    m, s = arcs.mod[arc], arcs.mod[inside]
    key, size = np.minimum(m, s) * arcs.size + np.maximum(m, s), arcs.size**2
    if slots.lower is not None:  # then the words between depend on their head
        place = np.arange(len(slots.lower.arc)) - slots.lower.first
        key, size = (np.cumsum(place) - place)[outer] + inner - slots.lower.first[outer], int(place.sum())
    some = np.full(size, -1, dtype=np.int64)
    some[key] = np.arange(len(key))  # a step for each span
    spans = some[some >= 0]
    swap = s[spans] > m[spans]
    left = np.where(swap, outer[spans], inner[spans]), np.minimum(m, s)[spans]
    right = np.where(swap, inner[spans], outer[spans]), np.maximum(m, s)[spans]
    some[some >= 0] = _between(trees, left, right)
    found[~alone] = some[key]
    return found
