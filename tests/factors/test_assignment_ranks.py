import heapq
import pickle
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import certus
from certus import kernels
from certus.relax import proof
from tests.factors.cases import whole
from tests.factors.test_assignment import SIZES, with_required

seeds = st.integers(0, 2**32 - 1)


def best_of_scipy(score, must, alone):
    """The best matching and its score, None if there is none: rows that may go without have columns of their own."""
    n, m = score.shape
    both = np.full((n, m + n), -1e6)
    both[:, :m] = np.where(score == -np.inf, -1e6, score)
    both[np.arange(n), m + np.arange(n)] = np.where(must | ~alone, -1e6, 0.0)
    rows, columns = linear_sum_assignment(both, maximize=True)
    if both[rows, columns].min(initial=0.0) == -1e6:
        return None
    columns = np.where(columns < m, columns, -1)
    return float(score[columns >= 0, columns[columns >= 0]].sum()), columns


def murty(score, must, k):
    """The scores of the k best matchings: each part of them is solved anew."""
    n, order, found = len(score), count(), []
    first = best_of_scipy(score, must, np.ones(n, dtype=bool))
    agenda = [] if first is None else [(-first[0], next(order), first[1], score, np.ones(n, dtype=bool), 0)]
    while agenda and len(found) < k:
        negated, _, columns, allowed, alone, start = heapq.heappop(agenda)
        found.append(-negated)
        for row in range(start, n):
            part, may, j = allowed.copy(), alone.copy(), columns[row]
            if j >= 0:
                part[row, j] = -np.inf
            else:
                may[row] = False
            best = best_of_scipy(part, must, may)
            if best is not None:
                heapq.heappush(agenda, (-best[0], next(order), best[1], part, may, row))
            allowed, alone = allowed.copy(), alone.copy()
            if j >= 0:
                alone[row], kept = False, allowed[row, j]
                allowed[row], allowed[:, j] = -np.inf, -np.inf
                allowed[row, j] = kept
            else:
                allowed[row] = -np.inf
    return found


def scored(problem):
    """All matchings with their scores, best first."""
    listed = [(problem.score(y), y) for y in problem.all_structures()]
    return sorted(((v, y) for v, y in listed if v > -np.inf), key=lambda pair: -pair[0])


def best_of_pairs(problem):
    """The max-marginals, from all matchings."""
    best = np.full(problem.scores.shape, -np.inf)
    for value, y in scored(problem):
        rows = np.flatnonzero(y >= 0)
        best[rows, y[rows]] = np.maximum(best[rows, y[rows]], value)
    return best


def ranks_agree(problem, k):
    """Ranks are those of enumeration, each once, and each is proved and verified."""
    listed = scored(problem)
    if not listed:
        with pytest.raises(certus.Infeasible):
            problem.kbest(k)
        return
    results = problem.kbest(k)
    assert [r.score for r in results] == [value for value, _ in listed[:k]]
    assert len({tuple(r.structure.tolist()) for r in results}) == len(results)
    for at, result in enumerate(results):
        assert result.score == problem.score(result.structure)
        assert result.certificate.exact
        assert result.certificate.rank == at + 1
    for result in (*results[:4], *results[4:][-2:]):
        assert not certus.verify(problem, result).trusts


# -- scores that are whole numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(4))
@pytest.mark.parametrize("m", range(4))
def test_ranks_and_pairs_of_all_small_sizes(n, m):
    rng = np.random.default_rng(10 * n + m)
    for score in (whole(rng, n, m), -1.0 - rng.integers(0, 3, (n, m)), np.full((n, m), 2.0), np.zeros((n, m))):
        problem = certus.Assignment(score)
        ranks_agree(problem, 100)
        np.testing.assert_array_equal(problem.max_marginals()["matches"], best_of_pairs(problem))


@settings(max_examples=60)
@given(seeds)
def test_ranks_and_pairs_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, 5, 2)
    score = whole(rng, n, m, forbidden=rng.choice([0.0, 0.1, 0.5]))
    problem = certus.Assignment(np.clip(score, None, 2.0) if rng.random() < 0.5 else score)
    problem = with_required(problem, rng.random(n) < rng.choice([0.0, 0.3, 1.0]))
    for _ in range(int(rng.integers(3)) if n and m else 0):
        problem = problem.with_fixed("matches", (int(rng.integers(n)), int(rng.integers(m))), int(rng.integers(2)))
    ranks_agree(problem, int(rng.choice([1, 2, 3, 7, 40])))
    penalty = whole(rng, n, m)
    for given_, other in ((None, problem), (penalty, problem._with(problem.scores + penalty, problem._free.must))):
        asked = None if given_ is None else {"matches": given_}
        if scored(other):
            np.testing.assert_array_equal(problem.max_marginals(asked)["matches"], best_of_pairs(other))
        else:
            with pytest.raises(certus.Infeasible):
                problem.max_marginals(asked)


