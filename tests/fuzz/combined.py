"""Problems made of others: joint ones that must agree, and ones subject to constraints."""

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

import certus
from certus import constraints as C
from certus.constituency import lexicalized
from certus.relax import steps
from examples.grid_mrf import grid
from tests.fuzz.cases import KINDS, Case, Kind, Listed, listed, made
from tests.fuzz.scores import ORDINARY, Rng, Scores
from tests.fuzz.sequences import draw_tagging, sequences
from tests.fuzz.trees import draw_trees

RULES = (steps.per_increase(2.0), steps.halving(2.0), steps.inverse_sqrt(2.0), steps.constant(1.0))
UNSATISFIED = 0.15  # share of constrained problems that may have no structure
DEFAULTS = lexicalized.SHORT, lexicalized.REHEARSAL


class Pairs(Kind):
    """certus.Joint: taggings; a grammar and a tagging; a lexicalised grammar with trees, or tags, or both."""

    name = "joint"
    share = 2.0
    proved = ({}, *({"step": rule} for rule in RULES))
    tried = tuple({"max_iterations": k, "exact": False} for k in (1, 4, 20))

    def draw(self, rng: Rng, scores: Scores) -> Case:
        which = rng.random()
        if which < 0.4:
            n, size = int(rng.integers(0, 4)), int(rng.integers(1, 4))
            a, b, c = ({"kind": "tagging", **draw_tagging(rng, scores, n, size)} for _ in range(3))
            a = self.tied(rng, a, b, "tags") if rng.random() < 0.5 else a
            return self.tied(rng, a, c, "tags")
        if which < 0.9:
            a = {"kind": "constituency", **KINDS["constituency"].draw(rng, scores)}
            n, size = len(a["words"]), len(made(a).tags)
            if not size or size**n > 81:
                return self.draw(rng, scores)
            return self.tied(rng, a, {"kind": "tagging", **draw_tagging(rng, scores, n, size)}, "tags")
        a = {"kind": "lexicalized constituency", **KINDS["lexicalized constituency"].draw(rng, scores)}
        a["words"], n = a["words"][:2], len(a["words"][:2])
        if rng.random() < 0.7:
            a = self.tied(rng, a, {"kind": "tagging", **draw_tagging(rng, scores, n, 3)}, "tags")
        if a["kind"] != "joint" or rng.random() < 0.5:
            trees = draw_trees(rng, scores, int(rng.integers(3)), n)
            trees["options"]["projective"] = True
            a = self.tied(rng, a, {"kind": "dependency", **trees}, "arcs")
        return {**a, "rehearsal": [int(rng.choice([0, 6])), float(rng.integers(0, 12))]}

    def tied(self, rng: Rng, a: Case, b: Case, on: str) -> Case:
        weight, merge = float(rng.choice([0.5, 1.0, 2.0])), bool(rng.integers(2))
        return {"kind": "joint", "a": a, "b": b, "on": on, "weight": weight, "merge": merge}

    def make(self, case: Case) -> certus.Joint:
        # A lexicalised grammar is solved over fewer trees first, at times even for short sentences.
        lexicalized.SHORT, lexicalized.REHEARSAL = case.get("rehearsal", DEFAULTS)
        a, b, merge = made(case["a"]), made(case["b"]), case.get("merge", False)
        return certus.Joint(a, b, on=case["on"], weight=case["weight"], merge=merge)

    def listed(self, case: Case, problem: Any) -> Listed:
        partners, (a, b) = {}, problem.problems
        ((_, on_a), (_, on_b)) = problem.ties[case["on"]]
        for z, parts in listed(case["b"], b):
            partners.setdefault(b.indicator(z, on_b).tobytes(), []).append((z, scaled(parts, case["weight"])))
        for y, parts in listed(case["a"], a):
            for z, more in partners.get(a.indicator(y, on_a).tobytes(), ()):
                yield (y, z), [*parts, *more]


PLAIN = ("hyperpath", "constituency", "span trees", "segmentation", "alignment", "ctc")


def scaled(parts: Any, weight: float) -> list[Any]:
    return [p if p == -inf else Fraction(p) * Fraction(weight) for p in parts]


