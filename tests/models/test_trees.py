"""Certificates as they are printed with trees: about these very trees, of a model and a sentence that can be told."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import certus
from certus.dependency.problem import Dependency
from certus.io.conllu import parse_conllu
from certus.learn.weights import Packed
from certus.models.cascade import Cascade
from certus.models.parser import Parser, Settings
from certus.models.pipeline import Pipeline
from certus.models.training import train_parser
from certus.models.trees import COMMENTS, problem_digest
from tests.models.test_parser import bare, treebank

TRAINS = pytest.mark.compiled  # trains parsers
SMALL = Settings(
    order=1, epochs=2, label_epochs=1, bits=12, label_bits=12, first_width=20.0, second_width=20.0, max_heads=5
)
KINDS = {
    "arcs": SMALL,
    "third order": replace(SMALL, order=3),
    "crossing arcs": replace(SMALL, projective=False),
    "crossing siblings": replace(SMALL, order=2, projective=False),
}


@pytest.fixture(scope="module", params=KINDS)
def parser(request) -> Parser:
    """A trained cascade, and a tree model of noise: its trees are not those that the cascade likes best."""
    trained = train_parser(treebank(20, 1), settings=KINDS[request.param])
    weight = np.random.default_rng(1).normal(size=trained.weight.value.size).astype(np.float32)
    return replace(trained, weight=Packed.of(weight))


def printed(parser, sentences, **asked):
    """What is read from the text that was written."""
    text = "".join(str(s) for s in Pipeline(parser).parse(sentences, workers=1, **asked))
    return list(parse_conllu(text.encode().splitlines(keepends=True)))


@TRAINS
def test_the_score_that_is_printed_is_that_of_the_tree_below_it(parser):
    sentences = bare(treebank(12, 3))
    for sentence in printed(parser, sentences, certificates=True):
        problem = parser.problem(sentence)
        assert float(sentence.comment("score")) == problem.score(sentence.heads)
        assert float(sentence.comment("bound")) == problem.decode().score
        assert sentence.comment("certificate").endswith(", exact")
        assert sentence.comment("reason") is None


@TRAINS
def test_certificates_change_no_tree_and_decode_nothing_again(parser, monkeypatch):
    sentences = bare(treebank(12, 3))
    plain = printed(parser, sentences)

    def again(*_, **__):
        raise AssertionError("a second decoding")

    monkeypatch.setattr(Dependency, "decode", again)
    found = printed(parser, sentences, certificates=True)
    assert [s.tokens for s in found] == [s.tokens for s in plain]
    assert [s.comments for s in plain] == [["# kept = yes"]] * 12


@TRAINS
def test_scope_and_digests_tell_what_was_searched(parser):
    (sentence,) = printed(parser, bare(treebank(1, 3)), certificates=True)
    batch = parser.encoder.encode([sentence])
    kept = parser.cascade.survivors(batch, 0)
    n, count = len(sentence), int(kept.sum())
    among = "trees with one root word" if not parser.model.projective else "projective trees with one root word"
    arcs = f"all {n * n} arcs" if count == n * n else f"the {count} arcs kept of {n * n}"
    assert sentence.comment("scope") == f"{among} over {arcs}"
    assert sentence.comment("model_digest") == parser.digest
    assert sentence.comment("problem_digest") == problem_digest(parser.seen(batch, 0), kept)
    fewer = kept.copy()
    fewer[sentence.heads[1], 1] = False
    seen = parser.seen(batch, 0)
    assert problem_digest(seen, fewer) != problem_digest(seen, kept)
    sentence.tokens[-1].upos = "X"
    assert problem_digest(parser.seen(parser.encode([sentence]), 0), kept) != problem_digest(seen, kept)


@TRAINS
def test_one_sentence_has_one_digest_wherever_it_stands(parser):
    sentences = bare(treebank(3, 3))
    together = [s.comment("problem_digest") for s in printed(parser, sentences, certificates=True)]
    alone = [printed(parser, [s], certificates=True)[0].comment("problem_digest") for s in sentences]
    assert together == alone


@TRAINS
def test_the_digest_of_a_model_survives_its_file_and_no_change_of_a_weight(parser, tmp_path):
    parser.save(tmp_path / "parser")
    assert Parser.load(tmp_path / "parser").digest == parser.digest
    other = replace(parser, weight=Packed(parser.weight.value.copy(), parser.weight.unit))
    assert other.digest == parser.digest
    other = replace(parser, weight=Packed(parser.weight.value.copy(), parser.weight.unit))
    other.weight.value[7] += 1
    assert other.digest != parser.digest
    dictionary, first, *others = parser.cascade.filters
    sharper = Cascade((dictionary, replace(first, threshold=first.threshold / 2), *others))
    assert replace(parser, cascade=sharper).digest != parser.digest


@TRAINS
def test_a_certificate_of_another_tree_is_not_kept_above_a_new_one(parser):
    (old,) = printed(parser, bare(treebank(1, 3)), certificates=True)
    (plain,) = printed(parser, [old])
    assert plain.comments == ["# kept = yes"]
    (again,) = printed(parser, [old], certificates=True)
    assert again.comments == old.comments
    old.comments = ["# score = of the user"]
    assert printed(parser, [old])[0].comments == ["# score = of the user"]


@TRAINS
def test_a_sentence_without_words_has_a_certificate(parser):
    empty = replace(treebank(1, 1)[0], tokens=[])
    (parsed,) = Pipeline(parser).results([empty], certificates=True, workers=1)
    assert parsed.certificate.exact
    assert parsed.certificate.score == 0.0
    assert "all 0 arcs" in parsed.proof.scope
    assert [line[2:].partition(" ")[0] for line in parsed.proof.comments()] == [
        c for c in COMMENTS[1:] if c != "reason"
    ]


def test_nothing_that_parses_or_trains_reads_a_clock():
    source = Path(certus.__file__).parent
    readers = set()
    for folder in ("models", "learn", "features"):
        for path in source.glob(f"{folder}/*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                if {"time", "datetime"} & set(names):
                    readers.add(f"{folder}/{path.name}")
    assert readers == {"models/cascade.py"}  # reports the speed of each stage, and decides nothing
