"""Learners by name: the documentation has them all, and unknown ones are refused."""

import re
from pathlib import Path

import numpy as np
import pytest

from certus.errors import InvalidInput
from certus.learn.learners import LEARNERS, check_learner, new_trainer, new_weights
from certus.learn.trees import TreeTask
from tests.learn.toy import BITS, all_arcs, model_of, treebank


def test_the_documentation_has_every_learner():
    page = (Path(__file__).parents[2] / "docs" / "learners.md").read_text()
    assert re.findall(r"^\| `([a-z][a-z-]*)`", page, re.MULTILINE) == list(LEARNERS)


@pytest.mark.parametrize("name", LEARNERS)
def test_equal_seeds_give_equal_weights(name):
    batch, _ = treebank([3, 2, 4], 9)
    trees = [np.array([-1, *range(2, n + 1), 0]) for n in (3, 2, 4)]  # not what a learner guesses before it learns
    found = []
    for _ in range(2):
        weights = new_weights(name, BITS)
        task = TreeTask(model_of(1, True, True), batch, trees, lambda s: all_arcs(len(trees[s]) - 1))
        words, wrong = np.sum(list(new_trainer(name, task, weights, 5).epoch(0)), axis=0)
        assert words == 9
        assert 0.0 <= wrong <= 9.0
        found.append(weights.averaged())
    assert found[0].any()
    np.testing.assert_array_equal(*found)


def test_unknown_learners_are_refused():
    with pytest.raises(InvalidInput, match="learner"):
        check_learner("magic", projective=True, order=1)
    for name, known in LEARNERS.items():
        check_learner(name, projective=True, order=3)
        check_learner(name, projective=False, order=1)
        if not known.marginals:
            check_learner(name, projective=False, order=3)
