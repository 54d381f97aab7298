"""Recheck a result from the problem alone, in plain Python: no kernel is imported, nothing found by one is believed.

The score is recomputed from the structure. Scores that the certificate left out are shown to be of no use. The bound is
recomputed from its witness: a dynamic program is run again, a vector of multipliers is evaluated, a proof tree is
walked. What rounding may account for is derived again, so that the tolerance cannot be used to hide a gap.
"""

from fractions import Fraction
from itertools import islice
from math import isnan
from typing import Any, TypeVar

import numpy as np

from certus.certificates.rounding import EPSILON, EXACT, allowed, total
from certus.certificates.sound import hopeless, own_floor, rounded_up, whole
from certus.checks import Floats
from certus.errors import CertusError, InvalidInput, NotSupported, VerificationError
from certus.hypergraph.reference import kbest_values
from certus.problem import Problem
from certus.relax.proof import Fix, Leaf, Proof, Removed, Split
from certus.relax.system import Fixings, Relaxation
from certus.result import KINDS, Certificate, Result

Y = TypeVar("Y")

MOST_ENUMERATED = 200_000  # structures of a problem whose k-th best has no other check


def verify(problem: Problem[Y], result: Result[Y]) -> None:
    """Check everything a result claims; return None if it holds, raise VerificationError if anything does not.

    Costs about as much as the decoding did, in plain Python: seconds for a sentence.

    Raises
    ------
    VerificationError : the structure is none of this problem, or score, bound or tolerance is not what it should be.
    NotSupported : the result is the k-th best of a problem with too many structures to recount.
    """
    certificate = result.certificate
    if certificate.kind not in KINDS:
        raise VerificationError(f"the certificate is of kind {certificate.kind!r}; expected one of {', '.join(KINDS)}.")
    claimed = (result.score, certificate.score, certificate.bound, certificate.tolerance)
    if any(isinstance(x, bool) or not isinstance(x, int | float) or isnan(x) for x in claimed):
        raise VerificationError(f"score, bound and tolerance are {claimed}; expected numbers.")
    try:
        scores = [float(x) for x in problem.terms(result.structure)]
    except NotSupported:
        raise
    except (CertusError, TypeError, ValueError, IndexError, KeyError, AttributeError) as wrong:
        raise VerificationError(f"the structure is not one of this problem: {wrong}") from None
    score = total(scores)
    if not np.isfinite(score):
        raise VerificationError(f"the structure scores {score}: it uses a forbidden part.")
    slack = EPSILON * max(len(scores), 1) * total(map(abs, scores))
    for name, value in (("score", result.score), ("the certificate's score", certificate.score)):
        if not abs(value - score) <= slack:
            raise VerificationError(f"{name} is claimed to be {value!r}; recomputed, it is {score!r}.")
    try:
        _check_bound(_floored(problem, certificate.floor, score), certificate, scores, score)
    except VerificationError as refused:
        if certificate.floor is not None:
            raise
        # Scores that are never read, or of no use, may have widened what rounding must account for.
        try:
            cleared = problem.without_scores_below(own_floor(problem, score))
        except NotSupported:
            raise refused from None
        _check_bound(cleared, certificate, scores, score)


def _check_bound(asked: Problem[Any], certificate: Certificate, scores: list[float], score: float) -> None:
    """No structure beats the bound: the witness gives no more."""
    above = certificate.bound + certificate.tolerance
    try:
        bound, error = _bound(asked, certificate, above)
    except InvalidInput as wrong:
        raise VerificationError(f"the witness of the bound does not fit the problem: {wrong}") from None
    _check_tolerance(certificate, scores)
    if certificate.rank == 1:
        bound = max(bound, score)
    elif score > bound + error + EPSILON * len(scores) * total(map(abs, scores)):
        raise VerificationError(f"rank {certificate.rank} is claimed; that is a score of {bound!r}, not of {score!r}.")
    if above >= bound + error or above >= _attainable(asked, certificate, bound, error):
        return
    raised = rounded_up(asked)
    if raised is None or not above >= _attainable(raised, certificate, *_bound(raised, certificate, above)):
        within = f"{certificate.bound!r} within {certificate.tolerance:g}"
        raise VerificationError(f"bound is claimed to be {within}; recomputed, it is {bound!r}.")


