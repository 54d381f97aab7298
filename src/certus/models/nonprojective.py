"""Trained parsers of order 2 and 3 with crossing arcs: head automata over what the cascade leaves, with proofs.

Every sentence is scored and relaxed. The few whose best tree this does not prove are decoded again as a
``certus.Dependency``: arcs are removed and branched on until there is a proof, or the time is up.
"""

from typing import TYPE_CHECKING

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.errors import LimitReached
from certus.features.encode import Encoded
from certus.learn.crossing import Crossing, Scorer

if TYPE_CHECKING:
    from certus.models.parser import Parser

ITERATIONS, ROUNDS = 40, 3  # of the relaxation, before branching; between rounds arcs are removed
SECONDS = 5.0  # for one sentence that needs branching


def crossing_heads(parser: "Parser", batch: Encoded, *, search: bool = True) -> tuple[Ints, Ints, Floats, Bools]:
    """Where each sentence begins, all heads in a row, the trees' scores, and whether each is proved the best.

    Without ``search`` sentences that the relaxation does not prove get the best tree that it found.
    """
    start = np.cumsum(batch.length + 1) - batch.length - 1
    heads = np.full(int((batch.length + 1).sum()), -1, dtype=np.int64)
    value, proved = np.zeros(len(batch.length)), np.ones(len(batch.length), dtype=np.bool_)
    model = parser.model
    scorer = Scorer(model.arrays, parser.settings.bits, parser.weight.floats, parser.index())
    limits = {"rounds": ROUNDS, "iterations": ITERATIONS}
    for s in np.flatnonzero(batch.length).tolist():
        allowed = parser.cascade.survivors(batch, s)
        arc = scorer.arcs(batch, s, allowed)
        names = parser.namer.names(batch, s, allowed)
        found = Crossing(scorer, batch, s, names, arc, allowed, single=model.single, **limits)
        own = heads[start[s] : start[s] + batch.length[s] + 1]
        own[:], value[s], proved[s] = found.heads, found.value, found.proved
        if search and not found.proved:
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
