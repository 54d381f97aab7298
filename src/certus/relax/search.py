"""One best-first search: branch and bound with a relaxation as its bound, and the proof tree that it leaves.

Every bound is valid at every moment, so a search that a limit ends reports an honest gap. A client plugs in by a Space,
which knows what can be decided at a node: it lowers the bound of a node, removes parts there, and names the part to
branch on; the search does the rest.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf
from typing import Any, Generic, TypeVar

from certus.checks import Floats
from certus.relax.proof import Fix, Leaf, Multipliers, Proof, Removed, Split
from certus.relax.run import Run
from certus.result import Certificate, certified

S = TypeVar("S")

Part = tuple[str, int]  # a view and a flat index in it

ROUNDS = 3  # of tightening at one node


@dataclass(slots=True)
class Node(Generic[S]):
    """A place in the tree: what is decided there, the best bound so far with its multipliers, how the search went on.

    ``evidence`` is what the choice of a part to branch on goes by. ``apart`` is a structure that was set apart here.
    ``proof`` is for spaces whose witness takes some finding: what they found for the bound and what is decided.
    """

    decided: S
    multipliers: Floats
    bound: float = inf
    evidence: Any = None
    depth: int = 0
    fixes: "list[tuple[Node[S], tuple[Removed, ...]]]" = field(default_factory=list)  # the node before, and what went
    split: "tuple[Part, Node[S], Node[S]] | None" = None
    apart: Any = None
    proof: Any = None


class Space(ABC, Generic[S]):
    """What a search knows of a problem. ``rows`` is for the log; no structure scores less than ``lowest``."""

    rows: int = 0
    lowest: float = -inf

    @abstractmethod
    def relax(self, node: Node[S]) -> None:
        """Lower a node's bound from its multipliers on; -inf if nothing is left there."""

    @abstractmethod
    def error(self, node: Node[S]) -> float:
        """How far rounding may take the node's bound from the truth."""

    def removable(self, node: Node[S]) -> tuple[Removed, ...]:
        """Tightening: parts that no structure better than the incumbent uses, shown by the node's multipliers."""
        return ()

    def without(self, decided: S, removed: tuple[Removed, ...]) -> S:
        """What is decided once these parts are removed."""
        raise NotImplementedError(f"{type(self).__name__} removes parts; write without().")

    @abstractmethod
    def part(self, node: Node[S]) -> Part | None:
        """The part to branch on; None when there is nothing left to decide."""

    @abstractmethod
    def fixed(self, decided: S, part: Part, value: int) -> S:
        """What is decided once a part must not be used (0) or must be (1)."""

    @abstractmethod
    def witness(self, node: Node[S], removed: tuple[Removed, ...] = ()) -> tuple[Multipliers, float, float]:
        """Multipliers by view that prove the node's bound; the bound they give, and its rounding.

        With ``removed``, the rounding of the bounds on structures that use one of these parts.
        """


