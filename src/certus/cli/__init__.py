"""The command line: parses arguments, calls the public API, prints. One file per command.

Results go to stdout, progress and messages to stderr. Exit codes: 0 done, 1 the answer is no (``verify``) and nothing
else, 2 bad input or usage, with one line that says where and what to do, 70 a fault of certus itself or too little
memory, 130 interrupted, 141 the reader of our output went away. Numba and scipy are imported when a command needs them.
"""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import NoReturn

from certus.cli.app import run
from certus.cli.messages import FAULT, INTERRUPTED, READER_GONE, complain, say
from certus.cli.progress import stop
from certus.cli.streams import discard, usable_streams
from certus.errors import CertusError
from certus.threads import interruptible
from certus.writing import discard_unfinished


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    The command runs on a thread of its own, so that Ctrl-C is answered while a kernel runs: then the process ends at
    once, if it was started for this command; who passes arguments gets the KeyboardInterrupt.
    """
    with usable_streams():
        try:
            code = interruptible(_run, arguments)
        except KeyboardInterrupt:
            if arguments is not None:
                raise
            _leave()
    if arguments is None and "torch" in sys.modules:  # which may abort where our idle threads outlive it
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    """The exit code of a command, when all of its results are on their way."""
    code = _answered(arguments)
    if code == READER_GONE:
        discard(sys.stdout)
        return code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        return READER_GONE
    except OSError as error:
        discard(sys.stdout)
        return code or complain(f"stdout: {error.strerror or error}.")
    return code


def _answered(arguments: Sequence[str] | None) -> int:
    """The exit code of a command; what went wrong is said."""
    try:
        return run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:
        return READER_GONE
    except CertusError as error:
        return complain(str(error))
    except UnicodeDecodeError as error:
        return complain(f"the input is not UTF-8 text ({error.reason} at byte {error.start}).")
    except UnicodeEncodeError as error:
        return complain(f"an argument is not UTF-8 text: {error.object[error.start : error.end]!a} is no character.")
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return complain(f"{where}{error.strerror or error}.")
    except MemoryError:
        return complain("there is too little memory for this.", FAULT)
    except Exception as error:
        say(traceback.format_exc().rstrip())
        return complain(f"{type(error).__name__}: a fault of certus, not of the input. Please report it.", FAULT)


def _leave() -> NoReturn:
    """End the process now, whatever its other threads are at."""

    def last_words() -> None:
        stop()
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        complain("interrupted.")

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # for who cannot wait
    discard_unfinished()
    speaker = Thread(target=last_words, daemon=True)
    speaker.start()
    speaker.join(1.0)  # the reader of a pipe may not read
    os._exit(INTERRUPTED)
