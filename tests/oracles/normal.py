"""Holds the normal form of a small problem of one graph against all its structures, one by one."""

from collections import Counter

import numpy as np

from certus import Hypergraph, InvalidInput
from certus.certificates.normal import Graph


def uses(graph: Graph, edges, size: int) -> np.ndarray:
    """How often a derivation uses each part."""
    parts = [graph.part[graph.part_ptr[e] : graph.part_ptr[e + 1]] for e in edges]
    return np.bincount(np.concatenate([np.zeros(0, dtype=np.int64), *parts]), minlength=size)


def score(scores, used) -> float:
    return float(scores[used > 0] @ used[used > 0]) if (scores[used > 0] > -np.inf).all() else -np.inf


def meets(rows, used) -> bool:
    for r in range(len(rows.rhs)):
        at = slice(rows.ptr[r], rows.ptr[r + 1])
        value = rows.coefficient[at] @ used[rows.part[at]]
        if (value != rows.rhs[r]) if rows.equality[r] else value > rows.rhs[r]:
            return False
    return True


def check(problem, structures=None) -> None:
    """Derivations and structures are one to one, with the same scores and the same cells of every view.

    ``structures`` are all of the problem, where it cannot list them.
    """
    form = problem.normal_form()
    (graph,) = form.spaces
    assert {array.dtype for array in graph} == {np.dtype(np.int64)}
    assert np.array_equal(np.unique(graph.part), np.arange(len(form.scores)))
    assert set(form.cells) == set(problem.views)
    found = {}
    for edges in Hypergraph(graph.in_ptr, graph.tail_ptr, graph.tail).hyperpaths():
        used = uses(graph, edges, len(form.scores))
        if meets(form.rows, used) and score(form.scores, used) > -np.inf:
            found[tuple(edges)] = used
    structures = list(problem.all_structures()) if structures is None else structures
    scored = [y for y in structures if problem.score(y) > -np.inf]
    assert Counter(score(form.scores, used) for used in found.values()) == Counter(map(problem.score, scored))
    for y in scored:
        (edges,) = problem.normal_structure(y)
        used = found.pop(tuple(edges))
        assert score(form.scores, used) == problem.score(y)
        for view, shape in problem.views.items():
            cell = form.cells[view]
            assert cell.shape == (np.prod(shape, dtype=int),)
            here = np.append(used, 0)[cell].reshape(shape)
            assert np.array_equal(here, problem.indicator(y, view))
    assert not found
    for y in structures:
        if problem.score(y) == -np.inf:
            try:
                (edges,) = problem.normal_structure(y)
            except InvalidInput:
                continue
            assert score(form.scores, uses(graph, edges, len(form.scores))) == -np.inf
