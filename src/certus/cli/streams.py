"""What commands read from and print to: closed streams, other encodings, terminals, readers that went away."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, BinaryIO

from certus.errors import InvalidInput

# On a terminal a control character is a command: it moves the cursor, renames the window, types an answer. These are
# all of them but the end of a line and the tab.
CONTROLS = {c: f"\\x{c:02x}" for c in [*range(32), *range(127, 160)] if chr(c) not in "\n\t"}


@contextmanager
def usable_streams() -> Iterator[None]:
    """Stdout and stderr that can be printed to, until the end.

    Results are UTF-8, as all input is, whatever the locale says, but for a terminal; what cannot be encoded, such as a
    file name of other bytes, is printed as an escape. On a terminal control characters are printed as escapes too.
    Messages to a closed stderr are lost, results that should go to a closed stdout are an error.
    """
    _occupy_closed_descriptors()
    out: Any = _Closed() if sys.stdout is None else sys.stdout
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(encoding=None if out.isatty() else "utf-8", errors="backslashreplace")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        err: Any = nowhere if sys.stderr is None else sys.stderr
        with redirect_stdout(_shown(out)), redirect_stderr(_shown(err)):
            yield


def stdin_bytes() -> BinaryIO:
    """Stdin as bytes; InvalidInput if it is closed."""
    if sys.stdin is None:
        raise InvalidInput("stdin is closed, and there is no other input; give text or a file.")
    return sys.stdin.buffer


def terminal(stream: Any) -> Any:
    """What is behind a stream that makes escapes of control characters, for those who move the cursor on purpose."""
    return stream.stream if isinstance(stream, Terminal) else stream


def discard(stream: Any) -> None:
    """Nobody reads a stream any more, or its disk is full: lose what is in its buffer, now and at exit."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Terminal:
    """A text stream that prints control characters as escapes."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Print, with ``\\x1b`` for an escape character."""
        self.stream.write(text.translate(CONTROLS))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Closed(io.TextIOBase):
    """Stdout, if the process was started without one."""

    def write(self, text: str) -> int:
        raise InvalidInput("stdout is closed, so results have nowhere to go; open it, or send them to a file.")


def _shown(stream: Any) -> Any:
    return Terminal(stream) if stream.isatty() else stream


def _occupy_closed_descriptors() -> None:
    """Have no file that is opened later become descriptor 0, 1 or 2, which others may take for a standard stream."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)
