"""Exact translation of Hiero forests with n-gram language models: share proved, times, the peers' best, rivals."""

import resource
from collections.abc import Iterator
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Row, Skipped, data_folder
from certus.bench.translation import Hiero


def run(
    data: str = "", sentences: int = 100, orders: tuple[int, ...] = (2, 3), limit: float = 60.0, small: int = 20
) -> Iterator[Case | Row | Skipped]:
    """``limit`` is the time limit of a sentence, ``small`` the number of small forests for all methods."""
    hiero = Hiero(data_folder(data, "mt"), sentences)
    for order in orders:
        problems = hiero.problems(hiero.lm(order))
        problems[0].decode()  # compiles
        yield _proofs(hiero, order, problems, limit)
        yield Case(
            f"decode, {order}-gram",
            lambda p=problems: [one.decode(time_limit=limit) for one in p],
            items=len(problems),
            numbers=lambda found: [[r.score, r.certificate.exact] for r in found],
        )
    by_size = sorted(range(len(hiero.forests)), key=lambda k: hiero.forests[k].graph.n_edges)
    problems = hiero.problems(hiero.lm(2))
    shortest = [problems[k] for k in by_size[:5] if _small_enough(problems[k])]
    if not shortest:
        yield Skipped("all forests are too large for exhaustive search")
    else:
        yield Case(
            "decode, smallest forests, bigrams",
            lambda: [p.decode().score for p in shortest],
            {"exhaustive": lambda: [p.decode(method="intersection").score for p in shortest]},
            items=len(shortest),
            agrees=lambda ours, _, theirs: np.testing.assert_allclose(ours, theirs),
        )
    lm = hiero.lm(max(orders))
    pruned = [best_rules(hiero.grammar.forest(words[:3]), 3) for words in hiero.sentences[:small]]
    tiny = [certus.ForestTranslation(forest, lm, hiero.weights["LM"]) for forest in pruned]
    yield Case(
        "decode, 3 words, 3 rules a vertex",
        lambda: [p.decode().score for p in tiny],
        {
            name: lambda m=name: [p.decode(method=m, max_iterations=400).score for p in tiny]
            for name in ("paths", "partitions", "ilp")
        },
        items=len(tiny),
        agrees=lambda ours, name, theirs: np.testing.assert_array_less(theirs, np.array(ours) + 1e-5),
    )


def _small_enough(problem: certus.ForestTranslation) -> bool:
    """Whether exhaustive search does not spell out too much."""
    try:
        problem.decode(method="intersection")
    except certus.NotSupported:
        return False
    return True


def _proofs(hiero: Hiero, order: int, problems: list[Any], limit: float) -> Row:
    results = [p.decode(time_limit=limit) for p in problems]
    known = hiero.cdec(order)
    ahead = np.array([r.score - max(run[i]["model_score"] for run in known) for i, r in enumerate(results)])
    return Row(
        f"{order}-gram, proofs",
        {
            "sentences": len(results),
            "proved": sum(r.certificate.exact for r in results),
            "largest gap": max(r.certificate.gap for r in results),
            "below cdec": int((ahead < -1e-3).sum()),
            "above": int((ahead > 1e-3).sum()),
            "sum of scores": sum(r.score for r in results),
            "most rounds": max(r.iterations for r in results),
            "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        },
    )


def best_rules(forest: certus.TranslationForest, keep: int) -> certus.TranslationForest:
    """The forest with the best rules of each vertex only."""
    graph = forest.graph
    chosen = []
    for v in range(graph.n_vertices):
        edges = np.arange(graph.in_ptr[v], graph.in_ptr[v + 1])
        chosen.append(np.sort(edges[np.argsort(-forest.weights[edges], kind="stable")[:keep]]))
    edges = np.concatenate(chosen)
    tails = [graph.tail_of(e) for e in edges]
    sides = [forest.token[forest.token_ptr[e] : forest.token_ptr[e + 1]] for e in edges]
    in_ptr, tail_ptr, token_ptr = (np.cumsum([0, *map(len, lists)]) for lists in (chosen, tails, sides))
    small = certus.Hypergraph(in_ptr, tail_ptr, np.concatenate(tails), graph.root)
    return certus.TranslationForest(small, token_ptr, np.concatenate(sides), forest.words, forest.weights[edges])
