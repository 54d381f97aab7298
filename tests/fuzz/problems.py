"""Random problems of every kind: best structures, k-best lists and max-marginals against all structures."""

import re
import time
from collections.abc import Collection, Iterator
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

import certus
from tests.fuzz import (  # noqa: F401 (they register kinds)
    cases,
    choices,
    combined,
    grammars,
    labelled,
    readings,
    sequences,
    structures,
    translations,
    trees,
)
from tests.fuzz.cases import KINDS, Case
from tests.fuzz.claims import CLOSE, SUMMED, Claim, about, largest_marginals, ordinary
from tests.fuzz.runner import Finding, Tally, shrunk
from tests.fuzz.scores import ORDINARY, Rng
from tests.oracles.exact import UNIT, Exact, shown, units

EVERY = 1.0  # ask every question: what a replay does
TINY = 1000  # a structure whose parts together are this much smaller than another score may be lost in its rounding


class Problems:
    """One case is one problem."""

    name = "problems"

    def __init__(self, kinds: tuple[str, ...] = ()) -> None:
        self.kinds = kinds or tuple(KINDS)
        shares = np.array([KINDS[kind].share for kind in self.kinds])
        self.shares = shares / shares.sum()

    def one(self, rng: Rng, tally: Tally) -> Iterator[Finding]:
        kind = str(rng.choice(self.kinds, p=self.shares))
        case = cases.drawn(rng, kind, str(rng.choice(KINDS[kind].regimes)))
        tally["problems"] += 1
        tally[f"{kind}: problems"] += 1
        for name, detail in check(case, rng, tally, KINDS[kind].rest):
            yield Finding(kind, name, detail, partial(smaller, case, name))

    def replay(self, data: Any) -> list[Claim]:
        return list(check(cases.from_json(data)))


def smaller(case: Case, claim: str) -> Any:
    """The case with as many zeros as still make it fail, as JSON."""
    return smaller_by(check, case, claim)


def smaller_by(checking: Any, case: Case, claim: str) -> Any:
    """The same for another way of checking."""
    return cases.to_json(shrunk(case, lambda c: claim in {found.claim for found in checking(c)}))


def check(case: Case, rng: Rng | None = None, tally: Tally | None = None, share: float = EVERY) -> list[Claim]:
    """The claims about one problem that do not hold."""
    rng, tally = rng or np.random.default_rng(0), Tally() if tally is None else tally
    out: list[Claim] = []
    try:
        problem = cases.made(case)
        table = Exact(cases.listed(case, problem))
        for claims in asked(case, problem, table, rng, tally, share):
            out += claims
    except certus.CertusError as error:
        out.append(Claim(f"{type(error).__name__} where none is due", str(error)))
    except Exception as error:
        out.append(Claim(f"bare {type(error).__name__}", str(error)))
    return out


def asked(case: Case, problem: Any, table: Exact, rng: Rng, tally: Tally, share: float) -> Iterator[list[Claim]]:
    kind = KINDS[case["kind"]]
    ways = [({}, True), *((dict(w), True) for w in kind.proved), *((dict(w), False) for w in kind.tried)]
    taken = signature(problem.decode).parameters  # where constraints only forbid parts there is nothing to step along
    ways = [way for way in ways if set(way[0]) <= set(taken)]
    if share < EVERY:
        ways = [ways[0], *(w for w in ways[1:] if rng.random() < 1.0 / len(ways))]
    for way, proves in ways:
        yield list(decoded(case, problem, table, tally, way, proves, rng.random() < share))
    if not len(table):
        return
    for k, often in ((3, share), (8, share / 4)):
        if rng.random() < often:
            ranks = range(1, min(k, len(table)) + 1)
            verified = ranks if share == EVERY else [int(rng.choice(ranks))]
            yield list(ranked(case, problem, table, tally, k, verified))
    if rng.random() < share:
        yield list(marginal(case, problem, table, tally))


def answer(
    case: Case, table: Exact, tally: Tally, name: str, question: Any, wanted: int = 1
) -> tuple[Any, list[Claim]]:
    """What a question about so many structures gives, or None and what is wrong with that."""
    started = time.perf_counter()
    tally[name] += 1
    try:
        found = question()
    except certus.Infeasible:
        tally[f"{name}: infeasible"] += 1
        told = "there is a structure" if any(map(table.finite, range(len(table)))) else "there are scores that overflow"
        return None, [Claim(f"{name}: infeasible, though {told}", "")] if len(table) else []
    except certus.NotSupported:
        tally[f"{name}: not supported"] += 1
        return None, []
    except certus.LimitReached:
        tally[f"{name}: limit reached"] += 1
        return None, []
    except certus.InvalidInput as error:
        tally[f"{name}: refused"] += 1
        fine = "overflow" in str(error) and sum(most <= SUMMED for most in table.largest) < wanted
        fine |= "max-marginals" in str(error) and case["regime"] not in ORDINARY
        return None, [] if fine else [Claim(f"{name}: InvalidInput where none is due", str(error))]
    finally:
        tally.slowest(name, time.perf_counter() - started)
    if not len(table) and name != "max_marginals":
        return None, [Claim(f"{name}: a structure, though there is none", repr(found))]
    return found, []


