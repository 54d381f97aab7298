"""Translation forests: every derivation of a sentence under a synchronous grammar, before any language model (LR 5.1).

The arrays of a ``TranslationForest``, for kernels and decoders. V vertices (a symbol over a span of the source), E
edges (a rule applied there), numbered bottom-up as in ``certus.Hypergraph``:

    in_ptr (V + 1,)      edges that enter v are range(in_ptr[v], in_ptr[v + 1]); every tail vertex is below its head
    tail_ptr (E + 1,)    tail of e, IN THE ORDER OF THE TARGET SIDE, is tail[tail_ptr[e]:tail_ptr[e + 1]]
    tail (...)
    token_ptr (E + 1,)   target side of e is token[token_ptr[e]:token_ptr[e + 1]]
    token (...)          a word, by its number in ``words``, or ~j < 0: what the j-th vertex of the tail yields. The
                         j's of an edge are 0, 1, 2, ... from left to right: each tail vertex stands once
    weights (E,)         float64, weights . features; the language model is not in it
    feature_ptr (E + 1,), feature (...), feature_value (...)    features of e, numbered as in ``feature_names``
    spans (V, 2)         source words covered, half open; None if the file they came from does not say
    symbols              nonterminal of each vertex; None likewise
    rules (E,)           row of the grammar each edge comes from, -1 for none; None likewise

``words`` are the target words of this forest; ``lm_tokens(lm)`` is ``token`` with the ids of a language model in their
place, all words that it does not know being ``<unk>``. A derivation is its edges, head before tails, tails from left to
right. What it yields is scored by the language model from ``<s>`` to ``</s>``.
"""

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certus.certificates.rounding import total
from certus.checks import Floats, as_scores, as_words, of_kind
from certus.errors import InvalidInput
from certus.hypergraph import Hypergraph
from certus.hypergraph.formats import from_json, to_json
from certus.io.files import read_text, write_maybe_gzip
from certus.io.forests import ForestTable, format_forest, parse_forest
from certus.schema import MOST, Field
from certus.serialize import floats_to_json, load_json, write_json

if TYPE_CHECKING:
    from certus.translation.language_model import LanguageModel

Int32 = NDArray[np.int32]
NO_DERIVATION = "the forest has no derivation: every one uses an edge of weight -inf, or there is none."


class ForestArrays(NamedTuple):
    """A forest for kernels: the arrays described above, with words as the kernel numbers them."""

    in_ptr: NDArray[Any]
    tail_ptr: NDArray[Any]
    tail: NDArray[Any]
    token_ptr: NDArray[Any]
    token: NDArray[Any]
    weight: Floats


@dataclass(frozen=True, slots=True)
class LeafGraph:
    """A forest with a vertex for each word, as LR 5.1 has it; see ``TranslationForest.leaf_graph``."""

    graph: Hypergraph
    word: Int32  # per vertex: its word, as in the forest's ``words``; -1 <s>, -2 </s>, -3 no leaf
    edge: Int32  # per edge: the edge of the forest it stands for, or -1
    owner: Int32  # per vertex: the vertex of the forest that it is, or whose rules use this leaf; -1 at <s>, </s>, top


