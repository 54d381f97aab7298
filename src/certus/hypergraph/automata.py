"""Deterministic weighted automata, and their intersection with a hypergraph (LR 2.2.5)."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus import kernels
from certus.checks import Floats, Ints, as_members, as_numbers, as_scores, of_kind, shown
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph.graph import Hypergraph, Int32
from certus.hypergraph.sweeps import as_weights, subgraph
from certus.threads import long_call

_MOST = 2**31 - 2


class Automaton:
    """A deterministic finite-state automaton with weights: from each state, at most one arc per symbol.

    Parameters
    ----------
    transitions : array_like of int, shape (Q, S)
        ``transitions[q, s]`` is the state that symbol s leads to from q; -1 if there is no such arc.
    weights : array_like of shape (Q, S), optional
        Weight of each arc; -inf forbids it. Zero by default. Cells without an arc are not read.
    initial : int
        The state before the first symbol.
    finals : sequence of int, optional
        The states in which a sequence may end; all by default.
    final_weights : array_like of shape (Q,), optional
        Weight of ending in each state; -inf forbids it.
    symbols : sequence of hashable, optional
        Names of the symbols; without them, symbols are the numbers 0..S - 1.

    Examples
    --------
    >>> even = Automaton([[1], [0]], finals=[0], symbols=["a"])
    >>> even.accepts(["a", "a"]), even.accepts(["a"])
    (True, False)
    """

    def __init__(
        self,
        transitions: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        initial: int = 0,
        finals: Sequence[int] | None = None,
        final_weights: ArrayLike | None = None,
        symbols: Sequence[Hashable] | None = None,
    ) -> None:
        table = as_numbers("transitions", transitions)
        if table.ndim != 2 or table.dtype.kind not in "iu":
            raise InvalidInput("transitions is an array (states, symbols) of whole numbers.")
        n_states, n_symbols = table.shape
        bad = np.argwhere((table < -1) | (table >= n_states))
        if len(bad):
            q, s = bad[0].tolist()
            raise InvalidInput(f"transitions[{q}, {s}] is {table[q, s]}; states are 0..{n_states - 1}, -1 is no arc.")
        if not isinstance(initial, int | np.integer) or not 0 <= initial < n_states:
            raise InvalidInput(f"initial is {initial}; states are 0..{n_states - 1}.")
        self.transitions: Int32 = np.ascontiguousarray(table, dtype=np.int32)
        given = np.zeros(table.shape) if weights is None else as_numbers("weights", weights, np.float64)
        if given.shape != table.shape:
            raise InvalidInput(f"weights has shape {given.shape}; expected {table.shape}, as transitions has.")
        self.weights = as_scores("weights", np.where(table < 0, -np.inf, given))
        self.initial = int(initial)
        ends = np.zeros(n_states) if final_weights is None else as_scores("final_weights", final_weights, (n_states,))
        if finals is not None:
            allowed = np.zeros(n_states, dtype=bool)
            for q in as_members("finals", finals, "a list of states"):
                if not isinstance(q, int | np.integer) or not 0 <= q < n_states:
                    raise InvalidInput(f"final state {q} does not exist; states are 0..{n_states - 1}.")
                allowed[q] = True
            ends = np.where(allowed, ends, -np.inf)
        self.final_weights: Floats = ends
        self.symbols = None if symbols is None else _symbols(symbols, n_symbols)
        self._number = {name: s for s, name in enumerate(self.symbols or ())}

    @classmethod
    def from_arcs(
        cls,
        arcs: Mapping[tuple[Hashable, Hashable], tuple[Hashable, float]],
        *,
        initial: Hashable,
        finals: Iterable[Hashable],
    ) -> "Automaton":
        """Automaton of a mapping (state, symbol) -> (next state, weight) over any names.

        States are numbered in the order of first mention, from the initial one on; so are symbols, which keep their
        names.
        """
        ends = list(finals)
        states: dict[Hashable, int] = {initial: 0}
        symbols: dict[Hashable, int] = {}
        for (state, symbol), (following, _) in arcs.items():
            symbols.setdefault(symbol, len(symbols))
            for q in (state, following):
                states.setdefault(q, len(states))
        for q in ends:
            states.setdefault(q, len(states))
        table = np.full((len(states), len(symbols)), -1)
        weights = np.full(table.shape, -np.inf)
        for (state, symbol), (following, weight) in arcs.items():
            table[states[state], symbols[symbol]] = states[following]
            weights[states[state], symbols[symbol]] = weight
        return cls(table, weights, initial=0, finals=[states[q] for q in ends], symbols=list(symbols))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.transitions.shape[0])

    @property
    def n_symbols(self) -> int:
        """Number of symbols."""
        return int(self.transitions.shape[1])

    def score(self, symbols: Iterable[Hashable]) -> float:
        """Weight of a sequence: of its arcs and of ending where it ends; -inf if it is not accepted.

        None and, where symbols are numbers, -1 are the empty symbol.
        """
        q, total = self.initial, 0.0
        for s in self.numbers(symbols).tolist():
            if s < 0:
                continue
            total += float(self.weights[q, s])
            q = int(self.transitions[q, s])
            if q < 0:
                return -np.inf
        return total + float(self.final_weights[q])

    def accepts(self, symbols: Iterable[Hashable]) -> bool:
        """Whether a sequence leads to a final state, along arcs that are not forbidden."""
        return self.score(symbols) > -np.inf

    def numbers(self, symbols: Iterable[Hashable]) -> NDArray[np.int32]:
        """Symbols as numbers, the empty symbol as -1; InvalidInput for one that is not in the alphabet."""
        if self.symbols is None:
            out = symbols if isinstance(symbols, np.ndarray) else np.array([-1 if s is None else s for s in symbols])
            if out.ndim != 1 or (out.size and out.dtype.kind not in "iu"):
                raise InvalidInput("symbols are whole numbers, as the automaton has no names for them.")
            wrong = (out < -1) | (out >= self.n_symbols)
            if wrong.any():
                place = int(np.argmax(wrong))
                raise InvalidInput(f"symbol {place} is {out[place]}; symbols are 0..{self.n_symbols - 1}, -1 is empty.")
            return out.astype(np.int32)
        found = []
        for place, s in enumerate(symbols):
            if s is not None and s not in self._number:
                raise InvalidInput(f"symbol {place} is {s!r}, which is not in the automaton's alphabet.")
            found.append(-1 if s is None else self._number[s])
        return np.array(found, dtype=np.int32)

    def __repr__(self) -> str:
        return f"Automaton(states={self.n_states}, symbols={self.n_symbols}, initial={self.initial})"


def trigram_automaton(
    trigram: ArrayLike,
    *,
    stop: ArrayLike | None = None,
    shortest: int = 2,
    symbols: Sequence[Hashable] | None = None,
) -> Automaton:
    """The automaton of a trigram tagger over T tags: states are the last two tags (LR ex. 2.2.4).

    Parameters
    ----------
    trigram : array_like of shape (T + 1, T + 1, T)
        ``trigram[a, b, c]`` for tag c after a and b, where T stands for the boundary before the first tag.
    stop : array_like of shape (T + 1, T + 1), optional
        Weight of ending after tags a and b.
    shortest : 0, 1 or 2
        The fewest tags a sequence may have.

    Returns
    -------
    Automaton
        With 1 + T + T^2 states: 0 before any tag, 1 + b after one tag, 1 + T + T a + b after tags a, b.
    """
    scores = as_scores("trigram", trigram, (None, None, None))
    size = scores.shape[2]
    if scores.shape != (size + 1, size + 1, size):
        raise InvalidInput(f"trigram has shape {scores.shape}; expected (T + 1, T + 1, T).")
    if shortest not in (0, 1, 2):
        raise InvalidInput(f"shortest is {shortest!r}; expected 0, 1 or 2.")
    tag = np.arange(size)
    first = np.concatenate(([size], np.full(size, size), np.repeat(tag, size)))  # the two tags of each state
    second = np.concatenate(([size], tag, np.tile(tag, size)))
    transitions = np.where(second[:, None] == size, 1 + tag, 1 + size + size * second[:, None] + tag)
    ends = np.zeros(len(first)) if stop is None else as_scores("stop", stop, (size + 1, size + 1))[first, second]
    seen = (second < size).astype(int) + (first < size)
    return Automaton(
        transitions,
        scores[first, second],
        final_weights=np.where(seen >= shortest, ends, -np.inf),
        symbols=symbols,
    )


def intersect(
    graph: Hypergraph,
    weights: ArrayLike,
    automaton: Automaton,
    symbols_of_edge: Iterable[Hashable],
    *,
    max_edges: int = _MOST,
) -> tuple[Hypergraph, Floats, Int32]:
    """The hypergraph of the derivations whose symbol sequence an automaton accepts, scored by both (LR theorem 2.2.1).

    The symbols of a derivation are those of its axiom edges, from left to right. Each derivation of ``graph`` that uses
    no -inf edge and is accepted by a path without -inf becomes exactly one of the result, whose score is the sum of
    both weights. Items (v, q, q2) are made only if q is reached from the initial state by what may stand to the left,
    and kept only if the new root uses them. At worst O(E Q^(m + 1)) for tails of m vertices.

    Parameters
    ----------
    symbols_of_edge : one symbol for each edge
        Read for edges with an empty tail; None (or -1, where symbols are numbers) is the empty symbol.
    max_edges : int
        Give up beyond so many edges.

    Returns
    -------
    graph, weights, edge_map
        ``edge_map[e]`` is the edge of the old graph that edge e came from, or -1 for the edges into the new root. If no
        derivation is accepted the graph is a root that no edge enters.

    Raises
    ------
    NotSupported : the result has more than ``max_edges`` edges, or 2^31 tail entries.
    """
    of_kind("graph", graph, Hypergraph, "a certus.Hypergraph; HypergraphBuilder makes one edge by edge")
    of_kind("automaton", automaton, Automaton, "a certus.Automaton")
    weight = as_weights(graph, weights)
    symbol = automaton.numbers(symbols_of_edge)
    if len(symbol) != graph.n_edges:
        raise InvalidInput(
            f"symbols_of_edge has {len(symbol)} entries; expected one for each of {graph.n_edges} edges."
        )
    kernel: Any = kernels.intersection
    steps = float(graph.n_edges * len(automaton.final_weights))
    arrays = kernel.Graph(graph.in_ptr, graph.tail_ptr, graph.tail, weight, symbol, graph.root)
    arcs = kernel.Automaton(automaton.transitions, automaton.weights, automaton.initial)
    items, edges, first, last = long_call(steps, kernel.intersect, arrays, arcs, max_edges)
    if first < 0:
        raise NotSupported(
            f"the intersection has more than {max_edges} edges. Prune the graph, or decode both jointly by relaxation."
        )
    return _closed(graph, automaton, items, edges, np.arange(first, last))


def _closed(
    graph: Hypergraph, automaton: Automaton, items: Any, edges: Any, ends: Ints
) -> tuple[Hypergraph, Floats, Int32]:
    """The graph of items under a root that those of ``ends`` lead to where they end in a final state."""
    ends = ends[automaton.final_weights[items.end[ends]] > -np.inf]
    root = len(items.vertex)
    whole, order, _ = Hypergraph.from_edges(
        np.concatenate((edges.head, np.full(len(ends), root))),
        np.concatenate((edges.tail_ptr, edges.tail_ptr[-1] + 1 + np.arange(len(ends)))),
        np.concatenate((edges.tail, ends)),
        n_vertices=root + 1,
    )
    trimmed, kept, used = subgraph(whole, np.ones(whole.n_edges, dtype=bool))
    origin = np.concatenate((edges.origin, np.full(len(ends), -1)))[order][kept].astype(np.int32)
    new_weights = np.concatenate((edges.weight, automaton.final_weights[items.end[ends]]))[order][kept]
    if graph.vertex_labels is not None or graph.edge_labels is not None:
        labels = _item_labels(graph, items.vertex, items.start, items.end, used[:-1])
        trimmed = _labelled(trimmed, labels, graph.edge_labels, origin)
    return trimmed, new_weights, origin


def _labelled(
    graph: Hypergraph, labels: Sequence[str] | None, edge_labels: Sequence[str] | None, origin: Int32
) -> Hypergraph:
    """The graph with labels; edges have those of the edges that they came from."""
    of_edges = None if edge_labels is None else ["" if e < 0 else edge_labels[e] for e in origin.tolist()]
    return Hypergraph(graph.in_ptr, graph.tail_ptr, graph.tail, graph.root, labels, of_edges)


def with_leaves(graph: Hypergraph, weights: Floats, symbol: Ints) -> tuple[Hypergraph, Floats, Int32, int]:
    """The same derivations with every symbol on an axiom edge: one that has tails becomes a leaf after the last tail.

    ``symbol`` has one number for each edge, -1 for none. Returns the graph, its weights and symbols, and how many edges
    of leaves come before those of the old graph.
    """
    moved = (symbol >= 0) & (np.diff(graph.tail_ptr) > 0)
    own, leaf = np.unique(symbol[moved], return_inverse=True)
    k = len(own)
    new = Hypergraph(
        np.concatenate((np.arange(k), k + graph.in_ptr)),
        np.concatenate((np.zeros(k, dtype=np.int64), graph.tail_ptr + np.concatenate(([0], np.cumsum(moved))))),
        np.insert(graph.tail + k, graph.tail_ptr[1:][moved], leaf),
        graph.root + k,
    )
    symbols = np.concatenate((own, np.where(moved, -1, symbol))).astype(np.int32)
    return new, np.concatenate((np.zeros(k), weights)), symbols, k


def _item_labels(graph: Hypergraph, vertex: Int32, start: Int32, end: Int32, items: Int32) -> list[str] | None:
    """Labels "label[q,q2]" of the items kept, and of the new root."""
    if graph.vertex_labels is None:
        return None
    return [*(f"{graph.vertex_labels[vertex[i]]}[{start[i]},{end[i]}]" for i in items.tolist()), "root"]


def _symbols(symbols: Iterable[Hashable], count: int) -> tuple[Hashable, ...]:
    """So many different names."""
    how = f"{count} different names"
    if not isinstance(symbols, Iterable) or not all(isinstance(name, Hashable) for name in symbols):
        raise InvalidInput(f"symbols is {shown(symbols)}; expected {how}.")
    names = tuple(symbols)
    if len(names) != count or len(set(names)) != count:
        raise InvalidInput(f"symbols has {len(names)} names; expected {how}.")
    return names
