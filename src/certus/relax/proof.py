"""Proof trees of branch and bound: what to check so that no structure can beat a bound.

A Leaf bounds all structures left at its place by the dual value at its multipliers. A Fix shows by multipliers that
structures which use certain parts cannot beat the bound, and goes on without those parts. A Split goes on twice:
without a part, and with it. A Close stands before all else, where subproblems are searched: what may beat the bound is
in small graphs, and the rest of the tree is about these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certus.certificates.normal import Closing
from certus.checks import Floats
from certus.errors import InvalidInput
from certus.schema import MOST, Field
from certus.serialize import floats_to_json

Multipliers = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Leaf:
    """Bounded by the dual value at these multipliers; but for the structures ``known``, if any are named.

    ``known`` are numbers of the better structures that the result of a higher rank comes with, from 0.
    """

    multipliers: Multipliers
    known: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Removed:
    """Flat indices of a view whose parts are removed, since all copies together lose too much by using one."""

    view: str
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """At these multipliers no structure that uses a removed part beats the bound; ``rest`` is without them."""

    multipliers: Multipliers
    removed: tuple[Removed, ...]
    rest: "Proof"


@dataclass(frozen=True, slots=True)
class Split:
    """``zero``: structures that do not use the part, given by its flat index; ``one``: structures that do."""

    view: str
    index: int
    zero: "Proof"
    one: "Proof"


Proof = Leaf | Fix | Split


@dataclass(frozen=True, slots=True)
class Close:
    """Subproblems that are searched are closed under these multipliers; ``rest`` is about what is left of them."""

    multipliers: Multipliers
    closing: Closing
    rest: Proof


@dataclass(frozen=True, slots=True)
class Cut:
    """A row that follows from others, since uses are whole numbers: a sum of rows, rounded down (Chvátal-Gomory).

    The rows, by number, are each taken so many times, and so is "used at most once" of flat cells; the sum is divided
    by ``denominator``, and each coefficient and the right-hand side are rounded down.
    """

    denominator: int
    rows: tuple[tuple[int, int], ...]
    cells: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Tighter:
    """The relaxation has further pieces, and then cuts: ``rest`` is about that."""

    pieces: tuple[tuple[int, ...], ...]
    cuts: tuple[Cut, ...]
    rest: Proof


PROOFS = Leaf, Fix, Split, Close, Tighter


def first_multipliers(proof: Proof) -> Multipliers:
    """Those of the first node that has any."""
    while isinstance(proof, Split):
        proof = proof.zero
    return proof.multipliers


def mapped(proof: Proof | Tighter, change: Callable[[Multipliers], Multipliers]) -> Any:
    """The same tree with all multipliers changed."""
    if isinstance(proof, Tighter):
        return replace(proof, rest=mapped(proof.rest, change))
    if isinstance(proof, Split):
        return replace(proof, zero=mapped(proof.zero, change), one=mapped(proof.one, change))
    own = replace(proof, multipliers=change(proof.multipliers))
    return replace(own, rest=mapped(own.rest, change)) if isinstance(own, Fix) else own


def known_below(proof: Proof, rank: int) -> Proof:
    """The same tree, whose leaves name only structures numbered below ``rank``."""
    if isinstance(proof, Split):
        return replace(proof, zero=known_below(proof.zero, rank), one=known_below(proof.one, rank))
    if isinstance(proof, Fix):
        return replace(proof, rest=known_below(proof.rest, rank))
    return replace(proof, known=tuple(k for k in proof.known if k < rank))


class Later:
    """A proof that is made when it is first asked for: most are never looked at."""

    def __init__(self, make: Callable[[], Proof]) -> None:
        self._make: Callable[[], Proof] | None = make
        self._proof: Proof | None = None

    def proof(self) -> Proof:
        """The proof."""
        if self._proof is None:
            assert self._make is not None
            self._proof, self._make = self._make(), None
        return self._proof

    def __reduce__(self) -> tuple[Callable[[Proof], "Later"], tuple[Proof]]:
        return made, (self.proof(),)


def made(proof: Proof) -> Later:
    """A proof that was asked for."""
    later = Later(lambda: proof)
    later.proof()
    return later


def multipliers_to_json(multipliers: Multipliers) -> dict[str, Any]:
    """Multipliers as JSON data, with their shapes: an empty array would lose its own."""
    return {n: {"shape": list(a.shape), "values": floats_to_json(a.ravel())} for n, a in multipliers.items()}


def multipliers_from_json(data: Any) -> dict[str, Floats]:
    """Read what multipliers_to_json wrote."""
    out = {}
    for name, entry in Field.of(data, "multipliers").entries():
        shape, values = entry.shaped()
        out[name] = values.scores((None,)).reshape(shape)
    return out


def arrays_to_json(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays of numbers by name, whole ones as such."""
    return {name: _array_to_json(np.asarray(array)) for name, array in arrays.items()}


def _array_to_json(array: Any) -> dict[str, Any]:
    whole = array.dtype.kind in "iub"
    values = array.ravel().astype(np.int64).tolist() if whole else floats_to_json(array.ravel().astype(np.float64))
    return {"shape": list(array.shape), "whole": whole, "values": values}


def arrays_from_json(given: Field) -> dict[str, Any]:
    """Read what arrays_to_json wrote."""
    return {name: _array(entry) for name, entry in given.entries()}


def _array(given: Field) -> Any:
    shape, values = given.shaped()
    if given["whole"].flag():
        return values.wholes(-(1 << 63), (1 << 63) - 1).reshape(shape)
    return values.scores((None,)).reshape(shape)


