"""Files of the translation formats: plain or gzip, numbers with errors that name the line."""

import gzip
import math
import os
import zlib
from pathlib import Path

from certus.errors import FormatError
from certus.writing import write_atomically


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes, decompressed if they are gzip; FormatError if it cannot be read or is cut short."""
    try:
        data = Path(path).read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(path, None, f"the gzip data is damaged or cut short: {error}.") from None
    except OSError as error:
        raise FormatError(path, None, f"cannot be read: {error.strerror}.") from None


def read_text(path: str | os.PathLike[str]) -> str:
    """The same as text."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise FormatError(path, None, f"not UTF-8 text (byte {error.start}).") from None


def write_maybe_gzip(path: str | os.PathLike[str], text: str) -> None:
    """Write a text, whole or not at all; gzip if the name ends in .gz."""
    data = text.encode()
    write_atomically(path, gzip.compress(data, 6, mtime=0) if str(path).endswith(".gz") else data)


def feature_number(path: object, line: int, name: str, value: str) -> float:
    """A feature value or weight as a finite number; FormatError otherwise."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(path, line, f"{name} is {value!r}; expected a finite number.")
    return number
