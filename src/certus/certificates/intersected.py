"""The derivations of a graph in normal form whose symbols an automaton accepts, as a graph again: in numpy."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from certus.certificates import sweep
from certus.certificates.normal import Graph
from certus.certificates.ragged import offsets, table
from certus.checks import Bools, Ints
from certus.errors import InvalidInput, NotSupported

MOST = 400_000_000  # pairs of states, over all vertices


class Reader(NamedTuple):
    """A deterministic automaton, and what it reads: the symbol of each part, -1 for none.

    A derivation is read from left to right, the symbols of an edge's own parts after those of its tails.
    """

    transitions: Ints  # (Q, S), -1 for no arc
    initial: int
    finals: Bools  # (Q,)
    symbol: Ints  # (P,)


class Intersected:
    """``graph``: one derivation for each accepted derivation of another graph, with the same parts.

    Its edges are edges of the old graph with a path: the states before the first tail, after each tail (the same again
    where there are fewer), and after the edge's own symbols. Its vertices are old ones with the states at both ends.
    """

    def __init__(self, old: Graph, reader: Reader) -> None:
        self._old, self._reader = old, reader
        self._size, states = len(old.in_ptr) - 1, len(reader.transitions)
        if self._size * states**2 > MOST:
            raise NotSupported(f"{self._size} vertices times {states} states twice are too many to check.")
        self._head = np.repeat(np.arange(self._size), np.diff(old.in_ptr))
        self._tails = table(old.tail_ptr, old.tail)
        self._after = self._own_steps()
        blocks = self._read()
        self._paths = self._useful(blocks)
        self.graph = self._built()

    def _own_steps(self) -> Ints:
        """The state after an edge's own parts, (E, Q); -1 if there is none."""
        symbol = np.append(self._reader.symbol, -1)
        transitions = np.pad(self._reader.transitions, ((0, 0), (0, 1)), constant_values=-1)  # there may be no symbol
        parts = table(self._old.part_ptr, self._old.part)
        state = np.tile(np.arange(len(transitions)), (len(parts), 1))
        for k in range(parts.shape[1]):
            read = symbol[parts[:, k]][:, None]
            state = np.where((read >= 0) & (state >= 0), transitions[state, read], state)
        return state

    def _read(self) -> list[Ints]:
        """Edges with all their paths, (edge, path ...) in a row, block after block: tails before heads."""
        states = len(self._reader.transitions)
        self._reach = np.zeros((self._size, states, states), dtype=bool)
        plan, found = sweep.levels(self._old), []
        number = np.arange(len(plan.head)) if plan.edge is None else plan.edge
        for edges in (number[block.edges] for block in plan.blocks):
            rows = np.stack((np.repeat(edges, states), np.tile(np.arange(states), len(edges))), axis=1)
            for k in range(self._tails.shape[1]):
                rows = self._passed(rows, self._tails[rows[:, 0], k])
            rows = np.column_stack((rows, self._after[rows[:, 0], rows[:, -1]]))
            rows = rows[rows[:, -1] >= 0]
            self._reach[self._head[rows[:, 0]], rows[:, 1], rows[:, -1]] = True
            found.append(rows)
        return found

    def _passed(self, rows: Ints, tail: Ints) -> Ints:
        """The rows with the states after one more tail."""
        some = np.flatnonzero(tail >= 0)
        place, end = np.nonzero(self._reach[tail[some], rows[some, -1]])
        without = rows[tail < 0]
        passed = np.column_stack((rows[some[place]], end))
        return np.concatenate((np.column_stack((without, without[:, -1])), passed))

    def _useful(self, blocks: list[Ints]) -> Ints:
        """The rows that accepted derivations use; marks their items in ``_used``."""
        root, first = self._size - 1, self._reader.initial
        self._used = np.zeros_like(self._reach)
        self._used[root, first] = self._reach[root, first] & self._reader.finals
        kept = [np.zeros((0, self._tails.shape[1] + 3), dtype=np.int64)]
        for rows in reversed(blocks):
            rows = rows[self._used[self._head[rows[:, 0]], rows[:, 1], rows[:, -1]]]
            for k in range(self._tails.shape[1]):
                tail = self._tails[rows[:, 0], k]
                some = rows[tail >= 0]
                self._used[tail[tail >= 0], some[:, 1 + k], some[:, 2 + k]] = True
            kept.append(rows)
        return np.concatenate(kept)

    def _built(self) -> Graph:
        number = np.cumsum(self._used).reshape(self._used.shape) - 1  # tails come before heads, as vertices do
        head = number[self._head[self._paths[:, 0]], self._paths[:, 1], self._paths[:, -1]]
        order = np.argsort(head, kind="stable")
        rows, head = self._paths[order], head[order]
        self._paths = rows
        columns = [self._tails[rows[:, 0], k] for k in range(self._tails.shape[1])]
        tails = [np.where(t >= 0, number[t, rows[:, 1 + k], rows[:, 2 + k]], -1) for k, t in enumerate(columns)]
        table = np.stack(tails, axis=1) if tails else np.zeros((len(rows), 0), dtype=np.int64)
        part_ptr, parts = sweep.rows(self._old.part_ptr, rows[:, 0])
        root = self._used[-1, self._reader.initial]
        self._ends = np.flatnonzero(root)  # the edges into the new root come last, in this order
        degree = np.append(np.bincount(head, minlength=int(self._used.sum())), len(self._ends))
        tail_ptr = np.cumsum(np.concatenate(([0], (table >= 0).sum(axis=1), np.ones(len(self._ends), dtype=np.int64))))
        return Graph(
            offsets(degree),
            tail_ptr,
            np.concatenate((table[table >= 0], number[-1, self._reader.initial][self._ends])),
            np.concatenate((part_ptr, np.full(len(self._ends), part_ptr[-1]))),
            self._old.part[parts],
        )

    def structure(self, edges: Sequence[int]) -> list[int]:
        """A derivation of the old graph as one of the new; InvalidInput if it is not accepted. Heads before tails."""
        mine = np.flatnonzero(np.isin(self._paths[:, 0], edges))
        number = {tuple(row): int(k) for k, row in zip(mine, self._paths[mine].tolist(), strict=True)}
        found, arity = [-1] * len(edges), (self._tails >= 0).sum(axis=1)
        open_edges: list[tuple[int, list[int]]] = []  # places in the list, and the states so far
        q = self._reader.initial
        for place in range(len(edges)):
            open_edges.append((place, [q]))
            while open_edges and len(open_edges[-1][1]) > arity[edges[open_edges[-1][0]]]:
                at, states = open_edges.pop()
                states += [q] * (1 + self._tails.shape[1] - len(states))
                q = int(self._after[edges[at], q]) if q >= 0 else -1
                found[at] = number.get((edges[at], *states, q), -1)
                if open_edges:
                    open_edges[-1][1].append(q)
        last = np.flatnonzero(self._ends == q)
        if -1 in found or not len(last):
            raise InvalidInput("the automaton does not accept the structure; its score is -inf.")
        return [len(self._paths) + int(last[0]), *found]
