import pickle
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import certus
from certus import kernels
from tests.factors.cases import agrees, whole

seeds = st.integers(0, 2**32 - 1)


def with_required(problem, rows):
    """The problem with rows that must have a column: each may have that, and often others beside."""
    must = np.zeros(len(problem.scores), dtype=bool)
    must[rows] = True
    return problem._with(problem.scores, must)


def best_of_scipy(score, must):
    """The score of the best matching, -inf if there is none: rows that may go without have columns of their own."""
    n = len(score)
    alone = np.where(np.eye(n, dtype=bool) & ~must[:, None], 0.0, -np.inf)
    both = np.hstack((score, alone))
    try:
        return both[linear_sum_assignment(both, maximize=True)].sum()
    except ValueError:
        return -np.inf


def exact_best(score, must):
    """The score of the best matching as a fraction; None if there is none."""
    n, m = score.shape
    found = []
    for y in product(range(-1, m), repeat=n):
        used = [float(score[i, j]) for i, j in enumerate(y) if j >= 0]
        apart = len({j for j in y if j >= 0}) == len(used)
        if apart and -np.inf not in used and all(j >= 0 for j in np.array(y, dtype=int)[must]):
            found.append(sum(map(Fraction, used), Fraction(0)))
    return max(found, default=None)


# -- scores that are whole numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(4))
@pytest.mark.parametrize("m", range(5))
def test_matchings_of_all_small_sizes(n, m):
    rng = np.random.default_rng(10 * n + m)
    for score in (whole(rng, n, m), -np.ones((n, m)) * (1 + rng.integers(0, 3, (n, m))), np.full((n, m), 2.0)):
        result = agrees(certus.Assignment(score))
        assert (result.certificate.kind, result.iterations) == ("dual", 0)


@settings(max_examples=60)
@given(seeds)
def test_rows_that_must_have_a_column(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 5, 2)
    problem = certus.Assignment(whole(rng, n, m, forbidden=0.3))
    agrees(with_required(problem, rng.random(n) < 0.5))
    for _ in range(int(rng.integers(3))):
        problem = problem.with_fixed("matches", (int(rng.integers(n)), int(rng.integers(m))), int(rng.integers(2)))
    agrees(problem)


