import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus.factors import logic, problem, relaxed
from certus.factors.elimination import eliminated, neighbours
from certus.factors.pieces import cover, cycles
from tests.factors.cases import agrees, factor_graph, grid_pairs, whole

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=30)
@given(seeds)
def test_graphs_of_small_width_are_dynamic_programs(seed):
    graph = factor_graph(np.random.default_rng(seed))
    assert graph.relaxation() is None
    if agrees(graph) is None:
        return
    scores = [s for s in map(graph.score, graph.all_structures()) if s > -np.inf]
    listed = graph.kbest(4)
    assert [r.score for r in listed] == sorted(scores, reverse=True)[:4]
    certus.verify(graph, listed[-1])
    assert graph.log_partition() == pytest.approx(np.logaddexp.reduce(scores))


@settings(max_examples=30)
@given(seeds)
def test_pieces_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problem, "LARGEST", -1)
        graph = factor_graph(rng, most=4, width=int(rng.integers(1, 30)))
        assert graph.relaxation() is not None
        agrees(graph)


@settings(max_examples=30)
@given(seeds)
def test_logic_factors(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    pairwise = {(v, v + 1): whole(rng, 2, 2, forbidden=0.0) for v in range(n - 1)}
    graph = certus.FactorGraph(whole(rng, n, 2, forbidden=0.0), pairwise)
    cells = [(v, 1) for v in range(n - 1)]
    factor = [
        logic.exactly_one(cells),
        logic.at_most_one(cells),
        logic.any_of(cells),
        logic.output(cells, (n - 1, 1)),
        logic.budget(np.tile([0.0, 1.0], (n, 1)), 2),
    ][int(rng.integers(5))]
    agrees(graph.subject_to(*factor))


def test_what_logic_factors_say():
    free = certus.FactorGraph(np.zeros((3, 2)))
    said = {
        "exactly": free.subject_to(*logic.exactly_one([(0, 1), (1, 1)])),
        "at most": free.subject_to(*logic.at_most_one([(0, 1), (1, 1)])),
        "any": free.subject_to(*logic.any_of([(0, 1), (1, 1)])),
        "output": free.subject_to(*logic.output([(0, 1), (1, 1)], (2, 1))),
        "budget": free.subject_to(*logic.budget([[0, 1], [0, 2], [0, 3]], 3)),
    }
    holds = {
        "exactly": lambda a, b, c: a + b == 1,
        "at most": lambda a, b, c: a + b <= 1,
        "any": lambda a, b, c: a + b >= 1,
        "output": lambda a, b, c: c == (a or b),
        "budget": lambda a, b, c: a + 2 * b + 3 * c <= 3,
    }
    for name, constrained in said.items():
        allowed = {tuple(y.tolist()) for y in constrained.all_structures()}
        assert allowed == {y for y in np.ndindex(2, 2, 2) if holds[name](*y)}


@pytest.mark.compiled
@pytest.mark.parametrize("couplings", ["attractive", "mixed", "tables"])
def test_grids_are_proved_by_pieces_with_cycles(couplings):
    rng = np.random.default_rng(3)
    tables = {
        "attractive": lambda: np.eye(4) * rng.integers(0, 8),
        "mixed": lambda: np.eye(4) * rng.integers(-8, 9),
        "tables": lambda: rng.integers(-8, 9, (4, 4)),
    }
    pairwise = {pair: tables[couplings]() for pair in grid_pairs(8, 8)}
    graph = certus.FactorGraph(rng.integers(-8, 9, (64, 4)), pairwise, width=64)
    result = graph.decode(time_limit=60)
    assert result.certificate.exact
    assert not certus.verify(graph, result).trusts
    with pytest.raises(certus.NotSupported, match=r"log_partition\(\) of a factor graph of large width"):
        graph.log_partition()


def test_a_bucket_holds_a_variable_whatever_the_width():
    graph = certus.FactorGraph([[3, 0, 1], [0, 2, -np.inf]], None, [((0,), [0, 0, 4]), ((1,), [1, 0, 0])], width=2)
    assert graph.decode().structure.tolist() == [2, 1]


def test_one_large_table_is_in_a_piece():
    rng = np.random.default_rng(0)
    tables = [((0, 1, 2), whole(rng, 3, 3, 3)), ((1, 2, 3), whole(rng, 3, 3, 3)), ((3, 0), whole(rng, 3, 3))]
    graph = certus.FactorGraph(whole(rng, 4, 3), None, tables, width=2)
    relaxation = relaxed.over_pieces(graph, 2)
    assert {scope for piece in relaxation.subproblems for scope in piece.scopes} == set(graph.scopes)


@pytest.mark.parametrize("limit", [4, 8, 16])
def test_pieces_cover_tables_and_short_cycles(limit):
    scopes = grid_pairs(5, 5)
    pieces = cover(25, scopes, [2] * 25, limit)
    assert set().union(*pieces) == set(range(len(scopes)))
    for piece in pieces:
        assert eliminated(neighbours(25, [scopes[k] for k in piece]), [2] * 25, limit) is not None
    if limit > 4:
        faces = list(cycles(25, scopes))
        assert len(faces) == 16
        assert all(any(set(face) <= set(piece) for piece in pieces) for face in faces)


def test_shares_add_up_without_rounding():
    for count in range(1, 9):
        shares = relaxed._shares(count)
        assert len(shares) == count
        assert sum(shares) == 1.0


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        (([[0.0, 1.0]], {(0, 1): np.zeros((2, 2))}), "expected different ones of 0..0"),
        (([[0.0], [0.0]], {(0, 0): [[0.0]]}), "expected different ones"),
        (([[0.0, 1.0], [0.0, 0.0]], {(0, 1): np.zeros((2, 3))}), "has shape"),
        ((np.zeros((2, 0)),), "at least one label"),
    ],
)
def test_what_is_no_factor_graph_says_so(given_, said):
    with pytest.raises(certus.InvalidInput, match=said):
        certus.FactorGraph(*given_)


