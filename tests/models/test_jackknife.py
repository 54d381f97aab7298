"""Tags from taggers that did not see the sentence."""

import pytest

from certus.errors import InvalidInput
from certus.models.jackknife import jackknife
from certus.models.tagger import Tagger
from certus.text import Sentence, Token

CORPUS = [Sentence([Token(1, f"w{k}", upos="N")]) for k in range(7)]


class Recorder:
    """Tags each word with the words it was trained on."""

    def __init__(self, seen):
        self.seen = {token.form for sentence in seen for token in sentence}

    def tag(self, sentences):
        assert not self.seen & {token.form for sentence in sentences for token in sentence}
        return [Sentence([Token(t.id, t.form, upos=str(len(self.seen))) for t in s]) for s in sentences]


def test_no_sentence_is_tagged_by_a_tagger_that_saw_it():
    done = []
    found = jackknife(iter(CORPUS), 3, train=Recorder, progress=lambda k, n: done.append((k, n)))
    assert [s.words for s in found] == [s.words for s in CORPUS]
    assert [s.tokens[0].upos for s in found] == ["5", "5", "5", "5", "4", "4", "4"]
    assert done == [(1, 3), (2, 3), (3, 3)]


def test_with_a_real_tagger():
    found = jackknife(CORPUS, 2, train=lambda rest: Tagger.train(rest, epochs=1, bits=8))
    assert [t.upos for s in found for t in s] == ["N"] * 7


@pytest.mark.parametrize("folds", [0, 1, 8])
def test_folds_are_checked(folds):
    with pytest.raises(InvalidInput, match="folds is"):
        jackknife(CORPUS, folds, train=Recorder)
