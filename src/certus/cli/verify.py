"""certus verify: check a saved result in another process, without the kernels that found it."""

from pathlib import Path
from typing import Annotated

import typer

from certus import load_result
from certus import verify as check
from certus.cli.messages import REFUSED, complain, print_json
from certus.cli.options import JsonLines
from certus.errors import CertusError, FormatError, VerificationError


def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Results saved as JSON")],
    json: JsonLines = False,
) -> int:
    """Recompute score and bound of saved results from the problem and the multipliers.

    Exit code 0 if every certificate holds; 1 if one was checked and does not; 2 if none is refused, but one could not
    be checked: its file cannot be read, or it is of a kind that cannot be verified.
    """
    code = 0
    for path in files:
        failure = None
        try:
            problem, result = load_result(path)
            check(problem, result)
        except VerificationError as error:
            failure, code = str(error), REFUSED
        except CertusError as error:
            complained = complain(str(error) if isinstance(error, FormatError) else f"{path}: {error}")
            code = code or complained
            continue
        certificate = result.certificate
        if json:
            proof = {name: getattr(certificate, name) for name in ("kind", "score", "bound", "exact")}
            checked = {"file": str(path), "verified": failure is None, "reason": failure, "problem": problem.name}
            print_json(checked | proof)
        elif failure is not None:
            print(f"{path}: FALSE: {failure}", flush=True)
        else:
            status = "optimal" if certificate.exact else f"within {certificate.gap:.6g} of optimal"
            kind = f"{problem.name}, {certificate.kind}"
            print(
                f"{path}: verified, {status}: score {result.score:.10g}, bound {certificate.bound:.10g} ({kind})",
                flush=True,
            )
    return code
