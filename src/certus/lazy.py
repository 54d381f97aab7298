"""Names of a package whose modules are imported when one of them is first used.

The package says in imports under TYPE_CHECKING what it offers, which is what type checkers read, and again in a table
of modules and their names. A test holds the two equal, and counts the former as imports of the package.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: the names that stand in its modules, blank-separated, and any module of it."""
    home = {name: module for module, names in homes.items() for name in names.split()}

    def found(name: str) -> Any:
        if name in home:
            value = getattr(import_module(home[name]), name)
        elif name.startswith("_") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        else:
            value = import_module(f"{package}.{name}")
        vars(sys.modules[package])[name] = value
        return value

    return found
