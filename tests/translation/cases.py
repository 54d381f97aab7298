"""Random small language models and forests, and their oracles, which share nothing with the kernels."""

import itertools
from functools import cache

import numpy as np
from hypothesis import strategies as st

from certus import Hypergraph, LanguageModel, TranslationForest
from certus.io.arpa import Arpa, Ngrams

MARKS = ["<unk>", "<s>", "</s>"]
WORDS = [*MARKS, "a", "b", "c"]
LN10 = float(np.log(10.0))


@st.composite
def arpas(draw, max_order: int = 4, words: tuple[str, ...] = tuple(WORDS)):
    """A model with some n-grams; contexts and ends of n-grams may be missing, as in pruned models."""
    order = draw(st.integers(1, max_order))
    value = st.integers(-16, 0).map(lambda x: x / 4)
    back = st.sampled_from([0.0, 0.0, -0.25, -1.5, 0.5])
    orders = []
    for n in range(1, order + 1):
        every = list(itertools.product(range(len(words)), repeat=n))
        chosen = every if n == 1 else draw(st.lists(st.sampled_from(every), unique=True, max_size=8))
        rows = [(draw(value), draw(back) if n < order else 0.0) for _ in chosen]
        orders.append(
            Ngrams(
                np.array(chosen, dtype=np.int32).reshape(-1, n),
                np.array([p for p, _ in rows], dtype=np.float64),
                np.array([b for _, b in rows], dtype=np.float64),
            )
        )
    return Arpa(list(words), orders)


def log_probability(arpa: Arpa):
    """ln p(word | context) as the definition of back-off has it; a function of ids."""
    value: dict[tuple[int, ...], float] = {}
    back: dict[tuple[int, ...], float] = {}
    for grams in arpa.orders:
        for row, p, b in zip(
            grams.words.tolist(), grams.log_probability.tolist(), grams.back_off.tolist(), strict=True
        ):
            value[tuple(row)], back[tuple(row)] = p * LN10, b * LN10

    @cache
    def p(word: int, context: tuple[int, ...]) -> float:
        context = context[len(context) - len(arpa.orders) + 1 :] if len(context) >= len(arpa.orders) else context
        if (*context, word) in value:
            return value[(*context, word)]
        return back.get(context, 0.0) + p(word, context[1:])

    return p


@st.composite
def forests(
    draw, max_vertices: int = 5, max_edges: int = 3, limit: int = 200, words: tuple[str, ...] = ("a", "b", "d")
):
    """A forest with words on its edges, empty target sides, shared vertices, ties and the odd weight of -inf."""
    n_vertices = draw(st.integers(1, max_vertices))
    in_ptr, tail_ptr, tail, token_ptr, token, total = [0], [0], [], [0], [], []
    for v in range(n_vertices):
        derivations = 0
        for _ in range(draw(st.integers(1, max_edges))):
            chosen = draw(st.lists(st.integers(0, v - 1), max_size=2)) if v else []
            product = int(np.prod([total[u] for u in chosen]))
            if derivations + product > limit:
                continue
            derivations += product
            side = draw(st.lists(st.integers(0, len(words) - 1), max_size=3))
            for j in range(len(chosen)):
                at = draw(st.integers(max((k + 1 for k, t in enumerate(side) if t < 0), default=0), len(side)))
                side.insert(at, ~j)
            tail.extend(chosen)
            token.extend(side)
            tail_ptr.append(len(tail))
            token_ptr.append(len(token))
        in_ptr.append(len(tail_ptr) - 1)
        total.append(derivations)
    graph = Hypergraph(in_ptr, tail_ptr, np.array(tail, dtype=np.int64))
    score = st.one_of(st.integers(-8, 8), st.integers(-8, 8), st.just(-np.inf))
    weights = draw(st.lists(score, min_size=graph.n_edges, max_size=graph.n_edges))
    return TranslationForest(graph, token_ptr, np.array(token, dtype=np.int64), words, weights)


def best_score(forest: TranslationForest, lm: LanguageModel, lm_weight: float) -> float:
    """The optimum, by scoring every derivation."""
    every = (forest.score(y) + lm_weight * lm.score(forest.yields(y)) for y in forest.graph.hyperpaths())
    return max(every, default=-np.inf)