def decoded(
    case: Case, problem: Any, table: Exact, tally: Tally, way: dict[str, Any], proves: bool, verified: bool
) -> Iterator[Claim]:
    result, claims = answer(case, table, tally, "decode", lambda: problem.decode(**way))
    yield from claims
    if result is None:
        return
    tally[f"{case['kind']}: decodings"] += 1
    found = list(about(table, result, best=table.order[0]))
    told = f" {way}" if way else ""
    yield from (Claim(c.claim, c.detail + told) for c in found)
    c, regime = result.certificate, case["regime"]
    if not c.exact:
        tally["decode: not proved" if proves else "decode: a gap left"] += 1
        if proves:
            tally[f"{case['kind']}: not exact for rounding alone"] += c.reason is not None
            why = re.split(r"[:;,]| of [-+.\d]", c.reason or "a gap left")[0]
            tally[f"not proved, {regime}: {why}"] += 1
            if ordinary(table, regime in ORDINARY):
                yield Claim("not proved, though all is ordinary", repr(result) + told)
    if regime in ("whole", "real") and len(result.trace) and c.kind == "dual":
        top = table.order[0]
        room = CLOSE * 10 * table.size[top] + units(1e-9)
        dual, primal = result.trace.dual[result.info.get("rehearsed", 0) :], result.trace.primal
        if len(dual) and not dual.min() >= float((table.value[top] - room) * UNIT):
            yield Claim("a dual value below the optimum on the way", f"{dual.min()!r}, {shown(table.value[top])}{told}")
        if not primal.max() <= float((table.value[top] + room) * UNIT):
            yield Claim("a primal value above the optimum on the way", told)
    if verified and not found:
        yield from accepted(problem, result, tally, told)


def accepted(problem: Any, result: Any, tally: Tally, told: str = "") -> Iterator[Claim]:
    """Whether certus.verify accepts a true result."""
    tally["verified"] += 1
    started = time.perf_counter()
    try:
        certus.verify(problem, result)
    except certus.NotSupported:
        tally["verified: not supported"] += 1
    except certus.VerificationError as error:
        kind = f"{result.certificate.kind}{', ranked' if result.certificate.rank > 1 else ''}"
        yield Claim(f"a true result refused by verify ({kind})", f"{error} {result!r}{told}")
    tally.slowest("verify", time.perf_counter() - started)


def ranked(case: Case, problem: Any, table: Exact, tally: Tally, k: int, verified: Collection[int]) -> Iterator[Claim]:
    """The best k; ``verified`` are ranks to verify."""
    results, claims = answer(case, table, tally, "kbest", lambda: problem.kbest(k), k)
    yield from claims
    if results is None:
        return
    order, seen = table.order, []
    if len(results) != min(k, len(table)):
        yield Claim("k-best: another number of structures", f"{len(results)} of {len(table)}, asked for {k}")
    for rank, result in enumerate(results, 1):
        place = table.at(result.structure)
        if place in seen or rank > len(table):
            yield Claim("k-best: a structure twice", f"rank {rank}")
            return
        if result.certificate.rank != rank:
            yield Claim("k-best: a rank that is none", f"{result.certificate.rank} in place {rank}")
        best = next(k for k in order if k not in seen)
        found = [Claim(f"k-best: {c.claim}", f"rank {rank}: {c.detail}") for c in about(table, result, best=best)]
        yield from found
        if not result.certificate.exact:
            tally["kbest: not proved"] += 1
            tiny = place is not None and TINY * table.size[place] < units(max(table.largest))
            tally["kbest: ranks lost in rounding"] += tiny and result.certificate.reason is not None
            if not tiny and ordinary(table, case["regime"] in ORDINARY, min(k, len(table))):
                yield Claim("k-best: not proved, though all is ordinary", f"rank {rank}: {result!r}")
        if not found and rank in verified:
            refused = list(accepted(problem, result, tally))
            # Multipliers that tell ranks apart beside scores of 1e-6 to 1e38, or masks that are used, are not always
            # found: the results say that they are not exact, or the scores are no ordinary ones.
            hard = rank > 1 and (case["regime"] not in ORDINARY or not result.certificate.exact)
            tally["kbest: ranks refused beside scores of very different sizes"] += len(refused) * hard
            yield from refused if not hard else ()
        if place is None:
            return
        seen.append(place)


def marginal(case: Case, problem: Any, table: Exact, tally: Tally) -> Iterator[Claim]:
    found, claims = answer(case, table, tally, "max_marginals", problem.max_marginals)
    yield from claims
    if found is None:
        return
    top = table.order[0]
    for view, values in found.items():
        best, flat = largest_marginals(table, problem, view), values.ravel().tolist()
        for cell, value in enumerate(flat):
            if cell not in best:
                if value != -np.inf:
                    yield Claim("a max-marginal of a part that no structure uses", f"{view} {cell}: {value!r}")
                    break
                continue
            k = best[cell]
            if value == -np.inf and not (table.finite(k) and table.largest[k] <= SUMMED):
                continue
            if not np.isfinite(value) or abs(units(value) - table.value[k]) > CLOSE * (table.size[k] + table.size[top]):
                yield Claim(
                    "a max-marginal that is wrong", f"{view} {cell}: {value!r}, exactly {shown(table.value[k])}"
                )
                break
