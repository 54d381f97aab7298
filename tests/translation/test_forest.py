"""Translation forests: derivations, features, leaves, and the files they travel in."""

import json

import numpy as np
import pytest
from hypothesis import given, settings

from certus import FormatError, Hypergraph, InvalidInput, TranslationForest
from tests.translation.cases import forests

TEXT = """4 6
2
the dog ||| f=1
a cat ||| f=0.5 g=-2
1
barks |||
2
[0] [1] loudly ||| g=1
[1] the [0] the ||| f=-1
1
[2] |||
"""


def test_reads_cdec_text_as_documented():
    forest = TranslationForest.from_text(TEXT).weighted({"f": 2.0, "g": 1.0, "unused": 9.0})
    found = {" ".join(forest.yields(y)): forest.score(y) for y in forest.graph.hyperpaths()}
    assert found == {
        "the dog barks loudly": 3.0,
        "a cat barks loudly": 0.0,
        "barks the the dog the": 0.0,
        "barks the a cat the": -3.0,
    }
    assert forest.features([5, 4, 2, 1]) == {"f": -0.5, "g": -2.0}


@settings(max_examples=25)
@given(forests())
def test_files_round_trip(tmp_path_factory, forest):
    folder = tmp_path_factory.mktemp("forest")
    forest.write(folder / "f.json")
    again = TranslationForest.read(folder / "f.json")
    assert again.to_json() == forest.to_json()
    forest.write(folder / "f.gz")
    assert TranslationForest.read(folder / "f.gz").to_text() == forest.to_text()


def test_json_is_hypergraph_json_with_spans_and_rules():
    from certus.hypergraph.formats import from_json

    graph = Hypergraph([0, 1, 2], [0, 0, 1], [0])
    forest = TranslationForest(
        graph,
        [0, 1, 2],
        [0, ~0],
        ["dog"],
        [1.5, -np.inf],
        feature_names=["f"],
        feature_ptr=[0, 1, 1],
        feature=[0],
        feature_value=[0.25],
        spans=[[0, 1], [0, 1]],
        symbols=["X", "S"],
        rules=[3, -1],
    )
    data = json.loads(json.dumps(forest.to_json()))
    assert from_json(data)[0] == graph
    again = TranslationForest.from_json(data)
    assert again.spans.tolist() == [[0, 1], [0, 1]]
    assert (again.symbols, again.rules.tolist()) == (["X", "S"], [3, -1])
    assert again.weights.tolist() == [1.5, -np.inf]
    with pytest.raises(InvalidInput, match="not a translation forest"):
        TranslationForest.from_json({**data, "translation": None})


@settings(max_examples=25)
@given(forests())
def test_leaves_spell_what_derivations_yield(forest):
    view = forest.leaf_graph()
    names = {-1: "<s>", -2: "</s>"}
    spelt = []
    for path in view.graph.hyperpaths():
        leaves = [int(view.graph.heads[e]) for e in path if view.word[view.graph.heads[e]] != -3]
        words = [names.get(int(view.word[v])) or forest.words[view.word[v]] for v in leaves]
        edges = [int(view.edge[e]) for e in path if view.edge[e] >= 0]
        assert words == ["<s>", *forest.yields(edges), "</s>"]
        spelt.append(tuple(edges))
    assert sorted(spelt) == sorted(map(tuple, forest.graph.hyperpaths()))


def test_rules_of_a_vertex_share_leaves_and_a_word_twice_in_a_rule_has_two():
    forest = TranslationForest.from_text(TEXT)
    view = forest.leaf_graph()
    leaves = [(forest.words[w], int(o)) for w, o in zip(view.word, view.owner, strict=True) if w >= 0]
    assert sorted(leaves) == [
        ("a", 0),
        ("barks", 1),
        ("cat", 0),
        ("dog", 0),
        ("loudly", 2),
        ("the", 0),
        ("the", 2),
        ("the", 2),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("4 6", "four", "f:1: expected '#nodes #edges'"),
        ("4 6", "4 7", "f:1: 7 edges announced, 6 found"),
        ("4 6", "3 5", "f:10: the file goes on after node 2"),
        ("4 6", "5 6", "f:11: expected the number of edges into node 4, found the end"),
        ("[0] [1] loudly ||| g=1", "[0] [2] loudly ||| g=1", r"f:8: \[2\] is not a node before node 2"),
        ("the dog ||| f=1", "the dog", "f:3: an edge is 'target tokens ||| features'"),
        ("the dog ||| f=1", "the dog ||| f", "f:3: feature 'f' is not 'name=value'"),
        ("the dog ||| f=1", "the dog ||| f=inf", "f:3: f is 'inf'; expected a finite number"),
        ("\n1\n[2] |||\n", "\n3\n[2] |||\n", "f:11: node 3 has 3 edges, but the file ends"),
    ],
)
def test_errors_name_the_line(old, new, message):
    assert old in TEXT
    with pytest.raises(FormatError, match=message):
        TranslationForest.from_text(TEXT.replace(old, new, 1), path="f")


def test_a_feature_without_a_weight_is_named():
    with pytest.raises(InvalidInput, match="the feature 'g' has no weight"):
        TranslationForest.from_text(TEXT).weighted({"f": 1.0})


@pytest.mark.parametrize(
    ("edges", "message"),
    [([5, 3, 0], "vertex 1 is due, but no edge is left"), ([0], "vertex 3 is due"), ([5, 3, 0, 2, 2], "after its end")],
)
def test_what_is_no_derivation_is_refused(edges, message):
    with pytest.raises(InvalidInput, match=message):
        TranslationForest.from_text(TEXT).score(edges)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"token": [0, 1, ~1]}, "edge 1 has the references"),
        ({"token": [0, 2, ~0]}, "edge 1 has word 2"),
        ({"token_ptr": [0, 1]}, "token_ptr does not fit"),
        ({"token": [0, 1, 0]}, "edge 1 has the references"),
        ({"weights": [0.0, np.nan]}, r"weights\[1\] is nan"),
        ({"symbols": ["X"]}, "symbols has 1 entries"),
        ({"feature_ptr": [0, 1, 1], "feature": [0], "feature_value": [1.0]}, "feature_names has 0 entries"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    arrays = {"token_ptr": [0, 1, 3], "token": [0, 1, ~0], "words": ["a", "b"], **change}
    with pytest.raises(InvalidInput, match=message):
        TranslationForest(Hypergraph([0, 1, 2], [0, 0, 1], [0]), **arrays)
