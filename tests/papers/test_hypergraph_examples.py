"""Worked examples about hypergraphs and automata in LR: sections 2.2 and 5.1."""

import itertools

import numpy as np
import pytest

from certus import Automaton, HypergraphBuilder, Hyperpath, InvalidInput, intersect
from certus.hypergraph import sweeps
from certus.hypergraph.automata import trigram_automaton

WORDS = ["the", "man", "walks", "the", "dog", "in", "the", "park"]
BINARY = {
    ("S", "NP", "VP"): 1,
    ("VP", "V", "NP"): 3,
    ("VP", "VP", "PP"): 2,
    ("NP", "NP", "PP"): 5,
    ("PP", "P", "NP"): 4,
    ("NP", "D", "N"): 0,  # used by both parses of the example; its weight is not given there
}
LEXICON = {
    ("N", "man"): 2,
    ("N", "dog"): 3,
    ("N", "park"): 4,
    ("P", "in"): 2,
    ("D", "the"): 1,
    ("V", "walks"): 5,
}
TAGS = ["D", "N", "V", "P"]


def tagging_lattice(n, tags, theta):
    """The lattice of LR 2.2.1; returns the graph, its weights, and the trigram (i, A, B, C) of each edge, or None."""
    b = HypergraphBuilder()
    source = b.vertex("Source")
    b.edge(source)
    pairs = list(itertools.product(tags, repeat=2))
    vertex = {(i, *pair): b.vertex(f"{i} {pair}") for i in range(2, n + 1) for pair in pairs}
    sink = b.vertex("Sink")
    trigrams = [None]
    for pair in pairs:
        b.edge(vertex[2, *pair], [source])
        trigrams.append(None)
    for i in range(3, n + 1):
        for A, B, C in itertools.product(tags, repeat=3):
            b.edge(vertex[i, B, C], [vertex[i - 1, A, B]], weight=theta(i, A, B, C))
            trigrams.append((i, A, B, C))
    for pair in pairs:
        b.edge(sink, [vertex[n, *pair]])
        trigrams.append(None)
    graph, weights, edge_map, _ = b.build(root=sink)
    return graph, weights, [trigrams[e] for e in edge_map]


def parsing_hypergraph():
    """The hypergraph of LR 2.2.3 for the sentence of ex. 2.2.2, items that cannot be built left out."""
    b = HypergraphBuilder()
    items, spans, tags, rules = {}, [], [], []

    def vertex(item):
        if item not in items:
            items[item] = b.vertex(f"{item[2]}({item[0]},{item[1]})")
            spans.append(set(range(item[0], item[1] + 1)))
        return items[item]

    n = len(WORDS)
    for i, word in enumerate(WORDS, 1):
        for (tag, w), weight in LEXICON.items():
            if w == word:
                b.edge(vertex((i, i, tag)), weight=weight, label=f"{tag} -> {word}")
                tags.append(tag)
                rules.append((tag, word))
    for width in range(2, n + 1):
        for i in range(1, n - width + 2):
            k = i + width - 1
            for j in range(i, k):
                for (X, Y, Z), weight in BINARY.items():
                    if (i, j, Y) in items and (j + 1, k, Z) in items:
                        b.edge(vertex((i, k, X)), [items[i, j, Y], items[j + 1, k, Z]], weight=weight)
                        tags.append(None)
                        rules.append((X, Y, Z))
    graph, weights, edge_map, vertex_map = b.build(root=items[1, n, "S"])
    useful, kept, vertices = sweeps.subgraph(graph, np.ones(graph.n_edges, dtype=bool))
    edges = edge_map[kept]
    return (
        useful,
        weights[kept],
        [tags[e] for e in edges],
        [rules[e] for e in edges],
        [spans[v] for v in vertex_map[vertices]],
    )


