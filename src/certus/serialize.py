"""JSON that round-trips scores exactly, and text files."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from certus.checks import as_path
from certus.errors import FormatError, NotSupported
from certus.schema import Field, in_file, parse_json
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
        data = Path(as_path("path", path)).read_bytes()
    except OSError as error:
        raise FormatError(path, None, f"cannot be read: {error.strerror}.") from None
    return parse_json(data, path)


def load_json(path: str | os.PathLike[str], from_json: Callable[[Any], T]) -> T:
    """What ``from_json`` makes of a JSON file; where it says InvalidInput, a FormatError that names the file."""
    data = read_json(path)
    with in_file(path):
        return from_json(data)


def plain_to_json(value: Any, where: str, inner: Callable[[Any], Any] = lambda value: None) -> Any:
    """Plain data as JSON that keeps its types: numbers, text, arrays, lists, tuples and dicts of these, or None.

    ``inner`` turns what else there may be into JSON, and gives None for what it does not know.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        numbers = (
            floats_to_json(value.reshape(-1).astype(np.float64))
            if value.dtype.kind == "f"
            else value.reshape(-1).tolist()
        )
        return {"array": value.dtype.kind, "shape": list(value.shape), "values": numbers}
    if isinstance(value, list | tuple):
        items = [plain_to_json(x, f"{where}[{k}]", inner) for k, x in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"dict": {name: plain_to_json(x, f"{where}[{name!r}]", inner) for name, x in value.items()}}
    found = inner(value)
    if found is None:
        raise NotSupported(
            f"{where} is {type(value).__name__}; numbers, text, arrays, problems, and lists, tuples and dicts of them "
            "are saved by default. Write to_json() and from_json() of your own."
        )
    return {"problem": found}


def plain_from_json(given: Field, inner: Callable[[Any], Any] | None = None) -> Any:
    """What plain_to_json described; InvalidInput for anything else."""
    if isinstance(given.value, list):
        return [plain_from_json(x, inner) for x in given.items()]
    if not isinstance(given.value, dict):
        return given.value
    if "tuple" in given:
        return tuple(plain_from_json(x, inner) for x in given["tuple"].items())
    if "dict" in given:
        return {name: plain_from_json(x, inner) for name, x in given["dict"].entries()}
    if "float" in given:
        return float(given["float"].one_of(("inf", "-inf", "nan")))
    if "array" in given:
        kind = given["array"].one_of(("f", "i", "u", "b"))
        shape, values = given.shaped()
        if kind == "f":
            return values.scores((None,)).reshape(shape)
        if kind == "b":
            return np.array([x.flag() for x in values.items()], dtype=bool).reshape(shape)
        return values.wholes(-(1 << 63), (1 << 63) - 1).reshape(shape)
    if "problem" in given and inner is not None:
        return inner(given["problem"])
    return given.fail("plain data")
