"""Checks of arrays at the public boundary, made once, before any kernel sees them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import inf, nan, prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from certus.errors import InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Kind = TypeVar("Kind")
_WHOLE = (int, np.integer)
_NUMERIC = "biufOSU"  # kinds of arrays that may hold numbers; objects and texts are tried
_LARGEST = 2**63 - 1  # of whole numbers
_MANY = 2**26  # cells, of which a copy may take more memory than there is
OBJECT = 16  # numbers that take as much memory as an array without any


def as_numbers(name: str, values: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Values as an array, not copied if they are one of that type already; InvalidInput says what to do if not."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in _NUMERIC or isinstance(values, np.ma.MaskedArray):
            raise _no_numbers(name, values)
        if dtype is not None and values.size > _MANY:
            check_memory(name, values.shape)
    try:
        return np.asarray(values, dtype=dtype)
    except OverflowError:
        raise InvalidInput(f"{name} holds a whole number beyond all of float64; scores are at most 1e280.") from None
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error)
        if "requires grad" in reason:
            raise InvalidInput(
                f"{name} is a tensor that requires grad, which numpy would cut off; ask certus.torch for answers with "
                f"gradients, or give {name}.detach()."
            ) from None
        if "BFloat16" in reason:
            raise InvalidInput(f"{name} is of type bfloat16, which numpy does not have; give {name}.float().") from None
        raise InvalidInput(f"{name} is not an array of numbers: {error}") from None


def check_memory(
    what: str, shape: Sequence[int], copies: int = 1, hint: str = "Give less at once, or what is left after pruning."
) -> None:
    """Raise InvalidInput, before anything is allocated, if float64 arrays of this shape cannot fit this machine."""
    need, have = 8 * copies * prod(shape), _memory()
    if need > 0.8 * have:
        raise InvalidInput(f"{what} takes {need / 2**30:.1f} GiB; this machine has {have / 2**30:.1f} GiB. {hint}")


@cache
def _memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**34


def _no_numbers(name: str, values: NDArray[Any]) -> InvalidInput:
    """Why an array is refused that numpy would take."""
    if isinstance(values, np.ma.MaskedArray):
        return InvalidInput(f"{name} is a masked array, whose mask would be lost; give {name}.filled(-np.inf).")
    what = "complex numbers" if values.dtype.kind == "c" else f"values of type {values.dtype}"
    return InvalidInput(f"{name} holds {what}; scores are real numbers.")


def as_scores(name: str, values: ArrayLike, shape: Sequence[int | None] | None = None) -> Floats:
    """Return values as a C-contiguous float64 array of scores: finite, or -inf to forbid a part.

    ``shape`` may hold None where any size will do. The caller's array is never written to; it is only copied
    when its type or layout asks for it.
    """
    return scores_and_highest(name, values, shape)[0]


def scores_and_highest(name: str, values: ArrayLike, shape: Sequence[int | None] | None = None) -> tuple[Floats, float]:
    """The same, and the greatest score: -inf if there is none."""
    array: Floats
    if type(values) is np.ndarray and values.dtype == np.float64 and values.flags.c_contiguous:
        array = values
    else:
        array = np.ascontiguousarray(as_numbers(name, values, np.float64))
    if shape is not None and array.shape != shape and not _fits(array.shape, shape):
        wanted = ", ".join("any" if e is None else str(e) for e in shape)
        raise InvalidInput(f"{name} has shape {array.shape}; expected ({wanted}).")
    # max() is nan if any cell is nan: one pass and no temporary for an array that is fine.
    highest = float(array.max()) if array.size else -np.inf
    if not highest < np.inf:
        bad = np.argwhere(~(array < np.inf))[0]
        cell = ", ".join(str(int(i)) for i in bad)
        value = array[tuple(bad)]
        raise InvalidInput(f"{name}[{cell}] is {value}; scores are finite, or -inf to forbid a part.")
    return array, highest


def _fits(shape: Sequence[int], expected: Sequence[int | None]) -> bool:
    return len(shape) == len(expected) and all(e is None or e == a for e, a in zip(expected, shape, strict=True))


def as_positive_int(name: str, value: object) -> int:
    """Return value as an int of at least 1."""
    return as_int(name, value, 1)


def as_bool(name: str, value: object) -> bool:
    """Return value as a bool; InvalidInput for what is merely taken for one, such as a text."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} is {shown(value)}; expected True or False.")
    return bool(value)


