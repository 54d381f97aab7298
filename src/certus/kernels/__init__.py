"""Every compiled loop of certus, and nothing else. Importing this package imports numba."""

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import numba
from numba.core import config, event
from numba.misc.appdirs import AppDirs


def _cache() -> str:
    """Where compiled kernels are kept, unless NUMBA_CACHE_DIR says: a folder for each state of the sources.

    numba compiles a kernel again if its own file changes, not if that of a kernel it calls does; and it does not see
    whether bounds are checked.
    """
    here = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=6)
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    place = here / "__pycache__" if os.access(here, os.W_OK) else Path(AppDirs("certus").user_cache_dir)
    return str(place / f"kernels-{digest.hexdigest()}{'-bounds' if config.BOUNDSCHECK else ''}")


CACHE: str = config.CACHE_DIR or _cache()


def njit(**options: Any) -> Any:
    """``numba.njit`` with the cache of certus, which other packages that use numba do not share."""

    def compiled(function: Any) -> Any:
        others, config.CACHE_DIR = config.CACHE_DIR, CACHE
        try:
            return numba.njit(**options)(function)
        finally:
            config.CACHE_DIR = others

    return compiled


class _Announcer(event.Listener):
    """Says once, on stderr, that kernels are being compiled: a cold start is slow and should not look hung."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: event.Event) -> None:
        if not self.said:
            self.said = True
            print("certus: compiling kernels for this machine; this happens once.", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


event.register("numba:compile", _Announcer())
