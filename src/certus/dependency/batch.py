"""Many dependency problems in padded arrays, as neural models give them: arrays in, arrays out."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus import kernels
from certus.batch import FLOAT32, FLOAT64, Batch, as_lengths, type_of
from certus.certificates.rounding import EPSILON, EXACT, MASK, WIDTH, Extent, in_range, of_best, of_sum
from certus.certificates.sound import LARGE, in_ranks, together
from certus.checks import Bools, Floats, Ints, as_bool, as_generator, as_numbers, as_scores, one_of
from certus.dependency import arborescence, matrix_tree, projective
from certus.dependency.part_kinds import HIGHER_KINDS
from certus.dependency.problem import Dependency
from certus.errors import InvalidInput
from certus.problem import Index
from certus.result import BatchCertificate, BatchRanks, BatchResult, OnAccess, Result
from certus.threads import in_parts

MOST_RANKS = 1000  # for which every item that is begun has room
KERNEL_OPTIONS = frozenset(("lengths", "mask", "root", "axes", "workers"))


class DependencyBatch(Batch):
    """B dependency problems of up to N - 1 words, answered together.

    Item b is a ``certus.Dependency`` over its first ``lengths[b]`` words; padding is not read. With scores of arcs, or
    of arcs and siblings if ``projective``, kernels serve the whole batch, without the GIL, on threads if there is
    enough work for them. With any others, items are asked one by one, on threads: the same questions have answers as
    for ``Dependency``. ``from_parts`` takes lists of parts. Every answer has a leading axis of B. Certificate kind:
    "dynamic program" if projective, else "combinatorial", or "dual" and "branch and bound" for trees with crossing
    arcs and scores above arcs.

    Arrays of float64 are not copied, nor are those of float32 where a kernel reads them: do not change them while the
    batch is in use. Arc scores are checked at once, sibling scores by each question as it reads them, so that their
    large array is read only once.

    Parameters
    ----------
    arc : array_like of shape (B, N, N)
        ``arc[b, h, m]`` for the arc h -> m of item b; node 0 is the root.
    sibling : array_like of shape (B, N, N, N), optional
        As in ``certus.Dependency``.
    lengths : array_like of shape (B,), optional
        Words of each item, 0 .. N - 1; all N - 1 by default.
    mask : array_like of bool, shape (B, N - 1), optional
        In place of ``lengths``: true where a word is not padding.
    projective, root
        As in ``certus.Dependency``.
    axes : "hm" or "mh"
        Whether ``arc`` is [head, modifier], as everywhere in certus, or [modifier, head], as in some parsers: then it
        is turned. Higher-order scores are as in ``certus.Dependency`` in any case.
    **higher
        Other scores of ``certus.Dependency``, grandparent and so on, with a leading axis, and ``grandparents``.
    workers : int, optional
        Threads; by default as many as there are processors, and fewer where they would not pay.

    Examples
    --------
    >>> arc = [[[0, 5, 1], [0, 0, 4], [0, 3, 0]], [[0, 2, 0], [0, 0, 0], [0, 0, 0]]]
    >>> DependencyBatch(arc, lengths=[2, 1], projective=True).decode().structure.tolist()
    [[-1, 0, 1], [-1, 0, -1]]
    """

    def __new__(
        cls, arc: ArrayLike = (), sibling: ArrayLike | None = None, *, projective: bool = False, **options: Any
    ) -> "DependencyBatch":  # of no arguments where a batch is copied
        beyond = sibling is not None and not projective
        for name in options:
            beyond = beyond or (name not in KERNEL_OPTIONS and options[name] is not None)
        return object.__new__(HigherOrderBatch if beyond and cls is DependencyBatch else cls)

    def __init__(
        self,
        arc: ArrayLike,
        sibling: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        projective: bool = False,
        root: str = "single",
        axes: str = "hm",
        workers: int | None = None,
        **higher: Any,
    ) -> None:
        self.projective = as_bool("projective", projective)
        self.root = one_of("root", root, ("single", "multi"))
        given = turned(arc, axes)
        self.given = _as_floats("arc", given, (FLOAT64, FLOAT32))
        shape = self.given.shape
        if len(shape) != 3 or shape[1] != shape[2] or shape[1] < 1:
            raise InvalidInput(f"arc has shape {shape}; expected (items, words + 1, words + 1).")
        super().__init__(lengths, shape[0], shape[1] - 1, workers, mask=mask)
        self.dtype = type_of(given)
        self._largest = self._checked_arcs()
        self._floored = False  # arcs of no use are forbidden already
        self.sibling: Floats | None = None
        if sibling is not None:
            self.sibling = _as_floats("sibling", sibling)
            if self.sibling.shape != (*shape, shape[1]):
                raise InvalidInput(f"sibling has shape {self.sibling.shape}; expected {(*shape, shape[1])}.")

    @classmethod
    def from_parts(
        cls, n: Sequence[int], arc: Sequence[Any], *, workers: int | None = None, **options: Any
    ) -> "DependencyBatch":
        """The batch of pruned parts: of each argument of ``Dependency.from_parts`` a list over the items.

        ``projective``, ``root``, ``grandparents`` and ``unlisted`` are those of all items.
        """
        lists = {"arc": arc, **{name: options.pop(name) for name in HIGHER_KINDS if options.get(name) is not None}}
        for name, own in lists.items():
            if len(own) != len(n):
                raise InvalidInput(f"{name} has {len(own)} lists; expected one for each of {len(n)} items.")
        items = [
            Dependency.from_parts(words, **{name: own[b] for name, own in lists.items()}, **options)
            for b, words in enumerate(n)
        ]
        return HigherOrderBatch.of(items, tuple(lists)[1:], max(n, default=0), workers)

    @cached_property
    def arc(self) -> Floats:
        """The arc scores in float64."""
        return self.given.astype(FLOAT64, copy=False)

    def _masked(self) -> Floats:
        """A copy of the arc scores with -inf in the cells that are not read."""
        array, size = self.arc.copy(), self.arc.shape[1]
        array[:, :, 0] = -np.inf
        array[:, np.arange(size), np.arange(size)] = -np.inf
        for b in np.flatnonzero(self.lengths < size - 1).tolist():
            array[b, self.lengths[b] + 1 :] = -np.inf
            array[b, :, self.lengths[b] + 1 :] = -np.inf
        return array

    def _checked_arcs(self) -> float:
        """Largest magnitude of an arc score; raises InvalidInput if one is nan or inf."""
        largest, wrong = kernels.eisner.survey(self.given, self.lengths)
        if wrong >= 0:
            as_scores("arc", self._masked())
        return float(largest)

    def __getitem__(self, item: int) -> Dependency:
        """One item as a problem of its own."""
        end = int(self.lengths[item]) + 1
        sibling = None if self.sibling is None else self.sibling[item, :end, :end, :end]
        return Dependency(self.arc[item, :end, :end], sibling, projective=self.projective, root=self.root)

    @property
    def structure_shape(self) -> Index:
        return (self.given.shape[1],)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": self.given.shape[1:]}

    def _unpadded(self, structure: NDArray[Any], item: int) -> NDArray[Any]:
        return structure[: self.lengths[item] + 1]

    def decode(self) -> BatchResult:
        """The best trees: ``structure`` (B, N) padded with -1, ``score`` (B,), ``certificate.exact`` (B,).

        Raises Infeasible, naming the item, if one has no tree.
        """
        kernel: Any = kernels.eisner
        single = self.root == "single"
        heads = np.empty(self.arc.shape[:2], dtype=np.int64)
        value, score = np.empty(len(self)), np.empty(len(self))
        largest = [self._largest]

        def serve(part: slice) -> None:
            arc, sibling, lengths = self._items(part)
            if self.projective:
                answer = heads[part], value[part], score[part]
                largest.append(projective.decode(arc, sibling, lengths, single, *answer, part.start))
            else:
                flat, width = arc.reshape(-1), arc.shape[1]
                kernels.arborescence.best_heads_batch(flat, width, lengths, single, heads[part], value[part])
                score[part] = value[part]

        self._run(serve, 3 if self.projective else 2, together=kernels.lanes.LANES if self.projective else 1)
        bound, tolerance = np.empty(len(self)), np.empty(len(self))
        open_items = np.empty(len(self), dtype=np.bool_)
        proofs = kernel.Proofs(value, score, bound, tolerance, open_items)
        terms = 1 if self.projective and self.sibling is None else 2  # for each node
        scales = [lambda: max(largest), *([self._highest] if self.projective else [])]  # to contraction, masks matter
        for scale in scales:
            measures = kernel.Scale(terms, scale(), WIDTH * EPSILON, EXACT, MASK)
            stuck, unproved = kernel.certify(self.arc, heads, self.lengths, measures, proofs)
            if stuck >= 0:
                self._check_feasible(stuck)
                raise AssertionError(f"item {stuck} has a tree")
            if not unproved:
                break
        found = BatchResult(heads, score, BatchCertificate(self._kind, score, bound, tolerance), self.lengths + 1)
        unproved_items = np.flatnonzero(open_items).tolist() if unproved else []
        beyond = self._out_of_range(terms * self.lengths, max(largest), score)
        unproved_items = [b for b in unproved_items if b not in beyond]
        if unproved_items and not self.projective and not self._floored:
            unproved_items = self._without_masks(found, unproved_items)
        return self._settled(found, sorted([*unproved_items, *beyond]))

    @property
    def _kind(self) -> str:
        return "dynamic program" if self.projective else "combinatorial"

    def _out_of_range(self, terms: Ints, largest: float, score: Floats) -> list[int]:
        """The items whose sums of scores might overflow; ``largest`` is the largest magnitude of a score."""
        if in_range(terms, largest, np.zeros(len(self))).all():
            return []
        return np.flatnonzero(~in_range(terms, self._highest(), score)).tolist()

    def _highest(self) -> float:
        """The greatest score, unread ones included; masks have no part in it."""
        arrays = (self.arc,) if self.sibling is None else (self.arc, self.sibling)
        return float(max(np.nanmax(array, initial=0.0) for array in arrays))

    def _without_masks(self, found: BatchResult, items: list[int]) -> list[int]:
        """Decode items again without arcs that are of no use to them; returns those that are still not proved.

        An arc plus the best possible rest that does not reach the score of the tree that was found is of no use.
        """
        arc, score = self._masked()[items], found.score[items]
        ceiling = self.lengths[items] * np.maximum(arc.max(axis=(1, 2)), 0.0)
        floor = score - ceiling - 1e-6 * (np.abs(score) + ceiling)
        kept = np.where(arc < floor[:, None, None], -np.inf, arc)
        again = DependencyBatch(kept, lengths=self.lengths[items], root=self.root, workers=self.workers)
        again._floored = True
        second = again.decode()
        found.structure[items], found.score[items] = second.structure, second.score
        c, d = found.certificate, second.certificate
        c.bound[items], c.tolerance[items] = d.bound, d.tolerance
        return [items[b] for b in np.flatnonzero(~d.exact).tolist()]

    def log_totals(self) -> Floats:
        return self._sums(0)[0]

    def marginals(self) -> dict[str, Floats]:
        """Under "arcs", the probability of each arc, (B, N, N); 0 in the padding. Raises Infeasible as decode does."""
        return self.log_partition_and_marginals()[1]

    def log_partition_and_marginals(self) -> tuple[Floats, dict[str, Floats]]:
        """Both of them by one call."""
        total, arcs = self._feasible_sums(1, rounded=True)
        return self._as_given(total), {"arcs": self._as_given(arcs)}

    def entropy(self) -> Floats:
        """Entropy, in nats, of the distribution proportional to exp(score) of each item, (B,).

        With arcs alone log Z - E[score], both less the largest score into each word.
        """
        if self.sibling is not None or self._largest > LARGE:
            return super().entropy()
        total, probability = self._feasible_sums(1)
        arc = self._masked()
        most = arc.max(axis=1, initial=-np.inf)
        most[most == -np.inf] = 0.0  # node 0 and the padding
        relative = np.where(probability > 0.0, arc - most[:, None, :], 0.0)
        value = total - most.sum(axis=1)
        found = np.maximum(value - np.einsum("bhm,bhm->b", probability, relative), 0.0)
        for b in np.flatnonzero(value < -matrix_tree.FAR).tolist():
            found[b] = self._named(b, lambda item: self[item].entropy())
        return self._as_given(found)

    def kbest(self, k: int) -> BatchRanks:
        """The k best trees of each item, (B, k, N), with scores (B, k), -inf where an item has fewer.

        With scores of arcs alone a kernel lists those of all items, and results are made for those that are asked for.
        """
        wanted = self._wanted(k)
        if self.sibling is not None or wanted > MOST_RANKS:
            return super().kbest(wanted)
        heads = np.empty((len(self), wanted, self.arc.shape[1]), dtype=np.int64)
        value = np.empty((len(self), wanted))

        def serve(part: slice) -> None:
            single, answer = self.root == "single", (value[part], heads[part])
            if self.projective:
                kernels.projective_ranks.best_trees(self.arc[part], self.lengths[part], single, *answer)
            else:
                flat, width = self.arc[part].reshape(-1), self.arc.shape[1]
                kernels.tree_ranks.best_trees(flat, width, self.lengths[part], single, *answer)

        self._run(serve, 3)
        for b in np.flatnonzero(value[:, 0] == -np.inf)[:1].tolist():
            self._check_feasible(b)
        score, sure = self._ranked_scores(heads, value)

        def results(b: int) -> list[Result[Ints]]:
            if not sure[b]:
                return self._named(b, lambda item: self[item].kbest(wanted))
            problem, own = self[b], heads[b, value[b] > -np.inf, : self.lengths[b] + 1]
            return in_ranks(
                problem.proved(y.copy(), float(value[b, at]), rank=at + 1, scores=problem._terms(y))
                for at, y in enumerate(own)
            )

        found = BatchRanks(heads, score, value > -np.inf, OnAccess(len(self), results))
        for b in np.flatnonzero(~sure).tolist():  # whose scores need more care
            heads[b], score[b], found.exact[b] = -1, -np.inf, False
            for at, result in enumerate(found[b]):
                heads[b, at, : self.lengths[b] + 1] = result.structure
                score[b, at], found.exact[b, at] = result.score, result.certificate.exact
        return found

    def _ranked_scores(self, heads: Ints, value: Floats) -> tuple[Floats, Bools]:
        """Scores (B, k) of ranked trees, from the input; and which items (B,) have all of them proved by ``value``."""
        cells, score = self._masked(), np.full(value.shape, -np.inf)
        highest = cells.max(axis=(1, 2), initial=-np.inf)
        lowest = cells.min(axis=(1, 2), initial=np.inf, where=cells > -np.inf)
        sure = np.zeros(len(self), dtype=np.bool_)
        for b, n in enumerate(self.lengths.tolist()):
            there = value[b] > -np.inf
            extent = Extent(n, float(lowest[b]), float(highest[b])) if n and there.any() else Extent(0, 0.0, 0.0)
            if not together(extent):
                continue
            used = cells[b, heads[b, there, 1 : n + 1], np.arange(1, n + 1)]
            score[b, there] = [math.fsum(row) for row in used.tolist()]
            gap = np.maximum(value[b, there] - score[b, there], 0.0)
            if self.projective:
                error = np.array([of_best(extent, x) for x in value[b, there].tolist()])
            else:
                error = np.full(len(gap), of_sum(2 * n, extent.size))
            close = WIDTH * error <= EXACT * np.minimum(np.abs(score[b, there]), MASK)
            sure[b] = bool((close & (2.0 * gap <= WIDTH * error)).all())
        return score, sure

    def sample(self, k: int, *, seed: int | None = None) -> Ints:
        """k trees of each item drawn with probability proportional to exp(score), (B, k, N), padded with -1."""
        if self.sibling is not None or self._largest > LARGE:
            return super().sample(k, seed=seed)
        rng, wanted = as_generator(seed), self._wanted(k)
        if not self.projective:
            arcs = self._feasible_sums(int(self.root == "single"))[-1]
            return matrix_tree.sample_batch(self.arc, self.lengths, arcs, (wanted, self.root), rng)
        heads, drawn = np.empty((len(self), wanted, self.arc.shape[1]), dtype=np.int64), np.empty(len(self), dtype=bool)
        kernels.projective_sampling.draw(self.arc, self.lengths, self.root == "single", rng, heads, drawn)
        for b in np.flatnonzero(~drawn).tolist():  # of weights that lie too far apart for one chart
            own = self._named(b, lambda item: self[item].sample(wanted, seed=int(rng.integers(2**63))))
            heads[b, :, : self.lengths[b] + 1] = own
        return heads

    def part_marginals(self) -> dict[str, Floats]:
        """By argument, the probability of each arc, (B, N, N), and of each part above arcs, (B, N, N, N) and so on."""
        return self._part_sums()[1]

    def part_sums(self, *, rounded: bool = True) -> tuple[Floats, dict[str, Floats]] | None:
        return self._part_sums(rounded)

    def _part_sums(self, rounded: bool = True) -> tuple[Floats, dict[str, Floats]]:
        names = ("arc",) if self.sibling is None else ("arc", "sibling")
        total, *parts = self._feasible_sums(len(names), rounded=rounded)
        return total, {name: self._as_given(p) if rounded else p for name, p in zip(names, parts, strict=True)}

    def _feasible_sums(self, order: int, *, rounded: bool = False) -> list[Floats]:
        """What ``_sums`` gives; Infeasible if an item has no tree."""
        found = self._sums(order, rounded)
        if -math.inf in found[0].tolist():
            item = int(found[0].argmin())
            self._check_feasible(item)
            raise AssertionError(f"item {item} has a tree")
        return found

    def max_marginals(self) -> dict[str, Floats]:
        """Under "arcs", the best score of a tree with each arc, (B, N, N); -inf where there is none.

        Raises InvalidInput as ``Dependency.max_marginals`` does.
        """
        out = np.empty(self.arc.shape)

        def serve(part: slice) -> None:
            arc, sibling, lengths = self._items(part)
            if self.projective:
                out[part] = projective.max_totals(arc, sibling, lengths, self.root == "single", part.start)
            else:
                out[part] = arborescence.max_marginals_batch(arc, lengths, self.root)

        self._run(serve, 3)
        if self._highest() > LARGE:
            for b in np.flatnonzero((out > -np.inf).any(axis=(1, 2))).tolist():
                end = int(self.lengths[b]) + 1
                out[b, :end, :end] = self[b].max_marginals()["arcs"]
        return {"arcs": self._as_given(out)}

    def _sums(self, order: int, rounded: bool = False) -> list[Floats]:
        """Log-partitions; from order 1 on marginals of arcs, ``rounded`` to the type of the scores where a kernel does
        that; from order 2 on those of pairs of siblings.
        """
        arcs = self.given if rounded or not order else self.arc
        found = dict[int, list[Floats]]()

        def serve(part: slice) -> None:
            if self.projective:
                arc, sibling, lengths = self._items(part)
                sums = projective.log_totals(arc, sibling, lengths, self.root == "single", order, part.start)
                found[part.start] = list(sums[: order + 1])
            else:
                out, values = matrix_tree.sums(arcs[part], self.lengths[part], self.root, marginals=order > 0)
                found[part.start] = [values[2], out][: order + 1]

        self._run(serve, 3, together=1 if self.projective else kernels.lanes.LANES)
        if len(found) == 1:
            return found[0]
        return [np.concatenate(parts) for parts in zip(*[found[start] for start in sorted(found)], strict=True)]

    def _items(self, part: slice) -> tuple[Floats, Floats | None, Ints]:
        return self.arc[part], None if self.sibling is None else self.sibling[part], self.lengths[part]

    def _run(self, serve: Callable[[slice], None], power: int, together: int = 1) -> None:
        """Serve all items in one call, or in one per chunk on threads: so many take n**power steps together.

        Pairs of siblings are read one by one all the same.
        """
        steps = -(-len(self) // together) * float(self.given.shape[1]) ** power
        if self.sibling is not None:
            steps = max(steps, float(self.sibling.size))
        in_parts(serve, len(self), steps, self.workers, together)


class HigherOrderBatch(DependencyBatch):
    """A batch with scores that no kernel takes for all items at once, or of parts in lists: asked item by item."""

    steps_alone = np.inf
    decode, sample, kbest = Batch.decode, Batch.sample, Batch.kbest
    log_totals, entropy, marginals = Batch.log_totals, Batch.entropy, Batch.marginals
    log_partition_and_marginals, max_marginals = Batch.log_partition_and_marginals, Batch.max_marginals
    part_sums = Batch.part_sums

    def __init__(
        self,
        arc: ArrayLike,
        sibling: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        workers: int | None = None,
        projective: bool = False,
        root: str = "single",
        axes: str = "hm",
        grandparents: str = "all",
        **higher: ArrayLike | None,
    ) -> None:
        given = {"arc": turned(arc, axes), "sibling": sibling, **higher}
        arrays = {name: as_numbers(name, values) for name, values in given.items() if values is not None}
        first = arrays["arc"]
        if first.ndim != 3 or first.shape[1] != first.shape[2] or first.shape[1] < 1:
            raise InvalidInput(f"arc has shape {first.shape}; expected (items, words + 1, words + 1).")
        n, options = first.shape[1] - 1, {"projective": projective, "root": root, "grandparents": grandparents}
        own = as_lengths(lengths, len(first), n, mask=mask)
        for name, array in arrays.items():
            one_of("the name of an array", name, ("arc", *HIGHER_KINDS))
            shape = (n + 1, n + 1) if name == "arc" else HIGHER_KINDS[name].shape(n)
            if array.shape != (len(first), *shape):
                raise InvalidInput(f"{name} has shape {array.shape}; expected {(len(first), *shape)}.")
        items = []
        for b, length in enumerate(own.tolist()):
            cut = {}
            for name, array in arrays.items():
                shape = (length + 1,) * 2 if name == "arc" else HIGHER_KINDS[name].shape(length)
                cut[name] = array[b][tuple(map(slice, shape))]
            items.append(_made(b, cut, options))
        self._set(items, tuple(arrays)[1:], n, workers)
        self.dtype = type_of(first)

    @classmethod
    def of(cls, items: list[Dependency], kinds: tuple[str, ...], n: int, workers: int | None) -> "HigherOrderBatch":
        """The batch of some problems of up to n words, with scores of these kinds of parts above arcs."""
        made: HigherOrderBatch = object.__new__(cls)
        made._set(items, kinds, n, workers)
        return made

    def _set(self, items: list[Dependency], kinds: tuple[str, ...], n: int, workers: int | None) -> None:
        self.items, self.kinds, self.n = items, kinds, n
        Batch.__init__(self, [item.n for item in items], len(items), n, workers)

    def __getitem__(self, item: int) -> Dependency:
        return self.items[item]

    @property
    def structure_shape(self) -> Index:
        return (self.n + 1,)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": (self.n + 1, self.n + 1)}

    def part_marginals(self) -> dict[str, Floats]:
        above = {kind: self._padded_parts(kind, HIGHER_KINDS[kind].shape(self.n)) for kind in self.kinds}
        return {"arc": self.marginals()["arcs"], **above}

    def _padded_parts(self, kind: str, shape: Index) -> Floats:
        out = np.zeros((len(self), *shape), dtype=self.dtype)
        for b, own in enumerate(self._each(lambda problem, _: problem.part_marginals(kind))):
            out[b][tuple(map(slice, own.shape))] = own
        return out


def _made(item: int, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Dependency:
    try:
        return Dependency(**arrays, **options)
    except InvalidInput as error:
        raise InvalidInput(f"item {item} of the batch: {error}") from None


def turned(arc: ArrayLike, axes: str) -> NDArray[Any]:
    """Scores of arcs (B, N, N, ...) with the head before the modifier."""
    array = as_numbers("arc", arc)
    return array.swapaxes(1, 2) if one_of("axes", axes, ("hm", "mh")) == "mh" and array.ndim > 2 else array


def _as_floats(name: str, values: ArrayLike, types: tuple[np.dtype[Any], ...] = (FLOAT64,)) -> Floats:
    """Values as a C-contiguous array of one of the types, or of float64, copied only if type or layout asks for it."""
    if type(values) is np.ndarray and values.dtype in types and values.flags.c_contiguous:
        return values
    return np.ascontiguousarray(as_numbers(name, values, np.float64))
