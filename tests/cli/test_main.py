"""The command line as a whole: help, version, usage errors, interrupts, broken pipes."""

import os
import signal
import subprocess
import sys

import pytest

from certus import __version__


def test_version(certus):
    ran = certus("--version")
    assert (ran.code, ran.out) == (0, f"certus {__version__}\n")


@pytest.mark.parametrize("arguments", [[], ["train"]])
def test_without_a_command_help_is_printed(certus, arguments):
    ran = certus(*arguments)
    assert ran.code == 0
    assert "Usage: certus" in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["parse", "--nonsense"],
        ["constituents", "--format", "picture"],
        ["constituents", "--max-iterations", "0"],
        ["verify"],
        ["train", "grammar"],
        ["train", "nonsense"],
        ["evaluate", "one-file"],
    ],
)
def test_wrong_usage_is_one_line(certus, arguments):
    assert certus(*arguments).complaint


def start(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
    # Started in the background, as tests may be, a process inherits that SIGINT is ignored.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from certus.cli import main; sys.exit(main())"
    return subprocess.Popen([sys.executable, "-c", code, *arguments], **options)


def test_a_reader_that_goes_away_is_no_error(hmm, tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("the dog barks\n" * 20_000)
    process = start("tag", "--tagger", str(hmm), str(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline().startswith(b"the/DET")
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait(timeout=120) == 141
    assert "Traceback" not in errors
    assert "Error" not in errors


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
def test_interrupt_ends_cleanly(hmm):
    process = start("tag", "--tagger", str(hmm), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"the dog barks\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"the/DET")  # it streams: the answer comes before the input ends
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Traceback" not in errors
