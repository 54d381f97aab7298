"""Results on disk: a problem, a structure and its certificate as JSON, to be verified elsewhere."""

import os
from typing import Any, TypeVar

import numpy as np

from certus.errors import InvalidInput
from certus.problem import Problem, problem_from_json, problem_to_json
from certus.relax import proof
from certus.result import KINDS, Certificate, Result, Trace
from certus.schema import MOST, Field
from certus.serialize import floats_to_json, load_json, write_json

FORMAT, VERSION = "certus result", 2

T = TypeVar("T")


def field(data: dict[str, Any], name: str, kind: type[T] | tuple[type[T], ...]) -> Any:
    """A field of a JSON object that has the type it should."""
    value = data.get(name)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or isinstance(value, bool):
        wanted = " or ".join(k.__name__ for k in kinds)
        raise InvalidInput(f'"{name}" is {type(value).__name__ if name in data else "missing"}; expected {wanted}.')
    return value


def save_result(path: str | os.PathLike[str], problem: Problem[Any], result: Result[Any]) -> None:
    """Write a problem and a result of it as one JSON file, whole or not at all."""
    c = result.certificate
    duals: Any = None
    if isinstance(c.duals, proof.Leaf | proof.Fix | proof.Split):
        duals = {"proof": proof.to_json(c.duals)}
    elif c.duals is not None:
        duals = {"multipliers": proof.multipliers_to_json(c.duals)}
    trace = result.trace
    write_json(
        path,
        {
            "format": FORMAT,
            "version": VERSION,
            "problem": problem_to_json(problem),
            "structure": problem.structure_to_json(result.structure),
            "score": _number_to_json(result.score),
            "certificate": {
                "kind": c.kind,
                "score": _number_to_json(c.score),
                "bound": _number_to_json(c.bound),
                "tolerance": _number_to_json(c.tolerance),
                "rank": c.rank,
                "floor": None if c.floor is None else _number_to_json(c.floor),
                "reason": c.reason,
                "duals": duals,
            },
            "trace": {
                "dual": floats_to_json(trace.dual),
                "primal": floats_to_json(trace.primal),
                "step": floats_to_json(trace.step),
                "active": trace.active.tolist(),
            },
        },
    )


def load_result(path: str | os.PathLike[str]) -> tuple[Problem[Any], Result[Any]]:
    """Read a problem and its result; FormatError for a file that is cut short or is not what it should be.

    Reading does not check the claims: certus.verify(problem, result) does.
    """
    return load_json(path, _loaded)


def _loaded(data: Any) -> tuple[Problem[Any], Result[Any]]:
    saved = Field(data).format(FORMAT, VERSION)
    problem = problem_from_json(saved["problem"])
    structure = problem.structure_from_json(saved["structure"])
    given = saved["certificate"].object()
    kind = field(given, "kind", str)
    if kind not in KINDS:
        raise InvalidInput(f"certificate kind {kind!r} is unknown; expected one of {', '.join(KINDS)}.")
    rank = field(given, "rank", int)
    duals: Any = None
    if given.get("duals") is not None:
        witness = field(given, "duals", dict)
        duals = (
            proof.from_json(witness["proof"])
            if "proof" in witness
            else proof.multipliers_from_json(field(witness, "multipliers", dict))
        )
    score, bound, tolerance = (_number_from_json(given, name) for name in ("score", "bound", "tolerance"))
    floor = None if given.get("floor") is None else _number_from_json(given, "floor")
    reason = None if given.get("reason") is None else saved["certificate"]["reason"].text()
    certificate = Certificate(kind, score, bound, tolerance, duals, rank, floor, reason)
    trace = _trace(saved["trace"]) if "trace" in saved else Trace()
    return problem, Result(structure, _number_from_json(data, "score"), certificate, trace)


def _trace(field: Field) -> Trace:
    active = field["active"].wholes(0, MOST)
    dual, primal, step = (field[name].scores((len(active),)) for name in ("dual", "primal", "step"))
    return Trace(dual, primal, step, active)


def _number_to_json(value: float) -> float | str:
    return float(value) if np.isfinite(value) else str(float(value))


def _number_from_json(data: dict[str, Any], name: str) -> float:
    value = data.get(name)
    if value in ("inf", "-inf"):
        return float(value)
    return Field(value, name).number()
