"""Random small translation forests and language models, and the best translation by listing all derivations."""

import numpy as np

from certus.hypergraph import Hypergraph
from certus.io.arpa import BEGIN, END, UNKNOWN, Arpa, Ngrams
from certus.translation.forest import TranslationForest
from certus.translation.language_model import LanguageModel


def random_lm(rng: np.random.Generator, words: list[str], order: int, *, share: float = 0.4) -> LanguageModel:
    """A model with a random share of all n-grams; back-offs of both signs, probabilities that sum to nothing."""
    names = [UNKNOWN, BEGIN, END, *words]
    grams = [Ngrams(np.arange(len(names), dtype=np.int32)[:, None], -rng.random(len(names)), _backs(rng, len(names)))]
    rows = np.arange(len(names))[:, None]
    for k in range(2, order + 1):
        longer = np.array([(*row, w) for row in rows if row[-1] != 2 for w in range(2, len(names))])
        rows = longer[rng.random(len(longer)) < share]
        back = _backs(rng, len(rows)) if k < order else np.zeros(len(rows))
        grams.append(Ngrams(rows.astype(np.int32).reshape(-1, k), -3 * rng.random(len(rows)), back))
    return LanguageModel(Arpa(names, grams))


def _backs(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.where(rng.random(size) < 0.3, 0.0, rng.normal(size=size))


def random_forest(
    rng: np.random.Generator, words: list[str], *, n_vertices: int = 5, n_edges: int = 3, empty: float = 0.0
) -> TranslationForest:
    """A forest of a few vertices, edges with up to two vertices and three words in their target side.

    ``empty``: share of the edges without tail that yield nothing. Some weights are -inf, some tie.
    """
    in_ptr, tail_ptr, tail, token_ptr, token = [0], [0], [], [0], []
    for v in range(n_vertices):
        for _ in range(rng.integers(1, n_edges + 1)):
            below = [int(u) for u in rng.integers(max(0, v - 3), v, size=rng.integers(0, 3))] if v else []
            side = [~j for j in range(len(below))]
            n_words = rng.integers(0, 3) if below else (0 if rng.random() < empty else rng.integers(1, 4))
            for _ in range(n_words):
                side.insert(int(rng.integers(0, len(side) + 1)), int(rng.integers(0, len(words))))
            tail += below
            token += side
            tail_ptr.append(len(tail))
            token_ptr.append(len(token))
        in_ptr.append(len(tail_ptr) - 1)
    n = len(tail_ptr) - 1
    weights = np.where(rng.random(n) < 0.05, -np.inf, rng.integers(-4, 5, size=n).astype(float))
    graph = Hypergraph(in_ptr, tail_ptr, np.array(tail, dtype=np.int32))
    return TranslationForest(graph, token_ptr, np.array(token, dtype=np.int32), words, weights)


def all_scores(
    forest: TranslationForest, lm: LanguageModel, lm_weight: float, limit: int
) -> dict[tuple[int, ...], float]:
    """Every derivation without a -inf edge, with its score; an empty dict if there are more than ``limit``."""
    out: dict[tuple[int, ...], float] = {}
    for i, edges in enumerate(forest.graph.hyperpaths()):
        if i >= limit:
            return {}
        rules = sum(float(forest.weights[e]) for e in edges)
        if rules > -np.inf:
            out[tuple(edges)] = rules + lm_weight * lm.score(forest.yields(edges))
    return out
