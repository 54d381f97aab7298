"""Every part over the arcs that pruning leaves, and its score.

A part is a row of nodes in the order of the roles of its templates: arc "hm", sibling "hms", grandparent "hmg",
grand-sibling "hmsg", tri-sibling "hmst", ABSENT where there is no sibling; see kernels.parser.
"""

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT, named_features
from certus.kernels.parser import names_of


@njit(cache=True, nogil=True)
def list_parts(allowed, size, part):
    """part[kind, : size[kind]] <- the parts of each kind over the allowed arcs (n + 1, n + 1); rows of four nodes.

    With part of shape (5, 0, 4) it only counts.
    """
    n = allowed.shape[0] - 1
    fill = part.shape[1] > 0
    row = np.full(4, ABSENT, dtype=np.int64)
    size[:] = 0
    for h in range(n + 1):
        for m in range(1, n + 1):
            if not allowed[h, m]:
                continue
            row[0], row[1], row[2], row[3] = h, m, ABSENT, ABSENT
            if fill:
                part[0, size[0]] = row
            size[0] += 1
            for g in range(n + 1):
                if allowed[g, h] and g != m:
                    row[2] = g
                    if fill:
                        part[2, size[2]] = row
                    size[2] += 1
            step = 1 if m > h else -1
            for s in range(h, m, step):
                if s != h and not allowed[h, s]:
                    continue
                row[2], row[3] = ABSENT if s == h else s, ABSENT
                if fill:
                    part[1, size[1]] = row
                size[1] += 1
                for g in range(n + 1):
                    if allowed[g, h] and g != m and g != s:
                        row[3] = g
                        if fill:
                            part[3, size[3]] = row
                        size[3] += 1
                if s == h:
                    continue
                for t in range(h, s, step):
                    if t == h or allowed[h, t]:
                        row[3] = ABSENT if t == h else t
                        if fill:
                            part[4, size[4]] = row
                        size[4] += 1


@njit(cache=True, nogil=True)
def score_parts(attribute, coarse, base, kind, part, name, templates, bits, weight, index, out):
    """out[k] <- sum of the weights of the features of the part in row k; name (n + 1, n + 1) are the names of arcs."""
    for k in range(part.shape[0]):
        s = part[k, 2] if kind == 1 or kind >= 3 else ABSENT
        g = part[k, kind] if kind == 2 or kind == 3 else ABSENT
        t = part[k, 3] if kind == 4 else ABSENT
        names = names_of(name, part[k, 0], part[k, 1], s, t, g)
        count = named_features(attribute, coarse, base, part[k], names, templates, bits, index)
        total = 0.0
        for j in range(count):
            total += weight[index[j]]
        out[k] = total
