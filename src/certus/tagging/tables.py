"""Tables of bigram and trigram scores: their shapes, their checks, and how a kernel reads them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus.checks import Floats, as_numbers, as_scores
from certus.errors import InvalidInput


@dataclass(frozen=True)
class Table:
    """Scores of pairs (order 2) or triples (order 3) of tags, checked.

    ``scores`` has ``order`` axes of length ``side`` after a leading axis for positions if there is one, and before
    that one for the items of a batch. ``side`` is T, or T + 1 when the boundary tag T is scored too.
    """

    order: int
    scores: Floats
    side: int
    boundary: bool
    step: int  # cells from one position to the next, 0 when all positions share the scores
    item: int  # cells from one item of a batch to the next, 0 when all items share the scores

    @cached_property
    def powers(self) -> tuple[Floats, float]:
        """exp(score - peak) in one row, and the peak, the largest score: what the kernels that sum need."""
        peak = max(float(self.scores.max(initial=-np.inf)), -np.finfo(np.float64).max)  # finite if all is forbidden
        return np.exp(self.scores.reshape(-1) - peak), peak

    def scored(self, i: int, n: int) -> bool:
        """Whether the tags that end at position i of a sequence of n tags are scored."""
        first, last = self.scored_from_to(n)
        return first <= i < last

    def scored_from_to(self, n: int) -> tuple[int, int]:
        """The positions of a sequence of n tags at which scored tags end: from the first to before the last."""
        return (0, n + 1) if self.boundary else (self.order - 1, max(n, self.order - 1))

    def at_least(self, least: float, n: int) -> "Table":
        """The table of a sequence of n tags with scores below ``least``, and those never read, as -inf."""
        read = np.zeros(self.scores.shape, dtype=bool)
        for i in range(*self.scored_from_to(n)):
            places = range(i - self.order + 1, i + 1)
            ends = [slice(0, self.side - self.boundary) if 0 <= k < n else slice(self.side - 1, None) for k in places]
            read[(i, *ends) if self.step else (*ends,)] = True
        return replace(self, scores=np.where(read & (self.scores >= least), self.scores, -np.inf))

    def by_position(self, n: int) -> Iterator[tuple[tuple[int, ...], Floats]]:
        """For each place where a sequence of n tags is scored: the positions there, and scores of their tags."""
        for i in range(*self.scored_from_to(n)):
            places = range(i - self.order + 1, i + 1)
            inner = slice(0, self.side - self.boundary)
            scores = self.at(i)[tuple(inner if 0 <= k < n else self.side - 1 for k in places)]
            yield tuple(k for k in places if 0 <= k < n), scores

    def at(self, i: int) -> Floats:
        """Scores of the tags that end at position i."""
        scores: Floats = self.scores[i] if self.step else self.scores
        return scores


def as_table(
    name: str, order: int, values: ArrayLike, n: int, size: int, lengths: NDArray[np.int64], *, batch: bool
) -> Table:
    """Check a table for sequences of up to n tags out of ``size``; of a batch, or of one sequence.

    ``lengths`` has the length of each sequence: rows of per-position scores that no pair or triple of tags ends at are
    not read, whatever they hold.
    """
    array = as_numbers(name, values)
    side = array.shape[-1] if array.ndim else 0
    boundary = side == size + 1
    shared = (side,) * order
    rows = n + boundary
    positions = (len(lengths), rows, *shared) if batch else (rows, *shared)
    if side not in (size, size + 1) or array.shape not in (shared, positions):
        item = f"{len(lengths)}, " if batch else ""
        plain, bounded = ", ".join([str(size)] * order), ", ".join([str(size + 1)] * order)
        raise InvalidInput(
            f"{name} has shape {array.shape}; for {n} positions and {size} tags expected ({plain}) or "
            f"({item}{n}, {plain}), or with a boundary tag ({bounded}) or ({item}{n + 1}, {bounded})."
        )
    per_position = array.shape != shared
    if per_position and np.issubdtype(array.dtype, np.floating):
        row, length = np.arange(rows), lengths[:, None]
        unread = row > length if boundary else (row < order - 1) | (row >= length)
        if unread.any():
            array = array.copy()
            array[unread if batch else unread[0]] = 0.0
    scores = writeable(as_scores(name, array))
    cells = side**order
    return Table(
        order=order,
        scores=scores,
        side=side,
        boundary=boundary,
        step=cells if per_position else 0,
        item=cells * rows if per_position and batch else 0,
    )


def writeable(scores: Floats) -> Floats:
    """The array, or a copy if it is read-only: to the compiler the two are different types, compiled twice."""
    return scores if scores.flags.writeable else scores.copy()


_NONE = np.empty(0)  # cells of a table that is not there


def flattened(bigram: Table | None, trigram: Table | None, *, powers: bool = False) -> Any:
    """The tables as certus.kernels.tagging reads them; with their powers, which sums need, if asked for."""
    highest = bigram if trigram is None else trigram
    power = highest.powers if powers and highest is not None else (_NONE, 0.0)
    return (2 if trigram is None else 3, _flat(bigram), _flat(trigram), *power)


def _flat(table: Table | None) -> tuple[Floats, int, int, int]:
    return (_NONE, 0, 0, 0) if table is None else (table.scores.reshape(-1), table.item, table.step, table.side)


def work(unary: Floats, order: int, *, sums: bool) -> float:
    """About how many steps a kernel takes for unary scores (B, N, T) and tables; a sum of exponentials is ten."""
    return (10.0 if sums else 1.0) * unary.size * float(unary.shape[-1]) ** (order - 1)


def as_names(tags: object, size: int) -> tuple[str, ...] | None:
    """Check names of tags: distinct strings, as many as there are tags."""
    if tags is None:
        return None
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidInput(f"tags is {tags!r}; expected a sequence of {size} names.")
    names = tuple(tags)
    if len(names) != size or not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"tags has {len(names)} names; expected {size} strings, one for each column of unary.")
    if len(set(names)) < size:
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"tags names {twice!r} twice; each tag needs a name of its own.")
    return names
