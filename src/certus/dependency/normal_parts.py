"""What the normal forms of dependency problems share: allowed arcs, slots of heads, and sequences of modifiers.

Arcs are numbered by head, side and distance, so that the modifiers of a head on one side are a run, nearest first. A
slot is a word, or a word together with its head, or also with the head of that: what the scores of its modifiers depend
on. A frame is an arc below a slot of its head; those of a slot and side are a run, too.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certus.certificates.assembling import Assembly
from certus.certificates.ragged import ragged
from certus.certificates.rounding import Floats
from certus.checks import Bools, Ints
from certus.dependency.part_kinds import EMPTY, END, MODIFIER, RIGHT, PartKind

if TYPE_CHECKING:
    from certus.dependency import parts as P
    from certus.dependency.problem import Dependency

Scores = Mapping[str, "P.Scores"]


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


class Frames(NamedTuple):
    """Arcs below slots: h, whose head is g and the head of that f, takes m.

    ``first`` is the frame of the same slot and side nearest to h. Ancestors that slots do not tell are -1.
    """

    slot: Ints
    arc: Ints
    f: Ints
    g: Ints
    h: Ints
    m: Ints
    side: Ints
    first: Ints

    @property
    def width(self) -> Ints:
        """The distance from h to m."""
        width: Ints = np.abs(self.m - self.h)
        return width


class Slots(NamedTuple):
    """Words with as many of their ancestors as matter, each with the ``group`` that is left without the furthest one.

    Slots with one ancestor more are the frames of these, in their order; node 0 comes last, unless slots are words.
    """

    ancestors: int
    f: Ints
    g: Ints
    word: Ints
    group: Ints
    lower: Frames | None  # those of the groups

    @staticmethod
    def of(arcs: Arcs, ancestors: int) -> "Slots":
        """All slots; ancestors are 0, 1 or 2."""
        none, words = np.full(arcs.size, -1), np.arange(arcs.size)
        slots = Slots(0, none, none, words, none, None)
        for k in range(ancestors):
            lower = slots.frames(arcs)
            above = np.append(lower.g, -1), np.append(lower.h, -1)
            group = np.append(lower.arc, len(arcs.head)) if k else np.append(lower.m, 0)
            slots = Slots(k + 1, *above, np.append(lower.m, 0), group, lower)
        return slots

    def frames(self, arcs: Arcs, kept: "Kept | None" = None) -> Frames:
        """All frames, or those that are to be kept."""
        slot, place = ragged(np.diff(arcs.out_ptr)[self.word])
        arc = arcs.out_ptr[self.word[slot]] + place
        if kept is not None:
            chosen = kept(self.f[slot], self.g[slot], arcs.head[arc], arcs.mod[arc])
            slot, arc = slot[chosen], arc[chosen]
        side = arcs.side[arc]
        above = self.f[slot], self.g[slot]
        return Frames(slot, arc, *above, arcs.head[arc], arcs.mod[arc], side, run_starts(2 * slot + side))

    def of_modifiers(self, arcs: Arcs, slot: Ints, arc: Ints) -> Ints:
        """The slots of modifiers that slots take by arcs."""
        return self.below(arcs, self.group[slot], arc)

    def below(self, arcs: Arcs, group: Ints, arc: Ints) -> Ints:
        """The slots of modifiers that slots of a group take by arcs."""
        if self.lower is None:
            return arcs.mod[arc]
        return np.searchsorted(self.lower.slot, group) + arc - arcs.out_ptr[arcs.head[arc]]


Kept = Callable[[Ints, Ints, Ints, Ints], Bools]  # of f, g, h, m


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


def scored(graph: Assembly, scores: Scores, kinds: Iterable[PartKind], **node: Ints) -> list[Ints]:
    """The parts of some kinds at places whose nodes are given by letter; no part where a node is -1."""
    columns = []
    for kind in kinds:
        index = [node[letter] for letter in kind.axes]
        where = np.all([nodes >= 0 for nodes in index], axis=0)
        column = np.full(len(where), -1, dtype=np.int64)
        column[where] = graph.parts(scores[kind.name].gather(*(nodes[where] for nodes in index)))
        columns.append(column)
    return columns


def taking_parts(graph: Assembly, problem: "Dependency", frames: Frames, steps: Steps) -> list[Ints]:
    """The parts above arcs of each step."""
    f, g, h, m = (nodes[steps.frame] for nodes in (frames.f, frames.g, frames.h, frames.m))
    kinds = problem.model.at(MODIFIER)
    return scored(graph, problem.scores, kinds, f=f, g=g, h=h, t=steps.t, s=steps.s, m=m)


def empty_parts(graph: Assembly, problem: "Dependency", slots: Slots, slot: Ints, side: Ints) -> list[Ints]:
    """The parts of slots without a modifier on a side; node 0 has no left side."""
    g, h = slots.g[slot], slots.word[slot]
    kinds = problem.model.at(END) + problem.model.at(EMPTY)
    return scored(graph, problem.scores, kinds, g=g, h=h, d=side, s=np.where((h > 0) | (side == RIGHT), h, -1))


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
