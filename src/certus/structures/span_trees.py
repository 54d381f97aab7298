"""Trees of labelled spans, each span scored by itself: neural constituency parsing."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Ints, as_numbers
from certus.draw import Picture
from certus.errors import InvalidInput, NotSupported
from certus.problem import Index, named_words
from certus.schema import Field
from certus.structures.layout import Edges, Layout, edges, layout_of
from certus.structures.program import CellProgram, as_array, as_rows
from certus.text.tree import Tree

JOINT = "+"  # between the labels of a chain of nodes over the same words


class SpanTrees(CellProgram):
    """The best tree over n words, scored by its spans.

    Without ``empty`` trees are binary: the whole sentence is a span, and each span of two words or more is cut into two
    spans. Every span, single words too, has one of L labels. With ``empty``, the number of the label that is no
    constituent, trees are of any shape: constituents, of which none crosses another, with the whole sentence among
    them; its scores are not read, and what is no constituent scores 0. A tree scores the sum of span[i, j, l] over its
    spans. A chain of constituents over the same words is one label, such as "S+VP".

    Exact, in O(n^3 + n^2 L). Every question has an answer, about trees: no tree is counted twice for the ways to make
    it binary. Certificate kind: "dynamic program".

    Parameters
    ----------
    span : array_like of shape (n + 1, n + 1, L), or (n + 1, n + 1) without labels
        ``span[i, j, l]``: words i .. j - 1 under label l; cells with i >= j are not read. ``-inf`` forbids a span.
    empty : int, optional

    Notes
    -----
    Structures are tuples of (i, j, l), or (i, j) without labels, in the order of the first word, longer spans first.
    The one view is "spans", in the shape of ``span``.

    Examples
    --------
    >>> scores = np.zeros((4, 4))
    >>> scores[1, 3] = 2.0
    >>> SpanTrees(scores).decode().structure
    ((0, 3), (0, 1), (1, 3), (1, 2), (2, 3))
    """

    name = "span trees"
    view = "spans"
    names = ("span",)

    def __init__(self, span: ArrayLike, empty: int | None = None) -> None:
        array = as_numbers("span", span)
        labelled = array.ndim == 3
        first = as_array("span", array, (None, None, None) if labelled else (None, None))
        if first.shape[0] != first.shape[1] or not first.shape[0] or (labelled and not first.shape[2]):
            raise InvalidInput(f"span has shape {first.shape}; expected (words + 1, words + 1) or these and labels.")
        if empty is not None and (
            not labelled or not isinstance(empty, int | np.integer) or not 0 <= empty < first.shape[2]
        ):
            raise InvalidInput(
                f"empty is {empty!r}; expected the number of a label of span, whose shape is {first.shape}."
            )
        self.n, self.labels = len(first) - 1, first.shape[2] if labelled else 1
        self.empty = None if empty is None else int(empty)
        super().__init__({"span": first}, _layout(self.n, self.labels, self.empty))

    def __repr__(self) -> str:
        return f"SpanTrees({self.n} words, {self.labels} labels, {'binary' if self.empty is None else 'any shape'})"

    def options(self) -> dict[str, Any]:
        return {} if self.empty is None else {"empty": self.empty}

    @classmethod
    def options_from_json(cls, given: Field) -> dict[str, Any]:
        return {"empty": given["empty"].whole()} if "empty" in given else {}

    def parts_of(self, structure: Any) -> Ints:
        rows = as_rows(structure, len(self.shape), "(first word, word after the last, label)")
        whole = np.column_stack((rows, np.zeros(len(rows), dtype=np.int64))) if len(self.shape) == 2 else rows
        whole = in_order(whole)
        for k, (i, j, label) in enumerate(whole.tolist()):
            if not 0 <= i < j <= self.n or not 0 <= label < self.labels or label == self.empty:
                raise InvalidInput(
                    f"the structure has the span {tuple(rows[k].tolist())}; expected words within 0..{self.n} and a "
                    f"label below {self.labels}{'' if self.empty is None else f' but {self.empty}'}."
                )
        self._children(whole[:, :2])
        first, last, label = whole.T
        cells: Ints = (first * (self.n + 1) + last) * self.labels + label
        return cells

    def _children(self, spans: Ints) -> list[list[int]]:
        return children_of(spans, self.n, binary=self.empty is None)

    def rows(self, cells: Ints) -> Ints:
        return in_order(np.stack(np.unravel_index(cells, self.shape), axis=1))

    def tree(
        self,
        structure: Any,
        words: Sequence[str],
        labels: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
    ) -> Tree:
        """A structure as a ``certus.Tree`` over the words, with names of the labels and tags over the words.

        A label "S+VP" becomes a node S over a node VP. Without names labels are their numbers, and tags "X".
        """
        n, size = len(words), self.labels if labels is None else len(labels)
        if n != self.n or size != self.labels or (tags is not None and len(tags) != n) or not n:
            raise InvalidInput(
                f"there are {n} words, {size} labels and {'no' if tags is None else len(tags)} tags; "
                f"expected {self.n} (at least 1), {self.labels} and none or as many as words."
            )
        names = [str(k) for k in range(self.labels)] if labels is None else labels
        first, last, label = np.unravel_index(self.cells_of(structure), (n + 1, n + 1, self.labels))
        leaves = [Tree("X" if tags is None else tags[i], words[i]) for i in range(n)]
        made: dict[int, Tree] = {}
        inside = self._children(np.stack((first, last), axis=1))
        for k in reversed(range(len(inside))):
            children, at = [], int(first[k])
            for child in inside[k]:
                children += [*leaves[at : first[child]], made.pop(child)]
                at = int(last[child])
            node: Any = [*children, *leaves[at : last[k]]]
            for part in reversed(names[label[k]].split(JOINT)):
                node = [Tree(part, node)]
            made[k] = node[0]
        return made[0]

    def picture(self, structure: Any, words: Sequence[str] | None = None) -> Picture:
        """The spans as a tree over the words, or over their numbers."""
        return self.tree(structure, named_words(words, self.n)).picture() if self.n else super().picture(structure)

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        if value and self.empty is not None:
            raise NotSupported(
                "SpanTrees with an empty label does not answer with_fixed() for a span that is required: ask "
                "subject_to(certus.constraints.require(...))."
            )
        return super().with_fixed(view, index, value)


def children_of(spans: Ints, n: int, *, binary: bool) -> list[list[int]]:
    """The spans right inside each of some spans in order; InvalidInput if they make no tree over n words."""
    inside: list[list[int]] = [[] for _ in spans]
    around: list[int] = []
    for k, (i, j) in enumerate(spans.tolist()):
        while around and spans[around[-1], 1] <= i:
            around.pop()
        if k and (not around or spans[around[-1], 1] < j or spans[around[-1]].tolist() == [i, j]):
            raise InvalidInput(f"the span {(i, j)} crosses another, or comes twice; the spans make no tree.")
        if around:
            inside[around[-1]].append(k)
        around.append(k)
    if n and (not len(spans) or spans[0].tolist() != [0, n]):
        raise InvalidInput(f"the whole sentence, {(0, n)}, is not among the spans.")
    for (i, j), within in zip(spans.tolist(), inside, strict=True):
        if binary and j - i > 1 and (len(within) != 2 or sum(spans[within] @ [-1, 1]) != j - i):
            raise InvalidInput(f"the span {(i, j)} is not cut into two spans; without an empty label trees are binary.")
    return inside


def in_order(spans: Ints) -> Ints:
    """Spans, one a row, by their first word, longer ones first."""
    return spans[np.lexsort((-spans[:, 1], spans[:, 0]))]


@lru_cache(maxsize=64)
def _layout(n: int, labels: int, empty: int | None) -> Layout:
    """Vertices by width: two items or more (from width 2 on), items (constituents, bare words), and rows of items.

    An item is what stands side by side: rows are made from the left, so that each tree is made once. Without an empty
    label trees are binary: there are no bare words, and what stands to the left is a single item.
    """
    if n == 0:
        return layout_of(1, [edges(np.zeros(1, dtype=np.int64))], labels, labels, 0)
    item = np.full((n + 1, n + 1), -1)
    row = item if empty is None else item.copy()
    some = np.delete(np.arange(labels), [] if empty is None else empty)
    blocks: list[Edges] = []
    vertices = 0
    for width in range(1, n + 1):
        i = np.arange(n - width + 1)
        part = ((i * (n + 1) + i + width) * labels)[:, None] + some
        several = vertices + i
        if width > 1:
            k = np.arange(1, width)
            blocks.append(
                edges(several[:, None], (row[i[:, None], i[:, None] + k], item[i[:, None] + k, (i + width)[:, None]]))
            )
            vertices += len(i)
        item[i, i + width] = vertices + i
        blocks.append(edges(item[i, i + width][:, None], (several[:, None],) if width > 1 else (), (part,)))
        vertices += len(i)
        if empty is None or width == n:  # the root is the whole sentence, as a constituent
            continue
        if width == 1:
            blocks.append(edges(item[i, i + 1]))
        row[i, i + width] = vertices + i
        blocks.append(edges(row[i, i + width], (item[i, i + width],)))
        if width > 1:
            blocks.append(edges(row[i, i + width], (several,)))
        vertices += len(i)
    size = (n + 1) ** 2 * labels
    return layout_of(vertices, blocks, size, size, 2 * n, trim=empty is not None)
