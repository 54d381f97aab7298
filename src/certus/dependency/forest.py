"""Projective trees as hyperpaths: the hypergraph of a problem, the weights of its edges, and trees read off edges."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Floats, Ints
from certus.dependency.part_kinds import EMPTY, END, HIGHER_KINDS, LEFT, MODIFIER, OUTERMOST, RIGHT, PartKind
from certus.dependency.parts import check_memory
from certus.hypergraph import Forest, Hypergraph
from certus.threads import long_call

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

BYTES_PER_EDGE = 64  # graph, coordinates, weights, cells and one array of a sweep
COLUMNS = "?ghtsmf"  # of the coordinates


class DependencyForest:
    """The forest of a projective problem, with the coordinates of each edge.

    Memory and time grow with the number of edges: about 0.8 n^3 for arcs and siblings over all n^2 arcs, n^4 with
    grandparents or trisiblings, and with the surviving parts once arcs are pruned (-inf).
    """

    def __init__(self, problem: "Dependency") -> None:
        self.problem = problem
        model, n = problem.model, problem.n
        allowed = problem.arc > -np.inf
        power = 3 + max(model.ancestors, model.ancestors * model.head_at_modifiers + model.pairs)
        factors = (problem.single, model.ancestors, model.head_at_modifiers, model.outermost, model.pairs)
        if power > 3 and allowed.sum() >= n * n / 2:
            check_memory(f"the forest of this model for {n} words", (n + 1,) * power, copies=BYTES_PER_EDGE // 16)
        if power == 3 and allowed.sum() == n * n:
            graph, cell, self.coord = _all_trees(n, factors)
        else:
            graph, cell, self.coord = _spelt_out(allowed, factors, power)
        self.forest = Forest(graph, self._weights(cell), {"arcs": cell})

    def _weights(self, cell: Ints) -> Floats:
        """Sum of the scores of each edge's parts."""
        weights: Floats = np.append(self.problem.arc, 0.0)[cell]  # an edge that is no arc has -1, the last one
        for name, scores in self.problem.scores.items():
            edges, index = self.parts(HIGHER_KINDS[name])
            weights[edges] += scores.gather(*index)
        return weights

    def parts(self, kind: PartKind) -> tuple[Ints, tuple[NDArray[np.integer], ...]]:
        """The edges that use a part of a kind that was given, one part each; and these parts, one array per index."""
        kernel, place = kernels.projective_forest, self.problem.model.places[kind.name]
        flag = {MODIFIER: kernel.ATTACH, OUTERMOST: kernel.FINISH, END: kernel.STOP, EMPTY: kernel.STOP}[place]
        edges = np.flatnonzero(self.coord[:, 0] & flag)
        wanted = kind.axes if "m" in kind.axes else "ghtm"
        node = {letter: self.coord[edges, COLUMNS.index(letter)] for letter in wanted}
        used = np.ones(len(edges), dtype=bool)
        if place in (END, EMPTY):  # the outermost modifier is in the column of m; if it is h, the side in that of t
            h, last = node["h"], node["m"]
            node |= {"s": last, "d": np.where(last == h, node["t"], np.where(last > h, RIGHT, LEFT))}
            used &= (place == END) | (last == h)
        index = [node[letter] for letter in kind.axes]
        for nodes in index:
            used &= nodes >= 0
        return edges[used], tuple(nodes[used] for nodes in index)

    def heads(self, edges: Sequence[int]) -> Ints:
        """The tree of a hyperpath."""
        heads = np.full(self.problem.n + 1, -1, dtype=np.int64)
        cell = self.forest.parts["arcs"][np.asarray(edges, dtype=np.int64)]
        used = cell[cell >= 0]
        heads[used % (self.problem.n + 1)] = used // (self.problem.n + 1)
        return heads


Spelt = tuple[Hypergraph, Ints, NDArray[np.int16]]  # with the cell of the arc of each edge, and its coordinates


def _spelt_out(allowed: NDArray[np.bool_], factors: tuple[Any, ...], power: int) -> Spelt:
    """The hypergraph of the trees of the allowed arcs."""
    kernel: Any = kernels.projective_forest
    n, limit = len(allowed) - 1, np.iinfo(np.int32).max
    arcs, told = kernel.index_arcs(allowed), kernel.Factors(*factors)
    steps = len(arcs.out) * n ** (power - 2)
    n_vertices, n_edges = long_call(steps, kernel.build, arcs, told, limit, kernel.forest_room(0, 0))
    room = kernel.forest_room(n_vertices, n_edges)
    long_call(steps, kernel.build, arcs, told, limit, room)
    in_ptr, tail_ptr, tail, coord = room
    cell = np.full(n_edges, -1, dtype=np.int64)
    attach = (coord[:, 0] & kernel.ATTACH) > 0
    cell[attach] = coord[attach, 2].astype(np.int64) * (n + 1) + coord[attach, 5]
    return Hypergraph(in_ptr, tail_ptr, tail[: tail_ptr[-1]]), cell, coord


@lru_cache(maxsize=32)
def _all_trees(n: int, factors: tuple[Any, ...]) -> Spelt:
    """That of all trees of n words, which problems of arcs and siblings share."""
    allowed = ~np.eye(n + 1, dtype=bool)
    allowed[:, 0] = False
    return _spelt_out(allowed, factors, 3)
