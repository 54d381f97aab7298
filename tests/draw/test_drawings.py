"""Every drawing is well-formed SVG that stays on its paper, says what it shows, and survives any words."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certus import draw
from certus.draw.svg import width_of
from certus.errors import InvalidInput
from certus.io.brackets import parse_tree
from certus.text import Sentence, Token, Tree

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["<script>alert(1)</script>", "&amp;", "\"'", "\x00\ufffe", "𝔊", "]]>", "a" * 300, "日本語", "", "é́"]
words = st.lists(st.one_of(st.text(max_size=12), st.sampled_from(HOSTILE)), min_size=0, max_size=12)


def checked(picture: draw.Picture) -> ElementTree.Element:
    """The picture as XML: no script, nothing drawn far outside, a title and a description."""
    root = ElementTree.fromstring(picture.svg)
    names = {element.tag for element in root.iter()}
    assert names <= {SVG + name for name in ("svg", "title", "desc", "style", "rect", "path", "text", "g", "circle")}
    assert root.find(SVG + "title") is not None
    assert picture.svg in picture._repr_html_()
    assert str(picture)
    for element in root.iter(SVG + "text"):
        x, half = float(element.get("x")), width_of(element.text or "", 9)
        assert -half <= x <= picture.width + half
        assert 0 <= float(element.get("y")) <= picture.height + 12
    return root


@st.composite
def trees(draw_):
    given_words = draw_(words)
    heads = [-1, *(draw_(st.integers(0, len(given_words))) for _ in given_words)]
    return given_words, [h if h != m else 0 for m, h in enumerate(heads)]


@given(trees(), st.booleans())
def test_arcs_of_any_words_and_heads(tree, narrow):
    forms, heads = tree
    n = len(forms)
    picture = draw.arcs(
        forms,
        heads,
        labels=forms,
        tags=["NOUN"] * n,
        confidence=[k / max(n, 1) for k in range(n)],
        other=[-1] + [0] * n,
        alternatives=[(0, m, 0.1) for m in range(1, n + 1)],
        width=120.0 if narrow else 1080.0,
    )
    root = checked(picture)
    assert len([g for g in root.iter(SVG + "g") if g.get("data-word")]) == n


def levels(picture: draw.Picture) -> dict[str, float]:
    """How high the arcs are."""
    found = {}
    for path in ElementTree.fromstring(picture.svg).iter(SVG + "path"):
        if path.get("data-part"):
            found[path.get("data-part")] = min(float(y) for y in re.findall(r"V([\d.]+)", path.get("d")))
    return found


def test_crossing_arcs_have_different_heights_and_inner_ones_are_lower():
    height = levels(draw.arcs("abcd", [-1, 3, 4, 0, 3]))
    assert height["3-1"] != height["4-2"]
    nested = levels(draw.arcs("abcd", [-1, 4, 3, 4, 0]))
    assert nested["4-1"] < nested["3-2"]


def test_long_sentences_go_on_in_the_next_band_and_say_where_arcs_lead():
    n = 80
    picture = draw.arcs([f"word{i}" for i in range(n)], [-1, 0, *range(1, n)], labels=["dep"] * n)
    assert picture.width < 1400
    checked(picture)
    assert "→" in "".join(t.text or "" for t in ElementTree.fromstring(picture.svg).iter(SVG + "text"))


def test_two_analyses_differ_where_they_do():
    svg = draw.arcs(["a", "b", "c"], [-1, 2, 0, 2], other=[-1, 2, 0, 1]).svg
    assert svg.count("second dash bold") == 1
    assert svg.count('class="stroke first bold"') == 1


def test_plain_text_of_crossing_arcs():
    assert draw.arcs(["a", "b", "c", "d"], [-1, 3, 4, 0, 3], tags=list("WXYZ")).text == (
        " ╭─▶ a  W\n╭┼─▶ b  X\n│├─● c  Y\n╰┴─▶ d  Z\n"
    )


def test_confidence_is_colour_and_dash():
    svg = draw.arcs(["a", "b"], [-1, 2, 0], confidence=[0.2, 0.999]).svg
    assert 'class="stroke sure0"' in svg
    assert 'class="stroke sure4"' in svg
    assert ".sure0{stroke-dasharray" in svg
    assert "prefers-color-scheme:dark" in svg


@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize(
    "text",
    ["(A a)", "(S (A a) (B b))", "(S (NP (D the) (N man)) (VP (V saw) (NP (D a) (N dog)) (PP (P with) (NP (N it)))))"],
)
def test_phrase_trees(text, across):
    tree = parse_tree(text)
    heads = [-1, 0, *([1] * (len(tree.words) - 1))]
    checked(draw.phrase_tree(tree.preorder(), heads=heads, across=across))
    picture = draw.phrase_tree(tree.preorder(), other=tree.preorder(), across=across)
    checked(picture)
    assert "mark" not in re.sub("<style>.*</style>", "", picture.svg, flags=re.DOTALL)


def test_other_trees_are_marked_where_they_differ():
    a = parse_tree("(S (A a) (X (B b) (C c)))")
    b = parse_tree("(S (X (A a) (B b)) (C c))")
    svg = a.picture(other=b).svg
    assert svg.count('class="mark"') == svg.count('class="tint"') == 1
    with pytest.raises(InvalidInput, match="different words"):
        a.picture(other=parse_tree("(S (A a))"))


def test_deep_trees_are_drawn():
    tree = Tree("A", "a")
    for _ in range(3000):
        tree = Tree("B", [tree])
    assert tree.picture().height > 3000


@given(words)
def test_lattices_rows_and_alignments_of_any_words(forms):
    n = len(forms)
    share = np.full((n, 3), 1 / 3)
    checked(draw.lattice(forms, [0] * n, ["A", "<b>", "C"], marginals=share, other=[1] * n))
    checked(draw.row(forms, notes=forms))
    links = [(i, i) for i in range(n)]
    checked(draw.alignment(forms, forms, links, other=links[:1]))
    checked(draw.phrases(forms, [(i, i + 1, [w]) for i, w in enumerate(forms)], covered=[2] * n))


def test_heat_maps_name_their_cells():
    picture = draw.heat([[0.0, 1.0], [0.25, 0.0]], ["a", "<b>"], ["c", "d"], marked=[(0, 1)])
    checked(picture)
    assert "&lt;b&gt;, c: 0.25" in picture.svg
    checked(draw.heat(np.eye(40), list("x" * 40), list("y" * 40)))
    checked(draw.heat(np.zeros((0, 0)), [], []))


def test_hypergraphs_show_the_hyperpath():
    edges = [(0, []), (1, []), (2, [0, 1]), (2, [0])]
    picture = draw.hypergraph(3, edges, names=["a", "b", "<S>"], used=[0, 1, 2])
    checked(picture)
    assert "first bold" in picture.svg
    with pytest.raises(InvalidInput, match="at most 400 can be drawn"):
        draw.hypergraph(1, [(0, [])] * 401)


def test_curves_leave_out_what_is_not_finite():
    checked(draw.curves({"dual": [3.0, 2.0, 1.0], "primal": [-np.inf, np.nan, 1.0]}))
    checked(draw.curves({"dual": []}))
    checked(draw.curves({"dual": [2.0]}))


def test_stacks_and_galleries():
    one = draw.row(["a"])
    both = draw.stacked([one, one])
    assert both.height == 2 * one.height
    ElementTree.fromstring(both.svg)
    shown = draw.Gallery([Sentence.from_words(["a"]), "<b>"])
    assert shown == [Sentence.from_words(["a"]), "<b>"]
    assert "&lt;b&gt;" in shown._repr_html_()


def test_sentences_draw_what_they_have():
    bare = Sentence.from_words(["a", "b"])
    assert "data-part" not in bare.picture().svg
    sentence = Sentence([Token(1, "a", head=2, deprel="det", misc="Confidence=0.3"), Token(2, "b", head=0, misc="X=1")])
    assert sentence.confidences() is None
    sentence.tokens[1].misc = "Confidence=1.0000"
    assert sentence.confidences() == [0.3, 1.0]
    assert "30.0%" in sentence.picture().svg
    with pytest.raises(InvalidInput, match="draw each"):
        sentence.picture(other=Sentence.from_words(["a"]))


def test_pictures_are_saved_whole(tmp_path):
    picture = draw.row(["ü"])
    picture.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == picture.svg
