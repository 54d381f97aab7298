"""Higher-order non-projective decoding against enumeration on many random small problems; prints what was counted.

    python benchmarks/check_nonprojective.py [--problems 20000] [--seed 0]

Scores are whole numbers in [-8, 8], so that ties are common and comparisons exact; some parts are -inf; n is 0 to 4,
roots are single and multi. For every problem: the score equals the best over all trees, scored one by one by code of
this file; the certificate is exact; with no branching the dual is above the optimum at every iteration; one in a
hundred results is verified in plain Python. Any failure stops the run.
"""

import argparse
import time
from collections import Counter
from functools import cache
from itertools import product

import numpy as np

import certus
from certus.dependency import nonprojective

# decoder: kinds of parts, and which modifiers count with the head of their head
DECODERS = {
    "siblings": (("sibling",), "all"),
    "n-gram siblings": (("sibling", "trisibling"), "all"),
    "grandparents": (("grandparent",), "all"),
    "grandparents + siblings": (("sibling", "grandparent"), "all"),
    "outermost grandparents + siblings": (("sibling", "grandparent"), "outermost"),
    "grandsiblings": (("sibling", "grandparent", "grandsibling"), "all"),
    "grandsiblings + n-gram siblings": (("sibling", "grandparent", "grandsibling", "trisibling"), "all"),
    "ends of sides": (("sibling", "stop", "null"), "all"),
}
AXES = {"sibling": 3, "grandparent": 3, "grandsibling": 4, "trisibling": 4}


def is_tree(heads, single):
    n = len(heads) - 1
    if single and n and heads[1:].count(0) != 1:
        return False
    for m in range(1, n + 1):
        seen = set()
        while m:
            if m in seen:
                return False
            seen.add(m)
            m = heads[m]
    return True


def parts_of(heads, outermost):
    """Every part of a tree: (kind, index)."""
    n = len(heads) - 1
    for h, side in product(range(n + 1), (0, 1)):
        modifiers = [m for m in range(1, n + 1) if heads[m] == h and (m > h) == bool(side)]
        if not side:
            modifiers.reverse()
        if h or side:
            yield "stop", (h, side, modifiers[-1] if modifiers else h)
        if h and not modifiers:
            yield "null", (heads[h], h, side)
        for k, m in enumerate(modifiers):
            s = modifiers[k - 1] if k else h
            yield "arc", (h, m)
            yield "sibling", (h, s, m)
            if h and (not outermost or k == len(modifiers) - 1):
                yield "grandparent", (heads[h], h, m)
                yield "grandsibling", (heads[h], h, s, m)
            if k:
                yield "trisibling", (h, modifiers[k - 2] if k > 1 else h, s, m)


@cache
def all_parts(n, single, outermost):
    """For every tree and kind, the indices of its parts."""
    heads = ((-1, *h) for h in product(range(n + 1), repeat=n))
    out = []
    for tree in heads:
        if is_tree(list(tree), single):
            parts = {}
            for kind, index in parts_of(list(tree), outermost):
                parts.setdefault(kind, []).append(index)
            out.append({kind: tuple(np.array(indices).T) for kind, indices in parts.items()})
    return out


def best_score(arrays, n, single, outermost):
    best = -np.inf
    for parts in all_parts(n, single, outermost):
        best = max(best, sum(float(a[parts[kind]].sum()) for kind, a in arrays.items() if kind in parts))
    return best


def draw(rng, kinds, n):
    def scores(shape, forbidden):
        values = rng.integers(-8, 9, size=shape).astype(np.float64)
        values[rng.random(shape) < forbidden] = -np.inf
        return values

    arrays = {"arc": scores((n + 1, n + 1), rng.choice([0.0, 0.1, 0.3]))}
    for kind in kinds:
        shape = {"stop": (n + 1, 2, n + 1), "null": (n + 1, n + 1, 2)}.get(kind, (n + 1,) * AXES.get(kind, 0))
        arrays[kind] = scores(shape, rng.choice([0.0, 0.05]))
    return arrays


def check(decoder, problems, seed):
    kinds, grandparents = DECODERS[decoder]
    rng = np.random.default_rng(seed)
    counts = Counter()
    started = time.perf_counter()
    for k in range(problems):
        n = int(rng.choice([0, 1, 2, 3, 4], p=[0.01, 0.04, 0.15, 0.4, 0.4]))
        single = bool(rng.integers(2))
        arrays = draw(rng, kinds, n)
        problem = certus.Dependency(**arrays, root="single" if single else "multi", grandparents=grandparents)
        best = best_score(arrays, n, single, grandparents == "outermost")
        try:
            result = nonprojective.decode(problem)
        except certus.Infeasible:
            assert best == -np.inf, (decoder, k, best)
            counts["infeasible"] += 1
            continue
        assert result.score == best, (decoder, k, result, best)
        assert result.certificate.exact, (decoder, k, result)
        if result.certificate.kind == "dual":
            assert (result.trace.dual >= best - problem.tolerance()).all(), (decoder, k)
        if k % 100 == 0:
            certus.verify(problem, result)
            counts["verified"] += 1
        counts[result.certificate.kind] += 1
        counts["most nodes"] = max(counts["most nodes"], result.info["nodes"])
    seconds = time.perf_counter() - started
    shown = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"{decoder}: {problems} problems equal to enumeration in {seconds:.0f} s ({shown})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=20_000, help="random problems per decoder")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for decoder in DECODERS:
        check(decoder, arguments.problems, arguments.seed)
    print("no false certificate, no missed optimum.")


if __name__ == "__main__":
    main()
