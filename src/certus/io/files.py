"""Files that are read, plain or packed: the one place that opens, unpacks and decodes them, with a limit on bombs."""

import gzip
import io
import math
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from certus.errors import FormatError, InvalidInput
from certus.schema import MOST
from certus.writing import write_atomically

LIMIT = "CERTUS_UNPACK_LIMIT"  # the environment variable that holds the most bytes a packed file may become
MIN_LIMIT, MAX_RATIO = 1 << 28, 20  # without it: 256 MiB, or so many times the packed size if that is more
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def unpack_limit(packed: int) -> int:
    """The most bytes that a file of ``packed`` bytes may unpack to."""
    given = os.environ.get(LIMIT)
    if given is None:
        return max(MIN_LIMIT, MAX_RATIO * packed)
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise InvalidInput(f"the environment variable {LIMIT} is {given!r}; expected a number of bytes.")
    return int(given)


def _beyond(path: object, limit: int) -> FormatError:
    return FormatError(
        path,
        None,
        f"unpacks to more than {limit} bytes: damaged or hostile. If it is right, set the environment variable "
        f"{LIMIT} to the bytes it may take.",
    )


class _Zstd:
    """The bytes of zstd frames; EOFError if the last one is cut short, which the library's own reader does not say."""

    def __init__(self, packed: BinaryIO, frame: Callable[[], Any]) -> None:
        self._packed, self._new = packed, frame
        self._frame: Any = None
        self._rest = self._held = b""

    def read1(self, size: int) -> bytes:
        """Some bytes, as many at most; none at the end."""
        while not self._held:
            data = self._rest or self._packed.read(1024)  # which unpack to some 30 MB at most
            if not data:
                if self._frame is not None:
                    raise EOFError("it ends within a frame")
                return b""
            self._frame = self._frame or self._new()
            self._held = self._frame.decompress(data)
            self._rest = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = None
        data, self._held = self._held[:size], self._held[size:]
        return data


class _Unpacked(io.RawIOBase):
    """The bytes of a packed stream, as far as the limit."""

    def __init__(self, path: object, packed: BinaryIO, kind: str) -> None:
        self._path, self._kind = path, kind
        self._left = self._limit = unpack_limit(os.fstat(packed.fileno()).st_size)
        self._errors: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile)
        self._stream: Any
        if kind == "gzip":
            self._stream = gzip.GzipFile(fileobj=packed)
        else:
            try:
                import zstandard
            except ImportError:
                missing = "is packed with zstd, which needs zstandard: pip install 'certus[zstd]'."
                raise FormatError(path, None, missing) from None
            self._errors = (EOFError, zstandard.ZstdError)
            self._stream = _Zstd(packed, lambda: zstandard.ZstdDecompressor().decompressobj())

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read1(len(buffer))
        except self._errors as error:
            raise FormatError(self._path, None, f"the {self._kind} data is damaged or cut short: {error}.") from None
        self._left -= len(data)
        if self._left < 0:
            raise _beyond(self._path, self._limit)
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file's bytes as a stream, unpacked if they are gzip or zstd; FormatError if it cannot be read."""
    try:
        stream = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise FormatError(path, None, f"cannot be read: {error.strerror or error}.") from None
    except ValueError:
        raise FormatError(ascii(path), None, "cannot be read: there is a NUL in its name.") from None
    with stream:
        try:
            begins, name = stream.peek(4)[:4], os.fspath(path)
            kind = "gzip" if begins[:2] == _GZIP else "zstd" if begins == _ZSTD else None
            if kind is not None:
                yield cast(BinaryIO, io.BufferedReader(_Unpacked(path, stream, kind), 1 << 17))
            elif name.endswith(".gz"):
                raise FormatError(path, None, "not a gzip file, though its name ends in .gz.")
            elif name.endswith(".zst"):
                raise FormatError(path, None, "not a zstd file, though its name ends in .zst.")
            else:
                yield stream
        except OSError as error:
            raise FormatError(path, None, f"cannot be read: {error.strerror or error}.") from None


def text_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a text, each with its end; FormatError names the line that is not UTF-8."""
    with opened(path) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise FormatError(path, number, f"not UTF-8 text: {error.reason} at byte {error.start}.") from None


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes, unpacked if they are gzip; FormatError if it cannot be read or is damaged."""
    with opened(path) as stream:
        return stream.read()


def read_text(path: str | os.PathLike[str]) -> str:
    """The same as text."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise FormatError(path, None, f"not UTF-8 text (byte {error.start}).") from None


def unpacked(path: object, name: str, data: bytes) -> bytes:
    """The bytes behind zlib data that a file holds under a name, as far as the limit."""
    limit = unpack_limit(len(data))
    worker = zlib.decompressobj()
    try:
        out = worker.decompress(data, limit + 1)
    except zlib.error as error:
        raise FormatError(path, None, f"{name} is damaged: {error}.") from None
    if len(out) > limit:
        raise _beyond(path, limit)
    if not worker.eof:
        raise FormatError(path, None, f"{name} is damaged: its data end too soon.")
    return out


def write_maybe_gzip(path: str | os.PathLike[str], text: str) -> None:
    """Write a text, whole or not at all; gzip if the name ends in .gz."""
    data = text.encode()
    write_atomically(path, gzip.compress(data, 6, mtime=0) if str(path).endswith(".gz") else data)


def whole_number(text: str, path: object, line: int, limit: int = MOST) -> int:
    """The whole number that decimal digits spell; FormatError if it is more than ``limit``, however many they are."""
    digits = text.strip().lstrip("0") or "0"
    if len(digits) > 19 or int(digits) > limit:
        raise FormatError(path, line, f"the number {digits[:20]}{'...' * (len(digits) > 20)} is more than {limit}.")
    return int(digits)


def feature_number(path: object, line: int, name: str, value: str) -> float:
    """A feature value or weight as a finite number; FormatError otherwise."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(path, line, f"{name} is {value!r}; expected a finite number.")
    return number
