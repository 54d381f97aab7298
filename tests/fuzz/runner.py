"""The loop that all targets share: tries cases until the time or the count is reached, and keeps what fails."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tests.fuzz.cases import Case, arrays, from_json, to_json

SAVED = 3  # files for one claim about one kind
SHRINK = 5.0  # seconds spent on making a failure smaller
REPORT = 15.0  # seconds between two lines of progress
# What is counted by kind, and how claims that fail are told apart in a summary.
COUNTED = ("problems", "decodings", "not exact for rounding alone", "true results", "tampered")
FAULTS = {
    "false": ("false certificate", "exact, but", "bound below", "not the structure's", "accepted:"),
    "true ones refused": ("true result refused",),
}


class Finding(NamedTuple):
    """A claim that does not hold, and the case that shows it, made small and into JSON when it is asked for."""

    kind: str
    claim: str
    detail: str
    case: Callable[[], Any]


class Tally(Counter[str]):
    """Counts, and the longest time that any question took."""

    def __init__(self, counts: dict[str, int] | None = None, seconds: dict[str, float] | None = None) -> None:
        super().__init__(counts or {})
        self.seconds: dict[str, float] = {} if seconds is None else seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return Tally, (dict(self), self.seconds)

    def slowest(self, name: str, seconds: float) -> None:
        self.seconds[name] = max(self.seconds.get(name, 0.0), seconds)


class Target(Protocol):
    """Something to try again and again."""

    name: str

    def one(self, rng: np.random.Generator, tally: Tally) -> Iterator[Finding]:
        """Try one case and give what fails."""

    def replay(self, data: Any) -> list[Any]:
        """Try a saved case again; the claims that fail."""


class Run:
    """One target, one seed; case number k is drawn from (seed, k) alone, so that it can be tried again."""

    def __init__(self, target: Target, seed: int, folder: Path | None = None) -> None:
        self.target, self.seed, self.folder = target, seed, folder
        self.tally = Tally()
        self.failed: Counter[str] = Counter()
        self.cases, self.seconds = 0, 0.0

    def go(self, *, seconds: float | None = None, count: int | None = None, first: int = 0, step: int = 1) -> "Run":
        """Try cases until the time is over or there were ``count``; Ctrl-C ends it too, and is raised again.

        The numbers of the cases are first, first + step, and so on.
        """
        started = told = time.perf_counter()
        try:
            while (count is None or self.cases < count) and (
                seconds is None or time.perf_counter() - started < seconds
            ):
                number = first + step * self.cases
                rng = np.random.default_rng([self.seed, number])
                for finding in self.target.one(rng, self.tally):
                    self.keep(number, finding)
                self.cases += 1
                if time.perf_counter() - told > REPORT:
                    told = time.perf_counter()
                    failed = sum(self.failed.values())
                    say(f"{self.target.name}: {self.cases} cases, {told - started:.0f} s, {failed} failed")
        finally:
            self.seconds += time.perf_counter() - started
        return self

    def keep(self, number: int, finding: Finding) -> None:
        """Count a failure; the first few of each sort are told and saved."""
        sort = f"{finding.kind}: {finding.claim}"
        self.failed[sort] += 1
        if self.failed[sort] > SAVED:
            return
        detail = " ".join(finding.detail.split())[:400]
        say(f"FAILED {self.target.name} (seed {self.seed}, case {number}) {sort}: {detail}")
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            about = {"target": self.target.name, "kind": finding.kind, "claim": finding.claim, "detail": detail}
            data = {**about, "seed": self.seed, "number": number, "case": finding.case()}
            name = f"{self.target.name} {sort} {self.seed} {number}"
            path = self.folder / f"{'-'.join(''.join(c if c.isalnum() else ' ' for c in name).split())}.json"
            path.write_text(json.dumps(data) + "\n")

    def add(self, tally: Tally, failed: Counter[str], cases: int, seconds: float) -> None:
        """Count what another run of the same target and seed tried at the same time as this one."""
        self.tally.update(tally)
        for name, longest in tally.seconds.items():
            self.tally.slowest(name, longest)
        self.failed.update(failed)
        self.cases, self.seconds = self.cases + cases, max(self.seconds, seconds)

    def report(self) -> dict[str, Any]:
        """What was tried and what failed, as JSON."""
        return {
            "target": self.target.name,
            "seed": self.seed,
            "cases": self.cases,
            "seconds": round(self.seconds, 1),
            "counts": dict(sorted(self.tally.items())),
            "slowest": {name: round(s, 3) for name, s in sorted(self.tally.seconds.items())},
            "failed": dict(self.failed.most_common()),
            "kinds": self.kinds(),
        }

    def kinds(self) -> dict[str, dict[str, int]]:
        """What was counted of each kind of problem, with what failed; under "all" together."""
        out: dict[str, dict[str, int]] = {"all": {}}

        def add(kind: str, what: str, count: int) -> None:
            for one in (out["all"], out.setdefault(kind, dict.fromkeys(FAULTS, 0))):
                one[what] = one.get(what, 0) + count

        for name, count in sorted(self.tally.items()):
            kind, _, what = name.rpartition(": ")
            if kind and what in COUNTED:
                add(kind, what, count)
        if len(out) == 1:
            return {}
        for name, count in self.failed.items():
            kind, _, claim = name.partition(": ")
            add(kind, next((f for f, words in FAULTS.items() if any(w in claim for w in words)), "other faults"), count)
        out["all"] = dict.fromkeys(FAULTS, 0) | out["all"]
        return out


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A case with more zeros that still fails: whole arrays, then parts of them, then cells, for a few seconds."""
    smaller, until = from_json(to_json(case)), time.perf_counter() + SHRINK
    if not fails(smaller):
        return case
    flat = [array.reshape(-1) for _, array in arrays(smaller)]
    for simple in (np.zeros_like, partial(np.round, decimals=1)):
        size = max((len(cells) for cells in flat), default=0)
        while size and time.perf_counter() < until:
            for block in [cells[start : start + size] for cells in flat for start in range(0, len(cells), size)]:
                kept = block.copy()
                block[:] = simple(kept)
                if time.perf_counter() > until or ((block != kept).any() and not fails(smaller)):
                    block[:] = kept
            size //= 2
    return smaller


def told(kind: str, counts: dict[str, int]) -> str:
    """A line of a summary."""
    asked, rounded = counts.get("decodings"), counts.get("not exact for rounding alone", 0)
    share = f" ({rounded / asked:.2%} of the decodings not exact for rounding alone)" if asked else ""
    return f"{kind}: {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))}{share}"


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)
