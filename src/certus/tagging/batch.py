"""Many tagging problems in padded arrays, as neural models give them: arrays in, arrays out."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus import kernels
from certus.batch import Batch, type_of
from certus.certificates.rounding import EPSILON, EXACT, WIDTH, counted, extent_of, in_range
from certus.certificates.sound import LARGE
from certus.checks import Floats, Ints, as_numbers, as_scores
from certus.errors import InvalidInput
from certus.problem import Index
from certus.result import BatchCertificate, BatchResult
from certus.tagging.chains import ChainSums, chain_sums
from certus.tagging.problem import Tagging
from certus.tagging.tables import Table, as_table, flattened, work, writeable
from certus.threads import in_parts


class TaggingBatch(Batch):
    """B tagging problems over the same T tags, of up to N positions, answered together.

    Each item is a ``certus.Tagging`` of its first ``lengths[j]`` positions; padding is not read. The kernels run
    without the GIL, on threads if there is enough work for them. Every answer has a leading axis of B.
    Certificate kind: "dynamic program".

    Parameters
    ----------
    unary : array_like of shape (B, N, T)
    bigram : array_like of shape (T, T) or (T + 1, T + 1), or per position (B, N, T, T) or (B, N + 1, T + 1, T + 1)
    trigram : likewise
        As in ``certus.Tagging``. Item j of a per-position table with boundary tags ends in row ``lengths[j]``.
    lengths : array_like of shape (B,), optional
        Positions of each item, 0..N; all N by default.
    mask : array_like of bool, shape (B, N), optional
        In place of ``lengths``: true where a position is not padding.
    workers : int, optional
        Threads; by default as many as there are processors, and fewer where they would not pay.

    Examples
    --------
    >>> TaggingBatch([[[0, 1], [2, 0]], [[3, 0], [0, 0]]], lengths=[2, 1]).decode().structure.tolist()
    [[1, 0], [0, -1]]
    """

    def __init__(
        self,
        unary: ArrayLike,
        bigram: ArrayLike | None = None,
        trigram: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        workers: int | None = None,
    ) -> None:
        array = as_numbers("unary", unary)
        if array.ndim != 3 or array.shape[2] < 1:
            raise InvalidInput(f"unary has shape {array.shape}; expected (items, positions, tags).")
        items, n, self.size = array.shape
        super().__init__(lengths, items, n, workers, mask=mask)
        self.dtype = type_of(array)
        padding = np.arange(n) >= self.lengths[:, None]
        if padding.any() and np.issubdtype(array.dtype, np.floating):
            array = array.copy()
            array[padding] = 0.0
        self.unary = writeable(as_scores("unary", array))
        self._tables = [
            None if values is None else as_table(name, order, values, n, self.size, self.lengths, batch=True)
            for name, order, values in (("bigram", 2, bigram), ("trigram", 3, trigram))
        ]
        self._padding = padding

    def __getitem__(self, item: int) -> Tagging:
        """One item as a problem of its own."""
        n = int(self.lengths[item])
        tables = []
        for table in self._tables:
            if table is None or not table.step:
                tables.append(None if table is None else table.scores)
            else:
                tables.append(table.scores[item, : n + table.boundary])
        return Tagging(self.unary[item, :n], *tables)

    @property
    def structure_shape(self) -> Index:
        return (self.unary.shape[1],)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"tags": self.unary.shape[1:]}

    def _unpadded(self, structure: NDArray[Any], item: int) -> NDArray[Any]:
        return structure[: self.lengths[item]]

    def decode(self) -> BatchResult:
        """The best sequences: ``structure`` (B, N) padded with -1, ``score`` (B,), ``certificate.exact`` (B,)."""
        structure = np.full(self.unary.shape[:2], -1, dtype=np.int64)
        value = self._run(kernels.tagging.viterbi, structure)
        highest = self._highest()
        terms = self.lengths + (self.lengths + 1) * sum(table is not None for table in self._tables)
        with np.errstate(over="ignore", invalid="ignore"):  # then nothing is proved
            score, absolute = self._scores(structure)
            bound = np.maximum(value, score)
            tolerance = WIDTH * EPSILON * terms * (2.0 * terms * max(highest, 0.0) + np.maximum(-score, 0.0))
            proved = (tolerance <= EXACT * absolute) & (2.0 * (bound - score) <= tolerance)
        proved &= in_range(terms, highest, score)
        certificate = BatchCertificate("dynamic program", score, bound, tolerance)
        found = BatchResult(structure, score, certificate, self.lengths)
        return self._settled(found, np.flatnonzero(~proved).tolist())

    def log_totals(self) -> Floats:
        return self._run(kernels.tagging.total, np.empty(0), powers=True)

    def entropy(self) -> Floats:
        """Entropy, in nats, of the distribution proportional to exp(score) of each item, shape (B,)."""
        entropy = np.empty(len(self))
        self._run(kernels.tagging.total, entropy, powers=True)
        return self._as_given(entropy)

    def marginals(self) -> dict[str, Floats]:
        """Under "tags", the probability of each tag at each position, (B, N, T); 0 in the padding."""
        return self.log_partition_and_marginals()[1]

    def log_partition_and_marginals(self) -> tuple[Floats, dict[str, Floats]]:
        """Both of them by one sweep."""
        total, tags = self._tag_sums()
        return self._as_given(total), {"tags": self._as_given(tags)}

    def _tag_sums(self) -> tuple[Floats, Floats]:
        """Log-partitions, and the probability of each tag at each position."""
        found = self._chain_sums(pairs=False)
        if found is not None:
            self._check_totals(found.total)
            return found.total, found.tags
        out = np.zeros(self.unary.shape)
        return self._run(kernels.tagging.marginals, out, powers=True), out

    def part_sums(self, *, rounded: bool = True) -> tuple[Floats, dict[str, Floats]] | None:
        if self._tables == [None, None]:
            total, tags = self._tag_sums()
            uses = {"unary": tags}
        else:
            found = self._chain_sums(pairs=True)
            if found is None:
                return None
            total, uses = found.total, {"unary": found.tags, "bigram": found.pairs}
        return total, {name: self._as_given(own) if rounded else own for name, own in uses.items()}

    def part_marginals(self) -> dict[str, Floats]:
        found = self.part_sums()
        if found is not None:
            self._check_totals(found[0])
            return found[1]
        arrays = {"unary": self.unary.shape[1:]}
        for name, table in zip(("bigram", "trigram"), self._tables, strict=True):
            if table is not None:
                arrays[name] = table.scores.shape[bool(table.item) :]
        uses = self._each(lambda problem, _: {name: problem.part_marginals(name) for name in arrays})
        return self._padded_views(uses, 0.0, arrays)

    def _chain_sums(self, *, pairs: bool) -> ChainSums | None:
        """Sums by the kernel for one table of bigrams without boundary tags, where it is for these scores."""
        bigram, trigram = self._tables
        if bigram is None or trigram is not None or bigram.step or bigram.boundary:
            return None
        return chain_sums(self.unary, bigram.scores, self.lengths, pairs=pairs, workers=self.workers)

    def max_marginals(self) -> dict[str, Floats]:
        """Under "tags", the best score of a sequence with each tag, (B, N, T); -inf where there is none.

        Raises InvalidInput as ``Tagging.max_marginals`` does.
        """
        out = np.full(self.unary.shape, -np.inf)
        self._run(kernels.tagging.max_marginals, out)
        if self._highest() > LARGE:
            for j in np.flatnonzero((out > -np.inf).any(axis=(1, 2))).tolist():
                out[j, : self.lengths[j]] = self[j].max_marginals()["tags"]
        return {"tags": self._as_given(out)}

    def _highest(self) -> float:
        """The greatest score, unread ones included."""
        return extent_of(0, self.unary, *(table.scores for table in self._tables if table is not None)).highest

    def _run(self, kernel: Callable[..., None], out: Any, *, powers: bool = False) -> Floats:
        """Run a kernel over all items, on threads if they pay; returns the value of each item."""
        value = np.empty(len(self))
        tables = flattened(*self._tables, powers=powers)

        def serve(part: slice) -> None:
            kernel(tables, self.unary, self.lengths, (part.start, part.stop), value, out)

        in_parts(serve, len(self), work(self.unary, tables[0], sums=powers), self.workers)
        self._check_totals(value)
        return value

    def _check_totals(self, value: Floats) -> None:
        for j in np.flatnonzero(value == -np.inf)[:1]:
            self._check_feasible(int(j))

    def _scores(self, structure: Ints) -> tuple[Floats, Floats]:
        """Scores of the sequences, from the input, with numpy alone; and sums of what their parts count for."""
        items, n, size = self.unary.shape
        item, row, length = np.arange(items)[:, None], np.arange(n + 1), self.lengths[:, None]
        inside = np.where(self._padding, size, structure)
        flat = (item * n + row[:-1]) * size + inside  # of unary scores; in the padding anywhere
        cells = np.where(self._padding, 0.0, self.unary.take(flat, mode="clip"))
        total: Floats = cells.sum(axis=1)
        absolute: Floats = counted(cells).sum(axis=1)
        padded = np.full((items, n + 3), size)  # two tags before the first position, and one after the last
        padded[:, 2:-1] = inside
        for table in self._tables:
            if table is not None:
                cells = _table_scores(table, padded, (item, row, length))
                total += cells.sum(axis=1)
                absolute += counted(cells).sum(axis=1)
        return total, absolute


def _table_scores(table: Table, padded: Ints, place: tuple[Ints, Ints, Ints]) -> Floats:
    """(B, N), or (B, N + 1), what one table gives to the tags that end at each position, 0 where it is not read."""
    item, row, length = place
    row = row[: len(row) - (not table.boundary)]
    read = (row <= length) if table.boundary else (row >= table.order - 1) & (row < length)
    flat, tags = item * table.item + row * table.step, np.zeros((len(padded), len(row)), dtype=np.int64)
    for k in range(3 - table.order, 3):
        tags = tags * table.side + padded[:, k : k + len(row)]
    return np.where(read, table.scores.take(flat + tags, mode="clip"), 0.0)
