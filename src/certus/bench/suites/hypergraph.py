"""Sweeps over a random binary hypergraph of a million edges: against one pass of numpy over the same arrays."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Row
from certus.hypergraph import sweeps

TERMINALS = 100


def run(edges: int = 1_000_000, into: int = 10) -> Iterator[Case | Row]:
    rng = np.random.default_rng(0)
    graph = random_binary(edges, into, rng)
    weights = -2.0 - 10.0 * rng.random(graph.n_edges)
    arrays = (graph.in_ptr, graph.tail_ptr, graph.tail, weights)
    peers = {"numpy pass": lambda: [array.sum() for array in arrays]}
    questions: dict[str, Any] = {
        "Hyperpath.decode": lambda: certus.Hyperpath(graph, weights).decode(),
        "inside, max": lambda: sweeps.inside(graph, weights, "max"),
        "inside, log": lambda: sweeps.inside(graph, weights, "log"),
        "outside, log": lambda: sweeps.outside(graph, weights, "log"),
        "marginals": lambda: sweeps.marginals(graph, weights),
        "max-marginals": lambda: sweeps.max_marginals(graph, weights),
    }
    for name, ask in questions.items():
        yield Case(name, ask, peers, items=edges, unit="edge")
    yield Row("memory", {"bytes an edge": (graph.nbytes + weights.nbytes) / graph.n_edges, "claim": "at most 40"})


def random_binary(edges: int, into: int, rng: np.random.Generator) -> certus.Hypergraph:
    """Vertices with ``into`` edges each, tails drawn from all vertices below."""
    inner = edges // into
    in_ptr = np.concatenate((np.arange(TERMINALS), TERMINALS + into * np.arange(inner + 1)))
    heads = np.repeat(np.arange(TERMINALS, TERMINALS + inner), into)
    tail = (rng.random((len(heads), 2)) * heads[:, None]).astype(np.int32).reshape(-1)
    tail_ptr = np.concatenate((np.zeros(TERMINALS, dtype=int), 2 * np.arange(len(heads) + 1)))
    return certus.Hypergraph(in_ptr, tail_ptr, tail)
