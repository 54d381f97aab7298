"""What commands say: messages on stderr, JSON on stdout; and their exit codes."""

import json
import sys
from typing import TYPE_CHECKING, Any

from certus.cli.streams import discard

if TYPE_CHECKING:  # help and the first words of any command need neither
    from certus.models.loop import Epoch
    from certus.result import Result

REFUSED, BAD_INPUT, FAULT, INTERRUPTED, READER_GONE = 1, 2, 70, 130, 141


def say(message: str) -> None:
    """A message on stderr, as far as anybody reads it."""
    try:
        print(message, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        discard(sys.stderr)


def complain(message: str, code: int = BAD_INPUT) -> int:
    """One line on stderr; returns the exit code, that for bad input unless another is given."""
    say("certus: " + " ".join(message.split()))
    return code


def print_json(data: dict[str, Any]) -> None:
    """One object on a line of stdout."""
    print(json.dumps(data, ensure_ascii=False), flush=True)


def proof_fields(result: "Result[Any]") -> dict[str, Any]:
    """What is printed of a result beside its structure."""
    c = result.certificate
    fields = {"score": result.score, "bound": c.bound, "exact": c.exact, "kind": c.kind}
    return fields | {"iterations": result.iterations}


def report_epoch(epoch: "Epoch") -> None:
    """How a training gets on."""
    loss = "" if epoch.loss is None else f", objective {epoch.loss:.4g}"
    dev = "" if epoch.score is None else f", dev {'UAS ' if epoch.stage == 'trees' else ''}{100 * epoch.score:.2f}"
    say(f"{epoch.stage} {epoch.epoch}/{epoch.epochs}: {100 * epoch.errors:.2f}% wrong{loss}{dev}")