@settings(max_examples=60)
@given(seeds)
def test_larger_matchings_agree_with_scipy(seed):
    """Many equal scores, so that rows want the same columns; of whole numbers, so that sums are exact."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 30, 2)
    score = rng.integers(*((-8, 9) if rng.random() < 0.5 else (-1, 3)), (n, m)).astype(float)
    score[rng.random((n, m)) < rng.choice([0.0, 0.2, 0.7])] = -np.inf
    must = rng.random(n) < rng.choice([0.0, 0.1, 0.5, 1.0])
    problem = with_required(certus.Assignment(score), must)
    best = best_of_scipy(score, must)
    if best == -np.inf:
        with pytest.raises(certus.Infeasible, match="not all of them can"):
            problem.decode()
        return
    result = problem.decode()
    assert result.score == problem.score(result.structure) == problem.solve().value == best
    assert result.certificate.exact
    certus.verify(problem, result)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (50, 50), (100, 9)])
def test_large_matchings_agree_with_scipy(shape):
    score = np.random.default_rng(0).normal(size=shape)
    result = certus.Assignment(score).decode()
    rows, columns = linear_sum_assignment(np.maximum(score, 0.0), maximize=True)
    assert result.score == pytest.approx(np.maximum(score, 0.0)[rows, columns].sum(), rel=1e-13)
    assert result.certificate.exact
    certus.verify(certus.Assignment(score), result)


# -- batches -----------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(seeds)
def test_a_batch_of_matchings_gives_what_its_items_give(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, 14, 2)
    score = whole(rng, 5, n, m)
    rows, columns = rng.integers(0, n + 1, 5), rng.integers(0, m + 1, 5)
    for b in range(5):
        score[b, rows[b] :] = score[b, :, columns[b] :] = np.nan
    batch = certus.AssignmentBatch(score, lengths=rows, second_lengths=columns)
    found = batch.decode()
    assert found.structure.shape == (5, n)
    assert found.certificate.exact.all()
    for b, own in enumerate(found):
        alone = batch[b].decode()
        assert own.structure.tolist() == alone.structure.tolist() == found.structure[b, : rows[b]].tolist()
        assert (found.structure[b, rows[b] :] == -1).all()
        assert own.score == alone.score == found.score[b]
        assert own.certificate.duals["columns"].shape == (columns[b],)
        certus.verify(batch[b], own)


def test_batches_on_threads_and_of_other_types():
    score = np.random.default_rng(1).normal(size=(9, 20, 30)).astype(np.float32)
    alone = certus.AssignmentBatch(score).decode()
    for other in (score, np.asfortranarray(score.astype(np.float64))):
        found = certus.AssignmentBatch(other, workers=2).decode()
        np.testing.assert_array_equal(found.structure, alone.structure)
        np.testing.assert_array_equal(found.score, alone.score)
    empty = certus.AssignmentBatch(np.empty((0, 3, 2))).decode()
    assert (empty.structure.shape, len(empty.score)) == ((0, 3), 0)


def test_results_of_a_batch_travel():
    batch = certus.AssignmentBatch(np.where(np.eye(3) > 0, 1e17, np.random.default_rng(2).normal(size=(4, 3, 3))))
    found = pickle.loads(pickle.dumps(batch.decode()))
    for b, own in enumerate(found):
        certus.verify(batch[b], own)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_score_is_named(bad):
    score = np.zeros((3, 2, 4))
    score[0, 1, 3] = score[1, 0, 2] = bad
    with pytest.raises(certus.InvalidInput, match=r"item 0 of the batch: score\[1, 3\] is"):
        certus.AssignmentBatch(score).decode()
    with pytest.raises(certus.InvalidInput, match=r"item 1 of the batch: score\[0, 2\] is"):
        certus.AssignmentBatch(score, lengths=[1, 2, 2]).decode()
    assert certus.AssignmentBatch(score, second_lengths=[3, 2, 4]).decode().score.tolist() == [0.0, 0.0, 0.0]


# -- scores of any size ------------------------------------------------------------------------------------------------

SIZES = [1.0, -1.0, 0.0, 0.1, 0.1 + 0.2, 1e-9, 1e9, -1e4, -1e9, 1e16, 1e16 + 2.0, -1e16, 2.0**53, 1e100, -1e100]
SIZES += [-3e38, 1e250, -1e300, -1.7e308, -np.inf]


@settings(max_examples=150)
@given(seeds)
def test_no_claim_is_false_in_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 5, 2)
    score = rng.choice(rng.choice(SIZES, int(rng.integers(1, 5))), (n, m))
    score = np.where(rng.random((n, m)) < rng.choice([0.0, 0.5]), rng.normal(size=(n, m)), score)
    must = rng.random(n) < rng.choice([0.0, 0.5])
    problem, best = with_required(certus.Assignment(score), must), exact_best(score, must)
    try:
        results = [problem.decode()]
    except certus.Infeasible:
        assert best is None
        return
    except certus.InvalidInput:  # some row needs a score so low that sums might overflow
        assert must.any()
        return
    if not must.any():
        results += certus.AssignmentBatch(score[None]).decode()
    for result in results:
        c, used = result.certificate, [Fraction(x) for x in problem.terms(result.structure)]
        assert best <= Fraction(c.bound) + Fraction(c.tolerance)
        if c.exact:
            assert best <= sum(used, Fraction(0)) + Fraction(c.tolerance)
            assert Fraction(c.tolerance) * 10**9 <= sum(map(abs, used), Fraction(0)) * (1 + Fraction(1, 10**9))
        certus.verify(problem, result)


@pytest.mark.parametrize("mask", [-1e4, -1e9, -3e38, -1.7e308, -np.inf])
def test_masks_of_any_size_are_like_forbidden_pairs(mask):
    rng = np.random.default_rng(3)
    score, masked = rng.normal(size=(4, 12, 10)), rng.random((4, 12, 10)) < 0.7
    forbidden = certus.AssignmentBatch(np.where(masked, -np.inf, score)).decode()
    batch = certus.AssignmentBatch(np.where(masked, mask, score))
    found = batch.decode()
    np.testing.assert_array_equal(found.structure, forbidden.structure)
    np.testing.assert_array_equal(found.score, forbidden.score)
    assert found.certificate.exact.all()
    for b, own in enumerate(found):
        assert batch[b].decode().certificate.exact
        certus.verify(batch[b], own)


def test_scores_whose_sums_overflow_are_refused():
    score = np.full((1, 3, 3), 1e300)
    for ask in (
        certus.Assignment(score[0]).decode,
        lambda: certus.Assignment(score[0]).solve({"matches": np.full((3, 3), 1e300)}),
        certus.AssignmentBatch(score).decode,
    ):
        with pytest.raises(certus.InvalidInput, match="overflow"):
            ask()


# -- what is claimed ---------------------------------------------------------------------------------------------------


def test_a_false_claim_is_refused():
    problem = certus.Assignment(np.random.default_rng(4).normal(size=(7, 6)))
    result = problem.decode()
    certus.verify(problem, result)
    other = result.structure.copy()
    other[[0, 1]] = other[[1, 0]]
    worse = problem.score(other)
    false = [
        replace(result, score=result.score + 1.0),
        replace(result, certificate=replace(result.certificate, bound=result.score - 1e-3, score=result.score - 1e-3)),
        replace(result, structure=other),
        replace(result, structure=np.zeros(7, dtype=np.int64)),
        replace(
            result,
            structure=other,
            score=worse,
            certificate=replace(result.certificate, score=worse, bound=worse),
        ),
    ]
    for one in false:
        with pytest.raises(certus.VerificationError):
            certus.verify(problem, one)


def test_results_are_verified_by_another_process(tmp_path):
    batch = certus.AssignmentBatch(np.random.default_rng(5).normal(size=(2, 20, 30)))
    paths = [str(tmp_path / f"{b}.json") for b in range(2)]
    for b, path in enumerate(paths):
        certus.save_result(path, batch[b], batch.decode()[b])
    code = "import certus, sys; [certus.verify(*certus.load_result(path)) for path in sys.argv[1:]]"
    subprocess.run([sys.executable, "-W", "error", "-c", code, *paths], check=True)


# -- the kernel --------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(seeds)
def test_prices_bound_every_matching(seed):
    """Prices are 0 or more, 0 where a column is free, and at them rows and columns are worth what is scored."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, 12, 2)
    score, must = whole(rng, 3, n, m), rng.random((3, n)) < rng.choice([0.0, 0.2])
    arrays = np.empty((3, n), dtype=np.int64), np.empty((3, n)), np.empty((3, m)), np.empty(3), np.empty(3)
    found = kernels.assignment.Matchings(*arrays)
    kernels.assignment.best_matchings(score, np.full(3, n), np.full(3, m), must, found)
    for b in range(3):
        assert found.bound[b] == best_of_scipy(score[b], must[b])
        if found.bound[b] == -np.inf:
            continue
        price, column = found.price[b], found.column[b]
        worth = np.max(score[b] - price, axis=1, initial=-np.inf)
        worth[~must[b]] = np.maximum(worth[~must[b]], 0.0)
        assert (price >= 0.0).all()
        assert not price[np.setdiff1d(np.arange(m), column)].any()
        assert price.sum() + worth.sum() == found.used[b].sum() == found.bound[b]
        assert found.size[b] == max([*price, *np.abs(worth)], default=0.0)


def test_no_matching_is_looked_for_where_scores_are_none_or_too_large():
    score = np.zeros((4, 2, 2))
    score[0, 1, 1], score[1, 0, 0], score[2, 0, 1] = np.nan, np.inf, 1.7e308
    arrays = np.empty((4, 2), dtype=np.int64), np.empty((4, 2)), np.empty((4, 2)), np.empty(4), np.empty(4)
    found = kernels.assignment.Matchings(*arrays)
    must = np.zeros((4, 2), dtype=bool)
    kernels.assignment.best_matchings(score, np.full(4, 2), np.full(4, 2), must, found)
    assert found.bound.tolist() == [np.inf, np.inf, np.inf, 0.0]
    assert (found.column == -1).all()
