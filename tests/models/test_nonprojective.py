"""Trained parsers of order 2 and 3 with crossing arcs: what they learn, proofs, files."""

import sys
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from certus.errors import InvalidInput
from certus.learn.weights import Packed
from certus.models.parser import Parser, Settings
from certus.models.pipeline import Pipeline
from certus.models.training import train_parser
from certus.text import Sentence
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
    assert parser.decode(parser.encoder.encode(gold), search=False).exact.all()


def test_the_problem_has_the_parsers_tree_and_score(parser):
    sentences = [*crossing_treebank(6, 4), replace(treebank(1, 1)[0], tokens=[])]
    trees = parser.decode(parser.encoder.encode(sentences))
    for at, best, sentence in zip(trees.start, trees.value, sentences, strict=True):
        own = trees.heads[at : at + len(sentence) + 1]
        assert is_tree(own.tolist())
        result = parser.problem(sentence).decode()
        assert result.certificate.exact
        assert result.score == best
        assert parser.problem(sentence).score(own) == best


def hard(parser: Parser) -> Parser:
    """The parser with weights that are noise, which the relaxation alone seldom proves a tree of."""
    weight = np.random.default_rng(0).normal(size=parser.weight.value.size).astype(np.float32)
    return replace(parser, weight=Packed.of(weight))


@pytest.fixture(params=[0, 64])
def branchings(request, monkeypatch):
    """The relaxation gives up at once, and the kernel branches so often; the rest is for the search."""
    monkeypatch.setattr("certus.models.nonprojective.ITERATIONS", 1)
    monkeypatch.setattr("certus.models.nonprojective.ROUNDS", 1)
    monkeypatch.setattr("certus.models.nonprojective.BRANCHINGS", request.param)
    monkeypatch.setattr("certus.relax.descent.BURST", 1)  # it looks at a clock, if at all, all the time


def test_search_proves_what_the_relaxation_does_not(parser, branchings):
    model = hard(parser)
    sentences = crossing_treebank(6, 5)
    batch = model.encoder.encode(sentences)
    relaxed, best = model.decode(batch, search=False), model.decode(batch)
    assert not relaxed.exact.all()
    assert best.exact.all()
    assert (best.score >= relaxed.score).all()
    assert (best.score <= relaxed.bound).all()
    assert set(relaxed.reason) == set(np.flatnonzero(~relaxed.exact).tolist())
    assert not best.reason
    assert best.value.tolist() == [model.problem(s).decode().score for s in sentences]


def run_away(monkeypatch):
    """Every look at the clock finds it an hour later, as on a machine that is busy with something else."""
    late = count(0.0, 3600.0).__next__
    ours = {name: vars(module) for name, module in sys.modules.items() if name.startswith("certus.")}
    readers = [name for name, held in ours.items() if "perf_counter" in held]
    for module in ("time", *readers):
        monkeypatch.setattr(f"{module}.perf_counter", late)
    assert readers


def test_a_slow_machine_prints_the_same_trees_and_proofs(parser, branchings, monkeypatch):
    pipeline, sentences = Pipeline(hard(parser)), bare(crossing_treebank(6, 5))
    quick = [str(s) for s in pipeline.parse(sentences, certificates=True, workers=1)]
    run_away(monkeypatch)
    slow = [str(s) for s in pipeline.parse(sentences, certificates=True, workers=1)]
    assert slow == quick
    assert all(", exact\n" in text for text in quick)


def test_a_time_limit_that_is_reached_is_said_and_the_bound_holds(parser, monkeypatch):
    monkeypatch.setattr("certus.models.nonprojective.ITERATIONS", 1)
    monkeypatch.setattr("certus.models.nonprojective.ROUNDS", 1)
    monkeypatch.setattr("certus.models.nonprojective.BRANCHINGS", 0)
    monkeypatch.setattr("certus.relax.descent.BURST", 1)
    pipeline, sentences = Pipeline(hard(parser)), bare(crossing_treebank(12, 5))
    best = list(pipeline.results(sentences, certificates=True, workers=1))
    run_away(monkeypatch)
    found = list(pipeline.results(sentences, certificates=True, time_limit=2.5, workers=1))
    assert not all(parsed.certificate.exact for parsed in found)
    for parsed, proved in zip(found, best, strict=True):
        c = parsed.certificate
        assert c.score == pipeline.parser.problem(parsed.sentence).score(parsed.sentence.heads)
        assert c.score <= proved.certificate.score <= c.bound
        assert c.reason == (None if c.exact else "the time limit of 2.5 s was reached")
        text = parsed.annotated()
        assert text.comment("certificate").endswith(", exact" if c.exact else ", not proved optimal")
        assert text.comment("reason") == c.reason
    with pytest.raises(InvalidInput, match="time_limit is 0"):
        list(pipeline.parse(sentences, time_limit=0))


def test_certificates_are_said_and_files_keep_the_parser(parser, tmp_path):
    parser.save(tmp_path / "parser")
    again = Parser.load(tmp_path / "parser")
    sentences = bare(crossing_treebank(3, 6))
    (first, *_) = Pipeline(again).parse(sentences, certificates=True)
    assert first.comment("certificate") in ("dual, exact", "branch and bound, exact")
    assert [s.heads.tolist() for s in again.parse(sentences)] == [s.heads.tolist() for s in parser.parse(sentences)]
