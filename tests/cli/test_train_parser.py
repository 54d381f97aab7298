"""certus train parser."""

import json
from dataclasses import replace

import pytest

import certus as library
from certus.errors import InvalidInput
from certus.learn.learners import LEARNERS, online
from certus.models.parser import Parser

SENTENCE = (
    "1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n"
    "2\tdog\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n"
    "3\tbarks\tbark\tVERB\tVBZ\t_\t0\troot\t_\t_\n\n"
)


def test_a_parser_is_trained_and_its_folder_holds_just_the_model(certus, tmp_path):
    (tmp_path / "train.conllu").write_text(SENTENCE * 3)
    out = tmp_path / "made" / "model"
    files = "--train", tmp_path / "train.conllu", "--dev", tmp_path / "train.conllu", "--output", out
    small = "--order", "2", "--epochs", "2", "--bits", "12"
    assert "pruning_error is 2.0" in certus("train", "parser", *files, *small, "--pruning-error", "2").complaint
    ran = certus("train", "parser", *files, *small, "--pruning-error", "0.01")
    assert (ran.code, ran.out) == (0, "")
    assert "trees 2/2" in ran.err
    assert "dev UAS 100.00" in ran.err
    assert [path.name for path in out.iterdir()] == ["parser.safetensors"]


def test_the_command_line_offers_every_learner(certus, tmp_path):
    assert f"--learner {'|'.join(LEARNERS)}" in certus("train", "parser", "--help").out
    assert f"--learner {'|'.join(online())}" in certus("train", "tagger", "--help").out
    (tmp_path / "train.conllu").write_text(SENTENCE)
    files = "--train", tmp_path / "train.conllu", "--output", tmp_path / "model", "--learner"
    assert "learner is 'magic'; expected one of 'mira'" in certus("train", "parser", *files, "magic").complaint
    assert "relaxed learns trees only; use one of mira" in certus("train", "tagger", *files, "relaxed").complaint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no sentences"),
        (SENTENCE.replace("\t3\tnsubj", "\t9\tnsubj"), "train.conllu:2"),
        (SENTENCE.replace("\t2\tdet", "\t_\tdet"), "train.conllu:1"),
        (SENTENCE.replace("\t0\troot", "\t1\troot"), "cycle"),
        (SENTENCE.replace("\tNN\t_", "\tNN"), "train.conllu:2"),
    ],
)
def test_a_bad_treebank_is_refused(certus, tmp_path, text, says):
    (tmp_path / "train.conllu").write_text(text)
    ran = certus("train", "parser", "--train", tmp_path / "train.conllu", "--output", tmp_path / "model")
    assert says in ran.complaint
    assert not (tmp_path / "model").exists()


def test_confidences_in_crossing_arcs_above_order_1_are_estimates_and_say_so(certus, tmp_path):
    train, model = tmp_path / "train.conllu", tmp_path / "model"
    train.write_text(SENTENCE * 3)
    small = "--order", "2", "--no-projective", "--epochs", "2", "--bits", "12"
    assert certus("train", "parser", "--train", train, "--output", model, *small).code == 0
    assert "# certificate = dual, exact" in certus("parse", "--model", model, "--certificates", train).out
    estimated = certus("parse", "--model", model, "--confidences", train).out
    assert "# confidence_estimates = importance sampling, effective sample size" in estimated
    assert estimated.count("Confidence=") == 9
    again = tmp_path / "again.conllu"
    again.write_text(estimated)
    assert "confidence_estimates" not in certus("parse", "--model", model, again).out
    shown = certus("parse", "--model", model, "--confidences", "--json", train).out
    assert json.loads(shown.splitlines()[0])["confidences"]["seed"] == 1


def test_a_time_limit_that_leaves_a_tree_unproved_is_said(certus, tmp_path, monkeypatch):
    train, model = tmp_path / "train.conllu", tmp_path / "model"
    train.write_text("# sent_id = a1\n" + SENTENCE)
    small = "--order", "1", "--epochs", "1", "--bits", "12"
    assert certus("train", "parser", "--train", train, "--output", model, *small).code == 0
    assert "proved" not in certus("parse", "--model", model, "--time-limit", "9", train).err
    assert "time_limit is 0" in certus("parse", "--model", model, "--time-limit", "0", train).complaint
    found = Parser.decode

    def stopped(self, batch, *, time_limit):
        trees = found(self, batch, time_limit=time_limit)
        return replace(trees, bound=trees.score + 2, reason={0: f"{time_limit:g} s were up"})

    monkeypatch.setattr(Parser, "decode", stopped)
    ran = certus("parse", "--model", model, "--time-limit", "9", "--certificates", train)
    assert ran.code == 0
    assert ran.err.startswith("certus: sentence 1 (a1): not proved optimal, 9 s were up; a better tree could score ")
    assert "# certificate = dynamic program, not proved optimal\n# reason = 9 s were up\n# score = " in ran.out
    answer = json.loads(certus("parse", "--model", model, "--time-limit", "9", "--certificates", "--json", train).out)
    assert (answer["exact"], answer["reason"]) == (False, "9 s were up")
    assert answer["units"]["bound"] == answer["units"]["score"] + 2


