"""Compiled kernels for a wheel: ``python -m certus.shipping FOLDER [FEATURE ...]``.

Compiles all features of ``certus warmup``, or these, for the common kind of processor that ``certus.kernels.cache``
names, into a cache that is kept for the next time, and copies what is of the present sources into the folder, with a
manifest.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from certus import kernels
from certus.errors import CertusError, NotSupported
from certus.warmup import warm


def ship(folder: Path, kept: Path, features: Sequence[str] = ()) -> int:
    """Fill a folder with compiled kernels; returns how many bytes they are. ``kept`` is the cache."""
    cache = kernels.cache
    target = cache.machine()["target"]
    if not target or not cache.KNOWN:
        raise NotSupported("kernels can be shipped for x86-64 and aarch64, with a version of numba that is known.")
    variables = {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(kept)}
    for done in warm(features, variables=variables):
        if done.error:
            raise CertusError(f"{done.feature}, {done.call}: {done.error}")
        print(f"{done.feature}: {done.call}, {done.seconds:.1f} s", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = cache.pack(kept / "kernels", Path(cache.__file__).parent, folder)
    return sum(os.path.getsize(folder / name) for name in files)


if __name__ == "__main__":
    try:
        place = Path(sys.argv[1])
        size = ship(place, place.with_name(place.name + "-cache").absolute(), sys.argv[2:])
        print(f"{size / 1e6:.1f} MB of compiled kernels in {place}")
    except CertusError as error:
        print(f"certus: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, NotSupported) else 1)
