"""Questions about all derivations of a weighted hypergraph, each answered by sweeping over it once or twice."""

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import as_scores
from certus.errors import Infeasible, NotSupported
from certus.hypergraph.graph import Hypergraph, Int32


def best(graph: Hypergraph, weights: ArrayLike) -> tuple[float, Int32]:
    """Best derivation: its score and its edges, head before tails (LR alg. 3, with back-pointers).

    Solves  max over derivations y of  sum of weights[e] over the edges of y.  Exact; time linear in the graph. Ties go
    to the smallest edge at each vertex.

    Raises
    ------
    Infeasible : every derivation uses an edge of weight -inf, or there is none.
    """
    from certus.kernels import hypergraph as kernels

    weight = as_scores("weights", weights, (graph.n_edges,))
    chart = np.empty(graph.n_vertices)
    back = np.empty(graph.n_vertices, dtype=np.int32)
    kernels.viterbi(graph.in_ptr, graph.tail_ptr, graph.tail, weight, chart, back)
    if back[graph.root] < 0:
        raise infeasible(graph)
    size = kernels.derivation_size(graph.tail_ptr, graph.tail, back, graph.root)
    if size < 0:
        raise NotSupported(
            "the best derivation has more than 2^31 edges, because it uses shared vertices over and over; ask "
            "inside() for its score alone."
        )
    edges = np.empty(size, dtype=np.int32)
    kernels.derivation(graph.tail_ptr, graph.tail, back, graph.root, edges)
    return float(chart[graph.root]), edges


def infeasible(graph: Hypergraph) -> Infeasible:
    """The error for a graph whose root has no derivation of finite weight."""
    return Infeasible(
        f"the root, vertex {graph.vertex_name(graph.root)}, has no derivation whose edges all have weights above -inf."
    )
