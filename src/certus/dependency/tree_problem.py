"""What problems have in common whose structures are dependency trees, given as heads of words."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Floats, Ints, as_penalties, as_scores
from certus.dependency import parts as P
from certus.problem import Index, Penalties, Problem
from certus.schema import Field


class TreeProblem(Problem[Ints]):
    """Trees over n words: ``structure[m]`` is the head of m, and ``structure[0]`` is -1. Arcs score ``arc[h, m]``."""

    exclusive: ClassVar[Mapping[str, int]] = {"arcs": 0}  # one head per word
    told_apart_by = ("arcs",)
    arc: Floats
    n: int
    root: str
    projective: bool

    @property
    def single(self) -> bool:
        """True if node 0 has exactly one modifier."""
        return self.root == "single"

    @abstractmethod
    def with_arcs(self, arc: Floats) -> Self:
        """The same problem with other scores of arcs, already checked."""

    def checked_heads(self, structure: ArrayLike) -> Ints:
        """The heads of a tree; InvalidInput says why it is none of this problem."""
        return P.checked_heads(structure, self.n, projective=self.projective, single=self.single)

    def all_structures(self) -> Iterator[Ints]:
        return P.all_heads(self.arc > -np.inf, projective=self.projective, single=self.single)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": self.arc.shape}

    def penalised(self, penalties: Penalties | None) -> Floats:
        """The arc scores with penalties added."""
        given = as_penalties(penalties)
        if not given:
            return self.arc
        for view in given:
            self.checked_view(view)
        return self.arc + as_scores("penalty of arcs", given["arcs"], self.arc.shape)

    def indicator(self, structure: ArrayLike, view: str) -> Floats:
        out = np.zeros(self.checked_view(view))
        out[self.checked_heads(structure)[1:], np.arange(1, self.n + 1)] = 1.0
        return out

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        self.checked_view(view)
        return self.with_arcs(P.with_fixed_arc(self.arc, index, value))

    def structure_to_json(self, structure: ArrayLike) -> list[int]:
        return [int(h) for h in np.asarray(structure)]

    def structure_from_json(self, data: Any) -> Ints:
        return self.checked_heads(Field.of(data, "structure").wholes(-1, self.n, (self.n + 1,)))
