"""Trained parsers of order 2 and 3 with crossing arcs: head automata over what the cascade leaves, with proofs.

Every sentence is scored, relaxed, and branched on where that does not prove a tree: a fixed amount of work at most, in
one kernel. The few sentences that need more are decoded as a ``certus.Dependency`` until there is a proof, or until a
time limit, if one was set. Scores are counted in units of the packed weights: whole numbers, so that a bound less than
one unit above a tree is a proof.
"""

from typing import TYPE_CHECKING

import numpy as np

from certus import kernels
from certus.checks import Bools, Ints
from certus.dependency.polyak import polyak_rule
from certus.errors import LimitReached
from certus.features.encode import Encoded
from certus.models.scores import problem
from certus.models.trees import Room, Trees
from certus.result import Result

if TYPE_CHECKING:
    from certus.models.parser import Parser

ITERATIONS, ROUNDS = 60, 2  # of the relaxation, before branching; between rounds arcs are removed
BRANCHINGS = 64  # before the sentence is decoded as a problem


def crossing_trees(parser: "Parser", batch: Encoded, *, search: bool = True, time_limit: float | None = None) -> Trees:
    """The best trees of a batch.

    Without ``search`` sentences that the relaxation does not prove get the best tree that it found. ``time_limit`` is
    in seconds, for each sentence that needs more than the work of the kernel.
    """
    room = Room.of(batch.length)
    bound = np.zeros(len(batch.length))
    kind = ["dual"] * len(batch.length)
    reason: dict[int, str] = {}
    model = parser.model.weighted(parser.settings.bits, parser.weight.value)
    arguments = (parser.pruning, parser.namer.arrays, model)
    rule = (*polyak_rule(ITERATIONS, ROUNDS), BRANCHINGS if search else 0)
    for s in np.flatnonzero(batch.length).tolist():
        n = int(batch.length[s])
        lattices, arc = kernels.crossing.pruned_lattices(batch.sentence(s), *arguments)
        allowed = arc > -np.inf
        room.kept[room.square[s] : room.square[s + 1]] = allowed.reshape(-1)
        heads = room.heads[room.start[s] : room.start[s] + n + 1]
        multipliers = np.zeros((2, len(lattices.arc_head)))
        proved, room.value[s], bound[s], runs = kernels.crossing.relaxed(
            lattices, arc, parser.model.single, rule, 1.0, multipliers, heads
        )
        if runs > 1 or (search and not proved):
            kind[s] = "branch and bound"
        if not proved and not search:
            reason[s] = "no search beyond the relaxation"
        elif not proved:
            found = _searched(parser, batch, s, allowed, time_limit)
            if time_limit is not None and (found is None or found.info["seconds"] >= time_limit):
                reason[s] = f"the time limit of {time_limit:g} s was reached"
            elif found is not None:
                reason[s] = found.certificate.reason or "rounding"
            if found is not None:
                bound[s] = min(bound[s], found.certificate.bound + found.certificate.tolerance)
                if found.score > room.value[s]:
                    heads[:], room.value[s] = found.structure, found.score
    trees = room.trees(parser.weight.unit, bound, kind, reason)
    for s in np.flatnonzero(trees.exact).tolist():
        reason.pop(s, None)
    return trees


def _searched(
    parser: "Parser", batch: Encoded, s: int, allowed: Bools, time_limit: float | None
) -> Result[Ints] | None:
    """Sentence s as a problem over the allowed arcs, in units; None if the time was up before there was any tree."""
    try:
        return problem(parser, batch, s, allowed, unit=1.0).decode(time_limit=time_limit)
    except LimitReached:
        return None
