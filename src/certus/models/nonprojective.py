"""Trained parsers of order 2 and 3 with crossing arcs: head automata over what the cascade leaves, with proofs.

Every sentence is scored, relaxed, and branched on where that does not prove a tree. Scores are counted in units of the
packed weights: whole numbers, so that a bound less than one unit above a tree is a proof. The few sentences that need
more branching are decoded as a ``certus.Dependency`` until there is a proof, or the time is up.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.dependency.nonprojective import polyak_rule
from certus.errors import LimitReached
from certus.features.encode import Encoded

if TYPE_CHECKING:
    from certus.models.parser import Parser

ITERATIONS, ROUNDS = 60, 2  # of the relaxation, before branching; between rounds arcs are removed
BRANCHINGS = 64  # before the sentence is decoded as a problem
SECONDS = 5.0  # for one sentence that needs more


def crossing_heads(parser: "Parser", batch: Encoded, *, search: bool = True) -> tuple[Ints, Ints, Floats, Bools]:
    """Where each sentence begins, all heads in a row, the trees' scores, and whether each is proved the best.

    Without ``search`` sentences that the relaxation does not prove get the best tree that it found.
    """
    from certus.kernels.crossing import pruned_lattices, relaxed

    start = np.cumsum(batch.length + 1) - batch.length - 1
    heads = np.full(int((batch.length + 1).sum()), -1, dtype=np.int64)
    value, proved = np.zeros(len(batch.length)), np.ones(len(batch.length), dtype=np.bool_)
    model: tuple[Any, ...] = (parser.model.arrays, parser.settings.bits, parser.weight.value, parser.index())
    arguments = (parser.cascade.arguments, parser.namer.arguments, *model)
    rule = (*polyak_rule(ITERATIONS, ROUNDS), BRANCHINGS if search else 0)
    for s in np.flatnonzero(batch.length).tolist():
        sentence = (batch.attribute, batch.coarse, int(batch.base[s]), int(batch.length[s]))
        lattices, arc = pruned_lattices(*sentence, *arguments)
        multipliers = np.zeros((2, len(lattices.arc_head)))
        own = heads[start[s] : start[s] + len(arc)]
        proved[s], found = relaxed(lattices, arc, parser.model.single, rule, 1.0, multipliers, own)
        value[s] = found * parser.weight.unit
        if search and not proved[s]:
            _search(parser, batch, s, own, value, proved)
    return start, heads, value, proved


def _search(parser: "Parser", batch: Encoded, s: int, heads: Ints, value: Floats, proved: Bools) -> None:
    """Decode sentence s until its tree is proved, or the time is up."""
    from certus.models.scores import problem

    try:
        result = problem(parser, batch, s).decode(time_limit=SECONDS)
    except LimitReached:
        return
    if result.score >= value[s] or result.certificate.exact:
        heads[:], value[s], proved[s] = result.structure, result.score, result.certificate.exact
