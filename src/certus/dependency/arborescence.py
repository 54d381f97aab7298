"""Best non-projective dependency trees with arc scores: decode, max-marginals, and why there may be no tree.

LR 2.1.2 states the problem. The contraction of cycles is [Edmonds67]_, in the dense O(n^2) form of [Tarjan77]_; the
treatment of the single root and the max-marginals are described in ``certus.kernels.arborescence``.
"""

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.certificates.rounding import extent_of
from certus.checks import Floats, Ints
from certus.errors import Infeasible

FAR = 1e6  # scores so many times below the others cost six digits of a difference


def best_heads(arc: Floats, root: str) -> tuple[Ints, float]:
    """Heads and score of the best tree for checked scores (n + 1, n + 1). Raises Infeasible when there is none."""
    n = len(arc) - 1
    n_floats, n_ints = kernels.arborescence.work_sizes(n)
    heads = np.empty(n + 1, dtype=np.int64)
    work = np.empty(n_floats), np.empty(n_ints, dtype=np.int64)
    value = kernels.arborescence.best_heads(arc.reshape(-1), n + 1, n, root == "single", heads, *work)
    if value == -np.inf:
        raise no_tree(arc, root)
    return heads, value


def max_marginals(arc: Floats, root: str) -> Floats:
    """Score of the best tree that contains each arc, (n + 1, n + 1); -inf for arcs in no tree. O(n^3) time.

    The maximum over the heads of any one word is the best tree's score. Raises Infeasible when there is no tree. Where
    some scores are far below the others, trees that can do without them are looked for first, as the differences of
    scores that are formed on the way would lose digits to them.
    """
    extent = extent_of(len(arc) - 1, arc)
    usual = max(extent.highest, 1.0)
    best = np.full(arc.shape, -np.inf)
    for floor in (-usual * FAR**k for k in range(1, 52)):
        if extent.lowest >= floor:
            break
        try:
            found = _max_marginals(np.where(arc < floor, -np.inf, arc), root)
        except Infeasible:
            continue
        sure = found > floor + extent.ceiling  # no tree with a score below the floor is better
        best = np.where(sure & (best == -np.inf), found, best)
    found = _max_marginals(arc, root)
    return np.where(best > -np.inf, best, found)


def _max_marginals(arc: Floats, root: str) -> Floats:
    n = len(arc) - 1
    out = np.empty((n + 1, n + 1))
    flat = arc.flatten()  # one that may be written to, whatever arc is: other types are compiled anew
    kernels.arborescence.max_marginals(flat, n + 1, n, root == "single", out)
    if n > 0 and not (out > -np.inf).any():
        raise no_tree(arc, root)
    return out


def max_marginals_batch(arc: Floats, lengths: Ints, root: str) -> Floats:
    """Max-marginals (B, N, N) of a padded batch, in one kernel call; all -inf for a sentence without a tree."""
    out = np.empty(arc.shape)
    kernels.arborescence.max_marginals_batch(arc.reshape(-1), arc.shape[1], lengths, root == "single", out)
    return out


def no_tree(arc: Floats, root: str) -> Infeasible:
    """Infeasible error for scores without a tree: names a token without a head, or the tokens out of reach."""
    n = len(arc) - 1
    allowed = arc > -np.inf
    np.fill_diagonal(allowed, False)

    for m in range(1, n + 1):
        if not allowed[:, m].any():
            return Infeasible(f"word {m} has no head: all {n} arcs into it are -inf. Allow one.")
    lost = _listed(~_reachable(allowed, 0))
    if lost:
        turned = "" if (arc[0, 1:] > -np.inf).any() else " All arcs from node 0 are -inf: arc[h, m] has the head first."
        return Infeasible(f"no path of allowed arcs leads from the root to {lost}. Allow an arc into that set.{turned}")
    candidates = [int(m) for m in np.flatnonzero(allowed[0])]
    allowed[0] = False
    least = min((_reachable(allowed, m) for m in candidates), key=lambda seen: int((~seen[1:]).sum()))
    least[0] = True
    return Infeasible(
        f'root="single" leaves no tree: none of the {len(candidates)} tokens that the root may govern leads to all '
        f'others; the best of them misses {_listed(~least)}. Allow an arc into that set, or use root="multi".'
    )


def _reachable(allowed: NDArray[np.bool_], start: int) -> NDArray[np.bool_]:
    """Nodes that paths of allowed arcs lead to from ``start``, itself included."""
    seen = np.zeros(len(allowed), dtype=np.bool_)
    seen[start] = True
    todo = [start]
    while todo:
        new = allowed[todo.pop()] & ~seen
        seen |= new
        todo.extend(np.flatnonzero(new).tolist())
    return seen


def _listed(nodes: NDArray[np.bool_]) -> str:
    """Nodes as text: "tokens 2, 3, 7"; empty if there are none."""
    indices = np.flatnonzero(nodes).tolist()
    if not indices:
        return ""
    more = f" and {len(indices) - 20} more" if len(indices) > 20 else ""
    return f"token{'s' if len(indices) > 1 else ''} {', '.join(map(str, indices[:20]))}{more}"
