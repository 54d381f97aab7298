r"""The one owner of rounding: how far float64 may take a value from the truth, and how far a proof may be taken.

Scores are float64 and are read as the exact numbers they are. With EPSILON = 2^-52, twice the unit roundoff u:

Sums. Adding up k numbers, in any order, is off by at most  (k - 1) u (1 + k u) sum |x_i|  ([Higham02]_, 4.2), so by
less than  EPSILON k sum |x_i|;  a number that was itself rounded once, such as a score with a penalty added, counts as
two. ``of_sum`` says so for k numbers of which none is larger than ``size``.

Best values. A dynamic program rounds what it adds up, and rounding is monotone: the value it finds is at least the
rounded score of every structure, and is the rounded score of one. Structures that matter score at least the value v
that was found, so their negative terms add up to no less than v - P, where P bounds the sum of the positive ones, and
sum |x_i| <= 2 P - v. ``of_best`` puts this into the formula above. Scores far below all others, finite masks of any
size, have no part in it. Contracting cycles subtracts scores from scores, each arc at most once a contraction, which
is the same as having moved the arc's score by what was rounded away; nested contractions shrink what is left, so that
sums over the arcs of a tree move by no more than ``of_best`` of twice as many terms.

Parts used once. Where no structure uses a part twice, nor a cell of a view, the absolute scores of any structure add up
to no more than those of all parts, ``Extent.absolute``, and under penalties to no more than these and all absolute
penalties. Let every score pass at most d roundings on its way into a best value: d - 1 additions in a row, after it was
rounded itself. Each multiplies what it rounds by some 1 + e, |e| <= u, so a structure's rounded score is off by at most
((1 + u)^d - 1) sum |x_i| < EPSILON d sum |x_i|  ([Higham02]_, 4.2, where d is the height of the tree of additions).
Rounding is monotone here too, so the same holds for the best value; a sum of many small best values by fsum is one
rounding, and monotone. ``of_parts`` says so; d is ``Extent.roundings``. Differences of such values, as max-marginals
take, only pass some more roundings, of numbers that are no larger.

Duals. A dual value is a sum of best values under penalties; its error is the sum of theirs. Where ``of_parts`` bounds
these, adding up m of them is m more roundings of each, and a penalty that is itself a sum of k products of multipliers
and coefficients is off by EPSILON k times the sum of their absolute values; each penalty is used once at most.

Logs of sums. Adding, multiplying and dividing positive numbers moves each result by a factor of 1 + u at most, so a log
of what some number of such operations in a row give is off by EPSILON for each of them. Where it is logs that are added
up, each operation rounds a log, by EPSILON times its size. ``of_log_sum`` allows for both, and for exponents that were
rounded before.

Tolerance. A value and its recomputation each carry an error E, and decoders stop at a gap of E. With a tolerance of
``WIDTH`` = 4 errors, a gap of up to half of it is proved: the truth is at most  bound + E <= score + 2 E + E.  A proof
means something only if the tolerance is small beside what is scored: at most ``EXACT`` times the absolute scores of the
parts that the structure uses. Scores below -``MASK`` count as -MASK there: a mask that every structure needs buys no
tolerance for the rest.

Nothing beside something. A structure whose parts all score 0 has no tolerance to be proved within. With every score
rounded up to a multiple of ``step_of`` the problem, sums are not rounded any more, and no structure scores less than
before: if the best is then 0, or whatever multiple the structure scores, nothing beats it in exact arithmetic.

Whole numbers. Checks work in steps: a power of two (``step_for``) so coarse that no sum of scores rounded up to whole
numbers of it (``in_steps``) is rounded again. What they show of such sums holds for the scores too.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import frexp, fsum, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.errors import InvalidInput

Floats = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)
WIDTH = 4.0  # tolerance of a certificate, in errors
EXACT = 1e-9  # largest tolerance of a proof, in absolute scores of the parts used
MASK = 1e4  # what a negative score counts for at most
BLOCK = 1 << 12  # scores that are looked at together
OVERFLOW = 1e280  # sums that may be larger are refused; the rest is room for multipliers


class Extent(NamedTuple):
    """How many terms the score of a structure adds up at most, and the least and the greatest of all finite scores.

    Both are 0 where no score is finite. Scores that are never read may count too: then bounds are looser, not false.

    ``absolute`` is for problems of which no structure uses a part twice, nor a cell of a view: what all absolute finite
    scores add up to, inf elsewhere. ``roundings`` goes with it: how many roundings a score, or a penalty, passes at
    most on its way into what ``solve`` and ``max_marginals`` say.
    """

    length: int
    lowest: float
    highest: float
    absolute: float = inf
    roundings: int = 0

    @property
    def size(self) -> float:
        """The largest absolute score."""
        return max(abs(self.lowest), abs(self.highest))

    @property
    def ceiling(self) -> float:
        """The positive scores of no structure add up to more than this."""
        return self.length * max(self.highest, 0.0)

    def above(self, value: float) -> "Extent":
        """Of the structures that score at least ``value``: where every score is negative, only so many terms fit."""
        most = value / self.highest if self.highest < 0.0 else inf
        return self._replace(length=int(most) + 1) if most < self.length else self

    def joined(self, other: "Extent", weight: float = 1.0) -> "Extent":
        """Of the scores of both, the other's weighted."""
        lowest, highest = min(self.lowest, weight * other.lowest), max(self.highest, weight * other.highest)
        return Extent(self.length + other.length, lowest, highest)


