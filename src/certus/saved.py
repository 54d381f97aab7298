"""Results on disk: a problem, a structure and its certificate as JSON, to be verified elsewhere."""

import os
from typing import Any

import numpy as np

from certus.problem import Problem, problem_from_json, problem_to_json
from certus.relax import proof
from certus.result import KINDS, Certificate, Result, Trace
from certus.schema import MOST, Field
from certus.serialize import floats_to_json, load_json, write_json

FORMAT, VERSION = "certus result", 2


def save_result(path: str | os.PathLike[str], problem: Problem[Any], result: Result[Any]) -> None:
    """Write a problem and a result of it as one JSON file, whole or not at all."""
    c = result.certificate
    duals: Any = None
    if isinstance(c.duals, proof.Leaf | proof.Fix | proof.Split):
        duals = {"proof": proof.to_json(c.duals)}
    elif c.duals is not None:
        duals = {"multipliers": proof.multipliers_to_json(c.duals)}
    trace = result.trace
    known = np.flatnonzero(~np.isnan(trace.round_primal))
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
                "rounds": known.tolist(),  # those whose own best score is known
                "round_primal": floats_to_json(trace.round_primal[known]),
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
    given = saved["certificate"]
    score, bound, tolerance = (given[name].score(top=True) for name in ("score", "bound", "tolerance"))
    certificate = Certificate(
        given["kind"].one_of(KINDS),
        score,
        bound,
        tolerance,
        None if "duals" not in given else _duals(given["duals"]),
        given["rank"].whole(1),
        None if "floor" not in given else given["floor"].score(),
        None if "reason" not in given else given["reason"].text(),
    )
    trace = _trace(saved["trace"]) if "trace" in saved else Trace()
    return problem, Result(structure, saved["score"].score(top=True), certificate, trace)


def _duals(given: Field) -> Any:
    if "proof" in given:
        return proof.from_json(given["proof"].value)
    return proof.multipliers_from_json(given["multipliers"])


def _trace(given: Field) -> Trace:
    active = given["active"].wholes(0, MOST)
    dual, primal, step = (given[name].scores((len(active),)) for name in ("dual", "primal", "step"))
    alone = np.full(len(active), np.nan)
    if "rounds" in given:
        rounds = given["rounds"].wholes(0, max(len(active) - 1, 0))
        if len(rounds) > len(active):
            given["rounds"].fail(f"at most {len(active)} rounds")
        alone[rounds] = given["round_primal"].scores((len(rounds),))
    return Trace(dual, primal, step, active, alone)


def _number_to_json(value: float) -> float | str:
    return float(value) if np.isfinite(value) else str(float(value))
