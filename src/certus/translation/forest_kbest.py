"""The k best derivations of a translation forest: everything within a margin of the best, spelt out."""

from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import Floats, Ints
from certus.errors import NotSupported
from certus.hypergraph import Hypergraph, sweeps
from certus.result import Result
from certus.translation.bigram_relaxation import BigramRelaxation
from certus.translation.scored_forest import prepare

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation

FIRST_MARGIN = 0.5
ROUNDS = 3  # of removal before the search
MOST_COMBINATIONS = 100_000_000


def within(problem: "ForestTranslation", best: Result[Ints], k: int) -> list[tuple[float, Ints]]:
    """Values and derivations of the k best, best first; ``best`` is the result of decoding, with its multipliers.

    Every derivation that scores at least a threshold is kept by the search, so once k derivations reach it the list is
    complete. The threshold is lowered until they do, or until it lets all derivations pass.
    """
    forest = problem.translation_forest
    prepared = prepare(forest, problem.lm, forest.weights, k=k)
    few = sweeps.count(forest.graph) <= k
    margin = np.inf if few else FIRST_MARGIN
    while True:
        relaxation = BigramRelaxation(prepared, problem.lm, problem.lm_weight)
        if best.certificate.duals is not None:
            rows = {
                kind: best.certificate.duals[kind] for kind in ("pairs", "contexts") if kind in best.certificate.duals
            }
            relaxation.take(relaxation.vector(rows))
        threshold = best.score - margin
        lowest = float(np.finfo(np.float64).min)  # keeps out what cannot be completed at all
        found = _search(relaxation, max(threshold - relaxation.slack(), lowest))
        graph, weights, edges = _spelt_out(found)
        listed = sweeps.kbest(graph, weights, k)
        if threshold == -np.inf or (len(listed) == k and listed[-1][0] >= threshold):
            break
        margin = 2 * margin if np.isfinite(2 * margin) and margin < 1e6 else np.inf
    structures = []
    for value, ways in listed:
        used = edges[ways]
        structures.append((value, np.array(prepared.derivation(used[used >= 0].tolist()), dtype=np.int64)))
    return structures


def _search(relaxation: BigramRelaxation, least: float) -> Any:
    relaxation.value()
    edge, pair = relaxation.complete(least)
    for _ in range(ROUNDS):
        relaxation.remove(least, edge, pair)
        relaxation.value()
        edge, pair = relaxation.complete(least)
    found = relaxation.search(least, budget=MOST_COMBINATIONS, all_ways=True)
    if not found.done:
        raise NotSupported(f"more than {MOST_COMBINATIONS} combinations for this k; ask for fewer derivations.")
    return found


def _spelt_out(found: Any) -> tuple[Hypergraph, Floats, Ints]:
    """Items and ways as a hypergraph, the weight of each of its edges, and the edge of the forest it uses or -1."""
    order = np.argsort(found.way[:, 0], kind="stable")
    head, parts, edge = found.way[order, 0], found.way[order, 1:3], found.way[order, 3]
    present = parts >= 0
    n_items = found.top + 1
    graph = Hypergraph(
        np.concatenate(([0], np.cumsum(np.bincount(head, minlength=n_items)))),
        np.concatenate(([0], np.cumsum(present.sum(axis=1)))),
        parts[present],
        found.top,
    )
    below = np.append(found.score, 0.0)[parts].sum(axis=1)  # -1, no part, is the 0 at the end
    return graph, found.way_score[order] - below, edge
