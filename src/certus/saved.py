"""Results on disk: a problem, a structure and its certificate as JSON, to be verified elsewhere."""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from certus.errors import NotSupported, VerificationError
from certus.problem import Problem, checked_pair, problem_from_json, problem_to_json
from certus.relax import proof
from certus.relax.proving import witness_of
from certus.relax.questions import answered, claimed_limit, questions
from certus.result import KINDS, Certificate, Result, Trace
from certus.schema import MOST, Field
from certus.serialize import floats_to_json, load_json, write_json

FORMAT, VERSION = "certus result", 3


def save_result(
    path: str | os.PathLike[str],
    problem: Problem[Any],
    result: Result[Any],
    *,
    source: Mapping[str, str] | None = None,
) -> None:
    """Write a problem and a result of it as one JSON file, whole or not at all.

    The witness of the bound is made if the result does not carry it yet, so that whoever verifies the file only has to
    check it. ``source`` are digests of where the problem came from, by name: of a model (``Parser.digest``) and a
    sentence, say. The file has a digest of the problem as well.
    """
    write_json(path, result_to_json(problem, result, source))


def result_to_json(
    problem: Problem[Any], result: Result[Any], source: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The content of a saved result."""
    checked_pair(problem, result)
    c, trace = result.certificate, result.trace
    known = np.flatnonzero(~np.isnan(trace.round_primal))
    described = problem_to_json(problem)
    try:
        # Where nothing is allowed for rounding, it may be the scores rounded up of which the bound can be shown.
        asked = next(questions(problem, c, result.score)) if c.tolerance else answered(problem, c, result.score)
        witness = witness_of(asked, c, claimed_limit(asked, c))
    except (NotSupported, VerificationError):  # whoever verifies the file will say so
        witness = None
    return {
        "format": FORMAT,
        "version": VERSION,
        "problem": described,
        "digests": {"problem": _digest(described)} | dict(source or {}),
        "structure": problem.structure_to_json(result.structure),
        "better": [problem.structure_to_json(y) for y in c.better],
        "score": _number_to_json(result.score),
        "certificate": {
            "kind": c.kind,
            "score": _number_to_json(c.score),
            "bound": _number_to_json(c.bound),
            "tolerance": _number_to_json(c.tolerance),
            "rank": c.rank,
            **({"distinct": True} if c.distinct else {}),
            "floor": None if c.floor is None else _number_to_json(c.floor),
            "reason": c.reason,
            "witness": _witness_to_json(witness),
        },
        "trace": {
            "dual": floats_to_json(trace.dual),
            "primal": floats_to_json(trace.primal),
            "step": floats_to_json(trace.step),
            "active": trace.active.tolist(),
            "rounds": known.tolist(),  # those whose own best score is known
            "round_primal": floats_to_json(trace.round_primal[known]),
        },
    }


def load_result(path: str | os.PathLike[str]) -> tuple[Problem[Any], Result[Any]]:
    """Read a problem and its result; FormatError for a file that is cut short or is not what it should be.

    Reading does not check the claims: certus.verify(problem, result) does.
    """
    return load_json(path, _loaded)


def problem_digest(problem: Problem[Any]) -> str:
    """A digest of a problem as it is saved: equal problems have equal ones, and nobody can make two that share one."""
    return _digest(problem_to_json(problem))


def load_problem(path: str | os.PathLike[str]) -> tuple[Problem[Any], str]:
    """The problem of a saved result, or one that was saved alone (``save_problem``), and its digest."""

    def loaded(data: Any) -> tuple[Problem[Any], str]:
        given = Field(data)
        described = given.maybe("problem") or given
        return problem_from_json(described), _digest(described.value)

    return load_json(path, loaded)


def save_problem(path: str | os.PathLike[str], problem: Problem[Any]) -> None:
    """Write a problem as a JSON file: what ``certus verify --problem`` holds results against."""
    write_json(path, {"problem": problem_to_json(problem)})


def _digest(described: Any) -> str:
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _loaded(data: Any) -> tuple[Problem[Any], Result[Any]]:
    saved = Field(data).format(FORMAT, VERSION)
    problem = problem_from_json(saved["problem"])
    digest = _digest(saved["problem"].value)
    if saved["digests"]["problem"].text() != digest:
        saved["digests"]["problem"].fail(f"{digest}, that of the problem in the file: one of them was changed")
    structure = problem.structure_from_json(saved["structure"])
    better = tuple(problem.structure_from_json(y) for y in saved["better"].items())
    given = saved["certificate"]
    score, bound, tolerance = (given[name].score(top=True) for name in ("score", "bound", "tolerance"))
    kind, witness = given["kind"].one_of(KINDS), _witness(given.maybe("witness"))
    duals = witness.rest if isinstance(witness, proof.Close) else witness
    certificate = Certificate(
        kind,
        score,
        bound,
        tolerance,
        duals.multipliers if kind == "dual" and isinstance(duals, proof.Leaf) else duals,
        given["rank"].whole(1),
        None if "floor" not in given else given["floor"].score(),
        None if "reason" not in given else given["reason"].text(),
        better,
        witness,
        "distinct" in given and given["distinct"].flag(),
    )
    trace = _trace(saved["trace"]) if "trace" in saved else Trace()
    return problem, Result(structure, saved["score"].score(top=True), certificate, trace)


def _witness_to_json(witness: Any) -> Any:
    if witness is None:
        return None
    if isinstance(witness, proof.PROOFS):
        return {"proof": proof.to_json(witness)}
    return {"arrays": proof.arrays_to_json(witness)}


def _witness(given: Field | None) -> Any:
    if given is None:
        return None
    return proof.from_json(given["proof"].value) if "proof" in given else proof.arrays_from_json(given["arrays"])


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
