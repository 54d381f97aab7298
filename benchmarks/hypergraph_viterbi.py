"""Sweeps over a random binary hypergraph, against one pass of numpy over the same arrays, on one thread.

    python benchmarks/hypergraph_viterbi.py [--edges 1000000] [--in-degree 10] [--graphs 3] [--json]

Claims: Viterbi with back-pointers costs at most 12 such passes, and a graph takes at most 40 bytes an edge, weights
included, labels not. Each time is the best of a few runs, then the median over different random graphs.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from certus import Hypergraph
from certus.hypergraph import sweeps


def random_binary(edges: int, in_degree: int, rng: np.random.Generator) -> Hypergraph:
    """Vertices with ``in_degree`` edges each, tails drawn from all vertices below; 100 terminals."""
    terminals = 100
    inner = edges // in_degree
    in_ptr = np.concatenate((np.arange(terminals), terminals + in_degree * np.arange(inner + 1)))
    heads = np.repeat(np.arange(terminals, terminals + inner), in_degree)
    tail = (rng.random((len(heads), 2)) * heads[:, None]).astype(np.int32).reshape(-1)
    tail_ptr = np.concatenate((np.zeros(terminals, dtype=int), 2 * np.arange(len(heads) + 1)))
    return Hypergraph(in_ptr, tail_ptr, tail)


def seconds(run: Callable[[], object], repeats: int = 7) -> float:
    """Best wall-clock time of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(edges: int, in_degree: int, seed: int) -> dict[str, float]:
    """Milliseconds of each sweep over one random graph."""
    from certus.kernels import hypergraph as kernels

    rng = np.random.default_rng(seed)
    graph = random_binary(edges, in_degree, rng)
    weights = -2.0 - 10.0 * rng.random(graph.n_edges)
    weights.flags.writeable = False
    arrays = (graph.in_ptr, graph.tail_ptr, graph.tail, weights)
    chart, back = np.empty(graph.n_vertices), np.empty(graph.n_vertices, dtype=np.int32)
    runs = {
        "numpy pass": lambda: [array.sum() for array in arrays],
        "viterbi": lambda: kernels.viterbi(*arrays, chart, back),
        "inside (max)": lambda: sweeps.inside(graph, weights, "max"),
        "inside (log)": lambda: sweeps.inside(graph, weights, "log"),
        "outside (log)": lambda: sweeps.outside(graph, weights, "log"),
        "marginals": lambda: sweeps.marginals(graph, weights),
        "max-marginals": lambda: sweeps.max_marginals(graph, weights),
    }
    for run in runs.values():
        run()
    found = {name: 1000.0 * seconds(run) for name, run in runs.items()}
    found["bytes per edge"] = (graph.nbytes + weights.nbytes) / graph.n_edges
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--in-degree", type=int, default=10)
    parser.add_argument("--graphs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs = [measure(options.edges, options.in_degree, seed) for seed in range(options.graphs)]
    found = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    found["viterbi / numpy pass"] = statistics.median(run["viterbi"] / run["numpy pass"] for run in runs)
    if options.json:
        print(json.dumps(found))
        return
    print(f"binary hypergraph, {options.edges} edges, {options.in_degree} into each vertex; median of {options.graphs}")
    for name, value in found.items():
        unit = "" if "/" in name or "per" in name else " ms"
        limit = {"viterbi / numpy pass": "  (at most 12)", "bytes per edge": "  (at most 40)"}.get(name, "")
        print(f"  {name:22s} {value:8.2f}{unit}{limit}")


if __name__ == "__main__":
    main()
