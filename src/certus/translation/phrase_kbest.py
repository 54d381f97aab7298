"""The k best translations by phrases: everything within a distance of the best, searched and listed."""

from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from certus.errors import LimitReached, NotSupported
from certus.hypergraph import Hypergraph, sweeps
from certus.result import Result
from certus.translation import phrase_decoding
from certus.translation.phrase_relaxation import PhraseRelaxation

if TYPE_CHECKING:
    from certus.translation.phrase_problem import PhraseTranslation, Structure


def within(problem: "PhraseTranslation", best: "Result[Structure]", k: int) -> list[tuple[float, "Structure"]]:
    """Values and structures of the k best, best first; ``best`` is the result of decoding.

    Every translation above a threshold is kept by the search, which is lowered until k are above it, or all are.
    """
    lattice = problem.sentence.lattice(None)
    if lattice is None:
        raise NotSupported("kbest() needs the lattice of coverages, which is too large here; set a distortion limit.")
    relaxation = PhraseRelaxation(problem.sentence, lattice, exact_contexts=False)
    relaxation.sweep(np.zeros(problem.n))
    distance = max(1.0, 8.0 * problem.error())
    while True:
        lower = best.score - distance
        found = relaxation.search(lower, phrase_decoding.WIDEST, keep_arcs=True)
        if found.pruned:
            raise LimitReached(f"the {k} best translations need more hypotheses than one search may hold.")
        arcs = found.arcs.astype(np.int64)
        start, end = 0, found.hypotheses  # the hypotheses, and one vertex more for the end
        graph, edges, _ = Hypergraph.from_edges(
            np.concatenate(([start], np.where(arcs[:, 2] < 0, end, arcs[:, 2]))),
            np.concatenate(([0], np.arange(len(arcs) + 1))),
            arcs[:, 0],
            n_vertices=end + 1,
            root=end,
        )
        weights, option = np.concatenate(([0.0], found.arc_scores)), np.concatenate(([-1], arcs[:, 1]))
        listed = [(value, option[edges[path]][::-1]) for value, path in sweeps.kbest(graph, weights[edges], k)]
        above = [(value, problem.of_path(chosen[chosen >= 0])) for value, chosen in listed if value > lower]
        if len(above) == k or not isfinite(lower):
            return above
        distance = distance * 2.0 if distance < 1e3 * max(1.0, problem.error()) else inf
