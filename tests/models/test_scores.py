"""A trained parser's scores as a problem."""

from dataclasses import replace

import pytest

from certus.models.parser import Parser, Settings
from certus.models.pipeline import Pipeline
from certus.models.training import train_parser
from tests.models.test_parser import bare, treebank

pytestmark = pytest.mark.compiled  # trains parsers


KINDS = {
    "third order": Settings(epochs=1, label_epochs=1, bits=12, label_bits=12),
    "tri-siblings": Settings(trisiblings=True, epochs=1, label_epochs=1, bits=12, label_bits=12),
    "crossing arcs": Settings(order=1, projective=False, epochs=1, label_epochs=1, bits=12, label_bits=12),
}


@pytest.fixture(scope="module", params=KINDS)
def parser(request) -> Parser:
    return train_parser(treebank(20, 1), settings=KINDS[request.param])


def test_the_problem_has_the_parsers_tree_and_score(parser):
    sentences = treebank(8, 3)
    trees = parser.decode(parser.encoder.encode(sentences))
    for at, best, sentence in zip(trees.start, trees.value, sentences, strict=True):
        result = parser.problem(sentence).decode()
        assert result.certificate.exact
        assert result.score == best
        assert parser.problem(sentence).score(trees.heads[at : at + len(sentence) + 1]) == best


def test_no_words_no_arcs(parser):
    empty = replace(treebank(1, 1)[0], tokens=[])
    assert parser.problem(empty).decode().structure.tolist() == [-1]


def test_confidences_are_marginals_and_certificates_are_said(parser):
    (gold,) = treebank(1, 4)
    sentence = bare([gold])[0]
    sentence.tokens[0].misc = "SpaceAfter=No|Confidence=7"
    sentence.comments = ["# text = x", "# score = 12"]
    (parsed,) = Pipeline(parser).parse([sentence], confidences=True, certificates=True)
    share = parser.problem(gold).marginals()["arcs"]
    heads = parsed.heads
    for token in parsed:
        said = token.misc.rpartition("Confidence=")[2]
        assert float(said) == pytest.approx(share[heads[token.id], token.id], abs=1e-4)
    assert parsed.tokens[0].misc.startswith("SpaceAfter=No|Confidence=")
    assert parsed.comment("certificate").endswith(", exact")
    assert parsed.comments[0] == "# text = x"
    assert len([line for line in parsed.comments if line.startswith("# score")]) == 1
    assert float(parsed.comment("score")) == parser.problem(gold).decode().score
