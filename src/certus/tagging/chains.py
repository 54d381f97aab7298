"""Sums over tag sequences with one table of bigrams, by a kernel that takes few exponentials."""

from typing import NamedTuple

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints
from certus.threads import in_parts


class ChainSums(NamedTuple):
    """Log of the sum over the sequences of each item, probabilities of tags, expected uses of pairs."""

    total: Floats  # (B,)
    tags: Floats  # (B, N, T)
    pairs: Floats  # (B, T, T), or empty


def chain_sums(
    unary: Floats, bigram: Floats, lengths: Ints, *, pairs: bool = False, workers: int | None = None
) -> ChainSums | None:
    """Sums for tags (B, N, T) and pairs (T, T) of all items; None if scores lie too far apart for that, or are none."""
    items, _, size = unary.shape
    found = ChainSums(np.empty(items), np.empty(unary.shape), np.empty((items if pairs else 0, size, size)))
    served = []

    def serve(part: slice) -> None:
        own = found.pairs[part] if pairs else found.pairs
        answer = found.total[part], found.tags[part], own
        served.append(kernels.chain_sums.chain_sums(bigram, unary[part], lengths[part], *answer))

    together = kernels.lanes.LANES
    in_parts(serve, items, -(-items // together) * float(unary[:1].size) * size, workers, together)
    return found if all(served) else None
