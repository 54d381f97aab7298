"""Labels of discrete variables, and what they score alone and together: what factor graphs and their pieces share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.rounding import Extent, extent_of
from certus.checks import Floats, Ints, as_numbers, as_scores
from certus.errors import InvalidInput
from certus.factors.elimination import Bucket, Scope, eliminated, neighbours
from certus.lazy import once
from certus.problem import Problem

Given = tuple[Sequence[int], ArrayLike, str]  # variables, scores, and what to call the table


class Labelled(Problem[Ints]):
    """Variables with labels, scored by ``unary`` (n, K) and by ``tables``, each over the variables of its scope."""

    exclusive: ClassVar[Mapping[str, int]] = {"labels": 1}

    def __init__(self, unary: ArrayLike, tables: Iterable[Given]) -> None:
        self.unary = as_scores("unary", unary, (None, None))
        self.n, self.size = self.unary.shape
        if self.n and not self.size:
            raise InvalidInput("unary has no columns; every variable needs at least one label.")
        given = list(tables)
        self.scopes = tuple(self._scope(scope, name) for scope, _, name in given)
        self.tables = tuple(
            as_scores(name, table, (self.size,) * len(scope))
            for scope, (_, table, name) in zip(self.scopes, given, strict=True)
        )

    def _scope(self, scope: Sequence[int], name: str) -> Scope:
        variables = tuple(scope)
        whole = all(isinstance(v, int | np.integer) and not isinstance(v, bool) and 0 <= v < self.n for v in variables)
        if not whole or not variables or len(set(variables)) != len(variables):
            raise InvalidInput(f"{name} is over variables {variables}; expected different ones of 0..{self.n - 1}.")
        return tuple(int(v) for v in variables)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n} variables, {self.size} labels, {len(self.tables)} tables)"

    # -- structures ------------------------------------------------------------------------------------------------

    def checked_labels(self, structure: Any) -> list[int]:
        """The labels of a structure; InvalidInput if it is none."""
        labels = as_numbers("structure", structure)
        if labels.shape != (self.n,) or (self.n and labels.dtype.kind not in "iu"):
            raise InvalidInput(f"labels have shape {labels.shape}, of {labels.dtype}; expected {self.n} whole numbers.")
        out: list[int] = labels.tolist()
        if self.n and not 0 <= min(out) <= max(out) < self.size:
            v, label = next((v, label) for v, label in enumerate(out) if not 0 <= label < self.size)
            raise InvalidInput(f"variable {v} has label {label}; labels are 0..{self.size - 1}.")
        return out

    def terms(self, structure: Ints) -> list[float]:
        labels = self.checked_labels(structure)
        scores: list[float] = self.unary[np.arange(self.n), labels].tolist()
        of_tables: list[float] = self._cells[self.cells_used(labels)].tolist()
        return scores + of_tables

    @cached_property
    def starts(self) -> list[int]:
        """Where the cells of each table begin, all tables in one row, and where the last ends."""
        return [0, *np.cumsum([table.size for table in self.tables]).tolist()]

    @cached_property
    def _cells(self) -> Floats:
        """Of all tables in one row."""
        return np.concatenate([np.zeros(0), *(table.reshape(-1) for table in self.tables)])

    @cached_property
    def _places(self) -> tuple[Ints, Ints, Ints]:
        """Of the variables of all scopes, one after the other: which, their strides; and where each scope begins."""
        strides = [self.size**k for scope in self.scopes for k in reversed(range(len(scope)))]
        variables = [v for scope in self.scopes for v in scope]
        begins = np.cumsum([0, *map(len, self.scopes)])[:-1]
        return np.array(variables, dtype=np.int64), np.array(strides, dtype=np.int64), begins

    def cells_used(self, labels: Sequence[int]) -> Ints:
        """The cell of each table that labels use, all tables in one row."""
        if not self.scopes:
            return np.empty(0, dtype=np.int64)
        variables, strides, begins = self._places
        within: Any = np.add.reduceat(np.asarray(labels, dtype=np.int64)[variables] * strides, begins)
        used: Ints = within + self.starts[:-1]
        return used

    def labels_used(self, structure: Ints) -> Floats:
        """The labels of a structure, as 0 and 1."""
        used = np.zeros((self.n, self.size))
        used[np.arange(self.n), self.checked_labels(structure)] = 1.0
        return used

    def all_structures(self) -> Iterator[Ints]:
        for labels in product(*(domain.tolist() for domain in self.domains)):
            yield np.array(labels, dtype=np.int64)

    @once
    def extent(self) -> Extent:
        return extent_of(self.n + len(self.tables), self.unary, *self.tables)

    def all_scores(self) -> tuple[Floats, ...]:
        return (self.unary, *self.tables)

    @cached_property
    def domains(self) -> list[Ints]:
        """The labels that each variable has."""
        return [np.flatnonzero(row > -np.inf) for row in self.unary]

    def eliminated(self, limit: float) -> list[Bucket] | None:
        """How the variables are eliminated, if no bucket has more cells than that."""
        return eliminated(neighbours(self.n, self.scopes), [max(len(domain), 1) for domain in self.domains], limit)
