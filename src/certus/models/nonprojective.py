"""Trained parsers of order 2 and 3 with crossing arcs: head automata over what the cascade leaves, with proofs.

One kernel scores and relaxes sentence after sentence. The few whose best tree it does not prove are decoded again as a
``certus.Dependency``: arcs are removed and branched on until there is a proof, or the time is up.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.dependency.nonprojective import polyak_rule
from certus.errors import LimitReached
from certus.features.encode import Encoded

if TYPE_CHECKING:
    from certus.models.parser import Parser

ITERATIONS, ROUNDS = 40, 3  # of the relaxation, before branching; between rounds arcs are removed
SECONDS = 5.0  # for one sentence that needs branching


def crossing_heads(parser: "Parser", batch: Encoded, *, search: bool = True) -> tuple[Ints, Ints, Floats, Bools]:
    """Where each sentence begins, all heads in a row, the trees' scores, and whether each is proved the best.

    Without ``search`` sentences that the relaxation does not prove get the best tree that it found.
    """
    from certus.kernels.crossing import parse_crossing

    start = np.cumsum(batch.length + 1) - batch.length - 1
    heads = np.empty(int((batch.length + 1).sum()), dtype=np.int64)
    value, proved = np.empty(len(batch.length)), np.empty(len(batch.length), dtype=np.bool_)
    sentences: tuple[Any, ...] = (batch.attribute, batch.coarse, batch.base, batch.length)
    model: tuple[Any, ...] = (parser.model.arrays, parser.settings.bits, parser.weight, parser.index())
    found = (start, heads, value, polyak_rule(ITERATIONS, ROUNDS), proved)
    arguments: tuple[Any, ...] = (*sentences, *parser.cascade.arguments, *model, *found)
    parse_crossing(*arguments)
    if search:
        for s in np.flatnonzero(~proved).tolist():
            _search(parser, batch, s, heads[start[s] : start[s] + batch.length[s] + 1], value, proved)
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
