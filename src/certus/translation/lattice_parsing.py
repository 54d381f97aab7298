"""Source-side parsing of a word lattice with a synchronous grammar: the recurrence of ``kernels/scfg.py`` over arcs.

A span lies between two nodes, and is as long as these are apart; a word is an arc, whose score goes to the match that
takes it. Plain Python, in time of the items; lattices of a few dozen nodes take about a second.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats
from certus.io.lattices import Arc, WordLattice

if TYPE_CHECKING:
    from certus.translation.grammar import SynchronousGrammar

Int32 = NDArray[np.int32]
Item = tuple[int, tuple[int, ...], float]  # node of the trie, vertices taken, scores of the arcs taken


class Matches(NamedTuple):
    """What ``kernels.scfg.parse_source`` returns, with the arcs' scores, and for copies the arc instead of a start."""

    rows: Int32  # (M, 3): node of the trie, or -1 for a copy; i; j
    tail_ptr: Int32
    tail: Int32
    vertices: Int32
    vertex_at: Int32
    score: Floats  # (M,)
    arc: Int32  # (M,) the arc that is copied, else -1


class LatticeParser:
    """Every way to apply a source side between two nodes of a lattice without epsilons."""

    def __init__(self, grammar: "SynchronousGrammar", lattice: WordLattice, copied: NDArray[np.bool_]) -> None:
        self.trie, self.n, self.lattice = grammar.trie, lattice.n_nodes - 1, lattice
        self.order, self.copy_label = grammar.unary_order.tolist(), grammar.copy_label
        self.n_labels, self.copied = len(self.order), copied
        self.max_span = self.n if grammar.max_span is None else grammar.max_span
        self.word = grammar.source_ids([arc.word for arc in lattice.arcs]).tolist()
        self.between: dict[tuple[int, int], list[tuple[int, Arc]]] = {}
        for k, arc in enumerate(lattice.arcs):
            self.between.setdefault((arc.start, arc.end), []).append((k, arc))
        self.children: dict[int, dict[int, int]] = {}
        self.rows: list[tuple[int, int, int]] = []
        self.tails: list[tuple[int, ...]] = []
        self.score: list[float] = []
        self.arc: list[int] = []
        self.vertices: list[tuple[int, int, int]] = []
        self.spans: dict[tuple[int, int], dict[int, int]] = {}  # span -> label -> vertex
        self.items: dict[tuple[int, int], list[Item]] = {}

    def matches(self) -> Matches:
        for i in range(self.n):
            self.items[i, i] = [(root, (), 0.0) for root in range(2 if i == 0 else 1)]
        for length in range(1, self.n + 1):
            for i in range(self.n - length + 1 if length <= self.max_span else 1):
                self._span(i, i + length)
        width = self.n + 1
        vertex_at = np.full(width * width * self.n_labels, -1, dtype=np.int32)
        for v, (label, i, j) in enumerate(self.vertices):
            vertex_at[(i * width + j) * self.n_labels + label] = v
        sizes = np.array([len(t) for t in self.tails], dtype=np.int64)
        return Matches(
            np.array(self.rows, dtype=np.int32).reshape(-1, 3),
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int32),
            np.array([v for t in self.tails for v in t], dtype=np.int32),
            np.array(self.vertices, dtype=np.int32).reshape(-1, 3),
            vertex_at,
            np.array(self.score, dtype=np.float64),
            np.array(self.arc, dtype=np.int32),
        )

    def _span(self, i: int, j: int) -> None:
        """Items, matches and vertices of one span."""
        present, made = set[int](), list[Item]()
        self.items[i, j] = made
        vertices = self.spans[i, j] = {}
        for k in range(j - 1, i - 1, -1):
            before = self.items.get((i, k), [])
            for arc, a in self.between.get((k, j), ()):
                if k == i and self.copied[arc]:
                    present.add(self.copy_label)
                    self._match(-1, i, j, (), a.score, arc)
                if self.word[arc] >= 0:
                    self._go_on(before, self.n_labels + self.word[arc], (), a.score, (i, j), present)
            if k > i:
                for label, v in self.spans.get((k, j), {}).items():
                    self._go_on(before, label, (v,), 0.0, (i, j), present)
        for label in self.order:
            if label in present:
                v = vertices[label] = len(self.vertices)
                self.vertices.append((label, i, j))
                self._go_on(self.items.get((i, i), []), label, (v,), 0.0, (i, j), present)

    def _go_on(
        self,
        items: list[Item],
        symbol: int,
        taken: tuple[int, ...],
        score: float,
        span: tuple[int, int],
        present: set[int],
    ) -> None:
        trie, (i, j) = self.trie, span
        for node, tail, total in items:
            q = self._child(node, symbol)
            if q < 0 or (j - i > self.max_span and not trie.node_glue[q]):
                continue
            if trie.child_ptr[q + 1] > trie.child_ptr[q]:
                self.items[span].append((q, tail + taken, total + score))
            left = trie.node_left[trie.node_left_ptr[q] : trie.node_left_ptr[q + 1]].tolist()
            if left:
                present.update(left)
                self._match(q, i, j, tail + taken, total + score, -1)

    def _match(self, node: int, i: int, j: int, tail: tuple[int, ...], score: float, arc: int) -> None:
        self.rows.append((node, i, j))
        self.tails.append(tail)
        self.score.append(score)
        self.arc.append(arc)

    def _child(self, node: int, symbol: int) -> int:
        found = self.children.get(node)
        if found is None:
            own = slice(int(self.trie.child_ptr[node]), int(self.trie.child_ptr[node + 1]))
            pairs = zip(self.trie.child_symbol[own].tolist(), self.trie.child[own].tolist(), strict=True)
            found = self.children[node] = dict(pairs)
        return found.get(symbol, -1)
