"""The score of a tree is the sum over its parts, by their definitions written out one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Dependency
from certus.dependency.part_kinds import HIGHER_KINDS, TABLE
from tests.dependency.cases import whole_scores
from tests.fuzz.trees import parts_of
from tests.oracles.trees import all_trees


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.sampled_from(["all", "outermost"]), st.booleans())
def test_the_score_of_a_tree_is_that_of_its_parts(seed, n, grandparents, listed):
    rng = np.random.default_rng(seed)
    kinds = [kind for kind in TABLE if "m" in kind.axes or not listed]
    scores = {kind.name: whole_scores(rng, kind.shape(n), 0.02) for kind in kinds}
    if listed:
        lists = {name: (*np.nonzero(array > -np.inf), array[array > -np.inf]) for name, array in scores.items()}
        problem = Dependency.from_parts(n, **lists, root="multi", grandparents=grandparents)
    else:
        problem = Dependency(**scores, root="multi", grandparents=grandparents)
    trees = all_trees(n, "multi")
    for k in rng.permutation(len(trees))[:40]:
        used = parts_of(trees[k], grandparents == "outermost")
        expected = sum(scores[kind][index] for kind, index in used if kind in scores)
        assert problem.score(np.array(trees[k])) == expected


@pytest.mark.parametrize("name", HIGHER_KINDS)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("share", [0.8, 1.0])
def test_the_readable_parts_are_those_of_all_trees(name, single, share):
    n, kind = 4, HIGHER_KINDS[name]
    allowed = np.random.default_rng(1).random((n + 1, n + 1)) < share
    allowed[:, 0] = False
    np.fill_diagonal(allowed, False)
    read = np.broadcast_to(kind.readable(allowed, single)(*np.ogrid[tuple(map(slice, kind.shape(n)))]), kind.shape(n))
    seen = np.zeros(kind.shape(n), dtype=bool)
    for heads in all_trees(n, "single" if single else "multi"):
        if all(allowed[heads[m], m] for m in range(1, n + 1)):
            for found, index in parts_of(heads, False):
                if found == name:
                    seen[index] = True
    assert not (seen & ~read).any()
    if share == 1.0 and name != "null":  # the only root word has modifiers
        assert (seen == read).all()
