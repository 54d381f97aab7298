"""Phrase-based translation against enumeration on many random small problems; prints what was counted.

    python benchmarks/check_phrase_translation.py [--problems 20000] [--seed 0]

One to five source words, options of up to three words with and without target words, some forbidden; back-off models of
order 1 to 4 with missing contexts; every kind of limit; weights of either sign. For every problem: each exact method's
score equals the best over all orders of all segmentations, scored one by one; no method's certificate is false or its
bound below the optimum; k-best lists of every tenth problem equal the sorted list; one in a hundred results is verified
in plain Python. Any failure stops the run.
"""

import argparse
import time
from collections import Counter

import numpy as np

import certus
from certus import LanguageModel, PhraseOption, PhraseTranslation
from certus.io.arpa import Arpa, Ngrams
from certus.translation.phrase_decoding import METHODS

WORDS = ["<unk>", "<s>", "</s>", "a", "b", "c", "d"]
MOST = 3000  # translations of a problem
CLOSE = 1e-9


def random_lm(rng):
    order = int(rng.integers(1, 5))
    orders, shorter = [], [()]
    for n in range(1, order + 1):
        if n == 1:
            grams = [(w,) for w in range(len(WORDS))]
        else:
            grams = sorted({(*c, int(w)) for c in shorter if rng.random() < 0.6 for w in rng.choice(len(WORDS), 2)})
            grams = [g for g in grams if rng.random() < 0.9]
        value = rng.integers(-8, 1, len(grams)) / 4
        back = rng.choice([0.0, 0.0, -0.5, -1.0, 0.25], len(grams)) if n < order else np.zeros(len(grams))
        orders.append(Ngrams(np.array(grams, dtype=np.int32).reshape(-1, n), value, back))
        shorter = grams
    return LanguageModel(Arpa(WORDS, orders))


def random_problem(rng, lm):
    n = int(rng.integers(1, 6))
    options = []
    for i in range(n):
        for j in range(i, min(n, i + 3)):
            for _ in range(int(rng.choice([0, 1, 1, 1, 2])) if i == j else int(rng.choice([0, 0, 1]))):
                target = tuple(rng.choice([*WORDS[3:], "unknown"], int(rng.choice([0, 1, 1, 2, 2, 3]))).tolist())
                score = float(rng.integers(-8, 9)) if rng.random() < 0.95 else -np.inf
                options.append(PhraseOption(i, j, target, score))
    limit = rng.choice([None, 0, 1, 2, 3, 6])
    return PhraseTranslation(
        [options[k] for k in rng.permutation(len(options))],
        lm,
        source=[f"w{i}" for i in range(n)],
        lm_weight=float(rng.choice([1, 1, 2, 0.5, 0, -1])),
        distortion=float(rng.choice([0, 0.5, 1, 4, -1])),
        distortion_limit=None if limit is None else int(limit),
        window=bool(rng.integers(2)),
    )


def check(problem, number, counts):
    structures = []
    for structure in problem.all_structures():
        structures.append(structure)
        if len(structures) > MOST:
            counts["left out: too many translations"] += 1
            return
    scores = sorted((s for s in map(problem.score, structures) if s > -np.inf), reverse=True)
    for method in METHODS:
        try:
            result = problem.decode(method=method, width=3)
        except certus.Infeasible:
            assert not scores, (number, method)
            counts["infeasible"] += 1
            continue
        except certus.LimitReached:
            assert method in ("beam", "stack"), (number, method)
            continue
        best = scores[0]
        assert result.score <= best + CLOSE, (number, method, result, best)
        assert result.certificate.bound >= best - CLOSE, (number, method, result, best)
        if result.certificate.exact:
            assert abs(result.score - best) <= CLOSE, (number, method, result, best)
            counts[f"{method}: {result.certificate.kind}"] += 1
        else:
            assert method in ("beam", "stack"), (number, method, result, best)
            counts[f"{method}: not proved"] += 1
        if number % 100 == 0:
            certus.verify(problem, result)
            counts["verified"] += 1
    if scores and number % 10 == 0:
        found = [r.score for r in problem.kbest(8)]
        assert np.allclose(found, scores[:8], atol=CLOSE), (number, found, scores[:8])
        assert len(found) == min(8, len(scores)), number
        counts["k-best lists"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    counts = Counter()
    started = time.perf_counter()
    for number in range(arguments.problems):
        if number % 5 == 0:
            lm = random_lm(rng)
        check(random_problem(rng, lm), number, counts)
    print(f"{arguments.problems} problems in {time.perf_counter() - started:.0f} s")
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count}")
    print("no false certificate, no missed optimum.")


if __name__ == "__main__":
    main()
