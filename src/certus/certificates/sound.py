"""Before a question is asked: scores that no optimum can use are read as -inf. After it: what rounding leaves unproved.

A score c is hopeless if c plus the best possible rest, the problem's ceiling, is below a score that is reached. Which
scores are hopeless is known once some structure is known, so the question is asked with a *floor*: scores below it are
read as -inf. If what comes back scores more than floor + ceiling, all of them were hopeless, and the answer is that of
the problem as given. Masks of any size thus never reach a kernel; cells that are never read are cleared on the way.

Problems whose scores lie together are asked as they are, which costs one look at their extent. A floor is tried when
scores stick out, or when rounding of the largest scores spoiled the proof.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from certus.certificates.rounding import EXACT, OVERFLOW, WIDTH, Extent, Floats, grain, of_sum, overflow, step_of
from certus.draw import Gallery
from certus.errors import Infeasible, InvalidInput, LimitReached, NotSupported

if TYPE_CHECKING:
    from certus.problem import Problem
    from certus.result import Certificate, Result

P = ParamSpec("P")
Asked = TypeVar("Asked", bound="Problem[Any]")
Y = TypeVar("Y")
Answer = TypeVar("Answer")
Marginals = TypeVar("Marginals", bound=Mapping[str, Floats])

FAR = 1e6  # a score so many times the largest positive one below 0 sticks out
FEW, NEXT = 1e2, 1e4  # the same for max-marginals, and how far below that the next try is
LARGE = 1e9  # scores of this size in a sum leave seven digits of a difference
NOTHING = 1e4  # exp(-NOTHING) is nothing, however many structures there are


def sound(decode: "Callable[Concatenate[Asked, P], Result[Y]]") -> "Callable[Concatenate[Asked, P], Result[Y]]":
    """Decorates a problem's ``decode``."""

    @wraps(decode)
    def asked(problem: Asked, /, *args: P.args, **options: P.kwargs) -> "Result[Y]":
        first = decode(problem, *args, **options) if together(problem.extent()) else None
        if first is not None and first.certificate.reason is None:
            return first
        known = None if first is None else [first]
        return _answers(problem, lambda p: [decode(p, *args, **options)], 1, known)[0]

    return asked


def sound_list(kbest: "Callable[[Asked, int], list[Result[Y]]]") -> "Callable[[Asked, int], list[Result[Y]]]":
    """Decorates a problem's ``kbest``."""

    @wraps(kbest)
    def asked(problem: Asked, k: int) -> "list[Result[Y]]":
        return in_ranks(_answers(problem, lambda p: kbest(p, k), k))

    return asked


def in_ranks(found: "Iterable[Result[Y]]") -> "list[Result[Y]]":
    """Results, best first, whose certificates name the better structures."""
    listed = list(found)
    structures = tuple(r.structure for r in listed)
    ranked = (replace(r.certificate, better=structures[:at]) for at, r in enumerate(listed))
    return Gallery(replace(r, certificate=c) for r, c in zip(listed, ranked, strict=True))


def summed(question: Callable[Concatenate[Asked, P], Answer]) -> Callable[Concatenate[Asked, P], Answer]:
    """Decorates a problem's question about all structures at once: ``log_partition``, ``marginals`` and so on.

    Differences of scores above ``LARGE`` are lost in rounding, and exponentials magnify what is left of them. Scores
    far below all structures that count are read as -inf; where large ones are left, the question is refused.
    """

    @wraps(question)
    def asked(problem: Asked, /, *args: P.args, **options: P.kwargs) -> Answer:
        return question(moderate(problem), *args, **options)

    return asked


