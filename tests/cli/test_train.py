"""certus train, and the models it writes in use."""

import json
import os
import re

import pytest

CONLLU = (
    "1\tthe\t_\tDET\tDT\t_\t2\tdet\t_\t_\n"
    "2\tdog\t_\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n"
    "3\tbarks\t_\tVERB\tVBZ\t_\t0\troot\t_\t_\n\n"
)


def test_grammar_and_tagger_from_one_treebank_parse_together(certus, treebank, tmp_path):
    grammar, tagger = tmp_path / "g.json", tmp_path / "t.json"
    ran = certus("train", "grammar", "--treebank", treebank, "--output", grammar)
    assert (ran.code, ran.out) == (0, "")
    assert "3 trees" in ran.err
    assert certus("train", "tagger", "--hmm", "--train", treebank, "--output", tagger).code == 0
    ran = certus("constituents", "--grammar", grammar, "--tagger", tagger, "a cat flies.")
    assert ran.out == "(TOP (S (NP (DT a) (NN cat)) (VP (VBZ flies)) (. .)))\n"
    assert certus("tag", "--tagger", tagger, "a cat flies.").out == "a/DT cat/NN flies/VBZ ./.\n"


def test_a_fallback_gives_every_sentence_a_tree(certus, treebank, tmp_path):
    grammar, odd = tmp_path / "g.json", "the dog"
    train = "train", "grammar", "--treebank", treebank, "--output", grammar
    assert certus(*train).code == 0
    assert "no tree" in certus("constituents", "--no-joint", "--grammar", grammar, odd).complaint
    assert certus(*train, "--fallback", "FRAG").code == 0
    assert "(FRAG " in certus("constituents", "--no-joint", "--grammar", grammar, odd).out


@pytest.mark.parametrize("kind", [["--hmm"], ["--bits", "10", "--epochs", "3"]], ids=["hmm", "linear"])
@pytest.mark.parametrize(("column", "tag"), [("upos", "NOUN"), ("xpos", "NN")])
def test_tagger_from_conllu(certus, tmp_path, column, tag, kind):
    (tmp_path / "train.conllu").write_text(CONLLU)
    output = tmp_path / "t.json"
    ran = certus("train", "tagger", *kind, "--train", tmp_path / "train.conllu", "--column", column, "--output", output)
    assert ran.code == 0
    assert f"dog/{tag}" in certus("tag", "--tagger", output, "the dog barks").out
    assert sorted(os.listdir(tmp_path)) == ["t.json", "train.conllu"]


def test_a_tagger_of_two_columns_fills_conllu(certus, tmp_path):
    (tmp_path / "train.conllu").write_text(CONLLU)
    output = tmp_path / "t.safetensors"
    columns = "--column", "upos", "--column", "xpos"
    train = "train", "tagger", "--train", tmp_path / "train.conllu", *columns, "--bits", "10", "--output", output
    assert certus(*train).code == 0
    bare = "\n".join("\t".join([*line.split("\t")[:3], "_", "_", *line.split("\t")[5:]]) if line else line
                     for line in CONLLU.split("\n"))  # fmt: skip
    (tmp_path / "bare.conllu").write_text(bare)
    assert certus("tag", "--tagger", output, "--format", "conllu", tmp_path / "bare.conllu").out == CONLLU
    answer = json.loads(certus("tag", "--tagger", output, "--json", "the dog barks").out)
    assert (answer["xpos"][1], answer["exact"]) == ("NN", True)
    assert "one column" in certus(*train, "--hmm").complaint


@pytest.mark.parametrize("what", ["grammar", "tagger"])
@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.mrg", "( (S (NP (N dogs)) (VP (V bark", "x.mrg:1"),
        ("x.mrg", "", "x.mrg: holds no"),
        ("x.mrg", "dogs bark", "x.mrg:1"),
        ("x.mrg.gz", "not gzip", "x.mrg.gz"),
        ("x.mrg", "( (S (NP (-NONE- *T*))) )", "x.mrg: holds no"),
    ],
)
def test_a_bad_treebank_is_refused_and_nothing_is_written(certus, tmp_path, what, name, text, says):
    (tmp_path / name).write_text(text)
    option = "--treebank" if what == "grammar" else "--train"
    ran = certus("train", what, option, tmp_path / name, "--output", tmp_path / "out.json")
    assert says in ran.complaint
    assert os.listdir(tmp_path) == [name]


def test_a_failed_write_keeps_the_old_file(certus, treebank, tmp_path, monkeypatch):
    output = tmp_path / "g.json"
    output.write_text("old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in certus("train", "grammar", "--treebank", treebank, "--output", output).complaint
    assert output.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["g.json", treebank.name]


def test_a_missing_treebank_is_refused(certus, tmp_path):
    ran = certus("train", "grammar", "--treebank", tmp_path / "missing.mrg", "--output", tmp_path / "g.json")
    assert "missing.mrg" in ran.complaint
    assert os.listdir(tmp_path) == []


def test_what_the_training_of_a_tagger_makes_of_odd_input_is_said(certus, tmp_path):
    train, dev, output = tmp_path / "train.conllu", tmp_path / "dev.conllu", tmp_path / "tagger"
    train.write_text(CONLLU)
    command = "train", "tagger", "--train", train, "--output", output, "--bits", "10", "--epochs", "9", "--dev", dev
    dev.write_text("\n")
    assert "dev.conllu: holds no words" in certus(*command).complaint
    dev.write_text(CONLLU)
    ran = certus(*command, "--resume")
    assert ran.code == 0
    assert f"{output}.checkpoint: there is no checkpoint to resume" in ran.err
    stopped = re.search(r"upos: stopped after epoch (\d); dev was best after epoch (\d), which is kept\.", ran.err)
    assert int(stopped[1]) == int(stopped[2]) + 4
    lines = [line.split("\t") for line in CONLLU.splitlines()]
    dev.write_text("\n".join("\t".join([*c[:4], "_", *c[5:]]) if len(c) > 1 else c[0] for c in lines) + "\n")
    assert 'every word has "_" in column xpos' in certus(*command, "--column", "xpos").complaint


@pytest.mark.skipif(os.name == "nt", reason="devices of POSIX")
def test_a_tagger_for_a_device_leaves_no_checkpoint_beside_it(certus, tmp_path):
    (tmp_path / "train.conllu").write_text(CONLLU)
    (tmp_path / "null").symlink_to(os.devnull)
    command = "train", "tagger", "--train", tmp_path / "train.conllu", "--bits", "10", "--epochs", "1"
    assert certus(*command, "--output", tmp_path / "null").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["null", "train.conllu"]
