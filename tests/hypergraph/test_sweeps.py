"""Every sweep, semiring and question against the list of all derivations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Hypergraph, Infeasible, InvalidInput, NotSupported
from certus.hypergraph import reference, sweeps
from tests.hypergraph.cases import derivations, is_preorder, log_sum
from tests.strategies import hypergraphs

MANY = settings(max_examples=100)
NEAR = {"rel": 1e-10, "abs": 1e-12}


def below(graph, weights, v):
    """Derivations of one vertex."""
    return derivations(Hypergraph(graph.in_ptr, graph.tail_ptr, graph.tail, v), weights)


def expected_counts(graph, scored):
    total = log_sum(score for score, _ in scored)
    counts = np.zeros(graph.n_edges)
    for score, edges in scored:
        np.add.at(counts, list(edges), math.exp(score - total))
    return counts


@MANY
@given(hypergraphs())
def test_best_is_the_best_of_all_derivations(case):
    graph, weights = case
    scored = derivations(graph, weights)
    if not scored:
        with pytest.raises(Infeasible, match="no derivation"):
            sweeps.best(graph, weights)
        assert reference.best_value(graph, weights) == -math.inf
        return
    value, edges = sweeps.best(graph, weights)
    assert value == max(scored)[0] == reference.best_value(graph, weights)
    assert (value, tuple(edges.tolist())) in scored
    assert is_preorder(graph, edges.tolist())


@MANY
@given(hypergraphs())
def test_inside_in_every_semiring(case):
    graph, weights = case
    charts = {semiring: sweeps.inside(graph, weights, semiring) for semiring in sweeps.SEMIRINGS}
    for v in range(graph.n_vertices):
        scores = [score for score, _ in below(graph, weights, v)]
        assert charts["max"][v] == max(scores, default=-math.inf)
        assert charts["log"][v] == pytest.approx(log_sum(scores), **NEAR)
        assert charts["count"][v] == len(scores)
        assert charts["boolean"][v] == bool(scores)


@MANY
@given(hypergraphs())
def test_outside_in_every_semiring(case):
    """Outside by its definition: the derivations of the root, once v's own subtree is taken out of each."""
    graph, weights = case
    for v in range(graph.n_vertices):
        # A copy where v also has an axiom edge of weight 0: the derivations that use it once are the contexts of v.
        heads, tails = graph.heads.tolist(), [graph.tail_of(e).tolist() for e in range(graph.n_edges)]
        extended, edge_map, _ = Hypergraph.from_edges(
            [*heads, v],
            np.cumsum([0, *map(len, tails), 0]),
            np.array([u for tail in tails for u in tail], dtype=int),
            n_vertices=graph.n_vertices,
            root=graph.root,
        )
        hole = edge_map.tolist().index(graph.n_edges)
        scored = derivations(extended, np.append(weights, 0.0)[edge_map])
        scores = [score for score, edges in scored if edges.count(hole) == 1]
        assert sweeps.outside(graph, weights, "max")[v] == max(scores, default=-math.inf)
        assert sweeps.outside(graph, weights, "log")[v] == pytest.approx(log_sum(scores), **NEAR)
        assert sweeps.outside(graph, weights, "count")[v] == len(scores)
        assert sweeps.outside(graph, weights, "boolean")[v] == bool(scores)


@MANY
@given(hypergraphs())
def test_log_partition_marginals_entropy(case):
    graph, weights = case
    scored = derivations(graph, weights)
    total = log_sum(score for score, _ in scored)
    assert sweeps.log_partition(graph, weights) == pytest.approx(total, **NEAR)
    if not scored:
        for question in (sweeps.marginals, sweeps.entropy):
            with pytest.raises(Infeasible):
                question(graph, weights)
        return
    assert sweeps.marginals(graph, weights) == pytest.approx(expected_counts(graph, scored), **NEAR)
    entropy = math.fsum(math.exp(score - total) * (total - score) for score, _ in scored)
    assert sweeps.entropy(graph, weights) == pytest.approx(entropy, rel=1e-9, abs=1e-9)
    assert sweeps.entropy(graph, weights) >= 0.0


@MANY
@given(hypergraphs())
def test_max_marginals(case):
    graph, weights = case
    want = np.full(graph.n_edges, -math.inf)
    for score, edges in derivations(graph, weights):
        for e in edges:
            want[e] = max(want[e], score)
    assert sweeps.max_marginals(graph, weights).tolist() == want.tolist()


@settings(max_examples=80)
@given(hypergraphs(), st.integers(0, 2**32 - 1))
def test_expectations(case, seed):
    graph, weights = case
    features = np.random.default_rng(seed).integers(-3, 4, (graph.n_edges, 3)).astype(float)
    scored = derivations(graph, weights)
    if not scored:
        with pytest.raises(Infeasible):
            sweeps.expectations(graph, weights, features)
        return
    total, mean = sweeps.expectations(graph, weights, features)
    assert total == pytest.approx(log_sum(score for score, _ in scored), **NEAR)
    assert mean == pytest.approx(expected_counts(graph, scored) @ features, rel=1e-9, abs=1e-9)


