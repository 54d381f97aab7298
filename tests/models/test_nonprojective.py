"""Trained parsers of order 2 and 3 with crossing arcs: what they learn, proofs, files."""

from dataclasses import replace

import numpy as np
import pytest

from certus.io.conllu import Sentence
from certus.learn.weights import Packed
from certus.models.nonprojective import crossing_heads
from certus.models.parser import Parser, Settings
from certus.models.pipeline import Pipeline
from certus.models.training import train_parser
from tests.models.test_parser import bare, treebank
from tests.oracles.trees import is_projective, is_tree

pytestmark = pytest.mark.compiled
SETTINGS = Settings(
    order=2, projective=False, epochs=4, label_epochs=1, bits=14, label_bits=12, first_width=50.0, second_width=50.0
)


def crossing_treebank(size, seed):
    """The small grammar, with the adjective of the subject moved to the end, so that its arc crosses the verb's."""
    moved = []
    for sentence in treebank(size, seed):
        tokens = list(sentence.tokens)
        verb = next(t.id for t in tokens if t.head == 0)
        early = [t for t in tokens if t.form == "old" and t.id < verb]
        order = [t for t in tokens if t not in early] + early
        place = {t.id: i for i, t in enumerate(order, 1)} | {0: 0}
        tokens = [replace(t, id=place[t.id], head=place[t.head]) for t in order]
        moved.append(Sentence(tokens, comments=sentence.comments))
    return moved


@pytest.fixture(scope="module")
def parser() -> Parser:
    return train_parser(crossing_treebank(60, 1), crossing_treebank(20, 2), settings=SETTINGS)


def test_crossing_arcs_are_learned_and_proved(parser):
    gold = crossing_treebank(30, 3)
    assert sum(not is_projective(s.heads.tolist()) for s in gold) > 3
    found = list(parser.parse(iter(bare(gold))))
    assert [s.heads.tolist() for s in found] == [s.heads.tolist() for s in gold]
    *_, proved = crossing_heads(parser, parser.encoder.encode(gold), search=False)
    assert proved.all()


def test_the_problem_has_the_parsers_tree_and_score(parser):
    sentences = [*crossing_treebank(6, 4), replace(treebank(1, 1)[0], tokens=[])]
    start, heads, value = parser.heads(parser.encoder.encode(sentences))
    for at, best, sentence in zip(start, value, sentences, strict=True):
        own = heads[at : at + len(sentence) + 1]
        assert is_tree(own.tolist())
        result = parser.problem(sentence).decode()
        assert result.certificate.exact
        assert result.score == pytest.approx(best, rel=1e-6)  # weights are packed here, float32 in the problem
        assert parser.problem(sentence).score(own) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("branchings", [0, 64])
def test_search_proves_what_the_relaxation_does_not(parser, branchings, monkeypatch):
    monkeypatch.setattr("certus.models.nonprojective.ITERATIONS", 1)
    monkeypatch.setattr("certus.models.nonprojective.ROUNDS", 1)
    monkeypatch.setattr("certus.models.nonprojective.BRANCHINGS", branchings)
    weight = np.random.default_rng(0).normal(size=parser.weight.value.size).astype(np.float32)
    hard = replace(parser, weight=Packed.of(weight))
    sentences = crossing_treebank(6, 5)
    batch = parser.encoder.encode(sentences)
    *_, value, proved = crossing_heads(hard, batch, search=False)
    *_, best, searched = crossing_heads(hard, batch)
    assert not proved.all()
    assert searched.all()
    assert (best >= value - 1e-6).all()
    assert best == pytest.approx([hard.problem(s).decode().score for s in sentences], rel=1e-6)


def test_certificates_are_said_and_files_keep_the_parser(parser, tmp_path):
    parser.save(tmp_path / "parser")
    again = Parser.load(tmp_path / "parser")
    sentences = bare(crossing_treebank(3, 6))
    (first, *_) = Pipeline(again).parse(sentences, certificates=True)
    assert first.comment("certificate") in ("dual, exact", "branch and bound, exact")
    assert [s.heads.tolist() for s in again.parse(sentences)] == [s.heads.tolist() for s in parser.parse(sentences)]