def _attainable(problem: Problem[Any], certificate: Certificate, bound: float, error: float) -> float:
    """The most that a structure can score: where scores have a grain, a multiple of it that is no more than the bound.

    inf where they have none. Sums of scores with a grain are not rounded, so that a bound made of them has no error.
    """
    step = whole(problem)
    if certificate.kind in ("dynamic program", "combinatorial"):
        error = 0.0  # without multipliers, which have no grain
    if not step or not np.isfinite(bound + error):
        return float(bound) if step and bound == -np.inf else np.inf
    return float((Fraction(bound) + Fraction(error)) // Fraction(step) * Fraction(step))


def _floored(problem: Problem[Any], floor: float | None, score: float) -> Problem[Any]:
    """The problem that the witness is about: without scores that are too low for a structure of this score."""
    if floor is None:
        return problem
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not floor < np.inf:
        raise VerificationError(f"the floor of the scores is {floor!r}; expected a number, or -inf.")
    asked = problem.without_scores_below(float(floor))
    if not hopeless(problem, float(floor), score):
        raise VerificationError(f"scores below {floor:g} were left out, but a structure that uses one may be better.")
    return asked


def _check_tolerance(certificate: Certificate, scores: list[float]) -> None:
    """The tolerance is small where the certificate says that it is a proof."""
    most = allowed(scores)
    if certificate.exact and certificate.kind == "integer program":
        raise VerificationError("a proof is claimed; the word of a solver that calculates within tolerances is none.")
    if not 0 <= certificate.tolerance < np.inf and (certificate.exact or certificate.tolerance < 0):
        raise VerificationError(f"tolerance {certificate.tolerance:g} is claimed; expected a finite number, 0 or more.")
    if certificate.exact and not certificate.tolerance <= most * (1 + 1e-9):
        raise VerificationError(
            f"tolerance {certificate.tolerance:g} is claimed for a proof; {EXACT:g} of the scores in use is {most:g}."
        )


def _bound(problem: Problem[Any], certificate: Certificate, above: float) -> tuple[float, float]:
    """The bound that the witness gives, and how far rounding may have taken it from the truth."""
    if isinstance(certificate.rank, bool) or not isinstance(certificate.rank, int) or certificate.rank < 1:
        raise InvalidInput(f"rank is {certificate.rank!r}; expected a whole number of at least 1.")
    if certificate.rank > 1:
        return _with_error(problem, _ranked(problem, certificate.rank))
    if certificate.kind == "integer program":
        from certus.relax.linear import integer_bound  # scipy, which nothing else here needs

        return integer_bound(problem)
    if certificate.kind not in ("dual", "branch and bound"):
        return _with_error(problem, problem.reference_maximum())
    own = problem.reference_dual(certificate.duals) if certificate.kind == "dual" else None
    if own is not None:
        return own
    relaxation = Relaxation.of(problem)
    if certificate.kind == "dual":
        return _walk(relaxation, Leaf(certificate.duals), above)
    if not isinstance(certificate.duals, Leaf | Fix | Split):
        raise InvalidInput(f"the proof tree is {type(certificate.duals).__name__}.")
    return _walk(relaxation, certificate.duals, above)


def _with_error(problem: Problem[Any], value: float) -> tuple[float, float]:
    """A best value found again, and how far it may be from the truth."""
    return value, min(problem.error(), problem.error_at(value))


def _ranked(problem: Problem[Any], rank: int) -> float:
    """Score of the structure of that rank, found by plain k-best or by counting all."""
    try:
        forest = problem.forest()
    except NotSupported:
        forest = None
    if forest is None:
        structures = list(islice(problem.all_structures(), MOST_ENUMERATED + 1))
        if len(structures) > MOST_ENUMERATED:
            raise NotSupported(
                f"the k-th best of more than {MOST_ENUMERATED} structures cannot be recounted; verify rank 1."
            )
        values = sorted((s for s in map(problem.score, structures) if s > -np.inf), reverse=True)
    else:
        values = kbest_values(forest.graph, forest.weights, rank)
    if len(values) < rank:
        raise VerificationError(f"rank {rank} is claimed; there are {len(values)} structures.")
    return values[rank - 1]


def _walk(relaxation: Relaxation, proof: Proof, above: float) -> tuple[float, float]:
    """The largest bound of a proof tree, and what to add so that it is one in spite of rounding.

    A bound for structures that use certain parts need not insist on the parts: where it is no more than ``above``
    without that, so much the better, as insisting rounds more; where it is more, insisting harder may help.
    """
    found: list[tuple[float, float]] = []
    stack: list[tuple[Proof, Fixings]] = [(proof, relaxation.initial_fixings())]
    while stack:
        node, fixings = stack.pop()
        if isinstance(node, Split):
            _check_part(relaxation, node.view, node.index)
            stack.append((node.zero, relaxation.fix(fixings, node.view, node.index, 0)))
            stack.append((node.one, relaxation.fix(fixings, node.view, node.index, 1)))
            continue
        multipliers = relaxation.unnamed(node.multipliers)
        removed = node.removed if isinstance(node, Fix) else None
        insisted = [_insists(relaxation, part) for part in removed or ()]
        more = 2.0 * abs(above) if np.isfinite(above) else 0.0
        for free, extra in ((Fixings(fixings.zeros), 0.0), (fixings, 0.0), (fixings, more)):
            here = _node_bound(relaxation, multipliers, free, removed, extra)
            rounded = relaxation.error(multipliers, free, required=int(any(insisted)), extra=extra)
            if here + rounded <= above or (removed is None and not fixings.ones):
                break
        found.append((here, rounded))
        if isinstance(node, Fix):
            zeros = fixings.zeros.copy()
            for part in node.removed:
                for index in part.indices:
                    zeros[relaxation.cells_of(part.view, index)] = True
            stack.append((node.rest, Fixings(zeros, fixings.ones)))
    bound = max(here for here, _ in found)
    return bound, max((rounded - (bound - here) for here, rounded in found if here > -np.inf), default=0.0)


def _node_bound(
    relaxation: Relaxation, multipliers: Floats, fixings: Fixings, removed: tuple[Removed, ...] | None, extra: float
) -> float:
    """What no structure scores more than: at a leaf, or with any of the parts that are removed."""
    if removed is None:
        return sum(_values(relaxation, multipliers, fixings, extra)) - float(multipliers @ relaxation.rhs)
    return _removed_bound(relaxation, multipliers, fixings, removed, extra)


def _insists(relaxation: Relaxation, part: Removed) -> bool:
    """Whether the parts removed are required by rewards; InvalidInput if the relaxation does not have them."""
    for index in part.indices:
        _check_part(relaxation, part.view, index)
    blocks = relaxation.views.get(part.view, ())
    if not 0 <= part.copy < len(blocks) or blocks[part.copy] not in relaxation.offsets:
        raise InvalidInput(f"the proof speaks of copy {part.copy} of view {part.view!r}, which there is not.")
    return relaxation.insists(part.view, part.copy)


def _check_part(relaxation: Relaxation, view: str, index: int) -> None:
    if view not in relaxation.views:
        raise InvalidInput(f"the proof speaks of view {view!r}, which the problem does not have.")
    shape = relaxation.shape_of(relaxation.views[view][0])
    if not 0 <= index < int(np.prod(shape, dtype=np.int64)):
        raise InvalidInput(f"the proof speaks of part {index} of view {view!r}, which has shape {shape}.")


def _value(relaxation: Relaxation, i: int, penalty: Floats, ones: tuple[int, ...], extra: float) -> float:
    """Best weighted value of subproblem i under penalties, by its plain reference."""
    asked, offset = relaxation.question(i, penalty, ones, extra)
    return relaxation.weights[i] * relaxation.subproblems[i].reference_maximum(asked) + offset


def _values(relaxation: Relaxation, multipliers: Floats, fixings: Fixings, extra: float) -> list[float]:
    penalty = relaxation.penalties(multipliers, fixings)
    return [_value(relaxation, i, penalty, fixings.ones, extra) for i in range(len(relaxation.subproblems))]


def _removed_bound(
    relaxation: Relaxation, multipliers: Floats, fixings: Fixings, removed: tuple[Removed, ...], extra: float
) -> float:
    """No structure that uses any of the removed parts scores more than this.

    In an exclusive view all removed parts along one line are checked at once, by forbidding those that stay; in others
    each part is required in turn.
    """
    penalty = relaxation.penalties(multipliers, fixings)
    values = _values(relaxation, multipliers, fixings, extra)
    total = sum(values) - float(multipliers @ relaxation.rhs)
    if not total > -np.inf:
        return total
    worst = -np.inf
    for part in removed:
        block = relaxation.views[part.view][part.copy]
        i, start, shape = block[0], relaxation.offsets[block], relaxation.shape_of(block)
        rest = total - values[i]
        gone = np.zeros(shape, dtype=bool)
        gone.reshape(-1)[list(part.indices)] = True
        axis = relaxation.subproblems[i].exclusive.get(block[1])
        if axis is None:
            for index in part.indices:
                worst = max(worst, rest + _value(relaxation, i, penalty, (*fixings.ones, start + index), extra))
            continue
        for line in np.ndindex(*(size for k, size in enumerate(shape) if k != axis)):
            at = (*line[:axis], slice(None), *line[axis:])
            if gone[at].any():
                kept = np.zeros(shape, dtype=bool)
                kept[at] = ~gone[at]
                masked = penalty.copy()
                masked[start : start + kept.size][kept.ravel()] = -np.inf
                worst = max(worst, rest + _value(relaxation, i, masked, fixings.ones, extra))
    return worst
