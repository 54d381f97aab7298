"""The hidden Markov model: probabilities that sum to one, unknown words, files."""

import itertools
import json

import numpy as np
import pytest

from certus import HMM, FormatError, Infeasible, InvalidInput
from certus.io.conllu import read_conllu
from tests.data import shared_data

CORPUS = [
    [("The", "D"), ("dog", "N"), ("walks", "V"), ("in", "P"), ("the", "D"), ("park", "N")],
    [("the", "D"), ("man", "N"), ("walks", "V"), ("the", "D"), ("dog", "N")],
    [("a", "D"), ("man", "N"), ("sleeps", "V")],
    [("walks", "N"), ("tire", "V"), ("the", "D"), ("dog", "N")],
    [("Smith", "N"), ("walks", "V")],
]


@pytest.fixture(scope="module")
def model():
    return HMM.estimate(CORPUS)


def test_transitions_are_distributions_over_tags_and_the_end(model):
    T = len(model.tags)
    probability = np.exp(model.transitions)
    assert model.tags == ("D", "N", "P", "V")
    assert probability.shape == (T + 1, T + 1, T + 1)
    np.testing.assert_allclose(probability.sum(axis=2), 1.0)
    assert (probability > 0).all()
    d, n, end = 0, 1, T
    assert probability[end, end].argmax() == d
    assert probability[end, d].argmax() == n


def test_emissions_of_the_lexicon_leave_room_for_unknown_words(model):
    for t in range(len(model.tags)):
        mass = sum(np.exp(model.emission(word)[t]) for word in model.lexicon)
        assert 0 < mass < 1.2  # smoothing of rare words takes from one tag and gives to another


def test_frequent_words_take_only_the_tags_seen(model):
    assert set(np.flatnonzero(model.emission("dog") > -np.inf)) == {model.tags.index("N")}
    assert (model.emission("sleeps") > -np.inf).all()
    assert (model.emission("xyzzy") > -np.inf).all()


def test_a_capital_at_the_start_of_a_sentence_may_be_due_to_its_place(model):
    assert model.emission("Dog", first=True).argmax() == model.tags.index("N")
    assert set(np.flatnonzero(model.emission("Dog", first=True) > -np.inf)) == {model.tags.index("N")}
    assert (model.emission("Dog") > -np.inf).all()


def test_looks_of_unknown_words():
    corpus = [[("was", "V"), (stem + "ing", "G"), ("on", "P"), (str(k), "C")] for k, stem in enumerate("abcdefgh")]
    model = HMM.estimate(corpus)
    assert model.tags[model.emission("running").argmax()] == "G"
    assert model.tags[model.emission("1999").argmax()] == "C"


def test_tagging_is_the_joint_log_probability(model):
    words = ["the", "dog", "walks"]
    problem = model.tagging(words)
    assert problem.tags == model.tags
    end = len(model.tags)
    best, best_tags = -np.inf, None
    for y in itertools.product(range(end), repeat=3):
        padded = (end, end, *y, end)
        total = sum(model.transitions[padded[i : i + 3]] for i in range(4))
        total += sum(model.emission(word, first=i == 0)[t] for i, (word, t) in enumerate(zip(words, y, strict=True)))
        if total > -np.inf:
            assert problem.score(y) == pytest.approx(total)
        if total > best:
            best, best_tags = total, [model.tags[t] for t in y]
    assert problem.decode().score == pytest.approx(best)
    assert model.tag(words) == best_tags == ["D", "N", "V"]


def test_any_words_have_tags(model):
    assert model.tag([]) == []
    for words in (["xyzzy"], ["Plugh"] * 200, [""], ["§", "-", "42", "ÀÉÎ", "日本語"]):
        assert len(model.tag(words)) == len(words)
    with pytest.raises(InvalidInput, match="split it first"):
        model.tag("the dog")


def test_tags_may_be_given(model):
    given = HMM.estimate(CORPUS, tags=("V", "X", "N", "D", "P"))
    assert given.tags == ("V", "X", "N", "D", "P")
    assert given.tag(["the", "dog", "xyzzy"]) == model.tag(["the", "dog", "xyzzy"])
    problem = given.tagging(["the", "xyzzy"])
    with pytest.raises(Infeasible, match="position 1 has no tag"):
        problem.with_fixed("tags", (1, 1), 1).decode()
    with pytest.raises(InvalidInput, match="tag 'P', which is not among the 3"):
        HMM.estimate(CORPUS, tags=("D", "N", "V"))


