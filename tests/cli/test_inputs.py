"""Reading lines and sentences from text, files and stdin."""

import io
import sys
from types import SimpleNamespace

import pytest

from certus.cli.inputs import Line, read_lines
from certus.errors import CertusError


def test_files_text_and_stdin_can_be_mixed(tmp_path, monkeypatch):
    path = tmp_path / "in.txt"
    path.write_text("\ufeffa b\n\nc\n", encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"d\n"), isatty=lambda: False))
    lines = list(read_lines([str(path), "e f", "-"], tokenised=True))
    assert lines == [
        Line(str(path), 1, ["a", "b"]),
        Line(str(path), 2, []),
        Line(str(path), 3, ["c"]),
        Line("argument 2", 1, ["e", "f"]),
        Line("stdin", 1, ["d"]),
    ]


def test_no_input_means_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a b"), isatty=lambda: False))
    assert [line.words for line in read_lines([], tokenised=True)] == [["a", "b"]]


@pytest.mark.parametrize("name", ["missing.txt", "some/where", "a.conllu"])
def test_a_missing_file_is_not_taken_for_a_sentence(name):
    with pytest.raises(CertusError, match="no such file"):
        list(read_lines([name], tokenised=True))


@pytest.mark.parametrize("text", ["Stop", "Stop!", "the end.", "x" * 5000, "and/or not", ""])
def test_a_sentence_is_not_taken_for_a_missing_file(text):
    assert [line.words for line in read_lines([text], tokenised=True)] == [text.split()]


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(CertusError, match="folder"):
        list(read_lines([str(tmp_path)], tokenised=True))


@pytest.mark.parametrize(
    ("garbage", "says"), [(b"fine\n\xff\xfe\x00", ":2: not UTF-8"), (b"a\0b\n", ":1: holds a NUL")]
)
def test_binary_garbage_is_refused_with_its_line(tmp_path, garbage, says):
    path = tmp_path / "garbage"
    path.write_bytes(garbage)
    with pytest.raises(CertusError, match=says):
        list(read_lines([str(path)], tokenised=True))
