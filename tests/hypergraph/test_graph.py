"""The hypergraph itself: construction, order, checks and errors."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Hypergraph, HypergraphBuilder, InvalidInput
from tests.hypergraph.cases import is_preorder
from tests.strategies import hypergraphs


def brute_force(graph, v):
    """Derivations of v by plain recursion, as trees flattened head first."""
    out = []
    for e in graph.edges_into(v):
        partial = [[e]]
        for u in graph.tail_of(e).tolist():
            partial = [left + right for left in partial for right in brute_force(graph, u)]
        out += partial
    return out


@settings(max_examples=80)
@given(hypergraphs())
def test_hyperpaths_are_all_derivations_once(case):
    graph, _ = case
    found = list(graph.hyperpaths())
    assert sorted(found) == sorted(brute_force(graph, graph.root))
    assert len({tuple(edges) for edges in found}) == len(found)
    assert all(is_preorder(graph, edges) for edges in found)


@settings(max_examples=80)
@given(hypergraphs(), st.integers(0, 2**32 - 1))
def test_edges_in_any_order_give_the_same_derivations(case, seed):
    graph, _ = case
    rng = np.random.default_rng(seed)
    edges, names = rng.permutation(graph.n_edges), rng.permutation(graph.n_vertices)  # names[v]: shuffled number of v
    tails = [names[graph.tail_of(e)] for e in edges]
    built, edge_map, vertex_map = Hypergraph.from_edges(
        names[graph.heads[edges]].astype(int),
        np.cumsum([0, *map(len, tails)]),
        np.concatenate([np.empty(0, dtype=int), *tails]),
        n_vertices=graph.n_vertices,
        root=int(names[graph.root]),
    )
    back = [[int(edges[edge_map[e]]) for e in path] for path in built.hyperpaths()]
    assert sorted(back) == sorted(graph.hyperpaths())
    assert vertex_map[built.root] == names[graph.root]
    assert sorted(edge_map.tolist()) == list(range(graph.n_edges))


@given(hypergraphs())
def test_edges_in_order_keep_their_numbers(case):
    graph, _ = case
    built, edge_map, vertex_map = Hypergraph.from_edges(
        graph.heads, graph.tail_ptr, graph.tail, n_vertices=graph.n_vertices, root=graph.root
    )
    assert built == graph
    assert edge_map.tolist() == list(range(graph.n_edges))
    assert vertex_map.tolist() == list(range(graph.n_vertices))


def test_builder_takes_items_in_any_order():
    b = HypergraphBuilder()
    s, np_, the, dog = (b.vertex(label) for label in ("S", "NP", "the", "dog"))
    first = b.edge(s, [np_], label="S -> NP", weight=1.0)
    b.edge(np_, [the, dog], label="NP -> the dog", weight=2.0)
    b.edge(the, weight=3.0)
    last = b.edge(dog, weight=-np.inf)
    graph, weights, edge_map, vertex_map = b.build(root=s)
    assert graph.vertex_labels == ("the", "dog", "NP", "S")
    assert weights.tolist() == [3.0, -np.inf, 2.0, 1.0]
    assert graph.edge_labels == ("", "", "NP -> the dog", "S -> NP")
    assert edge_map[-1] == first
    assert edge_map[1] == last
    assert vertex_map[graph.root] == s
    with pytest.raises(InvalidInput, match=r"edge 4 names vertex 7; the vertices made so far are 0\.\.3"):
        b.edge(s, [7])
    b.edge(s, weight=float("nan"))
    with pytest.raises(InvalidInput, match=r"weight\[4\] is nan"):
        b.build(root=s)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [0], []), "at least one vertex"),
        (([0, 0], [], []), "tail_ptr is empty"),
        (([0, 2], [0, 0], []), "in_ptr runs from 0 to 2; expected 0 to 1"),
        (([0, 1, 0, 2], [0, 0, 0], []), "in_ptr falls from 1 to 0 at vertex 1"),
        (([0, 1, 2], [0, 0, 1], [5]), r"edge 1 has vertex 5 in its tail; vertices are 0\.\.1"),
        (([0, 1, 2], [0, 0, 1], [-1]), "edge 1 has vertex -1"),
        (([0, 1, 2], [0, 1, 1], [1]), "edge 0 enters vertex 0 but has vertex 1 in its tail"),
        (([0, 1], [0, 1], [0]), "edge 0 enters vertex 0 but has vertex 0"),
        (([0.0, 1.0], [0, 0], []), "in_ptr has type float64"),
        (([[0, 1]], [0, 0], []), "in_ptr has 2 dimensions"),
        (([0, 2**40], [0, 0], []), "beyond 32 bits"),
        (([0, 1], [0, 0], [], 1), r"root is 1; vertices are 0\.\.0"),
        (([0, 1], [0, 0], [], None, ["a", "b"]), "vertex_labels has 2 entries; expected 1"),
        (([0, 1], [0, 0], [], None, None, [3]), r"edge_labels\[0\] is 3; labels are strings"),
    ],
)
def test_malformed_arrays_are_rejected(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        Hypergraph(*arguments)


def test_a_cycle_is_named():
    with pytest.raises(InvalidInput, match=r"edge [12] .* lies on a cycle"):
        Hypergraph.from_edges([3, 1, 2, 0], [0, 1, 3, 4, 4], [1, 0, 2, 1])
    with pytest.raises(InvalidInput, match=r"edge 0 \(into vertex 0 from \[0\]\) lies on a cycle"):
        Hypergraph.from_edges([0], [0, 1], [0])


def test_dangling_vertices_are_named():
    with pytest.raises(InvalidInput, match=r"edge 1 has tail vertex 9; vertices are 0\.\.2"):
        Hypergraph.from_edges([0, 2], [0, 0, 2], [0, 9], n_vertices=3)
    with pytest.raises(InvalidInput, match="edge 0 has head vertex 4"):
        Hypergraph.from_edges([4], [0, 0], [], n_vertices=3)
    with pytest.raises(InvalidInput, match="tail_ptr has 1 entries for 1 edges"):
        Hypergraph.from_edges([0], [0], [])
    with pytest.raises(InvalidInput, match="no vertices"):
        Hypergraph.from_edges([], [0], [])


def test_connectedness():
    Hypergraph([0, 1, 2], [0, 0, 1], [0]).check()
    with pytest.raises(InvalidInput, match="edge 1: 1 <- 0: vertex 1 is in no tail"):
        Hypergraph([0, 1, 2, 3], [0, 0, 1, 2], [0, 0]).check()
    with pytest.raises(InvalidInput, match="not connected"):
        Hypergraph([0, 1, 2], [0, 0, 1], [0], root=0).check()


def test_given_reference_sets():
    graph = Hypergraph([0, 1, 2, 3], [0, 0, 0, 2], [0, 1])
    graph.check(references=[{1}, {2}, {1, 2}])
    for references, message in [
        ([{1}, {1}, {1, 2}], "edge 2: 2 <- 0 1: the reference set of tail vertex 1 overlaps"),
        ([{1}, {2}, {1}], "vertex 1 is not inside that of the root"),
        ([{1}, set(), {1}], "vertex 1 is empty"),
        ([{1}], "has 1 sets"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            graph.check(references=references)
    chain = Hypergraph([0, 1, 2, 3], [0, 0, 1, 2], [0, 1])
    with pytest.raises(InvalidInput, match=r"edge 1: 1 <- 0: .* not inside that of the head"):
        chain.check(references=[{1}, {2}, {1, 2}])


@settings(max_examples=80)
@given(hypergraphs())
def test_disjoint_references_mean_no_vertex_is_used_twice(case):
    graph, _ = case
    try:
        graph.check(connected=False, disjoint_references=True)
    except InvalidInput:
        return
    for edges in graph.hyperpaths():
        assert len({int(graph.heads[e]) for e in edges}) == len(edges)


def test_a_graph_is_frozen():
    graph = Hypergraph([0, 1], [0, 0], [])
    with pytest.raises(AttributeError, match="frozen"):
        graph.root = 3
    with pytest.raises(AttributeError, match="frozen"):
        del graph.tail
    for array in (graph.in_ptr, graph.tail_ptr, graph.tail, graph.heads):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(TypeError):
        hash(graph)


def test_a_graph_copies_and_compares():
    graph = Hypergraph([0, 1], [0, 0], [], vertex_labels=["x"])
    assert copy.deepcopy(graph) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert graph != Hypergraph([0, 1], [0, 0], [])
    assert repr(graph) == "Hypergraph(vertices=1, edges=1, root=0)"


def test_the_arrays_given_are_not_touched():
    in_ptr = np.array([0, 1], dtype=np.int32)
    graph = Hypergraph(in_ptr, [0, 0], [])
    in_ptr[1] = 0
    assert graph.in_ptr.tolist() == [0, 1]
