"""Tagger and parser together."""

from dataclasses import replace

import pytest

import certus
from certus.errors import InvalidInput
from certus.models.parser import FILE, Settings
from certus.models.pipeline import TAGGER_FILE
from certus.models.tagger import Tagger
from certus.models.training import train_parser
from tests.models.test_parser import bare, treebank

pytestmark = pytest.mark.compiled  # trains parsers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    settings = Settings(order=1, epochs=3, label_epochs=2, bits=14, label_bits=14)
    train_parser(treebank(60, 1), settings=settings).save(path / FILE)
    Tagger.train(treebank(60, 1), epochs=3, bits=14).save(path / TAGGER_FILE)
    return path


def untagged(sentences):
    return [replace(s, tokens=[replace(t, upos="_") for t in s.tokens]) for s in sentences]


def test_tags_that_are_missing_are_found_and_those_given_are_kept(folder):
    pipeline = certus.load(folder)
    gold = treebank(10, 5)
    assert [str(s) for s in pipeline.parse(untagged(bare(gold)))] == [str(s) for s in gold]
    odd = bare(gold)
    odd[0].tokens[0].upos = "X"
    assert next(iter(pipeline.parse(odd))).tokens[0].upos == "X"


def test_plain_text_is_split_tagged_and_parsed(folder):
    first, second = certus.load(folder).parse_text("the dog sees the old cat\n\nthe cat likes the dog")
    assert first.words == ["the", "dog", "sees", "the", "old", "cat"]
    assert [t.upos for t in first] == ["DET", "NOUN", "VERB", "DET", "ADJ", "NOUN"]
    assert first.heads.tolist() == [-1, 2, 3, 0, 6, 6, 3]
    assert [t.deprel for t in second] == ["det", "nsubj", "root", "det", "obj"]


def test_words_without_tags_need_a_tagger(folder, tmp_path):
    (tmp_path / FILE).write_bytes((folder / FILE).read_bytes())
    with pytest.raises(InvalidInput, match="has no tagger"):
        list(certus.load(tmp_path).parse(untagged(treebank(1, 1))))


def test_text_without_ends_of_sentences_is_refused_before_any_harm(folder):
    endless = treebank(1, 1)[0]
    endless.tokens *= 1000
    endless.comments = ["# sent_id = endless"]
    with pytest.raises(InvalidInput, match=r"sentence 2 \(endless\).*expected at most 2000"):
        list(certus.load(folder).parse([*treebank(1, 2), endless]))


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="there is no parser"):
        certus.load(tmp_path)
