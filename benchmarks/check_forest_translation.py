"""Forest translation against enumeration on many random small forests; prints what was counted.

    python benchmarks/check_forest_translation.py [--forests 20000] [--seed 0]

Language models of order 1 to 4 with random n-grams and back-offs of both signs, weights of the model of both signs and
0, forests with reordering, shared vertices, rules that yield nothing, edges of -inf. For every forest the search finds
the best of all derivations and says so. On some of them: beam search and intersection do the same, the other methods
never claim more than they have, k-best lists are those of the enumeration, results are verified in plain Python. Any
failure stops the run.
"""

import argparse
import time
from collections import Counter

import numpy as np

import certus
from certus import ForestTranslation, Hypergraph, Infeasible, LanguageModel, NotSupported, TranslationForest
from certus.io.arpa import BEGIN, END, UNKNOWN, Arpa, Ngrams

CLOSE = 1e-9
MOST_DERIVATIONS = 200
EXACT = ("search", "beam", "intersection")
BOUNDED = ("cube", "simple", "paths", "partitions")


def random_lm(rng, words, order):
    names = [UNKNOWN, BEGIN, END, *words]

    def backs(size):
        return np.where(rng.random(size) < 0.3, 0.0, rng.normal(size=size))

    rows = np.arange(len(names))[:, None]
    grams = [Ngrams(rows.astype(np.int32), -rng.random(len(names)), backs(len(names)))]
    for k in range(2, order + 1):
        longer = np.array([(*row, w) for row in rows if row[-1] != 2 for w in range(2, len(names))]).reshape(-1, k)
        rows = longer[rng.random(len(longer)) < rng.choice([0.1, 0.4, 0.9])]
        back = backs(len(rows)) if k < order else np.zeros(len(rows))
        grams.append(Ngrams(rows.astype(np.int32).reshape(-1, k), -3 * rng.random(len(rows)), back))
    return LanguageModel(Arpa(names, grams))


def random_forest(rng, words, n_vertices, empty):
    in_ptr, tail_ptr, tail, token_ptr, token = [0], [0], [], [0], []
    for v in range(n_vertices):
        for _ in range(rng.integers(1, 4)):
            below = [int(u) for u in rng.integers(max(0, v - 3), v, size=rng.integers(0, 3))] if v else []
            side = [~j for j in range(len(below))]
            for _ in range(rng.integers(0, 3) if below else (0 if rng.random() < empty else rng.integers(1, 4))):
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


def all_scores(forest, lm, lm_weight):
    """Every derivation that is not forbidden, with its score; None if there are too many."""
    scores, yields = {}, {}
    for i, edges in enumerate(forest.graph.hyperpaths()):
        if i >= MOST_DERIVATIONS:
            return None
        rules = sum(float(forest.weights[e]) for e in edges)
        if rules > -np.inf:
            words = tuple(forest.yields(edges))
            if words not in yields:
                yields[words] = lm.score(words)
            scores[tuple(edges)] = rules + lm_weight * yields[words]
    return scores


def check(problem, scores, rng, counts, number):
    best = max(scores.values())
    for method in (*(EXACT if number % 4 == 0 else EXACT[:1]), *(BOUNDED if number % 20 == 0 else ())):
        try:
            result = problem.decode(method=method)
        except NotSupported:
            counts[f"{method}: not for this forest"] += 1
            continue
        certificate = result.certificate
        assert abs(scores[tuple(result.structure.tolist())] - result.score) <= CLOSE, method
        assert certificate.bound >= best - CLOSE, (method, certificate, best)
        assert method in EXACT or (result.trace.dual >= best - CLOSE).all(), method
        if certificate.exact:
            assert abs(result.score - best) <= CLOSE, (method, certificate, best)
        counts[f"{method}: {'exact' if certificate.exact else 'gap left'}"] += 1
        assert method not in EXACT or certificate.exact, (method, certificate)
        if number % 50 == 0 and method == "search":
            certus.verify(problem, result)
            counts["verified"] += 1
    k = int(rng.integers(1, 9))
    if number % 5 == 0:
        found = [r.score for r in problem.kbest(k)]
        assert np.allclose(found, sorted(scores.values(), reverse=True)[:k], rtol=0, atol=CLOSE)
        counts["k-best lists"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forests", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    counts: Counter[str] = Counter()
    start, number = time.process_time(), 0
    lm = None
    while number < options.forests:
        words = list("abcd")[: rng.integers(1, 5)]
        if lm is None or number % 10 == 0 or len(lm.words) - 3 > len(words):
            lm = random_lm(rng, words, int(rng.integers(1, 5)))
        forest = random_forest(rng, words, int(rng.integers(1, 7)), 0.15 if rng.random() < 0.3 else 0.0)
        lm_weight = float(rng.choice([0.0, 1.0, 0.5, -1.0, 2.0]))
        problem = ForestTranslation(forest, lm, lm_weight)
        scores = all_scores(forest, lm, lm_weight)
        if scores is None:
            continue
        number += 1
        if scores:
            check(problem, scores, rng, counts, number)
            continue
        counts["no derivation"] += 1
        for method in EXACT:
            try:
                problem.decode(method=method)
            except Infeasible:
                continue
            raise AssertionError(f"{method} found a derivation where there is none")
    seconds = time.process_time() - start
    print(f"{number} forests in {seconds:.0f} s, no false certificate")
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count}")


if __name__ == "__main__":
    main()