class TranslationForest:
    """The derivations of a source sentence, with target words and rule scores but no language model.

    The head of ``certus/translation/forest.py`` describes the arrays. Forests come from ``certus.SynchronousGrammar``,
    from files (``read``), or from these arrays.

    Parameters
    ----------
    graph : Hypergraph
        Vertices and edges; tails in the order of the target side.
    token_ptr, token : array_like of int
        Target sides.
    words : sequence of str
        The word of each non-negative token.
    weights : array_like, shape (E,), optional
        Rule scores; zeros by default.
    feature_names, feature_ptr, feature, feature_value : optional
        Features of the edges.
    spans : array_like, shape (V, 2), optional
    symbols : sequence of str, optional
    rules : array_like, shape (E,), optional

    Raises
    ------
    InvalidInput : the arrays do not fit together; the message names the edge.

    Examples
    --------
    >>> graph = Hypergraph(in_ptr=[0, 2, 3], tail_ptr=[0, 0, 0, 1], tail=[0])
    >>> forest = TranslationForest(graph, [0, 1, 2, 4], [0, 1, ~0, 2], ["dog", "cat", "barks"], [1.0, 2.0, 0.5])
    >>> forest.yields([2, 1]), forest.score([2, 1])
    (['cat', 'barks'], 2.5)
    """

    def __init__(
        self,
        graph: Hypergraph,
        token_ptr: ArrayLike,
        token: ArrayLike,
        words: Sequence[str],
        weights: ArrayLike | None = None,
        *,
        feature_names: Sequence[str] = (),
        feature_ptr: ArrayLike | None = None,
        feature: ArrayLike | None = None,
        feature_value: ArrayLike | None = None,
        spans: ArrayLike | None = None,
        symbols: Sequence[str] | None = None,
        rules: ArrayLike | None = None,
    ) -> None:
        how = "a certus.Hypergraph; for texts and files call TranslationForest.from_text or read"
        n_edges, n_vertices = of_kind("graph", graph, Hypergraph, how).n_edges, graph.n_vertices
        self.graph = graph
        self.words = list(as_words("words", words))
        self.token_ptr, self.token = _ragged("token", token_ptr, token, n_edges)
        _check_tokens(graph, self.token_ptr, self.token, len(self.words))
        self.weights = as_scores("weights", np.zeros(n_edges) if weights is None else weights, (n_edges,))
        self.feature_names = list(feature_names)
        if feature_ptr is None or feature is None or feature_value is None:
            feature_ptr, feature, feature_value = np.zeros(n_edges + 1, dtype=np.int32), [], []
        self.feature_ptr, self.feature = _ragged("feature", feature_ptr, feature, n_edges)
        self.feature_value = as_scores("feature_value", feature_value, (len(self.feature),))
        _check_range("feature", self.feature, len(self.feature_names), "feature_names")
        self.spans = None if spans is None else np.ascontiguousarray(spans, dtype=np.int32).reshape(n_vertices, 2)
        self.symbols = None if symbols is None else list(symbols)
        self.rules = None if rules is None else np.ascontiguousarray(rules, dtype=np.int32).reshape(n_edges)
        if self.symbols is not None and len(self.symbols) != n_vertices:
            raise InvalidInput(f"symbols has {len(self.symbols)} entries; expected one for each of {n_vertices}.")

    def __repr__(self) -> str:
        return f"TranslationForest(vertices={self.graph.n_vertices}, edges={self.graph.n_edges})"

    # -- scores ----------------------------------------------------------------------------------------------------

    def weighted(self, weights: Mapping[str, float]) -> "TranslationForest":
        """The same forest, with ``weights . features`` as the score of each edge; names not in it are ignored.

        Raises InvalidInput for a feature without a weight.
        """
        vector = feature_weights(weights, self.feature_names)
        return self.with_weights(self.dot(vector))

    def dot(self, vector: Floats) -> Floats:
        """Per edge, the sum of feature values times the entries of a vector over ``feature_names``."""
        edge = np.repeat(np.arange(self.graph.n_edges), np.diff(self.feature_ptr))
        products = vector[self.feature] * self.feature_value
        return np.bincount(edge, products, self.graph.n_edges).astype(np.float64)

    def with_weights(self, weights: ArrayLike) -> "TranslationForest":
        """The same forest with other scores of its edges."""
        other = copy(self)
        other.weights = as_scores("weights", weights, (self.graph.n_edges,))
        return other

    # -- derivations -----------------------------------------------------------------------------------------------

    def score(self, edges: Sequence[int]) -> float:
        """Sum of the edge weights of a derivation, in plain Python. InvalidInput if it is none of this forest."""
        self._walk(edges)
        return total(self.weights[list(edges)].tolist())

    def yields(self, edges: Sequence[int]) -> list[str]:
        """The target words of a derivation. InvalidInput if it is none of this forest."""
        return [self.words[k] for k in self._walk(edges)]

    def preorder(self, edges: Sequence[int]) -> list[tuple[str, str | None, int]]:
        """A derivation as the nodes of a tree, parents first: symbols of vertices, with the words they yield."""
        self._walk(edges)
        out: list[tuple[str, str | None, int]] = []
        rest, pending = iter(edges), [~self.graph.root]
        while pending:
            item = pending.pop()
            if item >= 0:
                out.append(("", self.words[item], 0))
                continue
            e, name = next(rest), "X" if self.symbols is None else self.symbols[~item]
            tail = self.graph.tail_of(e)
            side = self.token[self.token_ptr[e] : self.token_ptr[e + 1]].tolist()
            out.append((name, None if side else "∅", len(side)))
            pending.extend(t if t >= 0 else ~int(tail[~t]) for t in reversed(side))
        return out

    def features(self, edges: Sequence[int]) -> dict[str, float]:
        """Feature values of a derivation, summed; features it does not have are left out."""
        totals: dict[str, float] = {}
        for e in edges:
            for k in range(self.feature_ptr[e], self.feature_ptr[e + 1]):
                name = self.feature_names[self.feature[k]]
                totals[name] = totals.get(name, 0.0) + float(self.feature_value[k])
        return totals

    def _walk(self, edges: Sequence[int]) -> list[int]:
        """Words of a derivation by number; checks that each edge enters the vertex that is due."""
        graph, out = self.graph, []
        pending: list[int] = [~graph.root]  # words, and ~vertex for what is still to be expanded; the next one last
        rest = iter(edges)
        while pending:
            item = pending.pop()
            if item >= 0:
                out.append(item)
                continue
            v, e = ~item, next(rest, None)
            if e is None or not graph.in_ptr[v] <= e < graph.in_ptr[v + 1]:
                found = "no edge is left" if e is None else f"edge {e} does not enter it"
                raise InvalidInput(f"not a derivation: vertex {v} is due, but {found}.")
            tail = graph.tail_of(e)
            side = self.token[self.token_ptr[e] : self.token_ptr[e + 1]].tolist()
            pending.extend(t if t >= 0 else ~int(tail[~t]) for t in reversed(side))
        extra = next(rest, None)
        if extra is not None:
            raise InvalidInput(f"not a derivation: edge {extra} stands after its end.")
        return out

    # -- views -----------------------------------------------------------------------------------------------------

    def lm_tokens(self, lm: "LanguageModel") -> Int32:
        """``token`` with word ids of a language model in place of the forest's own; references to tails unchanged."""
        ids = np.append(lm.word_ids(self.words), np.int32(0))  # one more, so that -1 can be looked up in an empty list
        return np.where(self.token >= 0, ids[np.maximum(self.token, -1)], self.token).astype(np.int32)

    def arrays(self, lm: "LanguageModel") -> ForestArrays:
        """The forest for kernels, with the words of a language model."""
        graph = self.graph
        return ForestArrays(graph.in_ptr, graph.tail_ptr, graph.tail, self.token_ptr, self.lm_tokens(lm), self.weights)

    def leaf_graph(self) -> LeafGraph:
        """The forest with a vertex for each word, between the leaves ``<s>`` and ``</s>`` (LR 5.1, SYN 3).

        A leaf is a word within a head vertex, that is, within a symbol and span: all rules of one vertex share it, and
        a word that stands twice in one rule has a second leaf there, so that a derivation passes a leaf at most once.
        Vertex 0 is ``<s>``, 1 is ``</s>``, then the leaves, the vertices of the forest in their order, and the top,
        whose one edge has the tail ``<s>``, root, ``</s>``. Leaves are entered by edges with no tail.
        """
        graph = self.graph
        leaf_of: dict[tuple[int, int, int], int] = {}
        children: list[list[int]] = []  # per edge: leaves, or ~vertex
        for e, head in enumerate(graph.heads.tolist()):
            tail = graph.tail_of(e).tolist()
            seen: dict[int, int] = {}
            row = []
            for t in self.token[self.token_ptr[e] : self.token_ptr[e + 1]].tolist():
                if t < 0:
                    row.append(~tail[~t])
                else:
                    row.append(leaf_of.setdefault((head, t, seen.get(t, 0)), len(leaf_of) + 2))
                    seen[t] = seen.get(t, 0) + 1
            children.append(row)
        first, n_vertices = len(leaf_of) + 2, graph.n_vertices
        top = first + n_vertices
        tails: list[list[int]] = [[] for _ in range(first)]
        tails += [[c if c >= 0 else first + ~c for c in row] for row in children]
        tails.append([0, first + graph.root, 1])
        in_ptr = np.concatenate([np.arange(first), first + graph.in_ptr, [len(tails)]])
        tail_ptr = np.concatenate(([0], np.cumsum([len(t) for t in tails])))
        word = np.full(top + 1, -3, dtype=np.int32)
        owner = np.full(top + 1, -1, dtype=np.int32)
        word[0], word[1] = -1, -2
        for (head, t, _), leaf in leaf_of.items():
            word[leaf], owner[leaf] = t, head
        owner[first:top] = np.arange(n_vertices)
        edge = np.full(len(tails), -1, dtype=np.int32)
        edge[first : first + graph.n_edges] = np.arange(graph.n_edges)
        return LeafGraph(Hypergraph(in_ptr, tail_ptr, [c for row in tails for c in row], top), word, edge, owner)

    # -- travel ----------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "TranslationForest":
        """Read JSON, if the name ends in .json, or cdec's text form, plain or .gz. FormatError if it is neither.

        The features of a text forest are kept and its weights are zeros: ``forest.weighted(weights)`` scores it.
        """
        if str(path).endswith(".json"):
            return load_json(path, cls.from_json)
        return cls.from_text(read_text(path), path=path)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the forest, whole or not at all: JSON if its name ends in .json, else as text, .gz by its name."""
        if str(path).endswith(".json"):
            write_json(path, self.to_json())
        else:
            write_maybe_gzip(path, self.to_text())

    @classmethod
    def from_text(cls, text: str, *, path: object = "text") -> "TranslationForest":
        """The forest of cdec's text form; ``path`` is what errors call it."""
        t = parse_forest(text, path)
        token, feature = (np.array(flat, dtype=np.int32) for flat in (t.token, t.feature))
        return cls(
            Hypergraph(t.in_ptr, t.tail_ptr, np.array(t.tail, dtype=np.int32)),
            t.token_ptr,
            token,
            list(t.words),
            feature_names=list(t.feature_names),
            feature_ptr=t.feature_ptr,
            feature=feature,
            feature_value=np.array(t.feature_value),
        )

    def to_text(self) -> str:
        """cdec's text form: target sides and features only; the root must be the last vertex."""
        graph = self.graph
        if graph.root != graph.n_vertices - 1:
            raise InvalidInput(f"the root is vertex {graph.root}; in cdec's text form the goal is the last vertex.")
        arrays = (graph.in_ptr, graph.tail_ptr, graph.tail, self.token_ptr, self.token)
        features = (self.feature_ptr, self.feature, self.feature_value)
        table = ForestTable(*(array.tolist() for array in (*arrays, *features)))
        return format_forest(table, self.words, self.feature_names)

    def to_json(self) -> dict[str, Any]:
        """Hypergraph JSON (``certus.hypergraph``), with target sides, features and spans under "translation"."""
        data = to_json(self.graph, self.weights)
        data["translation"] = {
            "words": self.words,
            "token_ptr": self.token_ptr.tolist(),
            "token": self.token.tolist(),
            "feature_names": self.feature_names,
            "feature_ptr": self.feature_ptr.tolist(),
            "feature": self.feature.tolist(),
            "feature_value": floats_to_json(self.feature_value),
            "spans": None if self.spans is None else self.spans.tolist(),
            "symbols": self.symbols,
            "rules": None if self.rules is None else self.rules.tolist(),
        }
        return data

    @classmethod
    def from_json(cls, data: Any) -> "TranslationForest":
        """The forest that ``to_json`` described; InvalidInput if it is none."""
        given = Field.of(data, "")
        graph, weights = from_json(given)
        if "translation" not in given:
            raise InvalidInput('not a translation forest: the hypergraph has no "translation" with its target words.')
        rest = given["translation"]
        feature = rest["feature"].wholes(0, MOST)
        options: dict[str, Any] = {
            "feature_names": rest["feature_names"].texts(),
            "feature_ptr": rest["feature_ptr"].wholes(0, MOST),
            "feature": feature,
            "feature_value": rest["feature_value"].scores((len(feature),)),
            "spans": rest["spans"].wholes(0, MOST, (graph.n_vertices, 2)) if "spans" in rest else None,
            "symbols": rest["symbols"].texts() if "symbols" in rest else None,
            "rules": rest["rules"].wholes(-1, MOST, (graph.n_edges,)) if "rules" in rest else None,
        }
        sides = (rest["token_ptr"].wholes(0, MOST), rest["token"].wholes(-MOST, MOST), rest["words"].texts())
        return rest.made(lambda: cls(graph, *sides, weights, **options))


