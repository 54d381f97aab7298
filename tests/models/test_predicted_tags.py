"""Trees as a tagger would tag them, for training parsers of plain text."""

import os
import shutil
from pathlib import Path

import pytest

from certus import writing
from certus.errors import FormatError
from certus.models import predicted_tags as module
from certus.models.parser import FILE, Settings
from certus.models.pipeline import NEW_TAGGER_FILE, TAGGER_FILE, load
from certus.models.predicted_tags import TAGS_FILE, predicted_tags, save_parser
from certus.models.tagger import Tagger
from certus.models.training import train_parser
from certus.text import Sentence, Token

pytestmark = pytest.mark.compiled  # trains taggers

WORDS = [("the", "DET", "DT", 2), ("dog", "NOUN", "NN", 3), ("barks", "VERB", "VBZ", 0)]
TREE = Sentence(
    [
        Token(i, word, "lemma", upos, xpos, feats="A=b", head=head, deprel="dep")
        for i, (word, upos, xpos, head) in enumerate(WORDS, 1)
    ],
    comments=["# sent_id = one"],
)
SMALL = Settings(order=1, epochs=1, label_epochs=1, bits=10, label_bits=10)
ODD = Sentence([Token(1, "bark", "bark", "INTJ", "UH", head=0, deprel="root")])


@pytest.fixture
def no_training(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("trained again")

    return lambda: monkeypatch.setattr(module.Tagger, "train", refuse)


def test_trees_lose_all_but_words_heads_and_tags_of_others(tmp_path):
    trees, dev, _ = predicted_tags([TREE] * 3 + [ODD], [TREE], tmp_path)
    assert [(t.form, t.upos, t.xpos, t.head, t.lemma, t.feats) for t in trees[0]] == [
        (word, upos, xpos, head, "_", "_") for word, upos, xpos, head in WORDS
    ]
    assert trees[0].comments == TREE.comments
    assert trees[3].tokens[0].upos != "INTJ", "a tag that only its own tree has cannot have been learnt without it"
    assert trees[3].heads.tolist() == [-1, 0]
    assert str(dev[0]) == str(trees[0])
    assert Tagger.load(tmp_path / NEW_TAGGER_FILE).tag([TREE])[0].tokens[2].xpos == "VBZ"


def test_tags_are_kept_for_a_training_that_goes_on(tmp_path, no_training):
    first = predicted_tags([TREE] * 3, [], tmp_path)
    assert (tmp_path / TAGS_FILE).is_file()
    no_training()
    again = predicted_tags([TREE] * 3, [], tmp_path, resume=True)
    assert [list(map(str, part)) for part in again] == [list(map(str, part)) for part in first]
    save_parser(tmp_path, train_parser(first[0], settings=SMALL), first[2])
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE, TAGGER_FILE]
    with pytest.raises(AssertionError, match="trained again"):
        predicted_tags([TREE] * 3, [], tmp_path, resume=True)


def test_tags_of_another_training_are_not_kept(tmp_path, no_training):
    predicted_tags([TREE] * 3, [], tmp_path)
    no_training()
    with pytest.raises(AssertionError, match="trained again"):
        predicted_tags([TREE] * 3, [], tmp_path, seed=2, resume=True)
    with pytest.raises(AssertionError, match="trained again"):
        predicted_tags([TREE] * 3, [], tmp_path)


def test_a_single_tree_without_fine_tags(tmp_path):
    (tree,), dev, _ = predicted_tags([Sentence([Token(1, "yes", upos="INTJ", head=0, deprel="root")])], [], tmp_path)
    assert (tree.tokens[0].upos, tree.tokens[0].xpos, dev) == ("INTJ", "_", [])


# -- parser and tagger of a folder ---------------------------------------------------------------------------------


class Killed(BaseException):
    pass


def named(tag):
    """A treebank whose tags and labels all have one name, so that a model tells which it was trained on."""
    return [Sentence([Token(1, "yes", upos=tag, head=0, deprel=tag)])] * 2


def train_into(folder, tag, *, tagger=True):
    trees, pair = named(tag), None
    if tagger:
        trees, _, pair = predicted_tags(trees, [], folder)
    save_parser(folder, train_parser(trees, settings=SMALL), pair)


def models_of(folder):
    pipeline = load(folder)
    (sentence,) = pipeline.parse([Sentence.from_words(["yes"])])
    return sentence.tokens[0].upos, sentence.tokens[0].deprel


def test_a_training_that_is_killed_anywhere_leaves_both_old_models_or_both_new_ones(tmp_path, monkeypatch):
    (tmp_path / "old").mkdir()
    train_into(tmp_path / "old", "OLD")
    found = []
    for steps in range(20):
        folder = tmp_path / f"killed{steps}"
        shutil.copytree(tmp_path / "old", folder)
        left = steps

        def counted(real):
            def call(*arguments, **options):
                nonlocal left
                if left == 0:
                    raise Killed
                left -= 1
                return real(*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", counted(os.replace))
            patch.setattr(Path, "unlink", counted(Path.unlink))
            try:
                train_into(folder, "NEW")
                killed = False
            except Killed:
                killed = True
        found.append(models_of(folder))
        writing._remove_leftovers.cache_clear()  # as in a new process
        train_into(folder, "LAST")  # whatever was left, the next training is none the worse
        assert models_of(folder) == ("LAST", "LAST")
        assert sorted(path.name for path in folder.iterdir()) == [FILE, TAGGER_FILE]
        if not killed:
            break
    assert set(found) == {("OLD", "OLD"), ("NEW", "NEW")}
    assert found == sorted(found, reverse=True), "from the old to the new, once"
    assert len(found) > 5


def test_models_that_do_not_belong_together_are_refused(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, tag in ((one, "ONE"), (other, "OTHER")):
        folder.mkdir()
        train_into(folder, tag)
    shutil.copy(other / TAGGER_FILE, one)
    with pytest.raises(FormatError, match=r"is not the tagger that parser.safetensors was trained with"):
        load(one)
    (one / TAGGER_FILE).write_bytes(b"nothing")
    with pytest.raises(FormatError, match="not a model file"):
        load(one)
    (one / TAGGER_FILE).unlink()
    assert load(one).tagger is None


def test_training_without_a_tagger_takes_the_former_one_away_but_not_one_of_the_user(tmp_path):
    train_into(tmp_path, "ONE")
    train_into(tmp_path, "TWO", tagger=False)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    Tagger.train(named("OWN"), epochs=1, bits=8).save(tmp_path / TAGGER_FILE)
    train_into(tmp_path, "THREE", tagger=False)
    assert models_of(tmp_path) == ("OWN", "THREE")
