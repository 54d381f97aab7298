"""Labels and word senses inside higher-order parts of projective trees (DEP 5.5.2, 5.5.3, B.5.1)."""

from collections.abc import Hashable, Mapping
from math import prod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.rounding import Extent, extent_of, rounded_up
from certus.checks import Floats, Ints, as_scores
from certus.dependency.head_automata import AutomatonOf, OneModifier
from certus.dependency.labelled_automata import LabelledAutomata, NodeAutomata, word_of
from certus.dependency.labels import checked_labels
from certus.dependency.part_kinds import TABLE, PartKind
from certus.dependency.problem import ROOTS
from certus.errors import InvalidInput
from certus.schema import Field
from certus.serialize import floats_to_json

KINDS = {
    kind.name: kind
    for kind in TABLE
    if kind.name in ("arc", "sibling", "grandparent", "grandsibling", "trisibling", "grandtrisibling")
}


class PartScores(NamedTuple):
    """Scores of a kind of part as automata read them: those of nodes, one for each of ``letters``, are
    ``flat[sum of offset[axis][node]]``, where letters are places in LETTERS."""

    letters: tuple[int, ...]
    offset: tuple[list[int], ...]
    flat: Floats


LETTERS = "ghtsm"


class LabelledPartAutomaton:
    """The automaton of scores of labelled parts; its state is the last modifiers, as many as parts have."""

    start: tuple[int, ...] = ()

    def __init__(self, kinds: tuple[PartScores, ...], memory: int, g: int, h: int) -> None:
        self.kinds, self.memory, self.g, self.h = kinds, memory, g, h

    def terms(self, state: tuple[int, ...], m: int) -> tuple[float, ...]:
        """The scores of the parts that are complete when m is taken."""
        t = -1 if not state else state[-2] if len(state) > 1 else self.h
        node = (self.g, self.h, t, state[-1] if state else self.h, m)
        return tuple(
            kind.flat.item(sum(offset[node[x]] for x, offset in zip(kind.letters, kind.offset, strict=True)))
            for kind in self.kinds
            if all(node[x] >= 0 for x in kind.letters)
        )

    def step(self, state: tuple[int, ...], m: int) -> tuple[Hashable, float]:
        return (*state, m)[-self.memory :] if self.memory else (), sum(self.terms(state, m))

    def stop(self, state: tuple[int, ...]) -> float:
        return 0.0


def part_scores(axes: str, array: Floats, nodes: Ints) -> PartScores:
    """Of an array with axes for words and for their labels; ``nodes`` are the words and labels of nodes, one a row."""
    word, label = nodes[:, 0], np.maximum(nodes[:, 1], 0)
    step = np.array(array.strides) // array.itemsize
    own, other = step[: len(axes)], np.where(np.array(array.shape) > 1, step, 0)[len(axes) :]
    offset = tuple((word * a + label * b).tolist() for a, b in zip(own, other, strict=True))
    return PartScores(tuple(map(LETTERS.index, axes)), offset, array.reshape(-1))


class PartNodes(NodeAutomata):
    """Automata of labelled parts, whose weights are sums."""

    def step_terms(self, g: int, h: int, side: int, state: Any, m: int) -> tuple[float, ...]:
        automaton = self.automaton(g, h, side)
        if isinstance(automaton, OneModifier):
            automaton, state = automaton.inner, state[0]
        assert isinstance(automaton, LabelledPartAutomaton)
        return automaton.terms(state, m)


