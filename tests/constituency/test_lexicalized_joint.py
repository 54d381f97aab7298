"""Lexicalised trees that agree with dependency trees on arcs and with a tagger on tags, against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Dependency, Infeasible, Joint, LexicalizedConstituency, Tagging
from tests.constituency.spines import RandomSpines, trees


@st.composite
def joints(draw, sizes=(1, 3)):
    """A lexicalised problem, a second-order dependency problem, a tagger, and the trees of the first with scores."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    grammar = RandomSpines(rng.integers(10**6))
    words = draw(st.lists(st.sampled_from("aabbc,"), min_size=sizes[0], max_size=sizes[1]))
    n = len(words)
    arc, sibling = (rng.integers(-8, 9, (n + 1,) * k).astype(float) for k in (2, 3))
    dependencies = Dependency(arc, sibling=sibling, projective=True)
    tags = Tagging(rng.integers(-8, 9, (n, 3)), bigram=rng.integers(-8, 9, (3, 3)), tags=grammar.tags)
    return LexicalizedConstituency(grammar, words), dependencies, tags, dict(trees(grammar, words))


def tags_of(problem, tree):
    return np.array([problem.tags.index(tag) for tag in tree.tags])


@settings(max_examples=12)
@given(joints(), st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([np.inf, 4.0]))
def test_arcs_and_tags(case, weight, width):
    lexical, dependencies, tags, found = case
    if not found:
        with pytest.raises(Infeasible):
            Joint(lexical, dependencies, on="arcs").decode()
        return
    best = max(s + weight * dependencies.score(t.dependencies) for t, s in found.items())
    joint = Joint(lexical, dependencies, on="arcs", weight=weight)
    result = joint.decode()
    assert result.certificate.exact
    assert result.score == pytest.approx(best)
    certus.verify(joint, result)
    all_three = max(
        s + weight * dependencies.score(t.dependencies) + 2.0 * tags.score(tags_of(lexical, t))
        for t, s in found.items()
    )
    three = Joint(Joint(lexical, tags, on="tags", weight=2.0), dependencies, on="arcs", weight=weight)
    result = three.decode()
    assert result.certificate.exact
    assert result.score == pytest.approx(all_three)
    (tree, sequence), heads = result.structure
    assert np.array_equal(tree.dependencies, heads)
    assert np.array_equal(tags_of(lexical, tree), sequence)
    certus.verify(three, result)
    if width < np.inf:
        kept = set(lexical.within(width).all_structures())
        bound = max(s + weight * dependencies.score(t.dependencies) for t, s in found.items() if t in kept)
        assert Joint(lexical.within(width), dependencies, on="arcs", weight=weight).decode().score == pytest.approx(
            bound
        )
