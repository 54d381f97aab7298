"""A translation forest made ready for decoding with a language model: local words, a top, no empty target sides."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from certus.checks import Bools, Floats, Ints
from certus.errors import NotSupported
from certus.translation.forest import ForestArrays, TranslationForest
from certus.translation.language_model import LanguageModel

BEGIN, END = 0, 1  # local words: <s> and </s>
MOST_EDGES = 1_000_000  # of one derivation
BLOCK = 10  # source words: what rules yield in the middle of other blocks are other copies of words
MOST_WORDS = 1 << 20  # different words of a forest, as packed by the kernels

Empty = tuple[float, tuple[int, ...]]  # a derivation that yields nothing: its score and its edges


@dataclass(frozen=True)
class ScoredForest:
    """``arrays`` are int64, for the vertices 0 .. V - 1, of which the last is the top.

    The top's edge yields <s>, root, </s>. Tokens are local words: ``lm_word`` gives their numbers in the
    model. What rules of distant spans yield are different copies of a word, so that multipliers can be others here and
    there. Vertices that yield nothing are worked into the edges above them, one edge for each way: ``origin[e]`` is
    the edge of the forest (-1 for the top's), ``empties[e]`` what stands at each place of its tail, if not a vertex.
    """

    arrays: ForestArrays
    alive: Bools  # edges reached from the root whose weight is not -inf
    lm_word: NDArray[np.int32]
    name: Ints  # per word: the first of the forest's words that it stands for; -1 for <s>, -2 for </s>
    label: Ints  # the same, with other numbers for other copies
    origin: Ints
    empties: dict[int, tuple[tuple[int, ...] | None, ...]]

    @property
    def n_vertices(self) -> int:
        """Vertices, the top among them."""
        return len(self.arrays.in_ptr) - 1

    @property
    def n_words(self) -> int:
        """Different words, <s> and </s> among them."""
        return len(self.lm_word)

    @cached_property
    def longest(self) -> tuple[int, int]:
        """The most edges and the most words of any derivation."""
        edges, words = longest(self.arrays)
        if edges + words > MOST_EDGES:
            raise NotSupported(f"a derivation may have {edges + words:.3g} edges and words; at most {MOST_EDGES}.")
        return int(edges), int(words)

    def multipliers(self, rows: Floats) -> Floats:
        """Rows (word, word, value), words as in ``label``, as a matrix (W, W); words that no edge uses are left out."""
        number = {label: i for i, label in enumerate(self.label.tolist())}
        u = np.zeros((self.n_words, self.n_words))
        for v, w, value in rows.tolist():
            if v in number and w in number and w != -2:
                u[number[v], number[w]] = value
        return u

    def derivation(self, edges: Sequence[int]) -> list[int]:
        """Edges of the forest of a derivation given by edges of these arrays, top first; both head before tails."""
        rest = iter(edges)
        out: list[int] = []
        pending: list[tuple[int, ...] | None] = [None]
        while pending:
            empty = pending.pop()
            if empty is not None:
                out.extend(empty)
                continue
            e = next(rest)
            if self.origin[e] >= 0:
                out.append(int(self.origin[e]))
            tail_ptr = self.arrays.tail_ptr
            pending.extend(reversed(self.empties.get(e, (None,) * int(tail_ptr[e + 1] - tail_ptr[e]))))
        return out


def longest(forest: ForestArrays) -> tuple[float, float]:
    """The most edges and the most words of any derivation of the last vertex; they may be huge."""
    in_ptr, tail_ptr, tail, token_ptr, *_ = forest
    size = np.zeros((len(in_ptr) - 1, 2))
    for v in range(len(in_ptr) - 1):
        a, b = int(in_ptr[v]), int(in_ptr[v + 1])
        if a < b:
            below = np.cumsum(size[tail[tail_ptr[a] : tail_ptr[b]]], axis=0)
            below = np.vstack((np.zeros((1, 2)), below))[tail_ptr[a : b + 1] - tail_ptr[a]]
            own = np.diff(token_ptr[a : b + 1]) - np.diff(tail_ptr[a : b + 1])
            size[v] = (np.diff(below, axis=0) + np.column_stack((np.ones(b - a), own))).max(axis=0)
    return float(size[-1, 0]), float(size[-1, 1])


def prepare(forest: TranslationForest, lm: LanguageModel, weights: Floats, *, k: int = 1) -> ScoredForest:
    """Make a forest ready. ``k``: how many ways to yield nothing are kept for each vertex that may."""
    graph = forest.graph
    root, n_edges = graph.root, int(graph.in_ptr[graph.root + 1])
    in_ptr, tail_ptr, tail, token_ptr = (
        a.astype(np.int64)
        for a in (graph.in_ptr[: root + 2], graph.tail_ptr[: n_edges + 1], graph.tail, forest.token_ptr[: n_edges + 1])
    )
    token = forest.lm_tokens(lm)[: token_ptr[-1]].astype(np.int64)
    alive = np.zeros(n_edges, dtype=bool)
    reached = np.zeros(root + 1, dtype=bool)
    reached[root] = True
    for v in range(root, -1, -1):
        if reached[v]:
            edges = slice(int(in_ptr[v]), int(in_ptr[v + 1]))
            alive[edges] = weights[edges] > -np.inf
            reached[tail[tail_ptr[in_ptr[v]] : tail_ptr[in_ptr[v + 1]]]] = True
    copy, own = np.repeat(_copies(forest, lm), np.diff(forest.token_ptr))[: len(token)], token >= 0
    n_copies = int(copy.max(initial=0)) + 1
    words, local = np.unique(token[own] * n_copies + copy[own], return_inverse=True)
    if len(words) > MOST_WORDS:
        raise NotSupported(f"the forest has {len(words)} different words; at most {MOST_WORDS}.")
    token[own] = local + 2
    words, copy = np.divmod(words, n_copies)
    ids, first = np.unique(lm.word_ids(forest.words), return_index=True)
    name = first[np.searchsorted(ids, words)]
    arrays = ForestArrays(
        np.append(in_ptr, n_edges + 1),
        np.append(tail_ptr, tail_ptr[-1] + 1),
        np.append(tail[: tail_ptr[-1]], root),
        np.append(token_ptr, token_ptr[-1] + 3),
        np.append(token, [BEGIN, ~0, END]),
        np.append(weights[:n_edges], 0.0),
    )
    whole = ScoredForest(
        arrays,
        np.append(alive, True),
        np.concatenate(([lm.begin, lm.end], words)).astype(np.int32),
        np.concatenate(([-1, -2], name)).astype(np.int64),
        np.concatenate(([-1, -2], name + copy * len(forest.words))).astype(np.int64),
        np.append(np.arange(n_edges), -1),
        {},
    )
    return _without_empty(whole, k) if (np.diff(token_ptr) == 0).any() else whole


def _copies(forest: TranslationForest, lm: LanguageModel) -> Ints:
    """Per edge, which copy of the words on its target side it has: by the middle of the span, a block of the source.

    Up to bigrams, and where spans are not known, there is one.
    """
    if forest.spans is None or lm.order <= 2 or not len(forest.spans):
        return np.zeros(forest.graph.n_edges, dtype=np.int64)
    span = forest.spans[forest.graph.heads].astype(np.int64)
    blocks = max(int(forest.spans.max()) // BLOCK, 1)
    copy: Ints = np.clip(span.sum(axis=1) // (2 * BLOCK), 0, blocks - 1)
    return copy


def _without_empty(f: ScoredForest, k: int) -> ScoredForest:
    """The same forest with what yields nothing worked into the edges above."""
    empty: list[list[Empty]] = []  # per vertex: its k best derivations that yield nothing
    rows: list[tuple[float, list[int], list[int], int, tuple[tuple[int, ...] | None, ...]]] = []
    in_ptr, old = [0], f.arrays
    for v in range(f.n_vertices):
        nothing: list[Empty] = []
        for e in range(old.in_ptr[v], old.in_ptr[v + 1]):
            if not f.alive[e]:
                continue
            tail = old.tail[old.tail_ptr[e] : old.tail_ptr[e + 1]].tolist()
            side = old.token[old.token_ptr[e] : old.token_ptr[e + 1]].tolist()
            for ways in product(*([None, *empty[u]] for u in tail)):
                weight = float(old.weight[e]) + sum(way[0] for way in ways if way is not None)
                edges = tuple(None if way is None else way[1] for way in ways)
                left = [u for u, way in zip(tail, ways, strict=True) if way is None]
                place = np.cumsum([way is None for way in ways]) - 1  # of each vertex among those left
                tokens = [t if t >= 0 else ~int(place[~t]) for t in side if t >= 0 or ways[~t] is None]
                if tokens:
                    rows.append((weight, left, tokens, int(f.origin[e]), edges))
                else:
                    nothing.append((weight, sum((way[1] for way in ways if way is not None), (int(f.origin[e]),))))
        empty.append(sorted(nothing, key=lambda way: -way[0])[:k])
        in_ptr.append(len(rows))
    arrays = ForestArrays(
        np.array(in_ptr),
        np.cumsum([0, *(len(left) for _, left, _, _, _ in rows)]),
        np.array([u for _, left, _, _, _ in rows for u in left], dtype=np.int64),
        np.cumsum([0, *(len(tokens) for _, _, tokens, _, _ in rows)]),
        np.array([t for _, _, tokens, _, _ in rows for t in tokens], dtype=np.int64),
        np.array([weight for weight, _, _, _, _ in rows]),
    )
    return ScoredForest(
        arrays,
        np.ones(len(rows), dtype=bool),
        f.lm_word,
        f.name,
        f.label,
        np.array([e for _, _, _, e, _ in rows], dtype=np.int64),
        {i: edges for i, (_, _, _, _, edges) in enumerate(rows) if any(way is not None for way in edges)},
    )
