"""The kinds of parts of dependency trees: their names, the roles of their words, and how their scores are indexed.

A word m with head h has at most one part of each kind. s is the modifier of h next inside m on its side, t the one next
inside s, g the head of h. The kernels have the same kinds in the same order: ``kernels.parts``.
"""

from typing import NamedTuple

import numpy as np

from certus.checks import Ints


class PartKind(NamedTuple):
    """A kind of part: ``roles`` in the order of kernels and templates, head and modifier first; ``axes`` of arrays."""

    name: str
    roles: str
    axes: str

    def columns(self, rows: Ints) -> list[Ints]:
        """Rows (P, 5) of the kernels as one array for each axis; a node that is not there is the head."""
        nodes = np.where(rows[:, 1:] < 0, rows[:, 1:2], rows[:, 1:]).astype(np.int64)
        return [np.ascontiguousarray(nodes[:, self.roles.index(role)]) for role in self.axes]


PART_KINDS = (
    PartKind("arc", "hm", "hm"),
    PartKind("sibling", "hms", "hsm"),
    PartKind("grandparent", "hmg", "ghm"),
    PartKind("grandsibling", "hmsg", "ghsm"),
    PartKind("trisibling", "hmst", "htsm"),
)
HIGHER_KINDS = PART_KINDS[1:]
