"""certus.Vine: dependency trees cut at arcs longer than a band, in time linear in the sentence."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus import kernels
from certus.certificates.assembling import derivation
from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent, extent_of, rounded_up
from certus.checks import Bools, Floats, Ints, as_positive_int, as_scores, one_of
from certus.dependency.normal_vine import of_vine
from certus.dependency.parts import first_crossing
from certus.dependency.problem import ROOTS, checked_arcs
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph import DynamicProgram, Forest, Hypergraph
from certus.lazy import once
from certus.problem import Index, Limits
from certus.result import Result
from certus.schema import MOST, Field
from certus.serialize import floats_to_json

OUTER_LEFT, OUTER_RIGHT = -2, -3
VIEWS = ("arcs", "outer_head", "outer_modifier")
Indices = NDArray[np.int32]


class Vine(DynamicProgram[Ints]):
    """Projective trees of short arcs; words whose head is further away have an *outer* head, left or right (LR 8.3.3).

    Cutting the arcs longer than ``band`` from a projective tree leaves projective trees of short arcs, side by side.
    A vine parse is such a row of trees. The topmost word of each tree (but node 0) has an outer head to its left or
    right; a word that no short arc passes over on one side, and whose head is not there, may have outer modifiers on
    that side, or not. Parses score a superset of what trees do, so their max-marginals prune a first-order model:
    ``certus.dependency.pruning.long_arcs``.

    A structure is an int64 array (n + 1, 3): the head of each word (-2: outer head to the left, -3: to the right; -1
    for node 0), then 1 where it has an outer modifier to its left, and to its right.

    All questions cost O(n band^2) time and memory, those of the views included only in the cells within the band.
    Certificate kind: "dynamic program".

    Parameters
    ----------
    arc : array_like of shape (n + 1, n + 1)
        ``arc[h, m]``, read where |h - m| <= band.
    outer_head : array_like of shape (n + 1, 2)
        ``outer_head[m, d]``: m has a head more than ``band`` words to its left (d = 0) or right (d = 1).
    outer_modifier : array_like of shape (n + 1, 2)
        ``outer_modifier[h, d]``: h has a modifier more than ``band`` words to its left (d = 0) or right (d = 1).
    band : int
        Length of the longest short arc.
    root : "single" or "multi"
        Node 0 has exactly one modifier within the band, or an outer one and none within; or any number.

    Examples
    --------
    >>> Vine([[0, 5, 9], [0, 0, 4], [0, 3, 0]], [[0, 0]] * 3, [[0, 0]] * 3, band=1).decode().structure[:, 0].tolist()
    [-1, 0, 1]
    """

    name: ClassVar[str] = "vine"

    def __init__(
        self, arc: ArrayLike, outer_head: ArrayLike, outer_modifier: ArrayLike, *, band: int, root: str = "single"
    ) -> None:
        self.arc = checked_arcs(arc)
        self.n = len(self.arc) - 1
        self.band = as_positive_int("band", band)
        self.root = one_of("root", root, ROOTS)
        self.outer_head = as_scores("outer_head", outer_head, (self.n + 1, 2))
        self.outer_modifier = as_scores("outer_modifier", outer_modifier, (self.n + 1, 2))

    @property
    def single(self) -> bool:
        """True if node 0 has exactly one modifier."""
        return self.root == "single"

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": self.arc.shape, "outer_head": (self.n + 1, 2), "outer_modifier": (self.n + 1, 2)}

    def terms(self, structure: ArrayLike) -> list[float]:
        return self._terms(self._checked(structure))

    def _decode(self, limits: Limits) -> Result[Ints]:
        solution = self.solve()  # not checked again: that would take n^2 steps
        y = solution.structure
        return self.proved(y, solution.value, scores=self._terms(y))

    def _terms(self, y: Ints) -> list[float]:
        found = []
        for m, (head, *modifiers) in enumerate(y.tolist()):
            if m > 0:
                found.append(float(self.outer_head[m, -2 - head] if head < 0 else self.arc[head, m]))
            found += [float(self.outer_modifier[m, d]) for d in (0, 1) if modifiers[d]]
        return found

    def _checked(self, structure: ArrayLike) -> Ints:
        """A vine parse as an array; InvalidInput says why it is none."""
        y = np.asarray(structure)
        if y.shape != (self.n + 1, 3) or y.dtype.kind not in "iu":
            raise InvalidInput(f"a vine parse is an array of whole numbers, ({self.n + 1}, 3); found shape {y.shape}.")
        head = y[:, 0].tolist()
        for m in range(1, self.n + 1):
            outer = {OUTER_LEFT: m - self.band - 1 >= 0, OUTER_RIGHT: m + self.band + 1 <= self.n}
            inner = 0 <= head[m] <= self.n and head[m] != m and abs(head[m] - m) <= self.band
            if not inner and not outer.get(head[m], False):
                raise InvalidInput(f"word {m} has head {head[m]}; expected one within {self.band} words, or -2 or -3.")
        # An outer head is in place of node 0, whose arcs may pass over words of no other tree only.
        grounded = [max(h, 0) for h in head]
        arcs = [(min(h, m), max(h, m)) for m, h in enumerate(head) if h >= 0]
        tops = [m for m in range(1, self.n + 1) if head[m] < -1]
        crossing = first_crossing([m if m in tops else h for m, h in enumerate(grounded)])
        covered = any(low < m < high for low, high in arcs for m in tops)
        if head[0] != -1 or crossing is not None or covered or not _reaches_top(head):
            raise InvalidInput(f"heads {head} are not a row of projective trees of short arcs.")
        roots = head[1:].count(0) + int(y[0, 2])
        if self.single and self.n and roots != 1:
            raise InvalidInput(
                f'node 0 has {roots} modifiers, within the band or outer; with root="single" it has one.'
            )
        for h in range(self.n + 1):
            for d in (0, 1):
                if y[h, 1 + d] not in (0, 1) or (y[h, 1 + d] and not self._open(h, d, head, arcs)):
                    raise InvalidInput(f"word {h} cannot have an outer modifier on side {d}.")
        return y.astype(np.int64)

    def _open(self, h: int, d: int, head: Sequence[int], arcs: Sequence[tuple[int, int]]) -> bool:
        """Whether h may have an outer modifier on side d."""
        if not (h - self.band - 1 >= 1 if d == 0 else h + self.band + 1 <= self.n):
            return False
        if any(low < h < high for low, high in arcs):
            return False
        return not (head[h] >= 0 and (head[h] < h if d == 0 else head[h] > h))

    @once
    def extent(self) -> Extent:
        return extent_of(3 * (self.n + 1) if self.n else 0, *self.all_scores())

    def all_scores(self) -> tuple[Floats, ...]:
        return self.arc, self.outer_head, self.outer_modifier

    def without_scores_below(self, least: float) -> Self:
        h, m = np.ogrid[: self.n + 1, : self.n + 1]
        outside = np.array([[v - self.band - 1 >= 0, v + self.band + 1 <= self.n] for v in range(self.n + 1)])
        outside[0, 0] = False
        heads, modifiers = outside.copy(), outside.copy()
        heads[0] = False
        modifiers[: self.band + 2, 0] = False  # node 0 is nobody's modifier
        read = np.abs(h - m) <= self.band, heads, modifiers
        kept = [np.where(r & (a >= least), a, -np.inf) for a, r in zip(self.all_scores(), read, strict=True)]
        return type(self)(*kept, band=self.band, root=self.root)

    def with_scores_rounded_up(self, step: float) -> Self:
        return type(self)(*(rounded_up(scores, step) for scores in self.all_scores()), band=self.band, root=self.root)

    def indicator(self, structure: ArrayLike, view: str) -> Floats:
        out = np.zeros(self.checked_view(view))
        y = self._checked(structure)
        if view == "outer_modifier":
            out[:] = y[:, 1:]
        for m in range(1, self.n + 1):
            if view == "arcs" and y[m, 0] >= 0:
                out[y[m, 0], m] = 1.0
            if view == "outer_head" and y[m, 0] < 0:
                out[m, -2 - y[m, 0]] = 1.0
        return out

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        """An arc or an outer head is required by forbidding the other heads of its word; an outer modifier is not."""
        self.checked_part(view, index, value)
        arrays = {name: array.copy() for name, array in zip(VIEWS, self.all_scores(), strict=True)}
        own = float(arrays[view][index])
        if value == 0:
            arrays[view][index] = -np.inf
        elif view == "outer_modifier" or index[view == "arcs"] == 0:  # nothing is the head of the root
            raise NotSupported(
                f"{view}{list(index)} cannot be required of a vine parse by with_fixed(), only forbidden: ask "
                "subject_to(certus.constraints.require(...))."
            )
        else:
            m = index[1] if view == "arcs" else index[0]
            arrays["arcs"][:, m], arrays["outer_head"][m] = -np.inf, -np.inf
            arrays[view][index] = own
        return type(self)(*arrays.values(), band=self.band, root=self.root)

    @once
    def normal_form(self) -> NormalForm:
        return of_vine(self.arc, self.outer_head, self.outer_modifier, self.band, self.single)

    def normal_structure(self, structure: ArrayLike) -> tuple[Any, ...]:
        return (derivation(self.normal_form(), {view: self.indicator(structure, view) for view in VIEWS}),)

    @once
    def forest(self) -> Forest:
        outer = self.outer_head > -np.inf, self.outer_modifier > -np.inf
        in_ptr, tail_ptr, tail, what = vine_graph(self.arc > -np.inf, *outer, self.band, single=self.single)
        weights = np.zeros(len(what))
        parts = {}
        for kind, (view, scores) in enumerate(
            zip(VIEWS, (self.arc, self.outer_head, self.outer_modifier), strict=True)
        ):
            used = what[:, 0] == kind
            weights[used] = scores.reshape(-1)[what[used, 1]]
            parts[view] = np.where(used, what[:, 1], -1)
        return Forest(Hypergraph(in_ptr, tail_ptr, tail), weights, parts)

    def from_edges(self, edges: Sequence[int]) -> Ints:
        chosen = np.asarray(edges, dtype=np.int64)
        y = np.zeros((self.n + 1, 3), dtype=np.int64)
        y[0, 0] = -1
        cells = {view: cell[chosen][cell[chosen] >= 0] for view, cell in self.forest().parts.items()}
        y[cells["arcs"] % (self.n + 1), 0] = cells["arcs"] // (self.n + 1)
        y[cells["outer_head"] // 2, 0] = -2 - cells["outer_head"] % 2
        y[cells["outer_modifier"] // 2, 1 + cells["outer_modifier"] % 2] = 1
        return y

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        arrays = {view: floats_to_json(scores) for view, scores in zip(VIEWS, self.all_scores(), strict=True)}
        return {**arrays, "band": self.band, "root": self.root}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        arrays = [given[view].scores((None, None)) for view in VIEWS]
        band, root = given["band"].whole(1, MOST), given["root"].one_of(ROOTS)
        return given.made(lambda: cls(*arrays, band=band, root=root))

    def structure_to_json(self, structure: ArrayLike) -> Any:
        return self._checked(structure).tolist()

    def structure_from_json(self, data: Any) -> Ints:
        return self._checked(Field.of(data, "structure").wholes(OUTER_RIGHT, self.n, (self.n + 1, 3)))


def vine_graph(
    allowed: Bools, outer_head: Bools, outer_modifier: Bools, band: int, *, single: bool
) -> tuple[Indices, Indices, Indices, Ints]:
    """The hypergraph of vine parses over what is allowed: in_ptr, tail_ptr, tail, and what each edge uses.

    That is (view, cell): which of the three arrays, and where in it as if it were flat; (-1, -1) for nothing.
    """
    kernel: Any = kernels.vine
    size = kernel.build(allowed, outer_head, outer_modifier, band, single, kernel.room(0, 0))
    graph = kernel.room(*size)
    kernel.build(allowed, outer_head, outer_modifier, band, single, graph)
    in_ptr, tail_ptr, tail, what = graph
    return in_ptr, tail_ptr, tail[: tail_ptr[-1]], what


def _reaches_top(head: Sequence[int]) -> bool:
    """Whether every word leads to node 0 or to an outer head."""
    for m in range(1, len(head)):
        v, steps = m, 0
        while v > 0 and steps <= len(head):
            v, steps = head[v], steps + 1
        if v > 0:
            return False
    return True
