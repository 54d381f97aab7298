"""Assignment: a best matching of rows and columns, proved by prices of the columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.rounding import Extent, rounded_up
from certus.checks import Bools, Floats, Ints, as_penalties, as_scores
from certus.draw import Picture, alignment
from certus.errors import Infeasible, InvalidInput
from certus.factors.choices import Choices
from certus.lazy import once
from certus.problem import Index, Limits, Penalties, Problem, named_words
from certus.relax.branch import Start, climb
from certus.relax.system import Entries, Relaxation, Rows
from certus.result import Result, Solution
from certus.schema import Field
from certus.serialize import floats_to_json


class Assignment(Problem[Ints]):
    r"""The best matching: each row has at most one column, and each column at most one row.

    Solves  max over matchings of the sum of score[i, j] over the pairs (i, j),  in O(n^2 (n + m)) time. Certificate
    kind: "dual". The witness is a price for each column, at which what rows would choose freely is no better. Sums over
    all matchings are permanents, which are #P-hard: they are bounded and estimated.

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
        columns = best_columns(self.scores, self._free.must)
        start = Start((columns,), -prices(self.scores, columns))
        return climb(self, self.relaxation(), limits, start)

    def picture(self, structure: Ints, words: Sequence[str] | None = None) -> Picture:
        """Rows above, columns below, with a link for each pair; ``words`` are those of the rows."""
        rows, columns = self.scores.shape
        links = [(i, int(j)) for i, j in enumerate(structure) if j >= 0]
        return alignment(named_words(words, rows), named_words(None, columns), links, title="Assignment")

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        score = self.scores + as_penalties(penalties).get("matches", 0.0)
        columns = best_columns(score, self._free.must)
        rows = np.flatnonzero(columns >= 0)
        return Solution(columns, float(score[rows, columns[rows]].sum()))

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


def best_columns(score: Floats, must: Bools) -> Ints:
    """The column of each row in a best matching, -1 for none. Infeasible if some row must have one, and cannot."""
    from scipy.optimize import linear_sum_assignment

    n, m = score.shape
    nothing = np.where(np.eye(n, dtype=bool) & ~must[:, None], 0.0, -np.inf)
    try:
        rows, columns = linear_sum_assignment(np.hstack((score, nothing)), maximize=True)
    except ValueError:
        raise Infeasible("some rows must have a column, and not all of them can. Allow more pairs.") from None
    out = np.full(n, -1, dtype=np.int64)
    out[rows] = np.where(columns < m, columns, -1)
    return out


def prices(score: Floats, columns: Ints) -> Floats:
    """The least prices of columns at which no row of a best matching would rather have another column, or one at all.

    Rows raise each other's prices along alternating paths, so as many rounds as there are rows are enough.
    """
    m = score.shape[1]
    price = np.zeros(m)
    matched, alone = np.flatnonzero(columns >= 0), columns < 0
    price = np.maximum(price, score[alone].max(axis=0, initial=-np.inf)) if alone.any() else price
    own = score[matched, columns[matched]]
    for _ in range(len(matched)):
        worth = own - price[columns[matched]]
        raised = np.maximum(price, (score[matched] - worth[:, None]).max(axis=0, initial=-np.inf))
        if (raised == price).all():
            break
        price = raised
    return price