def measured(question: Callable[Concatenate[Asked, P], Marginals]) -> Callable[Concatenate[Asked, P], Marginals]:
    """Decorates ``max_marginals``: values of which rounding may have left nothing are refused.

    A best value is right to the last digits of what was added up for it, and where scores above ``LARGE`` cancel, these
    are all digits of what is left. With penalties, which are for relaxations, the caller accounts for rounding.
    """

    @wraps(question)
    def asked(problem: Asked, /, *args: P.args, **options: P.kwargs) -> Marginals:
        try:
            found = question(problem, *args, **options)
        except Infeasible:
            extent = problem.extent()
            if extent.length * extent.size < OVERFLOW:
                raise
            raise overflow() from None  # scores below all numbers are no reason to say that there is no structure
        if problem.extent().highest > LARGE and all(given is None for given in (*args, *options.values())):
            _check_digits(problem, found)
        return found

    return asked


def floored(
    problem: Asked, ask: "Callable[[Asked], tuple[dict[str, Floats], dict[str, Floats]]]"
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Bounds on max-marginals, lower and upper, that ``ask`` finds where no score sticks out.

    A part is first asked about with scores far below the others read as -inf. If its best structure then scores so much
    that none of them is of use, that is the answer; otherwise it is asked about again with more of them.
    """
    out: tuple[dict[str, Floats], dict[str, Floats]] | None = None
    least, last, floors = -inf, inf, _close_floors(problem)
    for floor in floors:
        asked = problem if floor is None else problem.without_scores_below(floor)
        answered = asked.extent().lowest >= last  # no score lies between the last floor and this one
        last = -inf if floor is None else floor
        if not answered or (out is None and floor == floors[-1]):
            try:
                found = ask(asked)
            except Infeasible:
                if floor == floors[-1] and out is None:
                    raise
                continue
            for view in found[0] if out is not None else ():
                sure = out[0][view] > least  # type: ignore[index]
                for new, old in zip(found, out, strict=True):  # type: ignore[arg-type]
                    new[view][sure] = old[view][sure]
            out = found
        least = _least_sure(problem, floor)
        if out is not None and all((values > least).all() for values in out[0].values()):
            break
    assert out is not None
    return out


def _check_digits(problem: "Problem[Any]", found: Mapping[str, Floats]) -> None:
    cleared = problem.without_scores_below(-inf)
    extent = cleared.extent()
    if extent.highest <= LARGE or whole(cleared):
        return
    for view, values in found.items():
        least = float(np.abs(values).min(initial=inf, where=values > -inf))
        error = of_sum(2 * extent.length, extent.highest + least)
        if least < inf and not error <= EXACT * least:
            raise InvalidInput(
                f"scores as large as {extent.highest:.3g} leave nothing of the digits of small max-marginals: one of "
                f"{view!r} is {least:.3g}, and rounding may hide {error:.3g}. Use -inf to forbid what must not be used "
                "in place of large scores for the rest, or ask decode() with the part required."
            )


def moderate(problem: Asked) -> Asked:
    """The problem without scores that add nothing to a sum of exponentials; InvalidInput if large ones are left."""
    if problem.extent().size <= LARGE:
        return problem
    kept = problem.without_scores_below(-inf)
    if kept.extent().size > LARGE:
        try:
            best = kept.decode().score
        except Infeasible:
            return problem
        kept = problem.without_scores_below(best - kept.extent().ceiling - NOTHING)
    if kept.extent().size > LARGE:
        raise InvalidInput(
            f"scores as large as {kept.extent().size:.3g} leave nothing of the differences that sums of exp(score) are "
            f"about; scores in use are at most {LARGE:g} in size. Divide them by a number, or ask decode()."
        )
    return kept


def _answers(
    problem: Asked, ask: "Callable[[Asked], list[Result[Y]]]", wanted: int, known: "list[Result[Y]] | None" = None
) -> "list[Result[Y]]":
    """At least one result: the structures of highest score, each with a certificate for the problem as given.

    ``known`` is what ``ask`` gives for the problem as it is, where that is known.
    """
    found: list[Result[Y]] = []
    sure: list[Result[Y]] = []  # the best of all structures, proved above a floor that the rest needs to be lower
    for floor in _floors(problem):
        try:
            asked = problem if floor is None else problem.without_scores_below(floor)
        except NotSupported:
            continue
        try:
            found = ask(asked) if floor is not None or known is None else known
        except Infeasible:
            if floor is None or floor == -inf:
                raise
            found = []
        least = _least_sure(problem, floor)
        found = _headed(sure, [r for r in found if r.score > least])
        if len(found) == wanted:
            break
        sure = _with_floor(list(takewhile(lambda r: r.certificate.exact, _by_grain(asked, found))), floor)
    if not found or (len(found) < wanted and floor is not None and floor > -inf):
        raise overflow()  # every other structure needs a score below the last floor, or may do better with one
    found = _by_grain(asked, found)
    if _spoiled(found):
        higher = own_floor(problem, found[-1].score)
        if floor is None or higher > floor:
            with suppress(NotSupported):
                cleared = problem.without_scores_below(higher)
                again = _headed(sure, _by_grain(cleared, ask(cleared)))
                if len(again) >= len(found) and hopeless(problem, higher, again[-1].score):
                    found, floor, asked = again, higher, cleared
    return _with_floor(_by_rounding_up(asked, ask, found), floor)


def _headed(sure: "list[Result[Y]]", found: "list[Result[Y]]") -> "list[Result[Y]]":
    """The list with the first ranks as they were proved before, if it begins with the same structures, in any order."""
    rest = [r.structure for r in found[: len(sure)]]
    for known in sure:
        same = next((k for k, structure in enumerate(rest) if _equal(structure, known.structure)), None)
        if same is None:
            return found
        del rest[same]
    return [*sure, *found[len(sure) :]]


def _equal(a: Any, b: Any) -> bool:
    """Whether two structures of a problem are one."""
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)


def own_floor(problem: "Problem[Any]", score: float) -> float:
    """Scores below this are of no use to a structure that scores ``score`` or more."""
    extent = problem.without_scores_below(-inf).extent()
    floor = score - extent.ceiling
    return float(np.nextafter(floor - 1e-6 * (abs(floor) + extent.ceiling), -inf))


def together(extent: Extent) -> bool:
    """Whether no score sticks out, and no sum can overflow."""
    return extent.lowest >= -FAR * max(extent.highest, 1.0) and extent.length * extent.size < OVERFLOW


def _floors(problem: "Problem[Any]") -> list[float | None]:
    """What to try as a floor, one after the other; None: the problem as it is.

    The last one leaves out what could overflow, and nothing else: structures that need such a score are not found.
    """
    if together(problem.extent()):
        return [None]
    extent = problem.without_scores_below(-inf).extent()
    usual = max(extent.highest, 1.0)
    if not extent.length * usual < OVERFLOW:
        raise overflow()
    last = -inf if extent.length * extent.size < OVERFLOW else -OVERFLOW / extent.length
    return [*(f for f in (-FAR * usual, -(FAR**3) * usual) if max(extent.lowest, last) < f), last]


def _close_floors(problem: "Problem[Any]") -> list[float | None]:
    """As ``_floors``, so close together that rounding takes little from a value between two of them."""
    extent = problem.without_scores_below(-inf).extent()
    usual = max(extent.highest, 1.0)
    if problem.extent().size <= FEW * usual:
        return [None]
    last = _floors(problem)[-1]
    floors: list[float | None] = [-FEW * usual * NEXT**k for k in range(64) if FEW * usual * NEXT**k < -extent.lowest]
    return [*floors, -inf if last is None else last]


def hopeless(problem: "Problem[Any]", floor: float | None, score: float) -> bool:
    """Whether scores below the floor are of no use to a structure that scores ``score`` or more.

    Without those that are of no use beside the problem's ceiling, the ceiling may be lower, and more are of no use.
    """
    left, sure = problem, -inf
    while score <= _least_sure(left, floor):
        higher = own_floor(left, score)
        if not higher > sure:
            return False
        left, sure = left.without_scores_below(higher), higher
    return True


def _least_sure(problem: "Problem[Any]", floor: float | None) -> float:
    """No structure that uses a score below the floor scores more than this.

    The ceiling is that of the problem before anything is left out: with a low score a high one may go.
    """
    if floor is None or floor == -inf:
        return -inf
    ceiling = problem.without_scores_below(-inf).extent().ceiling
    return floor + ceiling + 1e-9 * (abs(floor) + ceiling)


def whole(problem: "Problem[Any]") -> float:
    """The grain of a problem's scores; 0 where they have none, or it is not known, inf where all are 0."""
    scores = problem.all_scores()
    return 0.0 if scores is None else grain(problem.extent(), list(scores))


def _spoiled(found: "list[Result[Y]]") -> bool:
    return any(r.certificate.reason for r in found)


def _by_grain(problem: "Problem[Any]", found: "list[Result[Y]]") -> "list[Result[Y]]":
    """The results, those proved that are within a grain of their bounds."""
    if not _spoiled(found):
        return found
    step = whole(problem)
    return [r if r.certificate.reason is None or not _within(r, step) else _proved(r, r.certificate) for r in found]


def rounded_up(problem: Asked) -> Asked | None:
    """The problem with its scores rounded up so far that their sums are not rounded; None where that cannot be done."""
    step = step_of(problem.extent())
    if not step or problem.all_scores() is None:
        return None
    try:
        return problem.with_scores_rounded_up(step)
    except NotSupported:
        return None


def _by_rounding_up(
    problem: Asked, ask: "Callable[[Asked], list[Result[Y]]]", found: "list[Result[Y]]"
) -> "list[Result[Y]]":
    """The results, those proved that score as much as the best where every score was rounded up.

    Only structures whose scores are multiples of the step can: those of nothing but 0, above all. For rank k, the
    structures that then score more are those listed before, and no other.
    """
    step, still_open = step_of(problem.extent()), [r for r in found if r.certificate.reason is not None]
    if not step or not any(_multiples(problem.terms(r.structure), step) for r in still_open):
        return found
    raised = rounded_up(problem)
    if raised is None:
        return found
    try:
        most = ask(raised)
    except LimitReached:
        return found
    grained, scores = whole(raised), [raised.score(r.structure) for r in found]
    out = list(found)
    for at, (result, upper) in enumerate(zip(found, most, strict=False)):
        if result.certificate.reason is None or scores[at] != result.score or upper.score > result.score:
            continue
        before = sum(score > result.score for score in scores[:at])
        if before == sum(u.score > result.score for u in most[:at]) and _within(upper, grained):
            # A witness names structures by their places in the other list: one of its own is made when it is asked for.
            out[at] = _proved(result, replace(upper.certificate, witness=None))
    return out


def _multiples(scores: Iterable[float], step: float) -> bool:
    return all(score % step == 0.0 for score in scores)


def _within(result: "Result[Y]", step: float) -> bool:
    """Whether bound and score of a result lie so close that no structure, better by a step, is between them."""
    c = result.certificate
    return c.kind != "integer program" and c.gap + c.tolerance / WIDTH < step


def _proved(result: "Result[Y]", proof: "Certificate") -> "Result[Y]":
    """The result with a proof that nothing scores more."""
    certificate = replace(proof, score=result.score, bound=result.score, tolerance=0.0, reason=None)
    return replace(result, certificate=certificate)


def _with_floor(found: "list[Result[Y]]", floor: float | None) -> "list[Result[Y]]":
    if floor is None:
        return found

    def floored(c: "Certificate") -> "Certificate":
        return replace(c, floor=floor if c.floor is None else max(c.floor, floor))

    return [replace(r, certificate=floored(r.certificate)) for r in found]
