"""Sizes of derivations and edges in use, by layers and vertex by vertex, against all derivations."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Hypergraph, Hyperpath, load_result, save_result, verify
from certus.hypergraph import extents
from tests.strategies import hypergraphs

BY_LAYER, BY_VERTEX = 0, 1000


def doubling(levels, last):
    """A chain whose derivations double from vertex to vertex, and an edge around it, which scores 1."""
    tails = [k for k in range(levels - 1) for _ in range(2)]
    graph = Hypergraph([*range(levels), levels + 1], [0, *range(0, 2 * levels, 2), 2 * (levels - 1)], tails)
    return Hyperpath(graph, [*[last] * levels, 1.0 if last >= 0 else -1.0])


@settings(max_examples=80)
@given(hypergraphs(), st.data())
def test_against_all_derivations(case, data):
    graph, _ = case
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=graph.n_edges, max_size=graph.n_edges)), dtype=bool)
    every = list(graph.hyperpaths())
    used = {e for edges in every if allowed[edges].all() for e in edges}
    for narrow in (BY_LAYER, BY_VERTEX):
        with mock.patch.object(extents, "NARROW", narrow):
            assert extents.longest(graph) == max(map(len, every), default=0)
            assert set(np.flatnonzero(extents.useful_edges(graph, allowed)).tolist()) == used


@pytest.mark.parametrize("narrow", [BY_LAYER, BY_VERTEX])
def test_derivations_beyond_all_numbers(narrow):
    with mock.patch.object(extents, "NARROW", narrow):
        assert doubling(2000, 0.0).graph.longest == extents.MOST
        assert doubling(61, 0.0).graph.longest == 2**61 - 1 if narrow == BY_VERTEX else 2**61


def test_large_derivations_of_negative_scores_spoil_no_proof():
    problem = doubling(100, -0.5)
    result = problem.decode()
    assert result.certificate.exact
    verify(problem, result)


def test_where_rounding_may_hide_anything_nothing_is_claimed(tmp_path):
    problem = doubling(60, 0.0)
    result = problem.decode()
    assert not result.certificate.exact
    assert result.certificate.bound == math.inf
    save_result(tmp_path / "result.json", problem, result)
    verify(*load_result(tmp_path / "result.json"))
