"""The derivations of a graph in normal form whose symbols an automaton accepts, as a graph again: in plain Python."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from certus.certificates.normal import Graph
from certus.checks import Bools, Ints
from certus.errors import InvalidInput

Path = tuple[int, ...]  # the states before the first tail of an edge, after each tail, and after the edge's own symbols
Item = tuple[int, int, int]  # a vertex, and the states before and after what it derives


class Reader(NamedTuple):
    """A deterministic automaton, and what it reads: the symbol of each part, -1 for none.

    A derivation is read from left to right, the symbols of an edge's own parts after those of its tails.
    """

    transitions: Ints  # (Q, S), -1 for no arc
    initial: int
    finals: Bools  # (Q,)
    symbol: Ints  # (P,)

    def after(self, state: int, parts: Iterable[int]) -> int:
        """The state after an edge's own parts; -1 if there is none."""
        for part in parts:
            if state >= 0 and self.symbol[part] >= 0:
                state = int(self.transitions[state, self.symbol[part]])
        return state


class Intersected:
    """``graph``: one derivation for each accepted derivation of another graph, with the same parts."""

    def __init__(self, old: Graph, reader: Reader) -> None:
        self._old, self._reader = old, reader
        lists = ((old.tail, old.tail_ptr), (old.part, old.part_ptr))
        self._tails, self._parts = ([s.tolist() for s in np.split(a, ptr[1:-1])] for a, ptr in lists)
        self._ways: dict[tuple[int, int], dict[int, list[tuple[int, Path]]]] = {}  # (vertex, before) -> after -> edges
        self._read()
        self.graph = self._built()

    def _read(self) -> None:
        """All ways to derive the root from the initial state on, each vertex only from states that occur."""
        stack = [(len(self._old.in_ptr) - 2, self._reader.initial)]
        while stack:
            v, q = stack[-1]
            found, missing = dict[int, list[tuple[int, Path]]](), set[tuple[int, int]]()
            if (v, q) not in self._ways:
                for e in range(int(self._old.in_ptr[v]), int(self._old.in_ptr[v + 1])):
                    for path in self._paths(e, q, missing):
                        found.setdefault(path[-1], []).append((e, path))
            if missing:
                stack.extend(missing)
            else:
                self._ways.setdefault((v, q), found)
                stack.pop()

    def _paths(self, e: int, q: int, missing: set[tuple[int, int]]) -> list[Path]:
        paths: list[Path] = [(q,)]
        for u in self._tails[e]:
            missing |= {(u, path[-1]) for path in paths if (u, path[-1]) not in self._ways}
            paths = [(*path, end) for path in paths for end in self._ways.get((u, path[-1]), ())]
        ended = [(*path, self._reader.after(path[-1], self._parts[e])) for path in paths]
        return [path for path in ended if path[-1] >= 0]

    def _built(self) -> Graph:
        root, q0 = len(self._old.in_ptr) - 2, self._reader.initial
        ends = [q for q in self._ways[root, q0] if self._reader.finals[q]]
        used: set[Item] = {(root, q0, q) for q in ends}
        pending = sorted(used)
        while pending:
            v, q, end = pending.pop()
            for e, path in self._ways[v, q][end]:
                new = set(zip(self._tails[e], path, path[1:], strict=False)) - used
                used |= new
                pending += new
        number = {item: k for k, item in enumerate(sorted(used))}  # tails come before heads, as vertices do
        self._edge: dict[tuple[int, Path], int] = {}
        degree, tails, parts = list[int](), list[list[int]](), list[list[int]]()
        for v, q, end in number:
            degree.append(len(self._ways[v, q][end]))
            for e, path in self._ways[v, q][end]:
                self._edge[e, path] = len(tails)
                tails.append([number[item] for item in zip(self._tails[e], path, path[1:], strict=False)])
                parts.append(self._parts[e])
        self._last = {q: len(tails) + k for k, q in enumerate(ends)}  # edges into the new root
        tails += [[number[root, q0, q]] for q in ends]
        parts += [[] for _ in ends]
        in_ptr = np.cumsum([0, *degree, len(ends)])
        return Graph(in_ptr, *_ragged(tails), *_ragged(parts))

    def structure(self, edges: Sequence[int]) -> list[int]:
        """A derivation of the old graph as one of the new; InvalidInput if it is not accepted. Heads before tails."""
        found: list[int] = [-1] * len(edges)
        open_edges: list[tuple[int, list[int]]] = []  # places in the list, and the states so far
        q = self._reader.initial
        for place, e in enumerate(edges):
            open_edges.append((place, [q]))
            while open_edges and len(open_edges[-1][1]) > len(self._tails[edges[open_edges[-1][0]]]):
                at, states = open_edges.pop()
                e = edges[at]
                q = self._reader.after(q, self._parts[e])
                found[at] = self._edge.get((e, (*states, q)), -1)
                if open_edges:
                    open_edges[-1][1].append(q)
        edges = [self._last.get(q, -1), *found]
        if -1 in edges:
            raise InvalidInput("the automaton does not accept the structure; its score is -inf.")
        return edges


def _ragged(rows: list[list[int]]) -> tuple[Ints, Ints]:
    ptr = np.cumsum([0, *map(len, rows)])
    return ptr, np.array([x for row in rows for x in row], dtype=np.int64)
