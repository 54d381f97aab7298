"""What the normal forms of dependency problems share: allowed arcs, slots of heads, and sequences of modifiers.

Arcs are numbered by head, side and distance, so that the modifiers of a head on one side are a run, nearest first. A
slot is a word, or a word together with its head: what the scores of its modifiers depend on. A frame is an arc below a
slot of its head; those of a slot and side are a run, too.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certus.certificates.assembling import Assembly, ragged
from certus.certificates.rounding import Floats
from certus.checks import Bools, Ints
from certus.dependency import parts as P
from certus.dependency.part_kinds import RIGHT
from certus.errors import NotSupported

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

Scores = Mapping[str, P.Scores]


class Arcs(NamedTuple):
    """The allowed arcs; ``first[a]`` is the nearest one of the same head and side, ``out_ptr`` bounds those of h."""

    size: int  # n + 1
    head: Ints
    mod: Ints
    side: Ints
    out_ptr: Ints  # (n + 2,)
    first: Ints

    @staticmethod
    def of(allowed: Bools) -> "Arcs":
        """Of a mask (n + 1, n + 1)."""
        head, mod = np.nonzero(allowed)
        order = np.lexsort((np.abs(mod - head), mod > head, head))
        head, mod = head[order], mod[order]
        side = (mod > head).astype(np.int64)
        out_ptr = np.searchsorted(head, np.arange(len(allowed) + 1))
        return Arcs(len(allowed), head, mod, side, out_ptr, run_starts(2 * head + side))

    @property
    def cell(self) -> Ints:
        """Of each arc in the view "arcs"."""
        return self.head * self.size + self.mod

    def cells(self, part: Ints) -> Ints:
        """The view "arcs" (flat) with the part of each arc, -1 elsewhere."""
        view = np.full(self.size**2, -1, dtype=np.int64)
        view[self.cell] = part
        return view


class Slots(NamedTuple):
    """Words, or words with their heads; g is -1 where it is not told apart."""

    head: Ints  # g
    word: Ints  # h
    of_arc: Ints  # the slot of the modifier of each arc

    @staticmethod
    def of(arcs: Arcs, by_head: bool) -> "Slots":
        """All slots; with ``by_head`` they are numbered like arcs, and node 0 comes last."""
        if not by_head:
            words = np.arange(arcs.size)
            return Slots(np.full(arcs.size, -1), words, arcs.mod)
        return Slots(np.append(arcs.head, -1), np.append(arcs.mod, 0), np.arange(len(arcs.head)))


class Frames(NamedTuple):
    """Arcs below slots: h with head g takes m; ``first`` is the frame of the same slot and side nearest to h."""

    slot: Ints
    arc: Ints
    g: Ints
    h: Ints
    m: Ints
    side: Ints
    first: Ints

    @staticmethod
    def of(arcs: Arcs, slots: Slots) -> "Frames":
        """All frames."""
        slot, place = ragged(np.diff(arcs.out_ptr)[slots.word])
        arc = arcs.out_ptr[slots.word[slot]] + place
        return Frames.at(arcs, slots, slot, arc)

    @staticmethod
    def at(arcs: Arcs, slots: Slots, slot: Ints, arc: Ints) -> "Frames":
        """The frames of these slots and arcs, in the order of all."""
        side = arcs.side[arc]
        first = run_starts(2 * slot + side)
        return Frames(slot, arc, slots.head[slot], arcs.head[arc], arcs.mod[arc], side, first)


class Steps(NamedTuple):
    """Ways for a head to take one modifier more: from a state (-1: none taken yet) to a state.

    A state is a frame, its last modifier; or, where the two last ones matter, a frame and the one inside it.
    ``inside`` is the frame of s, -1 where m is innermost; then s is h and t is -1.
    """

    source: Ints
    state: Ints
    frame: Ints
    inside: Ints
    t: Ints
    s: Ints


class States(NamedTuple):
    """The frame of each state, and the modifier inside it, where states tell: h if there is none."""

    frame: Ints
    s: Ints


def sequences(frames: Frames, pairs: bool, alone: Bools) -> tuple[States, Steps]:
    """All sequences of modifiers; with ``pairs`` states are the last two of them.

    Frames that are ``alone`` have no other modifier inside.
    """
    count = len(frames.arc)
    every = np.arange(count)
    outer, place = ragged(np.where(alone, 0, every - frames.first))
    inner = frames.first[outer] + place
    none = np.full(count, -1)
    start = Steps(none, every, every, none, none, frames.h)
    if not pairs:
        more = Steps(inner, outer, outer, inner, np.full(len(outer), -1), frames.m[inner])
        return States(every, frames.h), _together(start, more)
    # State f + the number of frames is pair f: taken after (t, s) for all t, or after s alone.
    degree = np.bincount(outer, minlength=count)
    pair_ptr = np.concatenate(([0], np.cumsum(degree)))
    second = np.arange(len(outer)) + count
    pair, at = ragged(1 + degree[inner])
    below = pair_ptr[inner[pair]] + at - 1  # the pair (t, s); at 0, s alone
    has_t = at > 0
    source = np.where(has_t, below + count, inner[pair])
    t = np.where(has_t, frames.m[inner[np.where(has_t, below, 0)]], frames.h[outer[pair]])
    more = Steps(source, second[pair], outer[pair], inner[pair], t, frames.m[inner[pair]])
    states = States(np.concatenate((every, outer)), np.concatenate((frames.h, frames.m[inner])))
    return states, _together(start, more)


def _together(a: Steps, b: Steps) -> Steps:
    return Steps(*(np.concatenate(columns) for columns in zip(a, b, strict=True)))


def grouped(group: Ints, of_state: Ints, count: int) -> tuple[Ints, Ints]:
    """All pairs of a place and a state of its group; there are so many groups."""
    order = np.argsort(of_state, kind="stable")
    ptr = np.searchsorted(of_state[order], np.arange(count + 1))
    place, at = ragged(np.diff(ptr)[group])
    return place, order[ptr[group[place]] + at]


def run_starts(key: Ints) -> Ints:
    """Where the run of equal keys begins that each place is in."""
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if len(key) else np.zeros(0, dtype=np.int64)
    return np.repeat(starts, np.diff(np.append(starts, len(key))))


def attach_parts(graph: Assembly, scores: Scores, frames: Frames, steps: Steps, grand: bool) -> list[Ints]:
    """The parts above arcs that each step uses; with ``grand`` those with the head of h too."""
    h, m = frames.h[steps.frame], frames.m[steps.frame]
    columns = []
    if "sibling" in scores:
        columns.append(graph.parts(scores["sibling"].gather(h, steps.s, m)))
    if "trisibling" in scores:
        columns.append(some(graph, scores["trisibling"], steps.t >= 0, h, steps.t, steps.s, m))
    if grand:
        g = frames.g[steps.frame]
        columns += grand_parts(graph, scores, g, h, steps.s, m)
        if "grandtrisibling" in scores:
            columns.append(some(graph, scores["grandtrisibling"], (g >= 0) & (steps.t >= 0), g, h, steps.t, steps.s, m))
    return columns


def check_kinds(problem: "Dependency") -> None:
    """NotSupported for kinds of parts that items as they are here do not tell apart."""
    unknown = "greatgrandparent" in problem.scores
    if unknown or ("grandtrisibling" in problem.scores and problem.grandparents == "outermost"):
        raise NotSupported("trees with great-grandparents, or with outermost ones alone, have no normal form.")


def grand_parts(graph: Assembly, scores: Scores, g: Ints, h: Ints, s: Ints, m: Ints) -> list[Ints]:
    """The parts with the head of h; none below node 0."""
    columns = []
    if "grandparent" in scores:
        columns.append(some(graph, scores["grandparent"], g >= 0, g, h, m))
    if "grandsibling" in scores:
        columns.append(some(graph, scores["grandsibling"], g >= 0, g, h, s, m))
    return columns


def some(graph: Assembly, scores: P.Scores, where: Bools, *index: Ints) -> Ints:
    """The parts of some places, -1 elsewhere."""
    found = np.full(len(where), -1, dtype=np.int64)
    found[where] = graph.parts(scores.gather(*(i[where] for i in index)))
    return found


def end_parts(graph: Assembly, scores: Scores, frames: Frames) -> list[Ints]:
    """The parts of ending a side after the modifier of each frame."""
    return [graph.parts(scores["stop"].gather(frames.h, frames.side, frames.m))] if "stop" in scores else []


def empty_parts(graph: Assembly, scores: Scores, slots: Slots, slot: Ints, side: Ints) -> list[Ints]:
    """The parts of slots without a modifier on a side; node 0 has no left side."""
    columns, g, h = [], slots.head[slot], slots.word[slot]
    if "stop" in scores:
        columns.append(some(graph, scores["stop"], (h > 0) | (side == RIGHT), h, side, h))
    if "null" in scores:
        columns.append(some(graph, scores["null"], g >= 0, g, h, side))
    return columns


def label_vertices(graph: Assembly, arcs: Arcs, label: Floats) -> tuple[Ints, Ints]:
    """A vertex for each arc, derived by an edge for each of its labels; and the parts of the view "labels", flat."""
    scores = label[arcs.head, arcs.mod]
    arc, number = np.nonzero(scores > -np.inf)
    part = graph.parts(scores[arc, number], always=True)
    vertex = graph.vertices(np.zeros(len(arcs.head), dtype=np.int64))
    graph.edges(vertex[arc], [], [part])
    cells = np.full(label.size, -1, dtype=np.int64)
    cells[arcs.cell[arc] * label.shape[2] + number] = part
    return vertex, cells
