"""How kernels are compiled, where what was compiled is kept, and what it cost. Importing this imports numba."""

import hashlib
import re
import sys
import tempfile
import threading
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter, time
from typing import Any

_BEGUN = perf_counter()

import numba  # noqa: E402
from numba.core import config, event  # noqa: E402
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator  # noqa: E402
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import Compiler  # noqa: E402
from numba.misc.appdirs import AppDirs  # noqa: E402

STALE = 3600  # seconds; a temporary file of the cache lives for milliseconds, if nobody kills its owner


def _cache() -> str | None:
    """Where compiled kernels are kept; NUMBA_CACHE_DIR says, if set. None if no folder can be written to."""
    name = "kernels-bounds" if config.BOUNDSCHECK else "kernels"  # which numba does not see
    own = (Path(__file__).parent / "__pycache__" / name, Path(AppDirs("certus").user_cache_dir) / name)
    for place in [Path(config.CACHE_DIR, name)] if config.CACHE_DIR else own:
        with suppress(OSError):
            if config.CACHE_DIR or place.is_absolute():  # not so if there is no home: ~ stays ~
                place.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=place).close()
                return str(place)
    return None


CACHE: str | None = _cache()

_IMPORTED = re.compile(r"^from certus\.kernels(?:\.(\w+))? import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


@lru_cache
def _sources(path: Path) -> dict[str, bytes]:
    """The text of a module of kernels and of all that it calls into, by name."""
    found, pending = dict[str, bytes](), [path]
    while pending:
        source = pending.pop()
        if source.stem not in found and source.is_file():
            found[source.stem] = source.read_bytes()
            for module, *names in _IMPORTED.findall(found[source.stem].decode()):
                imported = [module] if module else re.findall(r"\w+", " ".join(names))
                pending += [path.with_name(f"{name}.py") for name in imported]
    return found


class _Locator(UserProvidedCacheLocator):
    """A folder named after a digest of the sources: numba sees a change in a kernel's own file, not in its callees'.

    It does not depend on where the sources lie, so that copies of the same kernels share what was compiled.
    """

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno
        digest = hashlib.blake2b(digest_size=8)
        for name, text in sorted(_sources(Path(file)).items()):
            digest.update(f"{name} {len(text)}\n".encode() + text)
        self._cache_path = str(Path(CACHE or "", f"{Path(file).stem}-{digest.hexdigest()}"))

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_Locator | None":
        return cls(function, file)


class _CacheFiles(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _Cache(FunctionCache):
    """The cache of certus, which other packages that use numba do not share."""

    _impl_class = _CacheFiles

    def save_overload(self, *overload: Any) -> None:
        with suppress(OSError):  # a full disk is no reason to stop: what was compiled can run
            _remove_leftovers(self.cache_path)
            super().save_overload(*overload)


class _Linked(JITCodeLibrary):
    """Code that is optimised, and turned into that of the machine, as a part of what calls it; not by itself before."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


# Kernels are compiled as parts by means that numba promises nothing of: with other versions than these each is compiled
# by itself, which takes longer and gives the same.
PARTS = not config.DISABLE_JIT and numba.__version__.rpartition(".")[0] in ("0.68",)


class _PartCompiler(Compiler):
    """Compiles a kernel as a part of those that call it: there is nothing that Python could run."""

    def define_pipelines(self) -> Any:
        """Said here, of this kernel alone: what numba compiles for it is compiled once more for each set of flags."""
        self.state.library = _Linked(self.state.targetctx.codegen(), "part")
        self.state.flags.no_cpython_wrapper = self.state.flags.no_compile = True
        return super().define_pipelines()


def njit(*, cache: bool = False, **options: Any) -> Any:
    """``numba.njit``; with ``cache=True`` what it compiles is kept in the cache of certus, if there is one.

    A kernel is compiled for Python only when Python calls it. What kernels call is a part of them, and optimised once,
    with them: numba would optimise it by itself first, and again in every kernel on the way up.
    """
    options["no_cfunc_wrapper"] = True
    cached = cache and CACHE is not None and not config.DISABLE_JIT

    def compiled(function: Any) -> Any:
        kernel = numba.njit(**options)(function)
        if cached:
            kernel._cache = _Cache(function)
        if PARTS:
            part = numba.njit(pipeline_class=_PartCompiler, **options)(function)
            part.add_overload = partial(_add_part, part)
            kernel.get_call_template, kernel.get_overload = part.get_call_template, part.get_overload
        return kernel

    return compiled


def _add_part(part: Any, compiled: Any) -> None:
    """Have kernels find what was compiled by its library, where numba has the address of its code."""
    library = compiled.library
    compiled.target_context.insert_user_function(library, compiled.fndesc, [library])
    part.overloads[tuple(compiled.signature.args)] = compiled._replace(entry_point=library)


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
