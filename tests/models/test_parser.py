"""Trained parsers: what they learn, that training is repeatable and can be broken off, and their files."""

import zlib
from dataclasses import replace

import numpy as np
import pytest

from certus.errors import FormatError, InvalidInput, NotSupported
from certus.features import templates
from certus.learn.learners import LEARNERS, online
from certus.models import checkpoints, training
from certus.models.files import save_model
from certus.models.parser import VERSION, Parser, Settings
from certus.models.training import train_parser
from certus.text import Sentence, Token
from tests.models.contents import contents
from tests.oracles.trees import is_projective, is_tree

pytestmark = pytest.mark.compiled  # trains parsers

# Filters this wide leave the trees something to learn.
SMALL = Settings(
    order=1, epochs=4, label_epochs=2, bits=14, label_bits=14, first_width=50.0, second_width=50.0, max_heads=9
)
CLUSTERS = {"dog": "00", "cat": "00", "sees": "10", "likes": "10", "the": "01", "old": "11"}


def treebank(size, seed):
    """Sentences of a small grammar: determiners and adjectives hang from the next noun, nouns from the verb."""
    rng = np.random.default_rng(seed)
    sentences = []
    for _ in range(size):
        words, heads, labels = [], [], []

        def phrase(label, words=words, heads=heads, labels=labels):
            start = len(words)
            modifiers = ["the"] * bool(rng.integers(2)) + ["old"] * int(rng.integers(2))
            noun = start + len(modifiers) + 1
            for word in modifiers:
                words.append((word, "DET" if word == "the" else "ADJ"))
                heads.append(noun)
                labels.append("det" if word == "the" else "amod")
            words.append((("dog", "cat")[rng.integers(2)], "NOUN"))
            heads.append(None)
            labels.append(label)

        phrase("nsubj")
        verb = len(words) + 1
        words.append((("sees", "likes")[rng.integers(2)], "VERB"))
        heads.append(0)
        labels.append("root")
        phrase("obj")
        if rng.integers(2):  # an adverb: of the verb after "sees", of the noun after "likes"
            heads.append(verb if words[verb - 1][0] == "sees" else len(words))
            words.append(("too", "ADV"))
            labels.append("advmod")
        tokens = [
            Token(i, word, word, tag, head=verb if head is None else head, deprel=label)
            for i, ((word, tag), head, label) in enumerate(zip(words, heads, labels, strict=True), 1)
        ]
        sentences.append(Sentence(tokens, comments=["# kept = yes"]))
    return sentences


def packed(text):
    return np.frombuffer(zlib.compress(text), dtype=np.uint8)


def bare(sentences):
    return [replace(s, tokens=[replace(t, head=None, deprel="_") for t in s.tokens]) for s in sentences]


@pytest.mark.parametrize(
    ("order", "projective", "trisiblings", "clusters"),
    [
        (1, True, False, None),
        (1, False, False, None),
        (2, True, False, None),
        (3, True, False, CLUSTERS),
        (3, True, True, None),
        (3, False, True, None),
    ],
)
def test_a_parser_learns_a_small_grammar(order, projective, trisiblings, clusters):
    settings = replace(SMALL, order=order, projective=projective, trisiblings=trisiblings)
    parser = train_parser(treebank(60, 1), treebank(20, 2), settings=settings, clusters=clusters)
    gold = treebank(30, 3)
    found = list(parser.parse(iter(bare(gold))))
    assert [str(s) for s in found] == [str(s) for s in gold]
    assert parser.accuracy(gold) == 1.0


def test_every_answer_is_a_tree_whatever_the_words():
    parser = train_parser(treebank(40, 1), settings=replace(SMALL, order=3))
    rng = np.random.default_rng(0)
    tags = ["NOUN", "VERB", "DET", "X"]
    odd = [
        Sentence([Token(i, f"w{rng.integers(99)}", upos=tags[rng.integers(4)]) for i in range(1, n + 1)])
        for n in (0, 1, 2, 3, 30, 0, 7)
    ]
    for sentence in parser.parse(odd):
        heads = sentence.heads.tolist()
        assert is_tree(heads)
        assert is_projective(heads)


def test_training_is_repeatable():
    a, b = (train_parser(treebank(20, 1), settings=replace(SMALL, order=2)) for _ in range(2))
    assert np.array_equal(a.weight.value, b.weight.value)
    assert a.weight.value.any()
    c = train_parser(treebank(20, 1), settings=replace(SMALL, order=2, seed=2))
    assert not np.array_equal(a.weight.value, c.weight.value)


