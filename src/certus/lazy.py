"""What is made when it is first used: the names of a package, and answers that stay the same.

Modules of a package are imported when one of its names is first used. The package says in imports under TYPE_CHECKING
what it offers, which is what type checkers read, and again in a table of modules and their names. A test holds the two
equal, and counts the former as imports of the package.
"""

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

Owner = TypeVar("Owner")
Answer = TypeVar("Answer")


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


def once(method: Callable[[Owner], Answer]) -> Callable[[Owner], Answer]:
    """A method without arguments whose answer is kept with the object, under a name that no attribute has."""
    kept = f"{method.__qualname__}()"

    @wraps(method)
    def answer(self: Owner) -> Answer:
        known = self.__dict__
        if kept not in known:
            known[kept] = method(self)
        found: Answer = known[kept]
        return found

    return answer
