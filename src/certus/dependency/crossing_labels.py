"""Trees with crossing arcs whose words have labels that head automata read (LR 6 with the labels of DEP 5.5).

Every word chooses a label, where automata depend on it a head with its label, and labelled modifiers, as its automata
score them: a dynamic program, word by word. The labelled spanning tree and rows tie the choices: a labelled arc of the
tree is taken by its head, the label of a word is the one that it chose, and the head that it supposes takes it.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent
from certus.checks import Bools, Floats, Ints
from certus.dependency.automata_items import Edge, Items, OverItems, Slot
from certus.dependency.head_automata import NO_HEAD
from certus.dependency.labelled_automata import NodeAutomata, ReadLabels
from certus.dependency.labels import LabelledDependency, LabelledTree
from certus.dependency.part_kinds import LEFT, RIGHT
from certus.problem import Index, Limits, Penalties
from certus.relax import branch
from certus.relax.normal_form import RelaxedForm
from certus.relax.system import Entries, Relaxation, Rows
from certus.result import Result, Solution


class NodeChoice(NamedTuple):
    """The node that each word chose to be, the node that it supposes as its head (-1 for none), and pairs taken."""

    own: Ints
    above: Ints
    taken: Bools


class ChoiceItems(Items):
    """The hypergraph of all choices: words one after the other; a word as one of its nodes; a side state by state.

    Cells that edges name: that of a pair of nodes where one takes the other, and as many on, where one supposes the
    other as its head; without heads, node 0.
    """

    def __init__(self, automata: NodeAutomata) -> None:
        self._begin(automata)
        size, last = len(automata.arc), -1
        self.scores = np.concatenate((self.scores, np.zeros(size * size)))
        for word, nodes in enumerate(self.nodes):
            choice = self._vertex(2 * self.n + 4)
            for h in nodes:
                for g in automata.heads_of(h):
                    left, right = (self._side((g, h, side)) for side in (LEFT, RIGHT))
                    if left is not None and right is not None:
                        cell = size * size + max(g, 0) * size + h if word else -1
                        self.edges.append(Edge(choice, left, right, cell, ()))
            so_far = self._vertex(2 * self.n + 5 + word)
            self.edges.append(Edge(so_far, choice, last, -1, ()))
            last = so_far

    def _side(self, slot: Slot) -> int | None:
        """The vertex of all that a node may take on one side; None if there is nothing, not even no modifier."""
        (g, h, side), automata = slot, self.automata
        automaton = automata.automaton(g, h, side)
        start = self._vertex(0)
        self.edges.append(Edge(start, -1, -1, -1, ()))
        known: dict[Hashable, list[int]] = {automaton.start: [start]}
        for level, nodes in enumerate(automata.choices_outwards(h, side), 1):
            found: dict[Hashable, int] = {}
            for m in nodes:
                if self.word[m] == self.word.get(g):
                    continue  # a word does not take its head
                for state, vertices in known.items():
                    after, weight = automata.step(g, h, side, state, m)
                    if weight == -np.inf:
                        continue
                    if after not in found:
                        found[after] = self._vertex(2 * level)
                    weights, cell = automata.step_terms(g, h, side, state, m), h * len(automata.arc) + m
                    self.edges += [Edge(found[after], vertex, -1, cell, weights) for vertex in vertices]
            for state, vertex in found.items():
                known.setdefault(state, []).append(vertex)
        stops = [(vertex, automaton.stop(state)) for state, vertices in known.items() for vertex in vertices]
        stops = [(vertex, weight) for vertex, weight in stops if weight > -np.inf]
        if not stops:
            return None
        end = self._vertex(2 * self.n + 3)
        self.edges += [Edge(end, vertex, -1, -1, (weight,)) for vertex, weight in stops]
        return end


class NodeChoices(OverItems[NodeChoice]):
    """The best choice of every word on its own.

    Views: "taken" (N, N), over the N nodes, "tags" (n, L) and, where automata depend on heads, "above" (N, N).
    """

    name: ClassVar[str] = "node choices"
    exclusive: ClassVar[Mapping[str, int]] = {"tags": 1}
    items_kind = ChoiceItems
    automata: NodeAutomata

    def __init__(self, automata: NodeAutomata) -> None:
        self.automata, self.size = automata, len(automata.arc)
        self.told_apart_by = ("taken", "above") if automata.by_head else ("taken", "tags")

    @property
    def views(self) -> Mapping[str, Index]:
        pairs, size = (self.size, self.size), self.automata.labels
        views = {"taken": pairs, "tags": ((self.size - 1) // size, size)}
        return views | ({"above": pairs} if self.automata.by_head else {})

    def of_tree(self, tree: LabelledTree) -> NodeChoice:
        """A labelled tree as choices of its words."""
        own = np.zeros(len(tree.heads), dtype=np.int64)
        words = np.arange(1, len(own))
        own[1:] = 1 + (words - 1) * self.automata.labels + tree.labels[1:]
        taken = np.zeros((self.size, self.size), dtype=bool)
        taken[own[tree.heads[1:]], own[1:]] = True
        above = np.full(len(own), NO_HEAD, dtype=np.int64)
        if self.automata.by_head:
            above[1:] = own[tree.heads[1:]]
        return NodeChoice(own, above, taken)

    def terms(self, structure: NodeChoice) -> list[float]:
        own, above, taken = structure
        found: list[float] = []
        if taken.any(axis=1).sum() != taken[own].any(axis=1).sum():
            return [-np.inf]
        for g, h in zip(above.tolist(), own.tolist(), strict=True):
            if g not in self.automata.heads_of(h):
                return [-np.inf]
            for side in (LEFT, RIGHT):
                nodes = self.automata.choices_outwards(h, side)
                found += self.automata.side_terms(g, h, side, [m for word in nodes for m in word if taken[h, m]])
        return found

    def indicator(self, structure: NodeChoice, view: str) -> Floats:
        out = np.zeros(self.checked_view(view))
        if view == "taken":
            out[structure.taken] = 1.0
        elif view == "tags":
            out.reshape(-1)[structure.own[1:] - 1] = 1.0
        else:
            out[structure.above[1:], structure.own[1:]] = 1.0
        return out

    def extent(self) -> Extent:
        return self.automata.extent()

    def all_scores(self) -> tuple[Floats, ...]:
        return self.automata.all_scores()

    @cached_property
    def _cells(self) -> dict[str, Ints]:
        """The cell of each view, or -1, for each cell that edges name."""
        pairs, none = np.arange(self.size**2), np.full(self.size**2, -1)
        cells = {"taken": (pairs, none), "tags": (none, pairs % self.size - 1), "above": (none, pairs)}
        return {view: np.concatenate(cells[view]) for view in self.views}

    def _cell_scores(self) -> dict[str, Floats]:
        return {view: self.automata.arc if view == "taken" else np.zeros(shape) for view, shape in self.views.items()}

    def from_edges(self, edges: Sequence[int]) -> NodeChoice:
        chosen = np.asarray(edges, dtype=np.int64)
        used = {view: cell[chosen][cell[chosen] >= 0] for view, cell in self.forest().parts.items()}
        taken = np.zeros(self.size**2, dtype=bool)
        taken[used["taken"]] = True
        own = np.concatenate(([0], np.sort(used["tags"]) + 1))
        above = np.full(len(own), NO_HEAD, dtype=np.int64)
        if self.automata.by_head:
            g, h = np.divmod(used["above"], self.size)
            above[1:] = g[np.argsort(h)]
        return NodeChoice(own, above, taken.reshape(self.size, self.size))


class CrossingLabelledAutomata(ReadLabels):
    r"""The best tree with a label for each word, crossing arcs allowed, when automata score labelled modifiers.

    As ``certus.LabelledAutomata``, for all trees: NP-hard in general, so decoded by relaxation. Certificate kinds
    "dual" and "branch and bound". A round takes O(n^2 Q L^2) for n words, Q states and L labels, times n L with
    ``by_head``, in Python's own time: for short sentences, or few labels on each arc (-inf forbids the others).

    Parameters
    ----------
    label, automaton, by_head, root
        As for ``certus.LabelledAutomata``.

    Examples
    --------
    No two modifiers of a side with the same label, though arcs cross:

    >>> class Different:
    ...     start = frozenset()
    ...     def step(self, state, m):
    ...         return state | {m.label}, 0.0 if m.label not in state else float("-inf")
    ...     def stop(self, state):
    ...         return 0.0
    >>> label = np.zeros((5, 5, 2))
    >>> label[0, 1], label[1, 3], label[2, 4], label[1, 2] = 5.0, 4.0, 4.0, (3.0, 1.0)
    >>> result = CrossingLabelledAutomata(label, lambda g, h, side: Different()).decode()
    >>> result.structure.heads.tolist(), result.structure.labels.tolist(), result.certificate.exact
    ([-1, 0, 1, 1, 2], [-1, 0, 0, 1, 0], True)
    """

    name: ClassVar[str] = "crossing labelled automata"
    projective = False
    certificate_kind = "dual"

    def _decode(self, limits: Limits) -> Result[LabelledTree]:
        return branch.decode(self, limits)

    def solve(self, penalties: Penalties | None = None) -> Solution[LabelledTree]:
        result = self.with_label_scores(self._penalised(penalties)).decode()
        return Solution(result.structure, result.certificate.bound)

    def relaxation(self) -> Relaxation:
        """The labelled spanning tree, without scores, and the choices of the words."""
        tree = LabelledDependency(np.where(self.label > -np.inf, 0.0, -np.inf), projective=False, root=self.root)
        choices = NodeChoices(self.automata)

        def leaves(structure: LabelledTree) -> tuple[LabelledTree, NodeChoice]:
            return structure, choices.of_tree(structure)

        pairs = tuple((1, view) for view in choices.views if view != "tags")
        views = {"arcs": ((0, "arcs"),), "labels": ((0, "labels"),), "tags": ((1, "tags"),), "pairs": pairs}
        rows = tuple(self._rows())
        return Relaxation(
            (tree, choices), (1.0, 1.0), views, rows, lambda both: both[0], leaves, shown=("arcs", "tags"), led=True
        )

    def _rows(self) -> Iterator[Rows]:
        size, labels, nodes = self.n + 1, self.label.shape[2], len(self.automata.arc)
        cells = np.arange(self.label.size)
        word, label = np.array([(0, 0), *((1 + k // labels, k % labels) for k in range(nodes - 1))]).T
        pair = np.arange(nodes * nodes).reshape(nodes, nodes)[:, 1:].reshape(-1)
        h, m = np.divmod(pair, nodes)
        taken = (word[h] * size + word[m]) * labels + label[m]
        yield _rows("labels", self.label.shape, ((0, "labels"), cells, cells, 1.0), ((1, "taken"), taken, pair, -1.0))
        cell = cells.reshape(self.label.shape)[:, 1:].reshape(-1)
        tag = cell % (size * labels) - labels
        own = np.arange(self.n * labels)
        yield _rows("tags", (self.n, labels), ((0, "labels"), tag, cell, 1.0), ((1, "tags"), own, own, -1.0))
        if self.automata.by_head:
            every = np.arange(nodes * nodes)
            pairs = ((1, "taken"), every, every, 1.0), ((1, "above"), every, every, -1.0)
            yield _rows("heads", (nodes, nodes), *pairs)

    def normal_form(self) -> NormalForm:
        relaxed = RelaxedForm.of(self.relaxation())
        blocks = {"arcs": (0, "arcs"), "labels": (0, "labels"), "tags": (1, "tags")}
        return relaxed.form._replace(cells={view: relaxed.parts_in(block) for view, block in blocks.items()})

    def normal_structure(self, structure: tuple[ArrayLike, ArrayLike]) -> tuple[Any, ...]:
        return RelaxedForm.of(self.relaxation()).structure(self._checked(structure))

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return super().from_json(data)


def _rows(name: str, shape: Index, *groups: tuple[tuple[int, str], Ints, Ints, float]) -> Rows:
    """Equations without right-hand sides, from blocks, rows, cells and a coefficient."""
    entries = tuple(Entries(block, row, cell, np.full(len(row), c)) for block, row, cell, c in groups)
    return Rows(name, entries, np.zeros(int(np.prod(shape))), True, shape)