class Several(Kind):
    """certus.Joint of three or four: taggings; grammar, tagging and trees that share tags here and arcs there."""

    name = "joint of many"
    proved = Pairs.proved
    tried = Pairs.tried

    def draw(self, rng: Rng, scores: Scores) -> Case:
        if rng.random() < 0.8:
            n, size = int(rng.integers(0, 4)), int(rng.integers(1, 4))
            count, on = int(rng.integers(3, 5)), ["tags"]
            problems = [{"kind": "tagging", **draw_tagging(rng, scores, n, size)} for _ in range(count)]
        else:
            a = {"kind": "lexicalized constituency", **KINDS["lexicalized constituency"].draw(rng, scores)}
            a["words"], n = a["words"][:2], len(a["words"][:2])
            trees = draw_trees(rng, scores, int(rng.integers(3)), n)
            trees["options"]["projective"] = True
            tags, on = {"kind": "tagging", **draw_tagging(rng, scores, n, 3)}, ["tags", "arcs"]
            problems = [a, tags, {"kind": "dependency", **trees}]
        return {"problems": problems, "on": on, "weights": [float(rng.choice([0.5, 1.0, 2.0])) for _ in problems]}

    def make(self, case: Case) -> certus.Joint:
        on = case["on"][0] if len(case["on"]) == 1 else case["on"]
        return certus.Joint(*map(made, case["problems"]), on=on, weights=case["weights"])

    def listed(self, case: Case, problem: Any) -> Listed:
        rows: list[Any] = [((), [], {})]  # structures so far, their parts, and what they use of the views
        for c, p, weight in zip(case["problems"], problem.problems, case["weights"], strict=True):
            views, found = [view for view in case["on"] if view in p.views], {}
            for y, parts in listed(c, p):
                used = {view: p.indicator(y, view).tobytes() for view in views}
                found.setdefault(tuple(used.values()), []).append((y, scaled(parts, weight), used))
            known = [view for view in views if view in rows[0][2]] if rows else []
            assert known in ([], views)  # a problem is tied to those before it by all of its views, or by none
            rows = [
                ((*chosen, y), [*before, *parts], agreed | used)
                for chosen, before, agreed in rows
                for key, several in found.items()
                if not known or key == tuple(agreed[view] for view in views)
                for y, parts, used in several
            ]
        yield from ((chosen, parts) for chosen, parts, _ in rows)


class Limited(Kind):
    """Problems under ``subject_to``: taggings, trees, derivations, translations."""

    name = "constrained"
    share = 2.0
    proved = Pairs.proved
    tried = Pairs.tried

    def draw(self, rng: Rng, scores: Scores) -> Case:
        kind = str(rng.choice(["tagging", "tagging", "dependency", "labelled dependency", *PLAIN]))
        inner = {"kind": kind, **KINDS[kind].draw(rng, scores)}
        words = len(inner.get("scores", {}).get("arc", ())) - 1
        if words > (2 if "label" in inner else 3):  # trees under constraints take long to prove, with labels minutes
            return self.draw(rng, scores)
        problem = made(inner)
        view = str(rng.choice(list(problem.views)))
        every = [(problem.indicator(y, view), -inf in parts) for y, parts in listed(inner, problem)]
        most = np.max([u for u, _ in every], axis=0, initial=0.0)
        allowed = [u for u, forbidden in every if not forbidden]
        satisfied = rng.random() >= UNSATISFIED
        if most.max(initial=0.0) != 1.0 or (satisfied and not allowed):  # they are about parts used once or not at all
            return self.draw(rng, scores)
        used = most > 0 if rng.random() < 0.95 else np.ones_like(most)
        for _ in range(20):
            constraints = [drawn(rng, view, used) for _ in range(int(rng.integers(1, 4)))]
            if not satisfied or any(all(not self.excess(c, {view: u}) for c in constraints) for u in allowed):
                break
        return {"inner": inner, "constraints": constraints}

    def make(self, case: Case) -> Any:
        return made(case["inner"]).subject_to(*(C.Constraint.from_json(c) for c in case["constraints"]))

    def listed(self, case: Case, problem: Any) -> Listed:
        inner = made(case["inner"])
        for y, parts in listed(case["inner"], inner):
            views = {view for c in case["constraints"] for _, view, _ in c["terms"]}
            used = {view: inner.indicator(y, view) for view in views}
            broken = [(c, self.excess(c, used)) for c in case["constraints"]]
            if all("penalty" in c or not excess for c, excess in broken):
                yield y, [*parts, *(-Fraction(c["penalty"]) * excess for c, excess in broken if excess)]

    def excess(self, c: Case, used: Any) -> Fraction:
        """By how much a constraint is broken."""
        over = sum((Fraction(a) * int(used[view][tuple(i)]) for a, view, i in c["terms"]), -Fraction(c["bound"]))
        return {"<=": max(over, Fraction(0)), ">=": max(-over, Fraction(0)), "==": abs(over)}[c["sense"]]


