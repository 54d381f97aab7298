"""Loose problems: joint taggers, grids of labels, graphs, glasses, covers, tours, proved; some by HiGHS too."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, sparse

import certus
from certus.bench.cases import Row, Skipped
from certus.bench.tours import Tours, by_highs
from certus.errors import LimitReached
from certus.relax import smoothing, steps, tightening
from certus.relax.linear import highs

COUPLINGS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "attractive": lambda rng, size: np.eye(size) * abs(rng.normal()),
    "mixed": lambda rng, size: np.eye(size) * rng.normal(),
    "tables": lambda rng, size: rng.normal(size=(size, size)),
}

SMOOTHED = {", without smoothing": (0.0, tightening.ROUNDS), "": (smoothing.MOST, tightening.ROUNDS)}
CUT = {", without cuts": (smoothing.MOST, 0), "": (smoothing.MOST, tightening.ROUNDS)}


def run(
    taggings: int = 200,
    relaxed: int = 20,
    grids: int = 20,
    side: int = 10,
    labels: int = 5,
    tours: int = 5,
    *,
    graphs: int = 10,
    rungs: int = 5,
    seconds: float = 15.0,
    example: str = "examples/tsp.py",
) -> Iterator[Row | Skipped]:
    """``relaxed`` of the taggings are also decoded without merging; ``tours`` are of 20 to 50 cities each.

    ``graphs`` of semantic dependencies have ordinary scores: normal ones, of arcs less likely than not.

    ``rungs`` of each of some loose kinds are decoded with and without smoothing, cuts and clusters, in turns.
    ``seconds`` is the limit for each problem, ``example`` the file that tours are made by; 0 leaves a part out.
    """
    if taggings:
        yield from _taggings(taggings, relaxed, seconds)
    if grids:
        yield from _grids(grids, side, labels, seconds)
    if graphs:
        yield from _graphs(graphs, seconds)
    if rungs:
        yield from _rungs(rungs, seconds)
    if tours and Path(example).exists():
        yield from _tours(Tours.of(Path(example)), tours, seconds)
    elif tours:
        yield Skipped(f"tours: there is no file {example}; run this where the examples are, or name the file.")


def _rungs(count: int, seconds: float) -> Iterator[Row]:
    kinds: dict[str, tuple[Callable[[int], Any], dict[str, tuple[float, int]]]] = {
        "loose grids 20 x 20, 2 labels": (lambda seed: _loose_grid(20, 2, seed), SMOOTHED),
        "loose grids 20 x 20, 3 labels": (lambda seed: _loose_grid(20, 3, seed), SMOOTHED),
        "glasses of 30 variables": (lambda seed: _glass(30, seed, 0), SMOOTHED),
        "vertex covers of 50 vertices": (_vertex_cover, CUT),
        "knapsacks of 50 things": (_knapsack, CUT),
    }
    for name, (made, ways) in kinds.items():
        yield from _in_turns(name, [made(seed) for seed in range(count)], ways, seconds)
    both = [_glass(20, seed, clusters) for seed in range(count) for clusters in (0, 4)]
    for clusters in (0, 4):
        name = f"glasses of 20 variables, {clusters} clusters"
        yield from _in_turns(name, both[clusters // 4 :: 2], {"": (smoothing.MOST, tightening.ROUNDS)}, seconds)


def _in_turns(name: str, problems: list[Any], ways: dict[str, tuple[float, int]], seconds: float) -> Iterator[Row]:
    """Each problem in all ways, one after the other: how far the dual is smoothed, and rounds of tightening."""
    before = smoothing.MOST, tightening.ROUNDS
    problems[0].decode(max_iterations=1, exact=False)  # compiles
    found: dict[str, list[tuple[float, int, bool]]] = {way: [] for way in ways}
    try:
        for problem in problems:
            for way, (smoothing.MOST, tightening.ROUNDS) in ways.items():
                begun = time.process_time()
                result = problem.decode(time_limit=seconds)
                own = result.info.get("nodes", 1), result.certificate.exact
                found[way].append((time.process_time() - begun, *own))
    finally:
        smoothing.MOST, tightening.ROUNDS = before
    for way, rows in found.items():
        times, nodes, exact = zip(*rows, strict=True)
        yield _row(f"{name}{way}", list(times), sum(exact), nodes=float(np.median(nodes)))


def _loose_grid(side: int, labels: int, seed: int) -> certus.FactorGraph:
    return _grid(COUPLINGS["mixed"], side, labels, seed, field=0.05)


def _glass(n: int, seed: int, clusters: int) -> certus.FactorGraph:
    rng, unlike = np.random.default_rng(seed), np.array([[1.0, -1.0], [-1.0, 1.0]])
    unary = rng.normal(size=(n, 2))
    pairs = {(i, j): rng.normal() * unlike for i in range(n) for j in range(i + 1, n)}
    return certus.FactorGraph(unary, pairs, clusters=clusters)


def _vertex_cover(seed: int) -> certus.SetCover:
    """Of 125 edges."""
    rng, edges = np.random.default_rng(seed), set[tuple[int, int]]()
    while len(edges) < 125:
        i, j = sorted(rng.choice(50, 2, replace=False).tolist())
        edges.add((i, j))
    members = [[k for k, edge in enumerate(sorted(edges)) if v in edge] for v in range(50)]
    return certus.SetCover(rng.integers(3, 8, size=50).astype(float), members, 125)


def _knapsack(seed: int) -> certus.Knapsack:
    rng = np.random.default_rng(seed)
    cost = rng.integers(5, 60, size=50)
    return certus.Knapsack(cost + rng.integers(0, 15, size=50), cost, int(cost.sum() // 2))


def _tours(made: Tours, count: int, seconds: float) -> Iterator[Row]:
    for cities in (20, 30, 40, 50):
        distances = [made.random_cities(cities, seed) for seed in range(count)]
        problems = [made.tours(distance) for distance in distances]
        yield _proved(f"tours of {cities} cities", problems, seconds, step=steps.deflected())
        found = [by_highs(distance, seconds) for distance in distances]
        times, proved = [taken for _, taken, _ in found], sum(exact for _, _, exact in found)
        yield _row(f"tours of {cities} cities: HiGHS", times, proved)


def _taggings(taggings: int, relaxed: int, seconds: float) -> Iterator[Row]:
    yield _proved("two taggers, n = 20, T = 6", [_taggers(k, merge=True) for k in range(taggings)], seconds)
    if relaxed:
        yield _proved("the same, relaxed", [_taggers(k, merge=False) for k in range(relaxed)], seconds)


def _grids(grids: int, side: int, labels: int, seconds: float) -> Iterator[Row]:
    for name, coupling in COUPLINGS.items():
        made = [_grid(coupling, side, labels, seed) for seed in range(grids)]
        title = f"grid {side} x {side}, {labels} labels, {name}"
        yield _proved(title, made, seconds)
        yield _by_highs(f"{title}: HiGHS", made, seconds)


def _graphs(count: int, seconds: float) -> Iterator[Row]:
    all_kinds = ("sibling", "coparent", "grandparent")
    for n, scale, kinds, heads in (
        (20, 0.1, all_kinds[2:], None),
        (20, 0.2, all_kinds[2:], None),
        (20, 0.1, all_kinds, None),
        (20, 0.2, all_kinds, None),
        (20, 0.3, all_kinds[:2], None),
        (40, 0.2, all_kinds, 6),
    ):
        among = "" if heads is None else f", {heads} heads a word"
        title = f"graphs of {n} words{among}, {'three kinds' if len(kinds) == 3 else ' + '.join(kinds)} {scale:g}"
        yield _proved(title, [_graph(n, scale, kinds, heads, seed) for seed in range(count)], seconds)


def _graph(n: int, scale: float, kinds: tuple[str, ...], heads: int | None, seed: int) -> certus.DependencyGraph:
    """Scores of arcs have mean -2 and deviation 2, those of pairs deviation ``scale``; ``heads`` are left to a word."""
    rng = np.random.default_rng(seed)
    arc = 2.0 * rng.normal(size=(n + 1, n + 1)) - 2.0
    for m in range(1, n + 1) if heads is not None else ():
        left = rng.choice(np.delete(np.arange(n + 1), m), heads, replace=False)
        arc[np.setdiff1d(np.arange(n + 1), left), m] = -np.inf
    return certus.DependencyGraph(arc, **{kind: scale * rng.normal(size=(n + 1,) * 3) for kind in kinds})


def _taggers(seed: int, *, merge: bool) -> certus.Joint:
    rng = np.random.default_rng(seed)
    a, b = (certus.Tagging(rng.normal(size=(20, 6)), bigram=3.0 * rng.normal(size=(6, 6))) for _ in range(2))
    return certus.Joint(a, b, on="tags", merge=merge)


def _grid(
    coupling: Callable[[np.random.Generator, int], Any], side: int, labels: int, seed: int, *, field: float = 1.0
) -> certus.FactorGraph:
    rng, pixel = np.random.default_rng(seed), np.arange(side * side).reshape(side, side)
    unary = field * rng.normal(size=(side * side, labels))
    pairs = [
        *zip(pixel[:, :-1].flat, pixel[:, 1:].flat, strict=True),
        *zip(pixel[:-1].flat, pixel[1:].flat, strict=True),
    ]
    return certus.FactorGraph(unary, {(int(i), int(j)): coupling(rng, labels) for i, j in pairs})


def _row(name: str, times: list[float], proved: int, **more: float) -> Row:
    cells = {"problems": len(times), "proved %": 100.0 * proved / max(len(times), 1)}
    return Row(name, cells | {"median s": float(np.median(times)), "most s": max(times)} | more)


def _proved(name: str, problems: list[Any], seconds: float, **options: Any) -> Row:
    problems[0].decode(max_iterations=1, exact=False)  # compiles
    times, proved = [], 0
    for problem in problems:
        begun = time.perf_counter()
        proved += problem.decode(time_limit=seconds, **options).certificate.exact
        times.append(time.perf_counter() - begun)
    return _row(name, times, proved)


def _by_highs(name: str, graphs: list[certus.FactorGraph], seconds: float) -> Row:
    """The usual integer program: a variable for each label and each cell of a table."""
    times, proved = [], 0
    for graph in graphs:
        objective, rows, integer = _program(graph)
        begun = time.perf_counter()
        try:
            x, bound = highs(objective, rows, np.ones(len(objective)), integer, seconds)
            proved += bound - float(objective @ x) <= 1e-6 * abs(bound)
        except LimitReached:
            pass
        times.append(time.perf_counter() - begun)
    return _row(name, times, proved)


def _program(graph: certus.FactorGraph) -> tuple[Any, Any, Any]:
    n, size = graph.unary.shape
    first = graph.unary.size + np.arange(len(graph.tables)) * size * size
    rows = [(np.repeat(np.arange(n), size), np.arange(n * size), np.ones(n * size))]
    count = n
    for (i, j), start in zip(graph.scopes, first.tolist(), strict=True):
        cells = start + np.arange(size * size).reshape(size, size)
        for variable, own in ((i, cells), (j, cells.T)):
            row = count + np.arange(size)
            rows.append((np.repeat(row, size), own.reshape(-1), np.ones(size * size)))
            rows.append((row, variable * size + np.arange(size), -np.ones(size)))
            count += size
    row, column, value = (np.concatenate(part) for part in zip(*rows, strict=True))
    objective = np.concatenate([scores.reshape(-1) for scores in graph.all_scores()])
    matrix = sparse.csr_array((value, (row, column)), shape=(count, len(objective)))
    right = np.where(np.arange(count) < n, 1.0, 0.0)
    integer = (np.arange(len(objective)) < graph.unary.size).astype(np.int64)
    return objective, optimize.LinearConstraint(matrix, right, right), integer