@pytest.mark.parametrize("stop", [2, 18, 37])
def test_a_training_that_was_killed_ends_with_the_same_parser(tmp_path, stop):
    data, dev = treebank(15, 1), treebank(5, 2)
    settings = replace(SMALL, order=2, patience=9)
    whole = train_parser(data, dev, settings=settings)
    epochs = []

    class Killed(Exception):
        pass

    def until(epoch):
        epochs.append(epoch)
        if len(epochs) == stop:
            raise Killed

    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(Killed):
        train_parser(data, dev, settings=settings, progress=until, checkpoint=checkpoint)
    assert checkpoint.exists()
    resumed = train_parser(data, dev, settings=settings, progress=until, checkpoint=checkpoint, resume=True)
    assert len(epochs) == len(set(epochs)) == 3 + 4 * 3 + 4 * 2 + 4 * 3 + 4  # folds and the whole; four runs of labels
    assert checkpoint.exists(), "until the parser is saved, it is all there is"
    assert np.array_equal(resumed.weight.value, whole.weight.value)
    assert np.array_equal(resumed.labeller.weight.value, whole.labeller.weight.value)
    assert np.array_equal(resumed.cascade.linear[1].weight.value, whole.cascade.linear[1].weight.value)


def test_resuming_something_else_is_refused(tmp_path):
    def stop(epoch):
        raise KeyboardInterrupt

    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        train_parser(treebank(10, 1), settings=SMALL, progress=stop, checkpoint=checkpoint)
    with pytest.raises(FormatError, match="other training data or settings"):
        train_parser(treebank(10, 2), settings=SMALL, checkpoint=checkpoint, resume=True)


def test_a_saved_parser_parses_the_same(tmp_path):
    parser = train_parser(treebank(40, 1), settings=replace(SMALL, order=3), clusters=CLUSTERS)
    parser.save(tmp_path / "parser")
    again = Parser.load(tmp_path / "parser")
    assert again.settings == parser.settings
    gold = treebank(30, 3)
    assert [str(s) for s in again.parse(bare(gold))] == [str(s) for s in parser.parse(bare(gold))]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("parser") / "parser"
    train_parser(treebank(10, 1), settings=SMALL).save(path)
    return path


def test_truncated_and_foreign_files(saved, tmp_path):
    config, arrays = contents(saved)
    path = tmp_path / "parser"
    data = saved.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match="cut short"):
        Parser.load(path)
    with pytest.raises(FormatError, match=r"cannot be read|not a model file"):
        Parser.load(tmp_path / "missing")
    save_model(path, "parser", 99, config, arrays)
    with pytest.raises(FormatError, match="version 99"):
        Parser.load(path)
    save_model(path, "tagger", 1, config, arrays)
    with pytest.raises(FormatError, match="holds 'tagger'"):
        Parser.load(path)


def settings(**change):
    return lambda config, arrays: config["settings"].update(change)


def array(name, values):
    return lambda config, arrays: arrays.update({name: values})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (settings(max_heads=0), "settings: max_heads is 0; expected a whole number 1..1000000"),
        (settings(max_heads=-3), "max_heads is -3"),
        (settings(max_heads=2**70), "max_heads is a whole number of 71 bits"),
        (settings(first_width=-3.0), "first_width is -3.0; expected a finite number 0..inf"),
        (settings(first_width="wide"), "first_width is 'wide'"),
        (settings(second_share=-1.0), "second_share is -1.0"),
        (settings(bits=True), "bits is true"),
        (settings(bits=31), "bits is 31"),
        (settings(projective=1), "projective is 1; expected true or false"),
        (settings(learner=[]), "learner is a list of 0"),
        (settings(depth=3), "settings.depth is unknown"),
        (lambda config, arrays: config.update(settings=[]), "settings is a list of 0; expected an object"),
        (lambda config, arrays: config.update(labels=[]), "labels is a list of 0; expected 1 or more"),
        (lambda config, arrays: config["labels"].append(config["labels"][0]), "comes a second time"),
        (lambda config, arrays: config["labels"].append("new"), r"seen is uint8\[2, 64, 64, \d\]; expected"),
        (lambda config, arrays: config.pop("coarse"), "coarse is missing"),
        (lambda config, arrays: config.update(columns=["head"]), r"columns\[0\] is 'head'"),
        (lambda config, arrays: config.update(single="yes"), "single is 'yes'"),
        (
            lambda config, arrays: config.update(templates="0" * 32),
            "templates is '0+'; expected .* trained with others",
        ),
        (lambda config, arrays: arrays.pop("trees"), "the array trees is missing"),
        (array("trees.unit", np.array([np.nan], dtype=np.float32)), r"trees\.unit holds a number that is not finite"),
        (array("trees.unit", np.array([-1], dtype=np.float32)), r"trees\.unit is -1\.0; expected a number above 0"),
        (array("trees.unit", np.array([], dtype=np.float32)), r"trees\.unit is float32\[0\]"),
        (array("labels", np.zeros(9, dtype=np.int8)), r"labels is int8\[9\]; expected int8\[16384\]"),
        (array("labels", np.zeros(1 << 14, dtype=np.int16)), r"labels is int16"),
        (array("longest", np.full((2, 64, 64), -1, dtype=np.int16)), r"longest\[0\]\[0\]\[0\] is -1"),
        (lambda config, arrays: arrays["seen"].fill(2), "is 2; expected 0..1"),
        (array("lexicon", np.frombuffer(b"no zlib", dtype=np.uint8)), "lexicon is damaged"),
        (array("lexicon", packed(b"[[], {}")), "not valid JSON, or cut short"),
        (array("lexicon", packed(b'[[], {"a": 1}]')), r"lexicon\[1\]\['a'\] is 1; expected a string"),
        (array("lexicon", packed(b"[[]]")), "lexicon is a list of 1; expected 2 items"),
    ],
)
def test_damaged_files_name_the_field(saved, tmp_path, damage, message):
    config, arrays = contents(saved)
    damage(config, arrays)
    path = tmp_path / "parser"
    save_model(path, "parser", VERSION, config, arrays)
    with pytest.raises(FormatError, match=message) as caught:
        Parser.load(path)
    assert str(caught.value).startswith(f"{path}:")