class LabelledParts(LabelledAutomata):
    r"""The best projective tree with a label for each word, when parts are scored with the labels of their words.

    A label is that of the arc into a word, a sense of the word, its tag, or a pair of such (number them k L + l):
    whatever there is one of for each word. The score of a tree is the sum of ``label[h, m, l]`` over its arcs h -> m
    with label l and of the parts of the arrays that were given, as in ``certus.Dependency``, each by its words and
    their labels. Every question has an answer. A dynamic program over the labels that are not ``-inf``, with O(n^4)
    edges for n words, times L^4 for L labels, where all of grandsibling is given, so prune first; O(n^3 L^3) with
    siblings alone. Certificate kind: "dynamic program".

    Parameters
    ----------
    label : array_like of shape (n + 1, n + 1, L)
        ``label[h, m, l]`` for label l on the arc h -> m; ``-inf`` forbids it.
    arc : array_like of shape (n + 1, n + 1, L, L), optional
        ``arc[h, m, a, b]``: h has label a, and m label b. In this and the arrays below an axis of labels has length 1
        where that label does not count; the label of node 0 is read as 0.
    sibling, grandparent, grandsibling, trisibling, grandtrisibling : array_like, optional
        The axes of ``certus.Dependency``, then one axis for the label of each of these words:
        ``sibling[h, s, m, a, b, c]``, where s has label b. Where s is h, for an innermost modifier, so is its label.
    root : "single" or "multi"
        Exactly one modifier of node 0, or any number.

    Notes
    -----
    Structures and views are those of ``certus.LabelledAutomata``.

    Examples
    --------
    Two subjects (label 0) side by side cost 4, whatever their head is:

    >>> label = np.zeros((4, 4, 2))
    >>> label[0, 1], label[1, 2:, 0], label[1, 2, 1], label[1, 3, 1] = 5.0, 3.0, 1.0, 2.0
    >>> sibling = np.zeros((4, 4, 4, 1, 2, 2))
    >>> sibling[1, 2, 3, :, 0, 0] = -4.0
    >>> heads, labels = LabelledParts(label, sibling=sibling).decode().structure
    >>> heads.tolist(), labels.tolist()
    ([-1, 0, 1, 1], [-1, 0, 0, 1])
    """

    name: ClassVar[str] = "labelled parts"

    def __init__(
        self,
        label: ArrayLike,
        *,
        arc: ArrayLike | None = None,
        sibling: ArrayLike | None = None,
        grandparent: ArrayLike | None = None,
        grandsibling: ArrayLike | None = None,
        trisibling: ArrayLike | None = None,
        grandtrisibling: ArrayLike | None = None,
        root: str = "single",
    ) -> None:
        arrays = (arc, sibling, grandparent, grandsibling, trisibling, grandtrisibling)
        given = {name: array for name, array in zip(KINDS, arrays, strict=True) if array is not None}
        self._set_parts(checked_labels(label), given, root)

    def _set_parts(self, label: Floats, given: Mapping[str, ArrayLike], root: str) -> None:
        """Take label scores that were checked, and arrays of part scores."""
        allowed, size = (label > -np.inf).any(axis=2), label.shape[2]
        self.arrays = {name: _checked(KINDS[name], a, allowed, size, root == "single") for name, a in given.items()}
        axes = "".join(KINDS[name].axes for name in self.arrays)
        nodes = np.array([word_of(node, size) for node in range(1 + (len(label) - 1) * size)])
        kinds = tuple(part_scores(KINDS[name].axes, array, nodes) for name, array in self.arrays.items())
        memory = ("s" in axes) + ("t" in axes)
        self._set(label, lambda g, h, side: LabelledPartAutomaton(kinds, memory, g, h), "g" in axes, root)

    def _automata_of(self, label: Floats, automaton: AutomatonOf, by_head: bool) -> NodeAutomata:
        return PartNodes(label, automaton, by_head=by_head, root=self.root)

    def _changed(self, label: Floats, arrays: Mapping[str, Floats]) -> Self:
        made = type(self).__new__(type(self))
        made._set_parts(label, arrays, self.root)
        return made

    def with_label_scores(self, label: Floats) -> Self:
        return self._changed(label, self.arrays)

    def extent(self) -> Extent:
        return extent_of(self.n * (1 + len(self.arrays)) + 2 * self.n + 2, *self.all_scores(), np.zeros(1))

    def all_scores(self) -> tuple[Floats, ...]:
        return (self.label, *self.arrays.values())

    def without_scores_below(self, least: float) -> Self:
        label, *arrays = (np.where(a < least, -np.inf, a) for a in self.all_scores())
        return self._changed(label, dict(zip(self.arrays, arrays, strict=True)))

    def with_scores_rounded_up(self, step: float) -> Self:
        label, *arrays = (rounded_up(a, step) for a in self.all_scores())
        return self._changed(label, dict(zip(self.arrays, arrays, strict=True)))

    def to_json(self) -> dict[str, Any]:
        arrays = {
            name: {"shape": list(a.shape), "values": floats_to_json(a.reshape(-1))} for name, a in self.arrays.items()
        }
        return {"label": floats_to_json(self.label), "root": self.root, **arrays}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given, arrays = Field.of(data, ""), {}
        label = given["label"].scores((None, None, None))
        for name in KINDS:
            if name in given:
                shape, values = given[name].shaped()
                arrays[name] = values.scores((prod(shape),)).reshape(shape)
        return given.made(lambda: cls(label, **arrays, root=given["root"].one_of(ROOTS)))


def _checked(kind: PartKind, given: ArrayLike, allowed: Any, labels: int, single: bool) -> Floats:
    """Scores of a kind of part; -inf where no tree has the part, whatever was there."""
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{kind.name} is not an array of numbers: {error}") from None
    size, rank = len(allowed), len(kind.axes)
    fits = array.ndim == 2 * rank and array.shape[:rank] == (size,) * rank
    if not fits or not all(length in (1, labels) for length in array.shape[rank:]):
        raise InvalidInput(
            f"{kind.name} has shape {array.shape}; expected {rank} axes of {size} nodes, {', '.join(kind.axes)}, and "
            f"{rank} of 1 or {labels} for the labels of these."
        )
    read = np.broadcast_to(kind.readable(allowed, single)(*np.ogrid[(slice(size),) * rank]), (size,) * rank)
    return as_scores(kind.name, np.where(read.reshape(read.shape + (1,) * rank), array, -np.inf))