def eisner_hypergraph(n):
    """The hypergraph of LR 2.2.4; returns the graph, the vertex names and the arc that each edge adds, or None."""
    b = HypergraphBuilder()
    vertex = {
        (t, d, i, j): b.vertex(f"{t}{d}{i}{j}")
        for t, d, i, j in itertools.product("CI", "<>", range(n + 1), range(n + 1))
        if i <= j
    }
    arcs = []

    def edge(head, *tail, arc=None):
        b.edge(vertex[head], [vertex[v] for v in tail])
        arcs.append(arc)

    for i in range(n + 1):
        edge(("C", ">", i, i))
        if i:
            edge(("C", "<", i, i))
    for h, r, m in itertools.combinations_with_replacement(range(n + 1), 3):
        if r < m:
            edge(("I", ">", h, m), ("C", ">", h, r), ("C", "<", r + 1, m), arc=(h, m))
            edge(("I", "<", h, m), ("C", ">", h, r), ("C", "<", r + 1, m), arc=(m, h))
        if h < r:
            edge(("C", ">", h, m), ("I", ">", h, r), ("C", ">", r, m))
        if r < m:
            edge(("C", "<", h, m), ("C", "<", h, r), ("I", "<", r, m))
    graph, _, edge_map, _ = b.build(root=vertex["C", ">", 0, n])
    return graph, [arcs[e] for e in edge_map]


def test_example_2_2_1_a_tagging_lattice():
    wanted = ["D", "N", "V", "D", "N"]
    good = {(i, *wanted[i - 3 : i]) for i in range(3, 6)}
    assert good == {(3, "D", "N", "V"), (4, "N", "V", "D"), (5, "V", "D", "N")}
    graph, weights, trigrams = tagging_lattice(5, ["D", "N", "V"], lambda *trigram: float(trigram in good))
    assert sweeps.count(graph) == 3**5
    graph.check(disjoint_references=True)  # a lattice has them trivially
    value, edges = sweeps.best(graph, weights)
    assert value == 3.0
    assert {trigrams[e] for e in edges} - {None} == good
    assert sweeps.max_marginals(graph, weights).max() == 3.0


def test_example_2_2_2_context_free_parsing():
    graph, weights, _, rules, spans = parsing_hypergraph()
    graph.check(disjoint_references=True)
    graph.check(references=spans)
    scores = {}
    for edges in graph.hyperpaths():
        attached_to = "NP" if ("NP", "NP", "PP") in [rules[e] for e in edges] else "VP"
        scores[attached_to] = sum(weights[e] for e in edges)
    preterminals = 1 + 2 + 5 + 1 + 3 + 2 + 1 + 4
    assert scores == {"NP": 4 + 5 + 3 + 1 + preterminals, "VP": 3 + 4 + 2 + 1 + preterminals}
    assert [round(r.score) for r in Hyperpath(graph, weights).kbest(3)] == [32, 29]


def test_example_2_2_3_dependency_parse():
    graph, arcs = eisner_hypergraph(3)
    assert sweeps.count(graph) == 12  # projective trees over three words, any number of them under the root
    wanted = {(0, 3), (3, 2), (3, 1)}
    weights = np.array([1.0 if arc in wanted else 0.0 for arc in arcs])
    value, edges = sweeps.best(graph, weights)
    assert value == 3.0
    assert {arcs[e] for e in edges} - {None} == wanted
    through = {graph.vertex_labels[graph.heads[e]] for e in edges}
    want = "C>00 C<11 C>11 C<22 C>22 C<33 C>33 I<23 C<23 I<13 C<13 I>03 C>03"
    assert " ".join(sorted(through)) == " ".join(sorted(want.split(" ")))


def test_example_2_2_4_trigram_automaton():
    size = len(TAGS)
    automaton = trigram_automaton(np.zeros((size + 1, size + 1, size)), symbols=TAGS)
    assert automaton.n_states == size**2 + size + 1
    assert automaton.accepts(["D", "N"])
    assert not automaton.accepts(["D"])  # the final states are the pairs of tags
    q = automaton.initial
    for symbol, want in [("D", 1 + 0), ("N", 1 + size + size * 0 + 1), ("V", 1 + size + size * 1 + 2)]:
        q = int(automaton.transitions[q, TAGS.index(symbol)])
        assert q == want


