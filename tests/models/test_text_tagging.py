"""Plain text as bytes: what comes out is what tokenising, tagging, parsing and writing sentences gives."""

import re
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import CertusError, InvalidInput, kernels
from certus.features import encode
from certus.io.conllu import read_conllu
from certus.io.texts import read_file
from certus.models import rewriting
from certus.models.pipeline import Pipeline
from certus.models.tagger import Tagger
from certus.models.training import train_parser
from certus.text import Sentence, tokenize
from tests.data import shared_data
from tests.models.test_small_parsers import SMALL, two_trees

# What words and sentences are cut by, and what is white space for Python alone.
PIECES = [
    *("dog", "The", "It", "J.", "K.", "U.S.", "Mr.", "Inc.", "w/", "W/", "w/o", "can't", "cannot", "dont", "I'm", "é"),
    *("É", "’", "“Go.”", "…", "...", ".", "!", "?!", ",", ";", ")", "(", '"', "''", "-", "–", "well-known", "3.5", "%"),
    *("a.b.c", "www.a.com/x).", "jo@b.org!", ":)", "ab.C", "a.", "A.", "\u00a0", "\u2003", "\u3000", "\x1c", "\x85"),
    *(" ", " ", " ", "  ", "\n", "\t", "\r", "\v", "\u200b", "\ufeff", "\U0001f600"),
]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join).filter(str.strip)


@pytest.fixture(scope="module")
def pipeline():
    trees = two_trees()
    return Pipeline(train_parser(trees, settings=SMALL), Tagger.train(trees, epochs=1, bits=8))


def one_by_one(pipeline, path, **reading):
    try:
        return "".join(map(str, pipeline.parse(read_file(path, **reading), workers=1)))
    except CertusError as error:
        return f"{type(error).__name__}: {error}"


def as_bytes(pipeline, path, workers=1, **reading):
    try:
        return "".join(piece.text for piece in pipeline.parse_file(path, workers=workers, **reading))
    except CertusError as error:
        return f"{type(error).__name__}: {error}"


@pytest.fixture(scope="module")
def taggers():
    trees = two_trees()
    for token in chain.from_iterable(trees):
        token.feats = f"Lemma={token.lemma}"
    return [Tagger.train(trees, column=column, epochs=1, bits=8) for column in (["feats", "xpos+upos"], "upos")]


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from(["web", "lines", "blank"]))
def test_pieces_of_text(taggers, texts, style):
    texts = [re.sub(r"\n\s*\n", "\n", text.replace("\n", " " if style == "blank" else "\n")) for text in texts]
    tagger, expected = taggers[len(texts) % 2], []
    for text in texts:
        sentences = tokenize(text, style="blank" if style == "blank" else "web")
        expected += [list(chain.from_iterable(sentences))] if style == "lines" else sentences
    found = tagger.of_text("blank" if style == "blank" else "web").conllu(texts, whole=style != "web")
    assert found.decode() == "".join(map(str, tagger.tag(map(Sentence.from_words, expected))))


def test_white_space_is_that_of_python():
    characters = [chr(c) for c in (*range(1, 0x3100), 0xFEFF, 0xFFFF, 0x1F600)]
    text = np.frombuffer("".join(f"{c}x" for c in characters).encode(), dtype=np.uint8)
    begin, end, key = (np.empty(len(text), dtype=np.int64) for _ in range(3))
    count = kernels.tokens.find_chunks(text, begin, end, key, np.empty(len(text), dtype=np.bool_))
    found = [text[a:b].tobytes().decode() for a, b in zip(begin[:count], end[:count], strict=True)]
    assert found == "".join(f"{c}x" for c in characters).split()


@pytest.mark.parametrize("reading", [{}, {"lines": True}, {"tokenised": True}])
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n \n\n",
        b'The dog sees J. Cat. It barks\nat the cat.\r\n\n \n\n(Why?) "No." he said w/',
        b"the dog w/\x1c",
        b"\xef\xbb\xbfThe dog.\n\x0b\nThe cat",
        b"the dog\n\nthe c\0at\n",
        b"the dog\n\nthe \xff\n",
        b"the dog. The cat\n" * 9 + b"dog " * 2001,
    ],
)
def test_files(pipeline, tmp_path, monkeypatch, text, reading):
    monkeypatch.setattr(rewriting, "TEXT_BLOCK", 20)
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    assert as_bytes(pipeline, path, **reading) == one_by_one(pipeline, path, **reading)


def test_words_forgotten_in_between_are_met_again(pipeline, tmp_path, monkeypatch):
    monkeypatch.setattr(rewriting, "TEXT_BLOCK", 40)
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"The dog{k} barks." for k in range(12)))
    expected = one_by_one(pipeline, path)
    monkeypatch.setattr(encode, "MOST_ROWS", 10)
    assert as_bytes(pipeline, path, workers=2) == expected
    monkeypatch.undo()
    assert as_bytes(pipeline, path) == expected


def test_without_a_tagger_it_is_said(pipeline, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("The dog barks.")
    with pytest.raises(InvalidInput, match="no tagger"):
        list(Pipeline(pipeline.parser).parse_file(path))


@pytest.mark.compiled
def test_the_text_of_a_treebank(pipeline, tmp_path):
    texts = [s.comment("text") for s in read_conllu(shared_data("ud", "en_ewt", "dev.conllu.gz"))]
    path = tmp_path / "a.txt"
    for joint in ("\n\n", " "):
        path.write_text(joint.join(texts[:800]))
        assert as_bytes(pipeline, path, workers=2) == one_by_one(pipeline, path)
