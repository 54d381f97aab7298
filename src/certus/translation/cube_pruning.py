"""Cube pruning: heuristic decoding of a translation forest with a language model."""

from typing import NamedTuple

import numpy as np

from certus import kernels
from certus.checks import as_positive_int
from certus.errors import Infeasible, InvalidInput
from certus.threads import long_call
from certus.translation.forest import NO_DERIVATION, TranslationForest
from certus.translation.language_model import LanguageModel


class Translation(NamedTuple):
    """A derivation of a forest, what it yields, and its score with the language model."""

    edges: list[int]
    words: list[str]
    score: float


def cube_pruning(forest: TranslationForest, lm: LanguageModel, lm_weight: float = 1.0, pops: int = 200) -> Translation:
    """A good derivation of a forest under a language model; a heuristic, with no claim of being the best.

    Seeks the maximum over derivations of  sum of edge weights + lm_weight * ln p(<s> words </s>).  Every vertex keeps a
    beam of partial translations, one for each language-model state; each pop takes the most promising combination of
    an edge with members of the beams of its tail, and pushes its neighbours. Time: O(E + V pops) language-model
    queries and as many steps in heaps; any order of the model.

    Parameters
    ----------
    forest : TranslationForest
    lm : LanguageModel
    lm_weight : float
    pops : int
        Combinations taken per vertex. Those that end in a language-model state that the beam has already are merged
        with it and not counted, up to as many again.

    Returns
    -------
    Translation
        Its score is a lower bound of the optimum, recomputed from forest and language model.

    Raises
    ------
    Infeasible : the forest has no derivation.
    """
    if not np.isfinite(lm_weight):
        raise InvalidInput(f"lm_weight is {lm_weight}; expected a finite number.")
    graph = forest.graph
    pops = as_positive_int("pops", pops)
    numbers, _, hyp_ptr = long_call(
        100.0 * pops * graph.n_vertices,
        kernels.cube_pruning.cube_prune,
        lm.arrays,
        float(lm_weight),
        forest.arrays(lm),
        graph.root,
        pops,
    )
    if hyp_ptr[graph.root, 0] == hyp_ptr[graph.root, 1]:
        raise Infeasible(NO_DERIVATION)
    edges: list[int] = []
    agenda = [int(hyp_ptr[graph.root, 0])]
    edge_at = kernels.cube_pruning.LEFT + lm.order - 1
    while agenda:
        row = numbers[agenda.pop()]
        e = int(row[edge_at])
        edges.append(e)
        n_tail = int(graph.tail_ptr[e + 1] - graph.tail_ptr[e])
        agenda.extend(row[edge_at + 1 : edge_at + 1 + n_tail][::-1].tolist())
    words = forest.yields(edges)
    return Translation(edges, words, forest.score(edges) + lm_weight * lm.score(words))
