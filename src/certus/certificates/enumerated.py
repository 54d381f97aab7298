"""The normal form of a problem that does not write one itself: all of its structures, one by one."""

from collections.abc import Hashable
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from certus.certificates.normal import Graph, NormalForm
from certus.certificates.rounding import Floats
from certus.checks import Ints
from certus.errors import NotSupported

if TYPE_CHECKING:
    from certus.problem import Problem

MOST = 200_000  # structures


def enumerated_form(problem: "Problem[Any]") -> NormalForm:
    """An edge for each structure, with a part for each of its terms and one for each use of a cell of a view.

    NotSupported if there are too many.
    """
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in problem.views.values()]
    starts = np.cumsum([0, *sizes])
    scores: list[Floats] = [np.zeros(int(starts[-1]))]
    parts, ptr, next_part = list[Ints](), [0], int(starts[-1])
    for y in _listed(problem):
        terms = np.asarray(problem.terms(y), dtype=np.float64)
        used = [np.zeros(0, dtype=np.int64)]
        for view, start in zip(problem.views, starts.tolist(), strict=False):
            uses = problem.indicator(y, view).reshape(-1)
            used.append(start + np.repeat(np.arange(uses.size), np.round(uses).astype(np.int64)))
        parts += [np.concatenate(used), next_part + np.arange(len(terms))]
        scores.append(terms)
        next_part += len(terms)
        ptr.append(ptr[-1] + len(parts[-1]) + len(parts[-2]))
    edges = len(ptr) - 1
    nothing = np.zeros(0, dtype=np.int64)
    graph = Graph(
        np.array([0, edges]),
        np.zeros(edges + 1, dtype=np.int64),
        nothing,
        np.array(ptr),
        np.concatenate([nothing, *parts]),
    )
    cells = {
        view: np.arange(start, start + size)
        for view, start, size in zip(problem.views, starts.tolist(), sizes, strict=False)
    }
    return NormalForm(np.concatenate(scores), (graph,), cells)


def enumerated_structure(problem: "Problem[Any]", structure: Any) -> tuple[list[int]]:
    """The edge of a structure."""
    key = structure_key(problem, structure)
    return ([next(k for k, y in enumerate(_listed(problem)) if structure_key(problem, y) == key)],)


def structure_key(problem: "Problem[Any]", structure: Any) -> Hashable:
    """What tells the structures of a problem apart."""
    try:
        return repr(problem.structure_to_json(structure))
    except NotSupported:
        uses = (problem.indicator(structure, view).tobytes() for view in problem.views)
        return (repr(structure), *uses)


def _listed(problem: "Problem[Any]") -> list[Any]:
    found = list(islice(problem.all_structures(), MOST + 1))
    if len(found) > MOST:
        raise NotSupported(
            f"{type(problem).__name__} has more than {MOST} structures and no normal_form() of its own, which "
            "verification needs: write one, or make the problem smaller."
        )
    return found
