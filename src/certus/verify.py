"""Recheck a result from the problem alone, in numpy, without a kernel: nothing that a decoder found is believed.

The score is recomputed from the structure. The bound is recomputed from its witness over the normal form of the problem
(``certus.certificates.normal``), in whole numbers (``certus.certificates.evaluate``): a dynamic program is swept again,
multipliers are evaluated, a proof tree is walked, closed states are checked to be closed. Witnesses that a result does
not carry yet are made first, by whatever is fastest; they are then checked like any other. What rounding alone decides
is decided as the standalone checker decides it, in exact integers.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite, isinf, isnan
from typing import Any, NamedTuple, TypeVar

from certus.certificates.enumerated import structure_key
from certus.certificates.rounding import EPSILON, EXACT, MASK
from certus.errors import CertusError, InvalidInput, NotSupported, VerificationError
from certus.problem import Problem, checked_pair
from certus.proof_file import exact_proof
from certus.relax.questions import Proved, claimed_limit, proved_bound, questions
from certus.result import KINDS, Certificate, Result

Y = TypeVar("Y")
BILLION = 10**9  # one over the share of the scores in use that a proof's tolerance may be; a billionth of it is excused


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
    sums = _Sums.of(problem, result.structure)
    if not abs(Fraction(result.score) - sums.total) <= sums.slack:
        raise VerificationError(f"score is claimed to be {result.score!r}; recomputed, it is {_shown(sums.total)}.")
    _check_tolerance(certificate, sums)
    _check_better(problem, certificate, result.structure)
    proved = list[Proved]()
    for asked in questions(problem, certificate, result.score):
        above = claimed_limit(asked, certificate)
        try:
            proved.append(proved_bound(asked, certificate, above, trusts := set[str]()))
        except InvalidInput as wrong:
            raise VerificationError(f"the witness of the bound does not fit the problem: {wrong}") from None
        if proved[-1].bound <= above:
            return Verified(tuple(sorted(trusts)))
    if exact_proof(problem, result, proved) is not None:
        return Verified()
    within = f"{certificate.bound!r} within {certificate.tolerance:g}"
    raise VerificationError(
        f"bound is claimed to be {within}; what is proved is {min(found.bound for found in proved)!r}."
    )


def _check_claims(result: Result[Any]) -> None:
    certificate = result.certificate
    if certificate.kind not in KINDS:
        raise VerificationError(f"the certificate is of kind {certificate.kind!r}; expected one of {', '.join(KINDS)}.")
    claimed = (result.score, certificate.score, certificate.bound, certificate.tolerance)
    if any(isinstance(x, bool) or not isinstance(x, int | float) or isnan(x) for x in claimed):
        raise VerificationError(f"score, bound and tolerance are {claimed}; expected numbers.")
    if isinf(result.score) or certificate.bound == -inf:
        raise VerificationError(f"score and bound are {claimed[::2]}; expected numbers, the bound inf at most.")
    if result.score != certificate.score:
        raise VerificationError(f"the result scores {result.score!r} and its certificate says {certificate.score!r}.")
    rank = certificate.rank
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise VerificationError(f"rank is {rank!r}; expected a whole number of at least 1.")
    if len(certificate.better) != rank - 1:
        raise VerificationError(
            f"rank {rank} is claimed, and {len(certificate.better)} structures are named as better."
        )


class _Sums(NamedTuple):
    """Over the parts of a structure, exact: their scores, how far a sum of these in float64 may be off, and what a
    proof's tolerance is a share of."""

    total: Fraction
    slack: Fraction
    counted: Fraction

    @staticmethod
    def of(problem: Problem[Any], structure: Any) -> "_Sums":
        """VerificationError if the structure is none of the problem, or forbidden."""
        try:
            scores = [float(x) for x in problem.terms(structure)]
        except NotSupported:
            raise
        except (CertusError, TypeError, ValueError, IndexError, KeyError, AttributeError) as wrong:
            raise VerificationError(f"the structure is not one of this problem: {wrong}") from None
        if not all(map(isfinite, scores)):
            raise VerificationError("the structure uses a forbidden part.")
        ratios = [x.as_integer_ratio() for x in scores if x]
        unit = max((bottom for _, bottom in ratios), default=1)  # all are powers of two
        parts = [top * (unit // bottom) for top, bottom in ratios]
        counted = sum(x if x > 0 else min(-x, int(MASK) * unit) for x in parts)
        slack = Fraction(EPSILON) * max(len(parts) - 1, 0) * Fraction(sum(map(abs, parts)), unit)
        return _Sums(Fraction(sum(parts), unit), slack, Fraction(counted, unit))


def _check_tolerance(certificate: Certificate, sums: _Sums) -> None:
    """The tolerance is small where the certificate says that it is a proof."""
    if not 0 <= certificate.tolerance < inf:
        raise VerificationError(f"tolerance {certificate.tolerance:g} is claimed; expected a finite number, 0 or more.")
    tolerance = Fraction(certificate.tolerance)
    if not certificate.exact:
        return
    if not 2 * (Fraction(certificate.bound) - Fraction(certificate.score)) <= tolerance:
        raise VerificationError(
            f"bound {certificate.bound!r} and score {certificate.score!r} are further apart than half the tolerance."
        )
    if not tolerance * BILLION**2 <= sums.counted * (BILLION + 1):
        raise VerificationError(
            f"tolerance {certificate.tolerance:g} is claimed for a proof; {EXACT:g} of the scores in use is "
            f"{_shown(sums.counted / BILLION)}."
        )


def _check_better(problem: Problem[Any], certificate: Certificate, structure: Any) -> None:
    """The structures listed before one of rank k are k - 1 others that score as much, rounding aside."""

    def key(y: Any) -> Hashable:
        return problem.yielded(y) if certificate.distinct else structure_key(problem, y)

    rank, seen = certificate.rank, {key(structure)}
    least = Fraction(certificate.score) - Fraction(certificate.tolerance)
    for k, other in enumerate(certificate.better, start=1):
        try:
            own = _Sums.of(problem, other)
        except VerificationError as wrong:
            raise VerificationError(f"rank {rank} is claimed; of number {k}, {wrong}") from None
        if not own.total >= least - own.slack:
            raise VerificationError(f"rank {rank} is claimed; number {k} scores {_shown(own.total)}, which is less.")
        seen.add(key(other))
        if len(seen) <= k:
            raise VerificationError(f"rank {rank} is claimed, but number {k} is listed twice.")


def _shown(number: Fraction) -> str:
    """An exact number to read."""
    try:
        return repr(float(number))
    except OverflowError:
        return f"{'-' if number < 0 else ''}2^{abs(int(number)).bit_length() - 1} or so"
