"""Lists, max-marginals with their bounds, and intervals of sums, of small problems, against all structures.

``problems`` decodes in every way and asks for the rest now and then; here every case is asked for what is hard. Scores
are ordinary, and not masked, so that whatever is answered must be proved; one case in ``VERIFIED`` is verified too.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import mpmath
import numpy as np

import certus
from tests.fuzz import cases
from tests.fuzz.cases import KINDS, Case
from tests.fuzz.claims import CLOSE, Claim, largest_marginals
from tests.fuzz.problems import ranked, smaller_by
from tests.fuzz.runner import Finding, Tally
from tests.fuzz.scores import Rng
from tests.fuzz.sums import distribution, hard_sums
from tests.oracles.exact import Exact, shown, units

ANSWER_KINDS = (
    "labelled parts", "labelled automata", "dependency", "labelled dependency", "automata dependency", "joint",
    "joint of many", "constrained", "soft", "accepted", "factor graph", "assignment", "knapsack", "set cover",
    "dependency graph", "tagging",
)  # fmt: skip
PLAIN = ("whole", "real")
SLOW = ("dependency", "labelled dependency")  # some of these take minutes to decode under constraints
VERIFIED = 50
ROUNDS = 10  # of intervals: they hold after any number


class Answers:
    """One case is one problem."""

    name = "answers"

    def __init__(self, kinds: tuple[str, ...] = ()) -> None:
        self.kinds = kinds or ANSWER_KINDS

    def one(self, rng: Rng, tally: Tally) -> Iterator[Finding]:
        kind = str(rng.choice(self.kinds))
        case = cases.drawn(rng, kind, str(rng.choice(PLAIN)))
        while case.get("inner", {}).get("kind") in SLOW:
            case = cases.drawn(rng, kind, str(rng.choice(PLAIN)))
        tally["problems"] += 1
        for name, detail in check(case, tally, verified=not rng.integers(VERIFIED)):
            yield Finding(kind, name, detail, partial(smaller_by, check, case, name))

    def replay(self, data: Any) -> list[Claim]:
        return check(cases.from_json(data))


def check(case: Case, tally: Tally | None = None, verified: bool = True) -> list[Claim]:
    """The claims about one problem that do not hold."""
    tally, out = Tally() if tally is None else tally, []
    try:
        try:
            problem = cases.made(case)
        except certus.Infeasible:  # a part is required that no structure has
            tally["infeasible when made"] += 1
            return out
        table = Exact(cases.listed(case, problem))
        if not len(table):
            tally["infeasible"] += 1
            return out
        for claims in (
            ranked(case, problem, table, tally, 3, range(1, 4) if verified else ()),
            bounded(problem, table, tally),
            interval(problem, table, tally),
        ):
            out += claims
    except certus.CertusError as error:
        out.append(Claim(f"{type(error).__name__} where none is due", str(error)))
    except Exception as error:
        out.append(Claim(f"bare {type(error).__name__}", str(error)))
    return out


def bounded(problem: Any, table: Exact, tally: Tally) -> Iterator[Claim]:
    """Both bounds of max-marginals, which are equal where there is no limit."""
    tally["max_marginal_bounds"] += 1
    lower, upper = problem.max_marginal_bounds()
    top = table.order[0]
    for view in problem.views:
        best, ends = largest_marginals(table, problem, view), (lower[view].ravel(), upper[view].ravel())
        for cell, (low, high) in enumerate(zip(*map(np.ndarray.tolist, ends), strict=True)):
            if cell not in best:
                if (low, high) != (-np.inf, -np.inf):
                    yield Claim("a max-marginal of a part that no structure uses", f"{view} {cell}: {low!r}, {high!r}")
                continue
            k = best[cell]
            room = CLOSE * (table.size[k] + table.size[top])
            if not table.finite(k):
                continue
            if not np.isfinite([low, high]).all() or max(abs(units(x) - table.value[k]) for x in (low, high)) > room:
                yield Claim(
                    "bounds of a max-marginal that are wrong",
                    f"{view} {cell}: {low!r} to {high!r}, exactly {shown(table.value[k])}",
                )
                return


def interval(problem: Any, table: Exact, tally: Tally) -> Iterator[Claim]:
    """The interval of the log-partition function, where there is one."""
    try:
        bounds = problem.log_partition_bounds(iterations=ROUNDS)
    except certus.NotSupported:
        tally["log_partition_bounds: not supported"] += 1
        return
    with mpmath.workdps(60):
        total, _, _ = distribution(table)
    yield from hard_sums(bounds, None, total, tally)


assert set(ANSWER_KINDS) <= KINDS.keys()
