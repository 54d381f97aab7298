"""Which words may stand side by side in the translations of a problem: what a model of one's own is asked about."""

from collections.abc import Sequence

import numpy as np

from certus.checks import Bools
from certus.io.arpa import BEGIN, END, UNKNOWN, Arpa, Ngrams
from certus.translation.forest import TranslationForest
from certus.translation.forest_proof import sides_of
from certus.translation.forest_sides import adjacent, all_ends, lay_out
from certus.translation.language_model import LanguageModel
from certus.translation.phrases import PhraseOption
from certus.translation.scored_forest import prepare
from certus.translation.word_models import WordModel, checked_model, tabulated


def model_of_options(model: WordModel, options: Sequence[PhraseOption], limit: int) -> LanguageModel:
    """The tables of a model for sentences made of phrase options, each at most ``limit`` words after the one before."""
    used = [o for o in options if o.score > -np.inf]
    words = sorted({word for o in used for word in o.target})
    number = {word: k for k, word in enumerate(words)}
    n, begin, end = len(words), len(words), len(words) + 1
    beside = np.zeros((n + 2, n + 2), dtype=bool)
    spoken = [(o, [number[word] for word in o.target]) for o in used if o.target]
    for _, ids in spoken:
        beside[ids[:-1], ids[1:]] = True
    size = 1 + max((int(o.end) for o in used), default=-1)
    firsts, lasts = np.zeros((size + 1, n), dtype=bool), np.zeros((size + 1, n), dtype=bool)
    for o, ids in spoken:
        firsts[o.start, ids[0]] = lasts[o.end + 1, ids[-1]] = True
    if len(spoken) < len(used):  # phrases without words may stand between
        firsts[:], lasts[:] = firsts.any(axis=0), lasts.any(axis=0)
    for place in range(size + 1):
        near = firsts[max(place - limit, 0) : place + limit + 1].any(axis=0)
        beside[:n, :n] |= lasts[place][:, None] & near
    beside[begin, :n] = firsts[: limit + 1].any(axis=0)
    beside[:n, end] = lasts.any(axis=0)
    beside[begin, end] = len(spoken) < len(used) or not used
    return tabulated(model, words, beside)


def model_of_forest(model: WordModel, forest: TranslationForest) -> LanguageModel:
    """The tables of a model for the sentences of a forest."""
    checked_model(model)
    names = [*sorted({BEGIN, END, UNKNOWN, *forest.words})]
    numbers = np.arange(len(names), dtype=np.int32)[:, None]
    bare = LanguageModel(Arpa(names, [Ngrams(numbers, np.zeros(len(names)), np.zeros(len(names)))], natural=True))
    sides, words_of = sides_of(prepare(forest, bare, forest.weights))
    local, number = np.unique(words_of, return_inverse=True)  # <s> and </s> may be words of the forest too
    sides = sides._replace(symbol=np.where(sides.symbol >= 0, number[np.maximum(sides.symbol, 0)], sides.symbol))
    layout = lay_out(sides, len(local))
    found = adjacent(layout, *all_ends(layout, sides.in_ptr, len(local)))
    at = {bare.words[w]: k for k, w in enumerate(local.tolist())}
    words = [word for word in at if word not in (BEGIN, END)]
    order = [at[word] for word in (*words, BEGIN, END)]
    beside: Bools = found[np.ix_(order, order)]
    return tabulated(model, words, beside)
