"""Which parts survive the pruning of lower-order ones (LR 8.3.2, 8.3.3).

A part of a higher order maps down to the arcs it is made of, and an arc to the outer arcs of a vine if it is long: a
part survives when everything it maps to does.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus.checks import Ints, one_of
from certus.dependency.part_kinds import HIGHER_KINDS
from certus.errors import InvalidInput

Bools = NDArray[np.bool_]


def supported(kind: str, allowed: ArrayLike) -> tuple[Ints, ...]:
    """All parts of a kind whose arcs are allowed, one array per index, as ``Dependency.from_parts`` takes them.

    Time and memory grow with the number of parts. For kinds with siblings, ``s == h`` stands for no inner modifier, and
    ``t == h`` likewise. A grandparent g lies outside the words from h to m, and so does its head f, which is not
    between g and h either: other parts occur in no projective tree.

    Parameters
    ----------
    kind : str
        The name of an argument of ``certus.Dependency`` for parts above arcs that have a modifier, such as "sibling".
    allowed : array_like of bool, shape (n + 1, n + 1)
        ``allowed[h, m]`` if the arc h -> m survived.

    Examples
    --------
    >>> [index.tolist() for index in supported("sibling", [[False, True, True], [False] * 3, [False] * 3])]
    [[0, 0, 0], [0, 0, 1], [1, 2, 2]]
    """
    names = [name for name, known in HIGHER_KINDS.items() if "m" in known.axes]
    own = HIGHER_KINDS[one_of("kind", kind, names)]
    arcs = np.array(allowed, dtype=bool)
    if arcs.ndim != 2 or arcs.shape[0] != arcs.shape[1] or not len(arcs):
        raise InvalidInput(f"allowed has shape {arcs.shape}; expected (n + 1, n + 1).")
    arcs[:, 0] = False
    np.fill_diagonal(arcs, False)
    beside = arcs | np.eye(len(arcs), dtype=bool)  # a head stands for no modifier
    index: dict[str, Ints] = dict(zip("hm", np.nonzero(arcs), strict=True))
    for letter, known, links in (("s", "h", beside), ("t", "h", beside), ("g", "h", arcs.T), ("f", "g", arcs.T)):
        if letter not in own.axes:
            continue
        start, found = np.nonzero(links)
        first = np.searchsorted(start, np.arange(len(links) + 1))
        count = np.diff(first)[index[known]]
        place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        index = {role: np.repeat(nodes, count) for role, nodes in index.items()}
        index[letter] = found[first[index[known]] + place]
        used = own._replace(axes="".join(index)).readable(arcs, False)(*index.values())
        for above, ends in (("g", "hm"), ("f", "hm"), ("f", "gh")):
            if letter == above:
                a, b = (index[end] for end in ends)
                used = used & ((index[above] < np.minimum(a, b)) | (index[above] > np.maximum(a, b)))
        index = {role: nodes[used] for role, nodes in index.items()}
    columns = [index[role] for role in own.axes]
    order = np.lexsort(columns[::-1])
    return tuple(nodes[order] for nodes in columns)


def long_arcs(inner: ArrayLike, outer_head: ArrayLike, outer_modifier: ArrayLike, band: int) -> Bools:
    """First-order arcs that survive a vine pass: ``allowed[h, m]``, shape (n + 1, n + 1).

    An arc of at most ``band`` words survives if it did in the vine; a longer one if m may take an outer head on that
    side and h an outer modifier (LR 8.3.3, with the test |h - m| <= b).

    Parameters
    ----------
    inner : array_like of bool, shape (n + 1, n + 1)
        Short arcs that survived.
    outer_head : array_like of bool, shape (n + 1, 2)
        ``outer_head[m, d]``: m may have a head beyond the band, to its left (d = 0) or right (d = 1).
    outer_modifier : array_like of bool, shape (n + 1, 2)
        ``outer_modifier[h, d]``: h may have a modifier beyond the band, to its left (d = 0) or right (d = 1).
    """
    short = np.array(inner, dtype=bool)
    head, modifier = np.asarray(outer_head, dtype=bool), np.asarray(outer_modifier, dtype=bool)
    size = len(short)
    if short.shape != (size, size) or head.shape != (size, 2) or modifier.shape != (size, 2):
        raise InvalidInput(f"shapes {short.shape}, {head.shape}, {modifier.shape} do not fit; see the docstring.")
    node = np.arange(size)
    distance = node[None, :] - node[:, None]  # m - h
    to_right = modifier[:, 1][:, None] & head[:, 0][None, :]
    to_left = modifier[:, 0][:, None] & head[:, 1][None, :]
    allowed: Bools = np.where(np.abs(distance) <= band, short, np.where(distance > 0, to_right, to_left))
    allowed[:, 0] = False
    np.fill_diagonal(allowed, False)
    return allowed
