"""Where compiled kernels are kept, and how they are found again.

A kernel is looked up in two places. What came with the package, in the folder ``compiled`` beside this file, was
compiled for a common kind of processor: its manifest says for which, by which versions of Python, numba and llvmlite,
and has the digest of every file. Nothing is read from it if one of these is another, and nothing is unpickled whose
digest is not the one of the manifest. What this machine compiled is kept by numba's own means in a folder of the
user's. Neither is read if others can write to the folder: what it holds is run.

In both, folders are named after a digest of the sources of a kernel and of all that it calls into: no run sees stale
code, and copies of the same sources share what was compiled. This file is none of these sources.
"""

import hashlib
import io
import json
import os
import pickle
import re
import sys
import tempfile
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from time import time
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core import config
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserProvidedCacheLocator,
)
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime import rtsys
from numba.misc.appdirs import AppDirs

FORMAT = b"kernels 1"  # of the files, part of their digest
STALE = 3600  # seconds; a temporary file of the cache lives for milliseconds, if nobody kills its owner
SHIPPED = Path(__file__).parent / "compiled"
MANIFEST = "manifest.json"
# What the kernels of a package are compiled for, by the machine: a name of LLVM's, and what such a processor must have.
TARGETS = {
    "x86_64": ("x86-64-v3", ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")),
    "aarch64": ("generic", ()),
}
# Versions of numba whose insides are known here: with others all is left to numba.
KNOWN = not config.DISABLE_JIT and numba.__version__.rpartition(".")[0] in ("0.68",)


def private(path: Path) -> bool:
    """Whether only this user, or root, can write there; True where the system does not say."""
    if not hasattr(os, "geteuid"):
        return True
    found = path.stat()
    group = found.st_mode & 0o020 and found.st_gid != found.st_uid  # a group of the user alone has his number
    return found.st_uid in (0, os.geteuid()) and not group and not found.st_mode & 0o002


def user_folder() -> str | None:
    """Where kernels that were compiled here are kept; NUMBA_CACHE_DIR says, if set. None if no folder will do."""
    name = "kernels-bounds" if config.BOUNDSCHECK else "kernels"  # which numba does not see
    own = (Path(__file__).parent / "__pycache__" / name, Path(AppDirs("certus").user_cache_dir) / name)
    for place in [Path(config.CACHE_DIR, name)] if config.CACHE_DIR else own:
        with suppress(OSError):
            if config.CACHE_DIR or place.is_absolute():  # not so if there is no home: ~ stays ~
                place.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=place).close()
                if private(place):
                    return str(place)
    return None


FOLDER: str | None = user_folder()

_IMPORTED = re.compile(r"^from certus\.kernels(?:\.(\w+))? import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


@lru_cache
def sources(path: Path) -> dict[str, bytes]:
    """The text of a module of kernels and of all that it calls into, by name."""
    found, pending = dict[str, bytes](), [path]
    while pending:
        source = pending.pop()
        if source.stem not in (*found, "cache") and source.is_file():
            found[source.stem] = source.read_bytes()
            for module, *names in _IMPORTED.findall(found[source.stem].decode()):
                imported = [module] if module else re.findall(r"\w+", " ".join(names))
                pending += [path.with_name(f"{name}.py") for name in imported]
    return found


@lru_cache
def folder_of(path: Path) -> str:
    """The name of the folder of what a module of kernels was compiled to."""
    digest = hashlib.blake2b(FORMAT, digest_size=8)
    for name, text in sorted(sources(path).items()):
        digest.update(f"{name} {len(text)}\n".encode() + text)
    return f"{path.stem}-{digest.hexdigest()}"


# -- what came with the package ----------------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """What compiled kernels depend on beside their sources, as a manifest says it."""
    triple = llvm.get_process_triple()
    return {
        "python": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}",
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "triple": triple,
        "target": TARGETS.get(triple.partition("-")[0], ("",))[0],
    }


def _plain() -> bool:
    """Whether kernels are compiled as usual, for this processor, and may come from the package."""
    usual = not (config.BOUNDSCHECK or config.DISABLE_JIT or config.DEBUGINFO_DEFAULT or config.CPU_NAME)
    return KNOWN and usual and int(config.OPT) == 3 and os.environ.get("CERTUS_COMPILED", "1") != "0"


