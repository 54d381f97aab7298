"""Projective trees whose words have labels that head automata read (DEP 5.5.2, 5.5.3, B.5.1): a dynamic program.

A word with a label is a node of a longer sentence, of which a tree has one node for each word: node 1 + (m - 1) L + l
is word m with label l. Everything but that is as for words without labels (``certus.dependency.automata_items``).
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.rounding import Extent, rounded_up
from certus.checks import Floats, Ints, one_of
from certus.dependency import automata_tables
from certus.dependency.automata_items import OverItems
from certus.dependency.head_automata import NO_HEAD, Automaton, AutomatonOf, HeadAutomata
from certus.dependency.labels import LabelledTree, LabelledTrees, checked_labels
from certus.dependency.part_kinds import LEFT, RIGHT
from certus.dependency.problem import ROOTS
from certus.errors import InvalidInput
from certus.problem import Index
from certus.schema import Field
from certus.serialize import floats_to_json


class LabelledWord(NamedTuple):
    """A word and its label; the label of node 0 is -1, and both are -1 for the head of node 0."""

    word: int
    label: int


LabelledAutomatonOf = Callable[[LabelledWord, LabelledWord, int], Automaton]


@dataclass(frozen=True, slots=True)
class ReadingNodes:
    """An automaton over labelled words, which are given to it as nodes."""

    inner: Any
    labels: int

    @property
    def start(self) -> Hashable:
        found: Hashable = self.inner.start
        return found

    def step(self, state: Any, m: int) -> tuple[Hashable, float]:
        found: tuple[Hashable, float] = self.inner.step(state, word_of(m, self.labels))
        return found

    def stop(self, state: Any) -> float:
        return float(self.inner.stop(state))


def word_of(node: int, labels: int) -> LabelledWord:
    """The word and label of a node."""
    if node <= 0:
        return LabelledWord(node, -1)
    word, label = divmod(node - 1, labels)
    return LabelledWord(word + 1, label)


class NodeAutomata(HeadAutomata):
    """Head automata over the nodes of labelled words; arc[g, h] is that of the words, with the label of h."""

    def __init__(self, label: Floats, automaton: AutomatonOf, *, by_head: bool, root: str) -> None:
        self.labels = label.shape[2]
        words = np.array([word_of(node, self.labels) for node in range(1 + (len(label) - 1) * self.labels)])
        super().__init__(label[words[:, :1], words[:, 0], words[:, 1]], automaton, by_head=by_head, root=root)

    def nodes(self) -> list[list[int]]:
        return [[0], *(list(range(first, first + self.labels)) for first in range(1, self.n + 1, self.labels))]


class ReadLabels(LabelledTrees):
    """What trees have in common whose words have labels that head automata read: the trees differ, not the scores."""

    exclusive: ClassVar[Mapping[str, int]] = {"arcs": 0, "tags": 1}

    def __init__(
        self, label: ArrayLike, automaton: LabelledAutomatonOf, *, by_head: bool = False, root: str = "single"
    ) -> None:
        checked = checked_labels(label)
        size = checked.shape[2]

        def of_nodes(g: int, h: int, side: int) -> Automaton:
            return ReadingNodes(automaton(word_of(g, size), word_of(h, size), side), size)

        self._set(checked, of_nodes, by_head, root)

    def _set(self, label: Floats, automaton: AutomatonOf, by_head: bool, root: str) -> None:
        """Take label scores that were checked, and automata over nodes."""
        self.label, self.root = label, one_of("root", root, ROOTS)
        self.n, self.single = len(label) - 1, root == "single"
        self.automata = self._automata_of(label, automaton, by_head)

    def _automata_of(self, label: Floats, automaton: AutomatonOf, by_head: bool) -> NodeAutomata:
        return NodeAutomata(label, automaton, by_head=by_head, root=self.root)

    def _over(self, label: Floats, automaton: AutomatonOf) -> Self:
        made = type(self).__new__(type(self))
        made._set(label, automaton, self.automata.by_head, self.root)
        return made

    def with_label_scores(self, label: Floats) -> Self:
        """The same with other scores of labels."""
        return self._over(label, self.automata.automaton_of)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n} words, {self.label.shape[2]} labels, root={self.root!r})"

    # -- structures ------------------------------------------------------------------------------------------------

    def terms(self, structure: tuple[ArrayLike, ArrayLike]) -> list[float]:
        heads, labels = self._checked(structure)
        words = np.arange(1, self.n + 1)
        if (self.label[heads[1:], words, labels[1:]] == -np.inf).any():
            return [-np.inf]
        node = [0, *(1 + (words - 1) * self.label.shape[2] + labels[1:]).tolist()]
        found: list[float] = []
        for h in range(self.n + 1):
            g = node[heads[h]] if h and self.automata.by_head else NO_HEAD
            below = [m for m in words.tolist() if heads[m] == h]
            for side, modifiers in ((LEFT, [m for m in below if m < h][::-1]), (RIGHT, [m for m in below if m > h])):
                found += self.automata.side_terms(g, node[h], side, [node[m] for m in modifiers])
        return found

    def extent(self) -> Extent:
        return self.automata.extent()

    def all_scores(self) -> tuple[Floats, ...]:
        return self.automata.all_scores()

    def without_scores_below(self, least: float) -> Self:
        label = np.where(self.label < least, -np.inf, self.label)
        return self._over(label, self.automata.without_scores_below(least).automaton_of)

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._over(rounded_up(self.label, step), self.automata.with_scores_rounded_up(step).automaton_of)

    # -- views -----------------------------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        n, size = self.n, self.label.shape[2]
        return {"arcs": (n + 1, n + 1), "labels": (n + 1, n + 1, size), "tags": (n, size)}

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        self.checked_part(view, index, value)
        at: Any = (slice(None), index[0] + 1, index[1]) if view == "tags" else index
        label, m = self.label.copy(), at[1]
        if value:
            label[:, m] = -np.inf
        label[at] = self.label[at] if value else -np.inf
        if value and m == 0:
            raise InvalidInput(f"{view}{list(index)} is required, but node 0 has no head.")
        return self.with_label_scores(label)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """With all automata spelt out as tables over the nodes that are allowed."""
        tables = automata_tables.to_json(self.automata)
        label = floats_to_json(self.label)
        return {"label": label, "by_head": self.automata.by_head, "root": self.root, "automata": tables}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        label = given["label"].made(lambda: checked_labels(given["label"].scores((None, None, None))))
        automaton = automata_tables.from_json(given["automata"], (len(label) - 1) * label.shape[2])
        made = cls.__new__(cls)
        made._set(label, automaton, given["by_head"].flag(), given["root"].one_of(ROOTS))
        return made


class LabelledAutomata(ReadLabels, OverItems[LabelledTree]):
    r"""The best projective tree with a label for each word, when heads score labelled modifiers by automata.

    A label is that of the arc into a word, a sense of the word, its tag, or a pair of such: whatever there is one of
    for each word. The score of a tree is the sum of ``label[h, m, l]`` over its arcs h -> m with label l and, for every
    head and side, of the weights with which the automaton of that head and side reads the labelled modifiers, from the
    nearest outwards. Every question has an answer: a dynamic program of O(n^3 Q L^2) edges for n words, Q states and L
    labels, times n L with ``by_head``. Certificate kind: "dynamic program".

    Parameters
    ----------
    label : array_like of shape (n + 1, n + 1, L)
        ``label[h, m, l]``; ``-inf`` forbids label l on the arc h -> m.
    automaton : callable (g, h, side) -> Automaton
        As for ``certus.AutomataDependency``, but words are pairs (word, label): g and h here, m in
        ``step(state, m) -> (state, weight)``. Node 0 is (0, -1). g is the head of h with ``by_head``, else (-1, -1).
    by_head : bool
        Whether automata depend on the head of their head, or on its label.
    root : "single" or "multi"
        Exactly one modifier of node 0, or any number.

    Notes
    -----
    Structures are ``LabelledTree(heads, labels)``. Views: "arcs" (n + 1, n + 1), "labels" (n + 1, n + 1, L), and "tags"
    (n, L), the label of each word, by which trees are joined with taggers.

    Examples
    --------
    No two modifiers of a side with the same label:

    >>> class Different:
    ...     start = frozenset()
    ...     def step(self, state, m):
    ...         return state | {m.label}, 0.0 if m.label not in state else float("-inf")
    ...     def stop(self, state):
    ...         return 0.0
    >>> label = np.zeros((4, 4, 2))
    >>> label[0, 1], label[1, 2:, 0], label[1, 2, 1], label[1, 3, 1] = 5.0, 3.0, 1.0, 2.0
    >>> heads, labels = LabelledAutomata(label, lambda g, h, side: Different()).decode().structure
    >>> heads.tolist(), labels.tolist()
    ([-1, 0, 1, 1], [-1, 0, 0, 1])
    """

    name: ClassVar[str] = "labelled automata"
    projective = True
    automata: NodeAutomata

    @cached_property
    def _cells(self) -> dict[str, Ints]:
        """The cell of each view for each pair of nodes; node 0 is nobody's modifier, and has any."""
        word, label = np.array([word_of(node, self.label.shape[2]) for node in range(len(self.automata.arc))]).T
        arcs = word[:, None] * (self.n + 1) + word
        size = self.label.shape[2]
        tags = np.broadcast_to((word - 1) * size + label, arcs.shape)
        return {"arcs": arcs.ravel(), "labels": (arcs * size + label).ravel(), "tags": tags.ravel()}

    def _cell_scores(self) -> dict[str, Floats]:
        allowed = np.where(self.label > -np.inf, 0.0, -np.inf)
        return {"arcs": allowed.max(axis=2), "labels": self.label, "tags": allowed[:, 1:].max(axis=0)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return super().from_json(data)
