"""Exact translation of Hiero forests with n-gram language models: share proved, times, the peers' best, rivals."""

import resource
from collections.abc import Iterator
from functools import partial
from time import process_time
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Row, Skipped, data_folder
from certus.bench.translation import Hiero, best_rules, with_terms
from certus.translation.cube_pruning import cube_pruning

POPS = 1000  # of cube pruning, which no result may be below


def run(
    data: str = "",
    *,
    sentences: int = 100,
    orders: tuple[int, ...] = (2, 3, 4, 5),
    limit: float = 60.0,
    small: int = 20,
    lm: str = "",
    lengths: tuple[int, ...] = (20, 40, 60, 80, 10),
    each: int = 5,
    distinct: int = 10,
    timed: int = 10,
) -> Iterator[Case | Row | Skipped]:
    """``limit`` is the time limit of a sentence, ``small`` the number of small forests for all methods.

    ``lm`` is one more language model, in ARPA format. The first ``timed`` sentences are decoded in turns. Sentences of
    ``lengths`` words, ``each`` so many, are test sentences joined together. ``distinct`` translations are listed for
    each of the ``small`` shortest.
    """
    hiero = Hiero(data_folder(data, "mt"), sentences)
    models = {order: hiero.lm(order) for order in orders}
    if lm:
        own = certus.LanguageModel.read(lm)
        models[own.order] = own
    for order, model in models.items():
        problems = hiero.problems(model)
        problems[0].decode()  # compiles
        results, seconds = _decoded(problems, limit)
        cubes = [cube_pruning(p.translation_forest, p.lm, p.lm_weight, POPS).score for p in problems]
        yield _proofs(hiero, order, results, seconds, cubes)
        yield Case(
            f"decode, {order}-gram, first {timed}",
            lambda p=problems[:timed]: [one.decode(time_limit=limit) for one in p],
            items=len(problems[:timed]),
            numbers=lambda found: [[r.score, r.certificate.exact] for r in found],
        )
    trigrams = models.get(3, hiero.lm(3))
    yield from _lengths(hiero, trigrams, lengths, each, limit)
    makers = [partial(certus.ForestTranslation, f, trigrams, hiero.weights["LM"]) for f in hiero.forests]
    yield with_terms("trigrams", makers, hiero.folder)
    by_size = sorted(range(len(hiero.forests)), key=lambda k: hiero.forests[k].graph.n_edges)
    yield _distinct([hiero.problems(trigrams)[k] for k in by_size[:small]], distinct)
    yield _exhaustive([hiero.problems(hiero.lm(2))[k] for k in by_size[:5]])
    pruned = [best_rules(hiero.grammar.forest(words[:3]), 3) for words in hiero.sentences[:small]]
    tiny = [certus.ForestTranslation(forest, trigrams, hiero.weights["LM"]) for forest in pruned]
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


def _exhaustive(problems: list[certus.ForestTranslation]) -> Case | Skipped:
    """Decoding beside exhaustive search."""
    shortest = [problem for problem in problems if _small_enough(problem)]
    if not shortest:
        return Skipped("all forests are too large for exhaustive search")
    return Case(
        "decode, smallest forests, bigrams",
        lambda: [p.decode().score for p in shortest],
        {"exhaustive": lambda: [p.decode(method="intersection").score for p in shortest]},
        items=len(shortest),
        agrees=lambda ours, _, theirs: np.testing.assert_allclose(ours, theirs),
    )


def _small_enough(problem: certus.ForestTranslation) -> bool:
    """Whether exhaustive search does not spell out too much."""
    try:
        problem.decode(method="intersection")
    except certus.NotSupported:
        return False
    return True


def _proofs(hiero: Hiero, order: int, results: list[Any], seconds: list[float], cubes: list[float]) -> Row:
    known = hiero.cdec(order)
    best = [max((run[i]["model_score"] for run in known), default=r.score) for i, r in enumerate(results)]
    ahead = np.array([r.score for r in results]) - best
    return Row(
        f"{order}-gram, proofs",
        {
            "sentences": len(results),
            "proved": sum(r.certificate.exact for r in results),
            "median s": float(np.median(seconds)),
            "mean s": float(np.mean(seconds)),
            "most s": max(seconds),
            "largest gap": max(r.certificate.gap for r in results),
            "below cdec": int((ahead < -1e-3).sum()),
            "above": int((ahead > 1e-3).sum()),
            f"below cube {POPS}": int((np.array([r.score for r in results]) < np.array(cubes) - 1e-6).sum()),
            "sum of scores": sum(r.score for r in results),
            "most rounds": max(r.iterations for r in results),
            "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        },
    )


def _decoded(problems: list[Any], limit: float) -> tuple[list[Any], list[float]]:
    """Results, and seconds of the processor."""
    results, seconds = [], []
    for p in problems:
        begun = process_time()
        results.append(p.decode(time_limit=limit))
        seconds.append(process_time() - begun)
    return results, seconds


def _lengths(
    hiero: Hiero, lm: certus.LanguageModel, lengths: tuple[int, ...], each: int, limit: float
) -> Iterator[Row]:
    """Seconds by number of words, and the powers of the length that they and the forests grow with."""
    stream = [word for sentence in hiero.sentences for word in sentence]
    taken, sizes, times, edges = 0, list[int](), list[float](), list[int]()
    for length in lengths:
        problems = []
        for _ in range(each):
            words = [stream[(taken + i) % len(stream)] for i in range(length)]
            taken += length
            problems.append(certus.ForestTranslation(hiero.grammar.forest(words), lm, hiero.weights["LM"]))
        results, seconds = _decoded(problems, limit)
        sizes += [length] * each
        times += seconds
        edges += [p.translation_forest.graph.n_edges for p in problems]
        values = {
            "proved": sum(r.certificate.exact for r in results),
            "edges": float(np.mean(edges[-each:])),
            "median s": float(np.median(seconds)),
            "most s": max(seconds),
        }
        yield Row(f"{length} words, {lm.order}-gram", {"sentences": each, **values})
    if len(lengths) > 1:
        powers = [float(np.polyfit(np.log(sizes), np.log(grown), 1)[0]) for grown in (edges, times)]
        yield Row("growth with words, as a power", dict(zip(("edges", "seconds"), powers, strict=True)))


def _distinct(problems: list[Any], k: int) -> Row:
    """Lists of distinct translations, each rank checked."""
    for p in problems[:1]:
        p.kbest(k, distinct=True)  # compiles
    begun, ranks, derivations = process_time(), 0, 0
    for p in problems:
        p.decode()
    decoding = process_time() - begun
    begun = process_time()
    lists = [p.kbest(k, distinct=True) for p in problems]
    seconds = process_time() - begun
    begun = process_time()
    for p, found in zip(problems, lists, strict=True):
        certus.verify(p, found[-1])
        ranks += len(found)
        derivations += len({" ".join(p.words(r.structure)) for r in p.kbest(k)})
    values = {"translations": ranks, "proved": sum(r.certificate.exact for found in lists for r in found)}
    values |= {"seconds": seconds, "over decode": seconds / decoding, "seconds to verify": process_time() - begun}
    return Row(f"{k} distinct translations", values | {"distinct among as many derivations": derivations})
