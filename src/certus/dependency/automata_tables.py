"""Head automata as tables: any automaton spelt out over the modifiers of its head, written as JSON and read back."""

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from certus.dependency.head_automata import Automaton, AutomatonOf, HeadAutomata
from certus.dependency.part_kinds import LEFT, RIGHT
from certus.schema import Field
from certus.serialize import floats_to_json

Key = tuple[int, int, int]  # (g, h, side)


@dataclass(frozen=True, slots=True)
class TableAutomaton:
    """An automaton of numbered states, 0 first: ``steps[state, m]`` is (state, weight), ``stops[state]`` a weight."""

    steps: dict[tuple[int, int], tuple[int, float]]
    stops: list[float]

    @property
    def start(self) -> int:
        return 0

    def step(self, state: int, m: int) -> tuple[int, float]:
        return self.steps.get((state, m), (state, -np.inf))

    def stop(self, state: int) -> float:
        return self.stops[state]


def spelt_out(automaton: Automaton, words: list[list[int]]) -> TableAutomaton:
    """The table of an automaton over its possible modifiers, nearest first: of the states that it can reach.

    ``words`` are lists of nodes, of each of which it takes one at most.
    """
    number: dict[Hashable, int] = {automaton.start: 0}
    steps: dict[tuple[int, int], tuple[int, float]] = {}
    for nodes in words:
        for (state, at), m in product(list(number.items()), nodes):
            after, weight = automaton.step(state, m)
            if weight > -np.inf:
                steps[at, m] = (number.setdefault(after, len(number)), float(weight))
    return TableAutomaton(steps, [float(automaton.stop(state)) for state in number])


def to_json(automata: HeadAutomata) -> list[dict[str, Any]]:
    """All automata of a sentence, one object for each (g, h, side)."""
    found = []
    for h, side in product(range(automata.n + 1), (LEFT, RIGHT)):
        for g in automata.heads_of(h):
            table = spelt_out(automata.automaton_of(g, h, side), automata.choices_outwards(h, side))
            rows = [[state, m, after] for (state, m), (after, _) in table.steps.items()]
            weights = np.array([weight for _, weight in table.steps.values()], dtype=np.float64)
            found.append(
                {"g": g, "h": h, "side": side, "steps": rows, "weights": weights.tolist()}
                | {"stops": floats_to_json(np.array(table.stops))}
            )
    return found


def from_json(given: Field, n: int) -> AutomatonOf:
    """What ``to_json`` described, as a function of (g, h, side)."""
    tables: dict[Key, TableAutomaton] = {}
    for one in given.items():
        key = one["g"].whole(-1, n), one["h"].whole(0, n), one["side"].whole(0, 1)
        stops = one["stops"].scores((None,))
        rows = one["steps"].wholes(0, max(n, len(stops)), (None, 3))
        if not len(stops) or (len(rows) and rows[:, [0, 2]].max() >= len(stops)):
            one["stops"].fail("a weight for each state, from 0 on")
        weights = one["weights"].scores((len(rows),))
        pairs = zip(rows.tolist(), weights.tolist(), strict=True)
        tables[key] = TableAutomaton({(s, m): (after, w) for (s, m, after), w in pairs}, stops.tolist())
    nothing = TableAutomaton({}, [-np.inf])  # of a head that is not allowed
    return lambda g, h, side: tables.get((g, h, side), nothing)
