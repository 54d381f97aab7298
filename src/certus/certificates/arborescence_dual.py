r"""Best spanning trees bounded by a laminar family of node sets: the linear program of Edmonds and its dual.

The arcs x of a tree over nodes 0 .. n maximise  sum w x  subject to

    sum_h x[h, m] = 1                              for every node m > 0          (alpha[m])
    sum_{h not in S, m in S} x[h, m] >= 1          for node sets S without 0     (beta[S] >= 0)
    sum_m x[0, m] <= 1                             with a single root            (gamma >= 0)

so that  sum alpha - sum beta + gamma  is at least the weight of every tree, whenever

    w[h, m]  <=  alpha[m] - sum {beta[S] : m in S, h not in S} + gamma [h = 0]   for all arcs h -> m.

A tree weighs that sum less the slack of its arcs, less beta[S] for each further arc that enters a set S, less gamma if
it has no arc from node 0: so a tree with an arc a weighs at most the sum less the slack of a. Contracting cycles
([Edmonds67]_) finds sets and numbers for which the sum is attained; they are made of weights by adding and subtracting,
so that whole numbers give whole numbers. No kernel is imported.
"""

from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.certificates.rounding import EPSILON, Floats
from certus.checks import Bools, Ints

Numbers = NDArray[Any]  # float64, or complex128 for pairs

FORBIDDEN = complex(-np.inf, 0.0)


class LaminarDual(NamedTuple):
    """Any two of the sets are disjoint, or one holds the other; alpha[0] is 0."""

    alpha: Floats  # (n + 1,)
    sets: list[Ints]
    beta: Floats  # (len(sets),)
    gamma: float


def laminar_dual(weight: Floats, single: bool) -> LaminarDual:
    """Dual numbers for the best tree under weight[h, m] (-inf: no arc; column 0 and the diagonal are not read).

    Their sum is the weight of the best tree, exactly so where weights are whole numbers with room for their sums in
    float64; where there is no tree they mean nothing. O(n^2) for each contracted cycle, in numpy.

    With a single root an arc from node 0 counts 1 more than any weight can make up for: numbers are pairs (minus that
    count, weight), kept as complex numbers, which numpy compares by their real parts first. The least gamma for which
    the pairs keep their order stands for the 1 in the end.
    """
    arcs = _arcs(weight)
    pair = np.full(weight.shape, FORBIDDEN)
    pair.real[arcs] = 0.0
    pair.imag[arcs] = weight[arcs]
    if single:
        pair.real[0] -= 1.0
    alpha, sets, beta = _contracted(pair.copy())
    gamma = _least_gamma(_slack(pair, alpha, sets, beta)[arcs], beta) if single else 0.0
    return LaminarDual(alpha.imag + gamma * alpha.real, sets, beta.imag + gamma * beta.real, gamma)


def dual_bound(weight: Floats, single: bool, dual: LaminarDual) -> tuple[float, Floats]:
    """What no tree outweighs, by dual numbers of any origin, and the slack of every arc, inf where there is none.

    No tree with the arc h -> m weighs more than the bound less slack[h, m]. Where numbers are infeasible alpha is
    raised and signs are mended, so that the bound is valid whatever was given; -inf where there is no tree at all.
    Exact for whole numbers whose sums have room in float64; else what rounding may hide is added.
    """
    arcs = _arcs(weight)
    if not _has_tree(arcs, single):
        return -np.inf, np.full(weight.shape, np.inf)
    beta, gamma = np.maximum(dual.beta, 0.0), max(dual.gamma, 0.0) if single else 0.0
    over = np.where(arcs, weight, -np.inf)
    over[0] -= gamma
    over = _slack(over, dual.alpha, dual.sets, beta)
    hidden = _rounding(np.where(arcs, np.abs(weight), 0.0), dual._replace(beta=beta, gamma=gamma))
    over += hidden
    raised = np.zeros(len(over))
    raised[1:] = np.maximum(over[:, 1:].max(axis=0), 0.0)
    bound = fsum(np.concatenate((dual.alpha[1:], raised, -beta, [gamma])))
    if hidden.any() or abs(bound) >= 2.0**53:
        bound = float(np.nextafter(bound, np.inf))
    return bound, np.maximum(raised - over, 0.0)


