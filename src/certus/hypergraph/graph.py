"""The hypergraph: any dynamic program as flat arrays in bottom-up order (LR 2.2.2)."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus import kernels
from certus.errors import InvalidInput
from certus.hypergraph.extents import longest

Int32 = NDArray[np.int32]

_LIMIT = int(np.iinfo(np.int32).max)


class Hypergraph:
    """A directed, ordered, acyclic hypergraph; its hyperpaths are the structures of a dynamic program.

    Vertices are numbered bottom-up: every tail vertex of an edge has a smaller number than its head. The edges entering
    vertex v are ``range(in_ptr[v], in_ptr[v + 1])``; the tail of edge e, in order, is
    ``tail[tail_ptr[e]:tail_ptr[e + 1]]``. A terminal (axiom) is a vertex entered by an edge with an empty tail; a
    vertex that no edge enters is dead: nothing derives it. Weights are not part of the graph: every question takes them
    as an array over edges. The graph is frozen and its arrays are read-only. Memory: 4 bytes per vertex, per edge and
    per tail entry, plus labels.

    Parameters
    ----------
    in_ptr : array_like of int, shape (V + 1,)
        Offsets into the edges.
    tail_ptr : array_like of int, shape (E + 1,)
        Offsets into ``tail``.
    tail : array_like of int
        Vertices, each below the head of its edge.
    root : int, optional
        The vertex whose derivations are asked for; the last one by default.
    vertex_labels, edge_labels : sequences of str, optional
        What to call vertices and edges.

    Raises
    ------
    InvalidInput : the arrays do not describe such a graph; the message names the edge.

    Examples
    --------
    >>> graph = Hypergraph(in_ptr=[0, 1, 2, 4], tail_ptr=[0, 0, 0, 2, 4], tail=[0, 1, 1, 0])
    >>> [edges for edges in graph.hyperpaths()]
    [[2, 0, 1], [3, 1, 0]]
    """

    __slots__ = ("_heads", "_longest", "edge_labels", "in_ptr", "root", "tail", "tail_ptr", "vertex_labels")

    in_ptr: Int32
    tail_ptr: Int32
    tail: Int32
    root: int
    vertex_labels: tuple[str, ...] | None
    edge_labels: tuple[str, ...] | None
    _heads: Int32 | None
    _longest: int | None

    def __init__(
        self,
        in_ptr: ArrayLike,
        tail_ptr: ArrayLike,
        tail: ArrayLike,
        root: int | None = None,
        vertex_labels: Sequence[str] | None = None,
        edge_labels: Sequence[str] | None = None,
    ) -> None:
        ins, tails, flat = _as_int32("in_ptr", in_ptr), _as_int32("tail_ptr", tail_ptr), _as_int32("tail", tail)
        if len(ins) < 2:
            raise InvalidInput(f"in_ptr has {len(ins)} entries; a hypergraph has at least one vertex, so two entries.")
        if len(tails) < 1:
            raise InvalidInput("tail_ptr is empty; it has one entry more than there are edges.")
        _check_offsets("in_ptr", ins, len(tails) - 1, "edges", "vertex")
        _check_offsets("tail_ptr", tails, len(flat), "entries of tail", "edge")
        n_vertices, n_edges = len(ins) - 1, len(tails) - 1
        heads = np.repeat(np.arange(n_vertices, dtype=np.int32), np.diff(ins))
        above = np.repeat(heads, np.diff(tails))
        wrong = (flat < 0) | (flat >= above)
        if wrong.any():
            k = int(np.argmax(wrong))
            e = int(np.searchsorted(tails, k, side="right")) - 1
            if not 0 <= flat[k] < n_vertices:
                raise InvalidInput(f"edge {e} has vertex {flat[k]} in its tail; vertices are 0..{n_vertices - 1}.")
            raise InvalidInput(
                f"edge {e} enters vertex {heads[e]} but has vertex {flat[k]} in its tail; tail vertices are numbered "
                "below their head. Hypergraph.from_edges sorts edges given in any order."
            )
        set_ = object.__setattr__
        set_(self, "in_ptr", ins)
        set_(self, "tail_ptr", tails)
        set_(self, "tail", flat)
        set_(self, "root", n_vertices - 1 if root is None else _as_vertex("root", root, n_vertices))
        set_(self, "vertex_labels", _as_labels("vertex_labels", vertex_labels, n_vertices))
        set_(self, "edge_labels", _as_labels("edge_labels", edge_labels, n_edges))
        set_(self, "_heads", None)
        set_(self, "_longest", None)

    @classmethod
    def from_edges(
        cls,
        head: ArrayLike,
        tail_ptr: ArrayLike,
        tail: ArrayLike,
        *,
        n_vertices: int | None = None,
        root: int | None = None,
        vertex_labels: Sequence[str] | None = None,
        edge_labels: Sequence[str] | None = None,
    ) -> "tuple[Hypergraph, Int32, Int32]":
        """Graph of edges given in any order, over vertices numbered in any order; linear time.

        Parameters
        ----------
        head : array_like of int, shape (E,)
            The vertex each edge enters.
        tail_ptr, tail : array_like of int
            As in the constructor.
        n_vertices : int, optional
            By default, one more than the largest vertex named.
        root : int, optional
            By default, the largest vertex.

        Returns
        -------
        graph, edge_map, vertex_map
            ``edge_map[e]`` is the given edge that became edge e, ``vertex_map[v]`` the given vertex that became v, so
            ``weights[edge_map]`` are the weights of the graph. Edges of one head keep their order; vertices that are
            already numbered bottom-up keep their numbers.

        Raises
        ------
        InvalidInput : a cycle, named by an edge on it, or an edge that names a vertex that does not exist.
        """
        heads, tails, flat = _as_int32("head", head), _as_int32("tail_ptr", tail_ptr), _as_int32("tail", tail)
        if len(tails) != len(heads) + 1:
            raise InvalidInput(f"tail_ptr has {len(tails)} entries for {len(heads)} edges; expected {len(heads) + 1}.")
        _check_offsets("tail_ptr", tails, len(flat), "entries of tail", "edge")
        if n_vertices is None:
            n_vertices = 1 + max(int(heads.max(initial=-1)), int(flat.max(initial=-1)), -1 if root is None else root)
        _check_vertices(heads, tails, flat, n_vertices)
        if root is None:
            root = n_vertices - 1
        vertex_map = _bottom_up(heads, tails, flat, n_vertices)
        number = np.empty(n_vertices, dtype=np.int32)
        number[vertex_map] = np.arange(n_vertices, dtype=np.int32)
        new_heads = number[heads]
        edge_map = np.argsort(new_heads, kind="stable").astype(np.int32)
        in_ptr = np.concatenate(([0], np.cumsum(np.bincount(new_heads, minlength=n_vertices))))
        new_ptr, positions = gathered(tails, edge_map)
        graph = cls(
            in_ptr,
            new_ptr,
            number[flat[positions]],
            int(number[_as_vertex("root", root, n_vertices)]),
            None if vertex_labels is None else [vertex_labels[v] for v in vertex_map.tolist()],
            None if edge_labels is None else [edge_labels[e] for e in edge_map.tolist()],
        )
        return graph, edge_map, vertex_map

    # -- shape -----------------------------------------------------------------------------------------------------

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return len(self.in_ptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.tail_ptr) - 1

    @property
    def heads(self) -> Int32:
        """The vertex each edge enters, shape (E,); made when first asked for."""
        if self._heads is None:
            heads = np.repeat(np.arange(self.n_vertices, dtype=np.int32), np.diff(self.in_ptr))
            heads.flags.writeable = False
            object.__setattr__(self, "_heads", heads)
            return heads
        return self._heads

    @property
    def longest(self) -> int:
        """Number of edges in the largest derivation of the root, at most 2^62; counted when first asked for."""
        if self._longest is None:
            object.__setattr__(self, "_longest", longest(self))
        return self._longest or 0

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays, labels not counted."""
        return self.in_ptr.nbytes + self.tail_ptr.nbytes + self.tail.nbytes

    def edges_into(self, v: int) -> range:
        """The edges entering vertex v."""
        return range(int(self.in_ptr[v]), int(self.in_ptr[v + 1]))

    def tail_of(self, e: int) -> Int32:
        """The tail vertices of edge e, in order."""
        return self.tail[self.tail_ptr[e] : self.tail_ptr[e + 1]]

    def edge_name(self, e: int) -> str:
        """An edge in words, for messages: its number, its label if it has one, head and tail."""
        label = f" ({self.edge_labels[e]})" if self.edge_labels is not None else ""
        tail = " ".join(map(self.vertex_name, self.tail_of(e).tolist()))
        return f"edge {e}{label}: {self.vertex_name(int(self.heads[e]))} <- {tail}".rstrip()

    def vertex_name(self, v: int) -> str:
        """A vertex in words, for messages."""
        return f"{v}" if self.vertex_labels is None else f"{v}:{self.vertex_labels[v]}"

    # -- derivations -----------------------------------------------------------------------------------------------

    def hyperpaths(self) -> Iterator[list[int]]:
        """Every derivation of the root, as its edges, head before tails; for small graphs.

        A derivation is a tree: an edge that it uses twice is listed twice. Plain Python, one list per derivation.
        """
        tails = [self.tail_of(e).tolist() for e in range(self.n_edges)]
        alive: list[bool] = []
        usable: list[list[int]] = []
        for v in range(self.n_vertices):
            usable.append([e for e in self.edges_into(v) if all(alive[u] for u in tails[e])])
            alive.append(bool(usable[v]))
        Pending = tuple[int, Any] | None
        agenda: list[tuple[list[int], Pending]] = [([], (self.root, None))]
        while agenda:
            edges, pending = agenda.pop()
            if pending is None:
                yield edges
                continue
            v, rest = pending
            for e in reversed(usable[v]):
                todo = rest
                for u in reversed(tails[e]):
                    todo = (u, todo)
                agenda.append(([*edges, e], todo))

    # -- properties ------------------------------------------------------------------------------------------------

    def check(
        self,
        *,
        connected: bool = True,
        disjoint_references: bool = False,
        references: Sequence[Iterable[Hashable]] | None = None,
    ) -> None:
        """Check the properties of LR 2.2.2 that the constructor does not; InvalidInput names the edge that breaks one.

        Parameters
        ----------
        connected : bool
            Property 2.2.2: every vertex that some edge enters, but the root, is in the tail of some edge.
        disjoint_references : bool
            Property 2.2.3: reference sets are complete at the root, grow from tail to head, and the tail vertices of an
            edge have disjoint ones, so that no derivation uses a vertex twice. Costs one set operation per tail entry.
        references : one collection per vertex, optional
            The reference sets (a span's positions, say). If none are given, the set of a vertex is the terminals that
            it reaches; these exist exactly when any do.
        """
        if connected:
            used = np.zeros(self.n_vertices, dtype=bool)
            used[self.tail] = True
            used[self.root] = True
            loose = ~used & (np.diff(self.in_ptr) > 0)
            if loose.any():
                v = int(np.argmax(loose))
                raise InvalidInput(
                    f"{self.edge_name(int(self.in_ptr[v]))}: vertex {self.vertex_name(v)} is in no tail and is not "
                    f"the root {self.root}, so the graph is not connected. Remove it, or make it the root."
                )
        if disjoint_references or references is not None:
            self._check_references(references)

    def _check_references(self, references: Sequence[Iterable[Hashable]] | None) -> None:
        sets = self._reachable_terminals() if references is None else self._given_references(references)
        for v in range(self.n_vertices):
            for e in self.edges_into(v):
                seen = 0
                for u in self.tail_of(e).tolist():
                    if sets[u] & ~sets[v]:
                        raise InvalidInput(
                            f"{self.edge_name(e)}: the reference set of tail vertex {self.vertex_name(u)} "
                            "is not inside that of the head."
                        )
                    if sets[u] & seen:
                        raise InvalidInput(
                            f"{self.edge_name(e)}: the reference set of tail vertex {self.vertex_name(u)} overlaps "
                            "that of a vertex before it in the tail, so a derivation may use some vertex twice."
                        )
                    seen |= sets[u]

    def _reachable_terminals(self) -> list[int]:
        """Reference sets as bit masks: the terminals (and dead vertices) below each vertex."""
        sets: list[int] = []
        bits = 0
        for v in range(self.n_vertices):
            mask = 0
            terminal = not self.edges_into(v)
            for e in self.edges_into(v):
                tail = self.tail_of(e).tolist()
                terminal = terminal or not tail
                for u in tail:
                    mask |= sets[u]
            if terminal:
                mask |= 1 << bits
                bits += 1
            sets.append(mask)
        return sets

    def _given_references(self, references: Sequence[Iterable[Hashable]]) -> list[int]:
        if len(references) != self.n_vertices:
            raise InvalidInput(
                f"references has {len(references)} sets; expected one for each of {self.n_vertices} vertices."
            )
        bit: dict[Hashable, int] = {}
        sets = [sum(1 << bit.setdefault(item, len(bit)) for item in set(items)) for items in references]
        for v, mask in enumerate(sets):
            if not mask:
                raise InvalidInput(f"the reference set of vertex {self.vertex_name(v)} is empty.")
            if mask & ~sets[self.root]:
                raise InvalidInput(
                    f"the reference set of vertex {self.vertex_name(v)} is not inside that of the root, which must "
                    "be complete."
                )
        return sets

    # -- the same in words ------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Hypergraph is frozen: {name} cannot be set.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Hypergraph is frozen: {name} cannot be deleted.")

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.in_ptr, self.tail_ptr, self.tail, self.root, self.vertex_labels, self.edge_labels)
        return Hypergraph, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hypergraph) and (
            np.array_equal(self.in_ptr, other.in_ptr)
            and np.array_equal(self.tail_ptr, other.tail_ptr)
            and np.array_equal(self.tail, other.tail)
            and self.root == other.root
            and self.vertex_labels == other.vertex_labels
            and self.edge_labels == other.edge_labels
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Hypergraph(vertices={self.n_vertices}, edges={self.n_edges}, root={self.root})"


def gathered(ptr: Int32, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of the chosen rows of a ragged array laid end to end, and the positions of their entries in it."""
    sizes = np.diff(ptr).astype(np.int64)[rows]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    starts = ptr[:-1].astype(np.int64)[rows]
    return offsets, np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])


def _check_vertices(heads: Int32, tails: Int32, flat: Int32, n_vertices: int) -> None:
    """That there are vertices, and edges name no others."""
    if n_vertices < 1:
        raise InvalidInput("the hypergraph has no vertices; it needs at least a root.")
    for name, vertices in (("head", heads), ("tail", flat)):
        bad = (vertices < 0) | (vertices >= n_vertices)
        if bad.any():
            k = int(np.argmax(bad))
            e = k if name == "head" else int(np.searchsorted(tails, k, side="right")) - 1
            raise InvalidInput(f"edge {e} has {name} vertex {vertices[k]}; vertices are 0..{n_vertices - 1}.")


def _bottom_up(heads: Int32, tail_ptr: Int32, tail: Int32, n_vertices: int) -> Int32:
    """Vertices, tails before heads, as they are if they stand so; InvalidInput for a cycle."""
    if (tail < np.repeat(heads, np.diff(tail_ptr))).all():
        return np.arange(n_vertices, dtype=np.int32)
    by_head = np.argsort(heads, kind="stable").astype(np.int32)
    in_ptr = np.concatenate(([0], np.cumsum(np.bincount(heads, minlength=n_vertices)))).astype(np.int32)
    order = np.empty(n_vertices, dtype=np.int32)
    e = int(kernels.hypergraph.postorder(in_ptr, by_head, tail_ptr, tail, order))
    if e >= 0:
        raise InvalidInput(
            f"edge {e} (into vertex {heads[e]} from {tail[tail_ptr[e] : tail_ptr[e + 1]].tolist()}) lies on a cycle; "
            "a hypergraph is acyclic."
        )
    return order


def _as_int32(name: str, values: ArrayLike) -> Int32:
    """A read-only int32 copy of a one-dimensional array of whole numbers."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} is not an array of whole numbers: {error}") from None
    if array.ndim != 1:
        raise InvalidInput(f"{name} has {array.ndim} dimensions; expected one.")
    if array.size and array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} has type {array.dtype}; expected whole numbers.")
    if array.size and (array.max() > _LIMIT or array.min() < -_LIMIT):
        raise InvalidInput(
            f"{name} holds numbers beyond 32 bits; a hypergraph has at most {_LIMIT} edges and tail entries."
        )
    out = np.array(array, dtype=np.int32)
    out.flags.writeable = False
    return out


def _check_offsets(name: str, ptr: Int32, total: int, of_what: str, per: str) -> None:
    if ptr[0] != 0 or ptr[-1] != total:
        raise InvalidInput(f"{name} runs from {ptr[0]} to {ptr[-1]}; expected 0 to {total}, the number of {of_what}.")
    falling = ptr[1:] < ptr[:-1]
    if falling.any():
        k = int(np.argmax(falling))
        raise InvalidInput(f"{name} falls from {ptr[k]} to {ptr[k + 1]} at {per} {k}; offsets never fall.")


def _as_vertex(name: str, v: object, n_vertices: int) -> int:
    if isinstance(v, bool) or not isinstance(v, int | np.integer) or not 0 <= v < n_vertices:
        raise InvalidInput(f"{name} is {v!r}; vertices are 0..{n_vertices - 1}.")
    return int(v)


def _as_labels(name: str, labels: Sequence[str] | None, size: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    out = tuple(labels)
    if len(out) != size:
        raise InvalidInput(f"{name} has {len(out)} entries; expected {size}.")
    for i, label in enumerate(out):
        if not isinstance(label, str):
            raise InvalidInput(f"{name}[{i}] is {label!r}; labels are strings.")
    return out