def test_a_trained_parser_parses_files_and_text(certus, tmp_path):
    train = tmp_path / "train.conllu"
    train.write_text("# sent_id = a1\n" + SENTENCE * 3)
    model = tmp_path / "model"
    small = "--order", "1", "--epochs", "2", "--bits", "12"
    assert certus("train", "parser", "--train", train, "--output", model, "--tagger", *small).code == 0
    assert sorted(path.name for path in model.iterdir()) == ["parser.safetensors", "tagger.safetensors"]
    again = certus("parse", "--model", model, train)
    assert (again.code, again.out) == (0, train.read_text())
    text = certus("parse", "--model", model, "the dog barks")
    assert [line.split("\t")[6:8] for line in text.out.splitlines() if line] == [
        ["2", "det"],
        ["3", "nsubj"],
        ["0", "root"],
    ]
    described = certus("parse", "--model", model, "--json", train).out.splitlines()
    assert '"sent_id": "a1"' in described[0]
    assert len(described) == 3
    more = certus("parse", "--model", model, "--json", "--confidences", "--certificates", train)
    first = json.loads(more.out.splitlines()[0])
    assert first["exact"] is True
    assert first["score"] == first["bound"]
    assert first["score"] == first["units"]["score"] * first["units"]["unit"]
    assert first["scope"] == {"projective": True, "root": "single", "kept": first["scope"]["kept"], "arcs": 9}
    assert 3 <= first["scope"]["kept"] <= 9
    assert first["reason"] is None
    text = certus("parse", "--model", model, "--certificates", train).out
    for key in ("score", "bound", "model_digest", "problem_digest"):
        assert f"# {key} = {first[key]}\n" in text
    assert first["model_digest"] == library.load(model).parser.digest
    assert all(0 < token["confidence"] <= 1 for token in first["tokens"])


def test_the_number_of_threads_and_the_way_in_change_nothing(certus, tmp_path):
    train = tmp_path / "train.conllu"
    train.write_text(SENTENCE * 600)
    model = tmp_path / "model"
    small = "--order", "1", "--epochs", "1", "--bits", "12"
    assert certus("train", "parser", "--train", train, "--output", model, "--tagger", *small).code == 0
    outputs = {
        certus("parse", "--model", model, train, "--workers", "1").out,
        certus("parse", "--model", model, train, "--workers", "3").out,
        certus("parse", "--model", model, "--conllu", stdin=train.read_text()).out,
        certus("parse", "--model", model, "--conllu", stdin=train.read_text().replace("\n", "\r\n")).out,
    }
    assert outputs == {train.read_text()}
    ways = {
        certus("parse", "--model", model, "--lines", stdin="the dog\nbarks").out,
        certus("parse", "--model", model, stdin="the dog\n\nbarks").out,
        certus("parse", "--model", model, "--tokenised", stdin="the dog\nbarks\n").out,
    }
    assert len(ways) == 1
    assert ways.pop().count("\n\n") == 2


def test_a_missing_or_damaged_model_is_refused(certus, tmp_path):
    assert "no parser.safetensors" in certus("parse", "--model", tmp_path, "a dog").complaint
    (tmp_path / "parser.safetensors").write_bytes(b"nothing of the kind")
    assert "not a model file" in certus("parse", "--model", tmp_path, "a dog").complaint


UNTAGGED = SENTENCE.replace("\tDET\tDT", "\t_\t_").replace("\tNOUN\tNN", "\t_\t_").replace("\tVERB\tVBZ", "\t_\t_")


def test_what_training_makes_of_odd_input_is_said(certus, tmp_path, monkeypatch):
    train, dev, empty, untagged = (tmp_path / f"{name}.conllu" for name in ("train", "dev", "empty", "untagged"))
    train.write_text(SENTENCE * 3)
    dev.write_text(SENTENCE)
    empty.write_text("")
    untagged.write_text(UNTAGGED)
    model = tmp_path / "model"
    command = "train", "parser", "--output", model, "--order", "1", "--epochs", "9", "--bits", "12", "--train"
    assert "empty.conllu: holds no words" in certus(*command, train, "--dev", empty).complaint
    assert not model.exists()
    ran = certus(*command, train, "--dev", dev, "--resume")
    assert ran.code == 0
    assert f"{model / 'checkpoint.safetensors'}: there is no checkpoint to resume" in ran.err
    assert "trees: stopped after epoch 4; dev was best after epoch 1, which is kept." in ran.err
    assert 'every word has "_" in column upos' in certus(*command, untagged, "--dev", dev, "--tagger").complaint

    def stop(*_, **__):
        raise InvalidInput("enough.")

    monkeypatch.setattr("certus.cli.train_parser.train_parser", stop)
    for one, other, column in ((untagged, dev, "upos"), (dev, untagged, "xpos")):
        said = certus(*command, one, "--dev", other).err
        assert f"{untagged}: no word has a tag in column {column}, but words of {dev} do" in said
    assert certus(*command, untagged, "--dev", untagged).complaint == "certus: enough."


def test_a_tagger_that_no_longer_fits_goes_and_that_is_said(certus, tmp_path):
    (tmp_path / "train.conllu").write_text(SENTENCE * 3)
    model = tmp_path / "model"
    command = "train", "parser", "--train", tmp_path / "train.conllu", "--output", model
    small = "--order", "1", "--epochs", "1", "--bits", "12"
    assert certus(*command, *small, "--tagger").code == 0
    ran = certus(*command, *small)
    assert f"{model / 'tagger.safetensors'}: removed" in ran.err
    assert [path.name for path in model.iterdir()] == ["parser.safetensors"]