def as_wanted(k: object, size: int, items: int = 1) -> int:
    """How many structures are asked for, ``k`` of ``size`` numbers for each item; InvalidInput if they cannot fit."""
    wanted = as_positive_int("k", k)
    of_items = f" of each of {items} items" if items > 1 else ""
    check_memory(f"a list of k = {wanted} structures{of_items}", (max(items, 1), wanted, size), hint="Ask for fewer.")
    return wanted


def as_int(name: str, value: object, least: int) -> int:
    """Return value as an int of at least so much."""
    if isinstance(value, bool) or not isinstance(value, _WHOLE) or value < least:
        raise InvalidInput(f"{name} is {value!r}; expected a whole number of at least {least}.")
    if value > _LARGEST:
        raise InvalidInput(f"{name} is {value!r}; expected a whole number of at most {_LARGEST}.")
    return int(value)


def as_float(value: object) -> float:
    """A real number as float64, infinite beyond its range; nan for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return nan
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def one_of(name: str, value: object, allowed: Sequence[str]) -> str:
    """Return value if it is one of the allowed words."""
    if value not in allowed:
        raise InvalidInput(f"{name} is {value!r}; expected one of {', '.join(repr(a) for a in allowed)}.")
    return str(value)


def shown(value: object) -> str:
    """A value that is not what it should be, named in a few words."""
    if value is None or isinstance(value, bool | int | float | complex):
        return repr(value)
    if isinstance(value, str | bytes):
        text = repr(value)
        return f"the string {text if len(text) <= 60 else text[:50] + '...'}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, list | tuple | set | frozenset | dict):
        return f"a {type(value).__name__} of {len(value)}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def of_kind(name: str, value: Kind, kind: type | tuple[type, ...], expected: str) -> Kind:
    """Return value if it is of that kind; InvalidInput says what was expected, and how to make it, if not."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{name} is {shown(value)}; expected {expected}.")
    return value


def as_path(name: str, value: Any) -> str | os.PathLike[str]:
    """Return value if it may be the path of a file."""
    path: str | os.PathLike[str] = of_kind(name, value, (str, os.PathLike), 'the path of a file, such as "result.json"')
    return path


def as_seconds(name: str, value: Any) -> float | None:
    """Return value if it is a positive number, or None for no limit."""
    if value is None:
        return None
    seconds = as_float(value)
    if not seconds > 0:
        raise InvalidInput(f"{name} is {shown(value)}; expected a positive number of seconds, or None.")
    return seconds


def as_generator(seed: Any) -> np.random.Generator:
    """The random numbers that a seed stands for."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InvalidInput(f"seed is {shown(seed)}; expected a whole number of at least 0, or None.") from None


def as_penalties(penalties: Any) -> Mapping[str, Floats]:
    """Penalties by view; none for None."""
    if penalties is None:
        return {}
    return of_kind("penalties", penalties, Mapping, "arrays by the names of views, such as {'tags': array}")


def as_members(name: str, values: Any, expected: str) -> tuple[Any, ...]:
    """Values as a tuple; InvalidInput for a string, a mapping, or what holds no values at all."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name} is {shown(values)}; expected {expected}.")
    return tuple(values)


def as_words(name: str, words: Any) -> tuple[str, ...]:
    """A sentence as its words; InvalidInput for a string, a lattice, or anything else that is none."""
    if isinstance(words, str):
        raise InvalidInput(f"{name} is the string {words[:40]!r}; expected a list of words: split it first.")
    if isinstance(words, Mapping) or not isinstance(words, Iterable):
        raise InvalidInput(f"{name} is {type(words).__name__}; expected a list of words.")
    found = tuple(words)
    for k, word in enumerate(found):
        if not isinstance(word, str):
            hint = "" if np.isscalar(word) else " A lattice is read by certus.io.lattices.WordLattice."
            raise InvalidInput(f"{name}[{k}] is {shown(word)}; expected a list of words.{hint}")
    return found
