"""The scores of one sentence under a lexicalised grammar, as flat arrays for the kernels.

A *node* of word i is a prefix of one of its spines with the label above it: (t, X1 .. Xk | A). It is the state of the
spine when everything below and on level k is generated. The node below it is (t, X1 .. X(k-1) | Xk); a node without
phrases, (t | A), is a bare tag. A node may be the whole spine, hanging in a phrase A: then it belongs to the *group*
(word, L = Xk, t, A) of all spines that look the same from above. A *context* is what the modifiers of a level depend
on: (word, P = Xk, H = X(k-1), A, t); several nodes may share one.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Floats, Ints
from certus.constituency.lexicalize import Spine

Int32 = NDArray[np.int32]
Pair = tuple[str, str]  # topmost label and tag of a modifier
Context = tuple[str, str, str, str]  # P, H, above, t
STOP: Pair = ("", "")
Key = TypeVar("Key", bound=tuple[Any, ...])
ABOVE_ROOT = ""  # what stands above the root node
LEFT, RIGHT = 0, 1
SHAPE = (2, 3, 3)  # side, distance, state


class SpineScores(ABC):
    """What a sentence needs to know of a grammar over spines; LexicalizedGrammar says what each score means.

    Attributes
    ----------
    root, tags
        Label of the root, and the tags, sorted.
    separators : frozenset of str
        Labels of modifiers after which the state is 1; after all others it is 2.
    """

    root: str
    tags: tuple[str, ...]
    separators: frozenset[str]

    @property
    @abstractmethod
    def spines_of(self) -> Mapping[str, Sequence[Spine]]:
        """The spines of each tag."""

    @property
    @abstractmethod
    def contexts(self) -> AbstractSet[Context]:
        """The (P, H, above, t) that nodes of spines may have."""

    @property
    @abstractmethod
    def outcomes(self) -> Mapping[str, Mapping[Pair, int]]:
        """For each label, the modifiers that its nodes may have, numbered; STOP has the last number."""

    @abstractmethod
    def tags_of(self, words: Sequence[str]) -> list[dict[str, float]]:
        """For each word, the tags it may have, each with a score that ``word_rows`` gets to see."""

    @abstractmethod
    def distances(self, words: Sequence[str]) -> Ints:
        """distance[h, e], 0 to 2, between head h and what lies beyond the words up to e; positions count from 0."""

    @abstractmethod
    def head_score(self, P: str, above: str, t: str, w: str, H: str) -> float:
        """Score of the head child."""

    @abstractmethod
    def modifier_rows(self, P: str, H: str, above: str, t: str, w: str) -> Floats:
        """Scores of the outcomes of P, indexed [side, distance, state, outcome]."""

    @abstractmethod
    def word_rows(
        self, keys: Sequence[tuple[str, str, str]], words: Sequence[str], plain: Sequence[Mapping[str, float]]
    ) -> list[Floats]:
        """For each (P, t, w), scores of the words as modifiers, indexed [side, outcome of P but STOP, word]."""

    @cached_property
    def index(self) -> "SpineIndex":
        """What all sentences share, made when first asked for."""
        return SpineIndex(self)


@dataclass(frozen=True, slots=True)
class TagNodes:
    """The nodes of a tag, each after the one below it; contexts and groups are numbered within the tag."""

    spine: tuple[Spine, ...]
    below: Int32
    context: Int32
    group: Int32
    contexts: tuple[Context, ...]
    groups: tuple[tuple[str, str], ...]  # L, above


class SpineIndex:
    """Labels by number, and the nodes of every tag."""

    def __init__(self, grammar: SpineScores) -> None:
        self.grammar = grammar
        self.labels: tuple[str, ...] = (ABOVE_ROOT, *sorted(set(grammar.outcomes) - {ABOVE_ROOT}))
        self.number = {label: k for k, label in enumerate(self.labels)}
        self._nodes: dict[str, TagNodes] = {}

    def nodes(self, tag: str) -> TagNodes:
        """The nodes of a tag."""
        if tag not in self._nodes:
            self._nodes[tag] = self._made(tag)
        return self._nodes[tag]

    def _made(self, tag: str) -> TagNodes:
        g = self.grammar
        place: dict[tuple[Spine, str], int] = {}
        contexts: dict[Context, int] = {}
        groups: dict[tuple[str, str], int] = {}
        below, context, group = [], [], []

        def add(spine: Spine, above: str) -> bool:
            if (spine, above) in place:
                return True
            if len(spine) > 1:
                key = (spine[-1], spine[-2], above, tag)
                if key not in g.contexts or (spine[:-1], spine[-1]) not in place:
                    return False
                below.append(place[spine[:-1], spine[-1]])
                context.append(contexts.setdefault(key, len(contexts)))
            else:
                below.append(-1)
                context.append(-1)
            place[spine, above] = len(place)
            group.append(-1)
            return True

        for spine in g.spines_of.get(tag, ()):
            for k in range(1, len(spine)):
                add(spine[:k], spine[k])
            for above, pairs in g.outcomes.items():
                if (spine[-1], tag) in pairs and add(spine, above):
                    group[place[spine, above]] = groups.setdefault((spine[-1], above), len(groups))
        return TagNodes(
            tuple(spine for spine, _ in place),
            np.array(below, dtype=np.int32),
            np.array(context, dtype=np.int32),
            np.array(group, dtype=np.int32),
            tuple(contexts),
            tuple(groups),
        )


@dataclass(frozen=True)
class Tables:
    """One sentence. Positions count from 0; nodes are sorted by word, a node after the one below it.

    Groups are sorted by (label above, separator or not, word): ``group_ptr[2 A + separator, i]`` is the first group of
    word i; contexts by (label, word): ``context_ptr[P, i]`` is the first context of word i. With R contexts that have
    the label above group g, ``attach[attach_ptr[g] + 3 R distance + 3 (c - first of them) + state]`` is the score of g
    as a modifier in context c. ``stop[c, state, side, distance]``.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    labels: tuple[str, ...]
    node_ptr: Int32
    node_below: Int32  # -1 for a bare tag
    node_context: Int32  # -1 for a bare tag
    node_group: Int32  # -1 if no spine ends here
    node_score: Floats
    node_spine: tuple[Spine, ...]
    group_word: Int32
    group_tag: Int32
    group_ptr: Int32
    context_ptr: Int32
    context_word: Int32
    stop: Floats
    attach_ptr: Ints
    attach: Floats
    root_score: Floats  # of each group, -inf but under the root
    distance: Int32
    allowed: Bools  # arcs [head, modifier] that the scores do not forbid, node 0 the root

    @property
    def n(self) -> int:
        """Number of words."""
        return len(self.words)


