"""Random small problems for hypothesis: integer scores, so that sums are exact, ties are common and == is meant."""

import math

import numpy as np
from hypothesis import strategies as st

from certus import Hypergraph


@st.composite
def hypergraphs(draw, max_vertices: int = 6, max_edges: int = 3, limit: int = 300):
    """(graph, weights): a small acyclic hypergraph with shared vertices, dead ones, parallel edges, ties and -inf.

    Graphs with more than ``limit`` derivations are not drawn.
    """
    n_vertices = draw(st.integers(1, max_vertices))
    in_ptr, tail_ptr, tail, total = [0], [0], [], []
    for v in range(n_vertices):
        derivations = 0
        for _ in range(draw(st.integers(0, max_edges))):
            chosen = draw(st.lists(st.integers(0, v - 1), max_size=3)) if v and draw(st.integers(0, 3)) else []
            product = math.prod(total[u] for u in chosen)
            if derivations + product > limit:
                continue
            derivations += product
            tail.extend(chosen)
            tail_ptr.append(len(tail))
        in_ptr.append(len(tail_ptr) - 1)
        total.append(derivations)
    root = draw(st.sampled_from([n_vertices - 1, draw(st.integers(0, n_vertices - 1))]))
    graph = Hypergraph(np.array(in_ptr), np.array(tail_ptr), np.array(tail, dtype=np.int64), root)
    return graph, draw(edge_weights(graph.n_edges))


def edge_weights(size: int):
    """An array of integer scores with ties and the odd -inf."""
    score = st.one_of(st.integers(-8, 8), st.integers(-8, 8), st.integers(0, 1), st.just(-np.inf))
    return st.lists(score, min_size=size, max_size=size).map(lambda values: np.array(values, dtype=np.float64))


@st.composite
def arc_scores(draw, max_words: int = 5):
    """Integer scores (n + 1, n + 1) of dependency arcs with ties; some or many arcs are -inf. There may be no tree."""
    n = draw(st.integers(0, max_words))
    values = draw(st.sampled_from([st.integers(-8, 8), st.integers(0, 1), st.just(0)]))
    forbidden = draw(st.sampled_from([st.just(False), st.integers(0, 4).map(lambda x: x == 0), st.booleans()]))
    cells = [-np.inf if draw(forbidden) else draw(values) for _ in range((n + 1) ** 2)]
    return np.array(cells, dtype=np.float64).reshape(n + 1, n + 1)
