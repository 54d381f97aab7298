"""Automata, and their intersection with hypergraphs, against the score of every derivation's symbols."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Automaton, Hypergraph, Hyperpath, InvalidInput, NotSupported, intersect
from certus.hypergraph.automata import trigram_automaton
from tests.hypergraph.cases import derivations
from tests.strategies import hypergraphs


@st.composite
def automata(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_states, n_symbols = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    weights = rng.integers(-8, 9, (n_states, n_symbols)).astype(float)
    weights[rng.random(weights.shape) < 0.1] = -np.inf
    ends = np.where(rng.random(n_states) < 0.7, rng.integers(-2, 3, n_states), -np.inf)
    table = rng.integers(-1 if draw(st.booleans()) else 0, n_states, (n_states, n_symbols))
    return Automaton(table, weights, initial=int(rng.integers(n_states)), final_weights=ends)


def fringe(graph, edges, symbols):
    return [symbols[e] for e in edges if not len(graph.tail_of(e))]


@settings(max_examples=120)
@given(hypergraphs(limit=100), automata(), st.integers(0, 2**32 - 1))
def test_the_intersection_has_exactly_the_accepted_derivations(case, automaton, seed):
    graph, weights = case
    symbols = np.random.default_rng(seed).integers(-1, automaton.n_symbols, graph.n_edges)
    new, new_weights, edge_map = intersect(graph, weights, automaton, symbols)
    scored = [(s + automaton.score(fringe(graph, y, symbols)), y) for s, y in derivations(graph, weights)]
    want = sorted((s, y) for s, y in scored if s > -math.inf)
    found = []
    for score, edges in derivations(new, new_weights):
        original = edge_map[list(edges)].tolist()
        assert original[0] == -1
        found.append((score, tuple(original[1:])))
    assert sorted(found) == want
    new.check()
    if want:
        assert Hyperpath(new, new_weights).decode().score == want[-1][0]
        reached = {e for edges in new.hyperpaths() for e in edges}
        assert reached == set(range(new.n_edges))
    else:
        assert new.n_vertices == 1
        assert new.n_edges == 0


def test_a_large_intersection_counts_what_it_should():
    """All words of n symbols over a chain, against an automaton of residues: as many as sums that vanish mod 7."""
    n, q = 40, 7
    graph = Hypergraph(
        [0, *range(3, 3 * n + 1, 3), *range(3 * n + 1, 4 * n)],
        [0] * (3 * n + 1) + list(range(2, 2 * n, 2)),
        [t for i in range(1, n) for t in ((0 if i == 1 else n + i - 2), i)],
    )
    automaton = Automaton([[(state + s) % q for s in range(3)] for state in range(q)], finals=[0])
    symbols = [e % 3 if e < 3 * n else None for e in range(graph.n_edges)]
    new, _, _ = intersect(graph, np.zeros(graph.n_edges), automaton, symbols)
    ways = [1] + [0] * (q - 1)
    for _ in range(n):
        ways = [sum(ways[(r - s) % q] for s in range(3)) for r in range(q)]
    from certus.hypergraph import sweeps

    assert sweeps.count(new) == ways[0]


def test_labels_name_items_and_states():
    graph = Hypergraph([0, 1, 2], [0, 0, 1], [0], vertex_labels=["the", "NP"], edge_labels=["word", "rule"])
    automaton = Automaton.from_arcs({("start", "the"): ("end", 1.5)}, initial="start", finals=["end"])
    new, weights, edge_map = intersect(graph, [0.0, 1.0], automaton, ["the", None])
    assert new.vertex_labels == ("the[0,1]", "NP[0,1]", "root")
    assert new.edge_labels == ("word", "rule", "")
    assert weights.tolist() == [1.5, 1.0, 0.0]
    assert edge_map.tolist() == [0, 1, -1]


@settings(max_examples=100)
@given(st.integers(0, 4), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_trigram_automaton_sums_trigrams(n, size, shortest, seed):
    rng = np.random.default_rng(seed)
    trigram = rng.integers(-8, 9, (size + 1, size + 1, size)).astype(float)
    stop = rng.integers(-8, 9, (size + 1, size + 1)).astype(float)
    tags = rng.integers(0, size, n).tolist()
    padded = [size, size, *tags]
    want = sum(trigram[padded[i - 2], padded[i - 1], padded[i]] for i in range(2, n + 2)) + stop[padded[-2], padded[-1]]
    automaton = trigram_automaton(trigram, stop=stop, shortest=shortest)
    assert automaton.n_states == 1 + size + size**2
    assert automaton.score(tags) == (want if n >= shortest else -math.inf)


def test_errors_say_what_is_wrong():
    with pytest.raises(InvalidInput, match=r"transitions\[0, 1\] is 5"):
        Automaton([[0, 5]])
    with pytest.raises(InvalidInput, match="whole numbers"):
        Automaton([[0.5]])
    with pytest.raises(InvalidInput, match="initial is 3"):
        Automaton([[0]], initial=3)
    with pytest.raises(InvalidInput, match="final state 2"):
        Automaton([[0]], finals=[2])
    with pytest.raises(InvalidInput, match=r"weights\[0, 0\] is nan"):
        Automaton([[0]], [[math.nan]])
    with pytest.raises(InvalidInput, match="symbols has 2 names"):
        Automaton([[0]], symbols=["a", "b"])
    with pytest.raises(InvalidInput, match="'z', which is not in"):
        Automaton([[0]], symbols=["a"]).score(["z"])
    with pytest.raises(InvalidInput, match="symbol 0 is 4"):
        Automaton([[0]]).score([4])
    with pytest.raises(InvalidInput, match="expected one for each of 1 edges"):
        intersect(Hypergraph([0, 1], [0, 0], []), [0.0], Automaton([[0]]), [])
    with pytest.raises(InvalidInput, match="shape"):
        trigram_automaton(np.zeros((2, 2, 2)))


def test_an_intersection_too_large_to_hold_is_refused():
    graph = Hypergraph([0, 3], [0, 0, 0, 0], [])
    with pytest.raises(NotSupported, match="Prune"):
        intersect(graph, np.zeros(3), Automaton([[0]]), [0, 0, 0], max_edges=2)
