"""Every dependency tree of n words, one by one, in plain Python: the oracle for all tree decoders.

A tree is a tuple of heads of length n + 1: ``heads[m]`` is the head of word m (0 is the root), ``heads[0]`` is -1.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product

Heads = tuple[int, ...]


def is_tree(heads: Sequence[int], root: str = "single") -> bool:
    """True if every word reaches node 0, and, with root="single", node 0 has exactly one child (none if n = 0)."""
    n = len(heads) - 1
    if root == "single" and n > 0 and sum(heads[m] == 0 for m in range(1, n + 1)) != 1:
        return False
    for m in range(1, n + 1):
        v, steps = m, 0
        while v != 0 and steps <= n:
            v, steps = heads[v], steps + 1
        if v != 0:
            return False
    return True


def is_projective(heads: Sequence[int]) -> bool:
    """True if every word between a head and its modifier descends from that head."""
    for m in range(1, len(heads)):
        h = heads[m]
        for v in range(min(h, m) + 1, max(h, m)):
            u = v
            while u not in (0, h):
                u = heads[u]
            if u != h:
                return False
    return True


@cache
def all_trees(n: int, root: str = "single") -> tuple[Heads, ...]:
    """Every arborescence over n words, crossing arcs allowed, in lexicographic order of heads.

    There are n^(n-1) with a single root and (n+1)^(n-1) with any number of roots.
    """
    choices = [[h for h in range(n + 1) if h != m] for m in range(1, n + 1)]
    candidates = ((-1, *heads) for heads in product(*choices))
    return tuple(heads for heads in candidates if is_tree(heads, root))


@cache
def projective_trees(n: int, root: str = "single") -> tuple[Heads, ...]:
    """The trees of ``all_trees`` in which no arcs cross (node 0 stands left of the sentence)."""
    return tuple(heads for heads in all_trees(n, root) if is_projective(heads))


def arc_score(arc: Sequence[Sequence[float]], heads: Sequence[int]) -> float:
    """Sum of arc[h][m] over the arcs of a tree."""
    return float(sum(arc[heads[m]][m] for m in range(1, len(heads))))
