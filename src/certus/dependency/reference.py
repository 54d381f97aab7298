"""The best projective score again, top-down in plain Python: what certus.verify and the tests compare kernels with."""

import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from certus.checks import Floats

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

NEVER = -np.inf
ROOT_HEAD = -1  # in place of g: h is node 0, or no score asks for g


def best_projective(problem: "Dependency", arc: Floats) -> float:
    """Best score of a projective tree under the given arc scores; -inf if there is none. O(n^4) and slow."""
    n, given = problem.n, problem.scores
    arcs: list[list[float]] = arc.tolist()
    heads_of = [[h for h in range(n + 1) if arcs[h][m] > NEVER] for m in range(n + 1)]
    outermost = problem.grandparents == "outermost"
    use_g = any(kind in given for kind in ("grandparent", "grandsibling", "null"))

    def part(kind: str, *index: int) -> float:
        return given[kind].at(*index) if kind in given else 0.0

    def grand(g: int, h: int, s: int, m: int) -> float:
        if g == ROOT_HEAD:
            return 0.0
        return part("grandparent", g, h, m) + part("grandsibling", g, h, s, m)

    def modifiers(h: int, e: int) -> list[int]:
        return [m for m in range(min(h, e), max(h, e) + 1) if m != h and arcs[h][m] > NEVER]

    def head_of(h: int) -> int:
        """g as the items below h know it."""
        return h if use_g else ROOT_HEAD

    @cache
    def complete(g: int, h: int, side: int, e: int) -> float:
        """h with all its modifiers on one side, whose descendants reach e."""
        if e == h:
            null = part("null", g, h, side) if g != ROOT_HEAD else 0.0
            return null + part("stop", h, side, h)
        best = NEVER
        for m in modifiers(h, e):
            best = max(best, last(g, h, m) + part("stop", h, side, m) + complete(head_of(h), m, side, e))
        return best

    @cache
    def last(g: int, h: int, m: int) -> float:
        """h with modifiers up to m, its outermost one."""
        inner = [h, *(s for s in modifiers(h, m) if s != m)]
        if not outermost:
            return max(attached(g, h, s, m) for s in inner)
        return max(attached(ROOT_HEAD, h, s, m) + grand(g, h, s, m) for s in inner)

    @cache
    def attached(g: int, h: int, s: int, m: int) -> float:
        """h with modifiers up to m, s the one next inside; s == h if there is none."""
        score = arcs[h][m] + part("sibling", h, s, m) + (0.0 if outermost else grand(g, h, s, m))
        if s == h:
            return score + complete(head_of(h), m, int(m < h), h + 1 if m > h else h - 1)
        score += between(head_of(h), min(s, m), max(s, m))
        if score == NEVER:
            return NEVER
        if "trisibling" not in given:
            return score + any_sibling(g, h, s)
        inner = [h, *(t for t in modifiers(h, s) if t != s)]
        return score + max(attached(g, h, t, s) + part("trisibling", h, t, s, m) for t in inner)

    @cache
    def any_sibling(g: int, h: int, m: int) -> float:
        inner = [h, *(s for s in modifiers(h, m) if s != m)]
        return max(attached(g, h, s, m) for s in inner)

    @cache
    def between(g: int, i: int, j: int) -> float:
        """Successive modifiers i < j of one head, with their inner descendants."""
        return max(complete(g, i, 1, r) + complete(g, j, 0, r + 1) for r in range(i, j))

    if n == 0:
        return part("stop", 0, 1, 0)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10_000))
    try:
        for width in range(1, n):  # short spans first, so that the recursion stays shallow
            for i in range(1, n - width + 1):
                j = i + width
                for h, side, e in ((i, 1, j), (j, 0, i)):
                    for g in heads_of[h] if use_g else [ROOT_HEAD]:
                        if not i <= g <= j:
                            complete(g, h, side, e)
        if problem.single:
            top = head_of(0)
            return max(
                arcs[0][m]
                + part("sibling", 0, 0, m)
                + part("stop", 0, 1, m)
                + complete(top, m, 0, 1)
                + complete(top, m, 1, n)
                for m in range(1, n + 1)
            )
        return complete(ROOT_HEAD, 0, 1, n)
    finally:
        sys.setrecursionlimit(limit)
