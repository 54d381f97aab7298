"""KenLM models, through its library or, where that is not installed, something that answers like it."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from certus.errors import InvalidInput
from certus.io.arpa import Arpa, write_arpa
from certus.io.kenlm import is_kenlm, read_kenlm
from certus.translation.kneser_ney import estimate_kneser_ney
from certus.translation.language_model import LanguageModel

TEXT = ["the dog saw the cat", "a cat saw the dog", "the cat sat", "a dog sat", "dogs and cats sat and saw the dog"]
SENTENCES = [line.split() for line in TEXT]


@pytest.fixture(scope="module")
def arpa() -> Arpa:
    return estimate_kneser_ney(SENTENCES, 3).arpa


def stand_in(arpa: Arpa) -> ModuleType:
    """A module that answers queries of one model as KenLM's does."""
    table = {
        tuple(arpa.words[w] for w in row): (p, b)
        for grams in arpa.orders
        for row, p, b in zip(grams.words, grams.log_probability, grams.back_off, strict=True)
    }
    order = len(arpa.orders)

    class Model:
        def __init__(self, path: str) -> None:
            self.order = order

        def __contains__(self, word: str) -> bool:
            return (word,) in table

        def NullContextWrite(self, state: SimpleNamespace) -> None:
            state.words = ()

        def BeginSentenceWrite(self, state: SimpleNamespace) -> None:
            state.words = ("<s>",)

        def BaseFullScore(self, state: SimpleNamespace, word: str, after: SimpleNamespace) -> SimpleNamespace:
            word = word if (word,) in table else "<unk>"
            context, cost = state.words, 0.0
            while (*context, word) not in table:
                cost += table[context][1] if context in table else 0.0
                context = context[1:]
            after.words = (*context, word)[-(order - 1) :]
            return SimpleNamespace(log_prob=cost + table[*context, word][0], ngram_length=len(context) + 1)

    module = ModuleType("kenlm")
    module.Model, module.State = Model, SimpleNamespace
    return module


@pytest.fixture(params=["stand-in", "library"])
def library(request, arpa, monkeypatch):
    if request.param == "library":
        pytest.importorskip("kenlm")
    else:
        monkeypatch.setitem(sys.modules, "kenlm", stand_in(arpa))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "words", [["the", "dog", "cat", "saw", "sat", "a", "dogs", "and", "cats"], ["the", "dog", "xyz"], []]
)
def test_scores_over_the_words_asked_for(arpa, tmp_path, words):
    write_arpa(tmp_path / "lm.arpa", arpa)
    whole, part = LanguageModel(arpa), LanguageModel.read_kenlm(tmp_path / "lm.arpa", words)
    assert part.order == 3
    assert set(part.words) == {"<unk>", "<s>", "</s>", *words} - {"xyz"}
    rng = np.random.default_rng(1)
    for length in range(6):
        sentence = [str(w) for w in rng.choice([*words, "unheard"], size=length)]
        assert part.score(sentence) == pytest.approx(whole.score(sentence), abs=1e-4)
    assert read_kenlm(tmp_path / "lm.arpa", words).orders[0].words.shape == (len(part.words), 1)


def test_without_the_library(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(InvalidInput, match=r"certus\[kenlm\]"):
        read_kenlm(tmp_path / "lm.binary", [])


def test_binary_files_are_known_by_their_first_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
    (tmp_path / "b").write_bytes(b"\\data\\\n")
    assert (is_kenlm(tmp_path / "a"), is_kenlm(tmp_path / "b")) == (True, False)
