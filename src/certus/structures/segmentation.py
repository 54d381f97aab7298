"""Sentences cut into segments with classes: semi-Markov models."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Ints
from certus.draw import Picture, phrases
from certus.errors import InvalidInput
from certus.problem import named_words
from certus.structures.layout import Layout, edges, layout_of
from certus.structures.program import CellProgram, as_array, as_rows


class Segmentation(CellProgram):
    """The best way to cut n words into segments, each of one of C classes: a semi-Markov model.

    A segmentation is segments that follow each other, the first from word 0, the last to word n - 1. It scores

        sum of segment[i, k, c] over segments of class c from word i to word i + k
        +  sum of transition[c, d] over a segment of class c that a segment of class d follows.

    Exact, in O(n K C + n C^2). Every question has an answer. Certificate kind: "dynamic program".

    Parameters
    ----------
    segment : array_like of shape (n, K, C)
        K is the number of words of the longest segment. ``-inf`` forbids a segment; cells of segments that would end
        behind the last word are not read. n may be 0.
    transition : array_like of shape (C, C), optional

    Notes
    -----
    Structures are tuples of (i, j, c): words i .. j - 1 of class c. The one view is "segments", in the shape of
    ``segment``.

    Examples
    --------
    >>> Segmentation([[[0], [5]], [[1], [0]], [[2], [0]]]).decode().structure
    ((0, 2, 0), (2, 3, 0))
    """

    name = "segmentation"
    view = "segments"
    names = ("segment", "transition")

    def __init__(self, segment: ArrayLike, transition: ArrayLike | None = None) -> None:
        first = as_array("segment", segment, (None, None, None))
        n, longest, classes = first.shape
        if not longest or not classes:
            raise InvalidInput(f"segment has shape {first.shape}; expected a length and a class at least.")
        arrays = {"segment": first}
        if transition is not None:
            arrays["transition"] = as_array("transition", transition, (classes, classes))
        super().__init__(arrays, _layout(n, longest, classes, transition is not None))

    def __repr__(self) -> str:
        n, longest, classes = self.shape
        return f"Segmentation({n} words, segments of up to {longest}, {classes} classes)"

    def picture(self, structure: Any, words: Sequence[str] | None = None) -> Picture:
        """The segments below the words, each with the number of its class."""
        cut = [(int(i), int(j), [str(c)]) for i, j, c in structure]
        return phrases(named_words(words, self.views[self.view][0]), cut, title="Segments")

    def parts_of(self, structure: Any) -> Ints:
        rows = as_rows(structure, 3, "(first word, word after the last, class)")
        n, longest, classes = self.shape
        at = 0
        for k, (i, j, c) in enumerate(rows.tolist()):
            if i != at or not i < j <= min(n, i + longest) or not 0 <= c < classes:
                raise InvalidInput(
                    f"structure[{k}] is {(i, j, c)}; expected a segment from word {at}, of up to {longest} of {n} "
                    f"words, and a class 0..{classes - 1}."
                )
            at = j
        if at != n:
            raise InvalidInput(f"the segments end before word {at}; expected them to cover {n} words.")
        first, last, label = rows.T
        cells: Ints = (first * longest + last - first - 1) * classes + label
        if "transition" not in self.arrays:
            return cells
        return np.concatenate((cells, self.layout.cells + label[:-1] * classes + label[1:]))

    def rows(self, cells: Ints) -> Ints:
        first, more, label = np.unravel_index(np.sort(cells), self.shape)
        return np.stack((first, first + more + 1, label), axis=1)


@lru_cache(maxsize=64)
def _layout(n: int, longest: int, classes: int, transition: bool) -> Layout:
    """Vertices: what ends before word j in class c; with transitions also what a segment of class c may follow."""
    cells = n * longest * classes
    every_cell = np.indices((n, longest, classes)).reshape(3, -1)
    i, k, c = every_cell[:, every_cell[0] + every_cell[1] < n]
    part = (i * longest + k) * classes + c
    if not transition:
        start = edges(np.zeros(1, dtype=np.int64))
        return layout_of(n + 1, [start, edges(i + k + 1, (i,), (part,))], cells, cells, n)
    every, word = np.arange(classes), np.arange(1, n)[:, None, None]
    ends, starts = 0, classes  # of the 2 C vertices of each place
    step = 2 * classes
    blocks = [
        edges(starts + every),
        edges(ends + (i + k + 1) * step + c, (starts + i * step + c,), (part,)),
        edges(
            starts + word * step + every,
            (ends + word * step + every[:, None],),
            (cells + every[:, None] * classes + every,),
        ),
        edges(np.array([(n + 1) * step]), (ends + n * step + every,) if n else ()),
    ]
    return layout_of((n + 1) * step + 1, blocks, cells, cells + classes**2, 2 * n, trim=True)
