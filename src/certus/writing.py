"""The one way files are written: whole or not at all, through links, and into devices and pipes as they are.

A regular file is written beside its place, under a name of its own, and then renamed. While it is being written it is
locked: one that is not locked was left by a run that was killed, and the next one that writes there removes it.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from certus.checks import as_path
from certus.errors import FormatError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked, and nothing removed
    fcntl = None  # type: ignore[assignment]

_TEMPORARY = re.compile(r"\.certus-[0-9a-f]{16}\.tmp")
_unfinished: set[Path] = set()  # temporary files of this process


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file or nothing; what a link points to is replaced, a device or a pipe is written to.

    A file that is replaced keeps its permissions. FormatError if it cannot be written.
    """
    try:
        target = _replaceable(Path(as_path("path", path)))
        if target is None:
            with open(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as stream:
                stream.write(data)
        else:
            with _replacing(target) as stream:
                stream.write(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FormatError(path, None, f"cannot be written: {error.strerror or error}.") from None


def discard_unfinished() -> None:
    """Remove the temporary files of this process, which is about to end."""
    for temporary in list(_unfinished):
        with suppress(OSError):
            temporary.unlink()


def _replaceable(path: Path) -> Path | None:
    """The file at the end of any symbolic links, there or not; None for what is no regular file, or an open one."""
    for _ in range(40):  # as many links as Linux follows
        folder = Path(os.path.realpath(path.parent))
        if folder.name == "fd" and folder.parts[1] in ("proc", "dev"):  # /dev/stdout, /dev/fd/3
            return None
        if not path.is_symlink():
            break
        path = folder / path.readlink()
    with suppress(FileNotFoundError):
        return path if stat.S_ISREG(path.stat().st_mode) else None
    return path


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream to write a file by, which is in its place when all is written, or not at all. FormatError as above."""
    try:
        target = _replaceable(Path(path))
        if target is None:
            raise OSError(EINVAL, "is no regular file")
        with _replacing(target) as stream:
            yield stream
    except OSError as error:
        raise FormatError(path, None, f"cannot be written: {error.strerror or error}.") from None


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    _remove_leftovers(Path(os.path.realpath(target.parent)))
    handle, temporary = _new_file(target.parent)
    try:
        with open(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(handle)
            with suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            if fcntl is not None:  # while it is locked
                os.replace(temporary, target)
        if fcntl is None:  # an open file cannot be renamed
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        _unfinished.discard(temporary)


def _new_file(folder: Path) -> tuple[int, Path]:
    """A temporary file, open and locked."""
    while True:
        temporary = folder / f".certus-{token_hex(8)}.tmp"
        _unfinished.add(temporary)
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except BaseException:
            _unfinished.discard(temporary)
            raise
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks: others cannot lock it either, and leave it alone
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, temporary
        os.close(handle)  # taken for a leftover before it was locked
        _unfinished.discard(temporary)


@lru_cache
def _remove_leftovers(folder: Path) -> None:
    """Remove, once, what runs of this user left in a folder when they were killed: nobody holds its lock."""
    if fcntl is None:
        return
    with suppress(OSError):
        names = [name for name in os.listdir(folder) if _TEMPORARY.fullmatch(name)]
        for name in names:
            with suppress(OSError):
                handle = os.open(folder / name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    found = os.fstat(handle)
                    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        os.unlink(folder / name)
                finally:
                    os.close(handle)
