"""certus verify: check a saved result in another process, without the kernels that found it."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from certus import load_result, save_proof
from certus import verify as check
from certus.certificates import standalone as checker
from certus.cli.arguments import Argument, Option
from certus.cli.messages import REFUSED, complain, print_json
from certus.cli.options import JsonLines
from certus.errors import CertusError, FormatError, VerificationError
from certus.problem import Problem
from certus.result import Result
from certus.saved import load_problem


def verify(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Results saved as JSON")],
    problem: Annotated[
        Path | None, Option(help="Your own copy of the problem, or a result of it: the files must be about that")
    ] = None,
    standalone: Annotated[
        bool, Option("--standalone", help="Let the standalone checker decide, in exact integers")
    ] = False,
    proof: Annotated[
        Path | None, Option(help="Write the proof in normal form, for the standalone checker or one of your own")
    ] = None,
    json: JsonLines = False,
) -> int:
    """Recompute score and bound of saved results from the problem and the witness.

    Exit code 0 if every certificate holds; 1 if one was checked and does not; 2 if none is refused, but one could not
    be checked: its file cannot be read, or it is of a kind that cannot be verified.
    """
    if proof is not None and len(files) != 1:
        return complain(f"--proof writes one file; {len(files)} results are given.")
    code = 0
    for path in files:
        failure, believed = None, tuple[str, ...]()
        try:
            found, result = load_result(path)
            if problem is not None:
                found = _own(path, problem)
            if proof is not None:
                save_proof(proof, found, result)
            if standalone:
                _check_alone(found, result)
            else:
                believed = check(found, result).trusts
        except VerificationError as error:
            failure, code = str(error), REFUSED
        except CertusError as error:
            complained = complain(str(error) if isinstance(error, FormatError) else f"{path}: {error}")
            code = code or complained
            continue
        _report(path, found, result, failure, believed, json)
    return code


def _own(result: Path, problem: Path) -> Problem[object]:
    """The user's copy of the problem; VerificationError if the result is about another one."""
    own, digest = load_problem(problem)
    if load_problem(result)[1] != digest:
        raise VerificationError(f"the result is about another problem than {problem}: their digests differ.")
    return own


def _check_alone(problem: Problem[object], result: Result[object]) -> None:
    """Write the proof and have the standalone checker read it, in a process that sees nothing of certus."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        save_proof(path, problem, result)
        command = [sys.executable, "-I", checker.__file__, str(path)]
        said = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if said.returncode:
        raise VerificationError(said.stdout.strip().removeprefix(f"{path}: ") or said.stderr.strip())


def _report(
    path: Path,
    problem: Problem[object],
    result: Result[object],
    failure: str | None,
    believed: tuple[str, ...],
    json: bool,
) -> None:
    certificate = result.certificate
    if json:
        proof = {name: getattr(certificate, name) for name in ("kind", "score", "bound", "exact", "rank")}
        checked = {"file": str(path), "verified": failure is None, "reason": failure, "problem": problem.name}
        print_json(checked | proof | {"trusts": list(believed)})
    elif failure is not None:
        print(f"{path}: FALSE: {failure}", flush=True)
    else:
        best = "optimal" if certificate.rank == 1 else f"number {certificate.rank} of the best"
        status = best if certificate.exact else f"within {certificate.gap:.6g} of optimal"
        kind = f"{problem.name}, {certificate.kind}"
        trusting = f", trusting {', '.join(believed)}" if believed else ""
        print(
            f"{path}: verified, {status}: score {result.score:.10g}, bound {certificate.bound:.10g} ({kind}){trusting}",
            flush=True,
        )
