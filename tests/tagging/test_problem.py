"""Every question of a tagging problem against enumeration of all tag sequences."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Infeasible, InvalidInput, Tagging, TaggingBatch
from tests.tagging.cases import random_tagging, taggings


def enumerate_scores(problem):
    """Score of every sequence by the definition, written with a boundary on both sides; -inf ones are left out."""
    n, size = problem.unary.shape
    found = {}
    for sequence in itertools.product(range(size), repeat=n):
        total = sum(problem.unary[i, t] for i, t in enumerate(sequence))
        padded = (size, size, *sequence, size)
        for order, table in ((2, problem.bigram), (3, problem.trigram)):
            if table is None:
                continue
            boundary = table.shape[-1] == size + 1
            for i in range(0 if boundary else order - 1, n + 1 if boundary else n):
                row = table[i] if table.ndim > order else table
                total += row[padded[i + 3 - order : i + 3]]
        if total > -np.inf:
            found[sequence] = total
    return found


@given(taggings())
@settings(max_examples=300)
def test_every_question_equals_enumeration(problem):
    scores = enumerate_scores(problem)
    if not scores:
        for ask in (problem.decode, problem.log_partition, problem.marginals, problem.max_marginals, problem.entropy):
            with pytest.raises(Infeasible):
                ask()
        assert problem.reference_maximum() == -np.inf
        return
    optimum = max(scores.values())
    result = problem.decode()
    assert result.score == result.certificate.bound == optimum == problem.reference_maximum()
    assert scores[tuple(result.structure)] == optimum
    assert result.certificate.exact
    assert result.structure.dtype == np.int64

    log_partition = np.logaddexp.reduce(list(scores.values()))
    assert problem.log_partition() == pytest.approx(log_partition, abs=1e-12)
    probability = {y: math.exp(score - log_partition) for y, score in scores.items()}
    entropy = -sum(p * math.log(p) for p in probability.values() if p)
    assert problem.entropy() == pytest.approx(entropy, abs=1e-12)

    marginals, best = np.zeros(problem.unary.shape), np.full(problem.unary.shape, -np.inf)
    for y, score in scores.items():
        for i, t in enumerate(y):
            marginals[i, t] += probability[y]
            best[i, t] = max(best[i, t], score)
    np.testing.assert_allclose(problem.marginals()["tags"], marginals, atol=1e-12)
    np.testing.assert_array_equal(problem.max_marginals()["tags"], best)


@given(taggings(), st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_penalties_and_fixed_tags(problem, seed):
    rng = np.random.default_rng(seed)
    penalty = rng.integers(-8, 9, problem.unary.shape).astype(float)
    penalty[rng.random(penalty.shape) < 0.1] = -np.inf
    penalised = Tagging(problem.unary + penalty, problem.bigram, problem.trigram)
    scores = enumerate_scores(penalised)
    penalties = {"tags": penalty}
    assert problem.reference_maximum(penalties) == max(scores.values(), default=-np.inf)
    if not scores:
        with pytest.raises(Infeasible):
            problem.solve(penalties)
        return
    solution = problem.solve(penalties)
    assert solution.value == max(scores.values()) == scores[tuple(solution.structure)]
    np.testing.assert_array_equal(problem.max_marginals(penalties)["tags"], penalised.max_marginals()["tags"])
    if problem.n:
        part = (int(rng.integers(problem.n)), int(rng.integers(problem.size)))
        for value in (0, 1):
            left = {y: s for y, s in enumerate_scores(problem).items() if (y[part[0]] == part[1]) == bool(value)}
            assert enumerate_scores(problem.with_fixed("tags", part, value)) == left


@given(taggings(max_n=3))
@settings(max_examples=150)
def test_the_lattice_has_the_same_sequences_and_scores(problem):
    forest = problem.forest()
    found = {}
    for edges in forest.graph.hyperpaths():
        y = tuple(problem.from_edges(edges).tolist())
        assert y not in found
        total = float(sum(forest.weights[e] for e in edges))
        if total > -np.inf:
            found[y] = total
    assert found == enumerate_scores(problem)


@given(taggings(max_n=3))
@settings(max_examples=100)
def test_kbest_are_all_sequences_in_order(problem):
    scores = enumerate_scores(problem)
    if not scores:
        return
    results = problem.kbest(len(scores) + 3)
    assert [r.score for r in results] == sorted(scores.values(), reverse=True)
    assert {tuple(r.structure) for r in results} == set(scores)
    assert [r.certificate.rank for r in results] == list(range(1, len(scores) + 1))
    assert all(r.certificate.exact for r in results)


def test_samples_follow_the_distribution():
    problem = random_tagging(np.random.default_rng(1), 3, 2, whole=False)
    scores = enumerate_scores(problem)
    drawn = Counter(tuple(y.tolist()) for y in problem.sample(20_000, seed=3))
    total = np.logaddexp.reduce(list(scores.values()))
    for y, score in scores.items():
        p = math.exp(score - total)
        assert abs(drawn[y] / 20_000 - p) < 5 * math.sqrt(p * (1 - p) / 20_000)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("per_position", [False, True])
def test_kernel_lattice_and_reference_agree_on_larger_problems(order, per_position):
    rng = np.random.default_rng(order)
    for forbid in (0.0, 0.3):
        problem = random_tagging(rng, 12, 7, order=order, per_position=per_position, forbid=forbid, whole=False)
        result = problem.decode()
        generic = super(Tagging, problem)
        assert result.score == pytest.approx(generic.solve().value, abs=1e-10)
        assert result.score == pytest.approx(problem.reference_maximum(), abs=1e-10)
        assert problem.log_partition() == pytest.approx(generic.log_partition(), abs=1e-10)
        assert problem.entropy() == pytest.approx(generic.entropy(), abs=1e-9)
        np.testing.assert_allclose(problem.marginals()["tags"], generic.marginals()["tags"], atol=1e-10)
        np.testing.assert_allclose(problem.max_marginals()["tags"], generic.max_marginals()["tags"], atol=1e-10)
        np.testing.assert_allclose(problem.marginals()["tags"].sum(axis=1), 1.0)


def test_ties_go_to_the_smallest_tags():
    assert Tagging(np.zeros((4, 3)), np.zeros((3, 3)), np.zeros((4, 4, 4))).decode().structure.tolist() == [0, 0, 0, 0]


def test_uniform_scores_have_the_entropy_of_all_sequences():
    problem = Tagging(np.full((20, 6), 1e6), trigram=np.zeros((6, 6, 6)))
    assert problem.entropy() == pytest.approx(20 * math.log(6), rel=1e-13)
    assert problem.log_partition() == pytest.approx(20e6 + 20 * math.log(6), rel=1e-13)


def test_scores_far_apart_do_not_underflow():
    unary = np.zeros((3, 2))
    unary[:, 1] = -5000.0
    problem = Tagging(unary, bigram=np.zeros((2, 2))).with_fixed("tags", (1, 1), 1)
    assert problem.log_partition() == -5000.0
    assert problem.marginals()["tags"].tolist() == [[1, 0], [0, 1], [1, 0]]


@given(taggings(max_n=3), st.sampled_from([1e2, 1e3, 1e5]))
@settings(max_examples=100)
def test_sums_of_scores_of_any_size(problem, scale):
    """Differences too large to be told apart by exp() of a common scale."""
    tables = [None if table is None else table * scale for table in (problem.bigram, problem.trigram)]
    problem = Tagging(problem.unary * scale, *tables)
    scores = enumerate_scores(problem)
    if not scores:
        return
    total = np.logaddexp.reduce(list(scores.values()))
    probability = {y: math.exp(score - total) for y, score in scores.items()}
    assert problem.log_partition() == pytest.approx(total, rel=1e-13)
    assert problem.entropy() == pytest.approx(-sum(p * math.log(p) for p in probability.values() if p), abs=1e-8)
    marginals = np.zeros(problem.unary.shape)
    for y, p in probability.items():
        marginals[np.arange(problem.n), list(y)] += p
    np.testing.assert_allclose(problem.marginals()["tags"], marginals, atol=1e-8)


def test_empty_sequence_scores_its_boundary():
    empty = np.empty((0, 2))
    assert Tagging(empty).decode().score == 0.0
    bounded = Tagging(empty, bigram=np.full((3, 3), 2.0), trigram=np.full((1, 3, 3, 3), 5.0))
    assert bounded.decode().score == 7.0
    assert bounded.decode().structure.shape == (0,)
    assert bounded.log_partition() == 7.0
    assert bounded.marginals()["tags"].shape == (0, 2)
    assert [r.score for r in bounded.kbest(5)] == [7.0]


def test_rows_that_no_triple_ends_at_are_not_read():
    trigram = np.zeros((3, 2, 2, 2))
    trigram[:2] = np.nan
    assert Tagging(np.zeros((3, 2)), trigram=trigram).decode().score == 0.0


def test_caller_arrays_are_left_alone_and_shared():
    unary, bigram = np.zeros((3, 2)), np.zeros((2, 2))
    problem = Tagging(unary, bigram)
    problem.with_fixed("tags", (0, 0), 0)
    assert unary.sum() == 0
    assert problem.bigram is bigram


class TestInfeasible:
    def test_position_without_tags_is_named(self):
        unary = np.zeros((3, 2))
        unary[1] = -np.inf
        with pytest.raises(Infeasible, match="position 1 has no tag: all 2 unary scores there are -inf"):
            Tagging(unary).decode()

    def test_position_no_transition_reaches_is_named(self):
        bigram = np.zeros((4, 2, 2))
        bigram[2] = -np.inf
        with pytest.raises(Infeasible, match="position 2 has no tag: every bigram or trigram"):
            Tagging(np.zeros((4, 2)), bigram).decode()

    def test_sequence_that_may_not_end(self):
        bigram = np.zeros((3, 3))
        bigram[:, 2] = -np.inf
        with pytest.raises(Infeasible, match="no sequence of 4 tags may end"):
            Tagging(np.zeros((4, 2)), bigram).log_partition()


class TestInvalid:
    def test_nan_is_named(self):
        with pytest.raises(InvalidInput, match=r"unary\[1, 0\] is nan"):
            Tagging([[0, 0], [np.nan, 0]])
        with pytest.raises(InvalidInput, match=r"trigram\[0, 1, 0\] is inf"):
            Tagging(np.zeros((3, 2)), trigram=[[[0, 0], [np.inf, 0]], [[0, 0], [0, 0]]])

    @pytest.mark.parametrize("shape", [(2,), (4, 4), (2, 3), (2, 2, 2), (4, 2, 2), (3, 3, 3), ()])
    def test_shape_of_a_table(self, shape):
        with pytest.raises(InvalidInput, match=r"bigram has shape .* expected \(2, 2\) or \(3, 2, 2\), or with"):
            Tagging(np.zeros((3, 2)), bigram=np.zeros(shape))

    def test_no_tags_at_all(self):
        with pytest.raises(InvalidInput, match="at least one tag"):
            Tagging(np.zeros((3, 0)))

    def test_names(self):
        problem = Tagging(np.zeros((2, 2)), tags=("D", "N"))
        assert problem.names([1, 0]) == ["N", "D"]
        with pytest.raises(InvalidInput, match="expected 2 strings"):
            Tagging(np.zeros((2, 2)), tags=("D",))
        with pytest.raises(InvalidInput, match="'D' twice"):
            Tagging(np.zeros((2, 2)), tags=("D", "D"))
        with pytest.raises(InvalidInput, match="no names"):
            Tagging(np.zeros((2, 2))).names([0, 0])

    @pytest.mark.parametrize("structure", [[0], [0, 0, 0], [[0, 1]], [0.0, 1.0], [0, 2], [-1, 0], ["D", "N"]])
    def test_structure(self, structure):
        with pytest.raises(InvalidInput, match="structure"):
            Tagging(np.zeros((2, 2))).score(structure)

    def test_penalty_shape_view_and_fixed_part(self):
        problem = Tagging(np.zeros((2, 2)))
        with pytest.raises(InvalidInput, match="no view 'arcs'"):
            problem.solve({"arcs": np.zeros((2, 2))})
        with pytest.raises(InvalidInput, match=r"expected \(2, 2\)"):
            problem.solve({"tags": np.zeros(2)})
        with pytest.raises(InvalidInput, match="outside"):
            problem.with_fixed("tags", (2, 0), 1)
        with pytest.raises(InvalidInput, match="0 or 1"):
            problem.with_fixed("tags", (1, 0), 2)


@given(taggings())
@settings(max_examples=50)
def test_json_round_trip(problem):
    again = Tagging.from_json(problem.to_json())
    assert again.n == problem.n
    assert enumerate_scores(again) == enumerate_scores(problem)
    y = np.zeros(problem.n, dtype=np.int64)
    np.testing.assert_array_equal(problem.structure_from_json(problem.structure_to_json(y)), y)


def test_damaged_json_is_refused():
    problem = Tagging(np.zeros((2, 2)), tags=("D", "N"))
    assert Tagging.from_json(problem.to_json()).tags == ("D", "N")
    with pytest.raises(InvalidInput, match="lacks 'unary'"):
        Tagging.from_json({"positions": 2, "size": 2})
    with pytest.raises(InvalidInput, match="expected"):
        Tagging.from_json({**problem.to_json(), "positions": 3})
    with pytest.raises(InvalidInput, match="size is null; expected a whole number"):
        Tagging.from_json({**problem.to_json(), "size": None})
    for bad in (None, [0], [0, 5], [[0], [0, 1]], ["a", "b"], [True, False]):
        with pytest.raises(InvalidInput, match="structure"):
            problem.structure_from_json(bad)


def test_indicator_and_extent():
    problem = Tagging([[0, -3], [-np.inf, 1]], bigram=[[0, -9], [0, 0]])
    assert problem.indicator(np.array([1, 0]), "tags").tolist() == [[0, 1], [1, 0]]
    assert problem.extent()[:3] == (3, -9.0, 1.0)
    assert problem.score([0, 0]) == -np.inf
    assert repr(problem) == "Tagging(2 positions, 2 tags, bigram)"


def test_read_only_arrays_compile_nothing_anew():
    from certus.kernels.tagging import viterbi

    unary, bigram = np.zeros((3, 2)), np.zeros((2, 2))
    Tagging(unary, bigram).decode()
    compiled = len(getattr(viterbi, "signatures", ()))
    for array in (unary, bigram):
        array.flags.writeable = False
    Tagging(unary, bigram).decode()
    assert len(getattr(viterbi, "signatures", ())) == compiled


@given(taggings())
@settings(max_examples=60, deadline=None)
def test_expected_uses_of_tables_equal_enumeration(problem):
    """Each cell has a number, which a sequence tells that uses it."""
    tables = {"unary": problem.unary, "bigram": problem.bigram, "trigram": problem.trigram}
    given_ = {name: scores for name, scores in tables.items() if scores is not None}
    sequences = [y for y in problem.all_structures() if problem.score(y) > -np.inf]
    for kind, scores in given_.items():
        if not sequences:
            with pytest.raises(Infeasible):
                problem.part_marginals(kind)
            continue
        total, expected = problem.log_partition(), np.zeros(scores.size + 1)
        numbers = np.arange(1.0, scores.size + 1).reshape(scores.shape)
        numbered = Tagging(**{name: numbers if name == kind else np.zeros(a.shape) for name, a in given_.items()})
        for y in sequences:
            np.add.at(expected, np.array(numbered.terms(y), dtype=int), math.exp(problem.score(y) - total))
        found = problem.part_marginals(kind)
        np.testing.assert_allclose(found, expected[1:].reshape(scores.shape), atol=1e-12)
    with pytest.raises(InvalidInput, match="kind is 'pairs'"):
        problem.part_marginals("pairs")


@pytest.mark.parametrize("lowest", [-1e281, -1e300, -1.7e308])
def test_ranks_that_need_scores_beyond_all_sums_are_refused_not_left_out(lowest):
    for problem in (Tagging([[0.0, lowest]]), TaggingBatch([[[0.0, lowest]]])):
        with pytest.raises(InvalidInput, match="sums of these scores may exceed"):
            problem.kbest(2)
    problem = Tagging([[0.0, lowest]])
    assert problem.kbest(1)[0].score == problem.decode().score == 0.0
    assert len(Tagging([[0.0, -1e279]]).kbest(2)) == 2
    assert len(Tagging([[0.0, 0.0, lowest]]).kbest(2)) == 2
