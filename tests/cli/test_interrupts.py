"""Ctrl-C while a kernel runs that will not end for a long time, on the command line and in a program."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from certus.threads import in_order, interruptible, long_call

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")

# Started in the background, as tests may be, a process inherits that SIGINT is ignored.
LISTEN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
ANNOUNCED = """
import sys
from certus.kernels import cky
viterbi = cky.viterbi
def announced(*arguments):
    print("kernel", flush=True)
    return viterbi(*arguments)
cky.viterbi = announced
"""
COMMAND = LISTEN + ANNOUNCED + "from certus.cli import main\nsys.exit(main())"
PROGRAM = (
    LISTEN
    + ANNOUNCED
    + """
import certus
from certus.data import demo_grammar
problem = certus.Constituency(demo_grammar(), open(sys.argv[1]).read().split())
try:
    problem.decode()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(3)
"""
)


@pytest.fixture
def sentence(tmp_path):
    """A sentence whose chart takes more than ten seconds."""
    path = tmp_path / "sentence.txt"
    path.write_text("the dog" + " saw the dog with the dog" * 500)
    return path


def interrupted(code, *arguments):
    """Exit code, output, messages, and seconds between the signal and the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "kernel\n", process.stderr.read()
        time.sleep(0.3)
        assert process.poll() is None
        sent = time.perf_counter()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err, time.perf_counter() - sent
    finally:
        process.kill()


def test_a_command_ends_within_two_seconds(sentence):
    command = "constituents", "--no-joint", "--tokenised"
    code, out, err, seconds = interrupted(COMMAND, *command, sentence)
    assert (code, out) == (130, "")
    assert [line for line in err.splitlines() if "compiling" not in line] == ["certus: interrupted."]
    assert seconds < 2


def test_a_program_gets_its_keyboard_interrupt_within_two_seconds(sentence):
    code, out, err, seconds = interrupted(PROGRAM, sentence)
    assert (code, out) == (3, "interrupted\n"), err
    assert seconds < 2


def test_a_command_that_was_told_to_ignore_interrupts_ignores_them(hmm):
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code = ignored + "import sys; from certus.cli import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "tag", "--tagger", str(hmm)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdin.write(b"the dog barks\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"the/DET")
    process.send_signal(signal.SIGINT)
    assert process.communicate(b"the dog\n", timeout=60)[0].startswith(b"the/DET")
    assert process.returncode == 0


def test_answers_and_errors_come_through():
    assert interruptible(lambda a, b: a + b, 1, 2) == 3
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)
    assert long_call(1.0, threading.current_thread) is threading.current_thread()
    assert long_call(1e12, threading.current_thread) is not threading.current_thread()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        interruptible(lambda: np.ones(1) / np.zeros(1))


def test_threads_that_are_left_behind_keep_nobody_waiting():
    code = (
        "import time; from certus.threads import in_order\n"
        "for done in in_order(lambda item: time.sleep(item), [0.0, 60.0, 60.0], 3): break\n"
    )
    start = time.perf_counter()
    assert subprocess.run([sys.executable, "-c", code], timeout=50).returncode == 0
    assert time.perf_counter() - start < 30


def test_an_error_on_a_thread_comes_in_its_turn():
    found = in_order(lambda k: 6 // k, [1, 2, 0, 3], 2)
    assert [next(found), next(found)] == [6, 3]
    with pytest.raises(ZeroDivisionError):
        next(found)
