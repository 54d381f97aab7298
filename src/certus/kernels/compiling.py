"""How kernels are compiled, and what it cost. Importing this imports numba; ``cache.py`` says where they are kept."""

import sys
import threading
from contextlib import suppress
from functools import cached_property, partial
from time import perf_counter
from typing import Any

_BEGUN = perf_counter()

import numba  # noqa: E402
from numba.core import config, event  # noqa: E402
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import Compiler  # noqa: E402

import certus.kernels.cache as kept  # noqa: E402

# Kernels are compiled as parts by means that numba promises nothing of: with versions that are not known each is
# compiled by itself, which takes longer and gives the same.
PARTS = kept.KNOWN


class _Linked(JITCodeLibrary):
    """Code that is optimised, and turned into that of the machine, as a part of what calls it; not by itself before."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _LinkedHot(_Linked):
    """The same, rid of the counting of references to arrays that a loop in the caller would pay for at every call."""

    def _optimize_final_module(self) -> None:
        options = {"loop_vectorize": False, "slp_vectorize": False, "opt": 1, "cost": "cheap"}
        passes, builder = self._codegen._module_pass_manager(**options)
        passes.run(self._final_module, builder)


class _PartCompiler(Compiler):
    """Compiles a kernel as a part of those that call it: there is nothing that Python could run."""

    library: type[_Linked] = _Linked

    def define_pipelines(self) -> Any:
        """Said here, of this kernel alone: what numba compiles for it is compiled once more for each set of flags."""
        self.state.library = self.library(self.state.targetctx.codegen(), "part")
        self.state.flags.no_cpython_wrapper = self.state.flags.no_compile = True
        return super().define_pipelines()


class _HotPartCompiler(_PartCompiler):
    library = _LinkedHot


def njit(*, cache: bool = False, hot: bool = False, **options: Any) -> Any:
    """``numba.njit``; with ``cache=True`` what it compiles is kept in the cache of certus.

    A kernel is compiled for Python only when Python calls it. What kernels call is a part of them, and optimised once,
    with them: numba would optimise it by itself first, and again in every kernel on the way up. ``hot`` ones, which
    take tuples of arrays and are called in the innermost loops, are optimised a little before: else every call counts
    references to these arrays, which can take longer than what it is for.
    """
    options["no_cfunc_wrapper"] = True
    cached = cache and not config.DISABLE_JIT

    def compiled(function: Any) -> Any:
        kernel = numba.njit(**options)(function)
        if cached:
            kernel._cache = kept.KernelCache(function)
        if PARTS:
            part = _Part(function, options, _HotPartCompiler if hot else _PartCompiler)
            kernel.get_call_template = lambda *asked: part.dispatcher.get_call_template(*asked)
            kernel.get_overload = lambda *asked: part.dispatcher.get_overload(*asked)
        return kernel

    return compiled


class _Part:
    """A kernel as a part of others, made when the first of them is compiled."""

    def __init__(self, function: Any, options: dict[str, Any], compiler: type[_PartCompiler]) -> None:
        self.function, self.options, self.compiler = function, options, compiler

    @cached_property
    def dispatcher(self) -> Any:
        part = numba.njit(pipeline_class=self.compiler, **self.options)(self.function)
        part.add_overload = partial(_add_part, part)
        return part


def _add_part(part: Any, compiled: Any) -> None:
    """Have kernels find what was compiled by its library, where numba has the address of its code."""
    library = compiled.library
    compiled.target_context.insert_user_function(library, compiled.fndesc, [library])
    part.overloads[tuple(compiled.signature.args)] = compiled._replace(entry_point=library)


# -- what it costs -----------------------------------------------------------------------------------------------------

SECONDS = 0.6  # for a kernel, and
SECONDS_A_BYTE = 4e-4  # of Python's code in it and in the kernels that it calls: roughly, on a processor of 2024


def reached(function: Any) -> list[Any]:
    """A kernel's function and those of all kernels that it calls."""
    found: dict[Any, None] = {}
    pending = [function]
    while pending:
        one = pending.pop()
        if one not in found:
            found[one] = None
            named = (one.__globals__.get(name) for name in one.__code__.co_names)
            pending += [called.py_func for called in named if hasattr(called, "py_func")]
    return list(found)


class _Announcer(event.Listener):
    """Says on stderr which kernel is being compiled, and how long that may take: it is slow and should not look hung.

    What is compiled as a part of it, and what takes less than a second, is not said.
    """

    def __init__(self) -> None:
        self.depth = threading.local()

    def on_start(self, event: event.Event) -> None:
        depth = getattr(self.depth, "value", 0)
        self.depth.value = depth + 1
        if depth or sys.stderr is None:
            return
        function = event.data["dispatcher"].py_func
        parts = reached(function)
        seconds = SECONDS + SECONDS_A_BYTE * sum(len(part.__code__.co_code) for part in parts)
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        more = f", {len(parts) - 1} parts" if len(parts) > 1 else ""
        after = "kept for later runs" if kept.FOLDER else "set NUMBA_CACHE_DIR to a folder of yours that can keep them"
        with suppress(OSError, ValueError):
            words = f"certus: compiling kernels for this machine: {name}{more}, about {seconds:.0f} s; {after}."
            print(words, file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        self.depth.value -= 1


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
