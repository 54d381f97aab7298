"""Output that would go over its input."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links of POSIX")


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text"
    path.write_text("a dog barks\na cat barks\n" * 3)
    return path


@pytest.mark.parametrize("kind", ["same", "symbolic link", "hard link"])
def test_output_onto_input_is_refused_under_any_name(certus, text, kind):
    output = text if kind == "same" else text.with_name("other")
    if kind == "symbolic link":
        output.symlink_to(text)
    elif kind == "hard link":
        output.hardlink_to(text)
    before = text.read_bytes()
    for command in (
        ("cluster", text, "--output", output),
        ("train", "lm", "--text", text, "--output", output),
        ("train", "grammar", "--treebank", text, "--output", output),
        ("train", "tagger", "--train", text, "--output", output),
        ("train", "tagger", "--hmm", "--train", text, "--output", output),
        ("constituents", text, "--save-result", output),
    ):
        assert "would replace the input" in certus(*command).complaint
    assert text.read_bytes() == before


def test_files_that_training_keeps_in_its_folder_are_no_input(certus, tmp_path):
    for name in ("tags.conllu", "checkpoint.safetensors"):
        (tmp_path / name).write_text("1\tyes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n\n")
        (tmp_path / "train.conllu").unlink(missing_ok=True)
        (tmp_path / "train.conllu").symlink_to(tmp_path / name)
        files = "--train", tmp_path / "train.conllu", "--output", tmp_path
        assert "would replace the input" in certus("train", "parser", *files).complaint


def test_output_goes_through_devices_and_links(certus, text):
    link, other = text.with_name("link"), text.with_name("model")
    link.symlink_to(other)
    assert certus("train", "lm", "--text", text, "--output", link, "--order", "1").code == 0
    assert (link.is_symlink(), other.read_text().split("\n")[0]) == (True, "\\data\\")
    assert certus("train", "lm", "--text", text, "--output", os.devnull, "--order", "1").code == 0
    ran = certus("train", "lm", "--text", text, "--output", "/dev/stdout", "--order", "1")
    assert ran.out == other.read_text()


def test_reading_the_file_that_is_being_written_is_refused(text, hmm):
    command = [sys.executable, "-m", "certus", "tag", "--tagger", str(hmm)]
    before = text.read_bytes()
    for arguments in ([str(text)], []):
        with open(text, "rb") as stdin, open(text, "ab") as stdout:
            ran = subprocess.run([*command, *arguments], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=60)
        assert (ran.returncode, text.read_bytes()) == (2, before)
        assert b"the output goes to the same file" in ran.stderr
