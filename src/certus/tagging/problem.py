"""Sequence tagging with unary, bigram and trigram scores (LR 2.1.1, 2.2.1)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus import kernels
from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent, extent_of, rounded_up
from certus.certificates.sound import measured, summed
from certus.checks import Floats, Ints, as_numbers, as_penalties, as_scores, one_of
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.hypergraph import DynamicProgram, Forest
from certus.lazy import once
from certus.problem import Factors, Index, Limits, Penalties
from certus.result import Result, Solution
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.tagging.lattice import spell_out
from certus.tagging.normal import Lattice, lattice
from certus.tagging.tables import Table, as_names, as_table, flattened, work, writeable
from certus.threads import long_call

MOST_PAIRS = 1 << 26  # of tags, that a certificate is checked over
MOST_SAVED = 1 << 20  # tags of a problem in a file


class Tagging(DynamicProgram[Ints]):
    r"""The best sequence of n tags out of T, scored by single tags, pairs and triples.

    A sequence t_0 .. t_{n-1} scores

        sum_i unary[i, t_i]  +  sum_i bigram[t_{i-1}, t_i]  +  sum_i trigram[t_{i-2}, t_{i-1}, t_i].

    Without a boundary tag the sums run over the pairs and triples inside the sequence. A table whose sides are T + 1
    instead of T has a boundary tag, number T: two before the first tag and one after the last, t_{-2} = t_{-1} =
    t_n = T. The sums then run over i = 0 .. n, so that ``bigram[T, t]`` scores a start with t and ``bigram[t, T]`` an
    end with t. The two tables need not be alike in this.

    Exact. Decoding takes O(n T^2) with bigrams and O(n T^3) with trigrams; only tags whose unary score is not -inf
    count towards T, so a tag dictionary makes it fast. Certificate kind: "dynamic program".

    Parameters
    ----------
    unary : array_like of shape (n, T)
        ``-inf`` forbids a tag at a position. n may be 0.
    bigram : array_like of shape (T, T) or (T + 1, T + 1), optional
        ``bigram[a, b]`` for a followed by b. With a leading axis, scores per position: ``bigram[i, a, b]`` for b at
        position i, in shape (n, T, T), row 0 not read, or (n + 1, T + 1, T + 1), row n for the end.
    trigram : array_like of shape (T, T, T) or (T + 1, T + 1, T + 1), optional
        ``trigram[a, b, c]`` for a, b and c in a row. With a leading axis as above: ``trigram[i, a, b, c]`` for c at
        position i, in shape (n, T, T, T), rows 0 and 1 not read, or (n + 1, T + 1, T + 1, T + 1).
    tags : sequence of str, optional
        Names of the tags, for reading results; ``names`` turns a structure into them.

    Notes
    -----
    Structures are int64 arrays of shape (n,). The one view is "tags", of shape (n, T).

    Examples
    --------
    >>> Tagging([[0, 1], [0, 0], [1, 0]], bigram=[[2, 0], [0, 0]]).decode().structure.tolist()
    [0, 0, 0]
    """

    name = "tagging"
    exclusive: ClassVar[Mapping[str, int]] = {"tags": 1}
    told_apart_by = ("tags",)

    def __init__(
        self,
        unary: ArrayLike,
        bigram: ArrayLike | Table | None = None,
        trigram: ArrayLike | Table | None = None,
        *,
        tags: Sequence[str] | None = None,
    ) -> None:
        self.unary = writeable(as_scores("unary", unary, (None, None)))
        self.n, self.size = self.unary.shape
        if self.size < 1:
            raise InvalidInput(f"unary has shape {self.unary.shape}; expected at least one tag.")
        self._bigram = self._table("bigram", 2, bigram)
        self._trigram = self._table("trigram", 3, trigram)
        self.tags = as_names(tags, self.size)
        self._extent: Extent | None = None  # once it is asked for

    def _table(self, name: str, order: int, values: ArrayLike | Table | None) -> Table | None:
        """A table that was checked before is shared as it is."""
        if values is None or isinstance(values, Table):
            return values
        return as_table(name, order, values, self.n, self.size, np.array([self.n]), batch=False)

    @property
    def bigram(self) -> Floats | None:
        """The bigram scores as given, or None."""
        return None if self._bigram is None else self._bigram.scores

    @property
    def trigram(self) -> Floats | None:
        """The trigram scores as given, or None."""
        return None if self._trigram is None else self._trigram.scores

    def names(self, structure: ArrayLike) -> list[str]:
        """Names of the tags of a structure."""
        if self.tags is None:
            raise InvalidInput("this tagging problem has no names of tags; give it tags=(...).")
        return [self.tags[t] for t in self._checked(structure)]

    def __repr__(self) -> str:
        tables = [f", {n}" for n, table in (("bigram", self._bigram), ("trigram", self._trigram)) if table is not None]
        return f"Tagging({self.n} positions, {self.size} tags{''.join(tables)})"

    # -- structures ------------------------------------------------------------------------------------------------

    def _checked(self, structure: ArrayLike) -> list[int]:
        array = as_numbers("structure", structure)
        if array.shape != (self.n,) or (array.size and array.dtype.kind not in "iu"):
            raise InvalidInput(
                f"structure has shape {array.shape} and type {array.dtype}; expected {self.n} whole numbers."
            )
        sequence: list[int] = array.tolist()
        if sequence and not 0 <= min(sequence) <= max(sequence) < self.size:
            i, t = next((i, t) for i, t in enumerate(sequence) if not 0 <= t < self.size)
            raise InvalidInput(f"structure[{i}] is {t}; expected a tag from 0 to {self.size - 1}.")
        return sequence

    def terms(self, structure: ArrayLike) -> list[float]:
        return self._terms(np.array(self._checked(structure), dtype=np.int64))

    def _terms(self, structure: Ints) -> list[float]:
        """The same for what is known to be a structure of this problem."""
        padded = np.full(self.n + 3, self.size)
        padded[2:-1] = structure  # tag i is at i + 2
        scores: list[float] = self.unary[np.arange(self.n), padded[2:-1]].tolist()
        for table in (self._bigram, self._trigram):
            if table is not None:
                first, last = table.scored_from_to(self.n)
                back = range(2 - table.order + 1, 3)  # where the tags that end at position 0 stand
                cells = tuple(padded[first + k : last + k] for k in back)
                scores += table.scores[(np.arange(first, last), *cells) if table.step else cells].tolist()
        return scores

    def all_structures(self) -> Iterator[Ints]:
        for sequence in product(range(self.size), repeat=self.n):
            yield np.array(sequence, dtype=np.int64)

    def all_scores(self) -> tuple[Floats, ...]:
        tables = (self._bigram, self._trigram)
        return (self.unary, *(table.scores for table in tables if table is not None))

    def extent(self) -> Extent:
        if self._extent is not None:
            return self._extent
        length = self.n
        for table in (self._bigram, self._trigram):
            if table is not None:
                first, last = table.scored_from_to(self.n)
                length += last - first
        self._extent = extent_of(length, *self.all_scores())
        return self._extent

    def without_scores_below(self, least: float) -> Self:
        arrays = [None if t is None else t.at_least(least, self.n) for t in (self._bigram, self._trigram)]
        return type(self)(np.where(self.unary < least, -np.inf, self.unary), *arrays, tags=self.tags)

    def with_scores_rounded_up(self, step: float) -> Self:
        tables = (self._bigram, self._trigram)
        kept = [None if t is None else replace(t, scores=rounded_up(t.scores, step)) for t in tables]
        return type(self)(rounded_up(self.unary, step), *kept, tags=self.tags)

    # -- questions -------------------------------------------------------------------------------------------------

    def _run(
        self, kernel: Callable[..., None], penalties: Penalties | None, value: Floats, out: Any, *, powers: bool = False
    ) -> None:
        """Call a kernel on a batch of one; ``powers`` if it sums."""
        lengths = np.array([self.n], dtype=np.int64)
        unary = self._penalised(penalties)[None]
        tables = flattened(self._bigram, self._trigram, powers=powers)
        long_call(work(unary, tables[0], sums=powers), kernel, tables, unary, lengths, (0, 1), value, out)

    def _penalised(self, penalties: Penalties | None) -> Floats:
        unary = self.unary
        for view, penalty in as_penalties(penalties).items():
            shape = self.checked_view(view)
            if np.shape(penalty) != shape:
                raise InvalidInput(f'penalty for view "{view}" has shape {np.shape(penalty)}; expected {shape}.')
            unary = unary + penalty
        return np.ascontiguousarray(unary)

    def _decode(self, limits: Limits) -> Result[Ints]:
        best = self.solve()
        return self.proved(best.structure, best.value, scores=self._terms(best.structure))

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        structure = np.full((1, self.n), -1, dtype=np.int64)
        value = np.empty(1)
        self._run(kernels.tagging.viterbi, penalties, value, structure)
        self._must_be_feasible(value, penalties)
        return Solution(structure[0], float(value[0]))

    @summed
    def log_partition(self) -> float:
        value = np.empty(1)
        self._run(kernels.tagging.total, None, value, np.empty(0), powers=True)
        self._must_be_feasible(value, None)
        return float(value[0])

    @summed
    def entropy(self) -> float:
        value, entropy = np.empty(1), np.empty(1)
        self._run(kernels.tagging.total, None, value, entropy, powers=True)
        self._must_be_feasible(value, None)
        return float(entropy[0])

    @summed
    def marginals(self) -> dict[str, Floats]:
        value, out = np.empty(1), np.zeros((1, *self.unary.shape))
        self._run(kernels.tagging.marginals, None, value, out, powers=True)
        self._must_be_feasible(value, None)
        return {"tags": out[0]}

    @summed
    def part_marginals(self, kind: str) -> Floats:
        """The expected uses of each cell of an array of scores, "unary", "bigram" or "trigram", under exp(score).

        They are in the shape of the scores; those of tables are found over the lattice of all sequences.
        """
        tables = {"bigram": self.bigram, "trigram": self.trigram}
        given = {"unary": self.unary, **{name: scores for name, scores in tables.items() if scores is not None}}
        if one_of("kind", kind, tuple(given)) == "unary":
            return self.marginals()["tags"]
        form, value = self._lattice.form, np.empty(1)
        uses = np.empty((1, len(form.scores)))
        kernels.part_sums.part_sums(form.spaces[0], form.scores[None], value, uses)
        self._must_be_feasible(value, None)
        cells = np.append(uses[0], 0.0)[self._lattice.cells]
        ends = np.cumsum([scores.size for scores in given.values()])[:-1]
        found = dict(zip(given, np.split(cells, ends), strict=True))
        return found[kind].reshape(given[kind].shape)

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        value, out = np.empty(1), np.full((1, *self.unary.shape), -np.inf)
        self._run(kernels.tagging.max_marginals, penalties, value, out)
        self._must_be_feasible(value, penalties)
        return {"tags": out[0]}

    # -- what the relaxation engine needs --------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        return {"tags": (self.n, self.size)}

    def indicator(self, structure: Ints, view: str) -> Floats:
        used = np.zeros(self.checked_view(view))
        used[np.arange(self.n), self._checked(structure)] = 1.0
        return used

    def sequence(self, structure: Ints, view: str) -> Sequence[int]:
        """The tags, word by word."""
        cells: list[int] = np.flatnonzero(self.indicator(structure, view)).tolist()
        return cells

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        self.checked_part(view, index, value)
        i, t = index
        unary = self.unary.copy()
        if value:
            unary[i] = -np.inf
            unary[i, t] = self.unary[i, t]
        else:
            unary[i, t] = -np.inf
        return type(self)(unary, self._bigram, self._trigram, tags=self.tags)

    def reference_maximum(self, penalties: Penalties | None = None) -> float:
        *_, last = self._reference_sweep(penalties)
        return float(last.max())

    def _reference_sweep(self, penalties: Penalties | None) -> Iterator[Floats]:
        """Viterbi in numpy over all pairs of tags: best[b, c] of the sequences that end in b, c at 0 .. n."""
        unary = self._penalised(penalties)
        T = self.size
        if (T + 1) ** 2 > MOST_PAIRS:
            raise NotSupported(f"the check of {T} tags goes over {(T + 1) ** 2} pairs; expected at most {MOST_PAIRS}.")
        best = np.full((T + 1, T + 1), -np.inf)
        best[T, T] = 0.0
        for i in range(self.n + 1):
            step = np.full(T + 1, -np.inf)
            if i < self.n:
                step[:T] = unary[i]
            else:
                step[T] = 0.0
            scores = np.zeros((T + 1, T + 1, T + 1))
            for table in (self._bigram, self._trigram):
                if table is not None and table.scored(i, self.n):
                    side = slice(table.side)
                    first = slice(None) if table.order == 2 else side  # pairs are scored whatever came before them
                    scores[first, side, side] += table.at(i)
            best = (best[:, :, None] + scores).max(axis=0) + step
            yield best

    @cached_property
    def _lattice(self) -> Lattice:
        return lattice(self.unary, self._bigram, self._trigram)

    def normal_form(self) -> NormalForm:
        return self._lattice.form

    def normal_structure(self, structure: Ints) -> tuple[list[int]]:
        edges = self._lattice.edges(self._checked(structure))
        if edges is None:
            raise InvalidInput("the structure uses a forbidden part; its score is -inf.")
        return (edges,)

    def factors(self) -> Factors | None:
        if not self.n:
            return None  # what the boundary scores is over no position
        tables = [table for table in (self._bigram, self._trigram) if table is not None]
        return Factors(self.unary, tuple(own for table in tables for own in table.by_position(self.n)))

    def _must_be_feasible(self, value: Floats, penalties: Penalties | None) -> None:
        if value[0] > -np.inf:
            return
        unary = self._penalised(penalties)
        for i in range(self.n):
            if not (unary[i] > -np.inf).any():
                raise Infeasible(f"position {i} has no tag: all {self.size} unary scores there are -inf. Allow one.")
        stuck = next(i for i, best in enumerate(self._reference_sweep(penalties)) if not (best > -np.inf).any())
        where = f"position {stuck} has no tag" if stuck < self.n else f"no sequence of {self.n} tags may end"
        raise Infeasible(f"{where}: every bigram or trigram that leads there is -inf. Allow one.")

    # -- the lattice, spelt out ------------------------------------------------------------------------------------

    @once
    def forest(self) -> Forest:
        return spell_out(self.unary, self._bigram, self._trigram)

    def from_edges(self, edges: Sequence[int]) -> Ints:
        cells = self.forest().parts["tags"][np.asarray(edges, dtype=np.int64)]
        structure: Ints = cells[cells >= 0][::-1] % self.size
        return structure

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"positions": self.n, "size": self.size, "unary": floats_to_json(self.unary)}
        for name, scores in (("bigram", self.bigram), ("trigram", self.trigram)):
            if scores is not None and scores.size:
                data[name] = floats_to_json(scores)
        if self.tags is not None:
            data["tags"] = list(self.tags)
        return data

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        n, size = given["positions"].whole(), given["size"].whole(1, MOST_SAVED)
        unary = given["unary"].scores((n, size))
        tables = [given.maybe(name) for name in ("bigram", "trigram")]
        scores = [None if table is None else _table(table, order) for order, table in enumerate(tables, start=2)]
        names = given["tags"].texts() if "tags" in given else None
        return given.made(lambda: cls(unary, *scores, tags=names))

    def structure_to_json(self, structure: Ints) -> Any:
        return self._checked(structure)

    def structure_from_json(self, data: Any) -> Ints:
        tags = Field.of(data, "structure").wholes(0, self.size - 1, (self.n,))
        return np.array(self._checked(tags), dtype=np.int64)


def _table(field: Field, order: int) -> Floats:
    """Scores of tag pairs or triples, the same everywhere or for each position, with a boundary tag or without."""
    depth, at = 0, field.value
    while isinstance(at, list) and at and depth <= order:
        depth, at = depth + 1, at[0]
    return field.scores((None,) * (order if depth <= order else order + 1))
