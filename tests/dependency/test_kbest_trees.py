"""The k best non-projective trees against all trees, sorted."""

import heapq
from contextlib import suppress
from itertools import count, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certus
from certus import Infeasible
from certus.dependency.kbest_trees import iterate_trees
from tests.oracles.trees import all_trees, arc_score, is_tree
from tests.strategies import arc_scores

ROOTS = ("single", "multi")


@given(arc=arc_scores(max_words=4), root=st.sampled_from(ROOTS), k=st.integers(1, 200))
def test_kbest_equals_sorted_enumeration(arc, root, k):
    scores = sorted((arc_score(arc, heads) for heads in all_trees(len(arc) - 1, root)), reverse=True)
    scores = [score for score in scores if score > -np.inf]
    if not scores:
        with pytest.raises(Infeasible):
            certus.Dependency(arc, root=root).kbest(k)
        return
    results = certus.Dependency(arc, root=root).kbest(k)
    assert [result.score for result in results] == scores[:k]
    assert len({tuple(result.structure) for result in results}) == len(results)
    for rank, result in enumerate(results, start=1):
        assert is_tree(result.structure.tolist(), root)
        assert result.score == arc_score(arc, result.structure)
        assert result.certificate.rank == rank
        assert result.certificate.exact


@pytest.mark.parametrize("root", ROOTS)
def test_all_trees_of_five_words_in_order(root):
    arc = np.random.default_rng(5).normal(size=(6, 6))
    found = list(iterate_trees(arc, root))
    assert {tuple(heads.tolist()) for heads, _ in found} == set(all_trees(5, root))
    assert len(found) == len(all_trees(5, root))
    values = [value for _, value in found]
    assert values == sorted(values, reverse=True)


def lawler(arc, root, k):
    """Scores of the k best trees, by decoding without each arc of each tree listed."""
    n, made = len(arc) - 1, count()
    heap = []

    def put(kept):
        with suppress(Infeasible):
            best = certus.Dependency(kept, root=root).decode()
            heapq.heappush(heap, (-best.score, next(made), best.structure, kept))

    put(arc)
    found = []
    while heap and len(found) < k:
        negated, _, heads, kept = heapq.heappop(heap)
        found.append(-negated)
        for m in range(1, n + 1):
            without = kept.copy()
            without[heads[m], m] = -np.inf
            put(without)
            kept = np.where((np.arange(n + 1) == m) & (np.arange(n + 1) != heads[m])[:, None], -np.inf, kept)
    return found


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize(("n", "spread"), [(7, 1), (9, 4), (14, 1000)])
def test_trees_of_longer_sentences_are_those_of_another_algorithm(n, spread, root):
    """Many ties, then none; some arcs are forbidden."""
    rng = np.random.default_rng(n)
    for _ in range(3):
        arc = rng.integers(-spread, spread + 1, (n + 1, n + 1)).astype(float)
        arc[rng.random(arc.shape) < 0.3] = -np.inf
        arc[range(n), range(1, n + 1)] = 0.0
        found = list(islice(iterate_trees(arc, root), 40))
        assert [value for _, value in found] == lawler(arc, root, 40)
        assert [arc_score(arc, heads) for heads, _ in found] == [value for _, value in found]
        assert len({tuple(heads.tolist()) for heads, _ in found}) == 40
        assert all(is_tree(heads.tolist(), root) for heads, _ in found)


def test_trees_are_found_when_asked_for():
    """There are more trees of 40 words than could ever be listed; the first few are had at once."""
    arc = np.random.default_rng(1).integers(-8, 9, (41, 41)).astype(float)
    first = [value for _, value in islice(iterate_trees(arc, "single"), 12)]
    assert first == sorted(first, reverse=True)
    assert first == [result.score for result in certus.Dependency(arc).kbest(12)]
