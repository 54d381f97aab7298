"""Language models: scores are those of the definition of back-off, and states forget what does not matter."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from certus import InvalidInput, LanguageModel
from certus.io.arpa import Arpa, Ngrams
from tests.data import shared_data
from tests.translation.cases import WORDS, arpas, log_probability

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # of hashes, when kernels are interpreted


@settings(max_examples=40)
@given(arpas())
def test_scores_are_those_of_the_definition(arpa):
    lm, p = LanguageModel(arpa), log_probability(arpa)
    a, b, c = 3, 4, 5
    sentences = [s for n in range(4) for s in itertools.product((0, a, b, c), repeat=n)]
    by_kernel = lm.log_probabilities([[WORDS[w] for w in s] for s in sentences])
    for sentence, found in zip(sentences, by_kernel, strict=True):
        history = (lm.begin,)
        expected = []
        for word in (*sentence, lm.end):
            expected.append(p(word, history))
            history += (word,)
        assert found == pytest.approx(expected, abs=1e-12)
        assert lm.score([WORDS[w] for w in sentence]) == pytest.approx(sum(expected), abs=1e-12)
    assert lm.score(["a", "x", "b"], begin=False, end=False) == pytest.approx(
        p(a, ()) + p(lm.unknown, (a,)) + p(b, (a, lm.unknown)), abs=1e-12
    )


@settings(max_examples=40)
@given(arpas())
def test_states_are_the_contexts_that_matter(arpa):
    lm = LanguageModel(arpa)
    arrays = lm.arrays
    contexts = [tuple(lm.context(q)) for q in range(lm.n_states)]
    assert contexts[lm.empty_state] == ()
    assert len(set(contexts)) == len(contexts)
    assert all(len(words) < lm.order or lm.order == 1 for words in contexts)
    for q, words in enumerate(contexts):
        assert arrays.state_length[q] == len(words)
        if q:
            assert contexts[arrays.state_suffix[q]] == words[1:]
            assert contexts[arrays.state_parent[q]] == words[:-1]
        assert arrays.state_extendable[q] == any(t[1:] == words for t in contexts if t)
    ids = {words: q for q, words in enumerate(contexts)}
    for words, w in itertools.product(contexts, range(len(WORDS))):
        _, after = lm.advance(ids[words], w)
        longest = next((*words, WORDS[w])[k:] for k in range(len(words) + 2) if (*words, WORDS[w])[k:] in ids)
        assert contexts[after] == longest


def test_contexts_without_consequence_share_a_state():
    """ "a b" has no n-gram after it and costs nothing to leave: it is as good as "b"."""
    words = ["<unk>", "<s>", "</s>", "a", "b"]
    unigrams = Ngrams(np.arange(5, dtype=np.int32)[:, None], np.full(5, -1.0), np.array([0, 0, 0, -0.5, -0.5]))
    bigrams = Ngrams(np.array([[3, 4], [4, 4]], dtype=np.int32), np.array([-0.5, -0.5]), np.array([0.0, -0.25]))
    trigrams = Ngrams(np.array([[4, 4, 3]], dtype=np.int32), np.array([-0.1]), np.zeros(1))
    lm = LanguageModel(Arpa(words, [unigrams, bigrams, trigrams]))
    after = {text: _state(lm, text) for text in ("b", "a b", "b b", "a", "</s>")}
    assert after["a b"] == after["b"] != after["b b"]
    assert after["</s>"] == lm.empty_state
    assert lm.context(after["b b"]) == ["b", "b"]


def _state(lm: LanguageModel, text: str) -> int:
    q = lm.empty_state
    for word in text.split():
        q = lm.advance(q, lm.word_id(word))[1]
    return q


def test_a_string_is_not_a_list_of_words():
    unigrams = Ngrams(np.arange(3, dtype=np.int32)[:, None], np.full(3, -1.0), np.zeros(3))
    lm = LanguageModel(Arpa(["<unk>", "<s>", "</s>"], [unigrams]))
    assert lm.score([]) == pytest.approx(-np.log(10.0))
    with pytest.raises(InvalidInput, match="expected a list of words"):
        lm.score("a b")


@pytest.mark.slow
@pytest.mark.compiled
def test_scores_agree_with_another_decoder():
    import json

    lm = LanguageModel.read(shared_data("mt", "lm.en.3gram.arpa.gz"))
    peer = json.loads(shared_data("mt", "peers", "cdec.3gram.cube50.json").read_text())
    for found in peer["sentences"]:
        expected = found["features"]["LanguageModel"] * np.log(10.0)
        assert lm.score(found["translation"].split()) == pytest.approx(expected, abs=1e-3)
