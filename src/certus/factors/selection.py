"""Sets of items under linear rows: the knapsack and set cover, by a price for each row, then branch and bound."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, pairwise, product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.rounding import OVERFLOW, Extent, rounded_up
from certus.checks import Bools, Floats, Ints, as_int, as_members, as_numbers, as_scores, check_memory, shown
from certus.errors import InvalidInput
from certus.factors.choices import Choices
from certus.problem import Index, Penalties, Problem
from certus.relax.system import Entries, Relaxation, Rows, row_slack
from certus.result import Solution
from certus.schema import MOST, Field
from certus.serialize import floats_to_json

Items = tuple[int, ...]


class Selection(Problem[Items]):
    """The best set of items with  weights x <= limits,  x being 1 for the items of the set and 0 for others.

    A structure is the tuple of the items chosen, in order. The one view says which these are.
    """

    view: ClassVar[str]
    hard_sums: ClassVar[str] = (
        "counting the sets that satisfy rows is #P-hard; log_partition_bounds() and marginal_estimates() are answered"
    )

    def __init__(self, score: Floats, weights: Floats, limits: Floats) -> None:
        with np.errstate(over="ignore"):
            largest = float((np.abs(weights).sum(axis=1) + np.abs(limits)).max(initial=0.0))
        if not largest < OVERFLOW:
            raise InvalidInput(f"a row of {self.view} adds up to {largest:.3g}; divide it and its limit by one number.")
        self.item_score, self.weights, self.limits = score, weights, limits
        self._must = np.zeros(len(score), dtype=bool)

    @abstractmethod
    def _with(self, score: Floats) -> Self:
        """The same rows with other scores."""

    @abstractmethod
    def _repaired(self, chosen: Bools) -> Bools:
        """A set that satisfies the rows, or all but some of them, and is much like the one given."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.item_score)} {self.view}, {len(self.limits)} rows)"

    @property
    def views(self) -> Mapping[str, Index]:
        return {self.view: self.item_score.shape}

    def _checked(self, structure: Any) -> Items:
        items, n = as_members("structure", structure, f"the {self.view} chosen"), len(self.item_score)
        whole = all(isinstance(k, int | np.integer) and not isinstance(k, bool) and 0 <= k < n for k in items)
        if not whole or any(a >= b for a, b in pairwise(items)):
            raise InvalidInput(f"structure is {items[:8]}; expected different {self.view} of 0..{n - 1}, in order.")
        return tuple(int(k) for k in items)

    def terms(self, structure: Items) -> list[float]:
        items = list(self._checked(structure))
        chosen = np.zeros(len(self.item_score), dtype=bool)
        chosen[items] = True
        allowed = self._fits(chosen) and not (self._must & ~chosen).any()
        return self.item_score[items].tolist() if allowed else [-np.inf]

    def _fits(self, chosen: Bools) -> bool:
        """Whether a set satisfies the rows, but for the rounding of weights that are not whole."""
        return bool((self.weights @ chosen <= self.limits + self._slack).all())

    @cached_property
    def _slack(self) -> Floats:
        whole = (self.weights % 1 == 0).all(axis=1) & (self.limits % 1 == 0)
        slack: Floats = np.where(whole, 0.0, row_slack(np.abs(self.weights).sum(axis=1), np.abs(self.limits)))
        return slack

    def indicator(self, structure: Items, view: str) -> Floats:
        used = np.zeros(self.checked_view(view))
        used[list(self._checked(structure))] = 1.0
        return used

    def all_structures(self) -> Iterator[Items]:
        for chosen in product((False, True), repeat=len(self.item_score)):
            items = tuple(compress(range(len(chosen)), chosen))
            if self.terms(items) != [-np.inf]:
                yield items

    def extent(self) -> Extent:
        return self._free.extent()

    def all_scores(self) -> tuple[Floats]:
        return (self.item_score,)

    def _again(self, score: Floats, must: Bools) -> Self:
        new = self._with(score)
        new._must = must
        return new

    def without_scores_below(self, least: float) -> Self:
        return self._again(np.where(self.item_score < least, -np.inf, self.item_score), self._must)

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._again(rounded_up(self.item_score, step), self._must)

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        self.checked_part(view, index, value)
        score, must = self.item_score.copy(), self._must.copy()
        if value:
            must[index] = True
        else:
            score[index] = -np.inf
        return self._again(score, must)

    # -- decoding --------------------------------------------------------------------------------------------------

    @cached_property
    def _free(self) -> Choices:
        return Choices(self.item_score[:, None], self.view, self.item_score.shape, self._must)

    def relaxation(self) -> Relaxation:
        """Items chosen freely, and a price for each row."""
        row, item = np.nonzero(self.weights)
        entries = (Entries((0, self.view), row, item, self.weights[row, item]),)
        rows = Rows("rows", entries, self.limits, False, self.limits.shape)
        return Relaxation(
            (self._free,), (1.0,), {self.view: ((0, self.view),)}, (rows,), self._assembled, self._leaves, led=True
        )

    def _assembled(self, leaves: Sequence[Ints]) -> Items:
        chosen = leaves[0] >= 0
        if not self._fits(chosen):
            chosen = self._repaired(chosen)
        return tuple(np.flatnonzero(chosen).tolist())

    def _leaves(self, structure: Items) -> tuple[Ints]:
        columns = np.full(len(self.item_score), -1, dtype=np.int64)
        columns[list(structure)] = 0
        return (columns,)

    def solve(self, penalties: Penalties | None = None) -> Solution[Items]:
        return self.as_relaxed().solve(penalties)

    # -- travel ----------------------------------------------------------------------------------------------------

    def structure_to_json(self, structure: Items) -> list[int]:
        return list(self._checked(structure))

    def structure_from_json(self, data: Any) -> Items:
        return self._checked(Field.of(data, "structure").wholes(0, MOST).tolist())

    def _state(self) -> dict[str, Any]:
        return {"score": floats_to_json(self.item_score), "must": np.flatnonzero(self._must).tolist()}

    def _restored(self, given: Field) -> Self:
        n = len(self.item_score)
        must = np.zeros(n, dtype=bool)
        must[given["must"].wholes(0, n - 1)] = True
        return self._again(given["score"].scores((n,)), must)