def tables(grammar: SpineScores, words: Sequence[str]) -> Tables:
    """The arrays of a sentence."""
    index, n = grammar.index, len(words)
    plain = grammar.tags_of(words)
    nodes = [[index.nodes(tag) for tag in sorted(tags)] for tags in plain]
    context_key: list[tuple[int, int, Context]] = []  # label, word, context; as they come, then sorted
    group_key: list[tuple[int, bool, int, str, str]] = []  # label above, separator, word, L, tag
    below, context, group, score = [], [], [], []
    node_ptr = [0]
    for i, of_tags in enumerate(nodes):
        size = node_ptr[-1]
        for tag, t in zip(sorted(plain[i]), of_tags, strict=True):
            below.append(np.where(t.below >= 0, t.below + size, -1))
            context.append(np.where(t.context >= 0, t.context + len(context_key), -1))
            group.append(np.where(t.group >= 0, t.group + len(group_key), -1))
            heads = [grammar.head_score(P, above, tag, words[i], H) for P, H, above, _ in t.contexts]
            own: list[float] = []
            for b, c in zip(t.below.tolist(), t.context.tolist(), strict=True):
                own.append(own[b] + heads[c] if b >= 0 else 0.0)
            score += own
            context_key += [(index.number[key[0]], i, key) for key in t.contexts]
            group_key += [(index.number[above], L in grammar.separators, i, L, tag) for L, above in t.groups]
            size += len(t.spine)
        node_ptr.append(size)
    contexts, place_of_context = _sorted(context_key)
    groups, place_of_group = _sorted(group_key)
    labels = len(index.labels)
    group_ptr = _offsets([2 * a + sep for a, sep, _, _, _ in groups], [g[2] for g in groups], 2 * labels, n)
    context_ptr = _offsets([a for a, _, _ in contexts], [i for _, i, _ in contexts], labels, n)
    outcome = np.array([grammar.outcomes[index.labels[a]][L, t] for a, _, _, L, t in groups], dtype=np.int32)
    group_word = np.array([g[2] for g in groups], dtype=np.int32)
    context_word = np.array([i for _, i, _ in contexts], dtype=np.int32)
    number = {tag: t for t, tag in enumerate(grammar.tags)}
    stop, attach_ptr, attach = _attachments(
        grammar, words, plain, contexts, group_ptr, context_ptr, group_word, outcome
    )
    return Tables(
        words=tuple(words),
        tags=grammar.tags,
        labels=index.labels,
        node_ptr=np.array(node_ptr, dtype=np.int32),
        node_below=_joined(below),
        node_context=_renumbered(_joined(context), place_of_context),
        node_group=_renumbered(_joined(group), place_of_group),
        node_score=np.array(score, dtype=np.float64),
        node_spine=tuple(spine for of_tags in nodes for t in of_tags for spine in t.spine),
        group_word=group_word,
        group_tag=np.array([number[g[4]] for g in groups], dtype=np.int32),
        group_ptr=group_ptr,
        context_ptr=context_ptr,
        context_word=context_word,
        stop=stop,
        attach_ptr=attach_ptr,
        attach=attach,
        root_score=_root_scores(grammar, words, plain, group_ptr, group_word, outcome),
        distance=np.ascontiguousarray(grammar.distances(words), dtype=np.int32).reshape(n, n),
        allowed=np.ones((n + 1, n + 1), dtype=np.bool_),
    )


