"""The neural parser of the example: what it saves, parses and adds to a linear one; its training."""

import argparse
import importlib.util
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import certus  # noqa: E402
from certus.cli import main  # noqa: E402
from certus.io.conllu import read_conllu  # noqa: E402
from certus.learn.trees import TreeModel  # noqa: E402
from certus.models.network import Network, Sizes, Vocabulary  # noqa: E402
from certus.models.neural import UNIT, NeuralParser, by_length  # noqa: E402
from certus.models.pipeline import NEURAL_FILE  # noqa: E402
from certus.models.scores import part_rows  # noqa: E402
from certus.models.sum_parser import SumParser  # noqa: E402

pytestmark = pytest.mark.torch
SMALL = Sizes(form=6, lemma=4, tag=3, character=4, filters=5, hidden=6, layers=2, arc=5, label=4, part=3)
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "neural_parser.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("neural_parser", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def toy(example):
    return example.toy()


def made(sentences, sizes=SMALL, *, noise=0.5, projective=True):
    """A parser with any weights."""
    torch.manual_seed(0)
    vocabulary = Vocabulary.of(sentences)
    labels = tuple(sorted({token.deprel for s in sentences for token in s}))
    network = Network(vocabulary, len(labels), sizes)
    for parameter in network.parameters():
        parameter.data += noise * torch.randn(parameter.shape)
    return NeuralParser(network.eval(), vocabulary, labels, sizes, TreeModel((), projective, True))


def test_listed_scores_are_the_dense_ones(toy):
    parser = made(toy)
    (own,) = parser.encode(toy[:1]).sentences
    with torch.inference_mode():
        scores = parser.network(parser.vocabulary.inputs(toy[:1]))
        sibling, grandparent = scores.pairs()
    rows = part_rows(~np.eye(len(own.arc), dtype=bool) & (np.arange(len(own.arc)) > 0), own.kinds)
    found = own.of(rows)
    for number, array in enumerate((scores.arc, sibling, grandparent)):
        chosen = rows[:, 0] == number
        index = certus.dependency.part_kinds.PART_KINDS[number].columns(rows[chosen])
        np.testing.assert_allclose(found[chosen], array[0].numpy()[tuple(index)], atol=1e-4)


@pytest.mark.parametrize("projective", [True, False])
def test_trees_are_the_best_of_all(toy, projective):
    parser = made(toy, projective=projective)
    shortest = sorted(toy, key=len)[:2]
    trees = parser.decode(parser.encode(shortest))
    for s, sentence in enumerate(shortest):
        problem = parser.problem(sentence)
        best = max(problem.score(y) for y in problem.all_structures())
        assert trees.exact[s]
        assert trees.certificate(s).score == pytest.approx(best, abs=100 * UNIT)


def test_saved_parsers_parse_the_same(toy, tmp_path, capsys):
    parser = made(toy)
    parser.save(tmp_path / NEURAL_FILE)
    again = certus.load(tmp_path)
    assert again.parser.digest == parser.digest
    assert [str(s) for s in again.parse(toy)] == [str(s) for s in parser.parse(toy)]
    (tmp_path / "in.conllu").write_text("".join(map(str, toy[:3])))
    assert main(["parse", "--model", str(tmp_path), "--certificates", str(tmp_path / "in.conllu")]) == 0
    out = capsys.readouterr().out
    assert out.count("dynamic program, exact") == 3
    (tmp_path / "out.conllu").write_text(out)
    assert [s.words for s in read_conllu(tmp_path / "out.conllu")] == [s.words for s in toy[:3]]


def test_saved_results_verify(toy, tmp_path):
    parser = made(toy, projective=False)
    parser.save(tmp_path / NEURAL_FILE)
    (parsed,) = certus.load(tmp_path).results(toy[:1])
    problem, result, _ = parser.saved(parsed)
    certus.verify(problem, result)


