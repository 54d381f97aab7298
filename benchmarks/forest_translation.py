"""Exact translation of Hiero forests with n-gram language models: shares certified, times, against other methods.

    python benchmarks/forest_translation.py DATA/mt [--sentences 100] [--order 3] [--limit 60] [--small 30]

DATA/mt holds test.de, hiero.de-en.gz, hiero.glue.txt, weights.json, lm.en.Ngram.arpa.gz and peers/cdec.*.json: a model
and what cube pruning found with it. One thread. Seconds are of the processor, so that other work on the machine does
not count; reading and parsing are left out.

Part 1, all sentences, full forests: certified or not, time, best score of the peers, memory; the relaxation without any
exact search. Part 2, bigram model, short sentences: the exhaustive dynamic program (Bar-Hillel) against ours. Part 3,
forests of the first words of each sentence with the best rules only, small enough for programs and leaves: integer and
linear program (HiGHS), relaxation on leaves and paths, with and without partitions.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

import certus
from certus import ForestTranslation, Hypergraph, LanguageModel, NotSupported, SynchronousGrammar, TranslationForest
from certus.translation.leaf_program import solve_lp

WITHIN = (0.5, 1, 2, 4, 8, 16, 32)


def timed(function):
    start = time.process_time()
    value = function()
    return value, time.process_time() - start


def peers(folder: Path, order: int) -> dict[int, float]:
    """Best score of any listed run, by sentence."""
    best: dict[int, float] = {}
    for path in folder.glob(f"peers/cdec.{order}gram.*.json"):
        for sentence in json.loads(path.read_text())["sentences"]:
            best[sentence["id"]] = max(best.get(sentence["id"], -np.inf), sentence["model_score"])
    return best


def percentiles(name: str, seconds: np.ndarray) -> None:
    shares = "  ".join(f"{limit:g}s {100 * (seconds <= limit).mean():.0f}%" for limit in WITHIN)
    print(f"{name}: median {np.median(seconds):.3f} s, mean {seconds.mean():.3f}, most {seconds.max():.2f}; {shares}")


def full_forests(forests, lm, weight, known, limit) -> None:
    rows = []
    for i, forest in forests:
        problem = ForestTranslation(forest, lm, weight)
        result, seconds = timed(lambda p=problem: p.decode(time_limit=limit))
        relaxed, _ = timed(lambda p=problem: p.decode(time_limit=limit, exact=False, max_iterations=30))
        rows.append((result, seconds, known.get(i, np.nan), relaxed))
    exact = np.array([r.certificate.exact for r, _, _, _ in rows])
    gaps = [r.certificate.gap / abs(r.score) for r, _, _, _ in rows if not r.certificate.exact]
    print(f"certified: {exact.sum()} of {len(rows)}; largest gap left {100 * max(gaps, default=0.0):.2f}% of the score")
    percentiles("time", np.array([seconds for _, seconds, _, _ in rows]))
    ahead = np.array([r.score - best for r, _, best, _ in rows])
    print(
        f"best score of the peers: below it {(ahead < -1e-3).sum()}, equal {(np.abs(ahead) <= 1e-3).sum()}, "
        f"above {(ahead > 1e-3).sum()}; sum of scores {sum(r.score for r, _, _, _ in rows):.3f}"
    )
    alone = [r.certificate.gap <= 1e-6 for _, _, _, r in rows]
    gap = np.array([r.certificate.gap for _, _, _, r in rows])
    print(
        f"30 rounds of the bigram relaxation without exact search: closes the gap on {sum(alone)}; "
        f"gap left: median {np.median(gap):.4f}, most {gap.max():.3f}; "
        f"same translation score on {sum(np.isclose(a.score, b.score) for a, _, _, b in rows)}"
    )
    rounds = np.array([r.iterations for r, _, _, _ in rows])
    print(
        f"rounds before the search ended: 1 on {(rounds == 1).sum()}, median {np.median(rounds):g}, most {rounds.max()}"
    )
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB at most")


def exhaustive(forests, lm, weight, count) -> None:
    shortest = sorted(forests, key=lambda pair: pair[1].graph.n_edges)[:count]
    ours, theirs = [], []
    for _, forest in shortest:
        problem = ForestTranslation(forest, lm, weight)
        try:
            whole, seconds = timed(lambda p=problem: p.decode(method="intersection"))
        except NotSupported:
            continue
        result, quick = timed(problem.decode)
        assert np.isclose(result.score, whole.score)
        ours.append(quick)
        theirs.append(seconds)
    if ours:
        print(
            f"bigram, {len(ours)} of the {count} smallest forests: exhaustive {np.mean(theirs):.3f} s, "
            f"ours {np.mean(ours):.4f} s, ratio {np.sum(theirs) / np.sum(ours):.0f}; the others spell out too much"
        )


def best_rules(forest: TranslationForest, keep: int) -> TranslationForest:
    """The forest with the best rules of each vertex only."""
    graph = forest.graph
    chosen = []
    for v in range(graph.n_vertices):
        edges = np.arange(graph.in_ptr[v], graph.in_ptr[v + 1])
        chosen.append(np.sort(edges[np.argsort(-forest.weights[edges], kind="stable")[:keep]]))
    edges = np.concatenate(chosen)
    in_ptr = np.cumsum([0, *(len(c) for c in chosen)])
    tails = [graph.tail_of(e) for e in edges]
    sides = [forest.token[forest.token_ptr[e] : forest.token_ptr[e + 1]] for e in edges]
    small = Hypergraph(in_ptr, np.cumsum([0, *map(len, tails)]), np.concatenate(tails), graph.root)
    sides_ptr = np.cumsum([0, *map(len, sides)])
    return TranslationForest(small, sides_ptr, np.concatenate(sides), forest.words, forest.weights[edges])


def small_forests(sentences, grammar, lm, weight, length, keep) -> None:
    times: dict[str, list[float]] = {name: [] for name in ("search", "paths", "partitions", "ilp", "lp")}
    proved, fractional, partitions, agree, leaves = 0, 0, [], 0, []
    for words in sentences:
        problem = ForestTranslation(best_rules(grammar.forest(words[:length]), keep), lm, weight)
        result, seconds = timed(problem.decode)
        times["search"].append(seconds)
        for name in ("paths", "partitions", "ilp"):
            found, seconds = timed(lambda p=problem, m=name: p.decode(method=m, max_iterations=400))
            times[name].append(seconds)
            agree += np.isclose(found.score, result.score, atol=1e-6) or name == "paths"
            if name == "paths":
                proved += found.certificate.gap <= 1e-6
            if name == "partitions":
                partitions.append(found.info["partitions"])
                leaves.append(found.info["leaves"])
        lp, seconds = timed(lambda p=problem: solve_lp(p))
        times["lp"].append(seconds)
        fractional += lp.value > result.score + 1e-5
    n = len(sentences)
    q = np.array(partitions)
    print(
        f"{n} small forests ({length} words, {keep} rules per vertex, {np.mean(leaves):.0f} leaves): "
        f"all methods agree: {agree == 3 * n}"
    )
    print(
        f"leaves and paths: proved alone {proved}; linear program fractional {fractional}; tightened {(q > 1).sum()}, "
        f"of these with at most 6 partitions {((q > 1) & (q <= 6)).sum()}, 10 {((q > 1) & (q <= 10)).sum()}"
    )
    for name, seconds in times.items():
        ratio = np.sum(seconds) / np.sum(times["search"])
        print(f"  {name:10s} median {np.median(seconds):.4f} s, {ratio:.1f} times ours")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--order", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--small", type=int, default=30)
    options = parser.parse_args()
    folder = options.folder
    weights = json.loads((folder / "weights.json").read_text())["hiero"]["weights"]
    sentences = [line.split() for line in (folder / "test.de").read_text().splitlines()[: options.sentences]]
    grammar = SynchronousGrammar.read(
        folder / "hiero.de-en.gz",
        glue=folder / "hiero.glue.txt",
        weights=weights,
        source_words={word for sentence in sentences for word in sentence},
    )
    lms = {order: LanguageModel.read(folder / f"lm.en.{order}gram.arpa.gz") for order in {2, options.order}}
    forests = [(i, grammar.forest(words)) for i, words in enumerate(sentences)]
    for lm in lms.values():
        ForestTranslation(min((f for _, f in forests), key=lambda f: f.graph.n_edges), lm, weights["LM"]).decode()
    sizes = [f.graph.n_edges for _, f in forests]
    print(f"certus {certus.__version__}: {len(forests)} forests of {np.mean(sizes):.0f} edges, {max(sizes)} at most")
    for order in sorted({2, options.order}):
        print(f"-- {order}-gram")
        full_forests(forests, lms[order], weights["LM"], peers(folder, order), options.limit)
    print("-- exhaustive dynamic program")
    exhaustive(forests, lms[2], weights["LM"], 5)
    print("-- small forests, all methods")
    small_forests(sentences[: options.small], grammar, lms[options.order], weights["LM"], 3, 3)


if __name__ == "__main__":
    main()
