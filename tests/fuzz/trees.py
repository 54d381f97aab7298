"""Dependency trees of every model: dense or listed, projective or not, with labels, automata, or short arcs only."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np

import certus
from certus.dependency.automata_problem import AutomataDependency
from certus.dependency.vine import Vine
from tests.fuzz.cases import Case, Kind, Listed
from tests.fuzz.scores import Rng, Scores
from tests.oracles.trees import all_trees, projective_trees

# Kinds of parts above arcs, and which modifiers count with the head of their head.
MODELS = (
    ((), "all"),
    (("sibling",), "all"),
    (("grandparent",), "all"),
    (("sibling", "grandparent"), "outermost"),
    (("sibling", "grandparent"), "all"),
    (("sibling", "trisibling"), "all"),
    (("trisibling",), "all"),
    (("sibling", "grandparent", "grandsibling"), "all"),
    (("sibling", "grandparent", "grandsibling", "trisibling"), "outermost"),
    (("sibling", "grandparent", "grandsibling", "trisibling"), "all"),
    (("sibling", "stop", "null"), "all"),
    (("sibling", "grandparent", "grandsibling", "trisibling", "stop", "null"), "all"),
    (("greatgrandparent",), "all"),
    (("sibling", "grandtrisibling"), "all"),
    (("grandsibling", "greatgrandparent", "grandtrisibling"), "outermost"),
)
# The first have kernels of their own, projective and crossing, for best trees, lists and sums; the others share some.
MODEL_SHARES = np.array([4.0] + [1.5] * 4 + [1.0] * 10) / 20.0
AXES = {"arc": 2, "sibling": 3, "grandparent": 3, "grandsibling": 4, "trisibling": 4}
AXES |= {"greatgrandparent": 4, "grandtrisibling": 5}
Where = tuple[str, int]  # a kind of part, and a cell of its array as if that were flat


def shape_of(kind: str, n: int) -> tuple[int, ...]:
    return {"stop": (n + 1, 2, n + 1), "null": (n + 1, n + 1, 2)}.get(kind) or (n + 1,) * AXES[kind]


def parts_of(heads: tuple[int, ...], outermost: bool) -> list[tuple[str, tuple[int, ...]]]:
    """Every part of a tree, by the definitions in certus.Dependency: (kind, index)."""
    n, out = len(heads) - 1, []
    for h, side in product(range(n + 1), (0, 1)):
        modifiers = [m for m in range(1, n + 1) if heads[m] == h and (m > h) == bool(side)]
        if not side:
            modifiers.reverse()
        if h or side:
            out.append(("stop", (h, side, modifiers[-1] if modifiers else h)))
        if h and not modifiers:
            out.append(("null", (heads[h], h, side)))
        for k, m in enumerate(modifiers):
            s = modifiers[k - 1] if k else h
            out += [("arc", (h, m)), ("sibling", (h, s, m))]
            if h and (not outermost or k == len(modifiers) - 1):
                out += [("grandparent", (heads[h], h, m)), ("grandsibling", (heads[h], h, s, m))]
            if h and heads[h]:
                out.append(("greatgrandparent", (heads[heads[h]], heads[h], h, m)))
            if k:
                t = modifiers[k - 2] if k > 1 else h
                out.append(("trisibling", (h, t, s, m)))
                out += [("grandtrisibling", (heads[h], h, t, s, m))] if h else []
    return out


@cache
def trees(
    n: int, projective: bool, root: str, kinds: tuple[str, ...], outermost: bool
) -> list[tuple[Any, list[Where]]]:
    """Heads of every tree and where its parts have their scores."""
    every = projective_trees(n, root) if projective else all_trees(n, root)
    wanted = {"arc", *kinds}
    return [
        (
            np.array(heads),
            [
                (kind, int(np.ravel_multi_index(index, shape_of(kind, n))))
                for kind, index in parts_of(heads, outermost)
                if kind in wanted
            ],
        )
        for heads in every
    ]


@cache
def read_cells(n: int, kinds: tuple[str, ...]) -> dict[str, np.ndarray]:
    """For each array, the cells that are parts of some tree, crossing or not, of any roots; others are unread."""
    out = {kind: np.zeros(shape_of(kind, n), dtype=bool) for kind in ("arc", *kinds)}
    for _, parts in trees(n, False, "multi", kinds, False):
        for kind, cell in parts:
            out[kind].reshape(-1)[cell] = True
    if "stop" in out:
        out["stop"][0, 1, 0] = True  # a part, though only the tree without words has it
    return out


def draw_trees(rng: Rng, scores: Scores, model: int, n: int) -> Case:
    """Arrays and options of a certus.Dependency."""
    kinds, grandparents = MODELS[model]
    projective, root = bool(rng.integers(2)), str(rng.choice(["single", "multi"]))
    arrays = {kind: scores(*shape_of(kind, n)) for kind in ("arc", *kinds)}
    read = read_cells(n, kinds)
    for kind, array in arrays.items():
        scores.unread(array, read[kind])
    options = {"projective": projective, "root": root, "grandparents": grandparents}
    return {"scores": arrays, "options": options}


def listed_trees(case: Case) -> list[tuple[Any, list[Where]]]:
    options, kinds = case["options"], tuple(k for k in case["scores"] if k != "arc")
    n = len(case["scores"]["arc"]) - 1
    return trees(n, options["projective"], options["root"], kinds, options["grandparents"] == "outermost")


class Trees(Kind):
    """certus.Dependency. With "unlisted" the parts are given as lists, less those that score that much."""

    name = "dependency"
    share = 4.0
    tried = ({"max_iterations": 3, "exact": False},)

    def draw(self, rng: Rng, scores: Scores) -> Case:
        model, n = int(rng.choice(len(MODELS), p=MODEL_SHARES)), int(rng.choice(5, p=[0.01, 0.04, 0.15, 0.4, 0.4]))
        case = draw_trees(rng, scores, model, n)
        if not {"stop", "null"} & set(case["scores"]) and rng.random() < 0.3:
            case["unlisted"] = float(rng.choice([-np.inf, 0.0]))
            if case["unlisted"] == 0.0:
                for array in list(case["scores"].values())[1:]:
                    array[rng.random(array.shape) < 0.5] = 0.0
        return case

    def make(self, case: Case) -> certus.Dependency:
        if "unlisted" not in case:
            return certus.Dependency(**case["scores"], **case["options"])
        lists = {}
        for kind, array in case["scores"].items():
            kept = array > -np.inf if kind == "arc" else array != case["unlisted"]
            lists[kind] = (*np.nonzero(kept), array[kept])
        n = len(case["scores"]["arc"]) - 1
        return certus.Dependency.from_parts(n, **lists, unlisted=case["unlisted"], **case["options"])

    def listed(self, case: Case, problem: Any) -> Listed:
        flat = {kind: array.ravel().tolist() for kind, array in case["scores"].items()}
        for heads, parts in listed_trees(case):
            yield heads, [flat[kind][cell] for kind, cell in parts]


class LabelledTrees(Kind):
    """certus.LabelledDependency, with or without scores of arcs."""

    name = "labelled dependency"
    share = 3.0
    rest = 0.6
    crossing = 0.65

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n = int(rng.choice(4, p=[0.02, 0.08, 0.4, 0.5]))
        model = 0 if rng.random() < 0.3 else int(rng.choice(len(MODELS), p=MODEL_SHARES))
        case = draw_trees(rng, scores, model, n)
        case["options"]["projective"] = bool(rng.random() >= self.crossing)
        case["label"] = scores(n + 1, n + 1, int(rng.integers(1, 3 if n == 3 else 4)))
        read = np.repeat((~np.eye(n + 1, dtype=bool))[:, :, None], case["label"].shape[2], axis=2)
        read[:, 0] = False
        scores.unread(case["label"], read)
        return case

    def make(self, case: Case) -> certus.LabelledDependency:
        return certus.LabelledDependency(case["label"], **case["scores"], **case["options"])

    def listed(self, case: Case, problem: Any) -> Listed:
        flat = {kind: array.ravel().tolist() for kind, array in case["scores"].items()}
        label, n = case["label"].tolist(), len(case["label"]) - 1
        arc = case["scores"].get("arc", np.zeros((n + 1, n + 1))).tolist()
        for heads, parts in listed_trees(case):
            common = [flat[kind][cell] for kind, cell in parts if kind != "arc"]
            for labels in product(range(case["label"].shape[2]), repeat=n):
                both = [(arc[heads[m]][m], label[heads[m]][m][labels[m - 1]]) for m in range(1, n + 1)]
                names = [x for own in both for x in (own if sum(own) == -np.inf else [sum(own)])]  # one part, if any
                yield (heads, np.array((-1, *labels))), common + names


class Counting:
    """An automaton whose states count modifiers, up to two: weights of steps [state, m] and of stopping [state]."""

    start = 0

    def __init__(self, steps: list[list[float]], stops: list[float]) -> None:
        self.steps, self.stops = steps, stops

    def step(self, state: int, m: int) -> tuple[int, float]:
        return min(state + 1, 2), self.steps[state][m]

    def stop(self, state: int) -> float:
        return self.stops[state]


class Automata(Kind):
    """AutomataDependency with automata that count."""

    name = "automata dependency"
    share = 0.5

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n, by_head = int(rng.integers(1, 4)), bool(rng.integers(2))
        heads = n + 2 if by_head else 1  # the head of a head, from -1 on
        return {
            "arc": scores(n + 1, n + 1),
            "step": scores(heads, n + 1, 2, 3, n + 1),
            "stop": scores(heads, n + 1, 2, 3),
            "options": {"by_head": by_head, "root": str(rng.choice(["single", "multi"]))},
        }

    def make(self, case: Case) -> AutomataDependency:
        step, stop = case["step"].tolist(), case["stop"].tolist()

        def automaton(g: int, h: int, side: int) -> Counting:
            above = g + 1 if case["options"]["by_head"] else 0
            return Counting(step[above][h][side], stop[above][h][side])

        return AutomataDependency(case["arc"], automaton, **case["options"])

    def listed(self, case: Case, problem: Any) -> Listed:
        arc, step, stop, options = case["arc"].tolist(), case["step"].tolist(), case["stop"].tolist(), case["options"]
        n = len(arc) - 1
        for heads in all_trees(n, options["root"]):
            parts = [arc[heads[m]][m] for m in range(1, n + 1)]
            for h, side in product(range(n + 1), (0, 1)):
                above = (heads[h] if h else -1) + 1 if options["by_head"] else 0
                modifiers = [m for m in range(1, n + 1) if heads[m] == h and (m > h) == bool(side)]
                for k, m in enumerate(modifiers if side else modifiers[::-1]):
                    parts.append(step[above][h][side][min(k, 2)][m])
                parts.append(stop[above][h][side][min(len(modifiers), 2)])
            yield np.array(heads), parts


class Vines(Kind):
    """Vine."""

    name = "vine"

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n = int(rng.choice(5, p=[0.05, 0.2, 0.35, 0.35, 0.05]))
        case = {"arc": scores(n + 1, n + 1), "outer_head": scores(n + 1, 2), "outer_modifier": scores(n + 1, 2)}
        case["band"] = int(rng.integers(1, 4))
        case["root"] = str(rng.choice(["single", "multi"]))
        h, m = np.indices((n + 1, n + 1))
        scores.unread(case["arc"], (np.abs(h - m) <= case["band"]) & (h != m) & (m > 0))
        return case

    def make(self, case: Case) -> Vine:
        arrays = (case["arc"], case["outer_head"], case["outer_modifier"])
        return Vine(*arrays, band=case["band"], root=case.get("root", "multi"))

    def listed(self, case: Case, problem: Any) -> Listed:
        for y in problem.all_structures():
            parts = []
            for m, (head, left, right) in enumerate(y.tolist()):
                if m > 0:
                    parts.append(float(case["outer_head"][m, -2 - head] if head < 0 else case["arc"][head, m]))
                parts += [float(case["outer_modifier"][m, d]) for d, on in enumerate((left, right)) if on]
            yield y, parts