def to_json(proof: Proof | Close | Tighter) -> list[dict[str, Any]]:
    """The tree as a flat list of nodes that refer to one another by position; the root is first.

    A list rather than nested objects, so that a deep tree does not exhaust the reader's stack.
    """
    nodes: list[dict[str, Any]] = []
    stack: list[tuple[Proof, dict[str, Any] | None, str]] = []
    if isinstance(proof, Close):
        witnesses = [arrays_to_json(witness) for witness in proof.closing.witnesses]
        own = {"witnesses": witnesses, "levels": floats_to_json(np.array(proof.closing.levels))}
        nodes.append({"node": "close", "multipliers": multipliers_to_json(proof.multipliers)} | own)
        stack.append((proof.rest, nodes[-1], "rest"))
    elif isinstance(proof, Tighter):
        nodes.append({"node": "tighter", "pieces": [list(own) for own in proof.pieces], "cuts": _cuts(proof.cuts)})
        stack.append((proof.rest, nodes[-1], "rest"))
    else:
        stack.append((proof, None, ""))
    while stack:
        node, parent, slot = stack.pop()
        if parent is not None:
            parent[slot] = len(nodes)
        if isinstance(node, Leaf):
            nodes.append({"node": "leaf", "multipliers": multipliers_to_json(node.multipliers)})
            if node.known:
                nodes[-1]["known"] = list(node.known)
        elif isinstance(node, Fix):
            removed = [{"view": r.view, "indices": list(r.indices)} for r in node.removed]
            nodes.append({"node": "fix", "multipliers": multipliers_to_json(node.multipliers), "removed": removed})
            stack.append((node.rest, nodes[-1], "rest"))
        else:
            nodes.append({"node": "split", "view": node.view, "index": node.index})
            stack += [(node.zero, nodes[-1], "zero"), (node.one, nodes[-1], "one")]
    return nodes


def _cuts(cuts: tuple[Cut, ...]) -> list[dict[str, Any]]:
    return [
        {"denominator": c.denominator, "rows": [list(r) for r in c.rows], "cells": [list(r) for r in c.cells]}
        for c in cuts
    ]


def from_json(data: Any) -> Proof | Close | Tighter:
    """Read what to_json wrote; InvalidInput for anything else."""
    if not isinstance(data, list) or not data or not all(isinstance(n, dict) for n in data):
        raise InvalidInput("a proof tree is a list of nodes; found something else.")
    built: dict[int, Proof] = {}
    whole: Close | Tighter | None = None

    def child(at: int, slot: str) -> Proof:
        position = data[at].get(slot)
        if isinstance(position, bool) or not isinstance(position, int) or position not in built:
            raise InvalidInput(f"node {at} of the proof tree has no {slot!r} after it; found {position!r}.")
        return built.pop(position)

    # Children come after their parents, so that reading backwards finds them built; each is used once.
    for at in range(len(data) - 1, -1, -1):
        node = data[at]
        kind = node.get("node")
        if kind == "leaf":
            known = tuple(_whole(k, "known") for k in _listed(node.get("known", []), "known"))
            built[at] = Leaf(multipliers_from_json(node.get("multipliers")), known)
        elif kind == "fix":
            removed = tuple(_removed_from_json(r) for r in _listed(node.get("removed"), "removed"))
            built[at] = Fix(multipliers_from_json(node.get("multipliers")), removed, child(at, "rest"))
        elif kind == "split":
            view, index = node.get("view"), node.get("index")
            if not isinstance(view, str):
                raise InvalidInput(f"node {at} of the proof tree splits on {view!r}; expected the name of a view.")
            built[at] = Split(view, _whole(index, "index"), child(at, "zero"), child(at, "one"))
        elif kind == "close" and at == 0:
            whole = _closing(node, child(at, "rest"))
        elif kind == "tighter" and at == 0:
            whole = _tighter(Field.of(node, "the proof tree"), child(at, "rest"))
        else:
            raise InvalidInput(f"node {at} of the proof tree is {kind!r}; expected leaf, fix or split.")
    if len(built) != (whole is None):
        raise InvalidInput("the proof tree has nodes that hang nowhere.")
    return built[0] if whole is None else whole


def _tighter(given: Field, rest: Proof) -> Tighter:
    def times(pairs: Field) -> tuple[tuple[int, int], ...]:
        both = (pair.wholes(-MOST, MOST, (2,)).tolist() for pair in pairs.items())
        return tuple((number, k) for number, k in both)

    pieces = tuple(tuple(own.wholes(0, MOST).tolist()) for own in given["pieces"].items())
    cuts = (Cut(c["denominator"].whole(1), times(c["rows"]), times(c["cells"])) for c in given["cuts"].items())
    return Tighter(pieces, tuple(cuts), rest)


def _closing(node: dict[str, Any], rest: Proof) -> Close:
    witnesses = tuple(arrays_from_json(given) for given in Field.of(node.get("witnesses"), "witnesses").items())
    levels = tuple(given.score() for given in Field.of(node.get("levels"), "levels").items())
    if len(levels) != len(witnesses):
        raise InvalidInput(f"{len(levels)} levels are given for {len(witnesses)} parts that are searched.")
    return Close(multipliers_from_json(node.get("multipliers")), Closing(witnesses, levels), rest)


def _removed_from_json(data: Any) -> Removed:
    if not isinstance(data, dict) or not isinstance(data.get("view"), str):
        raise InvalidInput("removed parts do not name their view.")
    indices = tuple(_whole(k, "index") for k in _listed(data.get("indices"), "indices"))
    return Removed(data["view"], indices)


def _listed(data: Any, name: str) -> list[Any]:
    if not isinstance(data, list):
        raise InvalidInput(f"{name} is {type(data).__name__}; expected a list.")
    return data


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(f"{name} is {value!r}; expected a whole number of at least 0.")
    return value
