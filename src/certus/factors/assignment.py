"""Assignment: a best matching of rows and columns, proved by prices of the columns."""

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus import kernels
from certus.certificates.rounding import Extent, of_sum, overflow, rounded_up, total
from certus.checks import Bools, Floats, Ints, as_penalties, as_scores
from certus.draw import Picture, alignment
from certus.errors import Infeasible, InvalidInput
from certus.factors.choices import Choices
from certus.lazy import once
from certus.problem import Index, Limits, Penalties, Problem, named_words
from certus.relax.branch import Start, climb
from certus.relax.system import Entries, Relaxation, Rows
from certus.result import Result, Solution, certified
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.threads import long_call

if TYPE_CHECKING:
    from certus.kernels.assignment import Matchings


class Assignment(Problem[Ints]):
    r"""The best matching: each row has at most one column, and each column at most one row.

    Solves  max over matchings of the sum of score[i, j] over the pairs (i, j),  in O(n m min(n, m)) time, by bids and
    shortest augmenting paths ([JonkerVolgenant87]_). Certificate kind: "dual". The witness is a price for each column,
    at which what rows would choose freely is no better; where rounding leaves that open, the relaxation by prices is
    branched on. Sums over all matchings are permanents, which are #P-hard: they are bounded and estimated.

    Parameters
    ----------
    score : array_like of shape (n, m)
        Finite, or -inf to forbid a pair. Pairs that score less than 0 are never of use: add a constant to all of them,
        larger than any difference, to have as many pairs as there can be.

    Notes
    -----
    A structure has the column of each row, -1 for none. The view is "matches" (n, m).

    Examples
    --------
    >>> Assignment([[5, 4], [4, 1]]).decode().structure.tolist()
    [1, 0]
    """

    name: ClassVar[str] = "assignment"
    hard_sums: ClassVar[str] = (
        "a sum over all matchings is a permanent, which is #P-hard; log_partition_bounds() and marginal_estimates() "
        "are answered"
    )

    def __init__(self, score: ArrayLike) -> None:
        self._free = Choices(as_scores("score", score, (None, None)), "matches", np.shape(score))

    @property
    def scores(self) -> Floats:
        """The scores of all pairs."""
        return self._free.score_of

    def _with(self, score: Floats, must: Bools) -> Self:
        new = type(self)(score)
        new._free = Choices(score, "matches", score.shape, must)
        return new

    def __repr__(self) -> str:
        return "Assignment({} rows, {} columns)".format(*self.scores.shape)

    @property
    def views(self) -> Mapping[str, Index]:
        return self._free.views

    def terms(self, structure: Ints) -> list[float]:
        columns = self._free.checked(structure)
        used = np.bincount(columns[columns >= 0], minlength=1)
        if used.max() > 1:
            raise InvalidInput(f"column {int(used.argmax())} is that of {used.max()} rows; expected at most one.")
        return self._free.terms(columns)

    def indicator(self, structure: Ints, view: str) -> Floats:
        return self._free.indicator(structure, view)

    def all_structures(self) -> Iterator[Ints]:
        for y in self._free.all_structures():
            if np.bincount(y[y >= 0], minlength=1).max() <= 1:
                yield y

    def extent(self) -> Extent:
        return self._free.extent()

    def all_scores(self) -> tuple[Floats]:
        return (self.scores,)

    def without_scores_below(self, least: float) -> Self:
        return self._with(np.where(self.scores < least, -np.inf, self.scores), self._free.must)

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._with(rounded_up(self.scores, step), self._free.must)

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        self.checked_part(view, index, value)
        score, must = self.scores.copy(), self._free.must.copy()
        if value:
            score[index[0]] = -np.inf
            must[index[0]] = True
        score[index] = self.scores[index] if value else -np.inf
        return self._with(score, must)

    # -- decoding --------------------------------------------------------------------------------------------------

    @once
    def relaxation(self) -> Relaxation:
        """Rows that choose freely, and a price for each column."""
        n, m = self.scores.shape
        cell = np.arange(n * m, dtype=np.int64)
        entries = (Entries((0, "matches"), cell % max(m, 1), cell, np.ones(n * m)),)
        rows = Rows("columns", entries, np.ones(m), False, (m,))
        return Relaxation(
            (self._free,), (1.0,), {"matches": ((0, "matches"),)}, (rows,), self._kept, lambda y: (y,), led=True
        )

    def _kept(self, leaves: Any) -> Ints:
        """Of the rows that want the same column, that with the best score keeps it."""
        columns: Ints = leaves[0].copy()
        rows, taken = np.flatnonzero(columns >= 0), set[int]()
        for row in rows[np.argsort(-self.scores[rows, columns[rows]], kind="stable")].tolist():
            if columns[row] in taken:
                columns[row] = -1
            else:
                taken.add(int(columns[row]))
        return columns

    def _decode(self, limits: Limits) -> Result[Ints]:
        found = self._matched(self.scores)
        columns, duals = found.column[0], -found.price[0]
        used, bound = found.used[0, columns >= 0].tolist(), float(found.bound[0])
        (error,) = errors_of(np.array([len(columns)]), found).tolist()
        proof = certified(lambda: used, total(used), bound, error, kind="dual", duals={"columns": duals})
        if proof.exact:
            return Result(columns, proof.score, proof)
        return climb(self, self.relaxation(), limits, Start((columns,), duals))

    def _matched(self, score: Floats) -> "Matchings":
        """The best matching at these scores, as kernels have it; Infeasible if there is none."""
        n, m = score.shape
        found = room_for(1, n, m)
        item = (np.ascontiguousarray(score)[None], np.array([n]), np.array([m]), self._free.must[None])
        long_call(steps_of(1, n, m), kernels.assignment.best_matchings, *item, found)
        if found.bound[0] == -np.inf:
            raise Infeasible("some rows must have a column, and not all of them can. Allow more pairs.")
        return found

    def picture(self, structure: Ints, words: Sequence[str] | None = None) -> Picture:
        """Rows above, columns below, with a link for each pair; ``words`` are those of the rows."""
        rows, columns = self.scores.shape
        links = [(i, int(j)) for i, j in enumerate(structure) if j >= 0]
        return alignment(named_words(words, rows), named_words(None, columns), links, title="Assignment")

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        score = self.scores + as_penalties(penalties).get("matches", 0.0)
        found = self._matched(score)
        if found.bound[0] == np.inf:
            raise overflow()
        return Solution(found.column[0], float(found.used[0].sum()))

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        n, m = self.scores.shape
        must = np.flatnonzero(self._free.must).tolist()
        return {"rows": n, "columns": m, "score": floats_to_json(self.scores), "must": must}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        n, m = given["rows"].whole(), given["columns"].whole()
        must = np.zeros(n, dtype=bool)
        must[given["must"].wholes(0, n - 1)] = True
        return cls(np.zeros((n, m)))._with(given["score"].scores((n, m)), must)

    def structure_to_json(self, structure: Ints) -> list[int]:
        return [int(column) for column in self._free.checked(structure)]

    def structure_from_json(self, data: Any) -> Ints:
        n, m = self.scores.shape
        return Field.of(data, "structure").wholes(-1, m - 1, (n,))


def room_for(items: int, n: int, m: int) -> "Matchings":
    """Arrays for the best matchings of so many items of n rows and m columns."""
    column, used, price = np.empty((items, n), dtype=np.int64), np.empty((items, n)), np.empty((items, m))
    return kernels.assignment.Matchings(column, used, price, np.empty(items), np.empty(items))


def steps_of(items: int, n: int, m: int) -> float:
    """About how many steps their kernel takes."""
    return 0.5 * items * n * m * sqrt(min(n, m))


def errors_of(rows: Ints, found: "Matchings") -> Floats:
    """How far rounding may take the bounds of items of so many rows: sums of prices, and of scores less prices."""
    paid, dearest = np.count_nonzero(found.price, axis=1).tolist(), found.price.max(axis=1, initial=0.0).tolist()
    numbers = zip(paid, dearest, rows.tolist(), found.size.tolist(), strict=True)
    return np.array([of_sum(k, price) + of_sum(2 * n, size) for k, price, n, size in numbers], dtype=np.float64)