def test_a_model_with_other_templates_is_refused(saved, monkeypatch):
    other = (1, templates.Templates("hm", templates.ARC.lines[1:]), templates.ARC_WITH_CLUSTERS)
    monkeypatch.setattr(templates, "TREE", (other, *templates.TREE[1:]))
    with pytest.raises(FormatError, match=r"templates is .*the model was trained with others\. Train it again"):
        Parser.load(saved)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(InvalidInput, match="order is 4"):
        Settings(order=4)
    with pytest.raises(InvalidInput, match="learner"):
        Settings(learner="magic")
    with pytest.raises(InvalidInput, match="trisiblings are parts of order 3 and order is 2"):
        Settings(order=2, trisiblings=True)
    assert Settings(learner="relaxed", trisiblings=True).trisiblings
    with pytest.raises(InvalidInput, match="no word to learn from"):
        train_parser([Sentence([])])


@pytest.mark.compiled
@pytest.mark.parametrize("learner", [name for name in LEARNERS if name not in online()])
def test_every_learner_trains_a_parser_and_resumes(tmp_path, learner):
    data, gold = treebank(25, 1), treebank(12, 3)
    settings = replace(SMALL, learner=learner, order=1 if learner == "log-linear-lbfgs" else 2, label_epochs=1)
    losses = []
    whole = train_parser(data, gold, settings=settings, progress=lambda epoch: losses.append(epoch.loss))
    assert whole.accuracy(gold) > 0.95
    assert None not in losses[-4:]

    def stop(epoch):
        if (epoch.stage, epoch.epoch) == ("trees", 2):
            raise KeyboardInterrupt

    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        train_parser(data, gold, settings=settings, progress=stop, checkpoint=checkpoint)
    resumed = train_parser(data, gold, settings=settings, checkpoint=checkpoint, resume=True)
    assert np.array_equal(resumed.weight.value, whole.weight.value)


def test_sums_over_higher_order_trees_with_crossing_arcs_are_refused():
    for learner in (name for name, known in LEARNERS.items() if known.marginals):
        with pytest.raises(NotSupported, match="NP-hard"):
            Settings(learner=learner, order=2, projective=False)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda config, arrays: config["stages"].update(words={}), "stages is 'words'; expected one of"),
        (
            lambda config, arrays: config["stages"]["trees"].update(epoch=99),
            "epoch is 99; expected a whole number 1..4",
        ),
        (lambda config, arrays: config["stages"]["trees"].update(clock=0.0), "clock is 0.0"),
        (lambda config, arrays: arrays.pop("done.trees"), "done.trees is missing, though epoch 1"),
        (array("value.trees", np.zeros(3, dtype=np.float32)), r"value.trees is float32\[3\]"),
        (array("done.more", np.zeros(3, dtype=np.float32)), "done is 'more'; expected one of"),
    ],
)
def test_damaged_checkpoints(tmp_path, damage, message):
    class Stopped(Exception):
        pass

    def stop(epoch):
        if epoch.stage == "trees":
            raise Stopped

    path = tmp_path / "checkpoint"
    with pytest.raises(Stopped):
        train_parser(treebank(4, 1), treebank(2, 2), settings=SMALL, checkpoint=path, progress=stop)
    config, arrays = contents(path)
    damage(config, arrays)
    save_model(path, training.CHECKPOINT, checkpoints.VERSION, config, arrays)
    with pytest.raises(FormatError, match=message):
        train_parser(treebank(4, 1), treebank(2, 2), settings=SMALL, checkpoint=path, resume=True)
