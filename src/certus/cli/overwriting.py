"""Output that would go over the input is refused before anything is lost."""

import io
import os
import stat
import sys
from pathlib import Path
from typing import Any

from certus.errors import InvalidInput


def refuse_overwriting(output: Path, *inputs: Path | str | None) -> None:
    """InvalidInput if the output is one of the files to be read, under whatever name; devices may be both."""
    for given in inputs:
        if given is not None and _same_file(output, given):
            raise InvalidInput(f"{output}: the output would replace the input {given}; give it another name.")


def refuse_reading_output(name: str, source: Any) -> None:
    """InvalidInput if stdout goes to the file that is to be read, a path or an open file."""
    if _same_file(sys.stdout, source):
        raise InvalidInput(f"{name}: the output goes to the same file; send it to another one.")


def _same_file(a: Any, b: Any) -> bool:
    try:
        one, other = (os.stat(x if isinstance(x, str | os.PathLike) else x.fileno()) for x in (a, b))
    except (OSError, ValueError, AttributeError, io.UnsupportedOperation):
        return False
    return os.path.samestat(one, other) and not stat.S_ISCHR(one.st_mode)
