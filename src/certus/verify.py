"""Recheck a result from the problem alone, in numpy, without a kernel: nothing that a decoder found is believed.

The score is recomputed from the structure. The bound is recomputed from its witness over the normal form of the problem
(``certus.certificates.normal``), in whole numbers (``certus.certificates.evaluate``): a dynamic program is swept again,
multipliers are evaluated, a proof tree is walked, closed states are checked to be closed. Witnesses that a result does
not carry yet are made first, by whatever is fastest; they are then checked like any other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isnan
from typing import Any, TypeVar

import numpy as np

from certus.certificates.enumerated import structure_key
from certus.certificates.evaluate import Evaluation
from certus.certificates.normal import Referred
from certus.certificates.rounding import EPSILON, EXACT, allowed, total
from certus.certificates.sound import hopeless, rounded_up, whole
from certus.errors import CertusError, InvalidInput, NotSupported, VerificationError
from certus.problem import Problem, checked_pair
from certus.relax.normal_form import RelaxedForm
from certus.relax.proof import PROOFS
from certus.relax.proving import proof_of, witness_of
from certus.relax.system import Relaxation
from certus.result import KINDS, Certificate, Result

Y = TypeVar("Y")


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check found true, and what it had to believe for that.

    ``trusts`` are methods of problems that bring no normal form, such as "OneTrees.solve": the bound holds if these do
    find the best value. Where it is empty, nothing was believed.
    """

    trusts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Verified(trusting {', '.join(self.trusts)})" if self.trusts else "Verified()"


def verify(problem: Problem[Y], result: Result[Y]) -> Verified:
    """Check everything a result claims; raise VerificationError if anything does not hold.

    What is returned names the methods that had to be believed, if any: a class of your own that brings neither a
    ``normal_form``, a ``reference_maximum`` nor few enough ``all_structures`` is trusted to ``solve`` itself.

    Takes a fraction of a second for most results, and as a rule less than ten times what decoding took: what was hard
    to find is easy to check. A witness that is missing is made first (``certus.save_result`` saves it with the rest).

    Raises
    ------
    VerificationError : the structure is none of this problem, or score, bound, rank or tolerance is wrong.
    """
    checked_pair(problem, result)
    certificate = result.certificate
    _check_claims(result)
    scores = _scores(problem, result.structure)
    score = total(scores)
    if not np.isfinite(score):
        raise VerificationError(f"the structure scores {score}: it uses a forbidden part.")
    slack = EPSILON * max(len(scores), 1) * total(map(abs, scores))
    if not abs(result.score - score) <= slack:
        raise VerificationError(f"score is claimed to be {result.score!r}; recomputed, it is {score!r}.")
    _check_tolerance(certificate, scores)
    _check_better(problem, certificate, result.structure, score)
    proved = []
    for asked in questions(problem, certificate, score):
        above = claimed_limit(asked, certificate)
        try:
            proved.append(proved_bound(asked, certificate, above, trusts := set[str]()))
        except InvalidInput as wrong:
            raise VerificationError(f"the witness of the bound does not fit the problem: {wrong}") from None
        if proved[-1] <= above:
            return Verified(tuple(sorted(trusts)))
    within = f"{certificate.bound!r} within {certificate.tolerance:g}"
    raise VerificationError(f"bound is claimed to be {within}; what is proved is {float(min(proved))!r}.")


def questions(problem: Problem[Y], certificate: Certificate, score: float) -> Iterator[Problem[Y]]:
    """The problems of which one must have no structure above the bound, for a result of this score to be proved.

    The problem without the scores that the certificate leaves out, which must be too low for a structure of this
    score; then the same with all scores rounded up so far that their sums are not rounded.
    """
    asked, floor = problem, certificate.floor
    if floor is not None:
        if isinstance(floor, bool) or not isinstance(floor, int | float) or not floor < inf:
            raise VerificationError(f"the floor of the scores is {floor!r}; expected a number, or -inf.")
        asked = problem.without_scores_below(float(floor))
        if not hopeless(problem, float(floor), score):
            raise VerificationError(
                f"scores below {floor:g} were left out, but a structure that uses one may be better."
            )
    yield asked
    raised = rounded_up(asked)
    if raised is not None:
        yield raised


def answered(problem: Problem[Y], result: Result[Y]) -> Problem[Y]:
    """The first of the questions that the result's proof answers, or else the last."""
    asked = list(questions(problem, result.certificate, result.score))
    for one in asked[:-1]:
        above = claimed_limit(one, result.certificate)
        if proved_bound(one, result.certificate, above) <= above:
            return one
    return asked[-1]


