"""Structures of neural models: arrays over spans, segments, steps and frames."""

from collections.abc import Callable
from typing import Any

import numpy as np

import certus
from tests.fuzz.cases import Case, Kind, Listed
from tests.fuzz.scores import Rng, Scores
from tests.oracles import structures as oracle


class _Arrays(Kind):
    """A kind whose case is the arguments of the problem, which the oracle takes too."""

    problem: Callable[..., Any]
    structures: Callable[..., Any]

    def given(self, case: Case) -> Case:
        return {name: value for name, value in case.items() if name not in ("kind", "regime")}

    def make(self, case: Case) -> Any:
        return type(self).problem(**self.given(case))

    def listed(self, case: Case, problem: Any) -> Listed:
        return type(self).structures(**self.given(case))


class Segmentations(_Arrays):
    """certus.Segmentation."""

    name = "segmentation"
    problem, structures = certus.Segmentation, oracle.segmentations

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n, longest, classes = int(rng.integers(0, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
        case: Case = {"segment": scores(n, longest, classes)}
        scores.unread(case["segment"], np.indices((n, longest, classes))[:2].sum(axis=0) < n)
        return {**case, "transition": scores(classes, classes)} if rng.random() < 0.5 else case


class SpanTrees(_Arrays):
    """certus.SpanTrees."""

    name = "span trees"
    problem, structures = certus.SpanTrees, oracle.span_trees

    def draw(self, rng: Rng, scores: Scores) -> Case:
        shape = rng.integers(3)
        n, labels = int(rng.integers(0, 4 if shape else 6)), int(rng.integers(1, 3 if shape else 2)) + (shape == 2)
        case: Case = {"span": scores(n + 1, n + 1, labels) if shape else scores(n + 1, n + 1)}
        if shape == 2:
            case["empty"] = int(rng.integers(labels))
        read = np.broadcast_to(np.triu(np.ones((n + 1, n + 1), dtype=bool), 1).T, case["span"].T.shape).T.copy()
        if shape == 2:
            read[..., case["empty"]] = False
        scores.unread(case["span"], read)
        return case


class Alignments(_Arrays):
    """certus.Alignment."""

    name = "alignment"
    problem, structures = certus.Alignment, oracle.alignments

    def draw(self, rng: Rng, scores: Scores) -> Case:
        score = scores(int(rng.integers(1, 5)), int(rng.integers(1, 4)), 3)
        read = np.ones(score.shape, dtype=bool)
        read[-1, :, :2] = read[:, -1, [0, 2]] = False
        scores.unread(score, read)
        return {"score": score}


class Labellings(_Arrays):
    """certus.CTC; at times there are too few frames."""

    name = "ctc"
    problem, structures = certus.CTC, oracle.labellings

    def draw(self, rng: Rng, scores: Scores) -> Case:
        length, size = int(rng.integers(0, 6)), int(rng.integers(2, 4))
        blank = int(rng.integers(size))
        labels = [label for label in range(size) if label != blank]
        target = rng.choice(labels, int(rng.integers(0, length // 2 + 2))).tolist()
        return {"frame": scores(length, size), "target": target, "blank": blank}


class SpanningTrees(_Arrays):
    """certus.SpanningTree."""

    name = "spanning tree"
    problem, structures = certus.SpanningTree, oracle.spanning_trees

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n = int(rng.integers(0, 5))
        above = np.triu(scores(n, n), 1)
        above[np.tril_indices(n)] = 0.0
        edge = above + above.T
        scores.unread(edge, ~np.eye(n, dtype=bool))
        return {"edge": edge}


class Graphs(_Arrays):
    """certus.DependencyGraph."""

    name = "dependency graph"
    problem, structures = certus.DependencyGraph, oracle.dependency_graphs

    def draw(self, rng: Rng, scores: Scores) -> Case:
        size = int(rng.integers(1, 4))
        arc = scores(size, size)
        scores.unread(arc, ~np.eye(size, dtype=bool) & (np.arange(size) > 0))
        higher = ("sibling", "coparent", "grandparent")
        return {"arc": arc, **{name: scores(size, size, size) for name in higher if rng.random() < 0.5}}
