"""The k best trees with crossing arcs, one after the other, each proved to be the next; see ``kernels.tree_ranks``."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Floats, Ints
from certus.dependency.arborescence import no_tree

MOST = 1024  # trees that are found in one go


def iterate_trees(arc: Floats, root: str) -> Iterator[tuple[Ints, float]]:
    """All trees in order of falling score, as (heads, score); each next tree costs O(n^2). Checked scores only.

    Trees are found when they are asked for, or before it, at most as many again. Raises Infeasible when there is none.
    """
    size = len(arc)
    ranks, flat = kernels.tree_ranks, arc.reshape(-1)
    spaces, work = ranks.no_spaces(3), ranks.work_for(size - 1)
    value, heads = np.empty(1), np.empty((1, size), dtype=np.int64)
    listed = 0
    while True:
        ranks.list_trees(flat, size, size - 1, root == "single", spaces, work, value, heads)
        found = int(spaces.state[ranks.LISTED])
        if found == 0:
            raise no_tree(arc, root)
        yield from zip(heads[listed:found].copy(), value[listed:found].tolist(), strict=True)
        if found < len(value):
            return
        listed, more = found, min(found, MOST)
        value, heads = _with_room(value, more), _with_room(heads, more)
        spaces = ranks.Spaces(spaces.state, *(_with_room(known, 2 * more) for known in spaces[1:]))


def _with_room(known: NDArray[Any], more: int) -> NDArray[Any]:
    """The array with room for more rows."""
    return np.concatenate((known, np.empty((more, *known.shape[1:]), dtype=known.dtype)))
