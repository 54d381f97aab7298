"""Every projective model and question against enumeration; counts, numerics and larger sentences beyond it."""

from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings

import certus
from certus import Dependency, Infeasible
from tests.dependency.cases import MODELS, draw_problem, problems
from tests.oracles.trees import projective_trees

ROOTS = ("single", "multi")


def enumerated(problem):
    """(score, heads) of every tree that uses no forbidden part, best first."""
    trees = [(problem.score(np.array(heads)), heads) for heads in projective_trees(problem.n, problem.root)]
    return sorted((tree for tree in trees if tree[0] > -np.inf), reverse=True)


def check_best(problem, trees):
    if not trees:
        with pytest.raises(Infeasible):
            problem.decode()
        return
    result = problem.decode()
    assert result.score == trees[0][0] == result.certificate.bound
    assert problem.score(result.structure) == result.score
    assert result.certificate.exact
    assert result.certificate.kind == "dynamic program"


def check_questions(problem, trees, seed):
    n = problem.n
    if not trees:
        assert problem.log_partition() == -np.inf
        assert (problem.max_marginals()["arcs"] == -np.inf).all()
        for question in (problem.marginals, problem.entropy):
            with pytest.raises(Infeasible):
                question()
        return
    values = np.array([score for score, _ in trees])
    probability = np.exp(values - np.logaddexp.reduce(values))
    best, mass = np.full((n + 1, n + 1), -np.inf), np.zeros((n + 1, n + 1))
    for (score, heads), p in zip(trees, probability, strict=True):
        for m in range(1, n + 1):
            best[heads[m], m] = max(best[heads[m], m], score)
            mass[heads[m], m] += p
    assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(values), rel=1e-12, abs=1e-12)
    assert (problem.max_marginals()["arcs"] == best).all()
    np.testing.assert_allclose(problem.marginals()["arcs"], mass, atol=1e-11)
    assert problem.entropy() == pytest.approx(-np.sum(probability * np.log(probability)), abs=1e-10)
    found = problem.kbest(6)
    assert [r.score for r in found] == values[:6].tolist()
    assert [r.certificate.rank for r in found] == list(range(1, len(found) + 1))
    assert len({tuple(r.structure) for r in found}) == len(found)
    known = {heads for _, heads in trees}
    assert all(tuple(heads) in known for heads in problem.sample(3, seed=seed))


