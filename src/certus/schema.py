"""Data from files, checked field by field before anything is built from it: types, ranges, shapes, uniqueness.

A ``Field`` is a value and the place where it stands. Whatever it is not supposed to be is an InvalidInput that names
the place, so that no loader needs to catch what hostile data might raise further on:

    >>> (model,) = Field(parse_json('{"models": [{"bits": 99, "tags": ["N", "N"]}]}'))["models"].items()
    >>> model["bits"].whole(8, 28)
    Traceback (most recent call last):
    certus.errors.InvalidInput: models[0].bits is 99; expected a whole number 8..28.
    >>> model["tags"].names()
    Traceback (most recent call last):
    certus.errors.InvalidInput: models[0].tags[1] is 'N', which comes a second time; expected names, each once.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import inf, isfinite, prod
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from certus.errors import CertusError, FormatError, InvalidInput

T = TypeVar("T")
Shape = Sequence[int | None]  # None where any size will do
MOST = 2**31 - 1  # the largest number that counts, places and sizes may have
DEEPEST = 100  # steps from the top of a file to a value
_LINE_ENDS = "\t\n\r\0"


def parse_json(text: str | bytes, path: object = "the data") -> Any:
    """JSON with no key twice in one object, no endless digits and no endless nesting; else FormatError.

    NaN and infinities are read, so that the field that has one can say so.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(text, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        message = f"not valid JSON, or cut short: {error.msg} at column {error.colno}."
        raise FormatError(path, error.lineno, message) from None
    except InvalidInput as error:
        raise FormatError(path, None, str(error)) from None
    except UnicodeDecodeError as error:
        raise FormatError(path, None, f"not UTF-8 text (byte {error.start}).") from None
    except RecursionError:
        raise FormatError(path, None, "JSON nested too deeply.") from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise FormatError(path, None, "JSON with a whole number of thousands of digits.") from None


@contextmanager
def in_file(path: object) -> Iterator[None]:
    """Where the body says that something is wrong, a FormatError that names the file."""
    try:
        yield
    except FormatError:
        raise
    except CertusError as error:
        raise FormatError(path, None, str(error)) from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidInput(f"JSON with the key {shown(twice)} twice in one object.")
    return made


class Field:
    """A value out of a file, and where it stands: ``models[0].bits``."""

    __slots__ = ("_depth", "value", "where")

    def __init__(self, value: Any, where: str = "", depth: int = 0) -> None:
        self.value, self.where, self._depth = value, where, depth
        if depth > DEEPEST:
            raise InvalidInput(f"{where[:60]}...: nested too deeply; expected at most {DEEPEST} steps.")

    @classmethod
    def of(cls, data: Any, where: str) -> "Field":
        """The data as a field, unless it is one already, which then keeps its place."""
        return data if isinstance(data, Field) else cls(data, where)

    def fail(self, expected: str) -> NoReturn:
        """InvalidInput that says what the value is and what was expected."""
        raise InvalidInput(f"{self.where or 'the data'} is {shown(self.value)}; expected {expected}.")

    # -- objects and lists -----------------------------------------------------------------------------------------

    def object(self) -> dict[str, Any]:
        """The value, an object."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        return self.value

    def __contains__(self, name: str) -> bool:
        """Whether an object has something other than null under a name."""
        return self.object().get(name) is not None

    def __getitem__(self, name: str) -> "Field":
        """What an object has under a name; InvalidInput if it lacks it."""
        place = f"{self.where}.{name}" if self.where else name
        if name not in self.object():
            raise InvalidInput(f"{place} is missing; {self.where or 'the data'} lacks {name!r}.")
        return Field(self.value[name], place, self._depth + 1)

    def maybe(self, name: str) -> "Field | None":
        """The same; None where it is missing or null."""
        if name not in self:
            return None
        return self[name]

    def only(self, names: Sequence[str]) -> None:
        """No names but these."""
        for name in self.object():
            if name not in names:
                self[name].unknown(names)

    def unknown(self, names: Sequence[str]) -> NoReturn:
        """InvalidInput: there is no field of this name."""
        raise InvalidInput(f"{self.where[:80]} is unknown; expected {', '.join(names)} only.")

    def entries(self) -> Iterator[tuple[str, "Field"]]:
        """Names and values of an object."""
        for name, value in self.object().items():
            place = f"{self.where}[{shown(name)}]"
            yield Field(name, place).text(), Field(value, place, self._depth + 1)

    def items(self, size: int | None = None, least: int = 0) -> Iterator["Field"]:
        """The items of a list, ``size`` of them if it is given; checked at once, and made as they are asked for."""
        if not isinstance(self.value, list):
            self.fail("a list")
        found = len(self.value)
        if found < least or (size is not None and found != size):
            self.fail(f"{least} or more items" if size is None else f"{size} items")
        return (Field(item, f"{self.where}[{k}]", self._depth + 1) for k, item in enumerate(self.value))

    def format(self, name: str, version: int | None = None) -> "Field":
        """The field itself, an object that says its format and version."""
        place = self.where or "the data"
        if not isinstance(self.value, dict) or self.value.get("format") != name:
            raise InvalidInput(f'{place} is not a {name}: expected an object with "format": "{name}".')
        found = self.value.get("version")
        if version is not None and (type(found) is not int or found != version):
            raise InvalidInput(f"{place} has version {shown(found)} of the format; this certus reads {version}.")
        return self

    def made(self, build: Callable[[], T]) -> T:
        """What ``build`` makes of data from here; where it says that something is wrong, the place is said too."""
        try:
            return build()
        except CertusError as error:
            raise InvalidInput(f"{self.where}: {error}" if self.where else str(error)) from None

    # -- single values ---------------------------------------------------------------------------------------------

    def text(self) -> str:
        """A string; surrogates that are no characters are refused."""
        value = self.value
        if not isinstance(value, str):
            self.fail("a string")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise InvalidInput(f"{self.where!a} is {ascii(value)[:60]}; expected characters only.") from None
        return value

    def name(self) -> str:
        """A string that can stand in a column of a file: not empty, no tabs, no ends of lines."""
        value = self.text()
        if not value or any(c in value for c in _LINE_ENDS):
            self.fail("a name without tabs and ends of lines")
        return value

    def one_of(self, allowed: Sequence[str]) -> str:
        """One of the allowed words."""
        if not isinstance(self.value, str) or self.value not in allowed:
            self.fail(f"one of {', '.join(map(repr, allowed))}")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            self.fail("true or false")
        return self.value

    def whole(self, low: int = 0, high: int = MOST) -> int:
        """A whole number from low to high."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
            self.fail(f"a whole number {low}..{high}")
        return int(value)

    def number(self, low: float = -inf, high: float = inf) -> float:
        """A finite number from low to high."""
        value = as_float(self.value)
        if value is None or not isfinite(value) or not low <= value <= high:
            limits = "" if low == -inf and high == inf else f" {low:g}..{high:g}"
            self.fail(f"a finite number{limits}")
        return value

    def score(self, *, top: bool = False) -> float:
        """A finite number or minus infinity, which is written "-inf"; with ``top`` also "inf"."""
        value = as_float({"-inf": -inf, "inf": inf}.get(self.value) if isinstance(self.value, str) else self.value)
        if value is None or not (value < inf or (top and value == inf)):
            self.fail('a finite number or "-inf"')
        return value

    # -- many values -----------------------------------------------------------------------------------------------

    def texts(self) -> list[str]:
        """A list of strings."""
        if isinstance(self.value, list) and _are_texts(self.value):
            return list(self.value)
        return [item.text() for item in self.items()]

    def texts_by_name(self) -> dict[str, str]:
        """An object of strings."""
        if isinstance(self.value, dict) and _are_texts(self.value) and _are_texts(self.value.values()):
            return dict(self.value)
        return {name: text.text() for name, text in self.entries()}

    def names(self, least: int = 0) -> list[str]:
        """A list of names, each once."""
        found: dict[str, None] = {}
        for item in self.items(least=least):
            if item.name() in found:
                raise InvalidInput(
                    f"{item.where} is {shown(item.value)}, which comes a second time; expected names, each once."
                )
            found[item.value] = None
        return list(found)

    def wholes(self, low: int, high: int, shape: Shape = (None,)) -> NDArray[np.int64]:
        """An array of whole numbers from low to high, written as nested lists."""
        cells, found = self._cells(shape)
        if set(map(type, cells)) - {int} or (cells and (min(cells) < low or max(cells) > high)):
            k = next(k for k, x in enumerate(cells) if type(x) is not int or not low <= x <= high)
            self._cell(cells[k], k, found).fail(f"a whole number {low}..{high}")
        return np.array(cells, dtype=np.int64).reshape(found)

    def scores(self, shape: Shape) -> NDArray[np.float64]:
        """An array of scores, finite or "-inf", written as nested lists."""
        cells, found = self._cells(shape)
        if set(map(type, cells)) - {int, float}:
            cells = [-inf if x == "-inf" else x for x in cells]
        try:
            if set(map(type, cells)) - {int, float}:
                raise TypeError
            array = np.array(cells, dtype=np.float64)
        except (TypeError, OverflowError):
            k = next(k for k, x in enumerate(cells) if as_float(x) is None)
            self._cell(cells[k], k, found).fail('a finite number or "-inf"')
        if array.size and not array.max() < inf:  # the maximum is nan if any cell is
            k = int(np.argmax(~(array < inf)))
            self._cell(cells[k], k, found).fail('a finite number or "-inf"')
        return array.reshape(found)

    def numbers(self, shape: Shape) -> NDArray[np.float64]:
        """An array of finite numbers, written as nested lists."""
        array = self.scores(shape)
        if array.size and array.min() == -inf:
            k = int(np.argmin(array))
            self._cell(-inf, k, array.shape).fail("a finite number")
        return array

    def shaped(self) -> tuple[tuple[int, ...], "Field"]:
        """The shape of an array that is an object of "shape" and "values", all of them in one list; and the values."""
        shape = tuple(self["shape"].wholes(0, MOST).tolist())
        values = self["values"]
        if len(shape) > 10 or not isinstance(values.value, list) or len(values.value) != prod(shape):
            values.fail(f"a list of numbers for an array of shape {shape}")
        return shape, values

    def _cells(self, shape: Shape) -> tuple[list[Any], tuple[int, ...]]:
        """The cells of nested lists in one list, and the shape they have."""
        cells: list[Any] = [self.value]
        found: list[int] = []
        for size in shape:
            sizes = {len(x) if type(x) is list else -1 for x in cells} or {size or 0}
            if len(sizes) > 1 or -1 in sizes or size not in (None, *sizes):
                wanted = {size} if size is not None else {len(cells[0])} if type(cells[0]) is list else set()
                k = next(k for k, x in enumerate(cells) if type(x) is not list or len(x) not in wanted)
                axes = " x ".join("any" if k is None else str(k) for k in shape)
                self._cell(cells[k], k, tuple(found)).fail(f"a list, for an array of {axes} numbers")
            found += sizes
            cells = list(chain.from_iterable(cells))
        return cells, tuple(found)

    def _cell(self, value: Any, k: int, shape: tuple[int, ...]) -> "Field":
        place = "".join(f"[{i}]" for i in np.unravel_index(k, shape)) if shape else ""
        return Field(value, self.where + place)


def _are_texts(values: Collection[Any]) -> bool:
    """Whether all values are strings of characters; fast, for long lists."""
    if set(map(type, values)) - {str}:
        return False
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return False
    return True


def as_float(value: Any) -> float | None:
    """A number as float64; None for anything else, and for whole numbers beyond its range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def shown(value: Any) -> str:
    """A value in a message: short, whatever it is."""
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if type(value) is int and value.bit_length() > 64:
        return f"a whole number of {value.bit_length()} bits"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    if not text.isascii():
        text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