@pytest.mark.parametrize("corpus", [[], [[]], [[("a", "A", "x")]], [["ab"]], [[("a", 1)]]])
def test_what_is_no_corpus(corpus):
    with pytest.raises(InvalidInput, match=r"no words|expected a pair"):
        HMM.estimate(corpus)


def test_estimation_does_not_depend_on_the_order_of_sentences(model):
    again = HMM.estimate(reversed(CORPUS))
    np.testing.assert_array_equal(again.transitions, model.transitions)
    for word in [*model.lexicon, "xyzzy", "Walking"]:
        np.testing.assert_array_equal(again.emission(word), model.emission(word))


class TestFiles:
    def test_round_trip(self, model, tmp_path):
        path = tmp_path / "model.json"
        model.save(path)
        again = HMM.load(path)
        assert again.tags == model.tags
        np.testing.assert_array_equal(again.transitions, model.transitions)
        for word in [*model.lexicon, "xyzzy", "Walking"]:
            np.testing.assert_array_equal(again.emission(word), model.emission(word))
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
        assert {entry.name for entry in tmp_path.iterdir()} == {"model.json", "again.json"}

    def test_every_truncation_is_refused(self, model, tmp_path):
        model.save(tmp_path / "whole.json")
        text = (tmp_path / "whole.json").read_text()
        for size in range(0, len(text) - 2, 7):
            (tmp_path / "cut.json").write_text(text[:size])
            with pytest.raises(FormatError, match=r"cut\.json"):
                HMM.load(tmp_path / "cut.json")

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("format", "other", "not a certus-hmm"),
            ("version", 2, "version 2"),
            ("tags", [], "expected 1 or more items"),
            ("tags", ["D", 1, "P", "V"], r"tags\[1\] is 1; expected a string"),
            ("tags", ["D", "D", "P", "V"], "'D', which comes a second time"),
            ("trigrams", None, "trigrams is null; expected a list"),
            ("trigrams", [[0, 1, float("nan")]], r"trigrams\[0\] is a list of 3"),
            ("trigrams", [[0, 0, 0, float("nan")]], r"trigrams\[0\]\[3\] is nan"),
            ("trigrams", [[0, 0, 5, 1]], "tags 0..4"),
            ("trigrams", [[0, 0, 0, -1]], r"trigrams\[0\]\[3\] is -1"),
            ("trigrams", [[0, 0, 0, 1]], "as many words of each tag"),
            ("lexicon", [], "expected an object"),
            ("lexicon", {"a": 3}, r"lexicon\['a'\] is 3; expected a list"),
            ("lexicon", {}, "as many words of each tag"),
        ],
    )
    def test_damage_is_named(self, model, tmp_path, key, value, message):
        model.save(tmp_path / "model.json")
        data = json.loads((tmp_path / "model.json").read_text())
        data[key] = value
        (tmp_path / "model.json").write_text(json.dumps(data))
        with pytest.raises(FormatError, match=message):
            HMM.load(tmp_path / "model.json")

    def test_foreign_files(self, tmp_path):
        for name, data in (("list.json", b"[1, 2]"), ("binary.json", b"\xff\xfe\x00")):
            (tmp_path / name).write_bytes(data)
            with pytest.raises(FormatError, match=name):
                HMM.load(tmp_path / name)
        with pytest.raises(FormatError, match="cannot be read"):
            HMM.load(tmp_path / "none.json")


@pytest.mark.compiled
def test_accuracy_on_a_treebank():
    train = read_conllu(shared_data("ud", "en_ewt", "dev.conllu.gz"))
    model = HMM.estimate(sentence.tagged("upos") for sentence in train)
    right = total = 0
    for k, sentence in enumerate(read_conllu(shared_data("ud", "en_ewt", "test.conllu.gz"))):
        if k == 500:
            break
        pairs = sentence.tagged("upos")
        found = model.tag(sentence.words)
        right += sum(tag == gold for tag, (_, gold) in zip(found, pairs, strict=True))
        total += len(pairs)
    assert right / total > 0.85  # a tenth of the treebank to learn from