def test_labels_that_are_none_are_refused():
    graph = certus.FactorGraph(np.zeros((2, 2)))
    for labels in ([0], [0, 2], [0.5, 1.0]):
        with pytest.raises(certus.InvalidInput):
            graph.score(labels)
    with pytest.raises(certus.InvalidInput, match="width"):
        certus.FactorGraph(np.zeros((2, 2)), width=0)


def test_fixed_labels():
    graph = certus.FactorGraph([[3.0, 0.0], [0.0, 0.0]], {(0, 1): [[0.0, 1.0], [2.0, 0.0]]})
    assert graph.with_fixed("labels", (0, 0), 0).decode().structure.tolist() == [1, 0]
    assert graph.with_fixed("labels", (1, 0), 1).decode().structure.tolist() == [0, 0]
    with pytest.raises(certus.InvalidInput):
        graph.with_fixed("labels", (2, 0), 1)
    with pytest.raises(certus.InvalidInput):
        graph.with_fixed("labels", (0, 0), 2)


@settings(max_examples=30)
@given(seeds)
def test_taggings_are_factor_graphs(seed):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(0, 4)), int(rng.integers(1, 3))
    boundary, by_position = rng.integers(0, 2, 2)
    side = size + int(boundary)
    leading = (n + int(boundary),) if by_position else ()
    a = certus.Tagging(whole(rng, n, size), whole(rng, *leading, side, side), whole(rng, side, side, side))
    if a.factors() is None:
        assert n == 0
        return
    graph = certus.FactorGraph(a.factors().unary, None, a.factors().tables)
    for y in a.all_structures():
        assert graph.score(y) == a.score(y)


@settings(max_examples=30)
@given(seeds)
def test_joint_taggings_are_merged(seed):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(0, 4)), int(rng.integers(1, 3))
    a = certus.Tagging(whole(rng, n, size), whole(rng, size, size))
    b = certus.Tagging(whole(rng, n, size), None, whole(rng, size, size, size))
    for merge in (True, False):
        joint = certus.Joint(a, b, on="tags", weight=0.5, merge=merge)
        result = agrees(joint)
        if result is not None and n and merge:
            assert result.info["nodes"] == 1


@pytest.mark.compiled
def test_loose_joint_taggings_are_proved_at_once():
    rng = np.random.default_rng(5)
    a, b = (certus.Tagging(rng.normal(size=(20, 6)), 3 * rng.normal(size=(6, 6))) for _ in range(2))
    problem = certus.Joint(a, b, on="tags")
    result = problem.decode()
    assert result.certificate.exact
    assert result.iterations == 1
    certus.verify(problem, result)
    again = certus.Joint.from_json(problem.to_json())
    certus.verify(again, result)


class Wide(certus.FactorGraph):
    """One that is taken for too wide to be a dynamic program."""

    _whole = None


@settings(deadline=None, max_examples=8)
@given(seeds, st.sampled_from([4, 16]))
def test_wide_graphs_answer_under_constraints_as_all_labellings_do(seed, width):
    rng = np.random.default_rng(seed)
    pairs = ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2))
    graph = Wide(whole(rng, 4, 2), {pair: whole(rng, 2, 2) for pair in pairs}, width=width)
    best = max(graph.all_structures(), key=graph.score, default=(0, 0, 0))
    constraint = certus.constraints.at_most(1, "labels", [(v, int(best[v])) for v in range(3)])
    for asked in (graph, graph.subject_to(constraint)):
        values = sorted((s for y in asked.all_structures() if (s := asked.score(y)) > -np.inf), reverse=True)
        if not values:
            with pytest.raises(certus.Infeasible):
                asked.kbest(3)
            continue
        found = asked.kbest(3)
        assert [r.score for r in found] == values[:3]
        certus.verify(asked, found[-1])
        bounds = asked.log_partition_bounds(iterations=10)
        assert bounds.lower <= np.logaddexp.reduce(values) <= bounds.upper
