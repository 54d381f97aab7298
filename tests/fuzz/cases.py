"""Random problems as data: a case says how a problem is made, so that it can be saved, cut down and made again."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

import certus
from tests.fuzz.scores import REGIMES, Rng, Scores
from tests.oracles.exact import Part

Case = dict[str, Any]  # "kind", "regime", float arrays, and plain JSON
Listed = Iterator[tuple[Any, Sequence[Part]]]
KINDS: dict[str, "Kind"] = {}


class Kind(ABC):
    """One kind of problem: how it is drawn, made, and what each of its structures is made of.

    ``proved`` are ways of decoding, as arguments of decode(), that must prove the optimum; ``tried`` need not.
    """

    name: ClassVar[str]
    share: ClassVar[float] = 1.0  # how often it is drawn, relative to the others
    rest: ClassVar[float] = 0.25  # share of its problems that are asked more than for the best structure
    regimes: ClassVar[Sequence[str]] = REGIMES  # of scores
    proved: ClassVar[Sequence[Mapping[str, Any]]] = ()
    tried: ClassVar[Sequence[Mapping[str, Any]]] = ()

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "name"):
            return
        KINDS[cls.name] = cls()

    @abstractmethod
    def draw(self, rng: Rng, scores: Scores) -> Case:
        """A case, but for its kind and regime."""

    @abstractmethod
    def make(self, case: Case) -> certus.Problem[Any]:
        """The problem."""

    @abstractmethod
    def listed(self, case: Case, problem: certus.Problem[Any]) -> Listed:
        """Every structure with the scores of its parts, which are read from the case, not from the problem."""


def drawn(rng: Rng, kind: str, regime: str) -> Case:
    """A case of one kind."""
    return {"kind": kind, "regime": regime, **KINDS[kind].draw(rng, Scores(rng, regime))}


def made(case: Case) -> certus.Problem[Any]:
    """The problem of a case."""
    return KINDS[case["kind"]].make(case)


def listed(case: Case, problem: certus.Problem[Any]) -> Listed:
    """The structures of a case with their parts."""
    return KINDS[case["kind"]].listed(case, problem)


def to_json(value: Any) -> Any:
    """A case as JSON, arrays by their cells that are not 0; floats come back to the last bit."""
    if isinstance(value, np.ndarray):
        flat = value.ravel()
        return {"shape": list(value.shape), "cells": [[int(k), number(flat[k])] for k in np.flatnonzero(flat)]}
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": str(value)}
    return value.item() if isinstance(value, np.generic) else value


def number(value: Any) -> float | str:
    """A float as JSON has it."""
    return float(value) if np.isfinite(value) else str(float(value))


def from_json(data: Any) -> Any:
    """What ``to_json`` wrote; tuples are lists."""
    if isinstance(data, dict) and set(data) == {"shape", "cells"}:
        array = np.zeros(data["shape"])
        for k, cell in data["cells"]:
            array.reshape(-1)[k] = float(cell)
        return array
    if isinstance(data, dict) and set(data) == {"float"}:
        return float(data["float"])
    if isinstance(data, dict):
        return {name: from_json(item) for name, item in data.items()}
    if isinstance(data, list):
        return [from_json(item) for item in data]
    return data


def arrays(case: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], np.ndarray]]:
    """Every array of scores in a case, with where it stands."""
    if isinstance(case, np.ndarray):
        yield path, case
    elif isinstance(case, dict):
        for name, item in case.items():
            yield from arrays(item, (*path, name))
    elif isinstance(case, list):
        for k, item in enumerate(case):
            yield from arrays(item, (*path, k))
