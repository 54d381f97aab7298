"""Projective trees as hyperpaths: the hypergraph of a problem, the weights of its edges, and trees read off edges."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Floats, Ints
from certus.dependency.parts import LAYOUT, LEFT, RIGHT, check_memory
from certus.hypergraph import Forest, Hypergraph
from certus.threads import long_call

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

BYTES_PER_EDGE = 64  # graph, coordinates, weights, cells and one array of a sweep


class DependencyForest:
    """The forest of a projective problem, with the coordinates (flags, g, h, t, s, m) of each edge.

    Memory and time grow with the number of edges: about 0.8 n^3 for arcs and siblings over all n^2 arcs, n^4 with
    grandparents or trisiblings, and with the surviving parts once arcs are pruned (-inf).
    """

    def __init__(self, problem: "Dependency") -> None:
        given = problem.scores
        higher = "grandparent" in given or "grandsibling" in given
        outermost = higher and problem.grandparents == "outermost"
        track_g = higher or "null" in given
        track_s = "trisibling" in given or (outermost and "grandsibling" in given)
        self.problem = problem
        kernel: Any = kernels.projective_forest
        arcs = kernel.index_arcs(problem.arc > -np.inf)
        self._check_size(len(arcs.out), track_g, track_s)
        factors = kernel.Factors(problem.single, track_g, outermost, track_s)
        limit = np.iinfo(np.int32).max
        steps = len(arcs.out) * problem.n ** (1 + track_g + track_s)
        n_vertices, n_edges = long_call(steps, kernel.build, arcs, factors, limit, kernel.forest_room(0, 0))
        room = kernel.forest_room(n_vertices, n_edges)
        long_call(steps, kernel.build, arcs, factors, limit, room)
        in_ptr, tail_ptr, tail, coord = room
        self.coord: NDArray[np.int16] = coord
        graph = Hypergraph(in_ptr, tail_ptr, tail[: tail_ptr[-1]])
        size = problem.n + 1
        cell = np.full(n_edges, -1, dtype=np.int64)
        attach = (coord[:, 0] & kernel.ATTACH) > 0
        cell[attach] = coord[attach, 2].astype(np.int64) * size + coord[attach, 5]
        self.forest = Forest(graph, self._weights(cell), {"arcs": cell})

    def _check_size(self, arcs: int, track_g: bool, track_s: bool) -> None:
        n = self.problem.n
        if arcs < n * n / 2 or not (track_g or track_s):
            return
        power = 5 if track_g and track_s and self.problem.grandparents == "all" else 4
        check_memory(f"the forest of this model for {n} words", (n + 1,) * power, copies=BYTES_PER_EDGE // 16)

    def _weights(self, cell: Ints) -> Floats:
        """Sum of the scores of each edge's parts."""
        weights = np.zeros(len(cell))
        attach = cell >= 0
        weights[attach] = self.problem.arc.reshape(-1)[cell[attach]]
        for kind, scores in self.problem.scores.items():
            edges, index = self.parts(kind)
            weights[edges] += scores.gather(*index)
        return weights

    def parts(self, kind: str) -> tuple[Ints, tuple[NDArray[np.integer], ...]]:
        """The edges that use a part of a kind that was given, one part each; and these parts, one array per index."""
        coord = self.coord
        if kind in ("stop", "null"):
            edges = np.flatnonzero(coord[:, 0] & kernels.projective_forest.STOP)
            g, h, t, m = (coord[edges, c] for c in (1, 2, 3, 5))
            side = np.where(m == h, t, np.where(m > h, RIGHT, LEFT))
            if kind == "stop":
                return edges, (h, side, m)
            bare = (m == h) & (h > 0)
            return edges[bare], (g[bare], h[bare], side[bare])
        grand = kind in ("grandparent", "grandsibling")
        edges = np.flatnonzero(
            coord[:, 0]
            & (
                kernels.projective_forest.FINISH
                if grand and self.problem.grandparents == "outermost"
                else kernels.projective_forest.ATTACH
            )
        )
        if kind != "sibling":
            edges = edges[coord[edges, 1 if grand else 3] >= 0]  # g, or t: not every modifier has one
        return edges, tuple(coord[edges, "?ghtsm".index(letter)] for letter in LAYOUT[kind])

    def heads(self, edges: Sequence[int]) -> Ints:
        """The tree of a hyperpath."""
        heads = np.full(self.problem.n + 1, -1, dtype=np.int64)
        cell = self.forest.parts["arcs"][np.asarray(edges, dtype=np.int64)]
        used = cell[cell >= 0]
        heads[used % (self.problem.n + 1)] = used // (self.problem.n + 1)
        return heads
