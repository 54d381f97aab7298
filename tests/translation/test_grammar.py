"""Synchronous grammars: rules as they are read, and forests that hold every derivation once."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import FormatError, Infeasible, InvalidInput, SynchronousGrammar, TranslationForest
from certus.io.hiero import parse_rules, read_rules, read_weights
from certus.translation import GrammarModel
from tests.data import shared_data

RULES = """[X] ||| le dug ||| the dog ||| w=-4
[X] ||| le dug ||| a cat ||| w=2.5
[X] ||| abarks [X,1] ||| [1] barks loudly ||| w=2

[X] ||| abarks [X,1] ||| barks [1] ||| w=0.5 ||| 0-0
[X] ||| abarks [X,1] ||| barks [X,1] loudly ||| w=3
"""
GLUE = """[S] ||| [X,1] ||| [1]
[S] ||| [S,1] [X,2] ||| [1] [2] ||| Glue=1
"""

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # of hashes, when kernels are interpreted


def translations(forest):
    """Every derivation: what it yields and its score."""
    return sorted((" ".join(forest.yields(y)), forest.score(y)) for y in forest.graph.hyperpaths())


def test_the_worked_example_of_the_documents():
    """LR ex. 5.1.2: the forest of figure 5-2, but for its <s> and </s>."""
    grammar = SynchronousGrammar.from_text(RULES, glue="[S] ||| [X,1] ||| [1] ||| w=-1", weights={"w": 1.0})
    forest = grammar.forest(["abarks", "le", "dug"])
    assert translations(forest) == [
        ("a cat barks loudly", 3.5),
        ("barks a cat", 2.0),
        ("barks a cat loudly", 4.5),
        ("barks the dog", -4.5),
        ("barks the dog loudly", -2.0),
        ("the dog barks loudly", -3.0),
    ]
    assert list(zip(forest.symbols, forest.spans.tolist(), strict=True)) == [
        ("X", [1, 3]),
        ("X", [0, 3]),
        ("S", [0, 3]),
    ]
    view = forest.leaf_graph()
    leaves = sorted((forest.words[w], int(o)) for w, o in zip(view.word, view.owner, strict=True) if w >= 0)
    assert leaves == [("a", 0), ("barks", 1), ("cat", 0), ("dog", 0), ("loudly", 1), ("the", 0)]


def every_derivation(rules, glue, max_span, words, symbol, i, j):
    """(words, score) of all derivations of a symbol over words[i:j], by trying every rule at every split."""
    found = []
    for at, (left, source, target, score) in enumerate([*rules, *glue]):
        is_glue = at >= len(rules)
        if left != symbol or (is_glue and i > 0) or (not is_glue and j - i > max_span):
            continue
        for cuts in itertools.combinations(range(i + 1, j), len(source) - 1):
            ends = [i, *cuts, j]
            parts = []
            for k, item in enumerate(source):
                if isinstance(item, str):
                    fits = ends[k + 1] == ends[k] + 1 and words[ends[k]] == item
                    parts.append([([], 0.0)] if fits else [])
                else:
                    parts.append(every_derivation(rules, glue, max_span, words, item[0], ends[k], ends[k + 1]))
            for chosen in itertools.product(*parts):
                of = [c for c, item in zip(chosen, source, strict=True) if not isinstance(item, str)]
                side = [w for t in target for w in ([t] if isinstance(t, str) else of[t][0])]
                found.append((side, score + sum(c[1] for c in of)))
    return found


@st.composite
def grammars(draw):
    """Rules over two nonterminals and two words, unary rules only from X to Y, and glue rules."""
    rules = []
    for _ in range(draw(st.integers(1, 6))):
        left = draw(st.sampled_from("XY"))
        source = draw(st.lists(st.sampled_from(["u", "v", ("X",), ("Y",)]), min_size=1, max_size=4))
        if source in ([("X",)], [("Y",)]):
            left, source = "Y", [("X",)]
        n = sum(not isinstance(item, str) for item in source)
        target = draw(st.permutations([*range(n), *draw(st.lists(st.sampled_from("ab"), max_size=2))]))
        rules.append((left, source, target, float(draw(st.integers(-8, 8)))))
    rules.append(("X", ["u"], ["a"], 1.0))
    glue = [("S", [("Y",)], [0], 0.5), ("S", [("X",)], [0], 0.0), ("S", [("S",), ("X",)], [0, 1], -1.0)]
    return rules, glue


def as_text(rules):
    lines = []
    for left, source, target, score in rules:
        count = itertools.count(1)
        f = " ".join(item if isinstance(item, str) else f"[{item[0]},{next(count)}]" for item in source)
        e = " ".join(t if isinstance(t, str) else f"[{t + 1}]" for t in target)
        lines.append(f"[{left}] ||| {f} ||| {e} ||| w={score}")
    return "\n".join(lines)


@settings(max_examples=60)
@given(grammars(), st.lists(st.sampled_from("uv"), min_size=1, max_size=5), st.integers(1, 4))
def test_a_forest_holds_every_derivation_once(case, words, max_span):
    rules, glue = case
    known = {left for left, _, _, _ in rules}
    rules = [rule for rule in rules if all(isinstance(i, str) or i[0] in known for i in rule[1])]
    glue = [rule for rule in glue if rule[1][0][0] in {*known, "S"}]
    expected = every_derivation(rules, glue, max_span, words, "S", 0, len(words))
    if any(not isinstance(i, str) and i[0] not in {r[0] for r in rules} for rule in rules for i in rule[1]):
        return
    grammar = SynchronousGrammar.from_text(as_text(rules), glue=as_text(glue), weights={"w": 1.0}, max_span=max_span)
    if not expected:
        with pytest.raises(Infeasible):
            grammar.forest(words, unknown="error")
        return
    if len(expected) > 2000:
        return
    forest = grammar.forest(words, unknown="error")
    assert translations(forest) == sorted((" ".join(side), score) for side, score in expected)
    forest.graph.check(connected=True)


def test_rules_are_read_as_documented(tmp_path):
    text = "[X] ||| a [Y,2] b [X,1] ||| [1] c [Y,2] ||| p=1 q=-2.5\n\n[Y] ||| z ||| ||| p=0\n[X] ||| [Y,1] ||| [1]\n"
    path = tmp_path / "rules"
    path.write_text(text)
    table = read_rules(path)
    assert (table.nonterminals, table.source_words, table.target_words) == (["X", "Y"], ["a", "b", "z"], ["c"])
    assert table.source.tolist() == [0, ~1, 1, ~0, 2, ~1]
    assert table.target.tolist() == [~1, 0, ~0, ~0]  # the first reference is to the second nonterminal
    assert table.target_ptr.tolist() == [0, 3, 3, 4]
    assert (table.feature_names, table.feature_value.tolist()) == (["p", "q"], [1.0, -2.5, 0.0])
    assert [table.place(r)[1] for r in range(3)] == [1, 3, 4]
    few = read_rules(path, source_words={"z"})
    assert few.line.tolist() == [3, 4]
    assert few.target.tolist() == [~0]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("[X] ||| a", r"r:2: expected '\[X\] \|\|\| source"),
        ("X ||| a ||| b", "r:2: the left-hand side is 'X'"),
        ("||| a ||| b", "r:2: expected one nonterminal"),
        ("[X] ||| ||| b", "r:2: the source side is empty"),
        ("[X] ||| a [Y,1] ||| [1]", r"r:2: the nonterminal \[Y\] is unknown"),
        ("[X] ||| a [X] ||| b", r"r:2: the nonterminal \[X\] on the source side has no index"),
        ("[X] ||| a [X,1] ||| b", "r:2: 1 nonterminals on the source side but 0 on the target side"),
        ("[X] ||| a [X,1] ||| [2]", r"r:2: the nonterminals of the target side are numbered \[2\]"),
        ("[X] ||| a [X,2] ||| [2]", r"r:2: the nonterminals of the source side are numbered \[2\]"),
        ("[X] ||| [X,1] a [X,1] ||| [1] [2]", r"r:2: .* source side are numbered \[1, 1\]"),
        ("[X] ||| a [X,1] ||| [1] [1]", r"r:2: .* target side are numbered \[1, 1\]"),
        ("[X] ||| a [X,1] ||| [S,1]", r"r:2: \[S,1\] on the target side has another nonterminal"),
        ("[X] ||| a ||| b ||| 0.5", "r:2: the feature '0.5' is not 'name=value'"),
        ("[X] ||| a ||| b ||| p=x", "r:2: the feature 'p=x' is not a finite number"),
    ],
)
def test_errors_name_the_line(rule, message):
    with pytest.raises(FormatError, match=message):
        parse_rules([f"[X] ||| a ||| b\n{rule}\n[S] ||| [X,1] ||| [1]".encode()], ["r"])


def test_errors_in_the_second_file_name_it():
    with pytest.raises(FormatError, match="glue:2: the source side is empty"):
        SynchronousGrammar.from_text("[X] ||| a ||| b\n", glue="[S] ||| [X,1] ||| [1]\n[S] ||| ||| b")
    with pytest.raises(FormatError, match=r"r:1: .* is not UTF-8 text"):
        parse_rules([b"[X] ||| \xff ||| b"], ["r"])


def test_unary_cycles_and_unknown_goals_are_refused():
    with pytest.raises(FormatError, match=r"the unary rule \[.\] -> \[.\] closes a cycle"):
        SynchronousGrammar.from_text("[X] ||| [Y,1] ||| [1]\n[Y] ||| [X,1] ||| [1]\n[X] ||| a ||| b", goal="X")
    with pytest.raises(InvalidInput, match="the goal 'S' is no nonterminal"):
        SynchronousGrammar.from_text("[X] ||| a ||| b")
    with pytest.raises(InvalidInput, match="the grammar has no rules"):
        SynchronousGrammar.from_text("\n\n")


def test_a_feature_without_a_weight_is_named():
    with pytest.raises(InvalidInput, match="the feature 'w' has no weight"):
        SynchronousGrammar.from_text(RULES, glue=GLUE, weights={"Glue": 1.0})


def test_words_no_rule_covers_are_copied_or_refused():
    weights = {"w": 1.0, "Glue": 0.0, "PassThrough": -3.0}
    grammar = SynchronousGrammar.from_text(RULES, glue=GLUE, weights=weights)
    forest = grammar.forest(["zut", "le", "dug", "le"])
    assert translations(forest) == [("zut a cat le", -3.5), ("zut le dug le", -12.0), ("zut the dog le", -10.0)]
    assert {forest.features(y)["PassThrough"] for y in forest.graph.hyperpaths()} == {2.0, 4.0}
    with pytest.raises(Infeasible, match=r"no rule covers word 1 \('zut'\)"):
        grammar.forest(["zut", "le", "dug"], unknown="error")
    with pytest.raises(Infeasible, match="the sentence is empty"):
        grammar.forest([])
    with pytest.raises(InvalidInput, match="expected a list of words"):
        grammar.forest("le dug")
    unweighted = SynchronousGrammar.from_text(RULES, glue=GLUE, weights={"w": 1.0, "Glue": 0.0})
    assert translations(unweighted.forest(["zut"])) == [("zut", 0.0)]


def test_without_glue_rules_long_sentences_have_no_derivation():
    grammar = SynchronousGrammar.from_text("[S] ||| a ||| b\n[S] ||| [S,1] a ||| [1] b", max_span=2)
    assert len(translations(grammar.forest(["a", "a"]))) == 1
    with pytest.raises(Infeasible, match=r"covers all 3 words .* at most 2 words; are glue rules missing"):
        grammar.forest(["a", "a", "a"])
    free = SynchronousGrammar.from_text("[S] ||| a ||| b\n[S] ||| [S,1] a ||| [1] b", max_span=None)
    assert len(translations(free.forest(["a", "a", "a"]))) == 1


def test_weights_are_read_from_json_and_text(tmp_path):
    (tmp_path / "a.json").write_text('{"hiero": {"weights": {"p": 1, "LM": 0.5}}, "other": {}}')
    (tmp_path / "b.json").write_text('{"p": 2.5}')
    (tmp_path / "c").write_text("# tuned\np 0.25\n\nq=-1\n")
    assert read_weights(tmp_path / "a.json") == {"p": 1.0, "LM": 0.5}
    assert read_weights(tmp_path / "b.json") == {"p": 2.5}
    assert read_weights(tmp_path / "c") == {"p": 0.25, "q": -1.0}
    (tmp_path / "d").write_text("p nan\n")
    with pytest.raises(FormatError, match="d:1: p is 'nan'"):
        read_weights(tmp_path / "d")
    (tmp_path / "e.json").write_text('{"p": "x"}')
    with pytest.raises(FormatError, match=r"\['p'\] is 'x'; expected a finite number"):
        read_weights(tmp_path / "e.json")


@pytest.mark.slow
@pytest.mark.compiled
def test_forests_are_those_of_another_decoder():
    from certus.hypergraph import sweeps

    weights = read_weights(shared_data("mt", "weights.json"))
    sentences = shared_data("mt", "test.de").read_text().split("\n")[:4]
    grammar = SynchronousGrammar.read(
        shared_data("mt", "hiero.de-en.gz"),
        glue=shared_data("mt", "hiero.glue.txt"),
        weights=weights,
        source_words={word for s in sentences for word in s.split()},
    )
    for k, sentence in enumerate(sentences):
        theirs = TranslationForest.read(shared_data("mt", "forests", f"test{k:03}.hg.gz")).weighted(weights)
        ours = grammar.forest(sentence.split())
        # theirs has a goal above S, with one edge
        assert (ours.graph.n_vertices + 1, ours.graph.n_edges + 1) == (theirs.graph.n_vertices, theirs.graph.n_edges)
        for question in (sweeps.log_partition, lambda graph, w: sweeps.best(graph, w)[0]):
            assert question(ours.graph, ours.weights) == pytest.approx(question(theirs.graph, theirs.weights), abs=1e-9)
        assert np.isfinite(ours.weights).all()


def test_a_model_from_files_gives_the_problem_of_a_sentence(tmp_path):
    (tmp_path / "rules").write_text("[X] ||| le chien ||| the dog ||| p=-1\n[S] ||| [X,1] ||| [1]\n")
    (tmp_path / "weights").write_text("p 2\nLM 0.5\n")
    (tmp_path / "lm").write_text("\\data\\\nngram 1=4\n\\1-grams:\n-1 <unk>\n0 <s>\n-1 </s>\n-2 dog\n\\end\\\n")
    model = GrammarModel.read(tmp_path / "rules", tmp_path / "lm", tmp_path / "weights")
    problem = model.problem(["le", "chien"])
    result = problem.decode()
    assert problem.words(result.structure) == ["the", "dog"]
    assert result.score == pytest.approx(-2 - 0.5 * 4 * np.log(10))
    with pytest.raises(InvalidInput, match="no weight for LM"):
        GrammarModel.read(tmp_path / "rules", model.lm, {"p": 1.0})