class Softened(Limited):
    """The same with penalties on some constraints, of whole numbers and of others, and coefficients of both."""

    name = "soft"
    share = 1.0
    # Beside scores of 1e-6 to 1e38 penalties of 1 may be branched on for minutes, as may the 55 digits of 0.1.
    regimes = ORDINARY

    def draw(self, rng: Rng, scores: Scores) -> Case:
        case = super().draw(rng, scores)
        for c in case["constraints"]:
            if rng.random() < 0.3:
                c["terms"] = [[float(rng.choice([0.5, 0.75, 1.5])) * a, view, index] for a, view, index in c["terms"]]
            if rng.random() < 0.8 or any(a % 1 for a, _, _ in c["terms"]):
                c["penalty"] = float(rng.choice([0.0, 1.0, 1.0, 2.0, 3.0, 0.3]))
        return case


def drawn(rng: Rng, view: str, used: np.ndarray) -> Case:
    """One constraint of any kind on random parts, with whole coefficients."""
    cells = [tuple(map(int, cell)) for cell in rng.permutation(np.argwhere(used))]
    chosen, k = cells[: int(rng.integers(1, 5))], int(rng.integers(0, 3))
    a, b = (view, cells[0]), (view, cells[-1])
    terms = [(float(rng.integers(-3, 4)), view, c) for c in chosen]
    makers = (
        lambda: C.at_most(k, view, chosen),
        lambda: C.at_least(k, view, chosen),
        lambda: C.exactly(k, view, chosen),
        lambda: C.at_most_one(view, chosen),
        lambda: C.implies(a, b),
        lambda: C.forbid(*a),
        lambda: C.require(*b),
        lambda: C.budget(view, rng.integers(0, 5, used.shape) * used, float(rng.integers(0, 12))),
        lambda: C.linear(terms, "<=", float(rng.integers(-1, 3))),
    )
    return makers[int(rng.integers(len(makers)))]().to_json()


class Grids(Kind):
    """The grid of examples/grid_mrf.py, a problem that is written outside of the library."""

    name = "grid"
    share = 0.5
    proved = Pairs.proved
    tried = Pairs.tried

    def draw(self, rng: Rng, scores: Scores) -> Case:
        rows, columns = 2, int(rng.integers(2, 4))
        return {"unary": 2 * scores.plain(rows, columns, 2), "pairwise": scores.plain(2, 2)}

    def make(self, case: Case) -> Any:
        return grid(case["unary"], case["pairwise"])

    def listed(self, case: Case, problem: Any) -> Listed:
        unary, pairwise = case["unary"], case["pairwise"].tolist()
        rows, columns, k = unary.shape
        for labels in sequences(rows * columns, k):
            y = np.array(labels).reshape(rows, columns)
            parts = [float(unary[i, j, y[i, j]]) for i in range(rows) for j in range(columns)]
            parts += [pairwise[y[i, j]][y[i, j + 1]] for i in range(rows) for j in range(columns - 1)]
            parts += [pairwise[y[i, j]][y[i + 1, j]] for i in range(rows - 1) for j in range(columns)]
            yield (y.ravel(), y.ravel()), parts