def _check_claims(result: Result[Any]) -> None:
    certificate = result.certificate
    if certificate.kind not in KINDS:
        raise VerificationError(f"the certificate is of kind {certificate.kind!r}; expected one of {', '.join(KINDS)}.")
    claimed = (result.score, certificate.score, certificate.bound, certificate.tolerance)
    if any(isinstance(x, bool) or not isinstance(x, int | float) or isnan(x) for x in claimed):
        raise VerificationError(f"score, bound and tolerance are {claimed}; expected numbers.")
    if result.score != certificate.score:
        raise VerificationError(f"the result scores {result.score!r} and its certificate says {certificate.score!r}.")
    rank = certificate.rank
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise VerificationError(f"rank is {rank!r}; expected a whole number of at least 1.")
    if len(certificate.better) != rank - 1:
        raise VerificationError(
            f"rank {rank} is claimed, and {len(certificate.better)} structures are named as better."
        )


def _scores(problem: Problem[Any], structure: Any) -> list[float]:
    """The scores of a structure's parts; VerificationError if it is none."""
    try:
        return [float(x) for x in problem.terms(structure)]
    except NotSupported:
        raise
    except (CertusError, TypeError, ValueError, IndexError, KeyError, AttributeError) as wrong:
        raise VerificationError(f"the structure is not one of this problem: {wrong}") from None


def _check_tolerance(certificate: Certificate, scores: list[float]) -> None:
    """The tolerance is small where the certificate says that it is a proof."""
    most = allowed(scores)
    if not 0 <= certificate.tolerance < inf:
        raise VerificationError(f"tolerance {certificate.tolerance:g} is claimed; expected a finite number, 0 or more.")
    if certificate.exact and not certificate.tolerance <= most * (1 + 1e-9):
        raise VerificationError(
            f"tolerance {certificate.tolerance:g} is claimed for a proof; {EXACT:g} of the scores in use is {most:g}."
        )


def _check_better(problem: Problem[Any], certificate: Certificate, structure: Any, score: float) -> None:
    """The structures listed before one of rank k are k - 1 others that score as much, rounding aside."""
    rank, seen = certificate.rank, {structure_key(problem, structure)}
    for k, other in enumerate(certificate.better, start=1):
        scores = _scores(problem, other)
        try:
            own, size = total(scores), total(map(abs, scores))
        except InvalidInput as wrong:
            raise VerificationError(f"rank {rank} is claimed; of number {k}, {wrong}") from None
        if not (np.isfinite(own) and own >= score - certificate.tolerance - EPSILON * max(len(scores), 1) * size):
            raise VerificationError(f"rank {rank} is claimed; number {k} scores {own!r}, which is less.")
        seen.add(structure_key(problem, other))
        if len(seen) <= k:
            raise VerificationError(f"rank {rank} is claimed, but number {k} is listed twice.")


def claimed_limit(problem: Problem[Any], certificate: Certificate) -> float:
    """What a proved bound must not exceed for the claim to hold.

    Where scores have a grain, structures score multiples of it: a bound below the next multiple is as good.
    """
    above = certificate.bound + certificate.tolerance
    step = whole(problem)
    if not step or not np.isfinite(above):
        return above
    following = (Fraction(above) // Fraction(step) + 1) * Fraction(step)
    return max(above, float(np.nextafter(float(following), -inf)))


def proved_bound(
    problem: Problem[Any], certificate: Certificate, above: float, trusts: set[str] | None = None
) -> float:
    """What the witness of a certificate proves that no structure beats, but for the better ones that it names.

    More than ``above`` need not be told apart. InvalidInput if the witness does not fit the problem. The methods that
    are believed for it are added to ``trusts``.
    """
    if problem.searched:
        witness = witness_of(problem, certificate, above)
        closed = problem.closed_form(above, witness)
        evaluation = Evaluation(closed.form)
        better = [(edges,) for edges in map(closed.structure, certificate.better) if edges is not None]
        return max(above, evaluation.bound(np.empty(0), above, evaluation.everything(), better))
    relaxed = RelaxedForm.of(Relaxation.of(problem))
    if trusts is not None:
        trusts.update(space.by for space in relaxed.form.spaces if isinstance(space, Referred))
    proof = proof_of(relaxed, certificate, above)
    if not isinstance(proof, PROOFS):
        raise InvalidInput(f"the proof tree is {type(proof).__name__}.")
    return relaxed.bound(proof, above, certificate.better)