class Knapsack(Selection):
    r"""The best set of items within a budget.

    Solves  max over sets of the sum of value[k]  such that the costs add up to at most the budget. NP-hard; decoded by
    a price on cost, which leaves a gap of less than one item, then branch and bound. Certificate kind: "dual" or
    "branch and bound".

    Parameters
    ----------
    value : array_like of shape (n,)
        Finite, or -inf for an item that must not be chosen.
    cost : array_like of shape (n,) or (d, n)
        At least 0 each; with several rows, of several kinds.
    budget : float or array_like of shape (d,)

    Notes
    -----
    A structure is the tuple of items chosen. The view is "items" (n,).

    Examples
    --------
    >>> Knapsack([6, 5, 5], [4, 3, 3], 6).decode().structure
    (1, 2)
    """

    name: ClassVar[str] = "knapsack"
    view: ClassVar[str] = "items"

    def __init__(self, value: ArrayLike, cost: ArrayLike, budget: ArrayLike) -> None:
        score = as_scores("value", value, (None,))
        limits = as_scores("budget", np.atleast_1d(as_numbers("budget", budget)), (None,))
        weights = as_scores("cost", np.atleast_2d(as_numbers("cost", cost)), (len(limits), len(score)))
        if (weights < 0).any() or not np.isfinite(limits).all():
            raise InvalidInput("costs are numbers of at least 0, and the budget is finite.")
        super().__init__(score, weights, limits)

    def _with(self, score: Floats) -> Self:
        return type(self)(score, self.weights, self.limits)

    def _repaired(self, chosen: Bools) -> Bools:
        """The items with the best value for their cost, of those chosen first, then of all."""
        cost = (self.weights / np.maximum(self.limits, 1e-9)[:, None]).sum(axis=0)
        order = np.argsort(-self.item_score / np.maximum(cost, 1e-9), kind="stable")
        kept, left = np.zeros(len(chosen), dtype=bool), self.limits.copy()
        for wanted in (self._must, chosen & (self.item_score > 0), self.item_score > 0):
            for k in order[wanted[order]].tolist():
                if not kept[k] and (self.weights[:, k] <= left).all():
                    kept[k] = True
                    left = left - self.weights[:, k]
        return kept

    def to_json(self) -> dict[str, Any]:
        return self._state() | {"cost": floats_to_json(self.weights), "budget": floats_to_json(self.limits)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        budget, score = given["budget"].numbers((None,)), given["score"].scores((None,))
        cost = given["cost"].numbers((len(budget), len(score)))
        return given.made(lambda: cls(score, cost, budget))._restored(given)


class SetCover(Selection):
    r"""The cheapest sets that together have every element.

    Solves  max over choices of sets of minus the sum of cost[s]  such that every element is in a set that is chosen.
    NP-hard; decoded by a price for each element, then branch and bound. Certificate kind: "dual" or "branch and bound".
    Raises Infeasible where an element is in no set.

    Parameters
    ----------
    cost : array_like of shape (S,)
    sets : sequence of S sequences of int
        The elements of each set.
    elements : int, optional
        How many there are; by default one more than the largest that is named.

    Notes
    -----
    A structure is the tuple of sets chosen. The view is "sets" (S,).

    Examples
    --------
    >>> SetCover([3, 2, 2], [[0, 1, 2], [0, 1], [2]]).decode().structure
    (0,)
    """

    name: ClassVar[str] = "set cover"
    view: ClassVar[str] = "sets"

    def __init__(self, cost: ArrayLike, sets: Sequence[Iterable[int]], elements: int | None = None) -> None:
        score = as_scores("cost", -as_numbers("cost", cost, np.float64), (None,))
        members = [sorted(_elements(k, own)) for k, own in enumerate(as_members("sets", sets, "a list of lists"))]
        if elements is not None:
            as_int("elements", elements, 0)
        count = max((own[-1] + 1 for own in members if own), default=0) if elements is None else elements
        if len(members) != len(score) or any(own and not 0 <= own[0] <= own[-1] < count for own in members):
            raise InvalidInput(f"{len(members)} sets for {len(score)} costs; expected as many, of 0..{count - 1}.")
        check_memory(f"{count} elements of {len(score)} sets", (count, len(score)))
        weights = np.zeros((count, len(score)))
        for k, own in enumerate(members):
            weights[own, k] = -1.0
        super().__init__(score, weights, -np.ones(count))

    def _with(self, score: Floats) -> Self:
        sets = [np.flatnonzero(self.weights[:, k]).tolist() for k in range(len(score))]
        return type(self)(-score, sets, len(self.limits))

    def _repaired(self, chosen: Bools) -> Bools:
        """With the sets that are cheapest for what they add, and without those that are not needed then."""
        has, kept = self.weights < 0, chosen & (self.item_score > -np.inf)
        while not (covered := has[:, kept].any(axis=1)).all():
            adds = has[~covered].sum(axis=0)
            if not (adds * (self.item_score > -np.inf)).any():
                return kept
            worth = np.where(adds > 0, self.item_score / np.maximum(adds, 1), -np.inf)
            kept[int(np.argmax(worth))] = True
        for k in np.argsort(self.item_score, kind="stable").tolist():  # the dearest first
            others = kept & (np.arange(len(kept)) != k)
            if kept[k] and not self._must[k] and self.item_score[k] <= 0 and has[:, others].any(axis=1).all():
                kept = others
        return kept

    def to_json(self) -> dict[str, Any]:
        sets = [np.flatnonzero(column).tolist() for column in self.weights.T]
        return self._state() | {"sets": sets, "elements": len(self.limits)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        score, elements = given["score"].scores((None,)), given["elements"].whole()
        sets = [own.wholes(0, elements - 1).tolist() for own in given["sets"].items()]
        return given.made(lambda: cls(-score, sets, elements))._restored(given)


def _elements(k: int, own: Any) -> set[int]:
    """The elements of a set, checked."""
    found = as_members(f"sets[{k}]", own, "the numbers of its elements, such as [0, 2]")
    for e in found:
        if isinstance(e, bool) or not isinstance(e, int | np.integer):
            raise InvalidInput(f"sets[{k}] holds {shown(e)}; elements are whole numbers from 0 on.")
    return set(map(int, found))
