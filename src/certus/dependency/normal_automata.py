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
from certus.dependency.part_kinds import END, LEFT, OUTERMOST, RIGHT

if TYPE_CHECKING:
    from certus.dependency.head_automata import HeadAutomata
    from certus.dependency.problem import Dependency


def of_parts(problem: "Dependency", arc: Floats, of_trees: bool) -> NormalForm:
    """Of the part scores of a problem, with these arc scores; with ``of_trees`` without parts that no tree has."""
    model, graph, single = problem.model, Assembly(), problem.single and problem.n > 0
    arcs = N.Arcs.of(arc > -np.inf)
    slots = N.Slots.of(arcs, model.ancestors)
    takers = slots if model.head_at_modifiers else N.Slots.of(arcs, 0)  # what the states of sequences tell apart
    frames = takers.frames(arcs, (lambda f, g, h, m: g != m) if of_trees else None)
    states, steps = N.sequences(frames, model.pairs, (frames.h == 0) & single)
    part = graph.parts(arc[arcs.head, arcs.mod], always=True)
    state = graph.vertices(frames.width[states.frame])
    source = np.where(steps.source >= 0, state[steps.source], -1)
    taken = [part[frames.arc[steps.frame]], *N.taking_parts(graph, problem, frames, steps)]
    graph.edges(state[steps.state], [source], taken)

    ends = graph.vertices(np.full((len(slots.word), 2), len(arc)))
    taker = np.arange(len(slots.word)) if model.head_at_modifiers else slots.word
    slot, last = N.grouped(taker, frames.slot[states.frame], len(takers.word))
    if of_trees:
        apart = (slots.g[slot] != frames.m[states.frame[last]]) & (slots.g[slot] != states.s[last])
        slot, last = slot[apart], last[apart]
    h, m, side = (nodes[states.frame[last]] for nodes in (frames.h, frames.m, frames.side))
    g = slots.g[slot]
    columns = N.scored(graph, problem.scores, model.at(END), g=g, h=h, d=side, s=m)
    columns += N.scored(graph, problem.scores, model.at(OUTERMOST), g=g, h=h, s=states.s[last], m=m)
    graph.edges(ends[slot, side], [state[last]], columns)
    slot, side = np.nonzero((slots.word > 0)[:, None] | [True, not single])
    graph.edges(ends[slot, side], [], N.empty_parts(graph, problem, slots, slot, side))
    return _closed(graph, ends, slots, arcs, part)


def _closed(graph: Assembly, ends: Ints, slots: N.Slots, arcs: N.Arcs, part: Ints) -> NormalForm:
    """The form, from the ends of both sides of each slot on."""
    cells = {"arcs": arcs.cells(part)}
    above = np.full(len(slots.word), -1, dtype=np.int64)
    if slots.ancestors:
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
    slots = N.Slots.of(arcs, int(automata.by_head))
    part = graph.parts(arc[arcs.head, arcs.mod], always=True)
    number = arcs.cells(part).tolist()
    ends = graph.vertices(np.full((len(slots.word), 2), arcs.size))
    edges: list[tuple[int, int, int, float]] = []  # head, tail, arc taken, weight
    levels: list[int] = []
    for slot, (g, h) in enumerate(zip(slots.g.tolist(), slots.word.tolist(), strict=True)):
        for side in (LEFT, RIGHT):
            automaton = automata.automaton(g, h, side)
            reached: dict[Hashable, int] = {automaton.start: -1}  # by vertex; -1: without a modifier
            for m in (m for m in automata.outwards(h, side) if m != g or not automata.of_trees):
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
    return _closed(graph, ends, slots, arcs, part)