class Search(Generic[S]):
    """Branch and bound from a root that was relaxed already."""

    def __init__(self, run: Run[Any], space: Space[S], root: Node[S]) -> None:
        self.run, self.space, self.root = run, space, root
        self.nodes = 1
        self.removed = 0
        self.bound, self.error = inf, 0.0  # of the proof, once there is one
        self._order = count()
        self._diving = run.structure is None
        self._open: list[tuple[tuple[float, float], int, Node[S]]] = []

    def climb(self, *, exact: bool) -> None:
        """Branch until nothing better than the incumbent is left, or a limit; without ``exact``, until a structure.

        From the open node with the best bound the search plunges along the better child, to find good structures early.
        """
        run = self.run
        if self._closed(self.root) or (not exact and run.structure is not None):
            return
        self._tighten(self.root)
        self._push(self.root)
        child: Node[S] | None = None
        while (self._open or child) and not run.out_of_time and (exact or run.structure is None):
            if self._diving and run.structure is not None:
                self._diving = False
                self._open = [(self._priority(node), order, node) for _, order, node in self._open]
                heapq.heapify(self._open)
            node = child or heapq.heappop(self._open)[2]
            others = (n.bound for _, _, n in (self._open if self._diving else self._open[:1]))
            run.log.add(max([node.bound, run.score, *others]), run.score, 0.0, self.space.rows)
            child = None
            part = None if self._closed(node) else self.space.part(node)
            if part is None:
                continue  # nothing better, or nothing left to decide: the bound of this node stands as it is
            zero, one = (self._child(node, part, value) for value in (0, 1))
            node.split = (part, zero, one)
            child, other = (one, zero) if one.bound >= zero.bound else (zero, one)
            self._push(other)

    def _priority(self, node: Node[S]) -> tuple[float, float]:
        """Deepest first until there is a structure, then best bound first."""
        return (-float(node.depth), -node.bound) if self._diving else (-node.bound, 0.0)

    def _closed(self, node: Node[S]) -> bool:
        return self.run.closes(node.bound, lambda: self.space.error(node), self.space.lowest)

    def _push(self, node: Node[S]) -> None:
        if not self._closed(node):
            heapq.heappush(self._open, (self._priority(node), next(self._order), node))

    def _child(self, parent: Node[S], part: Part, value: int) -> Node[S]:
        self.nodes += 1
        decided = self.space.fixed(parent.decided, part, value)
        node = Node(decided, parent.multipliers, parent.bound, parent.evidence, parent.depth + 1)
        self.space.relax(node)
        self._tighten(node)
        return node

    def _tighten(self, node: Node[S]) -> None:
        """Remove parts and relax again, while that helps."""
        for _ in range(ROUNDS):
            if self.run.structure is None or self._closed(node) or self.run.out_of_time:
                return
            removed = self.space.removable(node)
            if not removed:
                return
            self.removed += sum(len(part.indices) for part in removed)
            node.fixes.append((replace(node, fixes=[], split=None), removed))
            node.decided = self.space.without(node.decided, removed)
            self.space.relax(node)

    def left(self) -> float:
        """The largest bound of a place where something better than the incumbent may be left; -inf if there is none."""
        most, stack = -inf, [self.root]
        while stack:
            node = stack.pop()
            if node.split is not None:
                stack += node.split[1:]
            elif not self._closed(node):
                most = max(most, node.bound)
        return most

    # -- certificates ----------------------------------------------------------------------------------------------

    def certificate(self, scores: Callable[[], Iterable[float]], score: float) -> Certificate:
        """Of the whole tree: kind "dual" when the root alone makes the bound. ``scores`` are as in ``certified``."""
        whole = self.proof()
        kind, duals = ("dual", whole.multipliers) if isinstance(whole, Leaf) else ("branch and bound", whole)
        return certified(scores, score, self.bound, self.error, kind=kind, duals=duals)

    def leaf(self, node: Node[S]) -> tuple[Proof, float, float]:
        """The proof of a node that was not split, the bound it gives, and the rounding of that."""
        multipliers, here, rounding = self.space.witness(node)
        return Leaf(multipliers), here, rounding

    def proof(self) -> Proof:
        """The tree; sets the ``bound`` that it proves and the ``error`` of it."""
        self.error, leaves = 0.0, list[tuple[float, float]]()
        built: dict[int, Proof] = {}
        stack = [(self.root, False)]
        while stack:
            node, children_built = stack.pop()
            if node.split is not None and not children_built:
                stack += [(node, True), (node.split[1], False), (node.split[2], False)]
                continue
            proof: Proof
            if node.split is None:
                proof, here, rounding = self.leaf(node)
                leaves.append((here, rounding))
            else:
                (view, index), zero, one = node.split
                proof = Split(view, index, built.pop(id(zero)), built.pop(id(one)))
            for before, removed in reversed(node.fixes):
                multipliers, _, rounding = self.space.witness(before, removed)
                self.error = max(self.error, rounding)
                proof = Fix(multipliers, removed, proof)
            built[id(node)] = proof
        self.bound = max(here for here, _ in leaves)
        late = [rounding - (self.bound - here) for here, rounding in leaves if here > -inf]
        self.error = max([self.error, *late])
        return built[id(self.root)]
