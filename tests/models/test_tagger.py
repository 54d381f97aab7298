"""The trained tagger: learning, exact search, the same model after a break, damaged files."""

from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from certus import verify
from certus.errors import FormatError, InvalidInput, NotSupported
from certus.features.brown import Clusters
from certus.features.tagging import Lexicon, WordEncoder
from certus.learn.learners import online
from certus.learn.weights import Packed
from certus.models import checkpoints
from certus.models.files import save_model
from certus.models.loop import Epoch
from certus.models.tagger import CHECKPOINT, KIND, VERSION, Tagger
from certus.text import Sentence, Token
from tests.models.contents import contents

NAMES = {"D": "DT", "N": "NN", "V": "VB", "P": "NNP"}


def sentence(text: str) -> Sentence:
    pairs = [word.rsplit("/", 1) for word in text.split()]
    return Sentence([Token(i, w, upos=t, xpos=NAMES[t], feats=f"K={t}") for i, (w, t) in enumerate(pairs, start=1)])


CORPUS = [
    sentence(text)
    for text in (
        "the/D dog/N barks/V",
        "the/D walk/N ends/V",
        "dogs/N walk/V",
        "a/D cat/N walks/V",
        "the/D cats/N walk/V",
        "a/D walk/N helps/V the/D dog/N",
        "Mary/P walks/V the/D dog/N",
        "Peter/P sees/V a/D cat/N",
        "cats/N see/V Mary/P",
        "the/D dogs/N see/V a/D walk/N",
    )
] * 3
DEV = [sentence("the/D walk/N helps/V Mary/P"), sentence("dogs/N walk/V the/D cats/N"), Sentence([])]
PATHS = {"dog": "0110101", "barks": "10"}
CLUSTERS = {"dog": "00", "cat": "00", "walk": "01", "Mary": "10", "Peter": "10"}


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger.train(CORPUS, DEV, column=["upos", "xpos+feats"], clusters=CLUSTERS, epochs=4, bits=12)


def weights(tagger: Tagger) -> list[bytes]:
    return [model.weight.tobytes() for model in tagger.models]


def test_learns_words_and_context(tagger):
    for gold, found in zip(DEV, tagger.tag([Sentence.from_words(s.words) for s in DEV]), strict=True):
        assert [(t.upos, t.xpos, t.feats) for t in found] == [(t.upos, t.xpos, t.feats) for t in gold]
    assert tagger.columns == ("upos", "xpos", "feats")


def test_leaves_the_rest_of_a_sentence_alone(tagger):
    given = Sentence(
        [Token(1, "Peter", head=2, misc="x"), Token(2, "barks", lemma="bark", head=0)], ["# a"], [(0, "l")]
    )
    before = str(given)
    (found,) = tagger.tag([given])
    assert str(given) == before
    assert found.comments == ["# a"]
    assert found.others == [(0, "l")]
    assert [(t.head, t.misc, t.lemma) for t in found] == [(2, "x", "_"), (0, "_", "bark")]
    assert [t.upos for t in found] == ["P", "V"]


def test_batches_change_nothing(tagger, monkeypatch):
    whole = tagger.tag(CORPUS)
    monkeypatch.setattr("certus.models.tagger.BATCH", 7)
    assert tagger.tag(CORPUS) == whole
    assert tagger.tag([]) == []


@pytest.mark.parametrize("text", ["", "dog", "the unknown walks Mary", "walk walk walk walk", "Zed saw cats . the end"])
def test_tags_are_the_optimum_of_the_problem(tagger, text):
    words = text.split()
    for column, model in zip(("upos", "xpos+feats"), tagger.models, strict=True):
        problem = tagger.problem(words, column)
        result = problem.decode()
        verify(problem, result)
        numbers = [model.tags.index(tag) for tag in model.tag([words])[0]]
        assert problem.score(np.array(numbers, dtype=np.int64)) == result.score
        every = [problem.score(y) for y in problem.all_structures()]
        assert max(every) == result.score
        assert model.decode([words]) == ([[model.tags[t] for t in numbers]], [result.score])
    ((_, certificate),) = tagger.results([Sentence.from_words(words)])
    assert certificate.exact
    assert certificate.score == tagger.problem(words, "upos").decode().score