def _rounding(size: Floats, dual: LaminarDual) -> Floats:
    """How far each weight, of so large a size, less dual numbers may be from the truth.

    Nothing for whole numbers with room for their sums.
    """
    into = np.abs(dual.alpha) + dual.gamma
    for nodes, number in zip(dual.sets, dual.beta.tolist(), strict=True):
        into[nodes] += number
    largest = size + into
    whole = all((np.floor(x) == x).all() for x in (size, dual.alpha, dual.beta, np.array(dual.gamma)))
    return EPSILON * (len(dual.beta) + 8) * np.where(whole & (largest < 2.0**53), 0.0, largest)


def _arcs(weight: Floats) -> Bools:
    """Where there is an arc."""
    arcs: Bools = weight > -np.inf
    arcs[:, 0] = False
    np.fill_diagonal(arcs, False)
    return arcs


def _contracted(pair: Numbers) -> tuple[Numbers, list[Ints], Numbers]:
    """Dual numbers as pairs, by contracting cycles of best arcs; overwrites ``pair``. All 0 where there is no tree.

    A contracted cycle lives on in the row and the column of one of its nodes. Best arcs into every node weigh 0.
    """
    size = len(pair)
    alpha, sets, beta = np.zeros(size, dtype=np.complex128), list[Ints](), list[complex]()
    none = alpha.copy(), list[Ints](), np.zeros(0, dtype=np.complex128)
    if size == 1:
        return none
    alpha[1:] = pair[:, 1:].max(axis=0)
    if (alpha.real == -np.inf).any():
        return none
    pair[:, 1:] -= alpha[1:]
    members = [[v] for v in range(size)]
    alive = np.ones(size, dtype=bool)
    alive[0] = False
    while cycles := _cycles(np.where(alive, pair.argmax(axis=0), 0).tolist()):
        for cycle in cycles:
            entering, leaving = pair[:, cycle].max(axis=1), pair[cycle].max(axis=0)
            pair[:, cycle] = pair[cycle] = entering[cycle] = leaving[cycle] = FORBIDDEN
            best = entering.max()
            if best.real == -np.inf:
                return none
            kept = cycle[0]
            pair[:, kept], pair[kept] = entering - best, leaving
            alive[cycle[1:]] = False
            members[kept] = [v for c in cycle for v in members[c]]
            if best != 0:
                sets.append(np.array(sorted(members[kept]), dtype=np.int64))
                beta.append(-best)
    return alpha, sets, np.array(beta, dtype=np.complex128)


def _cycles(head: list[int]) -> list[list[int]]:
    """The cycles of a map from nodes to heads in which node 0 leads to itself, that one left out."""
    seen = [0] + [-1] * (len(head) - 1)  # the walk that came by first
    found = []
    for start in range(1, len(head)):
        v = start
        while seen[v] < 0:
            seen[v] = start
            v = head[v]
        if seen[v] == start and v != 0:
            cycle, u = [v], head[v]
            while u != v:
                cycle.append(u)
                u = head[u]
            found.append(cycle)
    return found


def _slack(weight: Numbers, alpha: Numbers, sets: list[Ints], beta: Numbers) -> Numbers:
    """How much each weight is above alpha less the beta of the sets that the arc enters."""
    inside = np.zeros((len(sets), len(weight)))
    for row, nodes in zip(inside, sets, strict=True):
        row[nodes] = 1.0
    over: Numbers = weight - alpha
    over += (1.0 - inside).T @ (beta[:, None] * inside)
    return over


def _least_gamma(over: Numbers, beta: Numbers) -> float:
    """The least whole number that can stand for the 1 of arcs from node 0: over <= 0 and beta >= 0 are to hold."""
    tied = np.concatenate((over, -beta))
    tied = tied[(tied.real < 0) & (tied.imag > 0)]
    return float((-np.floor_divide(tied.imag, tied.real)).max(initial=0.0))


def _has_tree(arcs: Bools, single: bool) -> bool:
    """Whether paths lead from node 0 to all nodes; with a single root, from one of the nodes next to it."""
    if len(arcs) == 1:
        return True
    reach = arcs.astype(np.float64)
    if single:
        reach[0] = 0.0
    np.fill_diagonal(reach, 1.0)
    for _ in range(len(arcs).bit_length()):
        reach = (reach @ reach > 0.0).astype(np.float64)
    from_all: Bools = np.all(reach[:, 1:] > 0.0, axis=1)
    return bool((from_all & arcs[0]).any() if single else from_all[0])
