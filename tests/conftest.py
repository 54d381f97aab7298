"""How the tests run: hypothesis profiles, and the quick pass over the kernels.

CERTUS_TESTS=quick keeps one pass over the kernels short: few examples, no slow tests, nothing that only checks Python
or starts processes. NUMBA_BOUNDSCHECK=1 and NUMBA_DISABLE_JIT=1 run that pass with bounds checked, or interpreted.
"""

import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src" / "certus" / "kernels"
QUICK = os.environ.get("CERTUS_TESTS") == "quick"
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"


settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None, print_blob=True)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=5)
settings.load_profile("quick" if QUICK else "ci" if os.environ.get("CI") else "default")

REACHED: set[str] = set()  # kernels that ran interpreted, module.function


def recording(**_: object) -> Callable[[Any], Any]:
    """In place of ``certus.kernels.compiling.njit`` where kernels are interpreted: notes which ones are called."""

    def decorated(function: Any) -> Any:
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

        @wraps(function)
        def called(*arguments: Any) -> Any:
            REACHED.add(name)
            return function(*arguments)

        return called

    return decorated


if INTERPRETED:
    import certus.kernels.compiling

    certus.kernels.compiling.njit = recording

# Folders and files that the quick pass leaves out: what they test calls no kernel, or starts processes.
PYTHON_ONLY = ("cli", "docs", "text", "test_clock", "test_house", "test_imports", "test_layers", "test_schema")
PYTHON_ONLY += ("test_writing",)
# The order of the groups, for runs from an empty cache on two processors: first those that compile most, side by side
# with ones that need other kernels, so that few are compiled twice; then those that find their kernels compiled.
FIRST = ("models", "dependency", "translation", "constituency", "structures", "learn", "test_contract", "cli", "fuzz")
FIRST += ("certificates", "docs", "relax")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-every-kernel", action="store_true", help="fail if a kernel was never called (interpreted only)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.xdist_group(folder_of(item)))
    place = {folder: k for k, folder in enumerate(FIRST)}
    items.sort(key=lambda item: place.get(folder_of(item), len(FIRST)))
    if not QUICK:
        return
    kept, left_out = [], []
    for item in items:
        skip = folder_of(item) in PYTHON_ONLY or item.get_closest_marker("slow") is not None
        skip = skip or (INTERPRETED and item.get_closest_marker("compiled") is not None)
        (left_out if skip else kept).append(item)
        limit_examples(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def folder_of(item: pytest.Item) -> str:
    """The part of certus that a test, or the example in a docstring, is about; its tests share most kernels.

    They run in one process, in the order of ``FIRST``, so that few kernels are compiled in two at the same time.
    """
    top = ROOT / "tests" if item.path.is_relative_to(ROOT / "tests") else ROOT / "src" / "certus"
    return item.path.relative_to(top).parts[0].removesuffix(".py") if item.path.is_relative_to(top) else ""


def limit_examples(item: pytest.Item) -> None:
    """Holds a test to the profile's number of examples, also where its own ``@settings`` asks for more."""
    test = getattr(item, "obj", None)
    test = getattr(test, "__func__", test)
    own = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is not None:
        most = settings.get_profile("quick").max_examples
        test._hypothesis_internal_use_settings = settings(own, max_examples=min(own.max_examples, most))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    REACHED.update(getattr(node, "workeroutput", {}).get("kernels", ()))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["kernels"] = sorted(REACHED)
    elif session.config.getoption("--require-every-kernel") and not exitstatus:
        missing = kernels_in_source() - REACHED
        if missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            print("\nkernels that no test reached:", ", ".join(sorted(missing)))


def kernels_in_source() -> set[str]:
    """module.function of every ``@njit`` function in the kernels folder."""
    decorated = re.compile(r"^@njit\b.*\n(?:@.*\n)*def (\w+)", re.MULTILINE)
    return {f"{path.stem}.{name}" for path in KERNELS.glob("**/*.py") for name in decorated.findall(path.read_text())}
