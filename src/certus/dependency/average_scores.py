r"""A lower bound of the log-partition function, from trees whose arcs alone are scored (Gibbs; Jensen's inequality).

For every distribution q over trees,  log sum_y exp(score(y))  >=  E_q[score] + H(q).  With q proportional to
exp(sum of t[h, m]) over all trees, H(q) = log Z_t - E_q[t], and the average score is a sum over parts of their scores
times their probability. A part says which arcs a tree has and which it has not (the modifiers of h between s and m), so
its probability is the quotient of two sums of the matrix-tree theorem, neither of which subtracts anything.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certus.certificates.rounding import EPSILON, of_log_sum
from certus.checks import Bools, Floats
from certus.dependency import matrix_tree
from certus.dependency.part_kinds import END, HIGHER_KINDS, LEFT, MODIFIER, OUTERMOST, RIGHT, PartKind

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

LEFT_OUT = 0.01  # probability, at most, that a tree has one of the arcs that are left out of q
CHUNK = 256  # parts whose probabilities are found by one call
MOST_STEPS = 4e9  # for parts so many that it takes more operations, there is no such bound

Arc = tuple[int, int]


class Part(NamedTuple):
    """A part: its nodes, which index the scores of its kind; arcs that trees with it have; those that they lack."""

    nodes: tuple[int, ...]
    has: tuple[Arc, ...]
    lacks: tuple[Arc, ...]


def lower_bound(problem: "Dependency", tree: Floats, *, left_out: float = LEFT_OUT) -> float:
    """The bound for the distribution over trees with arc scores ``tree``, less its rarest arcs; rounded down.

    -inf where some tree of the distribution has a forbidden part, or where there are too many parts.
    """
    n = problem.n
    kept = without_rare_arcs(tree, problem.root, left_out)
    probability = matrix_tree.marginals(kept, problem.root)
    log_total = matrix_tree.log_partition(kept, problem.root)
    used = kept > -np.inf
    gains = [probability[used] * (problem.arc[used] - kept[used])]
    parts = [(name, part) for name in problem.scores for part in _parts(problem, HIGHER_KINDS[name], used)]
    if len(parts) * float(n + 1) ** 3 > MOST_STEPS:
        return -np.inf
    for start in range(0, len(parts), CHUNK):
        some = parts[start : start + CHUNK]
        scores = np.array([problem.scores[name].at(*part.nodes) for name, part in some])
        share = _probabilities(kept, [part for _, part in some], problem.root, log_total)
        happens = share > 0.0
        if (scores[happens] == -np.inf).any():
            return -np.inf
        gains.append(scores[happens] * share[happens])
    terms = np.concatenate(gains)
    largest = (n + 1) * (float(np.abs(kept[used]).max(initial=0.0)) + n)
    relative = 4.0 * of_log_sum(matrix_tree.sum_steps(n), largest)
    error = relative * (1.0 + float(np.abs(terms).sum())) + EPSILON * len(terms) * float(np.abs(terms).sum())
    return log_total + float(terms.sum()) - error


def without_rare_arcs(tree: Floats, root: str, left_out: float) -> Floats:
    """The scores of all but the rarest arcs, which some tree does without: their probabilities add up to less than 1.

    So few parts are left to be asked for.
    """
    probability = matrix_tree.marginals(tree, root).reshape(-1)
    order = np.argsort(probability, kind="stable")
    rare = order[np.cumsum(probability[order]) < left_out]
    kept = tree.copy()
    kept.reshape(-1)[rare] = -np.inf
    return kept


def _probabilities(tree: Floats, parts: list[Part], root: str, log_total: float) -> Floats:
    """The probability that a tree has each part."""
    arcs = np.repeat(tree[None], len(parts), axis=0)
    for scores, part in zip(arcs, parts, strict=True):
        for h, m in part.lacks:
            scores[h, m] = -np.inf
        for h, m in part.has:
            only = scores[h, m]
            scores[:, m] = -np.inf
            scores[h, m] = only
    lengths = np.full(len(parts), len(tree) - 1)
    return np.exp(matrix_tree.log_partition_batch(arcs, lengths, root) - log_total)


def _parts(problem: "Dependency", kind: PartKind, used: Bools) -> Iterator[Part]:
    """The parts of a kind that trees over the arcs used may have."""
    place = problem.model.places[kind.name]
    n = problem.n
    for h, side in product(range(n + 1), (LEFT, RIGHT)):
        words = range(h + 1, n + 1) if side == RIGHT else range(h - 1, 0, -1)
        beside = [m for m in words if used[h, m]]
        if h == 0 and side == LEFT:
            continue
        for above in _above(kind, h, used):
            arcs = tuple(pairwise((*above, h)))
            letters = dict(zip("fg"[2 - len(above) :], above, strict=True)) | {"h": h, "d": side}
            for chosen, lacks in _beside(kind, place, h, beside):
                node = letters | dict(zip("mst", chosen, strict=False))
                if place not in (MODIFIER, OUTERMOST):
                    node["s"] = chosen[0]
                has = (*arcs, *((h, m) for m in dict.fromkeys(chosen) if m != h))
                yield Part(tuple(node[letter] for letter in kind.axes), has, tuple((h, m) for m in lacks))


def _above(kind: PartKind, h: int, used: Bools) -> Iterator[tuple[int, ...]]:
    """The heads above h that a part of the kind may have, the highest first."""
    chains: list[tuple[int, ...]] = [()]
    for letter in "gf":
        if letter in kind.axes:
            below = [(chain, chain[0] if chain else h) for chain in chains]
            chains = [(g, *chain) for chain, v in below for g in np.flatnonzero(used[:, v]).tolist()]
    yield from chains


def _beside(kind: PartKind, place: str, h: int, beside: list[int]) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """The modifiers (m, s, t) of a part as far as the kind has them, h for none, and those that it excludes.

    For ends of a side the first is the outermost modifier, or h.
    """
    for last in range(-1, len(beside)):
        m = beside[last] if last >= 0 else h
        if place not in (MODIFIER, OUTERMOST):
            if place == END or last < 0:
                yield (m,), beside[last + 1 :]
            continue
        if last < 0:
            continue
        outer = beside[last + 1 :] if place == OUTERMOST else []
        if "s" not in kind.axes:
            yield (m,), outer
            continue
        for second in range(-1, last):
            s = beside[second] if second >= 0 else h
            between = [*outer, *beside[second + 1 : last]]
            if "t" not in kind.axes:
                yield (m, s), between
            elif second >= 0:
                for third in range(-1, second):
                    t = beside[third] if third >= 0 else h
                    yield (m, s, t), [*between, *beside[third + 1 : second]]
