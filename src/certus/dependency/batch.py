"""Many dependency problems in padded arrays, as neural models give them: arrays in, arrays out."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Floats, Ints, as_positive_int, as_scores, one_of
from certus.dependency.problem import Dependency
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.result import BatchCertificate, BatchResult


class DependencyBatch:
    """B dependency problems of up to N - 1 words, answered together.

    Item b is a ``certus.Dependency`` over its first ``lengths[b]`` words, with scores of arcs, or of arcs and siblings
    if ``projective``; padding is not read. The kernels run without the GIL on threads. Every answer has a leading axis
    of B. Certificate kind: "dynamic program" if projective, else "combinatorial".

    Parameters
    ----------
    arc : array_like of shape (B, N, N)
        ``arc[b, h, m]`` for the arc h -> m of item b; node 0 is the root.
    sibling : array_like of shape (B, N, N, N), optional
        As in ``certus.Dependency``; needs ``projective=True``.
    lengths : array_like of shape (B,), optional
        Words of each item, 0 .. N - 1; all N - 1 by default.
    projective, root
        As in ``certus.Dependency``.
    workers : int, optional
        Threads; by default as many as there are processors.

    Examples
    --------
    >>> arc = [[[0, 5, 1], [0, 0, 4], [0, 3, 0]], [[0, 2, 0], [0, 0, 0], [0, 0, 0]]]
    >>> DependencyBatch(arc, lengths=[2, 1], projective=True).decode().structure.tolist()
    [[-1, 0, 1], [-1, 0, -1]]
    """

    def __init__(
        self,
        arc: ArrayLike,
        sibling: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        projective: bool = False,
        root: str = "single",
        workers: int | None = None,
    ) -> None:
        array = np.array(arc, dtype=np.float64, order="C")
        if array.ndim != 3 or array.shape[1] != array.shape[2] or array.shape[1] < 1:
            raise InvalidInput(f"arc has shape {array.shape}; expected (items, words + 1, words + 1).")
        items, size = array.shape[:2]
        self.lengths = as_lengths(lengths, items, size - 1)
        array[:, :, 0] = -np.inf
        array[:, np.arange(size), np.arange(size)] = -np.inf
        for b in np.flatnonzero(self.lengths < size - 1).tolist():
            array[b, self.lengths[b] + 1 :] = -np.inf
            array[b, :, self.lengths[b] + 1 :] = -np.inf
        self.arc = as_scores("arc", array)
        self._largest = float(np.abs(array[array > -np.inf]).max(initial=0.0))
        self.projective = bool(projective)
        self.root = one_of("root", root, ("single", "multi"))
        self.workers = (os.cpu_count() or 1) if workers is None else as_positive_int("workers", workers)
        self.sibling: Floats | None = None
        if sibling is not None:
            if not self.projective:
                raise NotSupported(
                    "trees with crossing arcs and sibling scores are decoded one by one: use certus.decode_all over "
                    "certus.Dependency problems, or projective=True."
                )
            self.sibling = self._checked_sibling(sibling)

    def _checked_sibling(self, sibling: ArrayLike) -> Floats:
        """The sibling scores as float64, checked within each item's length only."""
        from certus.kernels.sibling import survey

        array = np.ascontiguousarray(sibling, dtype=np.float64)
        if array.shape != (*self.arc.shape, self.arc.shape[1]):
            raise InvalidInput(f"sibling has shape {array.shape}; expected {(*self.arc.shape, self.arc.shape[1])}.")
        largest, wrong = survey(array, self.lengths)
        if wrong >= 0:
            end = int(self.lengths[wrong]) + 1
            as_scores(f"sibling[{wrong}]", array[wrong, :end, :end, :end])
        self._largest = max(self._largest, float(largest))
        return array

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, b: int) -> Dependency:
        """Item b as a problem of its own."""
        end = int(self.lengths[b]) + 1
        sibling = None if self.sibling is None else self.sibling[b, :end, :end, :end]
        return Dependency(self.arc[b, :end, :end], sibling, projective=self.projective, root=self.root)

    def decode(self) -> BatchResult:
        """The best trees: ``structure`` (B, N) padded with -1, ``score`` (B,), ``certificate.exact`` (B,).

        Raises Infeasible, naming the item, if one has no tree.
        """
        heads, value = np.empty(self.arc.shape[:2], dtype=np.int64), np.empty(len(self))

        def serve(part: slice) -> None:
            if self.projective:
                from certus.dependency import projective

                sibling = None if self.sibling is None else self.sibling[part]
                lengths, single = self.lengths[part], self.root == "single"
                projective.decode(self.arc[part], sibling, lengths, single, heads[part], value[part])
            else:
                from certus.dependency.arborescence import best_heads_batch

                heads[part], value[part] = best_heads_batch(self.arc[part], self.lengths[part], self.root)

        self._run(serve)
        self._need_trees(value)
        score = self._scores(heads)
        terms = (self.lengths + 1) * (1 if self.sibling is None else 2)
        tolerance = np.finfo(np.float64).eps * terms.astype(np.float64) ** 2 * self._largest
        kind = "dynamic program" if self.projective else "combinatorial"
        return BatchResult(heads, score, BatchCertificate(kind, score, np.maximum(score, value), tolerance))

    def log_partition(self) -> Floats:
        """Log of the sum of exp(score) over the trees of each item, (B,); -inf where there is none."""
        return self._log_totals(False)[0]

    def marginals(self) -> dict[str, Floats]:
        """Under "arcs", the probability of each arc, (B, N, N); 0 in the padding. Raises Infeasible as decode does."""
        total, arcs = self._log_totals(True)
        self._need_trees(total)
        return {"arcs": arcs}

    def max_marginals(self) -> dict[str, Floats]:
        """Under "arcs", the best score of a tree with each arc, (B, N, N); -inf where there is none."""
        out = np.empty(self.arc.shape)

        def serve(part: slice) -> None:
            if self.projective:
                from certus.dependency import projective

                sibling = None if self.sibling is None else self.sibling[part]
                out[part] = projective.max_totals(self.arc[part], sibling, self.lengths[part], self.root == "single")
            else:
                from certus.dependency.arborescence import max_marginals_batch

                out[part] = max_marginals_batch(self.arc[part], self.lengths[part], self.root)

        self._run(serve)
        return {"arcs": out}

    def _log_totals(self, with_arcs: bool) -> tuple[Floats, Floats]:
        total, out = np.empty(len(self)), np.zeros(self.arc.shape) if with_arcs else np.empty(0)

        def serve(part: slice) -> None:
            arc, lengths = self.arc[part], self.lengths[part]
            if self.projective:
                from certus.dependency import projective

                sibling = None if self.sibling is None else self.sibling[part]
                total[part], arcs = projective.log_totals(arc, sibling, lengths, self.root == "single", with_arcs)
            else:
                from certus.dependency import matrix_tree

                if with_arcs:
                    arcs, total[part] = matrix_tree.marginals_batch(arc, lengths, self.root)
                else:
                    total[part] = matrix_tree.log_partition_batch(arc, lengths, self.root)
            if with_arcs:
                out[part] = arcs

        self._run(serve)
        return total, out

    def _run(self, serve: Callable[[slice], None]) -> None:
        """Serve all items, in one call, or in one per chunk on threads."""
        chunks = 1 if self.workers == 1 else min(len(self), 4 * self.workers)
        cuts = [len(self) * k // chunks for k in range(chunks + 1)] if chunks else []
        parts = [slice(a, b) for a, b in pairwise(cuts)]
        if len(parts) <= 1:
            for part in parts:
                serve(part)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(serve, parts))

    def _need_trees(self, value: Floats) -> None:
        for b in np.flatnonzero(value == -np.inf)[:1]:
            try:
                self[int(b)].decode()
            except Infeasible as error:
                raise Infeasible(f"item {b} of the batch: {error}") from None

    def _scores(self, heads: Ints) -> Floats:
        """Scores of the trees, from the input."""
        word = np.arange(heads.shape[1])
        used = (word > 0) & (word <= self.lengths[:, None])
        cell = np.where(used, heads, 0) * len(word) + word
        arcs = np.take_along_axis(self.arc.reshape(len(heads), -1), cell, axis=1)
        total: Floats = np.where(used, arcs, 0.0).sum(axis=1)
        if self.sibling is not None:
            from certus.kernels.sibling import tree_scores

            tree_scores(self.sibling, heads, self.lengths, total)
        return total


def as_lengths(lengths: ArrayLike | None, items: int, longest: int) -> Ints:
    """Words of each item, checked."""
    if lengths is None:
        return np.full(items, longest, dtype=np.int64)
    array = np.asarray(lengths)
    if array.shape != (items,) or (items and array.dtype.kind not in "iu"):
        raise InvalidInput(f"lengths has shape {array.shape} and type {array.dtype}; expected {items} whole numbers.")
    wrong = np.flatnonzero((array < 0) | (array > longest))
    if len(wrong):
        raise InvalidInput(f"lengths[{wrong[0]}] is {array[wrong[0]]}; expected 0..{longest}.")
    return array.astype(np.int64)
