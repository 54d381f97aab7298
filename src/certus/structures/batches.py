"""Many structures of one kind in padded arrays, as neural models give them: arrays in, arrays out.

A kind says which problem its items are, how its arrays are laid out, and which shape its structures have.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from certus import kernels
from certus.batch import Batch, as_lengths
from certus.certificates.rounding import EXACT, MASK, OVERFLOW, WIDTH, Extent, of_best, total
from certus.certificates.sound import LARGE, together
from certus.checks import Floats, Ints
from certus.dependency.batch import DependencyBatch
from certus.errors import InvalidInput
from certus.factors.assignment import Assignment, errors_of, room_for, steps_of
from certus.problem import Index
from certus.result import KINDS, BatchCertificate, BatchRanks, BatchResult, Certificate, OnAccess, Result
from certus.structures.alignment import Alignment
from certus.structures.anchored_grammar import AnchoredGrammar
from certus.structures.array_batch import Array, ArrayBatch, Axes, as_targets
from certus.structures.ctc import CTC
from certus.structures.dependency_graph import DependencyGraph
from certus.structures.program import ArrayProgram
from certus.structures.program_batch import ProgramBatch
from certus.structures.segmentation import Segmentation
from certus.structures.span_trees import SpanTrees
from certus.structures.spanning_tree import SpanningTree
from certus.threads import in_parts


class SegmentationBatch(ProgramBatch):
    """B problems of ``certus.Segmentation``: segment (B, N, K, C), transition (C, C) for all items, or (B, C, C).

    ``lengths`` are the words of each item, 0..N. Structures are rows (i, j, c) in arrays of shape (B, N, 3).
    """

    problem, view = Segmentation, "segments"
    arrays_of: ClassVar[Mapping[str, Axes]] = {"segment": Axes((4,), (0,)), "transition": Axes((2, 3), shared=2)}

    @property
    def structure_shape(self) -> Index:
        return (self.first.shape[1], 3)


class SpanTreesBatch(ProgramBatch):
    """B problems of ``certus.SpanTrees``: span (B, N + 1, N + 1, L), or (B, N + 1, N + 1); ``empty`` is that of all.

    ``lengths`` are the words of each item, 0..N. Structures are rows (i, j, l), or (i, j) without labels, in arrays of
    up to 2 N - 1 rows.
    """

    problem, view = SpanTrees, "spans"
    arrays_of: ClassVar[Mapping[str, Axes]] = {"span": Axes((3, 4), (1, 1))}

    @property
    def structure_shape(self) -> Index:
        return (max(2 * self.first.shape[1] - 3, 0), self.first.ndim - 1)

    def log_totals(self) -> Floats:
        total, _, alone = self._span_sums(marginals=False)
        return self._with_alone(total, {}, alone)[0]

    def _expected(self, rounded: bool = True) -> tuple[Floats, dict[str, Floats]]:
        total, uses, alone = self._span_sums(marginals=True)
        for b in np.flatnonzero(total == -np.inf)[:1].tolist():
            self._check_feasible(b)
        total, found = self._with_alone(total, {"span": uses}, alone)
        return total, {"span": self._as_given(found["span"]) if rounded else found["span"]}

    def part_sums(self, *, rounded: bool = True) -> tuple[Floats, dict[str, Floats]]:
        return self._expected(rounded)

    def decode(self) -> BatchResult:
        spread, empty = self._labelled()
        items, most = len(self), self.structure_shape[0]
        value, extent, used = np.empty(items), np.empty((items, 2)), np.empty((items, most))
        rows, sizes = np.empty((items, most, 3), dtype=np.int64), np.empty(items, dtype=np.int64)

        def serve(part: slice) -> None:
            answer = kernels.span_trees.Best(value[part], extent[part], rows[part], used[part], sizes[part])
            kernels.span_trees.best_trees(spread[part], self.lengths[part], empty, answer)

        self._in_parts(serve, spread)
        extents = self._extents(extent)
        for b in np.flatnonzero(value == -np.inf)[:1].tolist():
            self._check_feasible(b)
        score = np.array([total(own[:size].tolist()) for own, size in zip(used, sizes.tolist(), strict=True)])
        error = np.array([of_best(e, v) for e, v in zip(extents, value.tolist(), strict=True)])
        bound, tolerance = np.maximum(value, score), WIDTH * error
        structure = rows if self.first.ndim == 4 else np.ascontiguousarray(rows[:, :, :2])
        proved = (tolerance <= EXACT * np.minimum(np.abs(score), MASK)) & (2.0 * (bound - score) <= tolerance)
        reasons = dict[int, str]()
        for b in np.flatnonzero(~proved | ~np.array([together(e) for e in extents], dtype=bool)).tolist():
            alone = self._named(b, lambda item: self[item].decode())
            own, c = self._row(alone.structure), alone.certificate
            structure[b], sizes[b], score[b] = -1, len(own), c.score
            structure[b, : len(own)] = own
            bound[b], tolerance[b] = c.bound, c.tolerance
            if c.reason is not None:
                reasons[b] = c.reason
        certificate = BatchCertificate(self.kind, score, bound, tolerance, reasons)
        return BatchResult(structure, score.copy(), certificate, sizes)

    def _labelled(self) -> tuple[Floats, int]:
        """The scores by labels, as many as kernels want at least, and the number of the empty one or -1; checked."""
        span = np.ascontiguousarray(self.first, dtype=np.float64)
        if span.shape[1] != span.shape[2]:
            raise InvalidInput(f"span has shape {span.shape}; expected (items, words + 1, words + 1), or with labels.")
        if len(span):
            SpanTrees(span[0, :1, :1], **self.options)  # which says what is wrong with labels
        empty = self.options.get("empty")
        spread, most = span if span.ndim == 4 else span[..., None], kernels.lanes.LANES
        if spread.shape[3] < most:
            few, spread = spread, np.full((*spread.shape[:3], most), -np.inf)
            spread[..., : few.shape[3]] = few
        return spread, -1 if empty is None else int(empty)

    def _in_parts(self, serve: Callable[[slice], None], spread: Floats) -> None:
        n = self.lengths.max(initial=0)
        in_parts(serve, len(self), float(len(self)) * n * n * (n + spread.shape[3]), self.workers)

    def _extents(self, ends: Floats) -> list[Extent]:
        """From the least and the greatest score of each item; InvalidInput if one is no score."""
        for b in np.flatnonzero(ends[:, 1] == np.inf)[:1].tolist():
            self._named(b, self.__getitem__)
        pairs = zip((2 * self.lengths).tolist(), ends.tolist(), strict=True)
        return [Extent(most, low, high) if low < np.inf else Extent(most, 0.0, 0.0) for most, (low, high) in pairs]

    def _span_sums(self, *, marginals: bool) -> tuple[Floats, Floats, list[int]]:
        """Log-partitions, marginals of cells if wanted, and the items that are asked by themselves."""
        spread, empty = self._labelled()
        total_, extent = np.empty(len(self)), np.empty((len(self), 2))
        out = np.empty(spread.shape if marginals else (0, 1, 1, 1))

        def serve(part: slice) -> None:
            own = out[part] if marginals else out
            kernels.span_sums.span_sums(spread[part], self.lengths[part], empty, total_[part], extent[part], own)

        self._in_parts(serve, spread)
        extents = enumerate(self._extents(extent))
        labels = self.first.shape[3] if self.first.ndim == 4 else 1
        uses = out[..., :labels].reshape(self.first.shape) if marginals else out
        return total_, uses, [b for b, own in extents if not together(own) or own.size > LARGE]


class TwoSided(ArrayBatch):
    """Items with a length on each of two sides: ``lengths`` or ``mask``, and ``second_lengths`` or ``second_mask``."""

    def __init__(
        self,
        score: ArrayLike,
        *,
        second_lengths: ArrayLike | None = None,
        second_mask: ArrayLike | None = None,
        **options: Any,
    ) -> None:
        super().__init__(score, **options)
        longest = self.first.shape[2] - self.arrays_of["score"].beyond[1]
        self.second_lengths = as_lengths(second_lengths, len(self), longest, mask=second_mask, name="second_")

    def sides(self, item: int) -> tuple[int, ...]:
        return (int(self.lengths[item]), int(self.second_lengths[item]))


class AlignmentBatch(TwoSided, ProgramBatch):
    """B problems of ``certus.Alignment``: score (B, N + 1, M + 1, 3).

    ``lengths`` (or ``mask``) are the items of the first sequence of each, 0..N; ``second_lengths`` (``second_mask``)
    those of the second, 0..M. Structures are rows (i, j, op) in arrays of N + M rows.
    """

    problem, view = Alignment, "steps"
    arrays_of: ClassVar[Mapping[str, Axes]] = {"score": Axes((4,), (1, 1))}

    @property
    def structure_shape(self) -> Index:
        return (self.first.shape[1] + self.first.shape[2] - 2, 3)


class CTCBatch(ProgramBatch):
    """B problems of ``certus.CTC``: frame (B, T, V), target (B, S) padded with -1 at the end, and a ``blank`` for all.

    ``lengths`` are the frames of each item, 0..T. Structures are the labels of the frames, in arrays of shape (B, T).
    """

    problem, view = CTC, "frames"
    arrays_of: ClassVar[Mapping[str, Axes]] = {"frame": Axes((3,), (0,))}

    def __init__(self, frame: ArrayLike, target: ArrayLike, blank: int = 0, **options: Any) -> None:
        super().__init__(frame, target, blank, **options)
        self.target = as_targets(target, len(self))
        self.sizes: Ints = (self.target >= 0).sum(axis=1)
        labels, place = self.first.shape[2], np.arange(self.target.shape[1])
        wrong = (self.target >= labels) | (self.target == blank)
        wrong |= (self.target >= 0) != (place < self.sizes[:, None])
        known = isinstance(blank, int | np.integer) and 0 <= blank < labels
        for b in np.flatnonzero(wrong.any(axis=1) | (not known))[:1].tolist():
            self._named(b, self.__getitem__)  # which says what is wrong

    def options_of(self, item: int) -> dict[str, Any]:
        target = self.target[item]
        end = int(np.flatnonzero(target >= 0).max(initial=-1)) + 1
        return {**self.options, "target": target[:end].tolist()}

    @property
    def structure_shape(self) -> Index:
        return (self.first.shape[1],)

    def log_totals(self) -> Floats:
        total_, _, alone = self._frame_sums(np.empty((0, 1, 1)))
        return self._with_alone(total_, {}, alone)[0]

    def _expected(self, rounded: bool = True) -> tuple[Floats, dict[str, Floats]]:
        uses = np.zeros(self.first.shape, dtype=self.dtype if rounded else np.float64)
        total_, uses, alone = self._frame_sums(uses)
        return self._with_alone(total_, {"frame": uses}, alone)

    def part_sums(self, *, rounded: bool = True) -> tuple[Floats, dict[str, Floats]]:
        return self._expected(rounded)

    def _frame_sums(self, uses: Floats) -> tuple[Floats, Floats, list[int]]:
        """Log-partitions, the probability of each label at each frame into ``uses``, unless it has no items; and the
        items that are asked by themselves.
        """
        frame, total_ = np.ascontiguousarray(self.first, dtype=self.dtype), np.empty(len(self))
        blank, wanted = int(self.options["blank"]), len(uses) > 0

        def serve(part: slice) -> None:
            answer = (total_[part], uses[part] if wanted else uses)
            kernels.ctc.ctc_sums(frame[part], self.lengths[part], self.target[part], self.sizes[part], blank, *answer)

        steps = float(len(self) * self.first.shape[1] * (8 * self.target.shape[1] + 40))
        in_parts(serve, len(self), steps, self.workers)
        return total_, uses, np.flatnonzero(np.isnan(total_)).tolist()


class AnchoredGrammarBatch(ArrayBatch):
    """B problems of ``certus.AnchoredGrammar``: emission (B, N, P), root (B, A), rule (B, A, S, S).

    ``root`` and ``rule`` may be those of all items, without the leading axis; ``span`` is (B, N + 1, N + 1, S).
    ``lengths`` are the words of each item, 0..N; those of less than two have no tree.
    Structures are rows (i, j, symbol) in arrays of up to 2 N - 1 rows.
    """

    problem, view = AnchoredGrammar, "spans"
    arrays_of: ClassVar[Mapping[str, Axes]] = {
        "emission": Axes((3,), (0,)),
        "root": Axes((1, 2), shared=1),
        "rule": Axes((3, 4), shared=3),
        "span": Axes((4,), (1, 1)),
    }

    @property
    def structure_shape(self) -> Index:
        return (max(2 * self.first.shape[1] - 1, 0), 3)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"spans": (self.first.shape[1] + 1,) * 2 + (self.arrays["rule"].shape[-1],)}


class SpanningTreeBatch(ArrayBatch):
    """B problems of ``certus.SpanningTree``: edge (B, N, N).

    ``lengths`` are the nodes of each item, 0..N. Structures are rows (i, j) in arrays of N - 1 rows. All items are
    answered at once, as trees directed away from node 0.
    """

    kind = "combinatorial"
    problem, view = SpanningTree, "edges"
    arrays_of: ClassVar[Mapping[str, Axes]] = {"edge": Axes((3,), (0, 0))}

    def __init__(self, edge: ArrayLike, **options: Any) -> None:
        super().__init__(edge, **options)
        items, n, across = self.first.shape
        if n != across:
            raise InvalidInput(f"edge has shape {self.first.shape}; expected (items, nodes, nodes).")
        given = np.ascontiguousarray(self.first, dtype=self.dtype)
        wrong = kernels.edges.survey(given, self.lengths)
        if wrong >= 0:
            self._named(wrong, self.__getitem__)  # which says what is wrong
        arcs = given if n else np.zeros((items, 1, 1), dtype=self.dtype)
        self._directed = DependencyBatch(
            arcs, lengths=np.maximum(self.lengths - 1, 0), root="multi", workers=self.workers
        )

    @property
    def structure_shape(self) -> Index:
        return (max(self.first.shape[1] - 1, 0), 2)

    def __getitem__(self, item: int) -> SpanningTree:
        n = int(self.lengths[item])
        return SpanningTree(self.first[item, :n, :n])

    def _edges(self, heads: Ints) -> Ints:
        """The edges (..., N - 1, 2) of trees (..., N), in order, then padding."""
        nodes, own = np.arange(1, heads.shape[-1]), heads[..., 1:]
        low, high, most = np.minimum(own, nodes), np.maximum(own, nodes), np.iinfo(np.int64).max
        order = np.argsort(np.where(own >= 0, low * heads.shape[-1] + high, most), axis=-1, kind="stable")
        rows = np.stack((np.where(own >= 0, low, -1), np.where(own >= 0, high, -1)), axis=-1)
        found: Ints = np.take_along_axis(rows, order[..., None], axis=-2)
        return found

    def _both_ways(self, arcs: Floats, *, largest: bool = False) -> Floats:
        out = np.empty(self.first.shape, dtype=arcs.dtype)
        kernels.edges.both_ways(arcs, self.lengths, largest, out)
        return out

    # -- questions -------------------------------------------------------------------------------------------------

    def decode(self) -> BatchResult:
        found = self._directed.decode()
        results = OnAccess(len(self), lambda b: self[b].undirected(found[b]))
        sizes = np.maximum(self.lengths - 1, 0)
        return replace(found, structure=self._edges(found.structure), sizes=sizes, results=results)

    def kbest(self, k: int) -> BatchRanks:
        found = self._directed.kbest(k)

        def results(b: int) -> list[Result[Any]]:
            problem = self[b]
            return [problem.undirected(result) for result in found[b]]

        return replace(found, structure=self._edges(found.structure), results=OnAccess(len(self), results))

    def sample(self, k: int, *, seed: int | None = None) -> Ints:
        return self._edges(self._directed.sample(k, seed=seed))

    def log_totals(self) -> Floats:
        return self._directed.log_totals()

    def entropy(self) -> Floats:
        return self._directed.entropy()

    def marginals(self) -> dict[str, Floats]:
        return self.log_partition_and_marginals()[1]

    def log_partition_and_marginals(self) -> tuple[Floats, dict[str, Floats]]:
        """Both of them by one call."""
        total_, found = self._directed.log_partition_and_marginals()
        return total_, {"edges": self._both_ways(found["arcs"])}

    def part_marginals(self) -> dict[str, Floats]:
        return {"edge": self.marginals()["edges"]}

    def part_sums(self, *, rounded: bool = True) -> tuple[Floats, dict[str, Floats]] | None:
        found = self._directed.part_sums(rounded=rounded)
        return None if found is None else (found[0], {"edge": self._both_ways(found[1]["arc"])})

    def max_marginals(self) -> dict[str, Floats]:
        return {"edges": self._both_ways(self._directed.max_marginals()["arcs"], largest=True)}


class AssignmentBatch(TwoSided):
    """B problems of ``certus.Assignment``: score (B, N, M), best matchings and their ranks; sums are #P-hard.

    ``lengths`` (or ``mask``) are the rows of each item, 0..N; ``second_lengths`` (``second_mask``) the columns, 0..M.
    Structures are the columns of the rows, -1 for none, in arrays of shape (B, N).
    """

    kind = "dual"
    problem, view = Assignment, "matches"
    arrays_of: ClassVar[Mapping[str, Axes]] = {"score": Axes((3,), (0, 0))}

    @property
    def structure_shape(self) -> Index:
        return (self.first.shape[1],)

    def _unpadded(self, structure: Array, item: int) -> Array:
        return structure[: self.lengths[item]]

    def decode(self) -> BatchResult:
        score = np.ascontiguousarray(self.first, dtype=np.float64)
        must, found = np.zeros(score.shape[:2], dtype=bool), room_for(*score.shape)

        def serve(part: slice) -> None:
            sides, own = (self.lengths[part], self.second_lengths[part]), type(found)(*(each[part] for each in found))
            kernels.assignment.best_matchings(score[part], *sides, must[part], own)

        in_parts(serve, len(score), steps_of(*score.shape), self.workers)
        value = np.array([total(used) for used in found.used.tolist()])
        bound, tolerance = np.maximum(found.bound, value), WIDTH * errors_of(self.lengths, found)
        # No pair of a best matching scores less than 0, so that a share of its score is one of the scores in use.
        proved = (tolerance <= EXACT * value) & (2.0 * (bound - value) <= tolerance)
        proved &= bound < OVERFLOW / np.maximum(self.lengths, 1)  # no score is higher: they can be added up
        alone = {b: self._named(b, lambda item: self[item].decode()) for b in np.flatnonzero(~proved).tolist()}
        for b, own in alone.items():
            found.column[b, : len(own.structure)] = own.structure
            value[b], bound[b], tolerance[b] = own.score, own.certificate.bound, own.certificate.tolerance
        kind = max((self.kind, *(own.certificate.kind for own in alone.values())), key=KINDS.index)
        reasons = {b: own.certificate.reason for b, own in alone.items() if own.certificate.reason is not None}
        certificate = BatchCertificate(kind, value, bound, tolerance, reasons)
        sides = (self.lengths, self.second_lengths)
        results = OnAccess(len(self), partial(_matched, alone, certificate, found, sides))
        return BatchResult(found.column, value.copy(), certificate, self.lengths, results=results)


def _matched(
    alone: Mapping[int, Result[Ints]], c: BatchCertificate, found: Any, sides: tuple[Ints, Ints], item: int
) -> Result[Ints]:
    """The result of one item, with the prices that prove it; of one that was decoded alone, what came of that."""
    if item in alone:
        return alone[item]
    score, bound, tolerance = (float(own[item]) for own in (c.score, c.bound, c.tolerance))
    columns, price = (own[item, : side[item]] for own, side in zip((found.column, found.price), sides, strict=True))
    return Result(columns.copy(), score, Certificate("dual", score, bound, tolerance, {"columns": -price}))


class DependencyGraphBatch(ProgramBatch):
    """B problems of ``certus.DependencyGraph``: arc (B, N, N); sibling, coparent, grandparent (B, N, N, N).

    ``lengths`` are the words of each item, 0 .. N - 1. Structures are arrays of shape (B, N, N) of 0 and 1, -1 in the
    padding. With more than one kind of pairs, or with grandparents, items are asked by themselves, on threads, and
    sums have no tractable answer.
    """

    problem, view, padded_axes = DependencyGraph, "arcs", 2
    arrays_of: ClassVar[Mapping[str, Axes]] = {
        "arc": Axes((3,), (1, 1)),
        **{name: Axes((4,), (1, 1, 1)) for name in ("sibling", "coparent", "grandparent")},
    }

    def __new__(cls, *arguments: Any, **named: Any) -> "DependencyGraphBatch":
        given = {**dict(zip(cls.arrays_of, arguments, strict=False)), **named}
        kinds = [name for name in cls.arrays_of if given.get(name) is not None]
        relaxed = len(kinds) > 2 or "grandparent" in kinds
        return object.__new__(RelaxedGraphBatch if relaxed and cls is DependencyGraphBatch else cls)

    def program_of(self, item: int) -> ArrayProgram[Any]:
        problem = self[item]
        assert isinstance(problem, DependencyGraph)
        return problem.answering("log_partition")

    @property
    def structure_shape(self) -> Index:
        return self.first.shape[1:]

    def _row(self, structure: Any) -> Ints:
        return np.asarray(structure, dtype=np.int64)

    def _unpadded(self, structure: Array, item: int) -> Array:
        end = int(self.lengths[item]) + 1
        return structure[:end, :end]


class RelaxedGraphBatch(DependencyGraphBatch):
    """A batch of graphs whose kinds of pairs make no dynamic program together: asked item by item."""

    steps_alone = np.inf
    decode, sample, kbest = Batch.decode, Batch.sample, Batch.kbest
    entropy, marginals, max_marginals = Batch.entropy, Batch.marginals, Batch.max_marginals
    part_marginals = ArrayBatch.part_marginals
