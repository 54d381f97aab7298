"""Single arcs of a sentence: their scores, and their names, the labels they would likely have by their two words alone.

Both look at the features of every allowed arc, from the codes of its two nodes (kernels.features). A name is a number
that is added to the codes of features of larger parts; rows of labels are as in kernels.labels.
"""

import numpy as np
from numba import uint32, uint64

from certus.kernels.compiling import njit
from certus.kernels.features import (
    arc_shape,
    count_code,
    hash_between,
    hash_codes,
    role_codes,
    shape_features,
    total_weight,
)
from certus.kernels.labels import add_rows, best_label, row_room

NAME = uint32(0x9E3779B1)  # times the number of a label and one: the name of an arc


@njit(cache=True, nogil=True)
def visit_arcs(sentence, allowed, model, seen, total, other, out):
    """out[h, m] <- score of each allowed arc, or its name if ``seen`` is that of a namer and not None; else ``other``.

    Goes outward from each head, so that what lies between head and modifier grows by a word at a time. total is room
    for the sums of labels.
    """
    n = allowed.shape[0] - 1
    templates, bits, weight = model
    coarse, base = sentence.coarse, sentence.base
    size = n + 3
    codes = role_codes(sentence, templates)
    index = np.empty(templates.max_features, dtype=np.uint32)
    plain, single, n_codes = uint64(templates.named), uint64(templates.counted), uint64(templates.seed.shape[0])
    width, shaped = uint64(codes.shape[1]), templates.shaped
    flat = codes.reshape(codes.size)
    code = np.empty(width, dtype=np.uint32)
    times = np.zeros(64, dtype=np.int64)
    met = np.empty(64, dtype=np.int64)
    for h in range(n + 1):
        for m in range(n + 1):
            out[h, m] = other
        a = uint64(h + 2) * width
        for right in range(2):
            step = 1 if right else -1
            longest = n - h if right else h
            while longest > 0 and not allowed[h, h + step * longest]:
                longest -= 1
            n_met = 0
            for d in range(1, longest + 1):
                m = h + step * d
                tag = coarse[base + m]
                if allowed[h, m]:
                    b = uint64(size + m + 2) * width
                    for t in range(width):
                        code[t] = flat[a + t] + flat[b + t]
                    shape = arc_shape(d, right, shaped, bits)
                    if plain < single:
                        counted = count_code(times[coarse[base + h]], times[tag])
                        for t in range(plain, single):
                            code[t] += counted
                    hash_codes(code, single, uint32(0), bits, index, uint64(0))
                    shape_features(single, shape, index)
                    count = single + single
                    if single < n_codes:
                        for k in range(n_met):
                            count = hash_between(code, single, n_codes, met[k], shape, bits, index, count)
                    if seen is None:
                        out[h, m] = total_weight(weight, index, count)
                    else:
                        add_rows(index, count, -1, weight, total)
                        label = best_label(total, seen[right, coarse[base + h], tag])
                        out[h, m] = uint32((label + 1) * NAME)
                if times[tag] == 0:
                    met[n_met] = tag
                    n_met += 1
                times[tag] += 1
            for k in range(n_met):
                times[met[k]] = 0


@njit(cache=True, nogil=True)
def score_arcs(sentence, allowed, model, out):
    """out[h, m] <- score of each allowed arc; -inf elsewhere."""
    visit_arcs(sentence, allowed, model, None, None, -np.inf, out)


@njit(cache=True, nogil=True)
def name_arcs(sentence, allowed, namer, names):
    """names[h, m] <- the name of each allowed arc, uint32, 0 elsewhere; nothing is named without templates."""
    if namer.model.templates.seed.shape[0] == 0:
        names[:] = 0
        return
    total = np.empty(row_room(namer.seen.shape[3], namer.model.weight.shape[0]), dtype=np.int32)
    visit_arcs(sentence, allowed, namer.model, namer.seen, total, 0, names)