def test_damaged_files_say_so(toy, tmp_path):
    parser = made(toy)
    parser.save(tmp_path / NEURAL_FILE)
    data = (tmp_path / NEURAL_FILE).read_bytes()
    (tmp_path / NEURAL_FILE).write_bytes(data[: len(data) // 2])
    with pytest.raises(certus.FormatError, match="cut short"):
        certus.load(tmp_path)


def test_without_torch_the_command_says_what_to_install(toy, tmp_path):
    made(toy).save(tmp_path / NEURAL_FILE)
    code = f"import sys; sys.modules['torch'] = None; import certus; certus.load({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert 'needs torch: pip install "certus[torch]"' in done.stderr


def test_a_folder_without_a_network_is_not_added(tmp_path):
    with pytest.raises(certus.InvalidInput, match=r"there is no neural\.safetensors"):
        certus.load("en", add=tmp_path)


def test_batches_have_every_sentence_once():
    lengths = [3, 9, 1, 0, 4, 4, 12]
    batches = list(by_length(lengths, 12))
    assert sorted(k for batch in batches for k in batch) == list(range(7))
    assert all(len(batch) == 1 or len(batch) * (1 + max(lengths[k] for k in batch)) <= 12 for batch in batches)


# -- sums ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def linear():
    return certus.load("en").parser


def test_sums_add_scores(toy, linear):
    both = SumParser(linear, made(toy), 0.5)
    sentence = min(toy, key=len)
    batch = both.encode([sentence])
    problem = both.problem_of(batch, 0)
    allowed = problem.arc > -np.inf
    alone = linear.problem_of(batch.linear, 0, allowed), both.neural.problem_of(batch.neural, 0, allowed)
    found = {}
    for y in problem.all_structures():
        found[tuple(y.tolist())] = problem.score(y)
        assert problem.score(y) == pytest.approx(alone[0].score(y) + 0.5 * alone[1].score(y), abs=1e-3)
    trees = both.decode(batch)
    assert trees.exact[0]
    assert trees.certificate(0).score == max(found.values())


def test_labels_of_sums_are_those_of_the_stronger(toy, linear):
    """Among the labels that the linear parser has seen with such tags."""
    neural, some = made(toy), toy[:4]
    both = SumParser(linear, neural, 1e-6)
    batch = both.encode(some)
    trees = both.decode(batch)
    expected = linear.labelled(some, batch.linear, trees)
    assert [str(s) for s in both.labelled(some, batch, trees)] == [str(s) for s in expected]
    own, labels, base = neural.label_scores(batch.neural, trees), linear.labeller.labels, batch.linear.base
    column = [neural.labels.index(label) if label in neural.labels else -1 for label in labels]
    more = np.where(np.array(column) >= 0, own[:, column], -20.0)
    for s, sentence in enumerate(replace(both, scale=1e6).labelled(some, batch, trees)):
        for token in sentence:
            tags = batch.linear.coarse[base[s] + token.head], batch.linear.coarse[base[s] + token.id]
            seen = linear.labeller.seen[(int(token.head < token.id), *tags)]
            score = np.where(seen | ~seen.any(), more[trees.start[s] + token.id], -np.inf)
            assert score[labels.index(token.deprel)] == score.max()


def test_scales_are_chosen_by_accuracy(toy, linear):
    neural = made(toy)
    both = SumParser(linear, neural).tuned(toy[:6], (1e-6, 1e6))
    right = {}
    for scale in (1e-6, 1e6):
        parsed = list(replace(both, scale=scale).parse(toy[:6]))
        right[scale] = sum(
            (a.head, a.deprel) == (b.head, b.deprel)
            for s, t in zip(toy, parsed, strict=False)
            for a, b in zip(s, t, strict=True)
        )
    assert right[both.scale] == max(right.values())
    with pytest.raises(certus.InvalidInput, match="scale is 0"):
        SumParser(linear, neural, 0.0)


# -- training --------------------------------------------------------------------------------------------------------


def options(folder, epochs):
    return argparse.Namespace(epochs=epochs, words=60, rate=0.02, seed=1, folder=folder)


def test_training_learns_and_goes_on_where_it_stopped(example, toy, tmp_path, monkeypatch):
    sizes = replace(SMALL, form=16, tag=16, hidden=24, arc=24, label=16, part=8)
    monkeypatch.setattr(example, "WARM", 10)

    def trained(folder, stop):
        folder.mkdir(exist_ok=True)
        parser, treebank = made(toy, sizes, noise=0.0), example.Treebank(toy, crossing=False)
        kept = example.keep

        def keep(*arguments):
            kept(*arguments)
            if arguments[3] == stop:
                raise KeyboardInterrupt

        monkeypatch.setattr(example, "keep", keep)
        with suppress(KeyboardInterrupt):
            example.train(parser, treebank, toy[:10], folder, options(folder, 5))
        monkeypatch.setattr(example, "keep", kept)
        return parser

    whole = trained(tmp_path / "whole", None)
    assert min(example.accuracy(whole, toy)) > 80.0
    trained(tmp_path / "parts", 3)
    again = trained(tmp_path / "parts", None)
    assert again.digest == whole.digest
    assert NeuralParser.load(tmp_path / "parts" / NEURAL_FILE).labels == whole.labels
