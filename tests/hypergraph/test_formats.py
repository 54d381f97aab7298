"""Text and JSON forms of a hypergraph: they round-trip, and errors name the line."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import FormatError, Hypergraph, InvalidInput
from certus.hypergraph import formats
from tests.strategies import hypergraphs

EXAMPLE = """certus hypergraph 1
# S -> NP VP
vertices 3 edges 3 root 2

vertex 0 "the \\"man\\""
vertex 2 "S"
0 <- weight=0.1 label=""
1 <- weight=-inf label="x y"
2 <- 0 1 weight=1.5 label="r"
"""


@settings(max_examples=80)
@given(hypergraphs(), st.booleans(), st.data())
def test_both_forms_round_trip(case, weighted, data):
    graph, weights = case
    if data.draw(st.booleans()):
        labels = [
            data.draw(st.lists(st.text(max_size=4), min_size=n, max_size=n)) for n in (graph.n_vertices, graph.n_edges)
        ]
        # A graph without edges has no line to hold an empty list of labels.
        graph = Hypergraph(graph.in_ptr, graph.tail_ptr, graph.tail, graph.root, labels[0], labels[1] or None)
    given_weights = weights / 3.0 if weighted and graph.n_edges else None
    for again, values in (
        formats.from_text(formats.to_text(graph, given_weights)),
        formats.from_json(json.loads(json.dumps(formats.to_json(graph, given_weights)))),
    ):
        assert again == graph
        assert (values is None) == (given_weights is None)
        if given_weights is not None:
            assert values.tolist() == given_weights.tolist()


def test_text_reads_as_documented():
    graph, weights = formats.from_text(EXAMPLE)
    assert graph.vertex_labels == ('the "man"', "", "S")
    assert graph.edge_labels == ("", "x y", "r")
    assert weights.tolist() == [0.1, -np.inf, 1.5]
    assert graph.tail.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("certus hypergraph 1", "certus graph", "text:1: a hypergraph starts with"),
        ("vertices 3 edges 3 root 2", "vertices three", "text:3: expected 'vertices V"),
        ("root 2", "root 7", "root is 7"),
        ("2 <- 0 1 weight", "2 <- 0 9 weight", "text:9: vertex 9 does not exist"),
        ("2 <- 0 1 weight", "1 <- 0 1 weight", "text:9: tail vertex 1 is not numbered below its head 1"),
        ("0 <- weight", "2 <- weight", "text:8: this edge enters vertex 1, but one into 2"),
        ("weight=1.5", "weight=nan", "text:9: weight 'nan'"),
        ("weight=1.5", "weight=heavy", "text:9: weight 'heavy'"),
        (" weight=1.5", "", "text:9: this edge has no weight"),
        (' label="r"', "", "text:9: this edge has no label"),
        ('label="r"', 'label="r', "text:9: .* is neither"),
        ('"the \\"man\\""', '"the \\q"', "text:5: label .* is not a JSON string"),
        ("2 <- 0 1 weight=1.5", "2 -> 0 1 weight=1.5", "text:9: .* is neither"),
        ('2 <- 0 1 weight=1.5 label="r"\n', "", "2 edges found, 3 announced"),
    ],
)
def test_text_errors_name_the_line(old, new, message):
    assert old in EXAMPLE
    with pytest.raises(FormatError, match=message):
        formats.from_text(EXAMPLE.replace(old, new))
    with pytest.raises(FormatError):
        formats.from_text("")


@pytest.mark.parametrize("name", ["graph.json", "graph.txt"])
def test_files(tmp_path, name):
    graph, weights = formats.from_text(EXAMPLE)
    path = tmp_path / name
    formats.save(path, graph, weights)
    again, values = formats.load(path)
    assert again == graph
    assert values.tolist() == weights.tolist()
    text = path.read_text()
    for size in (0, 10, len(text) // 2, len(text) - 6):
        path.write_text(text[:size])
        with pytest.raises(FormatError, match=name):
            formats.load(path)
    with pytest.raises(FormatError, match="cannot be read"):
        formats.load(tmp_path / f"missing-{name}")


def test_nothing_is_left_when_saving_fails(tmp_path):
    graph, weights = formats.from_text(EXAMPLE)
    weights[0] = np.nan
    with pytest.raises(InvalidInput, match="nan"):
        formats.save(tmp_path / "graph.json", graph, weights)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"tail": None},
        {"tail": [0, 7]},
        {"tail": "01"},
        {"root": "2"},
        {"root": True},
        {"in_ptr": [0, [1], 2, 3]},
        {"weights": [1.0]},
        {"weights": ["x", 0, 0]},
        {"weights": ["nan", 0, 0]},
        {"edge_labels": "abc"},
        {"vertex_labels": [1, 2, 3]},
    ],
)
def test_broken_json_is_rejected(change):
    data = {**formats.to_json(*formats.from_text(EXAMPLE)), **change}
    with pytest.raises(InvalidInput):
        formats.from_json(data)
    with pytest.raises(InvalidInput, match="root is missing"):
        formats.from_json({k: v for k, v in formats.to_json(*formats.from_text(EXAMPLE)).items() if k != "root"})
