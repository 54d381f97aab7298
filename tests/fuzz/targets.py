"""The targets by name."""

from collections.abc import Callable

from tests.fuzz.batches import Batches
from tests.fuzz.cases import KINDS
from tests.fuzz.problems import Problems
from tests.fuzz.runner import Target
from tests.fuzz.sums import Sums
from tests.fuzz.tamper import Tamper

TARGETS: dict[str, Callable[[], Target]] = {
    "problems": Problems,
    "batches": Batches,
    "sums": Sums,
    "tamper": Tamper,
}


def target(name: str) -> Target:
    """A target by its name; "problems:KIND" draws problems of one kind only."""
    first, _, kind = name.partition(":")
    if first not in TARGETS or (kind and (first != "problems" or kind not in KINDS)):
        raise ValueError(
            f"{name!r} is no target; expected one of {', '.join(TARGETS)}, or problems:KIND with one of "
            f"{', '.join(KINDS)}."
        )
    return Problems((kind,)) if kind else TARGETS[first]()
