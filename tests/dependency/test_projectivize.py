"""The nearest projective tree, against all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import InvalidInput
from certus.dependency.projectivize import nearest_projective, projectivized
from certus.text import Sentence
from tests.oracles.trees import all_trees, projective_trees


def lifting(heads, given):
    """How far words are from their heads, over all words whose new head is an ancestor; others count most."""
    total = 0
    for m in range(1, len(heads)):
        way, ancestor = 0, given[m]
        while ancestor not in (heads[m], -1):
            way, ancestor = way + 1, given[ancestor]
        total += way if ancestor >= 0 else len(heads)
    return total


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_no_projective_tree_keeps_more_heads_or_lifts_less(data):
    n = data.draw(st.integers(0, 5))
    root = data.draw(st.sampled_from(["single", "multi"]))
    given = data.draw(st.sampled_from(sorted(all_trees(n, root))))
    found = tuple(nearest_projective(np.array(given)).tolist())
    rivals = list(projective_trees(n, "single" if given.count(0) == 1 else "multi"))
    assert found in rivals
    agreed = {heads: sum(a == b for a, b in zip(heads, given, strict=True)) for heads in rivals}
    assert agreed[found] == max(agreed.values())
    nearest = [heads for heads in rivals if agreed[heads] == agreed[found]]
    assert lifting(found, given) == min(lifting(heads, given) for heads in nearest)
    if given in agreed:
        assert found == given


def test_what_is_no_tree_is_refused():
    with pytest.raises(InvalidInput, match="cycle"):
        nearest_projective([-1, 2, 1])


def test_a_moved_word_keeps_its_label_and_says_what_head_it_had():
    sentence = Sentence.from_words(["a", "b", "c", "d"])
    for token, head in zip(sentence, (3, 4, 0, 3), strict=True):
        token.head, token.deprel, token.misc = head, f"of{head}", "SpaceAfter=No" if head == 4 else "_"
    found = projectivized(sentence)
    assert found.heads.tolist() == [-1, 3, 3, 0, 3]
    assert [(t.deprel, t.misc) for t in found][1] == ("of4", "SpaceAfter=No|CrossingHead=4")
    assert found.tokens[0] is sentence.tokens[0]