@MANY
@given(hypergraphs(), st.sampled_from([1, 2, 3, 7, 1000]))
def test_kbest_is_the_head_of_the_sorted_list(case, k):
    graph, weights = case
    scored = derivations(graph, weights)
    want = sorted((score for score, _ in scored), reverse=True)[:k]
    if not scored:
        with pytest.raises(Infeasible):
            sweeps.kbest(graph, weights, k)
        return
    found = sweeps.kbest(graph, weights, k)
    assert [value for value, _ in found] == want
    pairs = [(value, tuple(edges.tolist())) for value, edges in found]
    assert set(pairs) <= set(scored)
    assert len(set(pairs)) == len(pairs)
    assert all(is_preorder(graph, edges) for _, edges in pairs)


@settings(max_examples=80)
@given(hypergraphs())
def test_count(case):
    graph, _ = case
    assert sweeps.count(graph) == len(list(graph.hyperpaths()))


def test_count_is_exact_beyond_float64():
    n = 100  # a lattice with three parallel edges at each step
    graph = Hypergraph([0, *range(1, 3 * n + 2, 3)], [0, *range(3 * n + 1)], np.repeat(np.arange(n), 3))
    assert sweeps.count(graph) == 3**n


def test_samples_follow_the_distribution():
    graph = Hypergraph([0, 1, 3, 5, 6], [0, 0, 1, 2, 2, 3, 6], [0, 0, 1, 1, 2, 1])
    weights = np.array([0.3, 0.0, 1.0, -0.5, 0.25, 0.0])
    scored = derivations(graph, weights)
    total = log_sum(score for score, _ in scored)
    n = 20000
    drawn = [tuple(edges.tolist()) for edges in sweeps.sample(graph, weights, n, seed=7)]
    for score, edges in scored:
        p = math.exp(score - total)
        assert abs(drawn.count(edges) / n - p) < 5 * math.sqrt(p * (1 - p) / n)
    assert drawn[:50] == [tuple(edges.tolist()) for edges in sweeps.sample(graph, weights, 50, seed=7)]


@settings(max_examples=80)
@given(hypergraphs())
def test_samples_are_derivations(case):
    graph, weights = case
    scored = derivations(graph, weights)
    if scored:
        possible = {edges for _, edges in scored}
        assert all(tuple(edges.tolist()) in possible for edges in sweeps.sample(graph, weights, 5, seed=1))
    else:
        with pytest.raises(Infeasible):
            sweeps.sample(graph, weights, 1)


@MANY
@given(hypergraphs(), st.integers(0, 12))
def test_pruning_by_max_marginal_keeps_what_scores_enough(case, slack):
    graph, weights = case
    scored = derivations(graph, weights)
    if not scored:
        return
    threshold = max(scored)[0] - slack
    pruned, edge_map, vertex_map = sweeps.prune(graph, weights, max_marginal_threshold=threshold)
    left = [(score, tuple(edge_map[list(edges)].tolist())) for score, edges in derivations(pruned, weights[edge_map])]
    kept = {e for score, edges in scored if score >= threshold for e in edges}
    assert sorted(left) == sorted((score, edges) for score, edges in scored if set(edges) <= kept)
    assert set(edge_map.tolist()) == kept
    assert vertex_map[pruned.root] == graph.root
    assert vertex_map[pruned.heads].tolist() == graph.heads[edge_map].tolist()
    pruned.check()


@MANY
@given(hypergraphs(), st.sampled_from([0.01, 0.2, 0.5]))
def test_pruning_by_posterior(case, threshold):
    graph, weights = case
    scored = derivations(graph, weights)
    if not scored:
        return
    posterior = expected_counts(graph, scored)
    if (np.abs(posterior - threshold) < 1e-9).any():
        return
    kept = set(np.flatnonzero(posterior >= threshold).tolist())
    want = sorted((score, edges) for score, edges in scored if set(edges) <= kept)
    if not want:
        with pytest.raises(Infeasible, match="threshold"):
            sweeps.prune(graph, weights, posterior_threshold=threshold)
        return
    pruned, edge_map, _ = sweeps.prune(graph, weights, posterior_threshold=threshold)
    left = [(score, tuple(edge_map[list(edges)].tolist())) for score, edges in derivations(pruned, weights[edge_map])]
    assert sorted(left) == want


def test_real_scores_agree_within_rounding():
    rng = np.random.default_rng(0)
    graph = Hypergraph(
        [0, 2, 4, 8, 12], [0, 0, 0, 0, 0, 1, 3, 5, 7, 9, 11, 14, 15], rng.permutation([0, 1] * 7 + [0]) % 2
    )
    weights = rng.normal(size=12) * 100
    scored = derivations(graph, weights)
    total = log_sum(score for score, _ in scored)
    assert sweeps.log_partition(graph, weights) == pytest.approx(total, rel=1e-12)
    assert sweeps.marginals(graph, weights) == pytest.approx(expected_counts(graph, scored), rel=1e-9)
    assert sweeps.best(graph, weights)[0] == pytest.approx(max(scored)[0], rel=1e-12)