@settings(max_examples=20)
@given(seeds)
def test_larger_ranks_agree_with_an_independent_search(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 14, 2)
    score = rng.integers(*((-8, 9) if rng.random() < 0.5 else (-1, 3)), (n, m)).astype(float)
    score[rng.random((n, m)) < rng.choice([0.0, 0.2, 0.7])] = -np.inf
    must = rng.random(n) < rng.choice([0.0, 0.1, 0.5])
    problem, expected = with_required(certus.Assignment(score), must), murty(score, must, 6)
    if not expected:
        with pytest.raises(certus.Infeasible):
            problem.kbest(6)
        return
    results = problem.kbest(6)
    assert [r.score for r in results] == expected
    assert all(r.certificate.exact for r in results)
    certus.verify(problem, results[-1])


def test_ranks_of_many_rows_agree_with_an_independent_search():
    score = np.random.default_rng(0).normal(size=(40, 40))
    problem = certus.Assignment(score)
    results = problem.kbest(10)
    assert [r.score for r in results] == pytest.approx(murty(score, np.zeros(40, dtype=bool), 10), rel=1e-13)
    assert all(r.certificate.exact for r in results)
    assert len({tuple(r.structure.tolist()) for r in results}) == 10
    certus.verify(problem, results[9])
    again = certus.Assignment(score).kbest(10)
    assert [r.structure.tolist() for r in again] == [r.structure.tolist() for r in results]


@pytest.mark.parametrize("shape", [(20, 20), (6, 40), (40, 6)])
def test_pairs_of_many_rows_are_those_of_matchings_with_the_pair_required(shape):
    rng = np.random.default_rng(1)
    for score in (rng.integers(-8, 9, shape).astype(float), rng.normal(size=shape)):
        problem = certus.Assignment(score)
        found = problem.max_marginals()["matches"]
        for i, j in rng.integers(0, shape, (20, 2)).tolist():
            best = problem.with_fixed("matches", (i, j), 1).decode().score
            assert found[i, j] == pytest.approx(best, rel=1e-13, abs=1e-12)


def test_one_row_has_as_many_ranks_as_columns():
    """Each rank is a part of the part before: nothing is done by recursion."""
    problem = certus.Assignment(np.arange(1.0, 1100.0)[None])
    results = problem.kbest(2000)
    assert [r.score for r in results] == np.arange(1100.0)[::-1].tolist()
    certus.verify(problem, results[2])


# -- scores of any size ------------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(seeds)
def test_no_rank_is_claimed_falsely_in_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 4, 2)
    score = rng.choice(rng.choice(SIZES, int(rng.integers(1, 5))), (n, m))
    score = np.where(rng.random((n, m)) < rng.choice([0.0, 0.5]), rng.normal(size=(n, m)), score)
    problem = with_required(certus.Assignment(score), rng.random(n) < rng.choice([0.0, 0.5]))
    left = {tuple(y.tolist()): problem.terms(y) for y in problem.all_structures()}
    left = {y: sum(map(Fraction, own), Fraction(0)) for y, own in left.items() if -np.inf not in own}
    try:
        results = problem.kbest(int(rng.choice([2, 5, 30])))
    except certus.Infeasible:
        assert not left
        return
    except certus.InvalidInput:  # scores so low that sums might overflow
        assert (np.abs(score[score > -np.inf]) > 1e279).any()
        return
    for result in results:
        c, used = result.certificate, [Fraction(x) for x in problem.terms(result.structure)]
        assert max(left.values()) <= Fraction(c.bound) + Fraction(c.tolerance)
        if c.exact:
            assert max(left.values()) <= sum(used, Fraction(0)) + Fraction(c.tolerance)
            assert Fraction(c.tolerance) * 10**9 <= sum(map(abs, used), Fraction(0)) * (1 + Fraction(1, 10**9))
        certus.verify(problem, result)
        del left[tuple(result.structure.tolist())]


@pytest.mark.parametrize("mask", [-1e4, -1e9, -3e38, -1.7e308])
def test_masks_of_any_size_are_like_forbidden_pairs(mask):
    rng = np.random.default_rng(3)
    score, masked = rng.normal(size=(15, 12)), rng.random((15, 12)) < 0.7
    forbidden = certus.Assignment(np.where(masked, -np.inf, score))
    problem = certus.Assignment(np.where(masked, mask, score))
    results = problem.kbest(4)
    assert [r.structure.tolist() for r in results] == [r.structure.tolist() for r in forbidden.kbest(4)]
    assert all(r.certificate.exact for r in results)
    certus.verify(problem, results[3])
    if mask > -1e300:  # what needs more than one mask is not to be added up
        found, best = problem.max_marginals()["matches"], forbidden.max_marginals()["matches"]
        np.testing.assert_allclose(found[~masked], best[~masked], rtol=1e-13)
        assert (found[masked] < 0.9 * mask).all()


