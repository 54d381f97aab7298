"""Language models as JSON data, cut down to the words of a problem, so that saved results can be verified anywhere."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from certus.io.arpa import Arpa, Ngrams
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.translation.language_model import LanguageModel


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
    given = Field.of(data, "lm")
    words = given["words"].texts()
    number = {word: i for i, word in enumerate(words)}
    orders = []
    for n, grams in enumerate(given["orders"].items(least=1), start=1):
        ids = []
        for gram in grams["words"].items():
            for word in gram.items(size=n):
                if word.text() not in number:
                    word.fail("one of the words of the model")
                ids.append(number[word.value])
        size = len(ids) // n
        values = (grams[name].numbers((size,)) for name in ("log_probability", "back_off"))
        orders.append(Ngrams(np.array(ids, dtype=np.int32).reshape(size, n), *values))
    return given.made(lambda: LanguageModel(Arpa(words, orders, natural=True)))
