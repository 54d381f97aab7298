"""JSON that round-trips scores exactly, and text files."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from certus.errors import FormatError
from certus.schema import in_file, parse_json
from certus.writing import write_atomically

T = TypeVar("T")


def floats_to_json(values: NDArray[np.float64]) -> Any:
    """Nested lists of floats; -inf, which JSON lacks, is written as the string "-inf"."""
    if values.ndim == 0:
        value = float(values)
        return value if np.isfinite(value) else str(value)
    if values.ndim == 1:
        return [v if np.isfinite(v) else str(v) for v in values.tolist()]
    return [floats_to_json(row) for row in values]


def write_text_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write a whole text file or nothing."""
    write_atomically(path, text.encode())


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write strict JSON atomically."""
    write_text_atomically(path, json.dumps(data, allow_nan=False, indent=None, separators=(",", ":")) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file; a truncated or malformed one is a FormatError that names the line."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FormatError(path, None, f"cannot be read: {error.strerror}.") from None
    return parse_json(data, path)


def load_json(path: str | os.PathLike[str], from_json: Callable[[Any], T]) -> T:
    """What ``from_json`` makes of a JSON file; where it says InvalidInput, a FormatError that names the file."""
    data = read_json(path)
    with in_file(path):
        return from_json(data)
