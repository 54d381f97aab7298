"""Results, traces, lists and batches draw themselves; problems draw what they know of a structure."""

from xml.etree import ElementTree

import numpy as np
import pytest

import certus
from certus.data import demo_grammar, demo_tagger
from certus.draw import Gallery
from certus.result import Certificate, Trace

WORDS = ["Red", "flies", "some", "large", "jet"]


def svg(text: str) -> str:
    ElementTree.fromstring(text)
    return text


def joint() -> certus.Joint:
    return certus.Joint(certus.Constituency(demo_grammar(), WORDS), demo_tagger().tagging(WORDS), on="tags")


def test_a_joint_result_draws_its_tree_and_says_what_is_proved():
    result = joint().decode()
    assert "PROPN: Red" in svg(result._repr_svg_())
    assert "Proved: it scores" in result._repr_html_()
    assert "dual value" in svg(result.trace._repr_svg_())


def test_lists_of_the_best_are_lists_that_draw_themselves():
    listed = certus.Tagging([[0, 1], [2, 0]], tags=("<A>", "B")).kbest(3)
    assert isinstance(listed, list)
    assert isinstance(listed, Gallery)
    assert listed._repr_html_().count("<svg") == 3


def test_batches_draw_their_first_items():
    found = certus.DependencyBatch(np.zeros((10, 4, 4)), lengths=[3] * 10).decode()
    assert svg(found._repr_svg_()).count("<svg") == 9
    assert "10 exact" in found._repr_html_()
    ranked = certus.DependencyBatch(np.zeros((10, 4, 4)), lengths=[3] * 10).kbest(2)
    assert svg(ranked._repr_svg_()).count("<svg") == 9


def test_heads_are_arcs_and_other_arrays_rows():
    arcs = certus.Dependency([[0, 5, 1], [0, 0, 4], [0, 3, 0]]).decode()
    assert 'data-part="1-2"' in svg(arcs._repr_svg_())
    assert "→ b" in arcs.picture(["a", "b"]).svg
    row = certus.Tagging([[0, 1], [2, 0]]).decode()
    assert "data-part" in svg(row._repr_svg_())


def test_problems_draw_with_names():
    tagging = certus.Tagging([[0, 1], [2, 0]], tags=("<A>", "B"))
    assert "&lt;A&gt;" in svg(tagging.picture(tagging.decode().structure, ["x", "y"]).svg)
    dependency = certus.Dependency(np.zeros((3, 3)))
    best = dependency.decode().structure
    assert "root → x" in svg(dependency.picture(best, ["x", "y"]).svg)
    with pytest.raises(certus.InvalidInput, match="3 words for a sentence of 2"):
        dependency.picture(best, ["x", "y", "z"])
    limited = tagging.subject_to(certus.constraints.forbid("tags", (0, 1)))
    assert "&lt;A&gt;" in limited.picture(limited.decode().structure).svg


def test_hyperpaths_draw_their_graph():
    graph = certus.Hypergraph(in_ptr=[0, 2, 3], tail_ptr=[0, 0, 0, 1], tail=[0])
    problem = certus.Hyperpath(graph, [1.0, 2.0, 0.5])
    assert "first bold" in svg(problem.picture(problem.decode().structure).svg)


def test_derivations_are_trees_over_their_words():
    forest = certus.TranslationForest(
        certus.Hypergraph(in_ptr=[0, 2, 3], tail_ptr=[0, 0, 0, 1], tail=[0]),
        [0, 1, 2, 4],
        [0, 1, ~0, 2],
        ["dog", "<cat>", "barks"],
    )
    assert forest.preorder([2, 1]) == [("X", None, 2), ("X", None, 1), ("", "<cat>", 0), ("", "barks", 0)]


@pytest.mark.parametrize("kind", certus.result.KINDS)
def test_certificates_speak(kind):
    assert Certificate(kind, 1.0, 1.0, 0.0).in_words().startswith("Proved: it scores 1, and no structure scores more.")
    apart = Certificate(kind, 1.0, 3.0, 0.0, rank=3, reason="time ran out").in_words()
    assert "Not proved (time ran out)" in apart
    assert "but the 2 before it" in apart
    assert "could gain 2 at most" in apart


def test_empty_traces_have_a_picture():
    svg(Trace()._repr_svg_())


def test_structures_of_neural_models_are_drawn_as_what_they_are():
    tree = certus.SpanTrees(np.zeros((4, 4)))
    assert "X: the" in svg(tree.picture(tree.decode().structure, ["the", "dog", "barks"]).svg)
    links = certus.Alignment(np.ones((3, 3, 3)))
    assert svg(links.picture(((0, 0, 0), (1, 1, 0)), ["le", "chien"]).svg).count('data-part="') == 2
    pairs = certus.Assignment([[5, 4], [4, 1]])
    assert 'data-part="0-1"' in svg(pairs.picture(pairs.decode().structure).svg)
    cut = certus.Segmentation(np.ones((3, 2, 2)))
    assert "Segments: a b c" in svg(cut.picture(cut.decode().structure, ["a", "b", "c"]).svg)
    spanning = certus.SpanningTree(np.ones((3, 3)))
    assert svg(spanning.picture(spanning.decode().structure).svg).count("data-part") == 2
