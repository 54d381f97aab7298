"""Commands whose streams are closed, full, of another encoding, or a terminal; and arguments that are no text."""

import io
import os
import subprocess
import sys

import pytest

from certus.cli import main
from certus.cli.streams import Terminal

HOSTILE = "a\x1b]0;title\x07 b\x9b31m c\x7f\x08\r"


def shell(script: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a line of sh, in which ``$C`` is certus and $1, $2 ... are the arguments."""
    return subprocess.run(
        ["sh", "-c", script, "sh", *map(str, arguments)],
        env=os.environ | {"C": f"{sys.executable} -m certus"} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )


posix = pytest.mark.skipif(os.name == "nt", reason="needs sh")


@posix
@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ("$C tag <&-", 2, b"stdin is closed"),
        ("$C --version >&-", 2, b"stdout is closed"),
        ("$C verify missing <&- >&- 2>&-", 2, b""),
        ("$C verify missing 2>/dev/full", 2, b""),
        ("$C --version >/dev/full", 2, b"No space left"),
    ],
)
def test_streams_that_are_closed_or_full_are_no_fault(script, code, says):
    if "full" in script and not os.path.exists("/dev/full"):
        pytest.skip("has no /dev/full")
    ran = shell(script)
    assert (ran.returncode, ran.stdout) == (code, b"")
    assert says in ran.stderr
    assert ran.stderr.count(b"\n") == bool(says)


@posix
def test_the_locale_changes_neither_what_is_read_nor_what_is_printed(hmm, tmp_path):
    (tmp_path / "text").write_text("hé ☃\n")
    ran = shell('$C tag --tagger "$1" "$2" "hé ☃"', hmm, tmp_path / "text", LC_ALL="C", PYTHONIOENCODING="ascii")
    said = [line for line in ran.stderr.splitlines() if not line.startswith(b"certus: compiling kernels")]
    assert (ran.returncode, said) == (0, [])
    first, second = ran.stdout.decode().splitlines()
    assert first == second
    assert [word.partition("/")[0] for word in first.split()] == ["hé", "☃"]


def test_closed_stdin_is_said_for_conllu_too(certus, hmm, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["tag", "--conllu"]) == 2
    assert "stdin is closed" in capfd.readouterr().err


def test_arguments_that_are_not_utf_8_are_refused_or_name_files(certus, hmm, tmp_path):
    broken = os.fsdecode(b"caf\xe9")
    assert "argument 1 is not UTF-8" in certus("tag", "--tagger", hmm, broken).complaint
    assert "not UTF-8" in certus("tag", "--tagger", hmm, "a\nb " + broken).complaint
    assert "cannot be read" in certus("verify", tmp_path / broken).complaint
    if os.name == "nt" or sys.platform == "darwin":
        return  # names of files are Unicode
    (tmp_path / broken).write_text("the dog")
    assert certus("tag", "--tagger", hmm, tmp_path / broken).out.startswith("the/")
    assert r"caf\udce9" in certus("tag", "--tagger", hmm, "--json", tmp_path / broken).out


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_control_characters_reach_files_but_no_terminal(certus, hmm, monkeypatch):
    arguments = "tag", "--tagger", str(hmm), "--tokenised"
    assert "a\x1b]0;title\x07/" in certus(*arguments, stdin=HOSTILE).out
    assert f"{HOSTILE}: cannot be read".split("\r")[0] in certus("verify", HOSTILE).err
    screen = Screen()
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, screen)
    certus(*arguments, stdin=HOSTILE)
    certus("verify", HOSTILE)
    certus("tag", "--tagger", HOSTILE)
    certus("constituents", "--format", HOSTILE)
    shown = screen.getvalue()
    assert r"a\x1b]0;title\x07/" in shown
    assert shown.count(r"\x1b") >= 4
    assert not set(shown) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))


def test_a_terminal_is_otherwise_as_it_was():
    screen = Screen()
    assert Terminal(screen).write("two\tcolumns\n\x1b") == 13
    assert screen.getvalue() == "two\tcolumns\n\\x1b"
    assert Terminal(screen).isatty()


def test_a_fault_of_certus_is_not_taken_for_an_answer(certus, monkeypatch, tmp_path):
    def broken(path):
        raise {"memory": MemoryError, "end": EOFError}.get(path.name, ZeroDivisionError)

    monkeypatch.setattr("certus.cli.verify.load_result", broken)
    ran = certus("verify", "file")
    assert (ran.code, ran.out) == (70, "")
    assert "Traceback" in ran.err
    assert "certus: ZeroDivisionError: a fault of certus" in ran.err
    assert certus("verify", "end").code == 70
    ran = certus("verify", "memory")
    assert (ran.code, ran.err) == (70, "certus: there is too little memory for this.\n")
