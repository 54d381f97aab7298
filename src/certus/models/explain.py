"""Which features decided an arc: the features of parts in words, with their weights; and how many share a weight."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Ints, as_positive_int, shown
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.features.encode import Encoded
from certus.features.templates import Templates
from certus.learn.trees import arc_scores
from certus.models.feature_text import PartText
from certus.models.filters import all_arcs, with_tree
from certus.models.parser import Parser
from certus.models.scores import problem
from certus.models.tree_parser import TreeParser
from certus.text import Sentence


class Feature(NamedTuple):
    """A feature as its template writes it, and its weight in the model, or what it adds to a choice.

    ``group`` is the kind of evidence that it is, ``plain`` what it says in words.
    """

    text: str
    weight: float
    group: str = ""
    plain: str = ""


@dataclass(frozen=True)
class Choice:
    """Why a word has its head rather than another: the two best trees, and the features in which they differ.

    ``margin`` is what ``tree``, the best of all, scores more than ``other``, the best in which ``word`` has the head
    ``instead``. It is the sum of the ``features``, which come with the greatest first, for or against the head; below
    zero if only the filters stand against the other head. ``groups`` is what each kind of evidence adds to it.
    """

    word: int
    head: int
    instead: int
    tree: Ints
    other: Ints
    margin: float
    features: tuple[Feature, ...]
    groups: Mapping[str, float]


def head_choice(parser: TreeParser[Any], sentence: Sentence, word: int, *, instead: int | None = None) -> Choice:
    """Why the parser gives a word of a tagged sentence its head rather than ``instead``, or than any other head.

    The other tree is the best over the arcs that the cascade leaves, and those of one more tree with the other head.
    """
    linear = _linear(parser, sentence)
    n, word = len(sentence), as_positive_int("word", word)
    if not 1 <= word <= n:
        raise InvalidInput(f"there is no word {word} in a sentence of {n} words.")
    batch = linear.encoder.encode([sentence])
    tree = linear.decode(batch).heads
    head = int(tree[word])
    if instead is not None and (not isinstance(instead, int) or not 0 <= instead <= n or instead in (word, head)):
        reason = "has that head" if instead == head else f"cannot; heads are 0 to {n}, and not the word itself"
        raise InvalidInput(f"word {word} is to have the head {instead} instead, but {reason}.")
    possible = np.arange(n + 1) == instead if instead is not None else ~np.isin(np.arange(n + 1), (head, word))
    nearby = _filter_tree(linear, batch, word, possible)
    if nearby is None:
        raise InvalidInput(f"word {word} can have no head but {head}.")
    allowed = linear.cascade.survivors(batch, 0)
    allowed[:, word] &= possible
    other = np.asarray(problem(linear, batch, 0, with_tree(allowed, nearby)).decode().structure)
    names = linear.namer.names(batch, 0, with_tree(allowed, tree))
    return _Described(linear, sentence, batch, names).choice(word, tree, other)


def _linear(parser: object, sentence: object) -> Parser:
    """The parser; InvalidInput if it, or the sentence, is something else."""
    if not isinstance(parser, Parser) or not isinstance(sentence, Sentence):
        raise InvalidInput(
            f"{shown(parser)} and {shown(sentence)} were given; expected a linear parser, load().parser, and a "
            "certus.text.Sentence with tags."
        )
    return parser


def rivals(parser: Parser, sentence: Sentence, *, most: int = 3, features: int = 40) -> list[list[Choice]]:
    """For every word of a tagged sentence, the heads it would rather have than any other, the closest first.

    Only heads that the cascade leaves are rivals; a word may have none. Each choice is as ``head_choice`` has it, but
    for its features, of which those that add or take most are listed.
    """
    parser = _linear(parser, sentence)
    batch = parser.encoder.encode([sentence])
    trees = parser.decode(batch)
    asked = problem(parser, batch, 0, trees.arcs(0))
    tree, kept = trees.heads, trees.arcs(0)
    names = parser.namer.names(batch, 0, with_tree(kept, tree))
    described = _Described(parser, sentence, batch, names)
    try:
        reach = asked.max_marginals()["arcs"]
    except NotSupported:  # crossing arcs above first order: every kept arc is tried
        reach = np.where(kept, 0.0, -np.inf)
    out = []
    for word in range(1, len(sentence) + 1):
        heads = [h for h in np.argsort(-reach[:, word], kind="stable").tolist() if reach[h, word] > -np.inf]
        found = []
        for h in [h for h in heads if h != tree[word]][: most if reach.any() else None]:
            try:
                other = asked.with_fixed("arcs", (h, word), 1).decode().structure
            except Infeasible:
                continue
            found.append(described.choice(word, tree, np.asarray(other), features))
        out.append(sorted(found, key=lambda choice: choice.margin)[:most])
    return out


def _filter_tree(parser: Parser, batch: Encoded, word: int, possible: Bools) -> Ints | None:
    """The best tree by the first filter in which the word has one of the possible heads; None if there is none."""
    n = int(batch.length[0])
    allowed = all_arcs(n)
    allowed[:, word] &= possible
    tree = np.empty(n + 1, dtype=np.int64)
    arc = arc_scores(batch.sentence(0), allowed, parser.cascade.linear[0].of_arcs)
    value = kernels.parser.best_tree(arc, parser.model.crossing, parser.model.single, tree)
    return tree if value > -np.inf else None


class _Described:
    """The features of the parts of trees of one sentence, whose arcs have these names."""

    def __init__(self, parser: Parser, sentence: Sentence, batch: Encoded, names: NDArray[np.uint32]) -> None:
        self.parser, self.names = parser, names
        self.rows = [parser.encoder.values(token) for token in sentence]
        labels = enumerate(parser.namer.labels)
        self.label = {0: "", **{(k + 1) * int(kernels.arcs.NAME) % 2**32: name for k, name in labels}}
        model = parser.model.weighted(parser.settings.bits, parser.weight.value)
        self.scorer = kernels.parts.scorer_of(batch.sentence(0), names, model)
        self.index = np.empty(max(t.max_features for t in parser.model.templates), dtype=np.uint64)
        self.known: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        self.texts: dict[tuple[int, ...], PartText] = {}

    def choice(self, word: int, tree: Ints, other: Ints, most: int | None = None) -> Choice:
        """Why the tree, and not the other: the features of parts that only one of them has, or the first of these."""
        mine, theirs = self._parts(tree), self._parts(other)
        times: Counter[int] = Counter()
        where: dict[int, tuple[tuple[int, ...], int]] = {}
        for sign, rows in ((1, mine - theirs), (-1, theirs - mine)):
            for row in sorted(rows):
                for place, k in self._weighted(row):
                    times[k] += sign
                    where.setdefault(k, (row, place))
        value, unit = self.parser.weight.value, self.parser.weight.unit
        weights = {k: int(value[k]) * count * unit for k, count in times.items() if count}
        groups: Counter[str] = Counter()
        for k, weight in weights.items():
            row, place = where[k]
            groups[self._text(row).group(place)] += weight  # type: ignore[assignment]
        found = []
        for k in sorted(weights, key=lambda k: -abs(weights[k]))[:most]:
            row, place = where[k]
            text = self._text(row).at(place)
            found.append(Feature(text.text, weights[k], text.group, text.plain))
        found.sort(key=lambda feature: (-abs(feature.weight), feature.text))
        margin, by_group = sum(weights.values()), dict(groups)
        return Choice(word, int(tree[word]), int(other[word]), tree, other, margin, tuple(found), by_group)

    def _parts(self, tree: Ints) -> set[tuple[int, ...]]:
        """The parts of a tree that the model has features for: kind and nodes."""
        kinds = self.parser.model.templates
        rows = kernels.parts.tree_parts(tree)[1:].reshape(-1, 5).tolist()
        return {tuple(row) for row in rows if 0 <= row[0] < len(kinds) and kinds[row[0]].lines}

    def _weighted(self, row: tuple[int, ...]) -> list[tuple[int, int]]:
        """Place and index of the features of a part whose weight is not zero."""
        if row not in self.known:
            size = int(kernels.parts.part_features(self.scorer, np.array(row, dtype=np.int64), self.index))
            places = np.flatnonzero(self.parser.weight.value[self.index[:size]])
            self.known[row] = list(zip(places.tolist(), self.index[places].tolist(), strict=True))
        return self.known[row]

    def _text(self, row: tuple[int, ...]) -> PartText:
        if row not in self.texts:
            self.texts[row] = self._described(row)
        return self.texts[row]

    def _described(self, row: tuple[int, ...]) -> PartText:
        templates = self.parser.model.templates[row[0]]
        part = list(row[1 : 1 + len(templates.roles)])
        node = dict(zip(templates.roles, part, strict=True))
        arcs = [
            (node["h"], node["m"]),
            *((node["h"], node[role]) for role in "st" if node.get(role, -1) >= 0),
            *((node[role], node["h"]) for role in "g" if role in node),
        ]
        called = ",".join(self.label[int(self.names[arc])] for arc in arcs)
        return PartText(self.rows, part, templates, self.parser.encoder.number, called)


def arc_features(parser: Parser, sentence: Sentence, head: int, modifier: int) -> list[Feature]:
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
    rows = [parser.encoder.values(token) for token in sentence]
    text, weights = PartText(rows, part.tolist(), templates, parser.encoder.number), parser.weight.floats
    texts = map(text.at, range(len(text)))
    found = [Feature(t.text, float(weights[k]), t.group, t.plain) for t, k in zip(texts, index, strict=True)]
    return sorted(found, key=lambda feature: (-abs(feature.weight), feature.text))


def features_of(batch: Encoded, s: int, part: NDArray[np.int64], templates: Templates, bits: int) -> NDArray[np.uint64]:
    """The indices of the features of a part of sentence s, a row of nodes whose arcs have no names."""
    index = np.empty(templates.max_features, dtype=np.uint64)
    count = kernels.features.named_features(batch.sentence(s), part, np.uint32(0), templates.arrays, bits, index)
    return index[: int(count)]


def shared_weights(parser: Parser, sentences: Sequence[Sentence]) -> float:
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
