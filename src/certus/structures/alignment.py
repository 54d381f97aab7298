"""Monotone alignment of two sequences, each step scored where it is taken."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Ints
from certus.draw import Picture, alignment
from certus.errors import InvalidInput
from certus.problem import named_words
from certus.structures.layout import Layout, edges, layout_of
from certus.structures.program import CellProgram, as_array, as_rows

STEPS = ((1, 1), (1, 0), (0, 1))  # what each operation advances by


class Alignment(CellProgram):
    """The best monotone alignment of a sequence of n with one of m: edit distance with a score for every cell.

    An alignment is a path from (0, 0) to (n, m) in three kinds of steps: operation 0 advances on both sides, 1 on the
    first alone, 2 on the second alone. It scores the sum of score[i, j, op] over the places (i, j) from which a step is
    taken and its operation: score[i, j, 0] pairs items i and j, score[i, j, 1] leaves item i unpaired before item j,
    and score[i, j, 2] item j before item i.

    Exact, in O(n m). Every question has an answer. Certificate kind: "dynamic program".

    Parameters
    ----------
    score : array_like of shape (n + 1, m + 1, 3)
        ``-inf`` forbids a step; steps that would leave the table are not read.

    Notes
    -----
    Structures are tuples of (i, j, op), in order. The one view is "steps", in the shape of ``score``.

    Examples
    --------
    >>> score = np.zeros((3, 2, 3))
    >>> score[1, 0, 0] = 1.0
    >>> Alignment(score).decode().structure
    ((0, 0, 1), (1, 0, 0))
    """

    name = "alignment"
    view = "steps"
    names = ("score",)

    def __init__(self, score: ArrayLike) -> None:
        first = as_array("score", score, (None, None, len(STEPS)))
        if not first.size:
            raise InvalidInput(f"score has shape {first.shape}; expected (items + 1, items + 1, 3).")
        self.n, self.m = first.shape[0] - 1, first.shape[1] - 1
        super().__init__({"score": first}, _layout(self.n, self.m))

    def __repr__(self) -> str:
        return f"Alignment({self.n} by {self.m})"

    def picture(self, structure: Any, words: Sequence[str] | None = None) -> Picture:
        """The items above each other, with a link for each pair; ``words`` are those of the first sequence."""
        links = [(int(i), int(j)) for i, j, step in structure if STEPS[step] == (1, 1)]
        return alignment(named_words(words, self.n), named_words(None, self.m), links)

    def parts_of(self, structure: Any) -> Ints:
        rows = as_rows(structure, 3, "(item of the first, item of the second, operation)")
        at = (0, 0)
        for k, (i, j, op) in enumerate(rows.tolist()):
            if (i, j) != at or not 0 <= op < len(STEPS):
                raise InvalidInput(
                    f"structure[{k}] is {(i, j, op)}; expected a step from {at}, by operation 0, 1 or 2."
                )
            at = (i + STEPS[op][0], j + STEPS[op][1])
            if at[0] > self.n or at[1] > self.m:
                raise InvalidInput(f"structure[{k}] is {(i, j, op)}, which leads out of {self.n} by {self.m} items.")
        if at != (self.n, self.m):
            raise InvalidInput(f"the steps lead to {at}; expected them to end in {(self.n, self.m)}.")
        cells: Ints = (rows[:, 0] * (self.m + 1) + rows[:, 1]) * len(STEPS) + rows[:, 2]
        return cells

    def rows(self, cells: Ints) -> Ints:
        return np.stack(np.unravel_index(np.sort(cells), self.shape), axis=1)


@lru_cache(maxsize=64)
def _layout(n: int, m: int) -> Layout:
    """A vertex for each place, row by row."""
    blocks = [edges(np.zeros(1, dtype=np.int64))]
    for op, (down, right) in enumerate(STEPS):
        place = np.arange(n + 1 - down)[:, None] * (m + 1) + np.arange(m + 1 - right)
        blocks.append(edges(place + down * (m + 1) + right, (place,), (place * len(STEPS) + op,)))
    size = (n + 1) * (m + 1) * len(STEPS)
    return layout_of((n + 1) * (m + 1), blocks, size, size, n + m)
