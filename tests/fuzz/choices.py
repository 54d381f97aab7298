"""Factor graphs, whole or in pieces, and problems of choice: matchings, knapsacks, covers."""

from itertools import compress, product
from typing import Any

import numpy as np

import certus
from certus.factors import problem as factor_graphs
from tests.fuzz.cases import Case, Kind, Listed
from tests.fuzz.combined import Pairs
from tests.fuzz.scores import Rng, Scores
from tests.fuzz.sequences import sequences

LARGEST = factor_graphs.LARGEST


class FactorGraphs(Kind):
    """certus.FactorGraph; half of them in pieces, whatever their width."""

    name = "factor graph"
    share = 2.0
    proved = Pairs.proved
    tried = Pairs.tried

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n = int(rng.integers(0, 5))
        size = int(rng.integers(1, 4 if n < 4 else 3))
        tables = []
        for _ in range(int(rng.integers(0, 6)) if n else 0):
            order = int(rng.integers(1, min(n, 3) + 1))
            tables.append([rng.permutation(n)[:order].tolist(), scores(*(size,) * order)])
        whole, width = bool(rng.integers(2)), int(rng.integers(1, 30))
        case = {"unary": scores(n, size), "tables": tables, "whole": whole, "width": width}
        return case | {"clusters": int(rng.integers(0, 3))}

    def make(self, case: Case) -> certus.FactorGraph:
        factor_graphs.LARGEST = LARGEST if case["whole"] else -1
        options = {"width": case["width"], "clusters": case.get("clusters", 0)}
        graph = certus.FactorGraph(case["unary"], None, case["tables"], **options)
        graph.forest()  # decided once
        factor_graphs.LARGEST = LARGEST
        return graph

    def listed(self, case: Case, problem: Any) -> Listed:
        for labels in sequences(*case["unary"].shape):
            parts = [case["unary"][v, s] for v, s in enumerate(labels)]
            parts += [table[tuple(labels[v] for v in scope)] for scope, table in case["tables"]]
            yield np.array(labels, dtype=np.int64), [float(x) for x in parts]


class Matchings(Kind):
    """certus.Assignment."""

    name = "assignment"

    def draw(self, rng: Rng, scores: Scores) -> Case:
        return {"score": scores(*(int(k) for k in rng.integers(0, 4, 2)))}

    def make(self, case: Case) -> certus.Assignment:
        return certus.Assignment(case["score"])

    def listed(self, case: Case, problem: Any) -> Listed:
        n, m = case["score"].shape
        for columns in product(range(-1, m), repeat=n):
            pairs = [(i, j) for i, j in enumerate(columns) if j >= 0]
            if len({j for _, j in pairs}) == len(pairs):
                yield np.array(columns, dtype=np.int64), [float(case["score"][pair]) for pair in pairs]


class Knapsacks(Kind):
    """certus.Knapsack, with whole costs."""

    name = "knapsack"

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n, kinds = int(rng.integers(0, 6)), int(rng.integers(1, 3))
        cost = rng.integers(0, 6, (kinds, n)).tolist()
        return {"value": scores(n), "cost": cost, "budget": rng.integers(0, 9, kinds).tolist()}

    def make(self, case: Case) -> certus.Knapsack:
        return certus.Knapsack(case["value"], np.array(case["cost"]).reshape(len(case["budget"]), -1), case["budget"])

    def listed(self, case: Case, problem: Any) -> Listed:
        for items in subsets(len(case["value"])):
            costs = (sum(row[k] for k in items) for row in case["cost"])
            if all(cost <= limit for cost, limit in zip(costs, case["budget"], strict=True)):
                yield items, [float(case["value"][k]) for k in items]


class Covers(Kind):
    """certus.SetCover."""

    name = "set cover"

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n, elements = int(rng.integers(0, 6)), int(rng.integers(0, 4))
        sets = [[e for e in range(elements) if rng.random() < 0.5] for _ in range(n)]
        return {"score": scores(n), "sets": sets, "elements": elements}

    def make(self, case: Case) -> certus.SetCover:
        return certus.SetCover(-case["score"], case["sets"], case["elements"])

    def listed(self, case: Case, problem: Any) -> Listed:
        for chosen in subsets(len(case["score"])):
            if set().union(*(case["sets"][k] for k in chosen)) >= set(range(case["elements"])):
                yield chosen, [float(case["score"][k]) for k in chosen]


def subsets(n: int) -> list[tuple[int, ...]]:
    """All sets of the numbers below n, in order."""
    return [tuple(compress(range(n), chosen)) for chosen in product((False, True), repeat=n)]