def test_problem_of_another_column(tagger):
    with pytest.raises(InvalidInput, match=r"xpos.*this tagger has upos"):
        tagger.problem(["dog"], "xpos")


def test_problem_of_too_many_tags(tagger):
    model = replace(tagger.models[0], tags=tuple(map(str, range(300))))
    with pytest.raises(NotSupported, match="300 tags"):
        model.problem(["dog"])


@pytest.mark.parametrize("learner", online())
def test_every_online_learner_learns_tags(learner):
    seen: list[Epoch] = []
    tagger = Tagger.train(CORPUS, learner=learner, epochs=8, bits=12, progress=seen.append)
    assert [t.upos for s in tagger.tag(DEV) for t in s] == [t.upos for s in DEV for t in s]
    assert seen[-1].errors < seen[0].errors
    assert all((epoch.loss is None) == (learner == "perceptron") for epoch in seen)


def test_learners_of_trees_alone_are_refused():
    with pytest.raises(NotSupported, match="relaxed learns trees only; use one of mira, perceptron, adagrad"):
        Tagger.train(CORPUS, learner="relaxed")


def test_same_seed_same_model_other_seed_other_model():
    first, second, third = (Tagger.train(CORPUS, epochs=2, bits=10, seed=seed) for seed in (1, 1, 2))
    assert weights(first) == weights(second)
    assert weights(first) != weights(third)


class Killed(Exception):
    pass


def test_several_runs_are_the_mean_of_their_seeds(monkeypatch):
    packed, of = [], Packed.of

    def keep(weight):
        packed.append(weight)
        return of(weight)

    monkeypatch.setattr("certus.models.tagger.Packed.of", keep)
    for seed, runs in ((4, 1), (5, 1), (6, 1), (4, 3)):
        Tagger.train(CORPUS, column=["upos", "xpos"], epochs=2, bits=12, seed=seed, runs=runs)
    *alone, upos, xpos = packed
    assert np.allclose(np.mean(alone[0::2], axis=0), upos, atol=1e-6)
    assert np.allclose(np.mean(alone[1::2], axis=0), xpos, atol=1e-6)
    assert not np.array_equal(alone[0], upos)


@pytest.mark.parametrize("after", [1, 3, 4, 5, 7])
def test_resumed_training_ends_with_the_same_model(tmp_path, after):
    options = {"column": ["upos", "xpos"], "epochs": 4, "bits": 10, "checkpoint": tmp_path / "state", "workers": 1}
    whole_run: list[Epoch] = []
    whole = Tagger.train(CORPUS, DEV, progress=whole_run.append, **{**options, "checkpoint": None})
    seen: list[Epoch] = []

    def stop(epoch: Epoch) -> None:
        seen.append(epoch)
        if len(seen) == after:
            raise Killed

    with pytest.raises(Killed):
        Tagger.train(CORPUS, DEV, progress=stop, **options)
    resumed = Tagger.train(CORPUS, DEV, resume=True, progress=seen.append, **options)
    assert weights(resumed) == weights(whole)
    assert seen == whole_run
    again = Tagger.train(CORPUS, DEV, resume=True, progress=seen.append, **options)
    assert weights(again) == weights(whole)


def test_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "state"
    Tagger.train(CORPUS, epochs=1, bits=10, checkpoint=path)
    with pytest.raises(FormatError, match="other training data or settings"):
        Tagger.train(CORPUS[1:], epochs=1, bits=10, checkpoint=path, resume=True)
    with pytest.raises(FormatError, match="other training data or settings"):
        Tagger.train(CORPUS, epochs=1, bits=10, checkpoint=path, resume=True, seed=3)


def test_stops_when_dev_gets_no_better():
    seen: list[Epoch] = []
    Tagger.train(CORPUS, DEV, epochs=40, bits=12, progress=seen.append)
    best = max(range(len(seen)), key=lambda k: (seen[k].score, -k))
    assert len(seen) == best + 1 + 4


def test_saved_tagger_is_the_same(tagger, tmp_path):
    path = tmp_path / "tagger.safetensors"
    tagger.save(path)
    loaded = Tagger.load(path)
    assert loaded.tag(CORPUS) == tagger.tag(CORPUS)
    assert weights(loaded) == weights(tagger)
    words = ["dog", "Dog", "unheard", "Mary"]
    for old, new in zip(tagger.models, loaded.models, strict=True):
        assert [old.encoder.attributes(w) for w in words] == [new.encoder.attributes(w) for w in words]