@pytest.mark.parametrize("model", MODELS)
def test_best_tree_equals_enumeration(model):
    rng = np.random.default_rng(1)
    largest = 5 if len(MODELS[model][0]) < 2 else 4
    for k in range(40):
        problem = draw_problem(rng, model, k % (largest + 1), ROOTS[k // 6 % 2])
        check_best(problem, enumerated(problem))


@pytest.mark.parametrize("model", MODELS)
def test_every_question_equals_enumeration(model):
    rng = np.random.default_rng(2)
    for k in range(10):
        problem = draw_problem(rng, model, k % 5, ROOTS[k // 5])
        trees = enumerated(problem)
        check_questions(problem, trees, k)


@pytest.mark.parametrize("model", ["first order", "siblings", "model 1", "model 2"])
def test_listed_parts_give_the_same_answers(model):
    rng = np.random.default_rng(3)
    for k in range(10):
        problem = draw_problem(rng, model, k % 5, ROOTS[k // 5], listed=True)
        trees = enumerated(problem)
        check_best(problem, trees)
        check_questions(problem, trees, k)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_penalties_are_added_to_the_arcs(problem):
    rng = np.random.default_rng(problem.n)
    penalty = rng.integers(-3, 4, problem.arc.shape).astype(float)
    values = [score + sum(penalty[y[m], m] for m in range(1, len(y))) for score, y in enumerated(problem)]
    if not values:
        with pytest.raises(Infeasible):
            problem.solve({"arcs": penalty})
        return
    solution = problem.solve({"arcs": penalty})
    assert solution.value == max(values)
    assert problem.max_marginals({"arcs": penalty})["arcs"].max(initial=-np.inf) == (
        max(values) if problem.n else -np.inf
    )


@settings(max_examples=60, deadline=None)
@given(problems(largest=3))
def test_forest_has_one_derivation_per_tree(problem):
    derived = [tuple(problem.from_edges(edges)) for edges in problem.forest().graph.hyperpaths()]
    assert len(set(derived)) == len(derived)
    assert sorted(derived) == sorted(tuple(y) for y in problem.all_structures())


@pytest.mark.parametrize("model", ["siblings", "model 1", "model 2"])
@pytest.mark.parametrize("root", ROOTS)
def test_kernels_agree_with_the_forest_on_longer_sentences(model, root):
    rng = np.random.default_rng(4)
    for n in (6, 9):
        problem = draw_problem(rng, model, n, root)
        forest, views = problem.forest(), problem.views
        try:
            _, expected = forest.best()
        except Infeasible:
            with pytest.raises(Infeasible):
                problem.solve()
            continue
        assert problem.solve().value == expected
        assert problem.log_partition() == pytest.approx(forest.log_partition(), rel=1e-12)
        np.testing.assert_allclose(problem.marginals()["arcs"], forest.marginals(views)["arcs"], atol=1e-11)
        assert (problem.max_marginals()["arcs"] == forest.max_marginals(views)["arcs"]).all()


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
def test_counting_gives_the_known_numbers_of_projective_trees(n):
    # Projective trees over n words: binomial(3 n, n) / (2 n + 1) with any number of roots; with one, the trees left and
    # right of the root word are forests, which gives binomial(3 n - 2, n - 1) / n.
    for kinds in ((), ("sibling",)):
        zero = {kind: np.zeros((n + 1,) * 3) for kind in kinds}
        multi = Dependency(np.zeros((n + 1, n + 1)), **zero, projective=True, root="multi")
        single = Dependency(np.zeros((n + 1, n + 1)), **zero, projective=True)
        assert np.exp(multi.log_partition()) == pytest.approx(comb(3 * n, n) / (2 * n + 1), rel=1e-12)
        assert np.exp(single.log_partition()) == pytest.approx(comb(3 * n - 2, n - 1) / n, rel=1e-12)


@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0, 1000.0])
@pytest.mark.parametrize("kinds", [(), ("sibling",), ("grandparent",)])
def test_marginals_sum_to_one_for_every_range_of_scores(spread, kinds):
    rng = np.random.default_rng(5)
    n = 14
    arrays = {kind: spread * rng.uniform(-1, 1, (n + 1,) * 3) for kind in kinds}
    problem = Dependency(spread * rng.uniform(-1, 1, (n + 1, n + 1)), **arrays, projective=True)
    marginals = problem.marginals()["arcs"]
    np.testing.assert_allclose(marginals[:, 1:].sum(axis=0), 1.0, atol=1e-9)
    assert marginals.min() >= 0.0


@pytest.mark.parametrize("spread", [1.0, 300.0, 1000.0])
@pytest.mark.parametrize("root", ROOTS)
def test_log_partition_agrees_with_50_digits(spread, root):
    rng = np.random.default_rng(6)
    n = 12
    arc = spread * rng.uniform(-1, 1, (n + 1, n + 1))
    with mpmath.workdps(50):
        expected = mpmath.log(eisner_total(arc, root))
        for problem in (
            Dependency(arc, projective=True, root=root),
            Dependency(arc, np.zeros((n + 1,) * 3), projective=True, root=root),
            Dependency(arc, grandparent=np.zeros((n + 1,) * 3), projective=True, root=root),
        ):
            assert abs((problem.log_partition() - expected) / expected) < 1e-9


def eisner_total(arc, root):
    """Sum of exp(score) over projective trees, in mpmath: inside weights of words i..j by head, plain recursion."""
    n = len(arc) - 1
    weight = [[mpmath.exp(mpmath.mpf(float(a))) for a in row] for row in arc]
    right, left = {}, {}  # right[i, j]: i with right modifiers up to j; left[i, j]: j with left modifiers down to i
    for i in range(n + 1):
        right[i, i] = left[i, i] = mpmath.mpf(1)
    inner = {}
    for width in range(1, n + 1):
        for i in range(n + 1 - width):
            j = i + width
            inner[i, j] = sum(right[i, r] * left[r + 1, j] for r in range(i, j))
            right[i, j] = sum(inner[i, m] * weight[i][m] * right[m, j] for m in range(i + 1, j + 1))
            left[i, j] = sum(inner[m, j] * weight[j][m] * left[i, m] for m in range(i, j)) if i else mpmath.mpf(0)
    if root == "multi":
        return right[0, n]
    return sum(weight[0][m] * left[1, m] * right[m, n] for m in range(1, n + 1))


def test_ties_give_the_same_tree_every_time():
    problem = Dependency(np.zeros((6, 6)), np.zeros((6, 6, 6)), projective=True)
    assert problem.decode().structure.tolist() == problem.decode().structure.tolist()


def test_samples_follow_the_distribution():
    rng = np.random.default_rng(7)
    problem = Dependency(rng.normal(size=(4, 4)), rng.normal(size=(4, 4, 4)), projective=True)
    drawn = problem.sample(4000, seed=0)
    mass = sum(problem.indicator(heads, "arcs") for heads in drawn) / len(drawn)
    np.testing.assert_allclose(mass, problem.marginals()["arcs"], atol=0.04)


def test_pruned_grandsiblings_of_a_long_sentence():
    # 200 words, 5 heads each: far beyond dense third order, small for lists of parts.
    rng = np.random.default_rng(8)
    n = 200
    arc = near_heads(rng, n, 5)
    problem = Dependency.from_parts(
        n,
        arc=(*np.nonzero(arc > -np.inf), arc[arc > -np.inf]),
        sibling=empty_list("hsm"),
        grandparent=empty_list("ghm"),
        grandsibling=empty_list("ghsm"),
        unlisted=0.0,
        projective=True,
    )
    assert problem.forest().graph.n_edges < 1_000_000
    first = Dependency(arc, projective=True)
    assert problem.decode().score == pytest.approx(first.decode().score, rel=1e-12)
    assert problem.log_partition() == pytest.approx(first.log_partition(), rel=1e-10)


def empty_list(letters):
    return (*(np.empty(0, dtype=np.int64) for _ in letters), np.empty(0))


def near_heads(rng, n, heads):
    """Arc scores that leave each word a few nearby heads, its left neighbour among them, so that there is a tree."""
    arc = np.full((n + 1, n + 1), -np.inf)
    for m in range(1, n + 1):
        far = np.clip(m + rng.integers(-12, 13, heads - 1), 0, n)
        arc[far, m] = rng.normal(size=heads - 1)
        arc[m - 1, m] = rng.normal()
    arc[np.arange(n + 1), np.arange(n + 1)] = -np.inf
    arc[:, 0] = -np.inf
    return arc


def test_dense_third_order_of_300_words_says_what_it_takes():
    huge = np.broadcast_to(np.float64(0.0), (301,) * 4)
    with pytest.raises(certus.InvalidInput, match=r"61\.2 GiB.*from_parts"):
        Dependency(np.zeros((301, 301)), grandsibling=huge, projective=True)


def test_infeasible_names_the_word_without_a_head():
    arc = np.zeros((4, 4))
    arc[:, 2] = -np.inf
    with pytest.raises(Infeasible, match="word 2 has no head"):
        Dependency(arc, projective=True).decode()


def test_trees_that_need_crossing_arcs_are_infeasible():
    arc = np.full((5, 5), -np.inf)
    arc[0, 2] = arc[2, 4] = arc[4, 1] = arc[2, 3] = 0.0
    arc[1, 3] = 0.0
    arc[2, 3] = -np.inf
    with pytest.raises(Infeasible, match="crossing"):
        Dependency(arc, projective=True).decode()
    assert Dependency(arc).decode().structure.tolist() == [-1, 4, 0, 1, 2]