@cache
def manifest() -> dict[str, str]:
    """The files that came with the package, with their digests; none if they are not for this machine."""
    if not _plain():
        return {}
    try:
        with open(SHIPPED / MANIFEST, "rb") as stream:
            found = json.load(stream)
        name = llvm.get_process_triple().partition("-")[0]
        have = llvm.get_host_cpu_features() if name in TARGETS else {}
        fits = name in TARGETS and all(have.get(feature) for feature in TARGETS[name][1])
        if fits and found["machine"] == machine() and private(SHIPPED) and private(SHIPPED / MANIFEST):
            return dict(found["files"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none, or damaged: kernels are compiled
    return {}


def signature_digest(sig: Any) -> str:
    """A short name for the types of arguments; that they are the right ones is checked once more when it is loaded."""
    return hashlib.sha256(str(sig).encode()).hexdigest()[:16]


def _shipped(name: str) -> bytes | None:
    """The contents of a file that came with the package; None if it is missing, or not as the manifest has it."""
    wanted = manifest().get(name)
    if wanted is None:
        return None
    try:
        data = (SHIPPED / name).read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == wanted else None


def pack(kept: Path, package: Path, folder: Path) -> dict[str, str]:
    """Copy what was compiled for a target of TARGETS from a cache, one of ours, into a folder for a wheel.

    ``package`` has the sources of the kernels. Returns the files and their digests, which the manifest has too.
    """
    target = machine()
    files: dict[str, str] = {}
    for source in sorted(package.glob("*.py")):
        for index in sorted((kept / folder_of(source)).glob("*.nbi")):
            with open(index, "rb") as stream:
                version = pickle.load(stream)
                overloads = pickle.load(stream)[1] if version == numba.__version__ else {}
            for (sig, made_for, _), name in overloads.items():
                if made_for != (target["triple"], target["target"], ""):
                    continue
                data = (index.parent / name).read_bytes()
                placed = f"{index.parent.name}/{index.stem}.{signature_digest(sig)}"
                (folder / placed).parent.mkdir(parents=True, exist_ok=True)
                (folder / placed).write_bytes(data)
                files[placed] = hashlib.sha256(data).hexdigest()
    (folder / MANIFEST).write_text(json.dumps({"machine": target, "files": files}, indent=1))
    return files


# -- loading -----------------------------------------------------------------------------------------------------------


def _environment(modname: str, consts: Any, env_name: str) -> Any:
    """As numba has it, but without importing the module for its globals: compiled code never looks at them."""
    env = lookup_environment(env_name)
    if env is None:
        env = Environment({})
        env.consts[:] = consts
        env.env_name = env_name
        Environment._memo[env_name] = env
    return env


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _environment
        return super().find_class(module, name)


class _Files(IndexDataCacheFile):
    """The files of a kernel in the user's folder."""

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as stream:
            return _Unpickler(stream).load()


class _Locator(UserProvidedCacheLocator):
    """A folder named after a digest of the sources: numba sees a change in a kernel's own file, not in its callees'."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno
        self._cache_path = str(Path(FOLDER or "", folder_of(Path(file))))

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_Locator | None":
        return cls(function, file)

    def get_source_stamp(self) -> str:
        return Path(self._cache_path).name  # which has the digest


class _CompiledKernel(CompileResultCacheImpl):
    _locator_classes = (_Locator,)

    def reduce(self, compiled: Any) -> Any:
        """With the names alone of its functions beside the machine code, not what others could compile it from.

        Kernels that call it compile it from its source; what numba keeps for that is larger, and slow to load.
        """
        (name, kind, (code, shared)), described, *rest = compiled._reduce()
        if KNOWN:
            names = (described.llvm_func_name, described.llvm_cpython_wrapper_name)
            text = "\n".join(f'define void @"{name}"() {{ ret void }}' for name in names)
            shared = bytes(llvm.parse_assembly(text).as_bitcode())
        return ((name, kind, (code, shared)), described, *rest)


class KernelCache(FunctionCache):
    """What a kernel was compiled to. It is the cache of certus, which other packages that use numba do not share."""

    _impl_class = _CompiledKernel

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        place = self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        self._cache_file = (_Files if KNOWN else IndexDataCacheFile)(*place)
        self._enabled = FOLDER is not None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What came with the package, or was compiled here; None if it is in neither.

        numba would import all that its compiler knows before that, scipy among it, which takes longer than all else.
        """
        if not KNOWN:
            return super().load_overload(sig, target_context)
        rtsys.initialize(target_context)
        data = _shipped(f"{Path(self._cache_path).name}/{self._impl.filename_base}.{signature_digest(sig)}")
        if data is not None:
            found = self._impl.rebuild(target_context, _Unpickler(io.BytesIO(data)).load())
            if found.signature.args == tuple(sig):
                return found
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, *overload: Any) -> None:
        """Keep it; a full disk is no reason to stop, since what was compiled can run."""
        if self._enabled:
            with suppress(OSError):
                _remove_leftovers(self.cache_path)
                super().save_overload(*overload)


@lru_cache
def _remove_leftovers(folder: str) -> None:
    """Remove, once, temporary files of runs that were killed while they wrote there."""
    for path in Path(folder).glob("*.nb[ic].tmp.*"):
        with suppress(OSError):
            if time() - path.stat().st_mtime > STALE:
                path.unlink()