def test_truncated_and_foreign_files(tagger, tmp_path):
    path = tmp_path / "tagger.safetensors"
    tagger.save(path)
    data = path.read_bytes()
    for cut in (0, 5, 100, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(FormatError, match="cut short"):
            Tagger.load(path)
    path.write_text("tagger\n")
    with pytest.raises(FormatError):
        Tagger.load(path)
    with pytest.raises(FormatError, match="cannot be read"):
        Tagger.load(tmp_path / "none")
    save_model(path, "parser", 1, {}, {"a": np.zeros(1)})
    with pytest.raises(FormatError, match="expected a tagger"):
        Tagger.load(path)
    save_model(path, KIND, VERSION + 1, {}, {"a": np.zeros(1)})
    with pytest.raises(FormatError, match="version"):
        Tagger.load(path)


def damage_arrays(**change):
    return lambda config, arrays: arrays.update(change)


def at_work(**change):
    return lambda config, arrays: arrays.update({f"{name}.upos": array for name, array in change.items()})


def damage_model(**change):
    return lambda config, arrays: config["models"][0].update(change)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_arrays(**{"weight.0": np.array([np.nan])}), "weight.0 is float64"),
        (damage_arrays(**{"weight.0": np.zeros(9, dtype=np.int8)}), "weight.0 is int8"),
        (damage_arrays(known=np.zeros(2, dtype=np.uint8)), "known is uint8"),
        (damage_arrays(words=np.array([255], dtype=np.uint8)), "words is not UTF-8 text"),
        (lambda config, arrays: arrays.pop("set.1"), "set.1 is missing"),
        (lambda config, arrays: config.pop("paths"), "paths is missing"),
        (lambda config, arrays: config.update(paths=[]), r"cluster\[\d+\] is \d+; expected 0..0"),
        (lambda config, arrays: config.update(models=[]), "models is a list of 0"),
        (damage_model(column="head"), "'head'"),
        (damage_model(bits=99), "bits is 99"),
        (damage_model(tags=["A", "A", "B", "C"]), "each once"),
        (damage_model(tags=["A\tB", "B", "C", "D"]), "1 names between tabs"),
        (damage_model(sets=[[99]] * 50), r"models\[0\].sets\[0\]\[0\] is 99; expected a whole number 0..3"),
        (
            damage_model(sets=[[0, 0, 0, 0, 0, 0, 0, 0]]),
            r"sets\[0\] is a list of 8; expected 1 to 64 numbers",
        ),
        (damage_model(sets=[[]]), "expected 1 to 64 numbers"),
        (damage_model(sets=[[0], [0]]), "sets of tags, each once"),
        (damage_model(tags=["A\nB", "B", "C", "D"]), "without tabs and ends of lines"),
        (damage_model(column="upos+upos"), "each in one model only"),
        (lambda config, arrays: config["models"].append(config["models"][0]), "each in one model only"),
        (lambda config, arrays: config.update(templates="0" * 32), "trained with others"),
        (damage_arrays(words=np.frombuffer(b"a\na", dtype=np.uint8)), "a word twice"),
    ],
)
def test_damaged_files(tagger, tmp_path, damage, message):
    path = tmp_path / "tagger.safetensors"
    tagger.save(path)
    config, arrays = contents(path)
    damage(config, arrays)
    save_model(path, KIND, VERSION, config, arrays)
    with pytest.raises(FormatError, match=message) as caught:
        Tagger.load(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": "lemma"}, "expected upos, xpos or feats"),
        ({"column": ["upos", "upos+xpos"]}, "each once"),
        ({"column": []}, "column is"),
        ({"epochs": 0}, "epochs is 0"),
        ({"bits": 3}, "bits is 3"),
        ({"runs": 0}, "runs is 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InvalidInput, match=message):
        Tagger.train(CORPUS, **options)


def test_corpus_without_tags():
    with pytest.raises(InvalidInput, match="no word to learn from"):
        Tagger.train([Sentence([])])
    with pytest.raises(InvalidInput, match='"_" in column xpos'):
        Tagger.train([Sentence.from_words(["a", "b"])], column="xpos")


def test_frequent_words_take_only_their_tags():
    lexicon = Lexicon.of([[("a", 0), ("a", 2), ("a", 2), ("b", 1), ("c", 1), ("c", 1)]], known=2, sure=3)
    assert lexicon.known == {"a", "c"}
    assert lexicon.sets == {"a": (0, 2)}
    encoder = WordEncoder(lexicon)
    words = encoder.encode([["a", "b"], [], ["a"]])
    assert words.rows.tolist() == [0, 0, 2, 3, 1, 1, 0, 0, 1, 1, 0, 0, 2, 1, 1]
    assert words.first.tolist() == [2, 8, 12]
    assert words.length.tolist() == [2, 0, 1]
    assert words.set_of[2:4].tolist() == [1, 0]
    assert encoder.allowed[encoder.set_ptr[1] : encoder.set_ptr[2]].tolist() == [0, 2]


def test_attributes_of_a_word():
    encoder = WordEncoder(Lexicon(frozenset({"Re-use"}), {"re-use": (3,)}, Clusters({"re-use": "0110101"}, {}).paths))
    named = encoder.attributes("Re-use")
    assert named["w"] == "Re-use"
    assert (named["p2"], named["s3"]) == ("re", "use")
    assert (named["h"], named["k"]) == ("Xx-x", "Xx-+")
    assert (named["a"], named["c"]) == ("0110", "0110101")
    assert named["m"] == "-1,3"
    other = encoder.attributes("other")
    assert (other["w"], other["l"]) == ("<rare>", "<rare>")


@pytest.mark.parametrize(("clusters", "digest"), [({}, "509b1a0e724beb2d"), (PATHS, "ad05c591ca9e6713")])
def test_features_are_those_that_saved_taggers_were_trained_with(clusters, digest):
    encoder = WordEncoder(Lexicon(frozenset({"the", "Dog"}), {"the": (0,), "dog": (1, 2)}, clusters))
    words = encoder.encode([["The", "dog", "Dog", "barks", "McDonald's-2", "."]])
    lines = encoder.templates.arrays
    _, offset, column = lines.component.T.copy()
    code = blake2b(digest_size=8)
    for array in (lines.ptr, offset, column, lines.seed, words.value[words.rows]):
        code.update(array.tobytes())
    assert code.hexdigest() == digest


def test_memory_of_words_is_emptied(tagger, monkeypatch):
    monkeypatch.setattr("certus.features.encode.MOST_ROWS", 4)
    whole = tagger.tag(CORPUS[:4])
    assert tagger.tag(CORPUS[:4]) == whole


def test_path_may_be_a_string(tagger, tmp_path):
    path = str(Path(tmp_path) / "t")
    tagger.save(path)
    assert repr(Tagger.load(path)) == "Tagger(upos: 4 tags, xpos+feats: 4 tags)"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda config, arrays: config["stages"].update(feats={}), "stages is 'feats'; expected one of 'upos'"),
        (lambda config, arrays: config["stages"]["upos"].update(epoch=-1), "epoch is -1; expected a whole number 1..2"),
        (lambda config, arrays: config["stages"]["upos"].update(score="good"), "score is 'good'"),
        (lambda config, arrays: config["stages"]["upos"].pop("best_epoch"), "best_epoch is missing"),
        (at_work(value=np.zeros(3, dtype=np.float32)), r"value.upos is float32\[3\]; expected float32\[261\]"),
        (at_work(total=np.full(261, np.nan)), "total.upos holds a number that is not finite"),
        (at_work(squares=np.full(261, -1, dtype=np.float32)), "squares.upos holds a number below 0"),
        (lambda config, arrays: arrays.pop("done.upos"), "the array done.upos is missing"),
    ],
)
def test_damaged_checkpoints(tmp_path, damage, message):
    path = tmp_path / "checkpoint"
    options = {"column": "upos", "epochs": 2, "bits": 8, "checkpoint": path}

    def stop(epoch):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tagger.train(CORPUS, CORPUS, **options, progress=stop)
    config, arrays = contents(path)
    damage(config, arrays)
    save_model(path, CHECKPOINT, checkpoints.VERSION, config, arrays)
    with pytest.raises(FormatError, match=message):
        Tagger.train(CORPUS, CORPUS, **options, resume=True)
