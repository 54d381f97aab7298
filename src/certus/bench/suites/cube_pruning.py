"""Cube pruning against cdec's on the same forests: sums of model scores, sentences better and worse, seconds.

Theirs were measured elsewhere and include parsing, so ours do too; the forests have the same numbers of vertices and
edges, which is checked.
"""

import time
from collections.abc import Iterator

from certus.bench.cases import Case, Row, data_folder
from certus.bench.translation import Hiero
from certus.translation import cube_pruning


def run(
    data: str = "", sentences: int = 100, orders: tuple[int, ...] = (2, 3), pops: tuple[int, ...] = (50, 200, 1000)
) -> Iterator[Case | Row]:
    hiero = Hiero(data_folder(data, "mt"), sentences)
    yield Case(
        "SynchronousGrammar.forest",
        lambda: [f.graph.n_edges for f in map(hiero.grammar.forest, hiero.sentences)],
        items=len(hiero.sentences),
    )
    start = time.process_time()
    forests = [hiero.grammar.forest(sentence) for sentence in hiero.sentences]
    parsing = (time.process_time() - start) / len(forests)
    for order in orders:
        lm, weight = hiero.lm(order), hiero.weights["LM"]
        cube_pruning(forests[0], lm, weight, 1)  # compiles
        for limit in pops:
            start = time.process_time()
            found = [cube_pruning(forest, lm, weight, limit).score for forest in forests]
            seconds = (time.process_time() - start) / len(forests) + parsing
            cells: dict[str, float] = {"sum": sum(found), "seconds": seconds}
            for theirs in hiero.cdec(order, limit):
                for forest, one in zip(forests, theirs, strict=True):
                    size = (forest.graph.n_vertices + 1, forest.graph.n_edges + 1)  # theirs has a goal above S
                    assert size == (one["forest_nodes"], one["forest_edges"]), (size, one["id"])
                scores = [one["model_score"] for one in theirs]
                took = sum(one["cpu_seconds"] for one in theirs) / len(theirs)
                better = sum(a > b + 1e-3 for a, b in zip(found, scores, strict=True))
                worse = sum(a < b - 1e-3 for a, b in zip(found, scores, strict=True))
                cells |= {"sum of cdec": sum(scores), "better": better, "worse": worse, "cdec / ours": took / seconds}
            yield Row(f"order {order}, {limit} pops", cells)