def feature_weights(weights: Mapping[str, float], names: Sequence[str]) -> Floats:
    """The weight of each feature; InvalidInput for a feature without one."""
    missing = [name for name in names if name not in weights]
    if missing:
        raise InvalidInput(
            f"the feature {missing[0]!r} has no weight; weights are given for "
            f"{', '.join(map(repr, weights)) or 'no features'}. Give it one, 0 to leave it out."
        )
    return as_scores("weights", [weights[name] for name in names])


def _ragged(name: str, ptr: ArrayLike, flat: ArrayLike, n_edges: int) -> tuple[Int32, Int32]:
    """Offsets per edge and what they point into, as int32."""
    offsets = np.ascontiguousarray(ptr, dtype=np.int32)
    values = np.ascontiguousarray(flat, dtype=np.int32)
    if offsets.shape != (n_edges + 1,) or offsets[0] != 0 or offsets[-1] != len(values) or (np.diff(offsets) < 0).any():
        raise InvalidInput(
            f"{name}_ptr does not fit: expected {n_edges + 1} rising offsets from 0 to {len(values)}, one pair an edge."
        )
    return offsets, values


def _check_range(name: str, values: Int32, size: int, of_what: str) -> None:
    wrong = (values < 0) | (values >= size)
    if wrong.any():
        raise InvalidInput(f"{name}[{int(np.argmax(wrong))}] is out of range: {of_what} has {size} entries.")


def _check_tokens(graph: Hypergraph, ptr: Int32, token: Int32, n_words: int) -> None:
    """Words exist, and the references of an edge are ~0, ~1, ... in this order, one for each tail vertex."""
    if len(token) and int(token.max()) >= n_words:
        k = int(np.argmax(token))
        e = int(np.searchsorted(ptr, k, side="right")) - 1
        raise InvalidInput(f"edge {e} has word {token[k]} on its target side; there are {n_words} words.")
    reference = token < 0
    edge = np.repeat(np.arange(graph.n_edges), np.diff(ptr))[reference]
    sizes = np.diff(graph.tail_ptr)
    counts = np.bincount(edge, minlength=graph.n_edges)
    expected = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
    wrong = ~token[reference] != expected
    if wrong.any() or (counts != sizes).any():
        e = int(edge[np.argmax(wrong)]) if wrong.any() else int(np.argmax(counts != sizes))
        raise InvalidInput(
            f"edge {e} has the references {token[ptr[e] : ptr[e + 1]][token[ptr[e] : ptr[e + 1]] < 0].tolist()} on its "
            f"target side; expected ~0, ~1, ... from left to right, one for each of its {sizes[e]} tail vertices."
        )
