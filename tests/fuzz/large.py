"""Problems too large to list, most of which are proved by branch and bound: what is true of them is what ranks say.

The best few structures are found by ``kbest``, whose results both checkers hold against their proofs; any other
structure is added with its own score when it is asked about.
"""

from typing import Any

import numpy as np

import certus
from certus import constraints as C
from certus.relax.proof import Close, Fix, Later, Leaf, Split, Tighter
from tests.fuzz.cases import Case
from tests.fuzz.scores import Rng
from tests.oracles.exact import Exact, key

LISTED = 3


class Ranked(Exact):
    """The best few structures of a problem, and others that were asked about."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        super().__init__((r.structure, parts(problem, r.structure)) for r in problem.kbest(LISTED))

    def at(self, structure: Any) -> int | None:
        if key(structure) not in self.place:
            try:
                more = Exact([(structure, parts(self.problem, structure))])
            except (certus.CertusError, TypeError, ValueError, IndexError):
                return None
            for name in ("structures", "value", "size", "largest") if len(more) else ():
                getattr(self, name).extend(getattr(more, name))
                self.place[key(structure)] = len(self) - 1
        return self.place.get(key(structure))


def parts(problem: Any, structure: Any) -> list[float]:
    return [float(x) for x in problem.terms(structure)]


def draw(rng: Rng) -> Case:
    """Of all kinds of spaces: graphs, trees, several of each, rows that tie them and rows that limit them."""
    which = str(rng.choice(["crossing", "factors", "knapsack", "cover", "joint", "budget", "limited"]))
    real = bool(rng.integers(2))

    def scores(*shape: int) -> np.ndarray:
        return rng.normal(size=shape) if real else rng.integers(-9, 10, shape).astype(float)

    case: Case = {"kind": "large", "which": which}
    if which in ("crossing", "limited"):
        n = int(rng.integers(5, 8)) if which == "crossing" else int(rng.integers(5, 10))
        case["arc"] = scores(n + 1, n + 1)
        case["sibling"] = scores(n + 1, n + 1, n + 1) if which == "crossing" else None
        case["words"] = rng.permutation(np.arange(1, n + 1))[:3].tolist()
    elif which == "factors":
        n, size = int(rng.integers(8, 12)), int(rng.integers(2, 4))
        pairs = [rng.permutation(n)[:2].tolist() for _ in range(int(rng.integers(n, 2 * n)))]
        case |= {"unary": scores(n, size), "tables": [[pair, scores(size, size)] for pair in pairs]}
    elif which == "knapsack":
        n, kinds = int(rng.integers(8, 16)), int(rng.integers(1, 4))
        case |= {"value": np.abs(scores(n)), "cost": rng.integers(1, 9, (kinds, n)).tolist()}
        case["budget"] = [int(rng.integers(max(row), sum(row))) for row in case["cost"]]
    elif which == "cover":
        n, elements = int(rng.integers(8, 14)), int(rng.integers(5, 9))
        sets = [[e for e in range(elements) if rng.random() < 0.35] for _ in range(n)]
        case |= {"score": -np.abs(scores(n)), "sets": [*sets, list(range(elements))], "elements": elements}
        case["score"] = np.append(case["score"], -20.0)
    else:
        n, size = int(rng.integers(5, 9)), int(rng.integers(3, 5))
        case["models"] = [[scores(n, size), scores(size, size)] for _ in range(2 if which == "joint" else 1)]
        case["cost"] = rng.integers(0, 5, (n, size)).tolist()
        case["budget"] = int(rng.integers(n, 2 * n))
    return case


def make(case: Case) -> Any:
    which = case["which"]
    if which == "crossing":
        return certus.Dependency(case["arc"], case["sibling"], projective=False)
    if which == "limited":
        trees = certus.Dependency(case["arc"], projective=False)
        a, b, c = case["words"]
        arcs = [(a, b), (a, c), (b, c), (0, a), (c, a)]
        return trees.subject_to(C.at_most(1, "arcs", arcs), C.at_least(2, "arcs", [*arcs[1:], (0, c), (0, b)]))
    if which == "factors":
        return certus.FactorGraph(case["unary"], None, case["tables"])
    if which == "knapsack":
        return certus.Knapsack(case["value"], np.array(case["cost"]), case["budget"])
    if which == "cover":
        return certus.SetCover(-case["score"], case["sets"], case["elements"])
    models = [certus.Tagging(unary, pairs) for unary, pairs in case["models"]]
    problem: Any = certus.Joint(*models, on="tags") if which == "joint" else models[0]
    return problem if which == "joint" else problem.subject_to(C.budget("tags", case["cost"], case["budget"]))


def nodes(witness: Any) -> int:
    """Of a proof tree."""
    count, stack = 0, [witness.proof() if isinstance(witness, Later) else witness]
    while stack:
        node = stack.pop()
        count += isinstance(node, Leaf | Fix | Split)
        stack += [node.zero, node.one] if isinstance(node, Split) else []
        stack += [node.rest] if isinstance(node, Fix | Close | Tighter) else []
    return count
