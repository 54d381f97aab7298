"""certus verify: check a saved result in another process, without the kernels that found it."""

import json as json_
from pathlib import Path
from typing import Annotated

import typer

from certus.cli.options import JsonLines


def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Results saved as JSON")],
    json: JsonLines = False,
) -> int:
    """Recompute score and bound of saved results from the problem and the multipliers.

    Exit code 0 if every certificate holds; 1 if one was checked and does not; 2 if none is refused, but one could not
    be checked: its file cannot be read, or it is of a kind that cannot be verified.
    """
    from certus import load_result
    from certus import verify as check
    from certus.cli import REFUSED, complain
    from certus.errors import CertusError, FormatError, VerificationError

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
            print(
                json_.dumps(
                    {
                        "file": str(path),
                        "verified": failure is None,
                        "reason": failure,
                        "problem": problem.name,
                        "kind": certificate.kind,
                        "score": certificate.score,
                        "bound": certificate.bound,
                        "exact": certificate.exact,
                    },
                    ensure_ascii=False,
                ),
                flush=True,
            )
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
