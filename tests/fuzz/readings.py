"""Dynamic programs under automata: what a sequence contains, in which order, how often; held against plain lists."""

from typing import Any

import numpy as np

import certus
from certus import constraints as C
from tests.fuzz.cases import KINDS, Case, Kind, Listed, listed, made
from tests.fuzz.scores import Rng, Scores

MAKERS = {"contains": C.contains, "avoids": C.avoids, "count": C.count}


class Read(Kind):
    """Taggings, trees of phrases and derivations under one automaton or two."""

    name = "accepted"
    share = 1.0

    def draw(self, rng: Rng, scores: Scores) -> Case:
        kind = str(rng.choice(["tagging", "constituency", "hyperpath"]))
        inner = {"kind": kind, **KINDS[kind].draw(rng, scores)}
        problem, symbols = made(inner), None
        if kind == "hyperpath":
            symbols = [
                None if rng.random() < 0.3 else "abc"[int(rng.integers(3))] for _ in range(problem.graph.n_edges)
            ]
        size = 3 if symbols else problem.views["tags"][1]
        if not size:
            return self.draw(rng, scores)
        alphabet = list("abc") if symbols else list(range(size))
        return {
            "inner": inner,
            "symbols": symbols,
            "readings": [drawn(rng, alphabet) for _ in range(rng.integers(1, 3))],
        }

    def make(self, case: Case) -> certus.Problem[Any]:
        return made(case["inner"]).subject_to(*(reading(r, case["symbols"]) for r in case["readings"]))

    def listed(self, case: Case, problem: Any) -> Listed:
        inner = made(case["inner"])
        for y, parts in listed(case["inner"], inner):
            sequence = read(case, inner, y)
            if all(holds(r, sequence) for r in case["readings"]):
                yield y, parts


def drawn(rng: Rng, alphabet: list[Any]) -> Case:
    """One constraint on random symbols."""
    some = [alphabet[int(rng.integers(len(alphabet)))] for _ in range(int(rng.integers(1, 4)))]
    least = int(rng.integers(0, 3))
    most = None if rng.random() < 0.3 else least + int(rng.integers(0, 3))
    return {"word": str(rng.choice([*MAKERS, "in_order", "length"])), "of": some, "least": least, "most": most}


def reading(r: Case, symbols: Any) -> C.Reading:
    if r["word"] == "length":
        return C.length(r["least"], r["most"], symbols=symbols)
    if r["word"] == "in_order":
        return C.in_order(*dict.fromkeys(r["of"]), symbols=symbols)
    limits = (r["least"], r["most"]) if r["word"] == "count" else ()
    return MAKERS[r["word"]](r["of"], *limits, symbols=symbols)


def holds(r: Case, sequence: list[Any]) -> bool:
    of, n = r["of"], len(sequence)
    found = any(sequence[i : i + len(of)] == of for i in range(n - len(of) + 1))
    number = n if r["word"] == "length" else sum(s in of for s in sequence)
    order = list(dict.fromkeys(of))
    ranks = [order.index(s) for s in sequence if s in order]
    return {
        "contains": found,
        "avoids": not found,
        "in_order": ranks == sorted(ranks),
    }.get(r["word"], number >= r["least"] and (r["most"] is None or number <= r["most"]))


def read(case: Case, inner: Any, y: Any) -> list[Any]:
    """The sequence of a structure."""
    if case["inner"]["kind"] == "tagging":
        return np.asarray(y).tolist()
    if case["inner"]["kind"] == "constituency":
        return [inner.tags.index(tag) for tag in y.tags]
    edges = iter(np.asarray(y).tolist())

    def below() -> list[Any]:
        e = next(edges)
        tails = [s for _ in inner.graph.tail_of(e) for s in below()]
        return [*tails, case["symbols"][e]]

    return [s for s in below() if s is not None]
