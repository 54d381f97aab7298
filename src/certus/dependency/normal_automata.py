"""Head automata in normal form: one graph, in which every head chooses what it supposes as its head, and its modifiers.

The root is derived by one edge, whose tails are the choices of all heads; the choice of a head by an edge for each head
g that it may suppose, whose tails are the ends of its two sides; the end of a side by the last modifier taken, or by
none.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from certus.certificates.assembling import Assembly
from certus.certificates.normal import NormalForm
from certus.checks import Floats, Ints, as_scores
from certus.dependency import normal_parts as N
from certus.dependency.part_kinds import LEFT, RIGHT

if TYPE_CHECKING:
    from certus.dependency.head_automata import HeadAutomata
    from certus.dependency.problem import Dependency


def of_parts(problem: "Dependency", arc: Floats, by_head: bool, pairs: bool) -> NormalForm:
    """Of the part scores of a problem, with these arc scores; ``pairs``: the two last modifiers matter."""
    N.check_kinds(problem)
    scores, graph = problem.scores, Assembly()
    outermost, single = problem.grandparents == "outermost", problem.single and problem.n > 0
    arcs = N.Arcs.of(arc > -np.inf)
    slots = N.Slots.of(arcs, by_head)
    takers = N.Slots.of(arcs, by_head and not outermost)  # what the states of sequences tell apart
    frames = N.Frames.of(arcs, takers)
    states, steps = N.sequences(frames, pairs, (frames.h == 0) & single)
    part = graph.parts(arc[arcs.head, arcs.mod], always=True)
    state = graph.vertices(np.abs(frames.m - frames.h)[states.frame])
    columns = N.attach_parts(graph, scores, frames, steps, not outermost)
    source = np.where(steps.source >= 0, state[steps.source], -1)
    graph.edges(state[steps.state], [source], [part[frames.arc[steps.frame]], *columns])

    ends = graph.vertices(np.full((len(slots.word), 2), len(arc)))
    taker = slots.word if outermost else np.arange(len(slots.word))
    slot, last = N.grouped(taker, frames.slot[states.frame], len(takers.word))
    frame = states.frame[last]
    columns = [column[frame] for column in N.end_parts(graph, scores, frames)]
    if outermost:
        columns += N.grand_parts(graph, scores, slots.head[slot], frames.h[frame], states.s[last], frames.m[frame])
    graph.edges(ends[slot, frames.side[frame]], [state[last]], columns)
    slot, side = np.nonzero((slots.word > 0)[:, None] | [True, not single])
    graph.edges(ends[slot, side], [], N.empty_parts(graph, scores, slots, slot, side))
    return _closed(graph, ends, slots, arcs, part, by_head)


def _closed(graph: Assembly, ends: Ints, slots: N.Slots, arcs: N.Arcs, part: Ints, by_head: bool) -> NormalForm:
    """The form, from the ends of both sides of each slot on."""
    cells = {"arcs": arcs.cells(part)}
    above = np.full(len(slots.word), -1, dtype=np.int64)
    if by_head:
        above[:-1] = graph.parts(np.zeros(len(arcs.head)), always=True)
        cells["above"] = arcs.cells(above[:-1])
    choice = graph.vertices(np.full(arcs.size, arcs.size + 1))
    graph.edges(choice[slots.word], list(ends.T), [above])
    root = graph.vertices(np.array([arcs.size + 2]))
    graph.edges(root, list(choice[:, None]), [])
    return graph.form(int(root[0]), cells)


def of_automata(automata: "HeadAutomata") -> NormalForm:
    """Of automata that are known by their steps only.

    A vertex is a state that some sequence of modifiers up to m is in, made anew where m leads into the state.
    """
    graph, arc = Assembly(), automata.arc
    arcs = N.Arcs.of(arc > -np.inf)
    slots = N.Slots.of(arcs, automata.by_head)
    part = graph.parts(arc[arcs.head, arcs.mod], always=True)
    number = arcs.cells(part).tolist()
    ends = graph.vertices(np.full((len(slots.word), 2), arcs.size))
    edges: list[tuple[int, int, int, float]] = []  # head, tail, arc taken, weight
    levels: list[int] = []
    for slot, (g, h) in enumerate(zip(slots.head.tolist(), slots.word.tolist(), strict=True)):
        for side in (LEFT, RIGHT):
            automaton = automata.automaton(g, h, side)
            reached: dict[Hashable, int] = {automaton.start: -1}  # by vertex; -1: without a modifier
            for m in automata.outwards(h, side):
                entered: dict[Hashable, int] = {}
                for state, source in reached.items():
                    following, weight = automata.step(g, h, side, state, m)
                    if following not in entered:
                        entered[following] = ends.size + len(levels)
                        levels.append(abs(m - h))
                        if following in reached:
                            edges.append((entered[following], reached[following], -1, 0.0))
                    edges.append((entered[following], source, number[h * arcs.size + m], weight))
                reached |= entered
            edges += [(int(ends[slot, side]), v, -1, automaton.stop(state)) for state, v in reached.items()]
    graph.vertices(np.array(levels, dtype=np.int64))
    head, tail, taken = np.array([edge[:3] for edge in edges], dtype=np.int64).reshape(-1, 3).T
    weights = graph.parts(as_scores("weights of automata", [edge[3] for edge in edges]))
    graph.edges(head, [tail], [taken, weights])
    return _closed(graph, ends, slots, arcs, part, automata.by_head)
