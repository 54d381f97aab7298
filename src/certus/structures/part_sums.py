"""Sums over structures by the cells of their arrays, with first and second derivatives: what gradients are made of.

A problem whose scores are the numbers of its cells tells which cells any part of it is: its normal form is then the
graph, or the trees, of cells, and the terms of a structure are the cells that it uses. So every kind of problem with a
normal form that is one graph, or one space of trees, has sums, and needs no code of its own here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from certus import kernels
from certus.batch import Batch
from certus.certificates.normal import Graph, Trees
from certus.checks import Floats, Ints
from certus.dependency import matrix_tree
from certus.dependency.label_folds import folded
from certus.dependency.tree_tangents import Along, marginals_along
from certus.errors import NotSupported
from certus.problem import Problem
from certus.threads import in_order, long_call, thread_count


@dataclass(frozen=True, eq=False)
class ArrayKind:
    """A kind of batch over arrays: how to make one, and which axes of its arrays follow the lengths of items.

    ``axes[name]`` has a letter for each axis behind that of items: "n" for one that follows ``lengths``, "m" for
    ``second_lengths``, "." for others, "*" at the end for any number of others. Arrays but the first may be left out,
    or be one for all items. An axis of an item of length n has ``more`` + n cells. ``own`` are options by item.
    """

    make: Callable[..., Batch]
    axes: Mapping[str, str]
    more: int = 0
    own: tuple[str, ...] = ()
    symmetric: bool = False  # cells [i, j] and [j, i] are one
    quick: tuple[type[Batch], ...] = ()  # with kernels for log-partitions
    sums: "type[PartSums] | None" = None  # a way of its own to sums and their derivatives

    def by_item(self, name: str, axes: int) -> bool:
        """Whether an array with so many axes has one over items."""
        return name == next(iter(self.axes)) or axes == len(self.axes[name]) + 1


class Shape(NamedTuple):
    """An array of one item, or of all."""

    name: str
    by_item: bool
    size: tuple[int, ...]


Options = tuple[tuple[str, Any], ...]


class Numbered:
    """A problem whose scores are the numbers of its cells, from 1 on, array after array."""

    def __init__(self, kind: ArrayKind, shapes: tuple[Shape, ...], options: Options, own: Options) -> None:
        self._made, self.shapes = partial(_numbered, kind, shapes, options, own), shapes
        self.size = sum(prod(shape.size) for shape in shapes)

    @cached_property
    def problem(self) -> Problem[Any]:
        """The problem."""
        return self._made()

    def cells(self, structure: Any) -> Ints:
        """The cells that a structure uses, once for each use; InvalidInput for what is no structure."""
        found = np.asarray(self.problem.terms(structure), dtype=np.int64)
        return found[found > 0] - 1

    @property
    def space(self) -> Graph | Trees:
        """All structures, their parts the cells, or for graphs those of ``read``. NotSupported if there is none."""
        return self._space[0]

    @property
    def read(self) -> Ints:
        """The cells that a graph has."""
        return self._space[1]

    @cached_property
    def _space(self) -> tuple[Graph | Trees, Ints]:
        problem = self._made()  # and all that it keeps is left behind
        form = problem.normal_form() if problem.relaxation() is None else None
        if form is None or len(form.spaces) != 1 or not isinstance(form.spaces[0], Graph | Trees):
            raise NotSupported(
                f"sums over the structures of {problem!r} have no tractable answer; losses by decoding have one: "
                "hinge(), sparsemap(), perturbed()."
            )
        space, number = form.spaces[0], np.append(form.scores.astype(np.int64) - 1, -1)
        if isinstance(space, Trees):
            labels = None if space.labels is None else number[space.labels]
            return space._replace(part=number[space.part], labels=labels), np.empty(0, dtype=np.int64)
        told = number[space.part] >= 0
        part_ptr = np.concatenate(([0], np.cumsum(told)))[space.part_ptr]
        read, part = np.unique(number[space.part][told], return_inverse=True)
        return Graph(space.in_ptr, space.tail_ptr, space.tail, part_ptr, part), read


def _numbered(kind: ArrayKind, shapes: tuple[Shape, ...], options: Options, own: Options) -> Problem[Any]:
    arrays, start = {}, 1
    for name, by_item, size in shapes:
        numbers = np.arange(start, start + prod(size), dtype=np.float64).reshape(size)
        start += numbers.size
        if kind.symmetric:
            numbers = np.minimum(numbers, numbers.T)
        arrays[name] = numbers[None] if by_item else numbers
    return kind.make(**arrays, **dict(options), **{name: np.array([value]) for name, value in own})[0]


numbered = lru_cache(maxsize=256)(Numbered)


class Group(NamedTuple):
    """Items of the same shape: ``cells`` are those of their arrays among the cells of the padded ones."""

    items: Ints
    cells: Ints
    numbered: Numbered


class PartSums:
    """Sums over the structures of the items of a batch, by the cells of its padded arrays: scores are (B, P).

    Parameters
    ----------
    kind : ArrayKind
    shapes : sequence of Shape
        Of the padded arrays, without the axis over items.
    lengths : mapping of str to array of int, shape (B,)
        Of each item, for the axes "n", and "m" if there are some.
    options : mapping
        Arguments of the kind beside arrays and lengths; those of ``kind.own`` have an entry for each item.
    """

    def __init__(
        self, kind: ArrayKind, shapes: Sequence[Shape], lengths: Mapping[str, Ints], options: Mapping[str, Any]
    ) -> None:
        self.kind, self.shapes, self.lengths = kind, tuple(shapes), lengths
        self.options = tuple((name, value) for name, value in options.items() if name not in kind.own)
        self.own = {name: options[name] for name in kind.own}
        self.size = sum(prod(shape.size) for shape in shapes)
        self.items = len(lengths["n"])

    @cached_property
    def longest(self) -> dict[str, int]:
        """How long an item may be, by letter of the axes."""
        first = self.shapes[0]
        sizes = list(zip(self.kind.axes[first.name], first.size, strict=False))
        return {letter: size - self.kind.more for letter, size in reversed(sizes)}

    def _group(self, items: Ints, lengths: Mapping[str, int], own: Options) -> Group:
        cut = {letter: self.longest[letter] - length for letter, length in lengths.items()}
        shapes, cells, start = [], [], 0
        for name, by_item, size in self.shapes:
            axes = self.kind.axes[name].ljust(len(size), ".") if by_item else ""
            kept = tuple(k - cut.get(a, 0) for a, k in zip(axes, size, strict=True)) if by_item else size
            every = np.arange(start, start + prod(size)).reshape(size)
            cells.append(every[tuple(map(slice, kept))].reshape(-1))
            shapes.append(Shape(name, by_item, kept))
            start += prod(size)
        return Group(items, np.concatenate(cells), numbered(self.kind, tuple(shapes), self.options, own))

    @cached_property
    def groups(self) -> list[Group]:
        """The items by their shape."""
        found: dict[Any, list[int]] = {}
        for b in range(self.items):
            lengths = tuple((letter, int(of[b])) for letter, of in self.lengths.items())
            found.setdefault((lengths, tuple((name, _plain(of[b])) for name, of in self.own.items())), []).append(b)
        return [self._group(np.array(items), dict(key[0]), key[1]) for key, items in found.items()]

    @cached_property
    def _group_of(self) -> dict[int, Group]:
        return {b: group for group in self.groups for b in group.items.tolist()}

    def cells(self, structure: Any, item: int) -> Ints:
        """The cells that a structure of an item uses, once for each use."""
        group = self._group_of[item]
        return group.cells[group.numbered.cells(structure)]

    # -- sums ------------------------------------------------------------------------------------------------------

    @cached_property
    def _trees(self) -> Trees | None:
        """The trees of the longest item that there may be; None if structures are no trees with crossing arcs."""
        if not self.groups or not isinstance(self.groups[0].numbered.space, Trees):
            return None
        space = self._group(np.arange(self.items), self.longest, ()).numbered.space
        assert isinstance(space, Trees)
        return space

    def sums(self, scores: Floats) -> tuple[Floats, Floats]:
        """Log of the sum of exp(score) over the structures of each item, (B,), and expected uses of cells, (B, P).

        The first is -inf for an item without structures, and nan for one with a score that is nan or inf.
        """
        total, uses = np.empty(self.items), np.zeros(scores.shape)
        if self._trees is None:

            def serve(group: Group) -> None:
                own = _own(scores, group)
                found = np.empty(own.shape)
                value = np.empty(len(group.items))
                kernels.part_sums.part_sums(group.numbered.space, own, value, found)
                total[group.items] = value
                uses[_place(group)] = found

            self._run(serve)
            return total, uses
        arc, label = self._arcs(Along(scores, *(np.zeros_like(scores),) * 3))
        unsound = np.isnan(arc.value).any(axis=(1, 2)) | (arc.value == np.inf).any(axis=(1, 2))
        root = "single" if self._trees.single else "multi"
        safe = np.ascontiguousarray(np.where(unsound[:, None, None], 0.0, arc.value))
        arcs, total = matrix_tree.marginals_batch(safe, self._nodes, root)
        total[unsound] = np.nan
        zero = np.zeros_like(arcs)
        _spread(self._trees, Along(arcs, zero, zero, zero), label, 0, uses)
        return total, uses

    def tangents(self, scores: Floats, u: Floats) -> Floats:
        """Derivative of the expected uses of cells along u, (B, P)."""
        return self._derivative(scores, (u,))

    def curvatures(self, scores: Floats, u: Floats, v: Floats) -> Floats:
        """Derivative of the expected uses of cells along u and along v, (B, P)."""
        return self._derivative(scores, (u, v))

    def _derivative(self, scores: Floats, along: tuple[Floats, ...]) -> Floats:
        out = np.zeros(scores.shape)
        if self._trees is None:
            kernel = kernels.part_sums.part_tangents if len(along) == 1 else kernels.part_sums.part_curvatures

            def serve(group: Group) -> None:
                own = _own(scores, group)
                found = np.empty(own.shape)
                kernel(group.numbered.space, own, *(_own(a, group) for a in along), found)
                out[_place(group)] = found

            self._run(serve)
            return out
        zero = np.zeros_like(scores)
        arc, label = self._arcs(Along(scores, along[0], along[1] if len(along) > 1 else zero, zero))
        found = marginals_along(arc, self._nodes, self._trees.single)
        _spread(self._trees, found, label, 1 if len(along) == 1 else 3, out)
        return out

    def _arcs(self, scores: Along) -> tuple[Along, Along | None]:
        """Scores of arcs, their labels summed out; and probabilities of labels of arcs. With all their derivatives."""
        trees = self._trees
        assert trees is not None
        used = trees.part >= 0 if trees.labels is None else (trees.labels >= 0).any(axis=2)
        value = np.where(used, _gathered(trees.part, scores.value, 0.0), -np.inf)
        u, v, both = (_gathered(trees.part, a, 0.0) for a in scores[1:])
        if trees.labels is None:
            return Along(value, u, v, both), None
        arcs, _, p = folded(_gathered(trees.labels, scores.value, -np.inf), self._nodes, summed=True, shares=True)
        value = np.where(arcs > -np.inf, value + arcs, -np.inf)
        slope_u, slope_v = (_gathered(trees.labels, a, 0.0) for a in (scores.u, scores.v))
        mean_u, mean_v = ((p * a).sum(axis=3, keepdims=True) for a in (slope_u, slope_v))
        c_u, c_v = slope_u - mean_u, slope_v - mean_v
        mean_uv = (p * c_u * c_v).sum(axis=3, keepdims=True)
        arc = Along(value, u + mean_u[..., 0], v + mean_v[..., 0], both + mean_uv[..., 0])
        return arc, Along(p, p * c_u, p * c_v, p * (c_u * c_v - mean_uv))

    @property
    def _nodes(self) -> Ints:
        """Of the trees of each item, without node 0."""
        return np.maximum(self.lengths["n"] + self.kind.more - 1, 0)

    def _run(self, serve: Callable[[Group], None]) -> None:
        """Serve all groups, on threads if they pay."""
        steps = sum(10.0 * len(g.items) * len(g.numbered.space.part) for g in self.groups)
        threads = thread_count(None, steps)
        if threads == 1:
            for group in self.groups:
                long_call(steps, serve, group)
        else:
            list(in_order(serve, list(_chunks(self.groups, 4 * threads)), threads))


def _plain(value: Any) -> Any:
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value


def _own(scores: Floats, group: Group) -> Floats:
    return scores[_place(group)]


def _place(group: Group) -> tuple[Ints, ...]:
    """Where the cells that the graph of a group has are, item by item."""
    return np.ix_(group.items, group.cells[group.numbered.read])


def _chunks(groups: Sequence[Group], count: int) -> Iterator[Group]:
    """The groups cut into at least so many, if there are as many items."""
    for group in groups:
        parts = min(len(group.items), count)
        for a, b in pairwise(len(group.items) * k // parts for k in range(parts + 1)):
            yield group._replace(items=group.items[a:b])


# -- trees with crossing arcs, whose labels are summed out (DEP 4.3) -------------------------------------------------


def _gathered(cells: Ints, scores: Floats, rest: float) -> Floats:
    """(B, ...) of cells, ``rest`` where there is none."""
    return np.concatenate((scores, np.full((len(scores), 1), rest)), axis=1)[:, cells]


def _spread(trees: Trees, arc: Along, label: Along | None, which: int, out: Floats) -> None:
    """out <- marginals of cells, or one of their derivatives, by those of arcs and of labels given arcs."""
    if label is None:
        cells, found = trees.part, arc[which]
    else:
        a, p = Along(*(x[..., None] for x in arc)), label
        assert trees.labels is not None
        cells, found = (
            trees.labels,
            (
                a.value * p.value,
                a.u * p.value + a.value * p.u,
                a.v * p.value + a.value * p.v,
                a.both * p.value + a.u * p.v + a.v * p.u + a.value * p.both,
            )[which],
        )
    used = np.flatnonzero(cells.reshape(-1) >= 0)
    np.add.at(out.T, cells.reshape(-1)[used], found.reshape(len(out), -1).T[used])
