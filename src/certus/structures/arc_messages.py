"""Multipliers of graphs with several kinds of pairs by messages between arcs: see ``certus.kernels.arc_messages``."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from threading import Timer
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints
from certus.relax.system import Until
from certus.structures.arc_programs import COPARENT, SIBLING, chains, pair_cell
from certus.threads import long_call

if TYPE_CHECKING:
    from certus.kernels.arc_messages import Places

FAR = 4.0  # in what an arc may gain at most: worse is as good as forbidden


class Found(NamedTuple):
    """What the copies of arcs have in the end, by view; for each arc a number between 0 and 1, and a graph met with."""

    copies: dict[str, Floats]
    average: Floats  # (cells,) near 1/2 where taking the arc is worth little, or costs little
    graph: Ints  # (cells,)


class ArcMessages:
    """Messages for a graph's arcs that are not forbidden, or in a pair; chains of them, and pairs."""

    def __init__(self, arrays: Mapping[str, Floats], ends: Ints, pair: Floats) -> None:
        self.arrays, self.size = arrays, len(arrays["arc"])
        self.arcs = np.union1d(np.flatnonzero(arrays["arc"] > -np.inf), ends)  # flat cells
        self.number = np.full(self.size**2, -1)
        self.number[self.arcs] = np.arange(len(self.arcs))
        self.ends, self._pair = self.number[ends].reshape(2, -1), pair

    @cached_property
    def places(self) -> "Places":
        """Where the copies of arcs are."""
        found: Places = kernels.arc_messages.Places(*self._copies, *self._chains[:5])
        return found

    @cached_property
    def _copies(self) -> tuple[Ints, Ints, Ints]:
        arc = self.ends.reshape(-1)
        order = np.argsort(arc, kind="stable")
        count = np.bincount(arc, minlength=len(self.arcs))
        return np.concatenate(([0], np.cumsum(count))), order, arc.copy()

    @cached_property
    def _chains(self) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats]:
        """Of siblings and of coparents, as ``Places`` has them, and the tables."""
        place = np.full((2, len(self.arcs)), -1)
        taken, sizes, tables = list[int](), list[int](), [np.empty(0)]
        for r, kind in enumerate((SIBLING, COPARENT)):
            if kind not in self.arrays:
                continue
            for a, others in chains(self.size - 1, kind):
                cells = [a * self.size + b if kind == SIBLING else b * self.size + a for b in others]
                kept = sorted((int(self.number[c]), b) for c, b in zip(cells, others, strict=True))
                kept = [(number, b) for number, b in kept if number >= 0]
                if kept:
                    numbers, own = zip(*kept, strict=True)
                    place[r, list(numbers)] = sum(sizes) + 1 + np.arange(len(kept))
                    taken += [-1, *numbers, -1]
                    sizes.append(len(kept) + 2)
                    tables.append(self._table(kind, a, own).reshape(-1))
        start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        table_ptr = np.concatenate(([0], np.cumsum(np.square(sizes))))[: len(sizes)].astype(np.int64)
        chain = np.repeat(np.arange(len(sizes)), sizes)
        return place, start, chain, np.array(taken, dtype=np.int64), table_ptr, np.concatenate(tables)

    def _table(self, kind: str, anchor: int, others: Sequence[int]) -> Floats:
        """The scores of next ones in a chain with empty ends, of which one stands for the anchor."""
        inside_out = others[0] > anchor
        nodes = np.array([anchor, *others] if inside_out else [*others, anchor])
        first, second = (nodes[k] for k in np.triu_indices(len(nodes), 1))
        inner, outer = (first, second) if inside_out else (second, first)
        table = np.zeros((len(nodes) + 1,) * 2)
        block = table[:-1, :-1] if inside_out else table[1:, 1:]
        block[np.triu_indices(len(nodes), 1)] = self.arrays[kind].reshape(-1)[
            pair_cell(kind, self.size, anchor, inner, outer)
        ]
        return table

    def lowered(self, arc: Floats, copies: Mapping[str, Floats], required: Ints, target: float, until: Until) -> Found:
        """Lower the bound from what copies of arcs have, by view; ``arc`` (cells,) is what each has with all copies.

        Arcs of -inf are left out, and those in ``required``, flat cells, are taken. See ``lower`` of the kernels.
        """
        k, places, table = kernels.arc_messages, self.places, self._chains[5]
        own, arcs = arc[self.arcs], len(self.arcs)
        state = np.where(own > -np.inf, k.FREE, k.OUT)
        state[self.number[required[self.number[required] >= 0]]] = k.IN
        gain = np.maximum(own, 0.0) + np.bincount(places.arc, np.tile(np.maximum(self._pair, 0.0), 2), arcs)
        far = -1.0 - FAR * (float(gain.max(initial=0.0)) + 2.0 * float(table.max(initial=0.0)))
        worths = k.Worths(np.maximum(own, far), np.maximum(self._pair, far), np.maximum(table, far))
        tied = "arcs" in copies  # chains of coparents, the second of each arc
        there = np.flatnonzero(places.place[1] >= 0) if tied else np.empty(0, dtype=np.int64)
        seats, cells = places.place[1, there], self.arcs[there]
        copy, seat, used = copies.get("copies", np.empty(0)).copy(), np.zeros(len(places.taken)), places.taken >= 0
        if tied:
            seat[seats] = copies["arcs"][cells]
        pool = worths.arc - np.bincount(places.arc, copy, arcs) - np.bincount(places.taken[used], seat[used], arcs)
        messages = k.Messages(pool, copy, seat, np.zeros(arcs))
        best = np.zeros(arcs, dtype=np.int64)
        steps = float(until.rounds) * (len(messages.copy) + len(worths.table))
        over = np.array([until.seconds == 0.0], dtype=np.int64)
        timer = Timer(until.seconds, over.fill, (1,)) if until.seconds else None
        if timer is not None:
            timer.start()
        try:
            long_call(8.0 * steps, k.lower, places, worths, state, messages, target, until.rounds, over, best)
        finally:
            if timer is not None:
                timer.cancel()
        found = {view: values.copy() for view, values in copies.items()}
        if tied:
            found["arcs"][cells] = messages.place[seats]
        if "copies" in found:
            found["copies"] = messages.copy
        average, graph = np.zeros(len(arc)), np.zeros(len(arc), dtype=np.int64)
        average[self.arcs], graph[self.arcs] = 0.5 + 0.5 * np.tanh(0.5 * messages.belief), best
        return Found(found, average, graph)
