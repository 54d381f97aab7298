"""Logic factors over labels, as constraints: ``graph.subject_to(*exactly_one(cells), *output(cells, cell))``.

A cell (v, s) says that variable v has label s. Each factor is a tuple of linear rows whose fractional solutions are
mixtures of its 0/1 solutions, so the relaxation of a factor graph with them is as tight as with the factors themselves
[Martins15]_. Where variables have two labels, (v, 1 - s) is the negation of (v, s).
"""

from collections.abc import Iterable, Sequence

from numpy.typing import ArrayLike

from certus.relax import constraints
from certus.relax.constraints import Constraint

Cell = Sequence[int]
Factor = tuple[Constraint, ...]


def exactly_one(cells: Iterable[Cell]) -> Factor:
    """One of the cells holds, and no other."""
    return (constraints.exactly(1, "labels", cells),)


def at_most_one(cells: Iterable[Cell]) -> Factor:
    """No two of the cells hold."""
    return (constraints.at_most_one("labels", cells),)


def any_of(cells: Iterable[Cell]) -> Factor:
    """At least one of the cells holds."""
    return (constraints.at_least(1, "labels", cells),)


def output(cells: Iterable[Cell], out: Cell) -> Factor:
    """The last cell holds just if one of the others does (or with an output)."""
    inputs = list(cells)
    some = constraints.linear([(1.0, "labels", out), *((-1.0, "labels", cell) for cell in inputs)], "<=", 0.0)
    return (some, *(constraints.implies(("labels", tuple(cell)), ("labels", tuple(out))) for cell in inputs))


def budget(costs: ArrayLike, limit: float) -> Factor:
    """What the labels cost, given as an array (n, K), adds up to at most the limit."""
    return (constraints.budget("labels", costs, limit),)
