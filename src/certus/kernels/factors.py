"""Assignments of a factor graph improved one variable at a time.

Tables lie in one flat array, each over the variables var[var_ptr[f] .. var_ptr[f + 1]], its cells from start[f] on, K
labels to an axis, the last variable fastest. Tables of variable v are of[of_ptr[v] .. of_ptr[v + 1]].
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.compiling import njit


class Tables(NamedTuple):
    """Tables of scores over discrete variables."""

    cell: np.ndarray
    start: np.ndarray
    var_ptr: np.ndarray
    var: np.ndarray
    of_ptr: np.ndarray
    of: np.ndarray


@njit(cache=True, nogil=True)
def improve(unary, tables, sweeps, labels):
    """Give every variable its best label with the others as they are, again and again; labels (n,) are overwritten.

    Ends when nothing changes or after so many sweeps. A label is changed only for a better one, the smallest of these.
    """
    n, size = unary.shape
    for _ in range(sweeps):
        changed = False
        for v in range(n):
            own, best, chosen = -np.inf, -np.inf, -1
            for s in range(size):
                score = unary[v, s]
                for k in range(tables.of_ptr[v], tables.of_ptr[v + 1]):
                    f = tables.of[k]
                    cell = 0
                    for j in range(tables.var_ptr[f], tables.var_ptr[f + 1]):
                        u = tables.var[j]
                        cell = cell * size + (s if u == v else labels[u])
                    score += tables.cell[tables.start[f] + cell]
                if s == labels[v]:
                    own = score
                if score > best:
                    best, chosen = score, s
            if best > own:
                labels[v] = chosen
                changed = True
        if not changed:
            return
