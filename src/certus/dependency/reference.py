"""The best projective score again, top-down in plain Python: what certus.verify and the tests compare kernels with."""

import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from certus.checks import Floats
from certus.dependency.part_kinds import MODIFIER

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

NEVER = -np.inf
NOBODY = (-1, -1)  # g and f in ``above``: h is node 0, or no score asks for them
Above = tuple[int, int]


def best_projective(problem: "Dependency", arc: Floats) -> float:
    """Best score of a projective tree under the given arc scores; -inf if there is none. O(n^4) or more, and slow."""
    n, model = problem.n, problem.model
    arcs: list[list[float]] = arc.tolist()
    heads_of = [[h for h in range(n + 1) if arcs[h][m] > NEVER] for m in range(n + 1)]
    at_modifier, at_outermost, at_end, at_empty = problem.readers
    inner_pairs = any("t" in kind.axes for kind in model.at(MODIFIER))

    def modifiers(h: int, e: int) -> list[int]:
        return [m for m in range(min(h, e), max(h, e) + 1) if m != h and arcs[h][m] > NEVER]

    def inner(h: int, m: int) -> list[int]:
        """What may be next inside modifier m of h."""
        return [h, *(s for s in modifiers(h, m) if s != m)]

    def below(above: Above, h: int) -> Above:
        """The ancestors of the modifiers of h, as far as scores ask for them."""
        return (h if model.ancestors > 0 else -1, above[0] if model.ancestors > 1 else -1)

    def contexts(h: int) -> list[Above]:
        """The ancestors that h may have."""
        if model.ancestors == 0:
            return [NOBODY]
        return [(g, f) for g in heads_of[h] for f in (heads_of[g] if model.ancestors > 1 and g else [-1])]

    @cache
    def complete(above: Above, h: int, side: int, e: int) -> float:
        """h with all its modifiers on one side, whose descendants reach e."""
        g, f = above
        if e == h:
            nodes = (g, h, side, -1, h, -1, f)
            return at_empty(nodes) + at_end(nodes)
        best = NEVER
        for m in modifiers(h, e):
            end = at_end((g, h, side, -1, m, -1, f))
            best = max(best, last(above, h, m) + end + complete(below(above, h), m, side, e))
        return best

    @cache
    def last(above: Above, h: int, m: int) -> float:
        """h with modifiers up to m, its outermost one."""
        if not model.outermost:
            return any_sibling(above, h, m)
        g, f = above
        inside = above if model.head_at_modifiers else NOBODY
        return max(attached(inside, h, s, m) + at_outermost((g, h, -1, -1, s, m, f)) for s in inner(h, m))

    @cache
    def attached(above: Above, h: int, s: int, m: int) -> float:
        """h with modifiers up to m, s the one next inside; s == h if there is none."""
        g, f = above
        if s == h:
            rest = complete(below(above, h), m, int(m < h), h + 1 if m > h else h - 1)
            return arcs[h][m] + at_modifier((g, h, -1, -1, h, m, f)) + rest
        score = arcs[h][m] + between(below(above, h), min(s, m), max(s, m))
        if score == NEVER:
            return NEVER
        if not inner_pairs:
            return score + at_modifier((g, h, -1, -1, s, m, f)) + any_sibling(above, h, s)
        return score + max(attached(above, h, t, s) + at_modifier((g, h, -1, t, s, m, f)) for t in inner(h, s))

    @cache
    def any_sibling(above: Above, h: int, m: int) -> float:
        return max(attached(above, h, s, m) for s in inner(h, m))

    @cache
    def between(above: Above, i: int, j: int) -> float:
        """Successive modifiers i < j of one head, with their inner descendants."""
        return max(complete(above, i, 1, r) + complete(above, j, 0, r + 1) for r in range(i, j))

    if n == 0:
        return at_end((-1, 0, 1, -1, 0, -1, -1))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10_000))
    try:
        for width in range(1, n):  # short spans first, so that the recursion stays shallow
            for i in range(1, n - width + 1):
                j = i + width
                for h, side, e in ((i, 1, j), (j, 0, i)):
                    for above in contexts(h):
                        if not any(i <= ancestor <= j for ancestor in above):
                            complete(above, h, side, e)
        if not problem.single:
            return complete(NOBODY, 0, 1, n)
        top = below(NOBODY, 0)
        return max(
            arcs[0][m]
            + at_modifier((-1, 0, -1, -1, 0, m, -1))
            + at_end((-1, 0, 1, -1, m, -1, -1))
            + complete(top, m, 0, 1)
            + complete(top, m, 1, n)
            for m in range(1, n + 1)
        )
    finally:
        sys.setrecursionlimit(limit)
