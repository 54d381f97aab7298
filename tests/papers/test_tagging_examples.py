"""Worked examples of tagging: LR ex. 2.1.1, 2.1.2 and 2.2.1."""

import itertools

import numpy as np
import pytest

from certus import Tagging


def triples(tags):
    """The index set of LR 2.1.1 that a sequence uses: (position from 1, A, B, C)."""
    return {(i + 1, *tags[i - 2 : i + 1]) for i in range(2, len(tags))}


def test_lr_example_2_1_1_a_valid_sequence():
    """The dog walks in the park, D N V P D N: four trigrams, all others zero."""
    tags, best = "DNVP", "DNVPDN"
    used = triples(tuple(best))
    assert used == {(3, "D", "N", "V"), (4, "N", "V", "P"), (5, "V", "P", "D"), (6, "P", "D", "N")}
    # One point for each of these triples at its position: only this sequence earns all four.
    trigram = np.zeros((6, 4, 4, 4))
    for i, *triple in used:
        trigram[(i - 1, *map(tags.index, triple))] = 1.0
    problem = Tagging(np.zeros((6, 4)), trigram=trigram, tags=tuple(tags))
    result = problem.decode()
    assert (result.score, result.certificate.exact) == (4.0, True)
    assert problem.names(result.structure) == list(best)
    assert problem.kbest(2)[1].score < 4.0


def test_lr_example_2_1_2_hidden_markov_model():
    """theta(i, A, B, C) from emissions rho and transitions tau; the first triple has all that comes before it."""
    rng = np.random.default_rng(212)
    T, n = 3, 4
    rho = np.log(rng.dirichlet(np.ones(n), size=T)).T  # rho[i, t]: the words of the sentence are all different
    tau = np.log(rng.dirichlet(np.ones(T), size=(T + 1, T + 1)))  # tau[a, b, c]; number T is the start symbol
    theta = np.zeros((n, T, T, T))
    for a, b, c in itertools.product(range(T), repeat=3):
        theta[2, a, b, c] = rho[0, a] + rho[1, b] + rho[2, c] + tau[a, b, c] + tau[T, a, b] + tau[T, T, a]
        theta[3, a, b, c] = rho[3, c] + tau[a, b, c]
    as_triples = Tagging(np.zeros((n, T)), trigram=theta)
    # The same with emissions as unary scores and the start symbol as boundary tag; the model has no end symbol.
    trigram = np.zeros((T + 1, T + 1, T + 1))
    trigram[:, :, :T] = tau
    as_hmm = Tagging(rho, trigram=trigram)
    for y in as_hmm.all_structures():
        assert as_triples.score(y) == pytest.approx(as_hmm.score(y))
    assert as_triples.decode().structure.tolist() == as_hmm.decode().structure.tolist()
    assert as_triples.decode().score == pytest.approx(as_hmm.decode().score)
    assert as_triples.log_partition() == pytest.approx(as_hmm.log_partition())


def test_lr_example_2_2_1_a_tagging_lattice():
    """The man walks the dog over D, N, V: a lattice of pairs of tags, one path for each of the 3^5 sequences."""
    n, T = 5, 3
    problem = Tagging(np.zeros((n, T)), trigram=np.zeros((T, T, T)), tags=("D", "N", "V"))
    forest = problem.forest()
    graph = forest.graph
    # Besides source and sink: single tags at the first position, pairs (i, A, B) at 2..n, and pairs with the end.
    assert graph.n_vertices == 1 + T + (n - 1) * T**2 + T + 1
    sequences = {tuple(problem.from_edges(edges).tolist()) for edges in graph.hyperpaths()}
    assert len(sequences) == T**n
    # The highlighted path D N V D N uses the pairs DN, NV, VD, DN at positions 2 to 5 and the triples between them.
    assert triples(tuple("DNVDN")) == {(3, "D", "N", "V"), (4, "N", "V", "D"), (5, "V", "D", "N")}
    theta = np.zeros((n, T, T, T))
    for i, *triple in triples(tuple("DNVDN")):
        theta[(i - 1, *map("DNV".index, triple))] = 1.0
    highlighted = Tagging(np.zeros((n, T)), trigram=theta, tags=("D", "N", "V"))
    result = highlighted.decode()
    assert "".join(highlighted.names(result.structure)) == "DNVDN"
    assert result.score == 3.0


def test_lr_algorithm_1_trigram_viterbi():
    """Algorithm 1 as printed, over the positions 3..n, gives the same maximum."""
    rng = np.random.default_rng(1)
    n, T = 6, 3
    theta = rng.integers(-8, 9, (n, T, T, T)).astype(float)
    pi = np.zeros((T, T))
    for i in range(2, n):
        pi = np.array([[max(theta[i, a, b, c] + pi[a, b] for a in range(T)) for c in range(T)] for b in range(T)])
    assert Tagging(np.zeros((n, T)), trigram=theta).decode().score == pi.max()
