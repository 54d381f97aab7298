"""Lexicalised parsing, alone and jointly, on random small grammars against enumeration of all trees.

    python benchmarks/check_lexicalized.py [N] [--seed S]

Draws grammars over spines with integer scores and sentences of up to four words, lists all their trees without a chart,
and for each of them many joint problems: with a dependency parser of order one or two on arcs, with a tagger on tags,
or with both. Checks that every bound, at every round, is at least the optimum, that no score is above it, that what is
called exact or infeasible is so, and that after the ladder everything is proved; half of the relaxations are first
solved over the trees close to the best. One problem in fifty, and every one that needed branching, is also checked by
certus.verify. Exits with 1 if any claim was false.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import certus
from certus.constituency import lexicalized

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.constituency.spines import RandomSpines, trees

EACH = 50  # joint problems a sentence
Rng = np.random.Generator


def scores(rng: Rng, *shape: int) -> np.ndarray:
    """Integers from -8 to 8, few of them -inf."""
    values = rng.integers(-8, 9, shape).astype(float)
    values[rng.random(shape) < 0.03] = -np.inf
    return values


def sentences(rng: Rng) -> Iterator[tuple[certus.LexicalizedConstituency, dict[Any, float]]]:
    """Problems and their trees with scores."""
    while True:
        grammar = RandomSpines(int(rng.integers(2**31)))
        words = rng.choice(list("aabbc,"), size=4 if rng.random() < 0.01 else int(rng.integers(1, 4))).tolist()
        yield certus.LexicalizedConstituency(grammar, words), dict(trees(grammar, words))


def drawn(rng: Rng, problem: certus.LexicalizedConstituency, found: dict[Any, float]) -> tuple[certus.Joint, float]:
    """A joint problem and its optimum, -inf if there is none."""
    n = problem.n
    sibling = scores(rng, *(n + 1,) * 3) if rng.random() < 0.7 else None
    arcs = certus.Dependency(scores(rng, n + 1, n + 1), sibling=sibling, projective=True)
    tags = certus.Tagging(scores(rng, n, 3), bigram=scores(rng, 3, 3), tags=problem.tags)
    a, b = (float(x) for x in rng.choice([0.5, 1.0, 2.0], 2))
    kind = rng.integers(3)
    total = dict(found)
    joint: Any = problem
    if kind != 0:
        joint = certus.Joint(joint, tags, on="tags", weight=a)
        numbers = {tree: np.array([problem.tags.index(t) for t in tree.tags]) for tree in found}
        total = {tree: score + a * tags.score(numbers[tree]) for tree, score in total.items()}
    if kind != 1:
        joint = certus.Joint(joint, arcs, on="arcs", weight=b)
        total = {tree: score + b * arcs.score(tree.dependencies) for tree, score in total.items()}
    return joint, max(total.values(), default=-np.inf)


def check(joint: certus.Joint, best: float, number: int, counts: Counter[str]) -> list[str]:
    """The claims about one problem that are false."""
    try:
        result = joint.decode()
    except certus.Infeasible:
        counts["infeasible"] += 1
        return [] if best == -np.inf else ["infeasible, though there is a structure"]
    if best == -np.inf:
        return ["a structure, though there is none"]
    c, false = result.certificate, []
    counts[c.kind] += 1
    if not c.exact:
        false.append(f"left open: {result!r}")
    if abs(result.score - best) > c.tolerance or c.bound < best - c.tolerance:
        false.append(f"{result!r}, though the optimum is {best!r}")
    rehearsed = result.info.get("rehearsed", 0)  # over fewer trees: their bounds are of those only
    if (result.trace.dual[rehearsed:] < best - c.tolerance).any() or (result.trace.primal > best + c.tolerance).any():
        false.append("weak duality broken on the way")
    if number % 50 == 0 or c.kind == "branch and bound":
        certus.verify(joint, result)
        counts["verified"] += 1
    return false


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    counts: Counter[str] = Counter()
    false, number, started = 0, 0, time.perf_counter()
    for problem, found in sentences(rng):
        best = max(found.values(), default=-np.inf)
        try:
            alone = problem.decode().score
        except certus.Infeasible:
            alone = -np.inf
        counts["sentences"] += 1
        claims = [] if alone == best else [f"parser alone: {alone} for {best}"]
        for _ in range(min(EACH, options.n - number)):
            number += 1
            lexicalized.SHORT = 0 if number % 2 else 6
            lexicalized.REHEARSAL = float(rng.integers(0, 12))
            joint, optimum = drawn(rng, problem.within(np.inf) if number % 10 == 0 else problem, found)
            try:
                claims += check(joint, optimum, number, counts)
            except certus.VerificationError as error:
                claims.append(f"not verified: {error}")
        for claim in claims:
            false += 1
            print(f"FALSE, problem {number} ({problem.words}): {claim}", file=sys.stderr, flush=True)
        if number >= options.n:
            break
    print(f"{number} joint problems, {dict(counts)}, {false} false, {time.perf_counter() - started:.0f} s")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
