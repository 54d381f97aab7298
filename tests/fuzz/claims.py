"""What a result claims, held against every structure in exact arithmetic."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np

from certus import Result
from certus.relax.proof import Fix, Leaf, Split, Tighter
from tests.fuzz.scores import PLAIN
from tests.oracles.exact import Exact, shown, units

CLOSE, SCORE = Fraction(1, 10**9), Fraction(1, 10**12)  # relative to the sizes of the structures
SUMMED = 1e270  # a structure whose scores are no larger can be added up; others may be refused


class Claim(NamedTuple):
    """A claim that does not hold: which one, always in the same words, and the numbers."""

    claim: str
    detail: str


def about(
    table: Exact, result: Result[Any], *, best: int | None = None, seen: frozenset[int] = frozenset()
) -> Iterator[Claim]:
    """The false claims of one result; ``seen`` are places of structures that its bound need not cover."""
    c = result.certificate
    place = table.at(result.structure)
    if place is None:
        yield Claim("a structure that is none, or forbidden", f"{result.structure!r}")
        return
    numbers = (result.score, c.score, c.tolerance)
    if any(not isfinite(x) for x in numbers) or isnan(c.bound) or c.bound == -np.inf or c.tolerance < 0:
        yield Claim("numbers that are none", f"score {result.score!r}, {c!r}")
        return
    value, size = table.value[place], table.size[place]
    if result.score != c.score:
        yield Claim("two scores", f"{result.score!r} and in the certificate {c.score!r}")
    if max(abs(units(score) - value) for score in (result.score, c.score)) > (
        0 if table.whole(place) else SCORE * size
    ):
        yield Claim("a score that is not the structure's", f"{result.score!r}, {c.score!r}, exactly {shown(value)}")
    top = (
        best if best is not None else max((k for k in range(len(table)) if k not in seen), key=table.value.__getitem__)
    )
    most, room = table.value[top], CLOSE * (size + table.size[top])
    if c.bound < np.inf and units(c.bound) + units(c.tolerance) < most:
        yield Claim("a bound below the optimum", f"bound {c.bound!r} + {c.tolerance!r}, optimum {shown(most)}")
    if c.exact:
        gap = most - units(c.score)
        if gap > room + CLOSE * multipliers(c.duals):
            yield Claim("a false certificate", f"exact at {c.score!r}, optimum {shown(most)}")
        elif gap > units(c.tolerance):
            yield Claim("exact, but the tolerance is exceeded", f"by {shown(gap)}, tolerance {c.tolerance!r}")
        if units(c.tolerance) > room + CLOSE * multipliers(c.duals):
            yield Claim("a tolerance above 1e-9 of the parts", f"{c.tolerance!r}, parts {shown(size)}")


def multipliers(duals: Any) -> int:
    """Sum of the absolute multipliers of a witness, in units; the largest over the nodes of a proof tree."""
    most, stack = 0, [duals]
    while stack:
        node = stack.pop()
        if isinstance(node, Split):
            stack += [node.zero, node.one]
        elif isinstance(node, Leaf | Fix):
            stack += [node.multipliers, *([node.rest] if isinstance(node, Fix) else [])]
        elif isinstance(node, Tighter):
            stack.append(node.rest)
        elif isinstance(node, Mapping):
            values = [np.asarray(v, dtype=float).ravel() for v in node.values()]
            most = max(most, sum(units(abs(float(x))) for v in values for x in v if np.isfinite(x)))
    return most


def ordinary(table: Exact, regime_is_ordinary: bool, wanted: int = 1) -> bool:
    """Whether the best structures must be proved: scores are ordinary, and as many structures use no mask."""
    return regime_is_ordinary and sum(largest <= PLAIN for largest in table.largest) >= wanted


def largest_marginals(table: Exact, problem: Any, view: str) -> dict[int, int]:
    """For each cell of a view that a structure uses, the place of the best one that does."""
    best: dict[int, int] = {}
    for k in table.order:
        for cell in np.flatnonzero(problem.indicator(table.structures[k], view)).tolist():
            best.setdefault(cell, k)
    return best
