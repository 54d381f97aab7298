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

from certus.certificates.assembling import Assembly, ragged
from certus.certificates.normal import NormalForm
from certus.checks import Floats, Ints
from certus.dependency import normal_parts as N
from certus.dependency.part_kinds import LEFT, RIGHT

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

BETWEEN, TAKEN, LAST, COMPLETE = range(4)  # S, I, J, C: what comes first among items of one width


class _Trees(NamedTuple):
    """What the items are made of."""

    graph: Assembly
    arcs: N.Arcs
    slots: N.Slots
    part: Ints  # of each arc
    label: Ints  # the vertex of the labels of each arc, -1 without labels
    complete: Ints  # C: by side, slot and e; -1 where it has no words but h, and nothing to score
    scores: N.Scores
    by_head: bool  # slots are words with their heads
    single: bool

    def vertices(self, width: Ints, item: int) -> Ints:
        """New items of one kind."""
        return self.graph.vertices(4 * width + item)


def of_trees(problem: "Dependency", arc: Floats, label: Floats | None = None) -> NormalForm:
    """Of a projective problem, with these arc scores, and scores of labels if arcs have labels."""
    N.check_kinds(problem)
    graph, scores = Assembly(), problem.scores
    grand = bool({"grandparent", "grandsibling", "grandtrisibling"} & scores.keys())
    arcs = N.Arcs.of(arc > -np.inf)
    by_head = grand or "null" in scores
    slots = N.Slots.of(arcs, by_head)
    part = graph.parts(arc[arcs.head, arcs.mod], always=True)
    cells, labels = {"arcs": arcs.cells(part)}, np.full(len(part), -1)
    if label is not None:
        labels, cells["labels"] = N.label_vertices(graph, arcs, label)
    ends = np.arange(len(arc))
    complete = graph.vertices(
        np.broadcast_to(4 * np.abs(ends - slots.word[:, None]) + COMPLETE, (2, len(slots.word), len(arc)))
    )
    if not {"stop", "null"} & scores.keys():
        complete[:, np.arange(len(slots.word)), slots.word] = -1
    trees = _Trees(graph, arcs, slots, part, labels, complete, scores, by_head, problem.single and problem.n > 0)
    if scores:
        _sequences(trees, grand and problem.grandparents == "outermost")
    else:
        _arcs_alone(trees)
    root = graph.vertices(np.array([4 * len(arc)]))
    _root(trees, int(root[0]), problem.n)
    return graph.form(int(root[0]), cells)


def _root(trees: _Trees, root: int, n: int) -> None:
    """All trees: the only modifier of node 0 with all words on both sides of it, or node 0 with its modifiers."""
    graph, arcs, slots = trees.graph, trees.arcs, trees.slots
    if not trees.single:
        node = np.flatnonzero(slots.word == 0)
        graph.edges(np.array([root]), [trees.complete[RIGHT, node, n]], [])
        return
    top = np.flatnonzero(arcs.head == 0)
    m, none = arcs.mod[top], np.zeros(len(top), dtype=np.int64)
    parts = [trees.part[top]]
    if "sibling" in trees.scores:
        parts.append(graph.parts(trees.scores["sibling"].gather(none, none, m)))
    if "stop" in trees.scores:
        parts.append(graph.parts(trees.scores["stop"].gather(none, none + RIGHT, m)))
    both = trees.complete[LEFT, slots.of_arc[top], 1], trees.complete[RIGHT, slots.of_arc[top], n]
    graph.edges(np.full(len(top), root), [*both, trees.label[top]], parts)


def _between(trees: _Trees, left: tuple[Ints, Ints], right: tuple[Ints, Ints]) -> Ints:
    """S: the words between i and j, given as slots and words; all splits into descendants of both."""
    (slot, i), (other, j) = left, right
    vertex = trees.vertices(j - i, BETWEEN)
    span, place = ragged(j - i)
    r = i[span] + place
    tails = [trees.complete[RIGHT, slot[span], r], trees.complete[LEFT, other[span], r + 1]]
    trees.graph.edges(vertex[span], tails, [])
    return vertex


def _ends(trees: _Trees, frames: N.Frames, last: Ints, root_only: bool) -> None:
    """C: h with its last modifier m, whose descendants reach e; ``last`` are the vertices of I or J.

    With ``root_only`` node 0 is asked for all words only.
    """
    n = trees.arcs.size - 1
    right = frames.side == RIGHT
    furthest = np.where(
        right, np.where(frames.g > frames.h, frames.g - 1, n), np.where(frames.g < frames.h, frames.g, 0) + 1
    )
    furthest = np.maximum(furthest, 1)
    nearest = np.where((frames.h == 0) & root_only, n, frames.m)
    frame, place = ragged(np.abs(furthest - nearest) + 1)
    side, slot = frames.side[frame], trees.slots.of_arc[frames.arc[frame]]
    e = nearest[frame] + np.where(right[frame], place, -place)
    parts = [column[frame] for column in N.end_parts(trees.graph, trees.scores, frames)]
    head = trees.complete[side, frames.slot[frame], e]
    trees.graph.edges(head, [last[frame], trees.complete[side, slot, e]], parts)


