"""What must hold for a claim about a bound: which problem must have no structure above what, and what is proved of it.

In numpy, with outward rounding: a bound is sound, and may be too high by what was rounded. How much that may be at most
is said beside it, so that what rounding alone decides can be decided in exact integers instead.
"""

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple, TypeVar

import numpy as np

from certus.certificates.evaluate import Evaluation
from certus.certificates.normal import Referred
from certus.certificates.rounding import OVERFLOW
from certus.certificates.sound import hopeless, own_floor, rounded_up, whole
from certus.errors import InvalidInput, NotSupported, VerificationError
from certus.problem import Problem
from certus.relax.normal_form import RelaxedForm
from certus.relax.proof import PROOFS
from certus.relax.proving import proof_of, witness_of
from certus.relax.system import Relaxation
from certus.result import Certificate

Y = TypeVar("Y")


def questions(problem: Problem[Y], certificate: Certificate, score: float) -> Iterator[Problem[Y]]:
    """The problems of which one must have no structure above the bound, for a result of this score to be proved.

    The problem without the scores that the certificate leaves out, which must be too low for a structure of this
    score; then the same with all scores rounded up so far that their sums are not rounded; then the problem without
    all scores that are too low, beside which multipliers might have no digits left.
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
    with suppress(NotSupported):
        higher = own_floor(problem, score)
        if asked.extent().lowest < higher and hopeless(problem, higher, score):
            yield problem.without_scores_below(higher)


class Proved(NamedTuple):
    """No structure scores more than ``bound``; without rounding, that might be less by no more than ``rounding``."""

    bound: float
    rounding: float


def answered(problem: Problem[Y], certificate: Certificate, score: float) -> Problem[Y]:
    """The first of the questions that the certificate's proof answers, or else the last."""
    asked = list(questions(problem, certificate, score))
    for one in asked[:-1]:
        above = claimed_limit(one, certificate)
        if proved_bound(one, certificate, above).bound <= above:
            return one
    return asked[-1]


def claimed_limit(problem: Problem[Any], certificate: Certificate) -> float:
    """What a proved bound must not exceed for the claim to hold: for a proof, the score and the tolerance.

    Where scores have a grain, structures score multiples of it: a bound below the next multiple is as good.
    """
    bound = min(certificate.bound, certificate.score) if certificate.exact else certificate.bound
    above = bound + certificate.tolerance
    if not np.isfinite(above):
        return above
    if Fraction(above) > Fraction(bound) + Fraction(certificate.tolerance):
        above = float(np.nextafter(above, -inf))
    step = whole(problem)
    if not 0.0 < step < inf or abs(above) > OVERFLOW:
        return above
    following = (Fraction(above) // Fraction(step) + 1) * Fraction(step)
    return max(above, float(np.nextafter(float(following), -inf)))


def proved_bound(
    problem: Problem[Any], certificate: Certificate, above: float, trusts: set[str] | None = None
) -> Proved:
    """What the witness of a certificate proves that no structure beats, but for the better ones that it names.

    More than ``above`` need not be told apart. InvalidInput if the witness does not fit the problem. The methods that
    are believed for it are added to ``trusts``.
    """
    if problem.searched:
        witness = witness_of(problem, certificate, above)
        closed = problem.closed_form(above, witness)
        if certificate.distinct:
            return Proved(problem.best_yielding_other(closed.form, above, certificate.better), 0.0)
        evaluation = Evaluation(closed.form)
        better = [(edges,) for edges in map(closed.structure, certificate.better) if edges is not None]
        bound = evaluation.bound(np.empty(0), above, evaluation.everything(), better)
        return Proved(max(above, bound), evaluation.rounding)
    if certificate.distinct:
        raise NotSupported(f"{type(problem).__name__} has no ranks of distinct structures that could be checked.")
    relaxed = RelaxedForm.of(Relaxation.of(problem))
    if trusts is not None:
        trusts.update(space.by for space in relaxed.form.spaces if isinstance(space, Referred))
    proof = proof_of(relaxed, certificate, above)
    if not isinstance(proof, PROOFS):
        raise InvalidInput(f"the proof tree is {type(proof).__name__}.")
    return Proved(relaxed.bound(proof, above, certificate.better), relaxed.rounding)
