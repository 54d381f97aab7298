"""Other libraries, imported where they are installed: the extra ``bench`` has most of them."""

import sys
import types
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


@cache
def torch() -> Any:
    """torch on one thread; None if it is not installed."""
    if find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    return torch


@cache
def supar_structs() -> Any:
    """supar.structs without the rest of supar, which imports a whole parser; None if it is not installed."""
    spec = find_spec("supar")
    if spec is None or not spec.submodule_search_locations:
        return None
    for name in ("supar", "supar.utils"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(spec.submodule_search_locations[0], *name.split(".")[1:]))]
        sys.modules[name] = package
    import supar.structs

    return supar.structs
