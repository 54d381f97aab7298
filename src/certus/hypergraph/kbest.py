"""The k best derivations, made one by one as they are asked for.

Lazy k-best extraction: [HuangChiang05], Algorithm 3. Differs: a rank vector is only raised at its last non-zero place
or after it, so each is reached in one way and no set of those seen is needed; the recursion is a stack of our own, so
that deep graphs do not overflow Python's.
"""

from heapq import heapify, heappop, heappush

import numpy as np

from certus.checks import Floats
from certus.hypergraph.graph import Hypergraph, Int32

Ranks = tuple[int, ...]
Derivation = tuple[float, int, Ranks]  # value, edge, and which derivation of each tail vertex


class LazyKBest:
    """Derivations of every vertex in falling order of value; ``chart`` and ``back`` are what viterbi left."""

    def __init__(self, graph: Hypergraph, weights: Floats, chart: Floats, back: Int32) -> None:
        self._weight = weights
        self._chart = chart
        self._back = back
        self._graph = graph
        self._found: dict[int, list[Derivation]] = {}
        self._candidates: dict[int, list[tuple[float, int, Ranks]]] = {}  # heaps of (-value, edge, ranks)
        self._expanded: dict[int, int] = {}  # how many of the derivations found have passed on their successors

    def has(self, v: int, rank: int) -> bool:
        """Whether vertex v has more than ``rank`` derivations; finds them."""
        agenda = [(v, rank)]
        while agenda:
            u, wanted = agenda[-1]
            if u not in self._found:
                self._start(u)
            found, candidates = self._found[u], self._candidates[u]
            if len(found) > wanted:
                agenda.pop()
                continue
            if self._expanded[u] < len(found):
                missing = self._expand(u, found[-1])
                if missing:
                    agenda.extend(missing)
                    continue
                self._expanded[u] = len(found)
            if not candidates:
                agenda.pop()
                continue
            value, e, ranks = heappop(candidates)
            found.append((-value, e, ranks))
        return len(self._found[v]) > rank

    def edges(self, rank: int) -> list[int]:
        """Edges of the root's derivation of that rank (which ``has`` has found), head before tails."""
        out: list[int] = []
        stack = [(self._graph.root, rank)]
        while stack:
            v, r = stack.pop()
            if r == 0:
                e, ranks = int(self._back[v]), None
            else:
                _, e, ranks = self._found[v][r]
            out.append(e)
            tail = self._tail(e)
            stack.extend(zip(reversed(tail), reversed(ranks) if ranks else [0] * len(tail), strict=True))
        return out

    def value(self, rank: int) -> float:
        """Score of the root's derivation of that rank."""
        return self._value(self._graph.root, rank)

    def _value(self, v: int, rank: int) -> float:
        return float(self._chart[v]) if rank == 0 else self._found[v][rank][0]

    def _tail(self, e: int) -> list[int]:
        return list(map(int, self._graph.tail_of(e)))

    def _start(self, v: int) -> None:
        """Candidates of v: each edge with the best of its tail."""
        candidates = []
        for e in self._graph.edges_into(v):
            tail = self._graph.tail_of(e)
            value = self._combined(e, tail.tolist(), (0,) * len(tail))
            if value > -np.inf:
                candidates.append((-value, e, (0,) * len(tail)))
        heapify(candidates)
        self._found[v], self._candidates[v], self._expanded[v] = [], candidates, 0

    def _expand(self, v: int, derivation: Derivation) -> list[tuple[int, int]]:
        """Add the successors of a derivation to the candidates of v, or return what must be found before."""
        _, e, ranks = derivation
        tail = self._tail(e)
        first = max((i for i, r in enumerate(ranks) if r), default=0)
        missing = [(tail[i], ranks[i] + 1) for i in range(first, len(tail)) if not self._settled(tail[i], ranks[i] + 1)]
        if missing:
            return missing
        for i in range(first, len(tail)):
            if len(self._found[tail[i]]) > ranks[i] + 1:
                raised = (*ranks[:i], ranks[i] + 1, *ranks[i + 1 :])
                heappush(self._candidates[v], (-self._combined(e, tail, raised), e, raised))
        return []

    def _settled(self, v: int, rank: int) -> bool:
        """Whether it is known if v has a derivation of that rank."""
        if v not in self._found:
            return False
        found = self._found[v]
        return len(found) > rank or (not self._candidates[v] and self._expanded[v] == len(found))

    def _combined(self, e: int, tail: list[int], ranks: Ranks) -> float:
        value = float(self._weight[e])
        for u, r in zip(tail, ranks, strict=True):
            value += self._value(u, r)
        return value
