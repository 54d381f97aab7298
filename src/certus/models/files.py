"""Model files: named arrays and a JSON description in one safetensors file; nothing in them is ever executed."""

import json
import os
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from certus.errors import FormatError
from certus.schema import Field, Shape, parse_json, shown
from certus.writing import write_atomically

Arrays = Mapping[str, NDArray[Any]]
_TYPES = {"I8": np.int8, "U8": np.uint8, "I16": np.int16, "U16": np.uint16, "F32": np.float32, "F64": np.float64}


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


class Stored:
    """The arrays of a model file, each to be asked for by its name, type and shape."""

    def __init__(self, path: str | os.PathLike[str], arrays: dict[str, NDArray[Any]]) -> None:
        self.path = path
        self._arrays = arrays

    def names(self, prefix: str) -> list[str]:
        """The names that begin with a prefix, without it."""
        return [name.removeprefix(prefix) for name in self._arrays if name.startswith(prefix)]

    def array(self, name: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        """An array of finite numbers; FormatError if there is none of this type and shape."""
        found = self._arrays.get(name)
        wanted = f"{np.dtype(dtype)}[{', '.join('any' if size is None else str(size) for size in shape)}]"
        if found is None:
            raise FormatError(self.path, None, f"the array {name} is missing; expected {wanted}.")
        fits = len(shape) == found.ndim and all(s in (None, k) for s, k in zip(shape, found.shape, strict=True))
        if not fits or found.dtype != dtype:
            at = f"{found.dtype}[{', '.join(map(str, found.shape))}]"
            raise FormatError(self.path, None, f"{name} is {at}; expected {wanted}.")
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise FormatError(self.path, None, f"{name} holds a number that is not finite; the file is damaged.")
        return found

    def wholes(self, name: str, dtype: DTypeLike, shape: Shape, low: int, high: int) -> NDArray[Any]:
        """An array of whole numbers from low to high."""
        found = self.array(name, dtype, shape)
        if found.size and not (low <= int(found.min()) and int(found.max()) <= high):
            k = np.unravel_index(int(np.argmax((found < low) | (found > high))), found.shape)
            place = "".join(f"[{i}]" for i in k)
            raise FormatError(self.path, None, f"{name}{place} is {found[k]}; expected {low}..{high}.")
        return found


def load_model(path: str | os.PathLike[str], kind: str, version: int) -> tuple[Field, Stored]:
    """The description and the arrays of a model file; FormatError if it is cut short, or of another kind or version.

    What they hold is for the caller to check, every field of it, before a kernel sees a number.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {}
            for name in file.keys():  # noqa: SIM118
                found = file.get_slice(name).get_dtype()
                if found not in _TYPES:
                    raise FormatError(path, None, f"{shown(name)} is of type {found}; expected {', '.join(_TYPES)}.")
                arrays[name] = file.get_tensor(name)
    except FormatError:
        raise
    except (SafetensorError, ValueError) as error:
        raise FormatError(path, None, f"not a model file, or cut short: {error}.") from None
    except OSError as error:
        raise FormatError(path, None, f"cannot be read: {error.strerror or error}.") from None
    header = metadata.get("certus")
    description = {} if header is None else parse_json(header, path)
    if not isinstance(description, dict) or "kind" not in description:
        raise FormatError(path, None, f"not a model of certus; expected a {kind}.")
    if description["kind"] != kind:
        raise FormatError(path, None, f"holds {shown(description['kind'])}; expected a {kind}.")
    found = description.get("version")
    if type(found) is not int or found != version:
        raise FormatError(
            path, None, f"a {kind} of version {shown(found)}; this certus reads {version}. Train it again."
        )
    config = Field(description.get("config"), "config")
    if not isinstance(config.value, dict):
        raise FormatError(path, None, f"config is {shown(config.value)}; expected an object.")
    return Field(config.value), Stored(path, arrays)


def template_digest(lines: Iterable[str]) -> str:
    """What tells templates apart: a model that was trained with others would read its weights for other features."""
    return blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def check_templates(config: Field, digest: str) -> None:
    """InvalidInput unless the model was trained with the templates that this certus has."""
    if config["templates"].text() != digest:
        config["templates"].fail(
            f"{digest}, the templates of this certus: the model was trained with others. Train it again, or use the "
            "certus that made it"
        )