def test_scores_of_any_size_do_not_overflow():
    graph = Hypergraph([0, 2, 4], [0, 0, 0, 1, 2], [0, 0])
    for scale in (1e4, -1e4, 1e9):
        weights = np.array([1.0, 1.0, 1.0, 1.0]) * scale
        assert sweeps.marginals(graph, weights) == pytest.approx([0.5] * 4)
        assert sweeps.entropy(graph, weights) == pytest.approx(math.log(4))


@pytest.mark.parametrize("seed", range(5))
def test_large_graphs_two_ways(seed):
    """Beyond enumeration: kernels against plain Python, marginals against expectations and the root's edges."""
    rng = np.random.default_rng(seed)
    n, degree = 300, 6
    heads = np.repeat(np.arange(20, n), degree)
    tail = (rng.random((len(heads), 2)) * heads[:, None]).astype(int).reshape(-1)
    graph = Hypergraph(
        np.concatenate((np.arange(20), 20 + degree * np.arange(n - 19))),
        np.concatenate((np.zeros(20, dtype=int), 2 * np.arange(len(heads) + 1))),
        tail,
    )
    weights = rng.integers(-16, -7, graph.n_edges).astype(float)
    value, edges = sweeps.best(graph, weights)
    assert value == reference.best_value(graph, weights) == weights[edges].sum()
    found = sweeps.kbest(graph, weights, 30)
    values = [v for v, _ in found]
    assert values == sorted(values, reverse=True) == [weights[e].sum() for _, e in found]
    assert len({tuple(e.tolist()) for _, e in found}) == len(found)
    assert [weights[y].sum() for _, y in found] == [v for v, _ in found]
    assert len({y.tobytes() for _, y in found}) == 30
    assert sweeps.max_marginals(graph, weights)[edges].tolist() == [value] * len(edges)
    marginals = sweeps.marginals(graph, weights)
    assert marginals[list(graph.edges_into(graph.root))].sum() == pytest.approx(1.0)
    features = rng.normal(size=(graph.n_edges, 4))
    total, mean = sweeps.expectations(graph, weights, features)
    assert mean == pytest.approx(marginals @ features, rel=1e-9, abs=1e-9)
    assert sweeps.entropy(graph, weights) == pytest.approx(total - marginals @ weights, rel=1e-9)
    pruned, edge_map, _ = sweeps.prune(graph, weights, max_marginal_threshold=found[4][0])
    assert [v for v, _ in sweeps.kbest(pruned, weights[edge_map], 5)] == [v for v, _ in found[:5]]


def test_a_derivation_too_long_to_list_is_refused():
    n = 40  # every vertex is the one below it, twice
    graph = Hypergraph(np.arange(n + 2), [0, *range(0, 2 * n + 1, 2)], np.repeat(np.arange(n), 2))
    weights = np.ones(graph.n_edges)
    assert sweeps.inside(graph, weights, "max")[-1] == 2.0 ** (n + 1) - 1
    assert sweeps.count(graph) == 1
    assert sweeps.marginals(graph, weights)[0] == 2.0**n
    with pytest.raises(NotSupported, match="more than 2\\^31 edges"):
        sweeps.best(graph, weights)


def test_a_deep_graph_has_k_best_derivations():
    n = 5000
    graph = Hypergraph([0, *range(1, 2 * n + 2, 2)], [0, *range(2 * n + 1)], np.repeat(np.arange(n), 2))
    weights = np.zeros(2 * n + 1)
    weights[2::2] = -1.0
    assert [value for value, _ in sweeps.kbest(graph, weights, 4)] == [0.0, -1.0, -1.0, -1.0]


def test_weights_are_checked():
    graph = Hypergraph([0, 1], [0, 0], [])
    with pytest.raises(InvalidInput, match=r"weights\[0\] is nan"):
        sweeps.best(graph, [math.nan])
    with pytest.raises(InvalidInput, match=r"shape \(2,\); expected \(1\)"):
        sweeps.best(graph, [1.0, 2.0])
    with pytest.raises(InvalidInput, match="semiring is 'min'"):
        sweeps.inside(graph, [1.0], "min")
    with pytest.raises(InvalidInput, match="k is 0"):
        sweeps.kbest(graph, [1.0], 0)
    with pytest.raises(InvalidInput, match="one of max_marginal_threshold"):
        sweeps.prune(graph, [1.0])


@pytest.mark.parametrize("levels", range(1, 7))
def test_a_derivation_may_have_more_edges_than_there_are_vertices(levels):
    """Vertex k has one edge, to vertex k - 1 twice."""
    ends = np.arange(levels + 1)
    graph = Hypergraph(np.arange(levels + 2), np.append(0, 2 * ends), np.repeat(np.arange(levels), 2))
    value, edges = sweeps.best(graph, np.ones(levels + 1))
    assert value == len(edges) == 2 ** (levels + 1) - 1
    assert is_preorder(graph, edges.tolist())
