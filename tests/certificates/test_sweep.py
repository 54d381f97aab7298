"""Sweeps over graphs against all derivations, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certus import InvalidInput
from certus.certificates import sweep
from certus.certificates.normal import Graph
from tests.strategies import hypergraphs

NONE = np.zeros(0, dtype=np.int64)


def graph_of(h):
    """The vertices of a hypergraph up to its root, each edge with the part of its number."""
    edges = int(h.in_ptr[h.root + 1])
    tails = h.tail_ptr[: edges + 1].astype(np.int64)
    every = np.arange(edges)
    return Graph(
        h.in_ptr[: h.root + 2].astype(np.int64),
        tails,
        h.tail[: tails[-1]].astype(np.int64),
        np.arange(edges + 1),
        every,
    )


@st.composite
def cases(draw):
    h, weights = draw(hypergraphs())
    graph = graph_of(h)
    weight = sweep.edge_weights(graph, weights)
    scored = [(sum([weights[e] for e in edges], 0.0), edges) for edges in h.hyperpaths()]
    return graph, weight, [(score, edges) for score, edges in scored if score > -np.inf], draw(st.booleans())


def plan_of(graph, by_depth):
    """The plan, or the one of vertices sorted by depth, whatever it costs."""
    if not by_depth:
        return sweep.levels(graph)
    bounds = sweep._runs(graph)
    depth = sweep._depths(graph, bounds)
    sorted_graph, vertex, edge = sweep._sorted_by(graph, depth)
    return sweep._plan(sorted_graph, vertex, edge, np.concatenate(([0], np.cumsum(np.bincount(depth)))))


@given(cases())
def test_charts_and_max_marginals_are_those_of_all_derivations(case):
    graph, weight, scored, by_depth = case
    plan = plan_of(graph, by_depth)
    chart = sweep.inside(plan, weight)
    assert chart[-1] == max((score for score, _ in scored), default=-np.inf)
    around = sweep.outside(plan, weight, chart)
    through = sweep.edge_max_marginals(plan, weight, chart)
    heads = np.repeat(np.arange(len(chart)), np.diff(graph.in_ptr))
    for e in range(len(weight)):
        assert through[e] == max((score for score, edges in scored if e in edges), default=-np.inf)
    for v in range(len(chart)):
        used = [score for score, edges in scored if v in heads[edges]]
        assert around[v] + chart[v] == max(used, default=-np.inf)
    if scored:
        best = sweep.best_derivation(graph, plan, weight, chart)
        assert (chart[-1], best) in scored
    else:
        with pytest.raises(InvalidInput):
            sweep.best_derivation(graph, plan, weight, chart)


@given(cases(), st.data())
def test_the_best_derivation_but_for_some(case, data):
    graph, weight, scored, by_depth = case
    plan = plan_of(graph, by_depth)
    chart = sweep.inside(plan, weight)
    left_out = data.draw(st.sets(st.integers(0, max(len(scored) - 1, 0)), max_size=5)) if scored else set()
    rest = [score for k, (score, _) in enumerate(scored) if k not in left_out]
    found = sweep.best_excluding(graph, plan, weight, chart, [scored[k][1] for k in left_out])
    assert found == max(rest, default=-np.inf)


def test_what_is_no_derivation_cannot_be_left_out():
    graph = Graph(np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([0]), np.zeros(3, dtype=np.int64), NONE)
    plan, weight = sweep.levels(graph), np.zeros(2)
    chart = sweep.inside(plan, weight)
    for wrong in ([], [0], [1], [1, 0, 0], [1, 1]):
        with pytest.raises(InvalidInput):
            sweep.best_excluding(graph, plan, weight, chart, [wrong])
    assert sweep.best_excluding(graph, plan, weight, chart, [[1, 0]]) == -np.inf


@pytest.mark.parametrize("tail", [1, 2, -1])
def test_tails_come_before_heads(tail):
    graph = Graph(np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([tail]), np.zeros(3, dtype=np.int64), NONE)
    with pytest.raises(InvalidInput):
        sweep.levels(graph)


def test_edges_weigh_what_their_parts_do():
    graph = Graph(
        np.array([0, 3]), np.zeros(4, dtype=np.int64), NONE, np.array([0, 2, 2, 5]), np.array([0, 1, 1, 1, 2])
    )
    assert sweep.edge_weights(graph, np.array([1.0, 2.0, -np.inf])).tolist() == [3.0, 0.0, -np.inf]


def test_long_chains_are_swept_in_seconds():
    size = 30_000
    steps = np.arange(size)
    graph = Graph(np.append(steps, size), np.append(0, steps), steps[:-1], np.zeros(size + 1, dtype=np.int64), NONE)
    plan, weight = sweep.levels(graph), np.ones(size)
    chart = sweep.inside(plan, weight)
    assert chart[-1] == size
    assert sweep.edge_max_marginals(plan, weight, chart).tolist() == [size] * size
    assert sweep.best_excluding(graph, plan, weight, chart, [steps[::-1].tolist()]) == -np.inf


def test_vertices_in_another_order_are_sorted_by_depth():
    """Many words of two layers each, numbered word by word, under one root."""
    words = 500
    in_ptr = np.append(np.arange(2 * words + 1), 2 * words + 1)
    tails = [[] if v % 2 == 0 else [v - 1] for v in range(2 * words)] + [list(range(1, 2 * words, 2))]
    tail_ptr = np.cumsum([0, *map(len, tails)])
    graph = Graph(
        in_ptr, tail_ptr, np.concatenate(tails).astype(np.int64), np.zeros(2 * words + 2, dtype=np.int64), NONE
    )
    plan = sweep.levels(graph)
    assert len(plan.blocks) == 3
    weight = np.ones(2 * words + 1)
    chart = sweep.inside(plan, weight)
    assert chart.tolist() == [1.0, 2.0] * words + [2 * words + 1]
    assert sweep.outside(plan, weight, chart).tolist() == [2.0 * words, 2.0 * words - 1] * words + [0.0]
