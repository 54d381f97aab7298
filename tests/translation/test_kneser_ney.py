"""Estimated language models: the formulas spelt out, probabilities that sum to one, and a rival's numbers."""

import gzip
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import InvalidInput, LanguageModel
from certus.io.arpa import read_arpa
from certus.translation.kneser_ney import FALLBACK, estimate_kneser_ney
from tests.data import shared_data

texts = st.lists(st.lists(st.sampled_from("abcde"), max_size=6), min_size=1, max_size=12)


def spelt_out(sentences, order, discounts):
    """p(w | h) by the formulas, one n-gram at a time; discounts as estimated."""
    counts = [Counter() for _ in range(order + 1)]
    for sentence in sentences:
        marked = ("<s>", *sentence, "</s>")
        for n in range(1, order + 1):
            counts[n].update(marked[i : i + n] for i in range(len(marked) - n + 1))
    highest = max(n for n in range(1, order + 1) if counts[n])
    adjusted = [Counter() for _ in range(highest + 1)]
    adjusted[highest] = Counter(counts[highest])
    for n in range(1, highest):
        before = defaultdict(set)
        for gram in counts[n + 1]:
            before[gram[1:]].add(gram[0])
        for gram in counts[n]:
            adjusted[n][gram] = counts[n][gram] if gram[0] == "<s>" else len(before[gram])
    del adjusted[1][("<s>",)]
    vocabulary = {word for (word,) in counts[1]} | {"<unk>"}

    def p(gram):
        if not gram:
            return 1.0 / (len(vocabulary) - 1)
        n, context = len(gram), gram[:-1]
        after = [a for g, a in adjusted[n].items() if g[:-1] == context]
        lower = p(gram[1:])
        if not after:
            return lower
        d = [0.0, *discounts[n - 1]]
        own = adjusted[n].get(gram, 0)
        gamma = sum(d[min(a, 3)] for a in after) / sum(after)
        return (own - d[min(own, 3)]) / sum(after) + gamma * lower

    return p, vocabulary, highest


@settings(max_examples=25)
@given(texts, st.integers(1, 3))
def test_probabilities_are_those_of_the_formulas(sentences, order):
    estimate = estimate_kneser_ney(sentences, order)
    lm = LanguageModel(estimate.arpa)
    p, vocabulary, highest = spelt_out(sentences, order, estimate.discounts)
    assert lm.order == highest
    contexts = {()} | {
        ("<s>", *s)[max(0, k - highest + 1) : k] for s in map(tuple, sentences) for k in range(1, len(s) + 2)
    }
    for context in contexts:
        if len(context) >= highest:
            continue
        q = lm.begin_state if context[:1] == ("<s>",) else lm.empty_state
        for word in context[1:] if context[:1] == ("<s>",) else context:
            _, q = lm.advance(q, lm.word_id(word))
        found = {word: np.exp(lm.advance(q, lm.word_id(word))[0]) for word in vocabulary - {"<s>"}}
        assert sum(found.values()) == pytest.approx(1.0)
        for word, value in found.items():
            gram = (*context, word)
            assert value == pytest.approx(p(gram))


def test_small_corpora_take_fixed_discounts():
    estimate = estimate_kneser_ney([["a", "b"], ["a", "c"]], order=2)
    assert estimate.fallen_back == [1, 2]
    assert estimate.discounts == [FALLBACK, FALLBACK]
    with pytest.raises(InvalidInput, match="the discounts of order 1 cannot be estimated"):
        estimate_kneser_ney([["a", "b"]], order=2, fallback=None)


@pytest.mark.parametrize(
    ("sentences", "options", "message"),
    [
        ([], {}, "there are no sentences"),
        ([["a"], ["<s>", "a"]], {}, "sentence 2 holds '<s>'"),
        ([["a"]], {"order": 0}, "order is 0"),
        ([["a"]], {"fallback": (0.5, 1.0, 3.5)}, "fallback is"),
    ],
)
def test_what_cannot_be_used_is_refused(sentences, options, message):
    with pytest.raises(InvalidInput, match=message):
        estimate_kneser_ney(sentences, **options)


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, 3])
def test_estimates_equal_those_of_another_program(order):
    with gzip.open(shared_data("mt", "train.en.gz"), "rt", encoding="utf-8") as lines:
        ours = estimate_kneser_ney((line.split() for line in lines), order)
    theirs = read_arpa(shared_data("mt", f"lm.en.{order}gram.arpa.gz"))
    assert ours.fallen_back == []
    assert ours.arpa.words == theirs.words
    for a, b in zip(ours.arpa.orders, theirs.orders, strict=True):
        i, j = np.lexsort(a.words.T[::-1]), np.lexsort(b.words.T[::-1])
        assert np.array_equal(a.words[i], b.words[j])
        assert np.abs(a.log_probability[i] - b.log_probability[j]).max() < 1e-5
        assert np.abs(a.back_off[i] - b.back_off[j]).max() < 1e-5
