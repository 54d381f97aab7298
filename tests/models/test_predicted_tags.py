"""Trees as a tagger would tag them, for training parsers of plain text."""

import pytest

from certus.io.conllu import Sentence, Token
from certus.models import predicted_tags as module
from certus.models.pipeline import TAGGER_FILE
from certus.models.predicted_tags import TAGS_FILE, forget_tags, predicted_tags
from certus.models.tagger import Tagger

pytestmark = pytest.mark.compiled  # trains taggers

WORDS = [("the", "DET", "DT", 2), ("dog", "NOUN", "NN", 3), ("barks", "VERB", "VBZ", 0)]
TREE = Sentence(
    [
        Token(i, word, "lemma", upos, xpos, feats="A=b", head=head, deprel="dep")
        for i, (word, upos, xpos, head) in enumerate(WORDS, 1)
    ],
    comments=["# sent_id = one"],
)
ODD = Sentence([Token(1, "bark", "bark", "INTJ", "UH", head=0, deprel="root")])


@pytest.fixture
def no_training(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("trained again")

    return lambda: monkeypatch.setattr(module.Tagger, "train", refuse)


def test_trees_lose_all_but_words_heads_and_tags_of_others(tmp_path):
    trees, dev = predicted_tags([TREE] * 3 + [ODD], [TREE], tmp_path)
    assert [(t.form, t.upos, t.xpos, t.head, t.lemma, t.feats) for t in trees[0]] == [
        (word, upos, xpos, head, "_", "_") for word, upos, xpos, head in WORDS
    ]
    assert trees[0].comments == TREE.comments
    assert trees[3].tokens[0].upos != "INTJ", "a tag that only its own tree has cannot have been learnt without it"
    assert trees[3].heads.tolist() == [-1, 0]
    assert str(dev[0]) == str(trees[0])
    assert Tagger.load(tmp_path / TAGGER_FILE).tag([TREE])[0].tokens[2].xpos == "VBZ"


def test_tags_are_kept_for_a_training_that_goes_on(tmp_path, no_training):
    first = predicted_tags([TREE] * 3, [], tmp_path)
    assert (tmp_path / TAGS_FILE).is_file()
    no_training()
    again = predicted_tags([TREE] * 3, [], tmp_path, resume=True)
    assert [list(map(str, part)) for part in again] == [list(map(str, part)) for part in first]
    with pytest.raises(AssertionError, match="trained again"):
        predicted_tags([TREE] * 3, [], tmp_path, seed=2, resume=True)
    with pytest.raises(AssertionError, match="trained again"):
        predicted_tags([TREE] * 3, [], tmp_path)
    forget_tags(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [TAGGER_FILE]


def test_a_single_tree_without_fine_tags(tmp_path):
    (tree,), dev = predicted_tags([Sentence([Token(1, "yes", upos="INTJ", head=0, deprel="root")])], [], tmp_path)
    assert (tree.tokens[0].upos, tree.tokens[0].xpos, dev) == ("INTJ", "_", [])
