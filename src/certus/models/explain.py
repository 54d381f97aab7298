"""Which features decided an arc: the features of parts in words, with their weights; and how many share a weight."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Ints
from certus.errors import InvalidInput
from certus.features.encode import Encoded, Encoder
from certus.features.templates import Templates
from certus.learn.trees import arc_scores
from certus.models.filters import all_arcs, with_tree
from certus.models.scores import problem
from certus.text import Sentence

if TYPE_CHECKING:
    from certus.models.parser import Parser


class Feature(NamedTuple):
    """A feature in words, and its weight in the model, or what it adds to a choice."""

    text: str
    weight: float


@dataclass(frozen=True)
class Choice:
    """Why a word has its head rather than another: the two best trees, and the features in which they differ.

    ``margin`` is what ``tree``, the best of all, scores more than ``other``, the best in which ``word`` has the head
    ``instead``. It is the sum of the ``features``, which come with the greatest first, for or against the head; below
    zero if only the filters stand against the other head.
    """

    word: int
    head: int
    instead: int
    tree: Ints
    other: Ints
    margin: float
    features: tuple[Feature, ...]


def head_choice(parser: "Parser", sentence: Sentence, word: int, *, instead: int | None = None) -> Choice:
    """Why the parser gives a word of a tagged sentence its head rather than ``instead``, or than any other head.

    The other tree is the best over the arcs that the cascade leaves, and those of one more tree with the other head.
    """
    n = len(sentence)
    if not 1 <= word <= n:
        raise InvalidInput(f"there is no word {word} in a sentence of {n} words.")
    batch = parser.encoder.encode([sentence])
    tree = parser.decode(batch).heads
    head = int(tree[word])
    if instead is not None and (not 0 <= instead <= n or instead in (word, head)):
        reason = "has that head" if instead == head else f"cannot; heads are 0 to {n}, and not the word itself"
        raise InvalidInput(f"word {word} is to have the head {instead} instead, but {reason}.")
    possible = np.arange(n + 1) == instead if instead is not None else ~np.isin(np.arange(n + 1), (head, word))
    nearby = _filter_tree(parser, batch, word, possible)
    if nearby is None:
        raise InvalidInput(f"word {word} can have no head but {head}.")
    allowed = parser.cascade.survivors(batch, 0)
    allowed[:, word] &= possible
    other = np.asarray(problem(parser, batch, 0, with_tree(allowed, nearby)).decode().structure)
    names = parser.namer.names(batch, 0, with_tree(allowed, tree))
    count = Counter(_features(parser, sentence, batch, tree, names))
    count.subtract(_features(parser, sentence, batch, other, names))
    value, unit = parser.weight.value, parser.weight.unit
    found = [Feature(text, int(value[k]) * times * unit) for (text, k), times in count.items()]
    found = sorted((f for f in found if f.weight), key=lambda feature: (-abs(feature.weight), feature.text))
    return Choice(word, head, int(other[word]), tree, other, sum(f.weight for f in found), tuple(found))


def _filter_tree(parser: "Parser", batch: Encoded, word: int, possible: Bools) -> Ints | None:
    """The best tree by the first filter in which the word has one of the possible heads; None if there is none."""
    n = int(batch.length[0])
    allowed = all_arcs(n)
    allowed[:, word] &= possible
    tree = np.empty(n + 1, dtype=np.int64)
    arc = arc_scores(batch.sentence(0), allowed, parser.cascade.linear[0].of_arcs)
    value = kernels.parser.best_tree(arc, parser.model.crossing, parser.model.single, tree)
    return tree if value > -np.inf else None


def _features(
    parser: "Parser", sentence: Sentence, batch: Encoded, tree: Ints, names: NDArray[np.uint32]
) -> Iterator[tuple[str, int]]:
    """Text and index of every feature of a tree, each as often as the tree has it."""
    label = {0: "", **{(k + 1) * int(kernels.labels.NAME) % 2**32: name for k, name in enumerate(parser.namer.labels)}}
    index = np.empty(max(templates.max_features for templates in parser.model.templates), dtype=np.uint64)
    model = parser.model.weighted(parser.settings.bits, parser.weight.value)
    scorer = kernels.parts.scorer_of(batch.sentence(0), names, model)
    for row in kernels.parts.tree_parts(tree)[1:].reshape(-1, 5):
        if not 0 <= row[0] < len(parser.model.templates) or not parser.model.templates[row[0]].lines:
            continue
        templates = parser.model.templates[row[0]]
        part = row[1 : 1 + len(templates.roles)].tolist()
        node = dict(zip(templates.roles, part, strict=True))
        arcs = [
            (node["h"], node["m"]),
            *((node["h"], node[role]) for role in "st" if node.get(role, -1) >= 0),
            *((node[role], node["h"]) for role in "g" if role in node),
        ]
        called = ",".join(label[int(names[arc])] for arc in arcs)
        texts = in_words(parser.encoder, sentence, part, templates, called)
        size = int(kernels.parts.part_features(scorer, row, index))
        yield from zip(texts, index[:size].tolist(), strict=True)


def arc_features(parser: "Parser", sentence: Sentence, head: int, modifier: int) -> list[Feature]:
    """The features of an arc by itself, those of greatest weight, for or against it, first.

    Features that share a weight by hashing show the weight that they share. Siblings and grandparents add to the score
    of a tree beyond this: ``head_choice`` has them all.
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
    index = np.empty(templates.max_features, dtype=np.uint64)
    count = kernels.features.named_features(batch.sentence(s), part, np.uint32(0), templates.arrays, bits, index)
    return index[: int(count)]


def in_words(
    encoder: Encoder, sentence: Sentence, part: Sequence[int], templates: Templates, names: str = ""
) -> list[str]:
    """The features of a part, whose arcs have these names, as text, in the order of the kernels."""
    rows = [encoder.values(token) for token in sentence]
    n = len(rows)

    def seen(v: int, attribute: str) -> str:
        if v < -1:
            return "<none>"
        if v == 0:
            return "<root>"
        if 1 <= v <= n:
            return rows[v - 1][attribute]
        return "<after>" if v > n else "<before>"

    h, m = part[:2]
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
        if "y" in words:
            texts.append(f"names={names}")
        if "q" in words:
            texts.append(f"alike={alike[0]},{alike[1]}")
        (spread if "b" in words else plain).append(" ".join(texts))
    direction = "right" if h < m else "left"
    if not templates.of_arcs:
        sides = [_side(role, v, low, high) for role, v in zip(templates.roles[2:], part[2:], strict=True)]
        return [f"{text} [{', '.join([direction, *sides])}]" for text in plain]
    shape = f"[{direction}, about {high - low} away]"
    tags = sorted(set(between), key=encoder.number)
    marked = [f"{text} between={tag}" for tag in tags for text in spread]
    return [
        *plain,
        *(f"{text} {shape}" for text in plain),
        *(text for both in marked for text in (both, f"{both} {shape}")),
    ]


def _side(role: str, v: int, low: int, high: int) -> str:
    """Where the node of a role lies; see kernels.features.side."""
    if v < 0:
        return f"no {role}"
    return f"{role} {'before' if v < low else 'inside' if v < high else 'behind'}"


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
