"""Labels folded into the arcs: the best label of each arc, or the log of the sum of all (DEP 4.3)."""

from typing import NamedTuple

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints, as_scores
from certus.threads import long_call


class Folded(NamedTuple):
    """Scores of arcs (B, N, N) without labels; entropies of the labels of each, and their shares (B, N, N, L), if asked
    for. Arcs that no tree has, and those without a label, are -inf, with shares of 0.
    """

    arc: Floats
    entropy: Floats
    share: Floats  # of the type of the labels


def folded(label: Floats, lengths: Ints, *, summed: bool, entropies: bool = False, shares: bool = False) -> Folded:
    """The labels (B, N, N, L), float64 or float32, of a padded batch folded; InvalidInput for a score that is none."""
    labels, least = label.shape[3], kernels.lanes.LANES
    wide = label
    if labels < least:
        wide = np.full((*label.shape[:3], least), -np.inf, dtype=label.dtype)
        wide[..., :labels] = label
    none = (1, 1, 1)
    found = kernels.label_folds.Folded(
        np.empty(label.shape[:3]),
        np.empty(label.shape[:3] if entropies else none),
        np.empty(wide.shape if shares else (*none, 1), dtype=label.dtype),
    )
    wrong = long_call(3.0 * wide.size, kernels.label_folds.fold, np.ascontiguousarray(wide), lengths, summed, found)
    if wrong >= 0:
        end = int(lengths[wrong]) + 1
        read = np.full(label.shape, -np.inf)
        read[wrong, :end, 1:end] = label[wrong, :end, 1:end]
        read[wrong, np.arange(end), np.arange(end)] = -np.inf
        as_scores("label", read)
    share = np.ascontiguousarray(found.share[..., :labels]) if shares else found.share
    return Folded(found.arc, found.entropy, share)


def fold_labels(scores: Floats) -> tuple[Floats, Floats]:
    """Arc scores (..., N, N) with the labels, the last axis, summed out; and the probability of each label given its
    arc.
    """
    given = scores.reshape(-1, *scores.shape[-3:])
    found = folded(given, np.full(len(given), given.shape[1] - 1), summed=True, shares=True)
    arc: Floats = found.arc.reshape(scores.shape[:-1])
    share: Floats = found.share.reshape(scores.shape)
    return arc, share
