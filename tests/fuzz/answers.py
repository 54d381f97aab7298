"""Lists, max-marginals with their bounds, intervals of sums and marginals, of small problems, against all structures.

``problems`` decodes in every way and asks for the rest now and then; here every case is asked for what is hard. Scores
are ordinary, masked here and there, so that what is best among structures without masks must be proved; where all are
whole, scores are compared to the last bit, and so are max-marginals without masks. Problems are small, but for a few;
of a share of ``VERIFIED`` one result of the list is verified too, which the report counts.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import mpmath
import numpy as np

import certus
from certus.relax import sums as relaxed_sums
from tests.fuzz import cases
from tests.fuzz.cases import KINDS, Case
from tests.fuzz.claims import CLOSE, SUMMED, Claim, largest_marginals
from tests.fuzz.problems import answer, ranked, smaller_by
from tests.fuzz.runner import Finding, Tally
from tests.fuzz.scores import PLAIN, Rng
from tests.fuzz.sums import distribution, hard_sums
from tests.oracles.exact import Exact, shown, units

ANSWER_KINDS = (
    "labelled parts", "labelled automata", "dependency", "labelled dependency", "automata dependency", "joint",
    "joint of many", "constrained", "soft", "accepted", "factor graph", "assignment", "knapsack", "set cover",
    "dependency graph", "tagging", "grid", "crossing labelled automata",
)  # fmt: skip
REGIMES = ("whole",) * 4 + ("real",) * 3 + ("masked",)  # of ORDINARY; beside masks every question takes longer
SLOW = ("dependency", "labelled dependency")  # some of these take minutes to decode under constraints
VERIFIED = 0.15
# How many parts most problems have at most; a few have up to twice as many, or more.
SMALL = {"knapsack": 3, "set cover": 4, "assignment": 6, "soft": 8, "dependency": 9, "dependency graph": 9}
SMALL |= {"automata dependency": 9, "joint": 6, "joint of many": 6, "grid": 8, "labelled automata": 31}
SMALL |= {"labelled parts": 31, "labelled dependency": 18}
SIZES, SHARES = (1.0, 2.0, np.inf), (0.95, 0.04, 0.01)
ROUNDS = 10  # of intervals: they hold after any number
LISTED = (1, 1, 1, 1, 1, 1, 3, relaxed_sums.LISTED)  # and with any number of structures below
DRAWN = 64  # samples of estimates that are not exact
FAR = 5.0  # standard errors: parts further from the truth are counted


class Answers:
    """One case is one problem."""

    name = "answers"

    def __init__(self, kinds: tuple[str, ...] = ()) -> None:
        self.kinds = kinds or ANSWER_KINDS

    def one(self, rng: Rng, tally: Tally) -> Iterator[Finding]:
        kind = str(rng.choice(self.kinds))
        case = cases.drawn(rng, kind, str(rng.choice(REGIMES)))
        most = SMALL.get(kind, 16) * float(rng.choice(SIZES, p=SHARES))
        while case.get("inner", {}).get("kind") in SLOW or parts_of(case) > most:
            case = cases.drawn(rng, kind, str(rng.choice(REGIMES)))
        verified = [int(rng.integers(1, 4))] if rng.random() < VERIFIED else []
        listed = int(rng.choice(LISTED))
        tally["problems"] += 1
        tally[f"problems, {case['regime']}"] += 1
        for name, detail in check(case, tally, verified, listed):
            yield Finding(kind, name, detail, partial(smaller_by, check, case, name))

    def replay(self, data: Any) -> list[Claim]:
        return check(cases.from_json(data))


def parts_of(case: Case) -> float:
    """The number of parts that a problem shows in its views."""
    try:
        return float(sum(np.prod(shape) for shape in cases.made(case).views.values()))
    except certus.Infeasible:  # a part is required that no structure has
        return 0.0


def check(
    case: Case, tally: Tally | None = None, verified: Sequence[int] = (1, 2, 3), listed: int = LISTED[-1]
) -> list[Claim]:
    """The claims about one problem that do not hold."""
    tally, out = Tally() if tally is None else tally, []
    try:
        try:
            problem = cases.made(case)
        except certus.Infeasible:  # a part is required that no structure has
            tally["infeasible when made"] += 1
            return out
        table = Exact(cases.listed(case, problem))
        if not any(most <= SUMMED for most in table.largest):
            tally["infeasible, or only by masks that cannot be added up"] += 1
            return out if len(table) else answer(case, table, tally, "decode", problem.decode)[1]
        tally["structures"] += len(table)
        if not verified:
            share(problem)
        relaxed_sums.LISTED = listed
        for claims in (
            ranked(case, problem, table, tally, 3, verified),
            bounded(case, problem, table, tally),
            summed(case, problem, table, tally),
        ):
            out += claims
    except certus.CertusError as error:
        out.append(Claim(f"{type(error).__name__} where none is due", str(error)))
    except Exception as error:
        out.append(Claim(f"bare {type(error).__name__}", str(error)))
    return out


def share(problem: Any) -> None:
    """Have a problem keep its relaxation, and what decoding gives, which lists, bounds and intervals all begin with."""
    relaxation, decode, kept = problem.relaxation, problem.decode, dict[Any, Any]()

    def decoded(**options: Any) -> Any:
        key = tuple(sorted((name, value) for name, value in options.items() if value is not None))
        if key not in kept:
            kept[key] = decode(**options)
        return kept[key]

    vars(problem).update(relaxation=cache(relaxation), decode=decoded)


def bounded(case: Case, problem: Any, table: Exact, tally: Tally) -> Iterator[Claim]:
    """Both bounds of max-marginals, which hold, and are equal where there is no limit and no mask."""
    found, claims = answer(case, table, tally, "max_marginal_bounds", problem.max_marginal_bounds)
    yield from claims
    if found is None:
        return
    lower, upper = found
    top = table.order[0]
    for view in problem.views:
        best, ends = largest_marginals(table, problem, view), (lower[view].ravel(), upper[view].ravel())
        for cell, (low, high) in enumerate(zip(*map(np.ndarray.tolist, ends), strict=True)):
            if cell not in best:
                if (low, high) != (-np.inf, -np.inf):
                    yield Claim("a max-marginal of a part that no structure uses", f"{view} {cell}: {low!r}, {high!r}")
                continue
            k = best[cell]
            plain = table.largest[k] <= PLAIN
            room = 0 if plain and table.whole(k) else CLOSE * (table.size[k] + table.size[top])
            exact = table.value[k]
            told = f"{view} {cell}: {low!r} to {high!r}, exactly {shown(exact)}"
            if not (table.finite(k) and table.largest[k] <= SUMMED):
                continue
            tally["max-marginals"] += int(plain)
            if (
                low > high
                or (low > -np.inf and units(low) > exact + room)
                or high == -np.inf
                or below(high, exact - room)
            ):
                yield Claim("bounds of a max-marginal that are wrong", told)
                return
            if plain and not (low > -np.inf and high < np.inf and max(units(high) - exact, exact - units(low)) <= room):
                yield Claim("bounds of a max-marginal that are apart", told)
                return


def below(value: float, amount: Any) -> bool:
    """Whether a number that is not -inf is less than an amount of units."""
    return value < np.inf and units(value) < amount


def summed(case: Case, problem: Any, table: Exact, tally: Tally) -> Iterator[Claim]:
    """The interval of the log-partition function, and marginals: exact ones where the problem says so."""
    answers = []
    for name, question in (
        ("log_partition_bounds", lambda: problem.log_partition_bounds(iterations=ROUNDS)),
        ("marginal_estimates", lambda: problem.marginal_estimates(samples=DRAWN, seed=0)),
    ):
        found, claims = answer(case, table, tally, name, question)
        answers.append(found)
        yield from claims if max(table.largest) <= PLAIN else ()  # float64 loses what is beside a mask
    with mpmath.workdps(60):
        total, probability, size = distribution(table)
    bounds, estimates = answers
    yield from hard_sums(bounds, estimates, total, Tally())  # they are counted where they are asked for
    if estimates is None or size > PLAIN * PLAIN:
        return
    tally[f"marginal_estimates, {estimates.method}"] += 1
    for view, values in estimates.marginals.items():
        expected = sum(float(p) * problem.indicator(table.structures[k], view) for k, p in probability.items())
        off, error = np.abs(values - expected), estimates.standard_error[view]
        if estimates.method == "exact" and not off.max(initial=0.0) <= 1e-9:
            yield Claim("a marginal that is wrong", f"{view}: {values!r}, exactly {expected!r}")
        if not (np.isfinite(values).all() and np.isfinite(error).all() and (error >= 0.0).all()):
            yield Claim("an estimate that is no number", f"{view}: {values!r}, {error!r}")
        tally["parts estimated"] += int(off.size)
        tally["parts estimated too far off"] += int((off > FAR * error + 1e-9).sum())


assert set(ANSWER_KINDS) <= KINDS.keys()
