"""Questions about all derivations of a weighted hypergraph, each answered by sweeping over it once or twice.

Weights are scores over edges: finite, or -inf to forbid an edge. A derivation's score is the sum over its edges.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus import kernels
from certus.certificates.rounding import extent_of, of_best
from certus.checks import OBJECT, Floats, as_generator, as_scores, as_wanted, one_of
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.hypergraph.graph import Hypergraph, Int32, gathered

SEMIRINGS = ("max", "log", "count", "boolean")


def best(graph: Hypergraph, weights: ArrayLike) -> tuple[float, Int32]:
    """Best derivation: its score and its edges, head before tails (LR alg. 3, with back-pointers).

    Solves  max over derivations y of  sum of weights[e] over the edges of y.  Exact; time linear in the graph. Ties go
    to the smallest edge at each vertex.

    Raises
    ------
    Infeasible : every derivation uses an edge of weight -inf, or there is none.
    """
    chart, back = _viterbi(graph, as_weights(graph, weights))
    return float(chart[graph.root]), _derivation(graph, back)


def inside(graph: Hypergraph, weights: ArrayLike, semiring: str = "log") -> NDArray[Any]:
    """For each vertex, the total over its derivations, shape (V,); time linear in the graph.

    ``semiring`` says what a total is: "max" the best score, "log" the log of the sum of exp(score), "count" the number
    of derivations (float64, exact up to 2^53; ``count`` is exact beyond) and "boolean" whether there is one, the last
    two without derivations that use an edge of weight -inf. A vertex with no derivation gets -inf, -inf, 0 or False.
    """
    return _inside(graph, as_weights(graph, weights), semiring)[1]


def outside(graph: Hypergraph, weights: ArrayLike, semiring: str = "log") -> NDArray[Any]:
    """For each vertex, the total over all ways to complete a derivation of it to one of the root, shape (V,).

    Semirings as in ``inside``; the root gets the semiring's one, a vertex that the root does not reach its zero. A
    derivation that uses a vertex twice counts once for each use. Time linear in the graph.
    """
    weight = as_weights(graph, weights)
    return _outside(graph, weight, semiring, _inside(graph, weight, semiring)[1])


def log_partition(graph: Hypergraph, weights: ArrayLike) -> float:
    """Log of the sum of exp(score) over all derivations; -inf if there is none."""
    return float(inside(graph, weights, "log")[graph.root])


def marginals(graph: Hypergraph, weights: ArrayLike) -> Floats:
    """Expected number of uses of each edge under exp(score), shape (E,); its probability if none is used twice.

    Raises Infeasible if there is no derivation.
    """
    return expected_uses(graph, _conditionals(graph, weights)[0])


def choices(graph: Hypergraph, weights: ArrayLike) -> tuple[Floats, float]:
    """Probability of each edge given its head under exp(score), 0 where none is; and the log-partition function."""
    weight = as_weights(graph, weights)
    chart, q = np.empty(graph.n_vertices), np.empty(graph.n_edges)
    kernels.hypergraph.conditionals(graph.in_ptr, graph.tail_ptr, graph.tail, weight, chart, q)
    return q, float(chart[graph.root])


def expected_uses(graph: Hypergraph, conditional: Floats) -> Floats:
    """Expected number of uses of each edge in a derivation drawn by ``choices``."""
    uses, out = np.empty(graph.n_vertices), np.empty(graph.n_edges)
    kernels.hypergraph.expected_uses(graph.in_ptr, graph.tail_ptr, graph.tail, conditional, graph.root, uses, out)
    return out


def max_marginals(graph: Hypergraph, weights: ArrayLike) -> Floats:
    """Best score of any derivation that uses each edge, shape (E,); -inf for edges that none uses (LR alg. 4)."""
    weight = as_weights(graph, weights)
    _, chart = _inside(graph, weight, "max")
    out = _outside(graph, weight, "max", chart)
    totals = np.empty(graph.n_edges)
    kernels.hypergraph.edge_totals(_tag("max"), graph.in_ptr, graph.tail_ptr, graph.tail, weight, chart, out, totals)
    return totals


def expectations(graph: Hypergraph, weights: ArrayLike, features: ArrayLike) -> tuple[float, Floats]:
    """Log partition function, and the expected sum of edge features under exp(score), in one sweep.

    Parameters
    ----------
    features : array_like of shape (E, F)
        Finite values; a derivation's features are the sums over its edges, an edge used twice counted twice.

    Returns
    -------
    log_partition, expected of shape (F,)

    Raises
    ------
    Infeasible : there is no derivation.
    """
    feature = as_scores("features", features, (graph.n_edges, None))
    if np.isneginf(feature).any():
        raise InvalidInput(f"features[{np.argwhere(np.isneginf(feature))[0][0]}] holds -inf; features are finite.")
    q, total = _conditionals(graph, weights)
    mean = np.empty((graph.n_vertices, feature.shape[1]))
    kernels.hypergraph.expected(graph.in_ptr, graph.tail_ptr, graph.tail, q, _read_only(feature), mean)
    return total, mean[graph.root].copy()


def entropy(graph: Hypergraph, weights: ArrayLike) -> float:
    """Entropy, in nats, of the derivations under exp(score); never negative. Raises Infeasible if there are none.

    The expected sum of -log of each vertex's choice of edge: no difference of large numbers is taken.
    """
    q, _ = _conditionals(graph, weights)
    surprise = np.maximum(-np.log(np.where(q > 0.0, q, 1.0)), 0.0).reshape(-1, 1)
    mean = np.empty((graph.n_vertices, 1))
    kernels.hypergraph.expected(graph.in_ptr, graph.tail_ptr, graph.tail, q, _read_only(surprise), mean)
    return float(mean[graph.root, 0])


def kbest(graph: Hypergraph, weights: ArrayLike, k: int) -> list[tuple[float, Int32]]:
    """The k best derivations, best first: score and edges, head before tails; fewer when there are fewer.

    Exact, all different, none that uses a -inf edge. After one linear sweep the work grows with k and the size of the
    derivations, not with the graph (Huang and Chiang 2005, Algorithm 3).

    Raises
    ------
    Infeasible : there is no derivation.
    """
    wanted = as_wanted(k, 1)
    weight = as_weights(graph, weights)
    chart, back = _viterbi(graph, weight)
    _derivation_size(graph, back)  # or there are too many edges to list
    kernel: Any = kernels.kbest
    value = np.empty(wanted)
    edges, ends = kernel.kbest(
        kernel.Graph(graph.in_ptr, graph.tail_ptr, graph.tail, weight, chart, back), graph.root, value
    )
    cuts = ends[ends >= 0].tolist()
    return [(float(value[k]), edges[a:b].copy()) for k, (a, b) in enumerate(pairwise(cuts))]


def sample(graph: Hypergraph, weights: ArrayLike, k: int, seed: int | None = None) -> list[Int32]:
    """k independent derivations (edges, head before tails), each drawn with probability proportional to exp(score).

    Raises Infeasible if there is no derivation.
    """
    q, _ = _conditionals(graph, weights)
    rng = as_generator(seed)
    wanted = as_wanted(k, OBJECT)
    return [
        kernels.hypergraph.draw(graph.in_ptr, graph.tail_ptr, graph.tail, q, graph.root, rng) for _ in range(wanted)
    ]


def count(graph: Hypergraph) -> int:
    """Number of derivations, exact however large."""
    chart = inside(graph, np.zeros(graph.n_edges), "count")
    if chart.max() <= 2.0**53:
        return int(chart[graph.root])
    exact: list[int] = []
    tail_ptr, tail = graph.tail_ptr.tolist(), graph.tail.tolist()
    for v in range(graph.root + 1):
        total = 0
        for e in graph.edges_into(v):
            product = 1
            for u in tail[tail_ptr[e] : tail_ptr[e + 1]]:
                product *= exact[u]
            total += product
        exact.append(total)
    return exact[graph.root]


def prune(
    graph: Hypergraph,
    weights: ArrayLike,
    *,
    max_marginal_threshold: float | None = None,
    posterior_threshold: float | None = None,
) -> tuple[Hypergraph, Int32, Int32]:
    """The graph without the edges whose max-marginal, or whose posterior, lies below a threshold.

    Give one of the two. An edge is kept when its value is at least the threshold (rounding is allowed for, in favour of
    keeping). With max-marginals every derivation that scores at least the threshold survives whole.

    Returns
    -------
    graph, edge_map, vertex_map
        ``edge_map[e]`` is the edge of the old graph that became edge e, so ``weights[edge_map]`` are the new weights.

    Raises
    ------
    Infeasible : no derivation is left.
    """
    weight = as_weights(graph, weights)
    if max_marginal_threshold is not None and posterior_threshold is None:
        _, back = _viterbi(graph, weight)
        slack = of_best(extent_of(_derivation_size(graph, back), weight), max_marginal_threshold)
        values = max_marginals(graph, weight)
        keep = (values >= max_marginal_threshold - slack) & (values > -np.inf)
    elif posterior_threshold is not None and max_marginal_threshold is None:
        values = marginals(graph, weight)
        keep = (values >= posterior_threshold * (1.0 - 1e-12)) & (values > 0.0)
    else:
        raise InvalidInput("prune takes one of max_marginal_threshold and posterior_threshold.")
    pruned = subgraph(graph, keep)
    if not len(pruned[1]):
        raise Infeasible("no derivation is left: every one has an edge below the threshold. Lower it.")
    return pruned


def subgraph(graph: Hypergraph, keep: NDArray[np.bool_]) -> tuple[Hypergraph, Int32, Int32]:
    """The graph of the kept edges, less edges and vertices that are then in no derivation of the root.

    Returns the graph, edge map and vertex map, as ``prune`` does; the derivations are those of kept edges, in the same
    order. The root always stays; it is dead when no derivation is left.
    """
    useful = np.array(keep, dtype=np.bool_)
    kernels.hypergraph.keep_useful(graph.in_ptr, graph.tail_ptr, graph.tail, graph.root, useful)
    edge_map = np.flatnonzero(useful).astype(np.int32)
    entered = np.bincount(graph.heads[edge_map], minlength=graph.n_vertices)
    stays = entered > 0
    stays[graph.root] = True
    vertex_map = np.flatnonzero(stays).astype(np.int32)
    number = np.cumsum(stays) - 1
    tail_ptr, positions = gathered(graph.tail_ptr, edge_map)
    new = Hypergraph(
        np.concatenate(([0], np.cumsum(entered[vertex_map]))),
        tail_ptr,
        number[graph.tail[positions]],
        int(number[graph.root]),
        None if graph.vertex_labels is None else [graph.vertex_labels[v] for v in vertex_map.tolist()],
        None if graph.edge_labels is None else [graph.edge_labels[e] for e in edge_map.tolist()],
    )
    return new, edge_map, vertex_map


def as_weights(graph: Hypergraph, weights: ArrayLike) -> Floats:
    """Weights checked, read-only: one score per edge."""
    return _read_only(as_scores("weights", weights, (graph.n_edges,)))


def infeasible(graph: Hypergraph) -> Infeasible:
    """The error for a graph whose root has no derivation of finite weight."""
    return Infeasible(
        f"the root, vertex {graph.vertex_name(graph.root)}, has no derivation whose edges all have weights above -inf."
    )


def _read_only(array: Floats) -> Floats:
    """A view that cannot be written through. Kernels see arrays of one type, so that each is compiled once."""
    view = array.view()
    view.flags.writeable = False
    return view


def _viterbi(graph: Hypergraph, weight: Floats) -> tuple[Floats, Int32]:
    chart = np.empty(graph.n_vertices)
    back = np.empty(graph.n_vertices, dtype=np.int32)
    kernels.hypergraph.viterbi(graph.in_ptr, graph.tail_ptr, graph.tail, weight, chart, back)
    if back[graph.root] < 0:
        raise infeasible(graph)
    return chart, back


def _derivation_size(graph: Hypergraph, back: Int32) -> int:
    size = int(kernels.hypergraph.derivation_size(graph.tail_ptr, graph.tail, back, graph.root))
    if size < 0:
        raise NotSupported(
            "the best derivation has more than 2^31 edges, because it uses shared vertices over and over; ask "
            'inside(graph, weights, "max") for its score alone.'
        )
    return size


def _derivation(graph: Hypergraph, back: Int32) -> Int32:
    edges = np.empty(graph.n_vertices, dtype=np.int32)  # room enough where no vertex is used twice
    size = int(kernels.hypergraph.derivation(graph.tail_ptr, graph.tail, back, graph.root, edges))
    if size < 0:
        edges = np.empty(size := _derivation_size(graph, back), dtype=np.int32)
        kernels.hypergraph.derivation(graph.tail_ptr, graph.tail, back, graph.root, edges)
    return edges[:size].copy()


def _inside(graph: Hypergraph, weight: Floats, semiring: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weights as values of the semiring, and the inside chart."""
    values = _values(weight, semiring)
    chart = np.empty(graph.n_vertices, dtype=values.dtype)
    kernels.hypergraph.inside(_tag(semiring), graph.in_ptr, graph.tail_ptr, graph.tail, values, chart)
    return values, chart


def _outside(graph: Hypergraph, weight: Floats, semiring: str, chart: NDArray[Any]) -> NDArray[Any]:
    out = np.empty_like(chart)
    values = _values(weight, semiring)
    kernels.hypergraph.outside(_tag(semiring), graph.in_ptr, graph.tail_ptr, graph.tail, values, graph.root, chart, out)
    return out


def _conditionals(graph: Hypergraph, weights: ArrayLike) -> tuple[Floats, float]:
    """As ``choices``, where there is a derivation."""
    q, total = choices(graph, weights)
    if total == -np.inf:
        raise infeasible(graph)
    return q, total


def _tag(semiring: str) -> Any:
    algebra = kernels.algebra
    return dict(zip(SEMIRINGS, (algebra.MAX, algebra.LOG, algebra.REAL, algebra.ANY), strict=True))[semiring]


def _values(weight: Floats, semiring: str) -> NDArray[Any]:
    if one_of("semiring", semiring, SEMIRINGS) in ("max", "log"):
        return weight
    possible = weight > -np.inf
    return _read_only(possible.astype(np.float64)) if semiring == "count" else _frozen(possible)


def _frozen(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    mask.flags.writeable = False
    return mask
