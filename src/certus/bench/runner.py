"""Runs suites: times what they yield in turns, and compares this version of certus with another one."""

import inspect
import json
import pkgutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from certus.bench import suites
from certus.bench.cases import Case, Row, Skipped
from certus.errors import CertusError, InvalidInput

CLOCKS: dict[str, Callable[[], float]] = {"cpu": time.process_time, "wall": time.perf_counter}
ENOUGH = 0.5  # seconds of ours after which a case gets no more rounds than LEAST
LEAST = 3
TURN = 0.01  # seconds
NAMES = 44  # width of the column of names


def names() -> list[str]:
    """All suites, in order of the alphabet."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(suites.__path__))


def suite(name: str) -> ModuleType:
    """The file of a suite."""
    if name not in names():
        raise InvalidInput(f"there is no suite {name!r}; there are {', '.join(names())}.")
    return import_module(f"certus.bench.suites.{name.replace('-', '_')}")


def title(name: str) -> str:
    """What a suite shows, in a line."""
    return (suite(name).__doc__ or "").strip().split("\n")[0]


def settings_of(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Arguments for a suite's ``run``: each text read as what the default is."""
    parameters = inspect.signature(suite(name).run).parameters
    made: dict[str, Any] = {}
    for key, text in given.items():
        if key not in parameters:
            known = ", ".join(parameters) or "none"
            raise InvalidInput(f"suite {name} has no setting {key!r}; it has {known}.")
        default = parameters[key].default
        try:
            made[key] = _read(text, default)
        except ValueError:
            raise InvalidInput(f"{key}={text}: expected something like {default!r}.") from None
    return made


def reads_data(name: str) -> bool:
    """Whether a suite reads treebanks or translation models."""
    return "data" in inspect.signature(suite(name).run).parameters


def _read(text: str, default: Any) -> Any:
    if isinstance(default, tuple):
        return tuple(_read(part, default[0] if default else "") for part in text.split(","))
    return type(default)(text)


def measured(
    name: str, settings: Mapping[str, Any], *, rounds: int = 15, clock: str = "cpu"
) -> Iterator[Row | Skipped]:
    """The rows of a suite, as they come."""
    for found in suite(name).run(**settings):
        yield _timed(found, rounds, CLOCKS[clock]) if isinstance(found, Case) else found


def _timed(case: Case, rounds: int, now: Callable[[], float]) -> Row:
    """The best time of each contestant over rounds in which they take turns; their answers agree.

    In its turn a contestant runs again and again for TURN seconds: a short call would else pay for what the one before
    it has left in the caches, or gain from it where they share a library.
    """
    runs = {"ours": case.ours, **case.peers}
    answers = {name: run() for name, run in runs.items()}  # compiles
    if case.agrees is not None:
        for name in case.peers:
            case.agrees(answers["ours"], name, answers[name])
    best = dict.fromkeys(runs, float("inf"))
    spent = 0.0
    for turn in range(rounds):
        for name, run in runs.items():
            turn_ends = now() + TURN
            while True:
                start = now()
                run()
                end = now()
                best[name] = min(best[name], end - start)
                spent += end - start
                if end >= turn_ends:
                    break
        if turn + 1 >= LEAST and spent > ENOUGH * len(runs):
            break
    cells: dict[str, float | str] = {f"{name}, us a {case.unit}": 1e6 * best[name] / case.items for name in runs}
    cells |= {f"{name} / ours": best[name] / best["ours"] for name in case.peers}
    if case.bar:
        cells["claim"] = case.bar
    return Row(case.name, cells)


# -- this version and another one ------------------------------------------------------------------------------------


def compared(
    name: str, settings: Mapping[str, Any], other: Path, *, rounds: int = 15, clock: str = "cpu"
) -> Iterator[Row | Skipped]:
    """Every case of a suite in this version of certus and in that of another checkout, in turns.

    The suite is this version's; it asks public names only, so that it runs on either. ``other / here`` above 1 means
    that this version is faster; ``same`` is whether the answers are equal.
    """
    source = other / "src" if (other / "src" / "certus").is_dir() else other
    if not (source / "certus" / "__init__.py").is_file():
        raise InvalidInput(f"{other} holds no certus; give a checkout, or the folder that holds the package.")
    here = Path(__file__).resolve().parents[2]
    workers = [_Worker(folder, name, settings, clock) for folder in (here, source)]
    try:
        while True:
            heads = [worker.ask("next") for worker in workers]
            if any(head is None for head in heads):
                return
            if "why" in heads[0]:
                yield Skipped(heads[0]["why"])
                continue
            best = [float("inf")] * 2
            for turn in range(rounds):
                for k, worker in enumerate(workers):
                    best[k] = min(best[k], worker.ask("time"))
                if turn + 1 >= LEAST and turn * min(best) > ENOUGH:
                    break
            answers = [head["numbers"] for head in heads]
            cells = {"here, us": 1e6 * best[0], "other, us": 1e6 * best[1], "other / here": best[1] / best[0]}
            yield Row(heads[0]["name"], cells | {"same": _alike(*answers)})
    finally:
        for worker in workers:
            worker.process.kill()