def extent_of(length: int, *scores: Floats) -> Extent:
    """The extent of arrays of scores that are finite or -inf."""
    return extent_within(length, map(range_of, scores))


def range_of(scores: Floats, highest: float | None = None) -> tuple[float, float]:
    """The least and the greatest finite score, the latter if it is not known; (inf, -inf) where there is none."""
    if not scores.size:
        return inf, -inf
    low = float(scores.min())
    if low == -inf:
        low = float(scores.min(where=scores > -inf, initial=inf))
    return low, float(scores.max()) if highest is None else highest


def extent_within(length: int, ranges: Iterable[tuple[float, float]]) -> Extent:
    """The extent of scores of these ranges."""
    lowest, highest = inf, -inf
    for low, high in ranges:
        lowest, highest = min(lowest, low), max(highest, high)
    return Extent(length, lowest, highest) if highest > -inf else Extent(length, 0.0, 0.0)


def absolute_of(*scores: Floats) -> float:
    """What all absolute finite scores add up to, but for rounding; inf beyond the range of float64."""
    with np.errstate(over="ignore"):
        return sum(float(np.abs(a).sum(where=a > -inf)) for a in scores)


def total(scores: Iterable[float]) -> float:
    """The sum of scores, rounded once; -inf below the range of float64."""
    numbers = scores if isinstance(scores, list) else list(scores)
    try:
        return fsum(numbers)
    except OverflowError:  # on the way, or at the end
        if -inf in numbers:
            return -inf
        exact = sum(map(Fraction, numbers))
        try:
            return float(exact)
        except OverflowError:
            if exact < 0:
                return -inf
            raise overflow() from None


def in_range(terms: NDArray[np.int64], highest: float, score: Floats) -> NDArray[np.bool_]:
    """Which best structures, of so many terms, none above ``highest``, no sum of scores in use can overflow for.

    Those are far from -OVERFLOW too: scores so low are looked at one by one.
    """
    most = OVERFLOW / np.maximum(terms, 1)
    return (highest < most) & (score > -most)


def of_sum(length: int, size: float) -> float:
    """Largest error of a sum of ``length`` numbers, none larger than ``size`` in absolute value."""
    return _error(length, length * size)


def of_best(extent: Extent, value: float, terms: int | None = None) -> float:
    """Largest error of a best value ``value``, over all structures that score as much."""
    return _error(extent.length if terms is None else terms, 2.0 * extent.ceiling + max(-value, 0.0))


def of_parts(roundings: int, absolute: float) -> float:
    """Largest error of a best value whose numbers, absolute ones, add up to ``absolute`` in all; see "Parts used once".

    ``absolute`` may itself have been rounded.
    """
    return _error(roundings + 1, absolute)


def of_log_sum(steps: int, largest: float) -> float:
    """Largest error of the log of a sum that took ``steps`` operations, with no log or exponent above ``largest``."""
    return EPSILON * steps * (largest + 4.0)