def _arcs_alone(trees: _Trees) -> None:
    """Eisner's items: I(h, m) is the arc over S(h, m)."""
    arcs, graph = trees.arcs, trees.graph
    kept = np.flatnonzero(arcs.head > 0) if trees.single else np.arange(len(arcs.head))
    head, mod = arcs.head[kept], arcs.mod[kept]
    spans, of_arc = np.unique(np.minimum(head, mod) * arcs.size + np.maximum(head, mod), return_inverse=True)
    i, j = np.divmod(spans, arcs.size)
    between = _between(trees, (i, i), (j, j))
    over = trees.vertices(np.abs(mod - head), TAKEN)
    graph.edges(over, [between[of_arc], trees.label[kept]], [trees.part[kept]])
    _ends(trees, N.Frames.at(arcs, trees.slots, head, kept), over, root_only=False)


def _sequences(trees: _Trees, outermost: bool) -> None:
    """The items of scores above arcs; ``outermost``: g counts for the outermost modifiers of h only."""
    graph, arcs, slots, scores = trees.graph, trees.arcs, trees.slots, trees.scores
    frames = _frames(trees, slots)
    taking = _frames(trees, N.Slots.of(arcs, False)) if outermost else frames
    pairs = bool({"trisibling", "grandtrisibling"} & scores.keys()) or (outermost and "grandsibling" in scores)
    states, steps = N.sequences(taking, pairs, np.zeros(len(taking.arc), dtype=bool))
    state = trees.vertices(np.abs(taking.m - taking.h)[states.frame], TAKEN)
    source = np.where(steps.source >= 0, state[steps.source], -1)
    arc = taking.arc[steps.frame]
    parts = [trees.part[arc], *N.attach_parts(graph, scores, taking, steps, not outermost)]
    graph.edges(state[steps.state], [source, _beside(trees, taking, steps), trees.label[arc]], parts)
    if pairs or outermost:
        group = np.searchsorted(taking.arc, frames.arc) if outermost else np.arange(len(frames.arc))
        at, inner = N.grouped(group, states.frame, len(taking.arc))
        last = trees.vertices(np.abs(frames.m - frames.h), LAST)
        whole = (frames.g[at], frames.h[at], states.s[inner], frames.m[at])
        graph.edges(last[at], [state[inner]], N.grand_parts(graph, scores, *whole) if outermost else [])
    else:
        last = state
    _ends(trees, frames, last, root_only=True)
    slot, side = np.nonzero((slots.word > (0 if trees.single else -1))[:, None] & [True, True])
    empty = trees.complete[side, slot, slots.word[slot]]
    if (empty >= 0).any():
        graph.edges(empty, [], N.empty_parts(graph, scores, slots, slot, side))


def _frames(trees: _Trees, slots: N.Slots) -> N.Frames:
    """The frames of projective trees: g is not among the words from h to m, and node 0 is left to the root."""
    frames = N.Frames.of(trees.arcs, slots)
    low, high = np.minimum(frames.h, frames.m), np.maximum(frames.h, frames.m)
    kept = ((frames.g < low) | (frames.g > high)) & ((frames.h > 0) | (not trees.single))
    return N.Frames.at(trees.arcs, slots, frames.slot[kept], frames.arc[kept])


def _beside(trees: _Trees, frames: N.Frames, steps: N.Steps) -> Ints:
    """What a step adds next to m: the words between s and m, or the descendants of m towards h if m is innermost."""
    arcs, slots = trees.arcs, trees.slots
    arc = frames.arc[steps.frame]
    found = np.full(len(arc), -1, dtype=np.int64)
    alone = steps.inside < 0
    side, h = arcs.side[arc[alone]], arcs.head[arc[alone]]
    found[alone] = trees.complete[1 - side, slots.of_arc[arc[alone]], h + np.where(side == RIGHT, 1, -1)]
    outer, inner = arc[~alone], frames.arc[steps.inside[~alone]]
    swap = arcs.mod[inner] > arcs.mod[outer]
    left, right = np.where(swap, outer, inner), np.where(swap, inner, outer)
    key, size = arcs.mod[left] * arcs.size + arcs.mod[right], arcs.size**2
    if trees.by_head:  # then the words between depend on their head
        place = np.arange(len(arcs.head)) - arcs.first
        key, size = (np.cumsum(place) - place)[outer] + inner - arcs.first[outer], int(place.sum())
    any_step = np.full(size, -1, dtype=np.int64)
    any_step[key] = np.arange(len(key))
    spans = np.flatnonzero(any_step >= 0)
    number = np.empty(size, dtype=np.int64)
    number[spans] = np.arange(len(spans))
    i, j = left[any_step[spans]], right[any_step[spans]]
    between = _between(trees, (slots.of_arc[i], arcs.mod[i]), (slots.of_arc[j], arcs.mod[j]))
    found[~alone] = between[number[key]]
    return found
