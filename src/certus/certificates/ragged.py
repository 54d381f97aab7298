"""Rows of various lengths, laid end to end: row k of ``flat`` is flat[ptr[k] : ptr[k + 1]]."""

import numpy as np
from numpy.typing import NDArray

from certus.checks import Ints


def offsets(sizes: Ints) -> Ints:
    """ptr of rows of these sizes."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64, copy=False)


def ragged(sizes: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """For rows of these sizes: the row of each entry, and its place in the row."""
    row = np.repeat(np.arange(len(sizes)), sizes)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def ranges(first: NDArray[np.integer], last: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """(k, x) for every x of the k-th range, first[k] .. last[k] - 1."""
    row, place = ragged((last - first).astype(np.int64))
    return row, first[row] + place


def flat(table: Ints) -> tuple[Ints, Ints]:
    """ptr and flat of the rows of a table, without the -1."""
    present = table >= 0
    return offsets(present.sum(axis=1)), table[present]


def table(ptr: Ints, entries: Ints) -> Ints:
    """The rows as a table, -1 where they have no entry."""
    row, place = ragged(np.diff(ptr))
    out = np.full((len(ptr) - 1, int(np.diff(ptr).max(initial=0))), -1, dtype=np.int64)
    out[row, place] = entries
    return out
