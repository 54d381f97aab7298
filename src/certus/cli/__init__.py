"""The command line: parses arguments, calls the public API, prints. One file per command.

Results go to stdout, progress and messages to stderr. Exit codes: 0 done, 1 the answer is no (``verify``), 2 bad input
or usage, with one line that says where and what to do, 130 interrupted, 141 the reader of our output went away.
Nothing heavy is imported until a command runs.
"""

import os
import sys
from collections.abc import Sequence

from certus.errors import CertusError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    import typer

    from certus.cli.app import app

    try:
        code = app(args=arguments, prog_name="certus", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        _discard_output()
        return 141
    except CertusError as error:
        return complain(str(error))
    except UnicodeDecodeError as error:
        return complain(f"the input is not UTF-8 text ({error.reason} at byte {error.start}).")
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return complain(f"{where}{error.strerror or error}.")
    except Exception as error:
        usage = getattr(error, "format_message", None)  # typer's usage errors, under any version's class names
        if usage is None:
            raise
        return complain(usage())
    return int(code or 0)


def complain(message: str) -> int:
    """One line on stderr; returns the exit code for bad input."""
    print("certus: " + " ".join(message.split()), file=sys.stderr, flush=True)
    return 2


def _discard_output() -> None:
    """Nobody reads stdout any more: keep Python from complaining when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
