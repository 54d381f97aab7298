"""Log-partition functions, marginals, entropies and samples against sums over all structures in high precision.

An exponent that is the sum of floats of size S carries an error of about 1e-14 S, here ``delta``; where that is above
0.1 no float64 algorithm can give probabilities, and only the log-partition function is compared.
"""

from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Any

import mpmath
import numpy as np

import certus
from tests.fuzz import cases
from tests.fuzz.cases import KINDS, Case
from tests.fuzz.claims import Claim, ordinary
from tests.fuzz.runner import Finding, Tally, shrunk
from tests.fuzz.scores import ORDINARY, Rng
from tests.oracles.exact import BITS, Exact, key

LARGE = 1e9  # of the scores that sums take
DELTA = 1e-14  # error of an exponent, relative to the sum of its absolute parts
SUM_KINDS = (
    "hyperpath", "constrained hyperpath", "tagging", "constituency", "lexicalized constituency", "dependency",
    "labelled dependency", "vine", "constrained", "accepted", "forest translation", "segmentation", "span trees",
    "alignment", "ctc", "labelled parts", "labelled automata", "joint", "factor graph",
)  # fmt: skip


class Sums:
    """One case is one problem, asked for all its sums."""

    name = "sums"

    def one(self, rng: Rng, tally: Tally) -> Iterator[Finding]:
        shares = np.array([KINDS[kind].share for kind in SUM_KINDS])
        kind = str(rng.choice(SUM_KINDS, p=shares / shares.sum()))
        case = cases.drawn(rng, kind, str(rng.choice(KINDS[kind].regimes)))
        tally["problems"] += 1
        for name, detail in check(case, tally):
            yield Finding(kind, name, detail, partial(smaller, case, name))

    def replay(self, data: Any) -> list[Claim]:
        return check(cases.from_json(data))


def smaller(case: Case, claim: str) -> Any:
    return cases.to_json(shrunk(case, lambda c: claim in {found.claim for found in check(c)}))


def check(case: Case, tally: Tally | None = None) -> list[Claim]:
    """The sums of one problem that are wrong."""
    tally = Tally() if tally is None else tally
    try:
        problem = cases.made(case)
        table = Exact(cases.listed(case, problem))
        return list(compared(problem, table, tally, ordinary(table, case["regime"] in ORDINARY)))
    except certus.CertusError as error:
        return [Claim(f"{type(error).__name__} where none is due", str(error))]
    except Exception as error:
        return [Claim(f"bare {type(error).__name__}", str(error))]


def compared(problem: Any, table: Exact, tally: Tally, plain: bool) -> Iterator[Claim]:
    """Only scores whose differences float64 loses may be refused, never ``plain`` ones."""
    answers = {}
    for name, question in {
        "log_partition": problem.log_partition,
        "entropy": problem.entropy,
        "marginals": problem.marginals,
        "sample": lambda: problem.sample(2, seed=0),
        "log_partition_bounds": problem.log_partition_bounds,
        "marginal_estimates": lambda: problem.marginal_estimates(samples=64, seed=0),
    }.items():
        try:
            answers[name] = question()
        except certus.NotSupported:
            tally[f"{name}: not supported"] += 1
        except certus.Infeasible:
            if len(table):
                yield Claim(f"{name}: infeasible, though there is a structure", "")
        except certus.LimitReached:
            tally[f"{name}: every tree drawn is forbidden"] += 1
        except certus.InvalidInput as error:
            tally[f"{name}: refused"] += 1
            if plain:
                yield Claim(f"{name}: InvalidInput where none is due", str(error))
    bounds = answers.pop("log_partition_bounds", None)
    estimates = answers.pop("marginal_estimates", None)
    if not len(table):
        if bounds is not None and bounds.lower > -inf:
            yield Claim("a lower bound of a sum, though there is no structure", f"{bounds}")
        if estimates is not None:
            yield Claim("estimates, though there is no structure", f"{estimates}")
        if answers.get("log_partition", -inf) != -inf or set(answers) - {"log_partition"}:
            yield Claim("a sum, though there is no structure", f"{answers}")
        return
    with mpmath.workdps(60):
        total, probability, size = distribution(table)
        entropy = -mpmath.fsum(p * mpmath.log(p) for p in probability.values())
    yield from hard_sums(bounds, estimates, total, tally)
    highest = problem.extent().highest  # of a part that no structure uses too: it counts among what is added up
    delta = DELTA * max(size, highest if highest <= LARGE else 0.0)
    if "log_partition" in answers:
        tally["log_partition"] += 1
        if not abs(answers["log_partition"] - total) <= 1e-10 + delta:
            yield Claim(
                "a log-partition that is wrong", f"{answers['log_partition']!r}, exactly {mpmath.nstr(total, 20)}"
            )
    if delta > 0.1:
        tally["beyond float64"] += 1
        return
    if "entropy" in answers:
        tally["entropy"] += 1
        if not abs(answers["entropy"] - entropy) <= 1e-8 + 100 * delta:
            yield Claim("an entropy that is wrong", f"{answers['entropy']!r}, exactly {mpmath.nstr(entropy, 20)}")
    for view, values in answers.get("marginals", {}).items():
        tally["marginals"] += 1
        expected = np.zeros(values.shape)
        for k, p in probability.items():
            expected += float(p) * problem.indicator(table.structures[k], view)
        error = np.abs(values - expected).max(initial=0.0)
        if not error <= 1e-9 + 4 * delta:
            yield Claim("a marginal that is wrong", f"{view}: off by {error!r}")
    for drawn in answers.get("sample", ()):
        tally["samples"] += 1
        place = table.place.get(key(drawn))
        if place is None or place not in probability:
            yield Claim("a sample that is no structure, or far too unlikely", f"{drawn!r}")


def hard_sums(bounds: Any, estimates: Any, total: Any, tally: Tally) -> Iterator[Claim]:
    """What is wrong with an interval for a log-partition function and with estimates of marginals, None if refused."""
    if bounds is not None:
        tally["log_partition_bounds"] += 1
        if not bounds.lower <= total <= bounds.upper:
            yield Claim("an interval that does not hold the log-partition", f"{bounds}: {mpmath.nstr(total, 20)}")
    if estimates is not None:
        tally["marginal_estimates"] += 1
        largest = max((values.max(initial=0.0) for values in estimates.marginals.values()), default=0.0)
        if not estimates.effective_sample_size >= 1.0 - 1e-9 or (estimates.samples and largest > 1.0):
            yield Claim("estimates that are none", f"{estimates}")


def distribution(table: Exact) -> tuple[Any, dict[int, Any], float]:
    """Log of the sum, probabilities of the structures that count, and the size of the largest of them."""
    top = max(table.value)
    weight = {}
    for k, value in enumerate(table.value):
        below = mpmath.mpf(value - top) * mpmath.mpf(2) ** -BITS
        if below > -200:
            weight[k] = mpmath.exp(below)
    mass = mpmath.fsum(weight.values())
    size = float(mpmath.mpf(max(table.size[k] for k in weight)) * mpmath.mpf(2) ** -BITS)
    total = mpmath.mpf(top) * mpmath.mpf(2) ** -BITS + mpmath.log(mass)
    return total, {k: w / mass for k, w in weight.items()}, size
