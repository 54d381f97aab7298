"""Clusters: pieces made where others do not agree; bounds hold, proofs name the pieces, forged ones are refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import proof_file
from certus.certificates import standalone
from certus.errors import InvalidInput, VerificationError
from certus.factors import problem as problems
from certus.factors import relaxed
from certus.factors.clusters import Clusters
from certus.relax.lagrangian import Lagrangian, Subproblems
from tests.factors.cases import agrees, factor_graph, grid_pairs, whole

seeds = st.integers(0, 2**32 - 1)


def frustrated(n, seed=0, clusters=4):
    """Couplings of mixed sign between any two of n variables, covered by trees to begin with."""
    rng = np.random.default_rng(seed)
    unlike = np.array([[1.0, -1.0], [-1.0, 1.0]])
    pairs = {(i, j): float(rng.integers(-4, 5)) * unlike for i in range(n) for j in range(i + 1, n)}
    return certus.FactorGraph(rng.integers(-2, 3, (n, 2)).astype(float), pairs, width=4, clusters=clusters)


@pytest.fixture
def in_pieces(monkeypatch):
    monkeypatch.setattr(problems, "LARGEST", -1)


@settings(max_examples=30)
@given(seeds)
def test_with_clusters_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "LARGEST", -1)
        made = factor_graph(rng, most=4, width=int(rng.integers(1, 10)))
        tables = list(zip(made.scopes, made.tables, strict=True))
        agrees(certus.FactorGraph(made.unary, None, tables, width=made.width, clusters=int(rng.integers(1, 4))))


def test_clusters_close_the_gap_of_trees(in_pieces):
    fewer = 0
    for seed in range(4):
        graph = frustrated(8, seed)
        result = agrees(graph)
        fewer += (
            result.info.get("pieces", 0) >= 1
            and result.info["nodes"] < frustrated(8, seed, clusters=0).decode().info["nodes"]
        )
    assert fewer >= 2


@settings(max_examples=20)
@given(seeds)
def test_the_bound_is_that_before_and_never_below_the_truth(seed):
    rng = np.random.default_rng(seed)
    graph = factor_graph(rng, most=4)
    relaxation = relaxed.over_pieces(graph, 2)
    piece = tuple(sorted(rng.permutation(len(graph.tables))[: int(rng.integers(0, len(graph.tables) + 1))].tolist()))
    wider = relaxation.with_pieces((piece,))
    u = rng.integers(-5, 6, relaxation.n_rows).astype(float)
    best = max((graph.score(y) for y in graph.all_structures()), default=-np.inf)

    def value(r, u):
        try:
            subproblems = Subproblems(r)
            return Lagrangian(subproblems, subproblems.initial).ask(u).value
        except certus.Infeasible:
            return -np.inf

    carried = wider.carried(relaxation.named(u))
    before, after = value(relaxation, u), value(wider, carried)
    assert best <= after <= before
    moved = carried + rng.integers(-3, 4, wider.n_rows)
    assert value(wider, moved) >= best


def test_what_a_cluster_gains_is_what_no_labels_of_it_avoid():
    clusters = Clusters([(0, 1), (1, 2), (2, 0), (2, 3)])
    assert clusters.cycles[0] == [(0, 1, 2)]
    alike, unlike = np.array([[0.0, 3.0], [3.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 2.0]])
    none = np.zeros((4, 2))
    lost = [
        clusters.lost(none, [alike, None, None, None]),
        clusters.lost(none, [None, alike, None, None]),
        clusters.lost(none, [None, None, unlike, None]),
    ]
    assert clusters.loosest(np.stack(lost), 1.0) == [[0, 1, 2]]
    lost[2][:] = 0.0
    assert clusters.loosest(np.stack(lost), 1.0) == []
    assert len(Clusters(grid_pairs(4, 4)).cycles[1]) == 9


def test_results_with_clusters_travel(in_pieces, tmp_path):
    graph = frustrated(7, 1)
    result = graph.decode()
    path = tmp_path / "result.json"
    certus.save_result(path, graph, result)
    again, loaded = certus.load_result(path)
    assert again.clusters == graph.clusters
    assert loaded.certificate.witness.pieces == result.certificate.duals.pieces != ()
    certus.verify(again, loaded)
    assert "optimal" in standalone.check(proof_file.proof_to_json(again, loaded))
    for found in again.kbest(3):
        certus.verify(again, found)


@pytest.mark.parametrize("pieces", [((0, 0),), ((0, 99),), ((-1,),), ()])
def test_forged_pieces_are_refused(in_pieces, pieces):
    graph = frustrated(7, 1)
    result = graph.decode()
    forged = replace(result.certificate.duals, pieces=pieces)
    with pytest.raises(VerificationError):
        certus.verify(graph, replace(result, certificate=replace(result.certificate, duals=forged, witness=forged)))


def test_a_piece_that_is_too_large_is_refused():
    rng = np.random.default_rng(0)
    graph = certus.FactorGraph(whole(rng, 10, 5), {(i, j): whole(rng, 5, 5) for i in range(10) for j in range(i)})
    with pytest.raises(InvalidInput, match="more than 65536 cells"):
        relaxed.over_pieces(graph, 25, 0, (tuple(range(len(graph.tables))),))
    with pytest.raises(InvalidInput, match="clusters is -1"):
        certus.FactorGraph([[0.0]], clusters=-1)
