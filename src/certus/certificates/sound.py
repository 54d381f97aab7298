"""Before a question is asked: scores that no optimum can use are read as -inf. After it: what rounding leaves unproved.

A score c is hopeless if c plus the best possible rest, the problem's ceiling, is below a score that is reached. Which
scores are hopeless is known once some structure is known, so the question is asked with a *floor*: scores below it are
read as -inf. If what comes back scores more than floor + ceiling, all of them were hopeless, and the answer is that of
the problem as given. Masks of any size thus never reach a kernel; cells that are never read are cleared on the way.

Problems whose scores lie together are asked as they are, which costs one look at their extent. A floor is tried when
scores stick out, or when rounding of the largest scores spoiled the proof.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from math import inf
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from certus.certificates.rounding import OVERFLOW, WIDTH, Extent, grain, overflow
from certus.errors import Infeasible, InvalidInput, NotSupported

if TYPE_CHECKING:
    from certus.problem import Problem
    from certus.result import Certificate, Result

P = ParamSpec("P")
Asked = TypeVar("Asked", bound="Problem[Any]")
Y = TypeVar("Y")
Answer = TypeVar("Answer")

FAR = 1e6  # a score so many times the largest positive one below 0 sticks out
LARGE = 1e9  # scores of this size in a sum leave seven digits of a difference
NOTHING = 1e4  # exp(-NOTHING) is nothing, however many structures there are


def sound(decode: "Callable[Concatenate[Asked, P], Result[Y]]") -> "Callable[Concatenate[Asked, P], Result[Y]]":
    """Decorates a problem's ``decode``."""

    @wraps(decode)
    def asked(problem: Asked, /, *args: P.args, **options: P.kwargs) -> "Result[Y]":
        first = decode(problem, *args, **options) if _together(problem.extent()) else None
        if first is not None and first.certificate.reason is None:
            return first
        known = None if first is None else [first]
        return _answers(problem, lambda p: [decode(p, *args, **options)], 1, known)[0]

    return asked


def sound_list(kbest: "Callable[[Asked, int], list[Result[Y]]]") -> "Callable[[Asked, int], list[Result[Y]]]":
    """Decorates a problem's ``kbest``."""

    @wraps(kbest)
    def asked(problem: Asked, k: int) -> "list[Result[Y]]":
        return _answers(problem, lambda p: kbest(p, k), k)

    return asked


def summed(question: Callable[Concatenate[Asked, P], Answer]) -> Callable[Concatenate[Asked, P], Answer]:
    """Decorates a problem's question about all structures at once: ``log_partition``, ``marginals`` and so on.

    Differences of scores above ``LARGE`` are lost in rounding, and exponentials magnify what is left of them. Scores
    far below all structures that count are read as -inf; where large ones are left, the question is refused.
    """

    @wraps(question)
    def asked(problem: Asked, /, *args: P.args, **options: P.kwargs) -> Answer:
        return question(_moderate(problem), *args, **options)

    return asked


def representable(question: Callable[Concatenate[Asked, P], Answer]) -> Callable[Concatenate[Asked, P], Answer]:
    """Decorates ``max_marginals``: scores below all numbers are no reason to say that there is no structure."""

    @wraps(question)
    def asked(problem: Asked, /, *args: P.args, **options: P.kwargs) -> Answer:
        try:
            return question(problem, *args, **options)
        except Infeasible:
            extent = problem.extent()
            if extent.length * extent.size < OVERFLOW:
                raise
            raise overflow() from None

    return asked


def _moderate(problem: Asked) -> Asked:
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
    for floor in _floors(problem):
        try:
            asked = problem if floor is None else problem.without_scores_below(floor)
            found = ask(asked) if floor is not None or known is None else known
        except (NotSupported, Infeasible):
            if floor is None or floor == -inf:
                raise
            continue
        short = len(found) < wanted and floor is not None and floor > -inf
        if not short and hopeless(problem, floor, found[-1].score):
            break
    if not any(r.certificate.reason for r in found):
        return _with_floor(found, floor)
    found, spoiled = _by_grain(asked, found)
    if not spoiled:
        return _with_floor(found, floor)
    higher = own_floor(problem, found[-1].score) if len(found) == wanted else -inf
    if floor is not None and not higher > floor:
        return _with_floor(found, floor)
    try:
        cleared = problem.without_scores_below(higher)
    except NotSupported:
        return _with_floor(found, floor)
    again, _ = _by_grain(cleared, ask(cleared))
    if len(again) < len(found) or not hopeless(problem, higher, again[-1].score):
        return _with_floor(found, floor)
    return _with_floor(again, higher)


def own_floor(problem: "Problem[Any]", score: float) -> float:
    """Scores below this are of no use to a structure that scores ``score`` or more."""
    extent = problem.without_scores_below(-inf).extent()
    floor = score - extent.ceiling
    return floor - 1e-6 * (abs(floor) + extent.ceiling)


def _together(extent: Extent) -> bool:
    """Whether no score sticks out, and no sum can overflow."""
    return extent.lowest >= -FAR * max(extent.highest, 1.0) and extent.length * extent.size < OVERFLOW


def _floors(problem: "Problem[Any]") -> Iterator[float | None]:
    """What to try as a floor, one after the other; None: the problem as it is."""
    if _together(problem.extent()):
        yield None
        return
    cleared = problem.without_scores_below(-inf)
    extent = cleared.extent()
    usual = max(extent.highest, 1.0)
    for floor in (-FAR * usual, -(FAR**3) * usual):
        if extent.lowest < floor and extent.length * usual < OVERFLOW:
            yield floor
    if not extent.length * extent.size < OVERFLOW:
        raise overflow()
    yield -inf


def hopeless(problem: "Problem[Any]", floor: float | None, score: float) -> bool:
    """Whether scores below the floor are of no use to a structure that scores ``score`` or more.

    The ceiling is that of the problem before anything is left out: with a low score a high one may go.
    """
    if floor is None or floor == -inf:
        return True
    ceiling = problem.without_scores_below(-inf).extent().ceiling
    return score > floor + ceiling + 1e-9 * (abs(floor) + ceiling)


def whole(problem: "Problem[Any]") -> float:
    """The grain of a problem's scores; 0 where they have none, or it is not known."""
    scores = problem.all_scores()
    return 0.0 if scores is None else grain(problem.extent(), scores)


def _by_grain(problem: "Problem[Any]", found: "list[Result[Y]]") -> "tuple[list[Result[Y]], bool]":
    """The results, those proved that are within a grain of their bounds; and whether some are still spoiled."""
    step = whole(problem)
    out = []
    for result in found:
        c = result.certificate
        if c.reason is not None and c.kind != "integer program" and c.gap + c.tolerance / WIDTH < step:
            c = replace(c, bound=c.score, tolerance=0.0, reason=None)
        out.append(result if c is result.certificate else replace(result, certificate=c))
    return out, any(r.certificate.reason for r in out)


def _with_floor(found: "list[Result[Y]]", floor: float | None) -> "list[Result[Y]]":
    if floor is None:
        return found

    def floored(c: "Certificate") -> "Certificate":
        return replace(c, floor=floor if c.floor is None else max(c.floor, floor))

    return [replace(r, certificate=floored(r.certificate)) for r in found]
