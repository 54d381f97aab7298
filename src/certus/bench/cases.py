"""What a suite yields: cases to be timed in turns, rows that it measured itself, or a word on what is left out."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from certus.errors import InvalidInput

Cell = float | int | str


@dataclass(frozen=True, slots=True)
class Case:
    """A call as a user makes it, with its default arguments, and what the peers do for the same.

    ``items`` is how many sentences (words, queries, ...) one call is about; times are given for one of them. ``agrees``
    holds the answer of ours against that of a peer, by name, and raises if they differ. ``numbers`` turns our answer
    into numbers by which two versions of certus are compared; the answer itself by default.
    """

    name: str
    ours: Callable[..., Any]
    peers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    items: int = 1
    unit: str = "sentence"
    agrees: Callable[[Any, str, Any], None] | None = None
    numbers: Callable[[Any], Any] | None = None
    bar: str = ""  # the claim, in words


@dataclass(frozen=True, slots=True)
class Row:
    """Something measured: a name, and numbers or words by column."""

    name: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something left out, and why."""

    why: str


def data_folder(data: str, *parts: str) -> Path:
    """A folder of the data, which are not part of the project: ``data`` if given, else $CERTUS_DATA."""
    root = data or os.environ.get("CERTUS_DATA", "")
    if not root:
        raise InvalidInput("this suite reads treebanks or translation models: give their folder with --data.")
    folder = Path(root, *parts)
    if not folder.exists():
        raise InvalidInput(f"{folder} does not exist; give the folder of the data with --data.")
    return folder


def random_arcs(n: int, sentences: int, scale: float = 1.0) -> Any:
    """Arc scores (B, n + 1, n + 1) from a normal distribution."""
    return scale * np.random.default_rng(n).normal(size=(sentences, n + 1, n + 1))


def exponent(times: Mapping[int, float]) -> float:
    """The power of n that times grow with, fitted over all n."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def evenly(items: Sequence[Any], count: int) -> list[Any]:
    """``count`` of the items, spread over all of them."""
    return list(items[:: max(1, len(items) // count)][:count])


def best_seconds(call: Callable[..., Any], rounds: int = 5) -> float:
    """The least processor time of a call over some rounds, after one to compile."""
    call()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)