def test_example_2_2_5_parsing_and_trigram_tagging():
    graph, weights, tags, _, _ = parsing_hypergraph()
    rng = np.random.default_rng(0)
    trigram = rng.integers(-8, 9, (5, 5, 4)).astype(float)
    automaton = trigram_automaton(trigram, symbols=TAGS)
    new, new_weights, edge_map = intersect(graph, weights, automaton, tags)
    sequence = ["D", "N", "V", "D", "N", "P", "D", "N"]
    bonus = automaton.score(sequence)
    found = [sum(new_weights[e] for e in edges) for edges in new.hyperpaths()]
    assert sorted(found) == [29 + bonus, 32 + bonus]
    assert sweeps.best(new, new_weights)[0] == 32 + bonus
    assert new.n_edges == graph.n_edges + 1  # one tag sequence, so each edge occurs with one choice of states
    assert sorted(edge_map.tolist()) == [-1, *range(graph.n_edges)]


def test_section_2_2_2_a_vertex_that_two_tails_share():
    """Hyperedges 1 -> 2 3, 2 -> 4 5 6 and 3 -> 6 7: acyclic and connected, but vertex 6 is used twice."""
    b = HypergraphBuilder()
    v = {i: b.vertex(str(i)) for i in range(1, 8)}
    for leaf in (4, 5, 6, 7):
        b.edge(v[leaf])
    b.edge(v[2], [v[4], v[5], v[6]])
    b.edge(v[3], [v[6], v[7]])
    b.edge(v[1], [v[2], v[3]])
    graph = b.build(root=v[1]).graph
    graph.check()
    with pytest.raises(InvalidInput, match=r"edge 6: \d:1 <- \d:2 \d:3: .* vertex \d:3 overlaps"):
        graph.check(disjoint_references=True)


def translation_forest():
    """The hypergraph of fig. 5-2; returns its graph, weights and the word of each edge, or None."""
    b = HypergraphBuilder()
    v = {i: b.vertex(str(i)) for i in range(1, 12)}
    words = {2: "<s>", 3: "</s>", 6: "barks", 7: "loudly", 8: "the", 9: "dog", 10: "a", 11: "cat"}
    labels = []
    for leaf, word in words.items():
        b.edge(v[leaf], label=word)
        labels.append(word)
    for head, tail, weight in [
        (1, (2, 4, 3), -1.0),
        (4, (5, 6, 7), 2.0),
        (4, (6, 5), 0.5),
        (4, (6, 5, 7), 3.0),
        (5, (8, 9), -4.0),
        (5, (10, 11), 2.5),
    ]:
        b.edge(v[head], [v[u] for u in tail], weight=weight)
        labels.append(None)
    graph, weights, edge_map, _ = b.build(root=v[1])
    return graph, weights, [labels[e] for e in edge_map]


def test_figure_5_2_six_sentences():
    graph, weights, words = translation_forest()
    graph.check(disjoint_references=True)
    sentences = {
        " ".join(words[e] for e in edges if words[e]): float(sum(weights[e] for e in edges))
        for edges in graph.hyperpaths()
    }
    assert sentences == {
        "<s> the dog barks loudly </s>": -3.0,
        "<s> a cat barks loudly </s>": 3.5,
        "<s> barks the dog </s>": -4.5,
        "<s> barks a cat </s>": 2.0,
        "<s> barks the dog loudly </s>": -2.0,
        "<s> barks a cat loudly </s>": 4.5,
    }
    assert Hyperpath(graph, weights).decode().score == 4.5


def test_section_5_8_the_dog_barks_loudly_under_a_bigram_model():
    """With the edge 4 -> 5 6 7 alone and a bigram (cat, barks) of -7, the optimum scores -3 (exact intersection)."""
    graph, weights, words = translation_forest()
    weights = weights.copy()
    weights[(weights == 0.5) | (weights == 3.0)] = -np.inf
    vocabulary = [word for word in words if word]
    arcs = {
        (state, word): (word, -7.0 if (state, word) == ("cat", "barks") else 0.0)
        for state in ["start", *vocabulary]
        for word in vocabulary
    }
    bigram = Automaton.from_arcs(arcs, initial="start", finals=vocabulary)
    new, new_weights, edge_map = intersect(graph, weights, bigram, words)
    value, edges = sweeps.best(new, new_weights)
    assert value == -3.0
    sentence = [words[e] for e in edge_map[edges] if e >= 0 and words[e]]
    assert sentence == ["<s>", "the", "dog", "barks", "loudly", "</s>"]
