"""Labels of the arcs of finished trees by a linear model and by scores from elsewhere, added up."""

import numpy as np

from certus.kernels.compiling import njit
from certus.kernels.labels import best_labels, label_scores
from certus.kernels.tuples import Sentence


@njit(cache=True, nogil=True)
def label_sums(batch, start, heads, labeller, more, labels):
    """labels <- the best of all words of a batch; more[k, label] is added for node k of it, in units of the labeller.

    Heads, labels and rows of ``more`` of sentence s begin at start[s], its node 0 included.
    """
    for s in range(batch.length.shape[0]):
        n = batch.length[s]
        sentence = Sentence(batch.attribute, batch.coarse, batch.base[s], n)
        own = heads[start[s] : start[s] + n + 1]
        feature = np.empty((n + 1, labeller.model.templates.max_features), dtype=np.uint32)
        score = np.empty((n + 1, labeller.seen.shape[3]))
        none = np.full(n + 1, -1, dtype=np.int64)
        label_scores(sentence, own, none, False, labeller, feature, score)
        for m in range(1, n + 1):
            for label in range(score.shape[1]):
                score[m, label] += more[start[s] + m, label]
        best_labels(sentence, own, labeller, score, labels[start[s] : start[s] + n + 1])
