"""Assignment: a best matching of rows and columns, proved by prices of the columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus import kernels
from certus.certificates.rounding import WIDTH, Extent, allowed, of_sum, overflow, rounded_up, total
from certus.certificates.sound import floored, measured, sound_list
from certus.checks import OBJECT, Bools, Floats, Ints, as_penalties, as_positive_int, as_scores, as_wanted
from certus.draw import Picture, alignment
from certus.errors import Infeasible, InvalidInput, LimitReached
from certus.factors.choices import Choices
from certus.lazy import once
from certus.problem import Index, Limits, Penalties, Problem, named_words, relaxed_answer
from certus.relax.branch import Start, climb
from certus.relax.proof import Fix, Later, Leaf, Proof, Removed, Split
from certus.relax.system import Entries, Relaxation, Rows
from certus.result import Result, Solution, certified, with_proof_of
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.threads import long_call

if TYPE_CHECKING:
    from certus.kernels.assignment import Matchings
    from certus.kernels.assignment_ranks import Ranks

FEW = 32.0  # errors of a sum of scores: a rank whose bound may be off by more is looked for by relaxation


class Assignment(Problem[Ints]):
    r"""The best matching: each row has at most one column, and each column at most one row.

    Solves  max over matchings of the sum of score[i, j] over the pairs (i, j),  in O(n m min(n, m)) time, by bids and
    shortest augmenting paths ([JonkerVolgenant87]_). Certificate kind: "dual". The witness is a price for each column,
    at which what rows would choose freely is no better; where rounding leaves that open, the relaxation by prices is
    branched on. ``kbest`` and ``max_marginals`` go on from there, by as many steps for each rank, and for all pairs.
    Sums over all matchings are permanents, which are #P-hard: they are bounded and estimated.

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
        best = self._best()
        if best.certificate.exact:
            return best
        return climb(self, self.relaxation(), limits, Start((best.structure,), best.certificate.duals["columns"]))

    def _best(self) -> Result[Ints]:
        """The best matching, with prices, which may leave open that it is."""
        found = self._matched(self.scores)
        columns, duals = found.column[0], -found.price[0]
        used, bound = found.used[0, columns >= 0].tolist(), float(found.bound[0])
        (error,) = errors_of(np.array([len(columns)]), found).tolist()
        proof = certified(lambda: used, total(used), bound, error, kind="dual", duals={"columns": duals})
        return Result(columns, proof.score, proof)

    def _matched(self, score: Floats) -> "Matchings":
        """The best matching at these scores, as kernels have it; Infeasible if there is none."""
        n, m = score.shape
        found = room_for(1, n, m)
        item = (np.ascontiguousarray(score)[None], np.array([n]), np.array([m]), self._free.must[None])
        long_call(steps_of(1, n, m), kernels.assignment.best_matchings, *item, found)
        if found.bound[0] == -np.inf:
            raise Infeasible("some rows must have a column, and not all of them can. Allow more pairs.")
        return found

    # -- ranks and pairs -------------------------------------------------------------------------------------------

    @sound_list
    def kbest(self, k: int) -> list[Result[Ints]]:
        """The k best matchings, best first; fewer when there are fewer. O(n m min(n, m)) for each.

        Each is the best of a part of the matchings, which then falls into smaller parts ([Murty68]_). Certificate kind
        of all but the first: "branch and bound", with prices for each part. Of matchings that score the same the one
        that was found first comes first. Where rounding leaves too much open, the relaxation is searched.
        """
        k, best = as_positive_int("k", k), self._best()
        if best.certificate.exact:
            if k == 1:
                return [best]
            listed = self._ranked(k, best)
            if listed is not None:
                return listed
        found: list[Result[Ints]] = relaxed_answer("kbest")(self, k)
        return found

    def _ranked(self, k: int, best: Result[Ints]) -> list[Result[Ints]] | None:
        """The k best matchings, the best of all being known; None where rounding leaves too much open."""
        (n, m), must = self.scores.shape, self._free.must
        most = as_wanted(min(k, _count(n, m)), 2 * (n + m) + OBJECT)
        columns, starts, parents = (np.empty(shape, dtype=np.int64) for shape in ((most, n), most, most))
        ranks = kernels.assignment_ranks.Ranks(columns, np.empty((most, m)), starts, parents, np.empty(3))
        ranks.column[0], ranks.price[0] = best.structure, -best.certificate.duals["columns"]
        score, terms = np.ascontiguousarray(self.scores), 2 * n + min(n, m) + 2
        asked = (score, must, of_sum(terms, 1.0 / terms), ranks)
        count = long_call(k * steps_of(1, n, m), kernels.assignment_ranks.rank_matchings, *asked)
        left, reach, lost = ranks.left.tolist()
        used = [self._free.terms(own) for own in columns[:count]]
        scores = [total(own) for own in used]
        order = sorted(range(count), key=lambda rank: -scores[rank])  # rounding may have turned some round
        least, lowest = self.error(), scores[order[-1]]
        if not max(left, reach) - lowest <= FEW * least:
            return None
        witness = Later(partial(_partition, score, must, ranks, count))
        first = replace(best, structure=ranks.column[order[0]].copy(), score=scores[order[0]])
        out = [best if order[0] == 0 else with_proof_of(first, best, used[order[0]])]
        for rank, at in enumerate(order[1:], start=2):
            value, bound = scores[at], max(scores[at], left)
            room = min(FEW * least, allowed(used[at]) / WIDTH)  # a check has some of its own to round
            error = max(reach - bound, of_sum(1, abs(value)), lost, room)
            if not used[at] and max([reach, *(scores[other] for other in order[rank:])]) + lost < 0.0:
                error = 0.0  # nothing is rounded where nothing is added up
            proof = certified(partial(used.__getitem__, at), value, bound, error, kind="branch and bound", rank=rank)
            out.append(Result(ranks.column[at].copy(), value, replace(proof, witness=witness)))
        return out

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        """For each pair the best score of a matching that has it; -inf for pairs that none has. O(n^2 m).

        By best paths between all columns at the prices of the best matching; where rounding leaves that open, pair by
        pair through the relaxation, as of other problems (``Problem.max_marginals``).
        """
        if penalties is not None:
            score = self.scores + as_penalties(penalties).get("matches", 0.0)
            found = self._matched(score)
            if found.bound[0] == inf:
                raise overflow()
            return {"matches": self._with_each(score, found.column[0], found.price[0])[0]}
        lower, upper = floored(self, Assignment._best_with_each)
        if not np.array_equal(lower["matches"], upper["matches"]):
            raise LimitReached("no proof was found for some of 'matches'; ask for max_marginal_bounds().")
        return lower

    def _best_with_each(self) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Bounds on max-marginals, lower and upper."""
        best = self._best()
        if best.certificate.exact:
            values, fine = self._with_each(self.scores, best.structure, -best.certificate.duals["columns"])
            if fine:
                return {"matches": values}, {"matches": values.copy()}
        lower, upper = relaxed_answer("max_marginal_bounds")(self)
        return lower, upper

    def _with_each(self, score: Floats, columns: Ints, price: Floats) -> tuple[Floats, bool]:
        """The best score with each pair, given the best matching; and whether rounding led nowhere."""
        out, must = np.empty(score.shape), self._free.must
        asked = (np.ascontiguousarray(score), must, columns, price, out)
        n, m = score.shape
        fine: bool = long_call(float(n * n * m), kernels.assignment_ranks.best_with_each, *asked)
        return out, fine

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


def _count(n: int, m: int) -> int:
    """How many matchings there are, if they are few."""
    n, m, most, found = min(n, m), max(n, m), 1 << 40, 1
    of_size = 1
    for size in range(min(n, 40)):
        of_size = of_size * (n - size) * (m - size) // (size + 1)
        found += of_size
        if found > most:
            return most
    return found


def _partition(score: Floats, must: Bools, ranks: "Ranks", count: int) -> Proof:
    """The parts into which ranks cut the matchings, as a proof tree with prices for each part.

    From the last row to the first: ``trees[at]`` is about the matchings that have what rank ``at`` has in all rows
    before. What they have in the row is one thing after the other, that of each rank whose part was cut there, and then
    the rest. To have no column is no part of the problem: what else there is is shown to be too low, and left out.
    """
    n, m = score.shape
    below = {(int(ranks.parent[at]), int(ranks.first[at])): at for at in range(1, count)}
    cut = count - (count == len(ranks.first))  # of so many ranks the parts were cut; that of a last one need not be
    if cut < 1:
        return Leaf({"columns": -ranks.price[0]})
    prices = np.zeros((cut, n, m))
    room = (2.0 * n + 1.0) * float(np.abs(score[score > -inf]).max(initial=0.0))
    for at in range(cut):
        kernels.assignment_ranks.cell_prices(score, must, ranks, at, room, prices[at])
    trees: list[Proof] = [Leaf({"columns": -ranks.price[at]}) for at in range(cut)]
    for row in reversed(range(n)):
        after, trees = trees, list(trees)
        for head in range(cut):
            if ranks.first[head] >= row and (head, row) != (0, 0):
                continue
            chain = [head]
            while (following := below.get((chain[-1], row), cut)) < cut:
                chain.append(following)
            last = below.get((chain[-1], row))
            rest = Leaf({"columns": -(prices[chain[-1], row] if last is None else ranks.price[last])})
            trees[head] = _one_by_one(row, m, [(int(ranks.column[at, row]), after[at]) for at in chain], rest)
    return trees[0]


def _one_by_one(row: int, m: int, cases: list[tuple[int, Proof]], rest: Leaf) -> Proof:
    """A row has one of some columns, or none, with a proof for each, or something else, with ``rest`` as the proof."""
    tree: Proof = rest
    named = {column for column, _ in cases}
    for column, proof in cases:
        if column < 0:
            others = tuple(row * m + j for j in range(m) if j not in named)
            tree = Fix(rest.multipliers, (Removed("matches", others),), proof)
    for column, proof in reversed(cases):
        if column >= 0:
            tree = Split("matches", row * m + column, tree, proof)
    return tree
