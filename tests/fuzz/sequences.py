"""Tag sequences, and derivations of small hypergraphs, free or subject to linear equations."""

from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

import certus
from certus.relax.constrained_hyperpath import METHODS, ConstrainedHyperpath
from tests.fuzz.cases import Case, Kind, Listed
from tests.fuzz.scores import Rng, Scores

MOST = 60  # derivations of a graph


@cache
def sequences(n: int, size: int) -> list[tuple[int, ...]]:
    return list(product(range(size), repeat=n))


def draw_tagging(rng: Rng, scores: Scores, n: int, size: int) -> Case:
    """Tables of any order, with or without boundary tags, shared or by position."""
    case: Case = {"unary": scores(n, size)}
    for order, name in ((2, "bigram"), (3, "trigram")):
        if rng.random() < 0.5:
            boundary, rows = int(rng.integers(2)), bool(rng.integers(2))
            shape = ((n + boundary,) if rows else ()) + (size + boundary,) * order
            case[name] = scores(*shape)
            if rows and not boundary:
                read = np.ones(shape, dtype=bool)
                read[: order - 1] = False
                scores.unread(case[name], read)
    return case


def tag_parts(case: Case) -> Listed:
    """By the definition in certus.Tagging."""
    n, size = case["unary"].shape
    unary = case["unary"].tolist()
    tables = []
    for order, name in ((2, "bigram"), (3, "trigram")):
        if name in case:
            table = case[name]
            boundary = table.shape[-1] == size + 1
            rows = range(n + 1) if boundary else range(order - 1, n)
            by_row = table.ndim > order
            tables.append((order, rows, [table[i].tolist() if by_row else table.tolist() for i in rows]))
    for tags in sequences(n, size):
        parts = [unary[i][t] for i, t in enumerate(tags)]
        padded = (size, size, *tags, size)
        for order, rows, values in tables:
            for i, cell in zip(rows, values, strict=True):
                for t in padded[i + 3 - order : i + 3]:
                    cell = cell[t]
                parts.append(cell)
        yield np.array(tags, dtype=np.int64), parts


class Taggings(Kind):
    """certus.Tagging."""

    name = "tagging"
    share = 2.0

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n = int(rng.integers(0, 5))
        return draw_tagging(rng, scores, n, int(rng.integers(1, 4 if n < 4 else 3)))

    def make(self, case: Case) -> certus.Tagging:
        return certus.Tagging(case["unary"], case.get("bigram"), case.get("trigram"))

    def listed(self, case: Case, problem: Any) -> Listed:
        return tag_parts(case)


def draw_graph(rng: Rng, vertices: int, edges: int = 3) -> tuple[Case, list[int]]:
    """A small acyclic hypergraph with shared vertices, parallel edges, edges that use a vertex twice, dead vertices.

    With it the number of derivations of each vertex, at most MOST.
    """
    in_ptr, tail_ptr, tail, total = [0], [0], [], []
    for v in range(vertices):
        ways = 0
        for _ in range(int(rng.integers(0 if v < vertices - 1 else 1, edges + 1))):
            below = rng.integers(0, v, size=int(rng.integers(0, 4))).tolist() if v and rng.random() < 0.75 else []
            more = prod(total[u] for u in below)
            if ways + more > MOST:
                continue
            ways += more
            tail += below
            tail_ptr.append(len(tail))
        in_ptr.append(len(tail_ptr) - 1)
        total.append(ways)
    return {"in_ptr": in_ptr, "tail_ptr": tail_ptr, "tail": tail}, total


def graph_of(case: Case) -> certus.Hypergraph:
    return certus.Hypergraph(*(np.array(case[name], dtype=np.int32) for name in ("in_ptr", "tail_ptr", "tail")))


class Derivations(Kind):
    """certus.Hyperpath."""

    name = "hyperpath"

    def draw(self, rng: Rng, scores: Scores) -> Case:
        case, _ = draw_graph(rng, int(rng.integers(1, 7)))
        return {**case, "weights": scores(len(case["tail_ptr"]) - 1)}

    def make(self, case: Case) -> certus.Hyperpath:
        return certus.Hyperpath(graph_of(case), case["weights"])

    def listed(self, case: Case, problem: Any) -> Listed:
        weights = case["weights"].tolist()
        for edges in graph_of(case).hyperpaths():
            yield np.array(edges), [weights[e] for e in edges]


class ConstrainedDerivations(Kind):
    """certus.ConstrainedHyperpath; half of the right-hand sides are those of some derivation."""

    name = "constrained hyperpath"
    proved = tuple({"method": method} for method in METHODS if method != "beam")
    tried = ({"method": "beam", "width": 2}, {"max_iterations": 2, "exact": False})

    def draw(self, rng: Rng, scores: Scores) -> Case:
        case, _ = draw_graph(rng, int(rng.integers(1, 6)))
        n_edges, rows = len(case["tail_ptr"]) - 1, int(rng.integers(1, 3))
        low = int(rng.choice([0, -1]))
        case["A"] = rng.integers(low, 2, (rows, n_edges)).tolist()
        paths = list(graph_of(case).hyperpaths())
        if paths and rng.random() < 0.7:
            edges = paths[int(rng.integers(len(paths)))]
            case["b"] = [sum(row[e] for e in edges) for row in case["A"]]
        else:
            case["b"] = rng.integers(0, 3, rows).tolist()
        return {**case, "weights": scores(n_edges)}

    def make(self, case: Case) -> ConstrainedHyperpath:
        A = np.array(case["A"], dtype=float).reshape(len(case["b"]), len(case["weights"]))
        return ConstrainedHyperpath(graph_of(case), case["weights"], A, np.array(case["b"], dtype=float))

    def listed(self, case: Case, problem: Any) -> Listed:
        weights = case["weights"].tolist()
        for edges in graph_of(case).hyperpaths():
            if all(sum(row[e] for e in edges) == b for row, b in zip(case["A"], case["b"], strict=True)):
                yield np.array(edges), [weights[e] for e in edges]
