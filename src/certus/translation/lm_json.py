"""Language models as JSON data, cut down to the words of a problem, so that saved results can be verified anywhere."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from certus.errors import InvalidInput
from certus.io.arpa import Arpa, Ngrams
from certus.serialize import floats_from_json, floats_to_json
from certus.translation.language_model import LN10, LanguageModel


def lm_to_json(lm: LanguageModel, words: Iterable[str]) -> dict[str, Any]:
    """The n-grams of a model over some words, natural logarithms; sentences of these words score the same."""
    arrays = lm.arrays
    kept = np.zeros(len(lm.words), dtype=bool)
    kept[[lm.unknown, lm.begin, lm.end, *(lm.word_id(word) for word in words)]] = True
    inside = np.zeros(lm.n_states, dtype=bool)  # states of kept words only
    inside[0] = True
    for length in range(1, lm.order):
        at = np.flatnonzero(arrays.state_length == length)
        inside[at] = inside[arrays.state_parent[at]] & kept[arrays.state_word[at]]
    back_off = {tuple(lm.context(int(q))): float(arrays.back_off[q]) for q in np.flatnonzero(inside)}
    slots = np.flatnonzero(arrays.slots[::3] != -1)
    keys = arrays.slots[3 * slots]
    slots = slots[inside[keys >> 32] & kept[keys & 0xFFFFFFFF]]
    grams: list[list[tuple[list[str], float]]] = [[] for _ in range(lm.order)]
    grams[0] = [([lm.words[w]], float(arrays.unigram[w])) for w in np.flatnonzero(kept).tolist()]
    for slot in slots.tolist():
        key = int(arrays.slots[3 * slot])
        gram = [*lm.context(key >> 32), lm.words[key & 0xFFFFFFFF]]
        grams[len(gram) - 1].append((gram, float(arrays.values[3 * slot + 1])))
    return {
        "words": [w[0] for w, _ in grams[0]],
        "orders": [
            {
                "words": [words for words, _ in row],
                "log_probability": floats_to_json(np.array([value for _, value in row])),
                "back_off": floats_to_json(np.array([back_off.get(tuple(words), 0.0) for words, _ in row])),
            }
            for row in grams
        ],
    }


def lm_from_json(data: Any) -> LanguageModel:
    """The model that ``lm_to_json`` described; InvalidInput if it is none."""
    try:
        words = list(data["words"])
        number = {word: i for i, word in enumerate(words)}
        orders = []
        for n, grams in enumerate(data["orders"], start=1):
            ids = np.array([[number[w] for w in gram] for gram in grams["words"]], dtype=np.int32).reshape(-1, n)
            value = floats_from_json(grams["log_probability"], "log_probability") / LN10
            back = floats_from_json(grams["back_off"], "back_off") / LN10
            if not len(ids) == len(value) == len(back):
                raise InvalidInput("the n-grams of a language model and their numbers differ in length.")
            orders.append(Ngrams(ids, value, back))
        return LanguageModel(Arpa(words, orders))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidInput(f"not a language model: {error!r}.") from None
