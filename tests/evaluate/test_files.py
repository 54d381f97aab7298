"""Two files compared from Python; the command line tests what is refused."""

import pytest

from certus import FormatError, InvalidInput
from certus.evaluate import AttachmentScores, TranslationScores, compare_conllu, compare_translations, compare_trees
from certus.io.translations import SystemOutput, read_translations
from certus.text import Sentence, Token


def sentence(*heads):
    return Sentence([Token(i, f"w{i}", upos="X", head=h, deprel="dep:x") for i, h in enumerate(heads, start=1)])


def test_attachment_scores_of_objects_and_of_files(tmp_path):
    gold, system = sentence(2, 0, 2, 3), sentence(2, 0, 2, 1)
    (tmp_path / "g.conllu").write_text(str(gold))
    (tmp_path / "s.conllu").write_text(str(system))
    scores = compare_conllu(tmp_path / "g.conllu", tmp_path / "s.conllu")
    assert scores.scores() == AttachmentScores.of([(gold, system)]).scores()
    assert scores.scores()["UAS"] == scores.scores_by_length()["1-10"]["LAS"] == 75.0
    with pytest.raises(InvalidInput, match="different words"):
        AttachmentScores.of([(gold, sentence(0))])


def test_bracket_scores_of_files(tmp_path):
    (tmp_path / "g").write_text("(TOP (S-1 (A a) (X-SBJ (B b) (C c))))")
    (tmp_path / "s").write_text("(TOP (S (A a) (Y (B b) (C c))))")
    assert compare_trees(tmp_path / "g", tmp_path / "s").scores()["F1"] == 50.0
    (tmp_path / "s").write_text("")
    with pytest.raises(FormatError, match="ends after 0 sentences"):
        compare_trees(tmp_path / "g", tmp_path / "s")


def test_translations(tmp_path):
    (tmp_path / "r").write_text("the dog barks at a cat\n")
    same = compare_translations(tmp_path / "r", tmp_path / "r", tokenizer="none")
    assert (same.sentences, round(same.bleu, 6), round(same.chrf, 6)) == (1, 100.0, 100.0)
    assert "tok:none" in same.signature
    with pytest.raises(InvalidInput, match="2 translations, but 1 references"):
        TranslationScores.of(["a"], ["a", "b"])


def test_translations_of_a_system(tmp_path):
    (tmp_path / "a").write_text("the dog\n\n")
    (tmp_path / "b").write_text('{"translation": "the dog", "score": -1.5}\n{"error": "none"}\n')
    (tmp_path / "c.json").write_text('{"sentences": [{"translation": "the dog", "model_score": -2}]}')
    assert read_translations(tmp_path / "a") == [("the dog", None), ("", None)]
    assert read_translations(tmp_path / "b", scored=True) == [SystemOutput("the dog", -1.5), SystemOutput(None, None)]
    assert read_translations(tmp_path / "c.json") == [("the dog", -2.0)]
    with pytest.raises(FormatError, match="without scores"):
        read_translations(tmp_path / "a", scored=True)
