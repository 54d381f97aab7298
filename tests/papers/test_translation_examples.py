"""Worked examples of LR 5: the hypergraph of example 5.1.1 and the run of the simple algorithm in 5.8."""

import numpy as np
import pytest

from certus import ForestTranslation, LanguageModel, SynchronousGrammar, TranslationForest
from certus.io.arpa import parse_arpa
from certus.relax import steps
from certus.translation.leaf_graph import Leaves
from certus.translation.leaf_paths import decode_by_leaves

# Figure 5-2; its vertices 5, 4 and 1 are nodes 0, 1 and 2, <s> and </s> are understood.
FIGURE_5_2 = """3 6
2
the dog ||| w=-4
a cat ||| w=2.5
3
[0] barks loudly ||| w=2
barks [0] ||| w=0.5
barks [0] loudly ||| w=3
1
[1] ||| w=-1
"""
# With the edge 4 -> 5 6 7 alone: the bigrams listed in 5.8 fit only the derivations through it.
FIGURE_5_2_ORDERED = "\n".join(
    line.replace("3 6", "3 4") if line != "3" else "1"
    for line in FIGURE_5_2.splitlines()
    if not line.startswith("barks")
)
RULES = """[S] ||| [X,1] ||| [1] ||| w=-1
[X] ||| abarks [X,1] ||| [1] barks loudly ||| w=2
[X] ||| abarks [X,1] ||| barks [1] ||| w=0.5
[X] ||| abarks [X,1] ||| barks [1] loudly ||| w=3
[X] ||| le dug ||| the dog ||| w=-4
[X] ||| le dug ||| a cat ||| w=2.5
"""
SENTENCES = [
    "the dog barks loudly",
    "a cat barks loudly",
    "barks the dog",
    "barks a cat",
    "barks the dog loudly",
    "barks a cat loudly",
]


def bigram_model(bigrams: dict[str, float]) -> LanguageModel:
    """Natural-log scores of bigrams; every other bigram scores 0."""
    words = ["<unk>", "<s>", "</s>", "the", "dog", "a", "cat", "barks", "loudly"]
    pairs = [f"{value / np.log(10):.17g} {pair}" for pair, value in bigrams.items()]
    lines = ["\\data\\", f"ngram 1={len(words)}", f"ngram 2={len(pairs)}", "\\1-grams:", *(f"0 {w}" for w in words)]
    return LanguageModel(parse_arpa("\n".join([*lines, "\\2-grams:", *pairs, "\\end\\"])))


def test_example_5_1_1_hypergraph() -> None:
    forest = TranslationForest.from_text(FIGURE_5_2).weighted({"w": 1.0})
    derivations = list(forest.graph.hyperpaths())
    assert sorted(" ".join(forest.yields(y)) for y in derivations) == sorted(SENTENCES)
    problem = ForestTranslation(forest, bigram_model({"dog barks": -0.25, "<s> the": -0.5}), 1.0)
    figure_5_3 = next(y for y in derivations if forest.yields(y) == SENTENCES[0].split())
    assert forest.score(figure_5_3) == -1 + 2 - 4
    assert problem.score(np.array(figure_5_3)) == pytest.approx(-3 - 0.5 - 0.25)


def test_example_5_1_2_synchronous_grammar() -> None:
    grammar = SynchronousGrammar.from_text(RULES, weights={"w": 1.0})
    forest = grammar.forest(["abarks", "le", "dug"])
    figure = TranslationForest.from_text(FIGURE_5_2).weighted({"w": 1.0})

    def scored(f):
        return sorted((" ".join(f.yields(y)), f.score(y)) for y in f.graph.hyperpaths())

    assert scored(forest) == scored(figure)
    result = ForestTranslation(forest, bigram_model({"barks a": -7.0}), 1.0).decode()
    assert (forest.yields(result.structure.tolist()), result.score) == (SENTENCES[1].split(), 3.5)


def test_run_5_8_of_the_simple_algorithm() -> None:
    forest = TranslationForest.from_text(FIGURE_5_2_ORDERED).weighted({"w": 1.0})
    problem = ForestTranslation(forest, bigram_model({"cat barks": -7.0}), 1.0)
    leaves = Leaves(forest, problem.lm, 1.0)
    words = ["<s>", "</s>", *(problem.lm.words[w] for w in leaves.words[2:])]
    bigrams = {(words[a], words[b]) for a, b in leaves.pairs()}
    assert bigrams == {
        ("<s>", "the"),
        ("<s>", "a"),
        ("the", "dog"),
        ("a", "cat"),
        ("dog", "barks"),
        ("cat", "barks"),
        ("barks", "loudly"),
        ("loudly", "</s>"),
    }

    # The first round takes "a cat", with "dog" before "barks", and moves the multipliers of both by the step.
    first = decode_by_leaves(problem, "simple", max_iterations=1, step=steps.constant(1.0))
    assert forest.yields(first.structure.tolist()) == SENTENCES[1].split()
    assert first.certificate.bound == pytest.approx(-1 + 2 + 2.5)
    moved = dict(zip(words, first.info["leaf multipliers"][0].tolist(), strict=True))
    assert moved == {**dict.fromkeys(words, 0.0), "dog": 1.0, "cat": -1.0}

    # Constant steps of 1 go back and forth; decreasing ones settle between 3.25 and 3.5, with a certificate.
    constant = decode_by_leaves(problem, "simple", max_iterations=2, step=steps.constant(1.0))
    assert not constant.certificate.exact
    result = decode_by_leaves(problem, "simple", max_iterations=200, step=steps.harmonic(2.0))
    assert result.certificate.exact
    assert forest.yields(result.structure.tolist()) == SENTENCES[0].split()
    assert result.score == pytest.approx(-3.0)
    settled = dict(zip(words, result.info["leaf multipliers"][0].tolist(), strict=True))
    assert 3.25 <= settled["dog"] <= 3.5
    assert settled["dog"] == pytest.approx(-settled["cat"])
    assert problem.decode().score == pytest.approx(-3.0)
