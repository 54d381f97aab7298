"""Recheck a result from the problem alone, in plain Python: no kernel is imported, nothing found by one is believed.

The score is recomputed from the structure. The bound is recomputed from its witness: a dynamic program is run again, a
vector of multipliers is evaluated, a proof tree is walked. The tolerance is derived again, so that it cannot be used
to hide a gap.
"""

from itertools import islice
from math import isnan
from typing import Any, TypeVar

import numpy as np

from certus.checks import Floats
from certus.errors import CertusError, InvalidInput, NotSupported, VerificationError
from certus.problem import DynamicProgram, Problem
from certus.relax.proof import Fix, Leaf, Proof, Removed, Split
from certus.relax.system import Fixings, Relaxation
from certus.result import KINDS, Certificate, Result

Y = TypeVar("Y")

MOST_ENUMERATED = 200_000  # structures of a problem whose k-th best has no other check


def verify(problem: Problem[Y], result: Result[Y]) -> None:
    """Check everything a result claims; return None if it holds, raise VerificationError if anything does not.

    Costs about as much as the decoding did, in plain Python: seconds for a sentence. The bound must be what its witness
    gives, neither below (then it would be false) nor above (then it was not what was found).

    Raises
    ------
    VerificationError : the structure is none of this problem, or score, bound or tolerance is not what it should be.
    NotSupported : the result is the k-th best of a problem with too many structures to recount.
    """
    certificate = result.certificate
    if certificate.kind not in KINDS:
        raise VerificationError(f"the certificate is of kind {certificate.kind!r}; expected one of {', '.join(KINDS)}.")
    try:
        score = problem.score(result.structure)
    except NotSupported:
        raise
    except (CertusError, TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise VerificationError(f"the structure is not one of this problem: {error}") from None
    if not np.isfinite(score):
        raise VerificationError(f"the structure scores {score}: it uses a forbidden part.")
    try:
        bound, tolerance = _bound(problem, certificate)
    except InvalidInput as error:
        raise VerificationError(f"the witness of the bound does not fit the problem: {error}") from None
    bound = max(bound, score) if certificate.rank == 1 else bound
    claimed = (result.score, certificate.score, certificate.bound, certificate.tolerance)
    if any(not isinstance(x, int | float) or isnan(x) for x in claimed):
        raise VerificationError(f"score, bound and tolerance are {claimed}; expected numbers.")
    if not 0 <= certificate.tolerance <= tolerance * (1 + 1e-9):
        raise VerificationError(
            f"tolerance {certificate.tolerance:g} is claimed; rounding accounts for {tolerance:g} at most."
        )
    _same("score", result.score, score, tolerance)
    _same("the certificate's score", certificate.score, score, tolerance)
    _same("bound", certificate.bound, bound, tolerance)


def _same(name: str, claimed: float, found: float, tolerance: float) -> None:
    if not abs(claimed - found) <= tolerance:
        raise VerificationError(f"{name} is claimed to be {claimed!r}; recomputed, it is {found!r}.")


def _bound(problem: Problem[Any], certificate: Certificate) -> tuple[float, float]:
    """The bound that the witness gives, and the rounding it may carry."""
    if isinstance(certificate.rank, bool) or not isinstance(certificate.rank, int) or certificate.rank < 1:
        raise InvalidInput(f"rank is {certificate.rank!r}; expected a whole number of at least 1.")
    if certificate.rank > 1:
        return _ranked(problem, certificate.rank), problem.tolerance()
    if certificate.kind == "integer program":
        from certus.relax.linear import integer_bound

        return integer_bound(problem)
    if certificate.kind not in ("dual", "branch and bound"):
        return problem.reference_maximum(), problem.tolerance()
    own = getattr(problem, "reference_dual", None)
    if certificate.kind == "dual" and own is not None:  # a problem that relaxes itself in its own way
        bound, tolerance = own(certificate.duals)
        return float(bound), float(tolerance)
    relaxation = Relaxation.of(problem)
    if certificate.kind == "dual":
        return _walk(relaxation, Leaf(certificate.duals))
    if not isinstance(certificate.duals, Leaf | Fix | Split):
        raise InvalidInput(f"the proof tree is {type(certificate.duals).__name__}.")
    return _walk(relaxation, certificate.duals)


def _ranked(problem: Problem[Any], rank: int) -> float:
    """Score of the structure of that rank, found by plain k-best or by counting all."""
    if isinstance(problem, DynamicProgram):
        from certus.hypergraph.reference import kbest_values

        forest = problem.forest()
        values = kbest_values(forest.graph, forest.weights, rank)
    else:
        structures = list(islice(problem.all_structures(), MOST_ENUMERATED + 1))
        if len(structures) > MOST_ENUMERATED:
            raise NotSupported(
                f"the k-th best of more than {MOST_ENUMERATED} structures cannot be recounted; verify rank 1."
            )
        values = sorted((s for s in map(problem.score, structures) if s > -np.inf), reverse=True)
    if len(values) < rank:
        raise VerificationError(f"rank {rank} is claimed; there are {len(values)} structures.")
    return values[rank - 1]


def _walk(relaxation: Relaxation, proof: Proof) -> tuple[float, float]:
    """The largest bound of a proof tree, and the largest rounding any of its values may carry."""
    bound, tolerance = -np.inf, 0.0
    stack: list[tuple[Proof, Fixings]] = [(proof, relaxation.initial_fixings())]
    while stack:
        node, fixings = stack.pop()
        if isinstance(node, Split):
            _check_part(relaxation, node.view, node.index)
            stack.append((node.zero, relaxation.fix(fixings, node.view, node.index, 0)))
            stack.append((node.one, relaxation.fix(fixings, node.view, node.index, 1)))
            continue
        multipliers = relaxation.unnamed(node.multipliers)
        tolerance = max(tolerance, relaxation.tolerance(multipliers, fixings))
        if isinstance(node, Leaf):
            bound = max(bound, sum(_values(relaxation, multipliers, fixings)) - float(multipliers @ relaxation.rhs))
        else:
            zeros = fixings.zeros.copy()
            for removed in node.removed:
                for index in removed.indices:
                    _check_part(relaxation, removed.view, index)
                    zeros[relaxation.cells_of(removed.view, index)] = True
            bound = max(bound, _removed_bound(relaxation, multipliers, fixings, node.removed))
            stack.append((node.rest, Fixings(zeros, fixings.ones)))
    return bound, tolerance


def _check_part(relaxation: Relaxation, view: str, index: int) -> None:
    if view not in relaxation.views:
        raise InvalidInput(f"the proof speaks of view {view!r}, which the problem does not have.")
    shape = relaxation.shape_of(relaxation.views[view][0])
    if not 0 <= index < int(np.prod(shape, dtype=np.int64)):
        raise InvalidInput(f"the proof speaks of part {index} of view {view!r}, which has shape {shape}.")


def _value(relaxation: Relaxation, i: int, penalty: Floats, ones: tuple[int, ...]) -> float:
    """Best weighted value of subproblem i under penalties, by its plain reference."""
    asked, offset = relaxation.question(i, penalty, ones)
    return relaxation.weights[i] * relaxation.subproblems[i].reference_maximum(asked) + offset


def _values(relaxation: Relaxation, multipliers: Floats, fixings: Fixings) -> list[float]:
    penalty = relaxation.penalties(multipliers, fixings)
    return [_value(relaxation, i, penalty, fixings.ones) for i in range(len(relaxation.subproblems))]


def _removed_bound(
    relaxation: Relaxation, multipliers: Floats, fixings: Fixings, removed: tuple[Removed, ...]
) -> float:
    """No structure that uses any of the removed parts scores more than this.

    In an exclusive view all removed parts along one line are checked at once, by forbidding those that stay; in others
    each part is required in turn.
    """
    penalty = relaxation.penalties(multipliers, fixings)
    values = _values(relaxation, multipliers, fixings)
    total = sum(values) - float(multipliers @ relaxation.rhs)
    if not total > -np.inf:
        return total
    worst = -np.inf
    for part in removed:
        blocks = relaxation.views[part.view]
        if part.copy >= len(blocks) or blocks[part.copy] not in relaxation.offsets:
            raise InvalidInput(f"the proof speaks of copy {part.copy} of view {part.view!r}, which there is not.")
        block = blocks[part.copy]
        i, start, shape = block[0], relaxation.offsets[block], relaxation.shape_of(block)
        rest = total - values[i]
        gone = np.zeros(shape, dtype=bool)
        gone.reshape(-1)[list(part.indices)] = True
        axis = relaxation.subproblems[i].exclusive.get(block[1])
        if axis is None:
            for index in part.indices:
                worst = max(worst, rest + _value(relaxation, i, penalty, (*fixings.ones, start + index)))
            continue
        for line in np.ndindex(*(size for k, size in enumerate(shape) if k != axis)):
            at = (*line[:axis], slice(None), *line[axis:])
            if gone[at].any():
                kept = np.zeros(shape, dtype=bool)
                kept[at] = ~gone[at]
                masked = penalty.copy()
                masked[start : start + kept.size][kept.ravel()] = -np.inf
                worst = max(worst, rest + _value(relaxation, i, masked, fixings.ones))
    return worst
