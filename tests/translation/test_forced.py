"""Forced derivations: the best one that yields given words, or none."""

import numpy as np
from hypothesis import given, settings

from certus import TranslationForest
from certus.translation.forced import forced_derivation
from tests.translation.cases import forests


@settings(max_examples=60)
@given(forests())
def test_finds_the_best_derivation_of_every_string(forest):
    best: dict[tuple[str, ...], float] = {}
    for y in forest.graph.hyperpaths():
        words = tuple(forest.yields(y))
        best[words] = max(best.get(words, -np.inf), forest.score(y))
    for words, score in list(best.items())[:20]:
        edges = forced_derivation(forest, words)
        if score == -np.inf:
            assert edges is None
        else:
            assert forest.yields(edges) == list(words)
            assert forest.score(edges) == score
    assert forced_derivation(forest, ["a"] * 40) is None
    assert forced_derivation(forest, ["never"]) is None


def test_spans_of_the_tail_are_followed():
    forest = TranslationForest.from_text(
        "2 4\n3\na ||| f=1\na a ||| f=1\n||| f=1\n1\n[0] b [0] |||\n".replace("\n|||", "\n |||")
    )
    weighted = forest.weighted({"f": 1.0})
    assert forced_derivation(weighted, ["a", "a", "b"]) == [3, 1, 2]
    assert forced_derivation(weighted, ["b", "a"]) == [3, 2, 0]
