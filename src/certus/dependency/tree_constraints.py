"""Constraints on dependency trees, said in words, arcs and labels: for ``Dependency`` and ``LabelledDependency``.

    from certus.dependency import tree_constraints as trees

    problem.subject_to(trees.require_arc(2, 5), *trees.subtree(problem, 3, 6))

Arcs that are forbidden or required leave the problem what it was, with all its questions and its own decoder. What ties
several arcs becomes rows over the views "arcs" and "labels", relaxed with multipliers and closed by branch and bound.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from certus.dependency.labels import LabelledDependency
from certus.dependency.problem import Dependency
from certus.errors import InvalidInput
from certus.relax.constraints import Constraint, at_most, forbid, require


def require_arc(h: int, m: int) -> Constraint:
    """The head of word m is h."""
    return require("arcs", (h, m))


def forbid_arc(h: int, m: int) -> Constraint:
    """The head of word m is not h."""
    return forbid("arcs", (h, m))


def fixed_heads(heads: ArrayLike) -> list[Constraint]:
    """The heads of a partial tree: ``heads[m]`` is the head of word m, -1 where it is open; cell 0 is not read."""
    given = np.asarray(heads)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InvalidInput(f"heads are {heads!r}; expected one whole number per node, -1 where it is left open.")
    return [require_arc(int(given[m]), m) for m in range(1, len(given)) if given[m] >= 0]


def at_most_modifiers(
    problem: Dependency | LabelledDependency, k: int, heads: Iterable[int] | None = None
) -> list[Constraint]:
    """No head (or none of these heads) has more than k modifiers. With k = 0 its arcs are simply forbidden."""
    out = []
    for h in range(1, problem.n + 1) if heads is None else heads:
        modifiers = _modifiers(problem, h)
        if k == 0:
            out += [forbid_arc(h, m) for m in modifiers]
        elif len(modifiers) > k:
            parts = [(h, m) for m in modifiers]
            out.append(at_most(k, "arcs", parts).named(f"at most {k} modifiers of {h}"))
    return out


def at_most_one_labelled(
    problem: LabelledDependency, label: int, heads: Iterable[int] | None = None
) -> list[Constraint]:
    """No head (or none of these) has two modifiers with this label: rows over the view "labels"."""
    if not 0 <= label < problem.label.shape[2]:
        raise InvalidInput(f"{label} is no label; expected 0..{problem.label.shape[2] - 1}.")
    out = []
    for h in range(problem.n + 1) if heads is None else heads:
        parts = [(h, m, label) for m in _modifiers(problem, h) if problem.label[h, m, label] > -np.inf]
        if len(parts) > 1:
            out.append(at_most(1, "labels", parts).named(f"at most one modifier of {h} with label {label}"))
    return out


def subtree(problem: Dependency | LabelledDependency, first: int, last: int) -> list[Constraint]:
    """Words first..last are one head with all its descendants: one arc enters the span and none leaves it."""
    n = problem.n
    if not 1 <= first <= last <= n:
        raise InvalidInput(f"the span is {first}..{last}; expected 1 <= first <= last <= {n}.")
    inside = range(first, last + 1)
    out = [forbid_arc(h, m) for h in inside for m in range(1, n + 1) if m not in inside]
    entering = [(h, m) for m in inside for h in range(n + 1) if h not in inside and problem.arc[h, m] > -np.inf]
    if last > first and len(entering) > 1:
        out.append(at_most(1, "arcs", entering).named(f"words {first}..{last} form a subtree"))
    return out


def _modifiers(problem: Dependency | LabelledDependency, h: int) -> list[int]:
    if not 0 <= h <= problem.n:
        raise InvalidInput(f"{h} is no head; expected 0..{problem.n}.")
    return [m for m in range(1, problem.n + 1) if problem.arc[h, m] > -np.inf]