def _attachments(
    grammar: SpineScores,
    words: Sequence[str],
    plain: Sequence[Mapping[str, float]],
    contexts: Sequence[tuple[int, int, Context]],
    group_ptr: Int32,
    context_ptr: Int32,
    group_word: Int32,
    outcome: Int32,
) -> tuple[Floats, Ints, Floats]:
    """``stop``, ``attach_ptr`` and ``attach``."""
    n = len(words)
    rows = [grammar.modifier_rows(*key, words[i]) for _, i, key in contexts]
    stop = np.array([r[..., -1].transpose(2, 0, 1) for r in rows]).reshape(-1, 3, 2, 3)
    row_of, row_ptr, row_flat = _packed(rows)
    keys = {(P, t, words[i]): None for _, i, (P, _, _, t) in contexts}
    number = {key: k for k, key in enumerate(keys)}
    _, word_ptr, word_flat = _packed(grammar.word_rows(list(keys), words, plain))
    word_of = np.array([number[P, t, words[i]] for _, i, (P, _, _, t) in contexts], dtype=np.int64)
    width = context_ptr[:, n] - context_ptr[:, 0]  # contexts by label
    label = np.repeat(np.arange(len(group_ptr)) // 2, group_ptr[:, n] - group_ptr[:, 0])  # of each group
    attach_ptr = np.concatenate(([0], np.cumsum(9 * width[label]))).astype(np.int64)
    attach = np.empty(int(attach_ptr[-1]))
    context_word = np.array([i for _, i, _ in contexts], dtype=np.int32)
    outcomes = np.array([len(grammar.outcomes[label]) for label in grammar.index.labels], dtype=np.int64)
    layout = kernels.lexicalized.Layout(n, group_word, group_ptr, context_ptr, context_word, attach_ptr)
    rows_and_words = row_ptr[row_of], row_flat, word_ptr[word_of], word_flat
    kernels.lexicalized.attachments(layout, outcome, outcomes, *rows_and_words, attach)
    return stop, attach_ptr[:-1], attach


def _root_scores(
    grammar: SpineScores,
    words: Sequence[str],
    plain: Sequence[Mapping[str, float]],
    group_ptr: Int32,
    group_word: Int32,
    outcome: Int32,
) -> Floats:
    out = np.full(len(group_word), -np.inf)
    first, last = int(group_ptr[0, 0]), int(group_ptr[1, -1])
    if first < last:
        rows = grammar.modifier_rows(ABOVE_ROOT, "", "", "", "")
        (known,) = grammar.word_rows([(ABOVE_ROOT, "", "")], words, plain)
        m, o = group_word[first:last], outcome[first:last]
        out[first:last] = rows[RIGHT, 0, 0, o] + known[RIGHT, o, m]
    return out


def _sorted(keys: Sequence[Key]) -> tuple[list[Key], Int32]:
    """The keys in order, and the place of each."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    place = np.empty(len(keys), dtype=np.int32)
    place[order] = np.arange(len(keys))
    return [keys[k] for k in order], place


def _offsets(row: Sequence[int], word: Sequence[int], rows: int, n: int) -> Int32:
    """ptr[r, i]: how many sorted (row, word) come before (r, i)."""
    keys = np.array(row, dtype=np.int64) * (n + 1) + np.array(word, dtype=np.int64)
    wanted = np.arange(rows)[:, None] * (n + 1) + np.arange(n + 1)[None, :]
    return np.searchsorted(keys, wanted).astype(np.int32)


def _joined(pieces: Sequence[NDArray[np.integer]]) -> Int32:
    return np.concatenate(pieces).astype(np.int32) if pieces else np.empty(0, dtype=np.int32)


def _renumbered(values: Int32, place: Int32) -> Int32:
    return np.where(values >= 0, place[values], -1).astype(np.int32) if len(place) else values


def _packed(arrays: Sequence[Floats]) -> tuple[Ints, Ints, Floats]:
    """Which of the different arrays each one is, where these start, and all of them flat in a row."""
    number: dict[int, int] = {}
    different: list[Floats] = []
    which = np.empty(len(arrays), dtype=np.int64)
    for k, array in enumerate(arrays):
        if id(array) not in number:
            number[id(array)] = len(different)
            different.append(array)
        which[k] = number[id(array)]
    starts = [0, *accumulate(a.size for a in different)]
    flat = np.concatenate([a.reshape(-1) for a in different]) if different else np.empty(0)
    return which, np.array(starts, dtype=np.int64), flat
