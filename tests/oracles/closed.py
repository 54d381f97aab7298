"""What closed forms leave of small problems, derivation by derivation."""

import numpy as np

from certus import Hypergraph
from tests.oracles.normal import score, uses


def left(problem, above, penalties=None):
    """The closed form above a score, and the scores of its derivations with penalties."""
    closed = problem.closed_form(above, problem.make_witness(above, penalties), penalties)
    (graph,), scores = closed.form.spaces, closed.form.scores.copy()
    for view, penalty in (penalties or {}).items():
        cell = closed.form.cells[view]
        np.add.at(scores, cell[cell >= 0], np.asarray(penalty, dtype=float).reshape(-1)[cell >= 0])
    derivations = Hypergraph(graph.in_ptr, graph.tail_ptr, graph.tail).hyperpaths() if len(graph.tail_ptr) > 1 else ()
    return closed, {tuple(edges): score(scores, uses(graph, edges, len(scores))) for edges in derivations}


def check(problem, values, above, penalties=None):
    """All structures above a score are left, each once and with its score; ``values`` has those of all structures."""
    closed, found = left(problem, above, penalties)
    for structure, value in values.items():
        edges = closed.structure(structure)
        if edges is None:
            assert not value > above
        else:
            assert found.pop(tuple(edges)) == value
    assert not [value for value in found.values() if value > -np.inf]