# -- what is claimed ---------------------------------------------------------------------------------------------------


def test_a_false_claim_about_a_rank_is_refused():
    problem = certus.Assignment(np.random.default_rng(4).normal(size=(20, 20)))
    results = problem.kbest(5)
    result = results[3]
    certus.verify(problem, result)
    c = result.certificate
    tree = c.witness.proof()
    false = [
        replace(result, score=result.score + 1.0),
        replace(result, certificate=replace(c, score=result.score - 1e-3, bound=result.score - 1e-3)),
        replace(results[4], certificate=replace(results[4].certificate, rank=4, better=c.better)),
        replace(result, certificate=replace(c, better=(*c.better[:2], results[4].structure))),
        replace(result, certificate=replace(c, better=c.better[:2], rank=3)),
        replace(result, certificate=replace(c, witness=proof.mapped(tree, lambda u: {"columns": 0.5 * u["columns"]}))),
        replace(result, certificate=replace(c, witness=tree.zero)),
    ]
    for one in false:
        with pytest.raises(certus.VerificationError):
            certus.verify(problem, one)


def test_ranks_are_verified_by_another_process(tmp_path):
    problem = certus.Assignment(np.random.default_rng(5).normal(size=(25, 20)))
    paths = [str(tmp_path / f"{rank}.json") for rank in range(3)]
    for path, result in zip(paths, problem.kbest(3), strict=True):
        certus.save_result(path, problem, result)
    code = "import certus, sys; [certus.verify(*certus.load_result(path)) for path in sys.argv[1:]]"
    subprocess.run([sys.executable, "-W", "error", "-c", code, *paths], check=True)


def test_ranks_without_a_witness_are_verified():
    problem = certus.Assignment(np.random.default_rng(6).normal(size=(8, 8)))
    result = problem.kbest(3)[2]
    certus.verify(problem, replace(result, certificate=replace(result.certificate, witness=None)))


# -- batches -----------------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(seeds)
def test_batches_give_what_their_items_give(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, 7, 2)
    score, rows, columns = whole(rng, 3, n, m), rng.integers(0, n + 1, 3), rng.integers(0, m + 1, 3)
    batch = certus.AssignmentBatch(score, lengths=rows, second_lengths=columns)
    found, pairs = batch.kbest(3), batch.max_marginals()["matches"]
    for b in range(3):
        alone = batch[b].kbest(3)
        assert [r.score for r in found[b]] == [r.score for r in alone] == found.score[b, : len(alone)].tolist()
        assert found.exact[b, : len(alone)].all()
        for at, result in enumerate(alone):
            assert found.structure[b, at, : rows[b]].tolist() == result.structure.tolist()
        np.testing.assert_array_equal(pairs[b, : rows[b], : columns[b]], batch[b].max_marginals()["matches"])
        assert (pairs[b, rows[b] :] == -np.inf).all()
    again = pickle.loads(pickle.dumps(found))
    certus.verify(batch[0], again[0][-1])


# -- the kernels -------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(seeds)
def test_prices_of_parts_prove_them(seed):
    """Where a row is to have something else, prices bound what is left by its best, or by next to nothing."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 7, 2)
    score, must = whole(rng, n, m), rng.random(n) < 0.2
    problem = with_required(certus.Assignment(score), must)
    try:
        best = problem.decode()
    except certus.Infeasible:
        return
    ranks = kernels.assignment_ranks.Ranks(
        best.structure[None].copy(),
        -best.certificate.duals["columns"][None],
        np.zeros(1, dtype=np.int64),
        np.full(1, -1),
        np.empty(3),
    )
    prices = np.empty((n, m))
    kernels.assignment_ranks.cell_prices(score, must, ranks, 0, 1e3, prices)
    for row in range(n):
        part, alone = score.copy(), ~must
        for i in range(row + 1):
            j = best.structure[i]
            if i < row:
                kept = part[i, j]
                part[i], alone[i] = -np.inf, j < 0
                if j >= 0:
                    part[i, j] = kept
            elif j >= 0:
                part[i, j] = -np.inf
            else:
                alone[i] = False
        worth = np.max(part - prices[row], axis=1, initial=-np.inf)
        worth[alone] = np.maximum(worth[alone], 0.0)
        bound, found = prices[row].sum() + worth.sum(), best_of_scipy(part, ~alone, alone)
        assert (prices[row] >= 0.0).all()
        assert bound < -500.0 if found is None else bound == found[0]
