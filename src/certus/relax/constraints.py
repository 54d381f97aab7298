"""Linear constraints on the parts of a structure, written as one would say them.

    tagging.subject_to(at_most(2, "tags", noun_cells), implies(("tags", (0, 3)), ("tags", (4, 1))))

A part is one cell of a view: ("tags", (4, 1)) is tag 1 at position 4. Constraints speak of parts that are used once
or not at all. With ``penalty=`` a constraint is soft: structures may break it, and score that much less per unit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Floats, as_float, as_int, as_members, as_scores, one_of, shown
from certus.errors import InvalidInput
from certus.problem import Index
from certus.relax.system import row_slack
from certus.schema import MOST, Field

Part = tuple[str, Index]
Term = tuple[float, str, Index]  # coefficient, view, index
Sense = Literal["<=", "==", ">="]
SENSES = ("<=", "==", ">=")


@dataclass(frozen=True, slots=True, repr=False)
class Constraint:
    """sum of coefficient * part (<=, ==, >=) bound, with a name to call it by.

    A structure scores ``penalty`` less for each unit by which it breaks the constraint; it must not, where that is inf.
    """

    terms: tuple[Term, ...]
    sense: Sense
    bound: float
    name: str
    shape: Index | None = None  # of the view, if coefficients were given for all of it
    penalty: float = inf

    def __repr__(self) -> str:
        return self.name

    def named(self, name: str) -> "Constraint":
        """The same under another name, as errors and multipliers will show it."""
        return replace(self, name=name)

    def holds(self, indicators: Mapping[str, Floats]) -> bool:
        """True if the parts used satisfy the constraint, but for the rounding of coefficients and of their sum."""
        value = sum(c * float(indicators[view][index]) for c, view, index in self.terms)
        whole = self.bound % 1 == 0 and all(c % 1 == 0 for c, _, _ in self.terms)
        slack = 0.0 if whole else row_slack(sum(abs(c) for c, _, _ in self.terms), abs(self.bound))
        excess = {"<=": value - self.bound, ">=": self.bound - value, "==": abs(value - self.bound)}[self.sense]
        return excess <= slack

    @property
    def soft(self) -> bool:
        """Whether structures may break it at a price."""
        return self.penalty < inf

    @property
    def decides(self) -> int | None:
        """0 or 1 if the constraint does no more than forbid all of its parts, or require its only one; else None."""
        if self.soft or not self.terms:
            return None
        if self.sense != ">=" and self.bound == 0 and all(c > 0 for c, _, _ in self.terms):
            return 0
        alone = len(self.terms) == 1 and self.terms[0][0] == 1.0
        return 1 if alone and self.sense == ">=" and self.bound == 1 else None

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        terms = [[c, view, list(index)] for c, view, index in self.terms]
        data = {"name": self.name, "sense": self.sense, "bound": self.bound, "terms": terms}
        return data | ({"penalty": self.penalty} if self.soft else {})

    @classmethod
    def from_json(cls, data: Any) -> "Constraint":
        """Read what ``to_json`` wrote; InvalidInput for anything else."""
        given = Field.of(data, "constraint")
        terms = []
        for term in given["terms"].items():
            c, view, index = term.items(size=3)
            terms.append((c.number(), view.text(), tuple(index.wholes(0, MOST).tolist())))
        sense: Any = given["sense"].one_of(SENSES)
        penalty = given["penalty"].number() if "penalty" in given else inf
        return replace(linear(terms, sense, given["bound"].number(), penalty=penalty), name=given["name"].text())


def linear(
    terms: Iterable[tuple[float, str, Sequence[int]]], sense: Sense, bound: float, *, penalty: float = inf
) -> Constraint:
    """Any linear row: terms are (coefficient, view, index).

    With a ``penalty``, of this and of all other constraints, a structure may break it, and scores that much less for
    each unit: for each part too many, or too few.
    """
    one_of("sense", sense, SENSES)
    checked = tuple((_number("coefficient", c), _word(view), _index(index)) for c, view, index in terms)
    first = " + ".join(f"{c:g} {view}{list(index)}" for c, view, index in checked[:4])
    more = " + ..." if len(checked) > 4 else ""
    bound, price = _number("bound", bound), as_float(penalty)
    if not price >= 0:
        raise InvalidInput(f"penalty is {shown(penalty)}; expected a number of at least 0, or inf for no exceptions.")
    return Constraint(checked, sense, bound, f"{first or '0'}{more} {sense} {bound:g}", penalty=price)


def at_most(k: int, view: str, parts: Iterable[Sequence[int]], *, penalty: float = inf) -> Constraint:
    """At most k of the parts."""
    return _counted("at_most", "<=", k, view, parts, penalty)


def at_least(k: int, view: str, parts: Iterable[Sequence[int]], *, penalty: float = inf) -> Constraint:
    """At least k of the parts."""
    return _counted("at_least", ">=", k, view, parts, penalty)


def exactly(k: int, view: str, parts: Iterable[Sequence[int]], *, penalty: float = inf) -> Constraint:
    """Exactly k of the parts."""
    return _counted("exactly", "==", k, view, parts, penalty)


def at_most_one(view: str, parts: Iterable[Sequence[int]], *, penalty: float = inf) -> Constraint:
    """At most one of the parts."""
    made = at_most(1, view, parts, penalty=penalty)
    return made.named(made.name.replace("at_most(1, ", "at_most_one("))


def implies(a: Part, b: Part, *, penalty: float = inf) -> Constraint:
    """If part a is used, so is part b; parts are (view, index)."""
    made = linear([(1.0, *a), (-1.0, *b)], "<=", 0.0, penalty=penalty)
    (_, view_a, index_a), (_, view_b, index_b) = made.terms
    return made.named(f"implies({view_a}{list(index_a)}, {view_b}{list(index_b)})")


def forbid(view: str, part: Sequence[int], *, penalty: float = inf) -> Constraint:
    """The part is not used."""
    made = linear([(1.0, view, part)], "<=", 0.0, penalty=penalty)
    return made.named(f"forbid({view}{list(made.terms[0][2])})")


def require(view: str, part: Sequence[int], *, penalty: float = inf) -> Constraint:
    """The part is used."""
    made = linear([(1.0, view, part)], ">=", 1.0, penalty=penalty)
    return made.named(f"require({view}{list(made.terms[0][2])})")


def budget(view: str, costs: ArrayLike, limit: float, *, penalty: float = inf) -> Constraint:
    """The costs of the parts used, given as an array in the shape of the view, add up to at most the limit."""
    array = as_scores("costs", costs)
    if not np.isfinite(array).all():
        raise InvalidInput("costs are finite numbers; use forbid(view, part) for a part that must not be used.")
    cells = [tuple(int(k) for k in index) for index in np.argwhere(array)]
    made = linear([(float(array[index]), view, index) for index in cells], "<=", limit, penalty=penalty)
    return replace(made, name=f"budget({view}, {len(cells)} costs, {made.bound:g})", shape=array.shape)


def _counted(word: str, sense: Sense, k: int, view: str, parts: Iterable[Sequence[int]], penalty: float) -> Constraint:
    as_int("k", k, 0)
    made = linear(
        [(1.0, view, part) for part in as_members("parts", parts, "a list of parts of the view")],
        sense,
        float(k),
        penalty=penalty,
    )
    if len(set(made.terms)) != len(made.terms):
        raise InvalidInput(f"{word}: a part is listed twice.")
    listed = ", ".join(str(list(index)) for _, _, index in made.terms[:4]) + (", ..." if len(made.terms) > 4 else "")
    return made.named(f"{word}({k}, {view}: {listed})")


def _number(name: str, value: Any) -> float:
    number = as_float(value)
    if not isfinite(number):
        raise InvalidInput(f"{name} is {shown(value)}; expected a finite number.")
    return number


def _word(view: Any) -> str:
    if not isinstance(view, str):
        raise InvalidInput(f"view is {view!r}; expected the name of a view.")
    return view


def _index(index: Any) -> Index:
    try:
        cell = tuple(index)
    except TypeError:
        raise InvalidInput(f"part is {index!r}; expected the index of a cell, such as (4, 1).") from None
    if not all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in cell):
        raise InvalidInput(f"part is {index!r}; expected whole numbers.")
    return tuple(int(k) for k in cell)
