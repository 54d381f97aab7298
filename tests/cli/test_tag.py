"""certus tag."""

import json
import re

import pytest

from certus.models.files import save_model
from certus.models.pipeline import BUNDLED
from certus.models.tagger import KIND, VERSION, Tagger
from certus.tagging import Tagging
from tests.models.contents import contents


def test_inline(certus, hmm):
    assert certus("tag", "--tagger", hmm, "the dog barks.").out == "the/DET dog/NOUN barks/VERB ./PUNCT\n"


def test_columns(certus, hmm):
    assert (
        certus("tag", "--tagger", hmm, "--format", "columns", "the dog barks").out
        == "the\tDET\ndog\tNOUN\nbarks\tVERB\n\n"
    )


def test_json(certus, hmm):
    answer = json.loads(certus("tag", "--tagger", hmm, "--json", "the dog barks").out)
    assert answer["tags"] == ["DET", "NOUN", "VERB"]
    assert answer["exact"] is True


def test_tags_and_their_score_come_from_one_decoding(certus, tmp_path, monkeypatch):
    train, model = tmp_path / "train.conllu", tmp_path / "t"
    train.write_text("1\tdogs\t_\tNOUN\t_\t_\t_\t_\t_\t_\n2\tbark\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n")
    assert certus("train", "tagger", "--train", train, "--epochs", 2, "--bits", 10, "--output", model).code == 0
    best = Tagger.load(model).problem(["dogs", "bark"], "upos").decode().score
    monkeypatch.setattr(Tagging, "decode", None)
    answer = json.loads(certus("tag", "--tagger", model, "--json", "dogs bark").out)
    assert answer == {"words": ["dogs", "bark"], "upos": ["NOUN", "VERB"], "score": best, "bound": best, "exact": True}


def test_empty_lines_and_unknown_words(certus, hmm):
    ran = certus("tag", "--tagger", hmm, stdin="\nthe blorp zorked\n\n")
    assert ran.code == 0
    assert re.fullmatch(r"\nthe/DET blorp/\w+ zorked/\w+\n\n", ran.out)


def test_a_sentence_of_200_words(certus, hmm):
    ran = certus("tag", "--tagger", hmm, "--tokenised", " ".join(["the dog sees a"] * 50))
    assert len(ran.out.split()) == 200


def test_bad_input(certus, hmm, tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"format": "certus-hmm", "version": 1, "tags": ["A"], "trig')
    assert ":1: not valid JSON" in certus("tag", "--tagger", path, "a").complaint
    path.write_text('{"format": "certus-hmm", "version": 1, "tags": ["A"], "trigrams": [[0, 0, NaN]], "lexicon": {}}')
    assert str(path) in certus("tag", "--tagger", path, "a").complaint
    path.write_text("[]")
    assert "not a certus-hmm" in certus("tag", "--tagger", path, "a").complaint
    assert "stdin:2" in certus("tag", "--tagger", hmm, stdin=b"the dog\n\xff").complaint
    assert "hidden Markov" in certus("tag", "--tagger", hmm, "--format", "conllu", "a").complaint


@pytest.mark.compiled  # a large model
def test_a_hostile_model_is_refused_and_does_not_crash(certus, tmp_path):
    path = tmp_path / "tagger.safetensors"
    for change, message in (
        ({"sets": [[0] * 500]}, "models[0].sets[0] is a list of 500; expected 1 to 64 numbers of tags that rise"),
        ({"sets": [[3, 2]]}, "numbers of tags that rise"),
        ({"sets": [[999]]}, "models[0].sets[0][0] is 999; expected a whole number 0..16"),
        ({"tags": ["NOUN"] * 17}, "models[0].tags is a list of 17; expected 1 to 65535 tags, each once"),
    ):
        config, arrays = contents(BUNDLED / "en" / "tagger.safetensors")
        config["models"][0] |= change
        save_model(path, KIND, VERSION, config, arrays)
        assert message in certus("tag", "--tagger", path, "Dogs bark.").complaint


@pytest.mark.compiled  # a large model
def test_a_model_whose_first_byte_is_a_bracket_is_no_json(certus, tmp_path):
    data = (BUNDLED / "en" / "tagger.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    padding = (ord("{") - size) % 256
    path = tmp_path / "tagger.safetensors"
    path.write_bytes((size + padding).to_bytes(8, "little") + data[8 : 8 + size] + b" " * padding + data[8 + size :])
    assert path.read_bytes()[:1] == b"{"
    assert certus("tag", "--tagger", path, "The dog barks.").out == certus("tag", "The dog barks.").out != ""