def _error(length: int, absolute: float) -> float:
    length = max(length, 1)
    return EPSILON * length * absolute if length < 2**50 else inf


def allowed(scores: Iterable[float]) -> float:
    """The largest tolerance with which a structure of these scores is proved optimal."""
    return EXACT * fsum(x if x > 0.0 else min(-x, MASK) for x in scores)


def counted(scores: Floats) -> Floats:
    """What each score adds to the sum that ``allowed`` takes its share of."""
    return np.where(scores > 0.0, scores, np.minimum(-scores, MASK))


def step_of(extent: Extent) -> float:
    """A power of two that is small beside the largest score, and large beside what rounding may hide; 0 if none is."""
    step = 2.0 ** np.floor(np.log2(EXACT * extent.size)) if 1e-200 < extent.size < OVERFLOW else 0.0
    return float(step) if extent.length * extent.size < step * 2.0**52 else 0.0


def step_for(most: float, bits: int) -> float:
    """A power of two of which numbers up to ``most``, at most 2^1000, have no more than 2^bits.

    At least 2^-1074, of which every number of float64 is a multiple; that is also the step of nothing but 0.
    """
    return 2.0 ** max(frexp(most)[1] - bits, -1074) if most else 2.0**-1074


def in_steps(scores: Floats, step: float) -> Floats:
    """The scores rounded up to whole numbers of a power of two, in such numbers; -inf stays."""
    with np.errstate(over="ignore"):  # of scores so low that they are as good as forbidden
        number = np.ceil(scores / step)
    if step > 1.0:  # the quotient of tiny ones may be 0
        number += number * step < scores
    return number


def rounded_up(scores: Floats, step: float) -> Floats:
    """The scores rounded up to multiples of a power of two."""
    return in_steps(scores, step) * step


def one_rounded_up(score: float, step: float) -> float:
    """The same of one score."""
    return float(rounded_up(np.array([score]), step)[0])


def too_wide(tolerance: float) -> str:
    """Why a result with such a tolerance is not exact."""
    return (
        f"rounding may hide differences of {tolerance:.3g}, more than {EXACT:g} of the scores in use: some scores are "
        "too large beside the others. Use -inf to forbid a part."
    )


def overflow() -> InvalidInput:
    """The error for scores whose sums leave the range of float64."""
    return InvalidInput(
        f"sums of these scores may exceed {OVERFLOW:g}, where float64 is about to overflow: use -inf to forbid a part, "
        "and divide all scores by one number if they are that large."
    )


def grain(extent: Extent, scores: Sequence[Floats]) -> float:
    """The largest number of which all finite scores are multiples; 0 if their sums may be rounded, inf if all are 0.

    Scores of structures are then multiples of the grain too, added up without rounding: what is better is better by at
    least a grain.
    """
    room = extent.length * extent.size * 2.0**-53  # what a power of two must be more than
    least = None
    for values in _values(scores):
        mantissa, exponent = np.frexp(values)
        digits = np.abs(mantissa * 2.0**53).astype(np.int64)
        last = np.frexp((digits & -digits).astype(np.float64))[1] - 1  # place of the last binary digit
        here = int((exponent - 53 + last).min())
        least = here if least is None else min(least, here)
        if not (-1000 < least < 1000 and 2.0**least > room):
            return 0.0
    if least is None:
        return inf
    divisor, most = 0, 2.0 ** min(53 + least, 1023)
    for values in _values(scores):
        read = np.abs(values[np.abs(values) < most])  # what is larger is more than the extent, and thus not read
        divisor = int(np.gcd.reduce((read * 2.0**-least).astype(np.int64), initial=divisor))
        if divisor == 1:
            break
    return divisor * 2.0**least or inf


def _values(scores: Iterable[Floats]) -> Iterator[Floats]:
    """The numbers among scores, but for 0, a few at a time: as a rule the first ones tell."""
    for block in (block for array in scores for block in _blocks(array)):
        values = block[np.isfinite(block) & (block != 0.0)]
        if values.size:
            yield values


def _blocks(array: Floats) -> Iterator[Floats]:
    """The cells of an array, a few at a time."""
    flat = array.reshape(-1)
    return (flat[k : k + BLOCK] for k in range(0, flat.size, BLOCK))
