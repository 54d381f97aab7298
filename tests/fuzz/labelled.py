"""Projective trees with labels inside their parts, and with automata that read labels."""

from itertools import product
from typing import Any

import numpy as np

import certus
from certus.dependency.labelled_parts import KINDS as AXES
from tests.fuzz.cases import Case, Kind, Listed
from tests.fuzz.scores import Rng, Scores
from tests.oracles.trees import all_trees, projective_trees


def labelled_trees(n: int, size: int, root: str, projective: bool = True) -> Any:
    for heads in projective_trees(n, root) if projective else all_trees(n, root):
        for labels in product(range(size), repeat=n):
            yield (np.array(heads), np.array((-1, *labels))), heads, (0, *labels)


def inside(heads: tuple[int, ...], m: int) -> list[int]:
    """The modifiers of the head of m between the two, outermost first."""
    h = heads[m]
    found = [x for x in range(1, len(heads)) if heads[x] == h and (h < x < m or m < x < h)]
    return sorted(found, key=lambda x: -abs(x - h))


class LabelledPartScores(Kind):
    """certus.LabelledParts, axes of labels of full length or of 1."""

    name = "labelled parts"
    share = 0.5

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n, size = int(rng.choice(4, p=[0.05, 0.15, 0.5, 0.3])), int(rng.integers(1, 3))
        chosen = [name for name in AXES if rng.random() < 0.35]
        arrays = {"label": scores(n + 1, n + 1, size)}
        for name in chosen:
            rank = len(AXES[name].axes)
            arrays[name] = scores(*(n + 1,) * rank, *rng.choice([1, size], rank).tolist())
        return {"scores": arrays, "root": str(rng.choice(["single", "multi"]))}

    def make(self, case: Case) -> certus.LabelledParts:
        return certus.LabelledParts(**case["scores"], root=case["root"])

    def listed(self, case: Case, problem: Any) -> Listed:
        label = case["scores"]["label"]
        for y, heads, labels in labelled_trees(len(label) - 1, label.shape[2], case["root"]):
            parts = []
            for m in range(1, len(heads)):
                h, between = heads[m], inside(heads, m)
                parts.append(float(label[h, m, labels[m]]))
                node = {"h": h, "m": m, "s": (*between, h)[0]} | ({"g": heads[h]} if h else {})
                node |= {"t": (*between, h)[1]} if between else {}
                for name, array in case["scores"].items():
                    axes = AXES[name].axes if name != "label" else "?"
                    if node.keys() >= set(axes):
                        sizes = array.shape[len(axes) :]
                        of = [labels[node[x]] if length > 1 else 0 for x, length in zip(axes, sizes, strict=True)]
                        parts.append(float(array[(*(node[x] for x in axes), *of)]))
            yield y, parts


class ByLabel:
    """An automaton whose state is the last label: weights of steps [state, word, label] and of stopping [state]."""

    start = 0

    def __init__(self, steps: Any, stops: Any) -> None:
        self.steps, self.stops = steps, stops

    def step(self, state: int, m: Any) -> tuple[int, float]:
        return m.label + 1, float(self.steps[state, m.word, m.label])

    def stop(self, state: int) -> float:
        return float(self.stops[state])


class LabelledReaders(Kind):
    """certus.LabelledAutomata, scored by the labels of head and head of the head too."""

    name = "labelled automata"
    share = 0.5
    problem: Any = certus.LabelledAutomata
    lengths = (0.05, 0.15, 0.5, 0.3)

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n, size = int(rng.choice(4, p=self.lengths)), 2
        by_head = bool(rng.integers(2))
        above = size + 1 if by_head else 1
        return {
            "label": scores(n + 1, n + 1, size),
            "step": scores(above, size + 1, 2, size + 1, n + 1, size),
            "stop": scores(above, size + 1, 2, size + 1),
            "options": {"by_head": by_head, "root": str(rng.choice(["single", "multi"]))},
        }

    def make(self, case: Case) -> certus.Problem[Any]:
        step, stop = case["step"], case["stop"]

        def automaton(g: Any, h: Any, side: int) -> ByLabel:
            at = (g.label + 1 if case["options"]["by_head"] else 0, h.label + 1, side)
            return ByLabel(step[at], stop[at])

        made: certus.Problem[Any] = self.problem(case["label"], automaton, **case["options"])
        return made

    def listed(self, case: Case, problem: Any) -> Listed:
        label, options = case["label"], case["options"]
        n = len(label) - 1
        for y, heads, _ in labelled_trees(n, 2, options["root"], self.problem.projective):
            own = y[1].tolist()
            parts = [float(label[heads[m], m, own[m]]) for m in range(1, n + 1)]
            for h, side in product(range(n + 1), (0, 1)):
                above = own[heads[h]] + 1 if options["by_head"] and h else 0
                at, state = (above, own[h] + 1, side), 0
                words = range(h + 1, n + 1) if side else range(h - 1, 0, -1)
                for m in (m for m in words if heads[m] == h):
                    parts.append(float(case["step"][(*at, state, m, own[m])]))
                    state = own[m] + 1
                parts.append(float(case["stop"][(*at, state)]))
            yield y, parts


class CrossingReaders(LabelledReaders):
    """certus.CrossingLabelledAutomata."""

    name = "crossing labelled automata"
    share = 0.2
    problem = certus.CrossingLabelledAutomata
    lengths = (0.1, 0.3, 0.5, 0.1)
