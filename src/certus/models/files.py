"""Model files: named arrays and a JSON description in one safetensors file; nothing in them is ever executed."""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus.errors import FormatError
from certus.writing import write_atomically

Arrays = Mapping[str, NDArray[Any]]


def save_model(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    config: Mapping[str, Any],
    arrays: Arrays,
    *,
    pair: str | None = None,
) -> None:
    """Write a model file: all of it or nothing. ``pair`` is the same in models that were made for each other."""
    from safetensors.numpy import save

    # One key only: several would be written in an order that differs from run to run.
    description = {"kind": kind, "version": version, "config": config} | ({} if pair is None else {"pair": pair})
    data = save(dict(arrays), metadata={"certus": json.dumps(description, ensure_ascii=False, allow_nan=False)})
    write_atomically(path, data)


def pair_of(path: str | os.PathLike[str]) -> str | None:
    """What a model file has in common with the one it was made for; None if there is none, or no such file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            pair = json.loads(file.metadata()["certus"])["pair"]
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return pair if isinstance(pair, str) else None


def load_model(path: str | os.PathLike[str], kind: str, version: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a model file; FormatError if it is cut short, of another kind or version, or holds a NaN."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError) as error:
        raise FormatError(path, None, f"not a model file, or cut short: {error}.") from None
    except OSError as error:
        raise FormatError(path, None, f"cannot be read: {error.strerror or error}.") from None
    try:
        found = json.loads(metadata["certus"])
        config = found["config"]
    except (KeyError, TypeError, json.JSONDecodeError):
        raise FormatError(path, None, f"not a model of certus; expected a {kind}.") from None
    if found.get("kind") != kind:
        raise FormatError(path, None, f"holds {found.get('kind')!r}; expected a {kind}.")
    if found.get("version") != version:
        raise FormatError(
            path, None, f"a {kind} of version {found.get('version')}; this certus reads {version}. Train it again."
        )
    if not isinstance(config, dict):
        raise FormatError(path, None, "has no readable description; the file is damaged.")
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise FormatError(path, None, f"{name} holds a number that is not finite; the file is damaged.")
    return config, arrays
