"""Every compiled loop of certus, behind one door: ``from certus import kernels``, then ``kernels.eisner.best_heads``.

A module of kernels, and with it numba, is imported when it is first asked for, so that ``import certus`` stays light.
"""

import sys
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        module = import_module(f"certus.kernels.{name}")
    except ModuleNotFoundError as missing:
        if missing.name != f"certus.kernels.{name}":
            raise
        raise AttributeError(f"there are no kernels called {name!r}.") from None
    if "certus.kernels.compiling" in sys.modules and name != "cache":
        import_module("certus.kernels.quick_typing")
    return module
