"""Every compiled loop of certus, and nothing else. Importing this package imports numba."""

import hashlib
import sys
import tempfile
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from time import perf_counter, time
from typing import Any

_BEGUN = perf_counter()

import numba  # noqa: E402
from numba.core import config, event  # noqa: E402
from numba.misc.appdirs import AppDirs  # noqa: E402

STALE = 3600  # seconds; a temporary file of the cache lives for milliseconds, if nobody kills its owner


def _cache() -> str | None:
    """Where compiled kernels are kept, unless NUMBA_CACHE_DIR says: a folder for each state of the sources.

    numba compiles a kernel again if its own file changes, not if that of a kernel it calls does; and it does not see
    whether bounds are checked. None if no folder can be written to: then nothing is kept.
    """
    here = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=6)
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()}{'-bounds' if config.BOUNDSCHECK else ''}"
    own = (here / "__pycache__" / name, Path(AppDirs("certus").user_cache_dir) / name)
    for place in [Path(config.CACHE_DIR)] if config.CACHE_DIR else own:
        with suppress(OSError):
            if config.CACHE_DIR or place.is_absolute():  # not so if there is no home: ~ stays ~
                place.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=place).close()
                return str(place)
    return None


CACHE: str | None = _cache()


def njit(**options: Any) -> Any:
    """``numba.njit`` with the cache of certus, which other packages that use numba do not share; or without any."""

    def compiled(function: Any) -> Any:
        if CACHE is None:
            return numba.njit(**options | {"cache": False})(function)
        others, config.CACHE_DIR = config.CACHE_DIR, CACHE
        try:
            kernel = numba.njit(**options)(function)
        finally:
            config.CACHE_DIR = others
        cache = getattr(kernel, "_cache", None)
        if cache is not None and cache.cache_path is not None:
            save = cache.save_overload

            def save_if_possible(*overload: Any) -> None:
                with suppress(OSError):  # a full disk is no reason to stop: what was compiled can run
                    _remove_leftovers(cache.cache_path)
                    save(*overload)

            cache.save_overload = save_if_possible
        return kernel

    return compiled


@lru_cache
def _remove_leftovers(folder: str) -> None:
    """Remove, once, temporary files of runs that were killed while they wrote there."""
    for path in Path(folder).glob("*.nb[ic].tmp.*"):
        with suppress(OSError):
            if time() - path.stat().st_mtime > STALE:
                path.unlink()


class _Announcer(event.Listener):
    """Says once, on stderr, that kernels are being compiled: a cold start is slow and should not look hung."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: event.Event) -> None:
        if not self.said and sys.stderr is not None:
            self.said = True
            once = "this happens once" if CACHE is not None else "set NUMBA_CACHE_DIR to a folder that can keep them"
            with suppress(OSError, ValueError):
                print(f"certus: compiling kernels for this machine; {once}.", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


class _Preparation(event.Listener, threading.local):
    """Seconds that this thread has spent on getting kernels ready: importing numba, compiling, loading, waiting."""

    def __init__(self) -> None:
        self.seconds, self.depth, self.begun = 0.0, 0, 0.0

    def on_start(self, event: event.Event) -> None:
        if not self.depth:
            self.begun = perf_counter()
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if not self.depth:
            self.seconds += perf_counter() - self.begun


preparation = _Preparation()
preparation.seconds = perf_counter() - _BEGUN
event.register("numba:compile", _Announcer())
event.register("numba:compiler_lock", preparation)