class _Worker:
    """A process that runs the cases of a suite on one version of certus, when told to."""

    def __init__(self, source: Path, name: str, settings: Mapping[str, Any], clock: str) -> None:
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); import certus, importlib.util as u; "
            "s = u.spec_from_file_location('certus.bench', sys.argv[2] + '/__init__.py', "
            "submodule_search_locations=[sys.argv[2]]); m = u.module_from_spec(s); sys.modules['certus.bench'] = m; "
            "s.loader.exec_module(m); from certus.bench.runner import work; work(*sys.argv[3:])"
        )
        bench = str(Path(__file__).resolve().parent)
        command = [sys.executable, "-c", code, str(source), bench, name, json.dumps(dict(settings)), clock]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, word: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise CertusError("the version of certus that was compared ended; see above.")
        return json.loads(line)


def work(name: str, settings: str, clock: str) -> None:
    """The worker's side: "next" makes a case ready and runs it, "time" runs it again."""
    stdout, sys.stdout = sys.stdout, sys.stderr
    now = CLOCKS[clock]
    made = {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(settings).items()}
    cases = (found for found in suite(name).run(**made) if not isinstance(found, Row))
    case: Case | None = None
    for line in sys.stdin:
        answer: Any = None
        if line.strip() == "next":
            found = next(cases, None)
            if isinstance(found, Skipped):
                answer = {"why": found.why}
            elif found is not None:
                case = found
                value = case.ours()
                answer = {"name": case.name, "numbers": _numbers(case.numbers(value) if case.numbers else value)}
        elif case is not None:
            start = now()
            case.ours()
            answer = now() - start
        print(json.dumps(answer), file=stdout, flush=True)


def _alike(here: Any, other: Any) -> str:
    """Whether two answers are equal: "yes", "no", or "rounded" where numbers differ by less than a billionth."""
    if here == other:
        return "yes"
    if isinstance(here, dict) and isinstance(other, dict) and here.keys() == other.keys():
        here, other = list(here.values()), [other[key] for key in here]
    if isinstance(here, list) and isinstance(other, list) and len(here) == len(other):
        return "no" if "no" in map(_alike, here, other) else "rounded"
    numbers = isinstance(here, float) and isinstance(other, float)
    return "rounded" if numbers and np.isclose(here, other, rtol=1e-9, atol=1e-9, equal_nan=True) else "no"


def _numbers(value: Any) -> Any:
    """An answer as JSON data that can be compared."""
    if isinstance(value, Mapping):
        return {str(key): _numbers(part) for key, part in value.items()}
    if hasattr(value, "structure") and hasattr(value, "score"):
        return [_numbers(value.structure), _numbers(value.score)]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_numbers(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


# -- what is printed -------------------------------------------------------------------------------------------------


def as_lines(rows: Iterable[Row | Skipped]) -> Iterator[str]:
    """Rows as they come, under a heading for each set of columns."""
    columns: tuple[str, ...] = ()
    for row in rows:
        if isinstance(row, Skipped):
            yield f"left out: {row.why}"
            continue
        if tuple(row.cells) != columns:
            columns = tuple(row.cells)
            yield " " * NAMES + "".join(f"  {name:>{max(len(name), 9)}}" for name in columns)
        texts = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.cells.values())
        cells = "".join(f"  {text:>{max(len(name), 9)}}" for name, text in zip(columns, texts, strict=True))
        yield row.name.ljust(NAMES) + cells


def as_data(row: Row | Skipped) -> dict[str, Any]:
    """A row for JSON."""
    return {"left out": row.why} if isinstance(row, Skipped) else {"name": row.name, **row.cells}
