"""Which features decided an arc: the features of a part in words, with their weights; and how many share a weight."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.errors import InvalidInput
from certus.features.encode import Encoded, Encoder
from certus.features.templates import Templates
from certus.io.conllu import Sentence

if TYPE_CHECKING:
    from certus.models.parser import Parser


class Feature(NamedTuple):
    """A feature of an arc in words, and its weight in the model."""

    text: str
    weight: float


def arc_features(parser: "Parser", sentence: Sentence, head: int, modifier: int) -> list[Feature]:
    """The features of an arc by itself, those of greatest weight, for or against it, first.

    Features that share a weight by hashing show the weight that they share. Siblings and grandparents add to the score
    of a tree beyond this; ``Parser.problem`` has the scores of all parts.
    """
    n = len(sentence)
    if not (0 <= head <= n and 1 <= modifier <= n and head != modifier):
        raise InvalidInput(f"there is no arc {head} -> {modifier} in a sentence of {n} words.")
    batch = parser.encoder.encode([sentence])
    templates = parser.model.templates[0]
    part = np.array([head, modifier], dtype=np.int64)
    index = features_of(batch, 0, part, templates, parser.settings.bits)
    texts = in_words(parser.encoder, sentence, part.tolist(), templates)
    found = [Feature(text, float(parser.weight.floats[k])) for text, k in zip(texts, index, strict=True)]
    return sorted(found, key=lambda feature: (-abs(feature.weight), feature.text))


def features_of(batch: Encoded, s: int, part: NDArray[np.int64], templates: Templates, bits: int) -> NDArray[np.uint64]:
    """The indices of the features of a part of sentence s, a row of nodes whose arcs have no names."""
    from certus.kernels.features import part_features

    index = np.empty(templates.most, dtype=np.uint64)
    count = part_features(batch.attribute, batch.coarse, int(batch.base[s]), part, templates.arrays, bits, index)
    return index[: int(count)]


def in_words(encoder: Encoder, sentence: Sentence, part: Sequence[int], templates: Templates) -> list[str]:
    """The features of an arc as text, in the order of the kernels."""
    rows = [encoder.values(token) for token in sentence]
    n = len(rows)

    def seen(v: int, attribute: str) -> str:
        if v == 0:
            return "<root>"
        if 1 <= v <= n:
            return rows[v - 1][attribute]
        return "<after>" if v > n else "<before>"

    h, m = part
    low, high = min(h, m), max(h, m)
    between = [rows[v - 1]["p"] for v in range(low + 1, high)]
    alike = [min(between.count(seen(v, "p")), 3) for v in (h, m)]
    plain: list[str] = []
    spread: list[str] = []
    for line in templates.ordered[0]:
        words = line.split()
        texts = [
            f"{word}={seen(part[templates.roles.index(word[0])] + int(word[1:-2] or 0), word[-1])}"
            for word in words
            if "." in word
        ]
        if "q" in words:
            texts.append(f"alike={alike[0]},{alike[1]}")
        (spread if "b" in words else plain).append(" ".join(texts))
    shape = f"[{'right' if h < m else 'left'}, about {high - low} away]"
    tags = sorted(set(between), key=encoder.number)
    marked = [f"{text} between={tag}" for tag in tags for text in spread]
    return [
        *plain,
        *(f"{text} {shape}" for text in plain),
        *(text for both in marked for text in (both, f"{both} {shape}")),
    ]


def shared_weights(parser: "Parser", sentences: Sequence[Sentence]) -> float:
    """Share of the distinct arc features of the trees of the sentences whose weight another of them has too."""
    batch = parser.encoder.encode(sentences)
    templates, bits = parser.model.templates[0], parser.settings.bits
    codes = [
        features_of(batch, s, np.array([token.head, token.id], dtype=np.int64), templates, 32)
        for s, sentence in enumerate(sentences)
        for token in sentence
    ]
    distinct = np.unique(np.concatenate(codes)) if codes else np.empty(0, dtype=np.uint64)
    _, times = np.unique(distinct >> np.uint64(32 - bits), return_counts=True)
    return float(times[times > 1].sum()) / max(len(distinct), 1)
