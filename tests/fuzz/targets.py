"""The targets by name."""

from collections.abc import Callable

from tests.fuzz.answers import ANSWER_KINDS, Answers
from tests.fuzz.batches import Batches
from tests.fuzz.cases import KINDS
from tests.fuzz.files import READERS
from tests.fuzz.guided import Guided, installed
from tests.fuzz.mutants import Mutants
from tests.fuzz.problems import Problems
from tests.fuzz.runner import Target
from tests.fuzz.strings import PARTS as STRINGS
from tests.fuzz.strings import Strings
from tests.fuzz.sums import Sums
from tests.fuzz.tamper import LARGE, Tamper, saved_kinds

TARGETS: dict[str, Callable[[], Target]] = {
    "problems": Problems,
    "answers": Answers,
    "strings": Strings,
    "batches": Batches,
    "sums": Sums,
    "tamper": Tamper,
    "files": Mutants,
    "guided": Guided,
}
# Targets of which one part can be chosen, as in "problems:tagging".
PARTS: dict[str, tuple[Callable[[tuple[str, ...]], Target], list[str]]] = {
    "problems": (Problems, list(KINDS)),
    "answers": (Answers, list(ANSWER_KINDS)),
    "strings": (Strings, list(STRINGS)),
    "tamper": (Tamper, [*saved_kinds(), LARGE]),
    "files": (Mutants, [reader.name for reader in READERS]),
}


def everything() -> list[str]:
    """The targets that can be run here."""
    return [name for name in TARGETS if name != "guided" or installed()]


def target(name: str) -> Target:
    """A target by its name, or one part of it; ValueError if there is none."""
    first, _, part = name.partition(":")
    if first not in TARGETS:
        raise ValueError(f"{name!r} is no target; expected one of {', '.join(TARGETS)}.")
    if not part:
        return TARGETS[first]()
    make, parts = PARTS.get(first, (None, []))
    if make is None or part not in parts:
        raise ValueError(f"{first!r} has no part {part!r}; expected {', '.join(parts) or 'none'}.")
    return make((part,))
