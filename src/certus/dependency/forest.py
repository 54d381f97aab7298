"""Projective trees as hyperpaths: the hypergraph of a problem, the weights of its edges, and trees read off edges."""

from collections.abc import Sequence
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
        kernel: Any = kernels.projective_forest
        arcs = kernel.index_arcs(problem.arc > -np.inf)
        ancestors = model.ancestors
        power = 3 + max(ancestors, ancestors * model.head_at_modifiers + model.pairs)
        if power > 3 and len(arcs.out) >= n * n / 2:
            check_memory(f"the forest of this model for {n} words", (n + 1,) * power, copies=BYTES_PER_EDGE // 16)
        factors = kernel.Factors(problem.single, ancestors, model.head_at_modifiers, model.outermost, model.pairs)
        limit = np.iinfo(np.int32).max
        steps = len(arcs.out) * n ** (power - 2)
        n_vertices, n_edges = long_call(steps, kernel.build, arcs, factors, limit, kernel.forest_room(0, 0))
        room = kernel.forest_room(n_vertices, n_edges)
        long_call(steps, kernel.build, arcs, factors, limit, room)
        in_ptr, tail_ptr, tail, coord = room
        self.coord: NDArray[np.int16] = coord
        graph = Hypergraph(in_ptr, tail_ptr, tail[: tail_ptr[-1]])
        cell = np.full(n_edges, -1, dtype=np.int64)
        attach = (coord[:, 0] & kernel.ATTACH) > 0
        cell[attach] = coord[attach, 2].astype(np.int64) * (n + 1) + coord[attach, 5]
        self.forest = Forest(graph, self._weights(cell), {"arcs": cell})

    def _weights(self, cell: Ints) -> Floats:
        """Sum of the scores of each edge's parts."""
        weights = np.zeros(len(cell))
        attach = cell >= 0
        weights[attach] = self.problem.arc.reshape(-1)[cell[attach]]
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
