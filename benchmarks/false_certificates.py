"""Look for a false certificate: decode many random small problems and compare every claim with enumeration.

    python benchmarks/false_certificates.py [N] [--seed S] [--json]

Checks for each problem: the dual value at every iteration, and the final bound, are never below the optimum; the best
score so far is never above it; a certificate that says "exact" is right; "infeasible" is right; after the ladder every
problem is proved. One problem in fifty, and every one that needed branching, is also checked by certus.verify. Scores
are integers, so that ties abound and the optimum is known exactly. Exits with 1 if any claim was false.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import certus
from certus.constraints import at_least, at_most, at_most_one, budget, exactly, forbid, implies, linear, require
from certus.relax import steps

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from grid_mrf import grid

Rng = np.random.Generator
Drawn = tuple[certus.Problem[Any], float]  # a problem and its optimum by enumeration, -inf when infeasible


def scores(rng: Rng, *shape: int, forbidden: float = 0.03) -> np.ndarray:
    """Integers from -8 to 8, few of them -inf."""
    values = rng.integers(-8, 9, shape).astype(float)
    values[rng.random(shape) < forbidden] = -np.inf
    return values


def tagging(rng: Rng, n: int, size: int) -> certus.Tagging:
    """A tagging problem of order one, two or three."""
    order = int(rng.integers(1, 4))
    bigram = scores(rng, size, size) if order == 2 or (order == 3 and rng.random() < 0.5) else None
    trigram = scores(rng, size, size, size) if order == 3 else None
    return certus.Tagging(scores(rng, n, size), bigram=bigram, trigram=trigram)


def by_tags(problem: certus.Tagging) -> dict[tuple[int, ...], float]:
    """Score of every tag sequence, computed for all at once."""
    sequences = np.array(list(product(range(problem.size), repeat=problem.n)), dtype=np.int64)
    sequences = sequences.reshape(problem.size**problem.n, problem.n)
    total = problem.unary[np.arange(problem.n), sequences].sum(axis=1)
    if problem.bigram is not None:
        total = total + problem.bigram[sequences[:, :-1], sequences[:, 1:]].sum(axis=1)
    if problem.trigram is not None:
        total = total + problem.trigram[sequences[:, :-2], sequences[:, 1:-1], sequences[:, 2:]].sum(axis=1)
    return dict(zip(map(tuple, sequences.tolist()), total.tolist(), strict=True))


def random_grammar(rng: Rng) -> certus.Grammar:
    """Three phrases and three tags, about half of all binary rules, some unary ones."""
    phrases, tags = ("S", "X", "Y"), ("A", "B", "C")
    lines = [f'0 {tag} -> "w"' for tag in tags]
    lines += [
        f"{rng.integers(-8, 9)} {a} -> {b} {c}"
        for a, b, c in product(phrases, (*phrases[1:], *tags), (*phrases[1:], *tags))
        if rng.random() < 0.3
    ]
    lines += [f"{rng.integers(-8, 0)} {a} -> {b}" for a, b in (("S", "X"), ("X", "A"), ("S", "Y"), ("Y", "B"))]
    return certus.Grammar.from_text("\n".join(lines), root="S")


class Known:
    """A random grammar, and for every length the best score of the rules of any tree over each tag sequence."""

    def __init__(self, rng: Rng, longest: int) -> None:
        self.grammar = random_grammar(rng)
        size = len(self.grammar.tags)
        number = {tag: t for t, tag in enumerate(self.grammar.tags)}
        self.best = []
        for n in range(longest + 1):
            table = np.full((size,) * n, -np.inf)
            trees = certus.Constituency(self.grammar, ["w"] * n)  # all lexical scores are 0
            for tree in trees.all_structures() if n else ():
                tags = tuple(number[t] for t in tree.tags())
                table[tags] = max(table[tags], trees.score(tree))
            self.best.append(table.ravel())


def parsing_and_tagging(rng: Rng, known: list[Known]) -> Drawn:
    """A random grammar with random lexical scores, and a tagger that must agree with it."""
    k = known[int(rng.integers(len(known)))]
    n, size = int(rng.integers(1, len(k.best))), len(k.grammar.tags)
    lexical = scores(rng, n, size)
    tags = tagging(rng, n, size)
    weight = float(rng.choice([0.5, 1.0, 2.0]))
    total = k.best[n] + np.array(list(by_tags(certus.Tagging(lexical)).values()))
    total = total + weight * np.array(list(by_tags(tags).values()))
    trees = certus.Constituency(k.grammar, ["w"] * n, lexical=lexical)
    return certus.Joint(trees, tags, on="tags", weight=weight), float(total.max())


def taggings(rng: Rng) -> Drawn:
    """Two or three taggings that agree."""
    n, size = int(rng.integers(0, 5)), int(rng.integers(1, 4))
    a, b, c = (tagging(rng, n, size) for _ in range(3))
    tables = [by_tags(p) for p in (a, b, c)]
    if rng.random() < 0.5:
        return certus.Joint(a, b, on="tags"), max(tables[0][y] + tables[1][y] for y in tables[0])
    joint = certus.Joint(certus.Joint(a, b, on="tags"), c, on="tags")
    return joint, max(sum(table[y] for table in tables) for y in tables[0])


def constraint(rng: Rng, n: int, size: int) -> certus.constraints.Constraint:
    """One constraint of any kind on random parts."""
    cells = [(i, t) for i in range(n) for t in range(size)]
    chosen = [cells[k] for k in rng.permutation(len(cells))[: rng.integers(1, 5)]]
    a, b = (("tags", cells[int(rng.integers(len(cells)))]) for _ in range(2))
    made: list[Callable[[], certus.constraints.Constraint]] = [
        lambda: at_most(int(rng.integers(0, 3)), "tags", chosen),
        lambda: at_least(int(rng.integers(0, 3)), "tags", chosen),
        lambda: exactly(int(rng.integers(0, 3)), "tags", chosen),
        lambda: at_most_one("tags", chosen),
        lambda: implies(a, b),
        lambda: forbid(*a),
        lambda: require(*b),
        lambda: budget("tags", rng.integers(0, 5, (n, size)), float(rng.integers(0, 12))),
        lambda: linear([(float(rng.integers(-3, 4)), "tags", c) for c in chosen], "<=", float(rng.integers(-1, 3))),
    ]
    return made[int(rng.integers(len(made)))]()


def constrained(rng: Rng) -> Drawn:
    """A tagging under one to three constraints."""
    n, size = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    problem = tagging(rng, n, size)
    limited = problem.subject_to(*(constraint(rng, n, size) for _ in range(rng.integers(1, 4))))
    table = by_tags(problem)
    best = max((s for y, s in table.items() if not limited.violated(np.array(y))), default=-np.inf)
    return limited, best


def random_grid(rng: Rng) -> Drawn:
    """A grid of pixels with two or three labels."""
    rows, columns, k = 2, int(rng.integers(2, 4)), 2
    unary, pairwise = 2.0 * rng.integers(-4, 5, (rows, columns, k)), rng.integers(-8, 9, (k, k)).astype(float)
    labels = np.array(list(product(range(k), repeat=rows * columns))).reshape(-1, rows, columns)
    total = unary[np.arange(rows)[:, None], np.arange(columns), labels].sum(axis=(1, 2))
    total += pairwise[labels[:, :, :-1], labels[:, :, 1:]].sum(axis=(1, 2))
    total += pairwise[labels[:, :-1], labels[:, 1:]].sum(axis=(1, 2))
    return grid(unary, pairwise), float(total.max())


def drawn(rng: Rng, count: int) -> Iterator[tuple[str, Drawn]]:
    """Problems of every kind, most of them parsing and tagging."""
    known = [Known(rng, longest=4) for _ in range(20)]
    for _ in range(count):
        which = rng.random()
        if which < 0.55:
            yield "parsing and tagging", parsing_and_tagging(rng, known)
        elif which < 0.75:
            yield "taggings", taggings(rng)
        elif which < 0.9:
            yield "constrained", constrained(rng)
        else:
            yield "grid", random_grid(rng)


RULES = [None, None, None, steps.per_increase(2.0), steps.halving(2.0), steps.inverse_sqrt(2.0), steps.constant(1.0)]


def check(problem: certus.Problem[Any], best: float, number: int, counts: Counter[str]) -> list[str]:
    """The claims about one problem that are false."""
    limits: dict[str, Any] = {"step": RULES[number % len(RULES)]}
    try:
        early = problem.decode(max_iterations=1 + number % 20, exact=False, **limits) if number % 3 == 0 else None
        result = problem.decode(**limits)
    except certus.Infeasible:
        counts["infeasible"] += 1
        return [] if best == -np.inf else ["infeasible, though there is a structure"]
    if best == -np.inf:
        return ["a structure, though there is none"]
    false = []
    for r in (result, *([early] if early else [])):
        c = r.certificate
        counts["iterations"] += r.iterations
        if c.bound < best - c.tolerance:
            false.append(f"bound {c.bound!r} below the optimum {best!r}")
        if c.exact and r.score < best - c.tolerance:
            false.append(f"certified {r.score!r}, though the optimum is {best!r}")
        if r.score > best + c.tolerance:
            false.append(f"score {r.score!r} above the optimum {best!r}")
        if len(r.trace) and (r.trace.dual.min() < best - c.tolerance or r.trace.primal.max() > best + c.tolerance):
            false.append("weak duality broken on the way")
        if number % 50 == 0 or c.kind == "branch and bound":
            certus.verify(problem, r)
            counts["verified"] += 1
    if not result.certificate.exact:
        false.append(f"left open: {result!r}")
    counts[result.certificate.kind] += 1
    return false


def main() -> int:
    parser = argparse.ArgumentParser(description="Look for a false certificate in random small problems.")
    parser.add_argument("n", nargs="?", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    false: list[str] = []
    started = time.perf_counter()
    number = 0
    for number, (kind, (problem, best)) in enumerate(drawn(rng, options.n), 1):
        kinds[kind] += 1
        try:
            claims = check(problem, best, number, counts)
        except certus.VerificationError as error:
            claims = [f"not verified: {error}"]
        for claim in claims:
            false.append(f"problem {number} ({kind}): {claim}")
            print("FALSE:", false[-1], file=sys.stderr, flush=True)
        if number % 5000 == 0:
            seconds = time.perf_counter() - started
            print(
                f"{number} problems, {seconds:.0f} s, {dict(counts)}, {len(false)} false", file=sys.stderr, flush=True
            )
    report = {"problems": number, "kinds": dict(kinds), **dict(counts), "false": len(false)}
    report["seconds"] = round(time.perf_counter() - started, 1)
    if options.json:
        print(json.dumps(report))
    else:
        for name, value in report.items():
            print(f"{name}: {value}")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
