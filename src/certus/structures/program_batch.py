"""Batches of dynamic programs over arrays: items of the same shape are answered by one call of a kernel."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certus import kernels
from certus.certificates.rounding import Extent, of_best, total
from certus.certificates.sound import LARGE, together
from certus.checks import Floats, Ints, as_generator
from certus.errors import Infeasible
from certus.result import BatchResult, Certificate, certified
from certus.structures.array_batch import ArrayBatch
from certus.structures.program import ArrayProgram
from certus.threads import in_order, long_call, thread_count


class Group(NamedTuple):
    """Items of one layout, with the scores of their parts; ``program`` is the problem of the first of them."""

    items: Ints
    program: ArrayProgram[Any]
    scores: Floats  # (b, P)
    extents: list[Extent]

    @property
    def graph(self) -> Any:
        """What kernels take."""
        layout, kernel = self.program.layout, kernels.programs
        spelt = layout.hypergraph
        return kernel.Program(spelt.in_ptr, spelt.tail_ptr, spelt.tail, layout.parts)

    @property
    def steps(self) -> float:
        """About how many steps a sweep takes."""
        return 10.0 * len(self.items) * float(self.program.layout.parts.size)


class ProgramBatch(ArrayBatch):
    """A batch of dynamic programs; items whose scores need more care are asked by themselves."""

    def program_of(self, item: int) -> ArrayProgram[Any]:
        """The dynamic program that an item is."""
        program: Any = self[item]
        found: ArrayProgram[Any] = program
        return found

    def _groups(self, most: float) -> tuple[list[Group], list[int]]:
        """The items by layout, and those that are asked by themselves: with scores above ``most`` or far apart."""
        places: dict[Any, list[int]] = {}
        for b in range(len(self)):
            places.setdefault((self.sides(b), repr(self.options_of(b))), []).append(b)
        groups, alone = [], list[int]()
        for items in places.values():
            program = self._named(items[0], self.program_of)
            scores, extents = self._scores(items, program)
            plain = np.array([together(e) and e.size <= most for e in extents])
            alone += np.array(items)[~plain].tolist()
            if plain.any():
                kept = [e for e, fine in zip(extents, plain, strict=True) if fine]
                own = scores if plain.all() else scores[plain]
                groups.append(Group(np.array(items)[plain], program, own, kept))
        return groups, sorted(alone)

    def _scores(self, items: list[int], program: ArrayProgram[Any]) -> tuple[Floats, list[Extent]]:
        """The scores (b, P) of the parts of items, of which some are not read, and the extents of the others."""
        sides, rows = self.sides(items[0]), []
        for name in self.arrays:
            array = self.arrays[name]
            if self.is_shared(name):
                rows.append(np.broadcast_to(array.reshape(1, -1), (len(items), array.size)))
            else:
                rows.append(array[(items, *self.cut(name, sides))].reshape(len(items), -1))
        whole = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)
        scores = np.ascontiguousarray(whole, dtype=np.float64)
        lowest, highest = np.empty(len(items)), np.empty(len(items))
        kernels.programs.survey(scores, program.layout.read, lowest, highest)
        for k in np.flatnonzero(highest == np.inf)[:1].tolist():
            self._named(items[k], self.__getitem__)  # which says what is wrong
        ends = zip(lowest.tolist(), highest.tolist(), strict=True)
        return scores, [Extent(program.layout.longest, *pair) for pair in ends]

    def _ask(self, most: float, kernel: Callable[..., None], outs: Callable[[Group], tuple[Any, ...]]) -> "_Answers":
        """Run a kernel over each group, with arguments made for it after graph, scores and values, on threads."""
        groups, alone = self._groups(most)
        made = [(group, np.empty(len(group.items)), outs(group)) for group in groups]

        def serve(one: tuple[Group, Floats, tuple[Any, ...]]) -> None:
            group, value, arrays = one
            long_call(group.steps, kernel, group.graph, group.scores, value, *arrays)

        threads = thread_count(self.workers, sum(group.steps for group in groups))
        list(in_order(serve, made, min(threads, max(len(made), 1))))
        return _Answers(made, alone)

    # -- questions -------------------------------------------------------------------------------------------------

    def decode(self) -> BatchResult:
        found = self._ask(
            np.inf,
            kernels.programs.decode,
            lambda g: (np.empty((len(g.items), g.program.layout.longest + 1), dtype=np.int64),),
        )
        self._check(found)
        rows: list[Any] = [None] * len(self)
        proofs: list[Any] = [None] * len(self)
        for group, value, (parts,) in found.made:
            for k, b in enumerate(group.items.tolist()):
                own = parts[k][parts[k] >= 0]
                rows[b] = group.program.rows(own[own < group.program.layout.cells])
                proofs[b] = self._proof(group, k, own, float(value[k]))
        for b in [b for b in range(len(self)) if proofs[b] is None or proofs[b].reason is not None]:
            alone = self._named(b, lambda b: self[b].decode())
            rows[b], proofs[b] = self._row(alone.structure), alone.certificate
        return self._result(rows, proofs)

    def _proof(self, group: Group, k: int, parts: Ints, value: float) -> Certificate:
        used = group.scores[k, parts].tolist()
        return certified(lambda: used, total(used), value, of_best(group.extents[k], value), kind=self.kind)

    def sample(self, k: int, *, seed: int | None = None) -> Ints:
        wanted, rng = self._wanted(k), as_generator(seed)
        out = np.full((len(self), wanted, *self.structure_shape), -1, dtype=np.int64)
        found = self._ask(
            LARGE,
            kernels.programs.draw,
            lambda g: (
                np.random.default_rng(rng.integers(2**63)),
                np.empty((len(g.items), wanted, g.program.layout.longest + 1), dtype=np.int64),
            ),
        )
        self._check(found)
        for group, _, (_, parts) in found.made:
            cells = np.where(parts < group.program.layout.cells, parts, -1)
            for j, b in enumerate(group.items.tolist()):
                out[b] = self._padded([self._row(group.program.rows(own[own >= 0])) for own in cells[j]])
        for b in found.alone:
            drawn = self._named(b, lambda b: self[b].sample(wanted, seed=int(rng.integers(2**63))))
            out[b] = self._padded([self._row(y) for y in drawn])
        return out

    def log_totals(self) -> Floats:
        found = self._ask(LARGE, kernels.programs.sums, lambda g: (np.empty(0), np.empty((0, 1))))
        return self._with_alone(found.values(len(self)), {}, found.alone)[0]

    def entropy(self) -> Floats:
        found = self._ask(LARGE, kernels.programs.sums, lambda g: (np.empty(len(g.items)), np.empty((0, 1))))
        self._check(found)
        out = np.empty(len(self))
        for group, _, (entropy, _) in found.made:
            out[group.items] = np.maximum(entropy, 0.0)
        for b in found.alone:
            out[b] = self._named(b, lambda b: self[b].entropy())
        return self._as_given(out)

    def marginals(self) -> dict[str, Floats]:
        return self.log_partition_and_marginals()[1]

    def log_partition_and_marginals(self) -> tuple[Floats, dict[str, Floats]]:
        """Both of them by one sweep."""
        total_, parts = self._expected()
        return self._as_given(total_), {self.view: parts[next(iter(self.arrays))]}

    def part_marginals(self) -> dict[str, Floats]:
        return self._expected()[1]

    def _expected(self) -> tuple[Floats, dict[str, Floats]]:
        """Log-partitions, and the expected uses of the cells of all arrays."""
        found = self._ask(LARGE, kernels.programs.sums, lambda g: (np.empty(0), np.empty(g.scores.shape)))
        self._check(found)
        total_ = found.values(len(self))
        shapes = {name: array.shape if self.is_shared(name) else array.shape[1:] for name, array in self.arrays.items()}
        out = {name: np.zeros((len(self), *shape), dtype=self.dtype) for name, shape in shapes.items()}
        for group, _, (_, counts) in found.made:
            self._place(out, group.items, group.program, counts)
        return self._with_alone(total_, out, found.alone)

    def _with_alone(self, total_: Floats, out: dict[str, Floats], alone: list[int]) -> tuple[Floats, dict[str, Floats]]:
        """Log-partitions and expected uses, with those of items that are asked by themselves."""
        for b in alone:
            total_[b] = self._named(b, lambda b: self[b].log_partition())
            if out and total_[b] == -np.inf:
                self._check_feasible(b)
            program = self.program_of(b)
            for name in out:
                own = self._named(b, partial(_expected_uses, program, name))
                out[name][b] = 0.0
                out[name][b][tuple(map(slice, own.shape))] = own
        return total_, out

    def _place(self, out: dict[str, Floats], items: Ints, program: ArrayProgram[Any], parts: Floats) -> None:
        """Values (b, P) of parts into padded arrays by name."""
        start, sides = 0, self.sides(int(items[0]))
        for name, array in program.arrays.items():
            if name in out:
                cut = () if self.is_shared(name) else self.cut(name, sides)
                own = parts[:, start : start + array.size].reshape(len(items), *array.shape)
                out[name][(items, *cut)] = own
            start += array.size

    def max_marginals(self) -> dict[str, Floats]:
        found = self._ask(
            LARGE, kernels.programs.max_totals, lambda g: (np.empty((len(g.items), g.program.layout.cells)),)
        )
        name = next(iter(self.arrays))
        out = {name: np.full(self.first.shape, -np.inf, dtype=self.dtype)}
        for group, _, (best,) in found.made:
            self._place(out, group.items, group.program, best)
        for b in found.alone:
            own = self._named(b, lambda b: self[b].max_marginals())[self.view]
            out[name][b][tuple(map(slice, own.shape))] = own
        return {self.view: out[name]}

    # -- errors ----------------------------------------------------------------------------------------------------

    def _check(self, found: "_Answers") -> None:
        """Raise Infeasible for the first item that has no structure."""
        lost = [b for group, value, _ in found.made for b in group.items[value == -np.inf].tolist()]
        if lost:
            self._check_feasible(min(lost))
            raise Infeasible(f"item {min(lost)} of the batch has no structure.")


def _expected_uses(program: ArrayProgram[Any], kind: str, item: int) -> Floats:
    return program.part_marginals(kind)


class _Answers(NamedTuple):
    made: list[tuple[Group, Floats, tuple[Any, ...]]]
    alone: list[int]

    def values(self, items: int) -> Floats:
        """The values of all items, in their order."""
        out = np.empty(items)
        for group, value, _ in self.made:
            out[group.items] = value
        return out
